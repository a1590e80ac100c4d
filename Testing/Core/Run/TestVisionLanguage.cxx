// Models of pictures among words, compared with the original code.

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "Files/Safetensors.h"
#include "ParityRow.h"
#include "PartParity.h"
#include "Preprocessing/PictureTokens.h"
#include "Run/RecordTransformer.h"
#include "SameRecording.h"
#include "TemporaryDirectory.h"
#include "TestName.h"
#include "VisionOracle.h"
#include "WholeRuns.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

class VisionLanguageParity : public testing::TestWithParam<std::string>
{
protected:
  const TransformerConfig& Config() const { return this->Model.GetConfig(); }
  const VisionConfig& Vision() const { return *this->Config().vision; }
  const TransformerInput& Input() const { return this->Expected.Input; }

  /// Texts are [B, ..., T, columns], padded; images [N, ..., P, columns], with all patches of an
  /// encoder of any size in one.
  PartParity Parity(const Recording& part) const
  {
    const bool isText = &part == &this->Found;
    const std::int64_t length = isText ? 0 : this->Expected.ShapeOf("vision.layer.0.query")[2];
    ExpectedPlaces places;
    for (std::int64_t row = 0; row < part.tokens.Count(); ++row)
    {
      places.push_back(
        isText ? ExpectedPlace{ row, part.tokens.sequence[row], part.tokens.position[row] }
               : ExpectedPlace{ row, row / length, row % length });
    }
    return { part, this->Expected.Tensors(), isText ? "" : "vision.", places, places };
  }

  VisionOracle Expected{ GetParam() };
  Transformer Model = Transformer::Read(VisionOracle::Folder(GetParam()));
  Recording Found = RecordTransformer(this->Model, this->Expected.Input, AllOfPictures());
};

INSTANTIATE_TEST_SUITE_P(, VisionLanguageParity,
  testing::Values("llava", "llava-siglip", "internvl", "smolvlm", "qwen2_vl", "qwen2_5_vl"),
  [](const auto& one) { return TestName(one.param); });

TEST_P(VisionLanguageParity, IsThatOfTheOriginalCode)
{
  CheckRecording(this->Found, "recording");
  ASSERT_NE(this->Found.encoder, nullptr);
  EXPECT_EQ(this->Found.cross, nullptr);
  for (const Recording* part : WithParts(this->Found))
  {
    const bool isText = part == &this->Found;
    const TransformerConfig& config = isText ? this->Config() : *this->Vision().encoder;
    ASSERT_EQ(part->layers.size(), static_cast<std::size_t>(config.layers));
    const PartParity parity = this->Parity(*part);
    std::map<std::string, double> deviations = parity.Deviations();
    EXPECT_EQ(NamesOf(deviations), "attention hidden key outputs query scores value");
    if (isText)
    {
      deviations["logits"] = parity.Deviation("logits", part->logits, parity.queries);
    }
    const std::string kind = isText ? "decoder" : "encoder";
    ExpectSmall(this->GetParam() + ", " + kind, deviations);
    Write(
      this->GetParam() + "_" + kind, { this->GetParam(), kind, "safetensors", "F32", deviations });
  }
}

TEST_P(VisionLanguageParity, ProductsOfBfloat16AreNear)
{
  CompareBfloat16(this->GetParam(), this->Model, this->Input(), AllOfPictures(), this->Found);
}

/// What the projector gives is there before the first layer: a part of `hidden`.
TEST_P(VisionLanguageParity, ImageTokensAreThoseOfTheOriginalCode)
{
  const std::vector<ImageToken> tokens = ImageTokens(this->Config(), this->Input());
  ASSERT_EQ(static_cast<std::int64_t>(tokens.size()), this->Expected.ShapeOf("image_tokens")[0]);
  for (std::size_t i = 0; i < tokens.size(); ++i)
  {
    const ImageToken& token = tokens[i];
    const auto row = static_cast<std::int64_t>(i);
    EXPECT_THAT(
      this->Expected.Row("image_tokens", row), ElementsAre(token.sequence, token.position));
    EXPECT_THAT(this->Expected.Row("image_token_grid", row),
      ElementsAre(token.image, token.frame, token.row, token.column));
  }
}

/// The patches of a token are those of the recording of the encoder whose rows and columns are in
/// its square.
TEST_P(VisionLanguageParity, TokensCoverTheirPatches)
{
  const Recording& encoder = PartOf(this->Found, AttentionKind::Encoder);
  const std::int64_t merge = this->Vision().merge;
  const std::vector<ImageToken> tokens = ImageTokens(this->Config(), this->Input());
  std::vector<std::int64_t> patches; // rows of the encoder's recording
  for (std::int64_t row = 0; row < encoder.tokens.Count(); ++row)
  {
    if (encoder.tokens.row[row] >= 0)
    {
      patches.push_back(row);
    }
  }
  for (std::size_t i = 0; i < tokens.size(); ++i)
  {
    std::int64_t inside = 0;
    for (const std::int64_t patch :
      this->Expected.Row("image_token_patches", static_cast<std::int64_t>(i)))
    {
      const std::int64_t row = patches[patch];
      EXPECT_EQ(encoder.tokens.row[row], tokens[i].row * merge + inside / merge);
      EXPECT_EQ(encoder.tokens.column[row], tokens[i].column * merge + inside % merge);
      ++inside;
    }
    EXPECT_EQ(inside, merge * merge);
  }
}

/// Qwen: positions of the text, and of the patches; and that of the next token.
TEST_P(VisionLanguageParity, PositionsAreThoseOfTheOriginalCode)
{
  if (!this->Expected.Has("position_ids"))
  {
    EXPECT_TRUE(this->Vision().rotarySections.empty());
    return;
  }
  const std::vector<RotaryPlace> places = TextPlaces(this->Config(), this->Input());
  const std::vector<std::int64_t> expected = this->Expected.Get("position_ids").ToInteger();
  const Shape& shape = this->Expected.Get("position_ids").shape;
  std::size_t row = 0;
  for (std::size_t s = 0; s < this->Input().tokens.size(); ++s)
  {
    std::int64_t last = 0;
    for (std::size_t t = 0; t < this->Input().tokens[s].size(); ++t, ++row)
    {
      for (std::size_t axis = 0; axis < 3; ++axis)
      {
        EXPECT_EQ(places[row][axis], expected[(axis * shape[1] + s) * shape[2] + t]);
        last = std::max(last, places[row][axis]);
      }
    }
    EXPECT_THAT(this->Expected.Row("rope_deltas", static_cast<std::int64_t>(s)),
      ElementsAre(last + 1 - shape[2]));
  }
  const std::vector<RotaryPlace> patches = PatchPlaces(this->Vision().merge, this->Input());
  ASSERT_EQ(
    static_cast<std::int64_t>(patches.size()), this->Expected.Get("vision.positions").shape[0]);
  for (std::size_t i = 0; i < patches.size(); ++i)
  {
    EXPECT_THAT(this->Expected.Row("vision.positions", static_cast<std::int64_t>(i)),
      ElementsAre(patches[i][0], patches[i][1], patches[i][2]));
  }
}

/// Qwen2.5-VL: pairs of frames that are seconds apart.
TEST(VisionLanguage, FramesOfVideosHavePositionsByTime)
{
  const VisionOracle oracle("qwen2_5_vl");
  const TransformerConfig config =
    ReadTransformerConfig(VisionOracle::Folder("qwen2_5_vl") / ConfigFile);
  TransformerInput input;
  input.tokens = { oracle.Row("film.input_ids", 0) };
  const std::vector<std::int64_t> grid = oracle.Row("film.video_grid_thw", 0);
  input.extents = { { grid[0], grid[1], grid[2], true, oracle.Get("film.second_per_grid").At(0) } };
  const std::vector<RotaryPlace> places = TextPlaces(config, input);
  const std::vector<std::int64_t> expected = oracle.Get("film.position_ids").ToInteger();
  ASSERT_EQ(3 * places.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
  {
    EXPECT_EQ(places[i % places.size()][i / places.size()], expected[i]);
  }
}

/// vision_feature_layer -1 is the output of the last layer before the encoder's last normalization,
/// as LLaVA's own code reads it (llava-interleave-qwen): by loops over what the original code
/// computed up to there.
TEST(VisionLanguage, TheLastLayerOfSiglipIsReadBeforeItsNorm)
{
  const std::filesystem::path source = VisionOracle::Folder("llava-siglip");
  const TemporaryDirectory folder;
  std::ifstream file(source / ConfigFile);
  nlohmann::json config = nlohmann::json::parse(file);
  EXPECT_EQ(config["vision_feature_layer"], -2);
  config["vision_feature_layer"] = -1;
  WriteBytes(folder / ConfigFile, config.dump());
  std::filesystem::copy(source / "model.safetensors", folder / "model.safetensors");
  const VisionOracle oracle("llava-siglip");
  const Recording found =
    RecordTransformer(Transformer::Read(folder.Path()), oracle.Input, AllOfPictures());
  const SafetensorsFile weights(source / "model.safetensors");
  using Doubles = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const auto map = [&](const std::string& name, const Doubles& x) -> Doubles
  {
    const TensorView& view = weights.GetTensors().at("multi_modal_projector." + name + ".weight");
    const std::vector<double> matrix = view.ToDouble();
    const std::vector<double> bias =
      weights.GetTensors().at("multi_modal_projector." + name + ".bias").ToDouble();
    Doubles y =
      x * Eigen::Map<const Doubles>(matrix.data(), view.shape[0], view.shape[1]).transpose();
    y.rowwise() += Eigen::Map<const Eigen::RowVectorXd>(bias.data(), y.cols());
    return y;
  };
  const std::vector<double> hidden = oracle.Values("vision.hidden.2");
  const std::int64_t tokens = oracle.ShapeOf("image_tokens")[0];
  ASSERT_EQ(hidden.size(), static_cast<std::size_t>(tokens) * 12);
  const Doubles inner = map("linear_1", Eigen::Map<const Doubles>(hidden.data(), tokens, 12));
  const Doubles expected = map("linear_2",
    inner.unaryExpr([](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.))); }));
  double largest = 0;
  for (std::int64_t i = 0; i < tokens; ++i)
  {
    const std::vector<std::int64_t> place = oracle.Row("image_tokens", i);
    const float* row = found.residual[0].Row(found.sequenceOffsets[place[0]] + place[1]);
    for (Eigen::Index c = 0; c < expected.cols(); ++c)
    {
      Raise(largest, static_cast<double>(row[c]) - expected(i, c));
    }
  }
  EXPECT_LE(largest, StreamTolerance);
}

TEST_P(VisionLanguageParity, GreedyTokensAreThoseOfWholeRuns)
{
  ExpectGreedy(this->Model, this->Input(), 6);
}

TEST_P(VisionLanguageParity, ThreadsAndRangesDoNotMatter)
{
  RecordOptions options = AllOfPictures();
  for (const int threads : { 1, 3 })
  {
    options.threads = threads;
    ExpectEqual(RecordTransformer(this->Model, this->Input(), options), this->Found);
  }
  ExpectRangesAddUp(this->Model, this->Input(), options, this->Found);
}

TEST_P(VisionLanguageParity, MemoryIsThatOfAllParts)
{
  RecordOptions options = AllOfPictures();
  ExpectMemory(this->Model, this->Input(), options);
  options = {};
  options.layers = { 0 };
  options.values = false;
  ExpectMemory(this->Model, this->Input(), options);
  const Recording one = RecordTransformer(this->Model, this->Input(), options);
  ASSERT_EQ(one.encoder->layers.size(), 1U);
  ExpectEqual(one.encoder->layers[0].heads[1].query, this->Found.encoder->layers[0].heads[1].query);
  ExpectEqual(one.layers[0].heads[1].query, this->Found.layers[0].heads[1].query);
  EXPECT_FALSE(one.encoder->layers[0].heads[1].value.IsRecorded());
}

/// What each picture of a recording shows: picture, first frame, frames, whether all of it is there
/// in small, height and width.
TEST_P(VisionLanguageParity, ContentsArePictures)
{
  using Content = std::vector<std::int32_t>;
  const std::map<std::string, std::vector<Content>> expected = {
    { "llava", { { 0, 0, 1, 0, 12, 12 }, { 1, 0, 1, 0, 12, 12 } } },
    { "llava-siglip", { { 0, 0, 1, 0, 12, 12 }, { 1, 0, 1, 0, 12, 12 } } }, // of 14 x 14
    { "internvl", { { 0, 0, 1, 0, 16, 32 }, { 0, 0, 1, 1, 16, 16 }, { 1, 0, 1, 0, 16, 16 } } },
    { "smolvlm", { { 0, 0, 1, 0, 16, 32 }, { 0, 0, 1, 1, 16, 16 } } },
    { "qwen2_vl", { { 0, 0, 1, 0, 16, 24 }, { 1, 0, 2, 0, 8, 16 }, { 1, 2, 2, 0, 8, 16 } } },
    { "qwen2_5_vl", { { 0, 0, 1, 0, 16, 24 }, { 1, 0, 1, 0, 16, 8 } } },
  };
  std::vector<Content> found;
  for (const PictureContent& one : this->Found.pictures.contents)
  {
    found.push_back(
      { one.picture, one.frame, one.frames, one.isSmall ? 1 : 0, one.height, one.width });
  }
  EXPECT_EQ(found, expected.at(this->GetParam()));
  EXPECT_EQ(this->Found.pictures.count, static_cast<std::int64_t>(found.size()));
  // Each place of each picture has one token.
  const std::int64_t side = this->Vision().merge * this->Vision().encoder->patchHeight;
  const RecordedTokens& tokens = this->Found.tokens;
  for (std::size_t i = 0; i < found.size(); ++i)
  {
    std::vector<std::int64_t> counts((found[i][4] / side) * (found[i][5] / side), 0);
    for (std::int64_t t = 0; t < tokens.Count(); ++t)
    {
      if (tokens.picture[t] == static_cast<std::int32_t>(i))
      {
        ++counts.at(tokens.row[t] * (found[i][5] / side) + tokens.column[t]);
      }
    }
    EXPECT_THAT(counts, testing::Each(1));
  }
  for (std::int64_t t = 0; t < tokens.Count(); ++t)
  {
    const bool isOfPicture =
      tokens.id[t] == this->Vision().imageToken || tokens.id[t] == this->Vision().videoToken;
    EXPECT_EQ(tokens.picture[t] >= 0, isOfPicture);
    EXPECT_EQ(tokens.row[t] >= 0, isOfPicture);
  }
}

/// A run of the text as an architecture of its own has the same embeddings of words.
TEST_P(VisionLanguageParity, ThePartOfTheTextCanBeChosen)
{
  const std::string family =
    this->GetParam().substr(0, 5) == "llava" || this->GetParam() == "smolvlm" ? "llama" : "qwen2";
  const Transformer text = Transformer::Read(VisionOracle::Folder(this->GetParam()), family);
  EXPECT_EQ(text.GetConfig().vision, nullptr);
  EXPECT_EQ(text.GetConfig().layers, 2);
  TransformerInput words;
  words.tokens = { { 3, 1, 4, 1, 5 } };
  const Recording alone = RecordTransformer(text, words, AllOfPictures());
  const Recording whole = RecordTransformer(this->Model, words, AllOfPictures());
  EXPECT_EQ(whole.encoder, nullptr);
  EXPECT_TRUE(whole.tokens.picture.empty());
  EXPECT_TRUE(whole.pictures.IsEmpty());
  ExpectEqual(alone.logits, whole.logits);
  ExpectEqual(alone.layers[1].heads[2].key, whole.layers[1].heads[2].key);
}

TEST(VisionLanguage, EarlierSettingsOfQwenAreTheSame)
{
  for (const char* name : { "qwen2_vl", "qwen2_5_vl" })
  {
    const VisionOracle oracle(name);
    const Transformer model = Transformer::Read(VisionOracle::Folder(name));
    Transformer flat(ReadTransformerConfig(VisionOracle::Folder(name) / "config-flat.json"),
      WeightFiles::Read(VisionOracle::Folder(name) / "model.safetensors"));
    ExpectEqual(RecordTransformer(flat, oracle.Input, AllOfPictures()),
      RecordTransformer(model, oracle.Input, AllOfPictures()));
  }
}

/// The names that files of later versions have, of which the first begins each name.
using NewNames = std::vector<std::pair<std::string, std::string>>;

Recording RunRenamed(const std::string& model, const NewNames& names)
{
  const SafetensorsFile file(VisionOracle::Folder(model) / "model.safetensors");
  TensorViews tensors;
  for (const auto& [name, view] : file.GetTensors())
  {
    std::string renamed = name;
    for (const auto& [from, to] : names)
    {
      if (name.compare(0, from.size(), from) == 0)
      {
        renamed = to + name.substr(from.size());
        break;
      }
    }
    tensors.emplace(renamed, view);
  }
  const Transformer transformer(
    ReadTransformerConfig(VisionOracle::Folder(model) / ConfigFile), WeightFiles(tensors, "names"));
  return RecordTransformer(transformer, VisionOracle(model).Input, AllOfPictures());
}

TEST(VisionLanguage, LaterNamesOfTensorsAreKnown)
{
  const std::map<std::string, NewNames> names = {
    { "llava",
      { { "language_model.model.", "model.language_model." },
        { "language_model.lm_head.", "lm_head." }, { "vision_tower.", "model.vision_tower." },
        { "multi_modal_projector.", "model.multi_modal_projector." } } },
    { "internvl",
      { { "language_model.model.", "model.language_model." },
        { "language_model.lm_head.", "lm_head." }, { "vision_tower.", "model.vision_tower." },
        { "multi_modal_projector.", "model.multi_modal_projector." } } },
    { "qwen2_vl", { { "visual.", "model.visual." }, { "model.", "model.language_model." } } },
    { "qwen2_5_vl", { { "visual.", "model.visual." }, { "model.", "model.language_model." } } },
  };
  for (const auto& [model, renamed] : names)
  {
    ExpectEqual(RunRenamed(model, renamed), RunRenamed(model, {}));
  }
}

TEST(VisionLanguage, TensorsMustBeThere)
{
  const std::vector<std::array<std::string, 3>> rows = {
    { "llava", "multi_modal_projector.linear_2.weight", "other" },
    { "llava", "multi_modal_projector.linear_1.bias", "other" },
    { "qwen2_5_vl", "visual.merger.ln_q.weight", "other" },
    { "internvl", "vision_tower.encoder.layer.1.lambda_2", "vision_tower.encoder.layer.2.lambda_2" }
  };
  const auto refusal = [](const std::string& model, const NewNames& names)
  { return MessageOf<ModelError>([&] { RunRenamed(model, names); }); };
  for (const auto& [model, from, to] : rows)
  {
    EXPECT_THAT(refusal(model, { { from, to } }), HasSubstr("tensor '" + from + "' is missing"));
  }
  // Without its encoder alone, a model is not a model of texts.
  EXPECT_THAT(refusal("llava", { { "vision_tower.", "other." } }), HasSubstr("is missing"));
  EXPECT_THAT(refusal("smolvlm", { { "model.vision_model.", "other." } }), HasSubstr("is missing"));
  EXPECT_THAT(refusal("smolvlm", { { "lm_head.weight", "model.vision_model.extra_norm.weight" } }),
    HasSubstr("as configured, have no such tensor"));
}

/// A change of the input of a model, and what is said of it.
struct BadInput
{
  const char* model;
  std::function<void(TransformerInput&)> change;
  const char* message;
};

TEST(VisionLanguage, TokensTilesAndExtentsMustFit)
{
  using Input = TransformerInput;
  const std::vector<BadInput> rows = {
    { "llava", [](Input& input) { input.tokens[0][3] = 5; },
      "expected 18 tokens with the id 60 for 2 images, found 17" },
    { "qwen2_vl", [](Input& input) { input.tokens[0][0] = 59; },
      "expected 4 tokens with the id 59 for 1 video, found 5" },
    { "qwen2_vl", [](Input& input) { std::swap(input.tokens[0], input.tokens[1]); },
      "sequence 0, position 2: expected the tokens of each picture or video together" },
    { "llava",
      [](Input& input)
      {
        input.tokens[1].insert(input.tokens[1].begin(), 60);
        input.tokens[0][11] = 5;
      },
      "sequence 1, position 0: expected the tokens of each picture or video together" },
    { "internvl", [](Input& input) { input.tiles.pop_back(); },
      "a tile for each of the 4 images, and no extents, found 3 tiles" },
    { "internvl", [](Input& input) { input.tiles[1] = input.tiles[0]; },
      "picture 0: expected each of its 1 x 2 tiles once, and the whole picture at most once" },
    { "internvl", [](Input& input) { input.tiles[1].column = 2; },
      "image 1: expected a tile of its picture, or the whole picture, found row 0 and column 2" },
    { "internvl", [](Input& input) { input.tiles[3].picture = 2; },
      "image 3: expected it to be of picture 1, or of that of the image before, found 2" },
    { "llava", [](Input& input) { input.pixels.pop_back(); },
      "pixels of shape [2, 3, 12, 12], found 863" },
    { "llava", [](Input& input) { input.extents.push_back({}); }, "no extents" },
    { "qwen2_vl", [](Input& input) { input.extents[0].rows = 3; },
      "picture 0: expected rows and columns of patches to be multiples of 2 up to 65536, found 3" },
    { "qwen2_vl", [](Input& input) { input.extents[0].frames = 2; },
      "picture 0: expected one group of frames, found 2" },
    { "qwen2_vl", [](Input& input) { input.extents[1].seconds = -1; }, "video 1: expected" },
    { "qwen2_vl", [](Input& input) { input.extents[0].rows = 6; },
      "pixels of shape [52, 3, 2, 4, 4], found 3840" },
    { "qwen2_vl", [](Input& input) { input.images = 1; },
      "extents of pictures, as they have any size, found 1 images" },
    // Far apart in time, frames have positions beyond those of the model.
    { "qwen2_5_vl",
      [](Input& input)
      {
        input.tokens = { { 59, 59 } };
        input.extents = { { 2, 2, 2, true, 40 } };
        input.pixels.assign(2 * 4 * 96, 0.F);
      },
      "by position 80, beyond the 64 of the model" },
  };
  for (const BadInput& row : rows)
  {
    SCOPED_TRACE(row.message);
    const auto folder = VisionOracle::Folder(row.model);
    const TransformerConfig config = ReadTransformerConfig(folder / ConfigFile);
    TransformerInput input = VisionOracle(row.model).Input;
    CheckInput(config, input);
    row.change(input);
    EXPECT_THAT(MessageOf<OptionError>([&] { CheckInput(config, input); }), HasSubstr(row.message));
  }
}

TEST(VisionLanguage, LengthsOfPromptsMustFit)
{
  const TransformerConfig config =
    ReadTransformerConfig(VisionOracle::Folder("llava") / ConfigFile, "llama");
  TransformerInput input;
  input.tokens = { { 1, 2 }, { 3 } };
  input.prompts = { 0, 1 };
  CheckInput(config, input);
  const auto refusal = [&](const std::vector<std::int64_t>& prompts)
  {
    input.prompts = prompts;
    return MessageOf<OptionError>([&] { CheckInput(config, input); });
  };
  EXPECT_THAT(refusal({ 1 }),
    HasSubstr("expected the length of the prompt of each of the 2 sequences, found those of 1"));
  EXPECT_THAT(
    refusal({ 1, 2 }), HasSubstr("sequence 1: expected a prompt of 0 to 1 tokens, found 2"));
  EXPECT_THAT(refusal({ -1, 1 }), HasSubstr("sequence 0: expected a prompt of 0 to 2 tokens"));
}

TEST(VisionLanguage, OtherModelsReadNoPicturesAmongWords)
{
  TransformerConfig config =
    ReadTransformerConfig(VisionOracle::Folder("llava") / ConfigFile, "llama");
  TransformerInput input;
  input.tokens = { { 1, 2 } };
  CheckInput(config, input);
  input.tiles.resize(1);
  EXPECT_THAT(MessageOf<OptionError>([&] { CheckInput(config, input); }),
    HasSubstr("expected no pictures among words, since a model of architecture llama"));
}

/// What needs runs of other inputs, or knows texts alone, says so.
TEST(VisionLanguage, WhatIsOfTextsAloneIsRefused)
{
  const Transformer model = Transformer::Read(VisionOracle::Folder("llava"));
  const VisionOracle oracle("llava");
  RecordOptions options;
  options.interventions.list = { { { ActivationKind::Residual, 0 }, Replacement::Source } };
  options.interventions.source = oracle.Input;
  EXPECT_THAT(MessageOf<ModelError>([&] { RecordTransformer(model, oracle.Input, options); }),
    HasSubstr("a model without an encoder beside its decoder, found llava"));
  // Heads of the text can be switched off.
  options.interventions = {};
  options.interventions.list = { { { ActivationKind::HeadOutput, 0, 1 }, Replacement::Zero } };
  options.headOutputs = true;
  const Recording found = RecordTransformer(model, oracle.Input, options);
  const SharedMatrix& output = found.layers[0].heads[1].output;
  EXPECT_TRUE(
    std::all_of(output.Row(0), output.Row(output.rows), [](float value) { return value == 0; }));
}

}
