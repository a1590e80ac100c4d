// Models of pictures among words, compared with the original code.

#include "Error.h"
#include "ErrorMessage.h"
#include "GenerateTokens.h"
#include "ParityRow.h"
#include "PictureTokens.h"
#include "RecordTransformer.h"
#include "RecordedAttention.h"
#include "Safetensors.h"
#include "SameRecording.h"
#include "TemporaryDirectory.h"
#include "TestName.h"
#include "VisionOracle.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace
{

class VisionLanguageParity : public testing::TestWithParam<std::string>
{
protected:
  void SetUp() override
  {
    this->Expected.emplace(this->GetParam());
    this->Model.emplace(Transformer::Read(VisionOracle::Folder(this->GetParam())));
    this->Found = RecordTransformer(*this->Model, this->Expected->Input, AllOfPictures());
  }

  const TransformerConfig& Config() const { return this->Model->GetConfig(); }
  const VisionConfig& Vision() const { return *this->Config().vision; }
  const TransformerInput& Input() const { return this->Expected->Input; }

  /// A row of a part as expected tensors have it: [B, ..., T, columns], padded, or [N, ..., P,
  /// columns] with all patches of an encoder of any size in one. First the index of the first
  /// axis, then that of the last but one.
  std::pair<std::int64_t, std::int64_t> PlaceOf(
    const Recording& part, std::int64_t row, const Shape& shape) const
  {
    if (&part == &this->Found)
    {
      return { part.tokens.sequence[row], part.tokens.position[row] };
    }
    const std::int64_t length = shape[shape.size() - 2];
    return { row / length, row % length };
  }

  /// The largest deviation of a matrix [tokens, columns] at head `head`.
  double Deviation(const Recording& part, const std::string& quantity, const SharedMatrix& found,
    std::int64_t head) const
  {
    const TensorView& view = this->Expected->Get(quantity);
    const Shape& shape = view.shape;
    EXPECT_EQ(shape.back(), found.columns) << quantity;
    EXPECT_EQ(part.tokens.Count(), found.rows) << quantity;
    const std::int64_t heads = shape.size() == 4 ? shape[1] : 1;
    double largest = 0;
    for (std::int64_t row = 0; row < found.rows; ++row)
    {
      const auto [first, place] = this->PlaceOf(part, row, shape);
      const std::int64_t begin =
        ((first * heads + head) * shape[shape.size() - 2] + place) * found.columns;
      for (std::int64_t c = 0; c < found.columns; ++c)
      {
        RaiseTo(largest,
          static_cast<double>(found.Row(row)[c]) - view.At(static_cast<std::uint64_t>(begin + c)));
      }
    }
    return largest;
  }

  /// Likewise of scores or weights, as views show them.
  double AttentionDeviation(
    const Recording& part, std::size_t l, std::int64_t h, AttentionQuantity quantity) const
  {
    const bool isText = &part == &this->Found;
    const bool isScores = quantity == AttentionQuantity::Scores;
    const TensorView& view =
      this->Expected->Get(std::string(isText ? "" : "vision.") + "layer." + std::to_string(l) +
                          (isScores ? ".scores" : ".attention"));
    const Shape& shape = view.shape;
    double largest = 0;
    for (std::int64_t s = 0; s < part.SequenceCount(); ++s)
    {
      const std::int64_t count = part.SequenceLength(s);
      std::vector<float> found(count * count);
      EvaluateAttention(part, s, static_cast<std::int64_t>(l), h, quantity, 0, count, found.data());
      for (std::int64_t q = 0; q < count; ++q)
      {
        double sum = 0; // over all keys of the expected
        const auto [first, query] = this->PlaceOf(part, part.sequenceOffsets[s] + q, shape);
        const std::int64_t begin = ((first * shape[1] + h) * shape[2] + query) * shape[3];
        for (std::int64_t k = 0; k < count; ++k)
        {
          const std::int64_t key = this->PlaceOf(part, part.sequenceOffsets[s] + k, shape).second;
          const double expected = view.At(static_cast<std::uint64_t>(begin + key));
          sum += expected;
          if (!isScores || !isText || k <= q)
          {
            RaiseTo(largest, static_cast<double>(found[q * count + k]) - expected);
          }
        }
        if (!isScores)
        {
          EXPECT_NEAR(sum, 1, 1e-5); // nothing is expected elsewhere
        }
      }
    }
    return largest;
  }

  std::optional<VisionOracle> Expected;
  std::optional<Transformer> Model;
  Recording Found;
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
    const std::string prefix = isText ? "" : "vision.";
    std::map<std::string, double> deviations;
    const auto compare = [&](const char* name, double deviation)
    { RaiseTo(deviations[name], deviation); };
    ASSERT_EQ(part->layers.size(), static_cast<std::size_t>(config.layers));
    for (std::size_t l = 0; l < part->layers.size(); ++l)
    {
      const std::string layer = prefix + "layer." + std::to_string(l) + ".";
      for (std::int64_t h = 0; h < config.heads; ++h)
      {
        const RecordedHead& head = part->layers[l].heads[h];
        compare("query", this->Deviation(*part, layer + "query", head.query, h));
        compare("key", this->Deviation(*part, layer + "key", head.key, h));
        compare("value", this->Deviation(*part, layer + "value", head.value, h));
        compare("outputs", this->Deviation(*part, layer + "head_output", head.output, h));
        compare("scores", this->AttentionDeviation(*part, l, h, AttentionQuantity::Scores));
        compare("attention", this->AttentionDeviation(*part, l, h, AttentionQuantity::Weights));
      }
    }
    for (std::size_t l = 0; l < part->residual.size(); ++l)
    {
      compare("hidden",
        this->Deviation(*part, prefix + "hidden." + std::to_string(l), part->residual[l], 0));
    }
    if (isText)
    {
      compare("logits", this->Deviation(*part, "logits", part->logits, 0));
    }
    std::ostringstream text;
    for (const auto& [name, deviation] : deviations)
    {
      const bool isStream = name == "hidden" || name == "logits";
      EXPECT_LE(deviation, isStream ? VisionStreamTolerance : VisionTolerance) << prefix << name;
      text << " " << name << " " << deviation;
    }
    std::cout << this->GetParam() << ", " << (isText ? "text" : "encoder") << ":" << text.str()
              << "\n";
    const std::string kind = isText ? "decoder" : "encoder";
    Write(
      this->GetParam() + "_" + kind, { this->GetParam(), kind, "safetensors", "F32", deviations });
  }
}

TEST_P(VisionLanguageParity, ProductsOfBfloat16AreNear)
{
  CompareBfloat16(this->GetParam(), *this->Model, this->Input(), AllOfPictures(), this->Found);
}

/// What the projector gives is at the image tokens before the first layer.
TEST_P(VisionLanguageParity, FeaturesAreAtTheirTokens)
{
  const TensorView& features = this->Expected->Get("image_features");
  const std::vector<ImageToken> tokens = ImageTokens(this->Config(), this->Input());
  ASSERT_EQ(static_cast<std::int64_t>(tokens.size()), features.shape[0]);
  double largest = 0;
  for (std::int64_t i = 0; i < features.shape[0]; ++i)
  {
    const ImageToken& token = tokens[i];
    EXPECT_THAT(
      this->Expected->Row("image_tokens", i), ElementsAre(token.sequence, token.position));
    EXPECT_THAT(this->Expected->Row("image_token_grid", i),
      ElementsAre(token.image, token.frame, token.row, token.column));
    const float* row =
      this->Found.residual[0].Row(this->Found.sequenceOffsets[token.sequence] + token.position);
    for (std::int64_t c = 0; c < features.shape[1]; ++c)
    {
      RaiseTo(largest, static_cast<double>(row[c]) -
                         features.At(static_cast<std::uint64_t>(i * features.shape[1] + c)));
    }
  }
  EXPECT_LE(largest, VisionStreamTolerance);
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
      this->Expected->Row("image_token_patches", static_cast<std::int64_t>(i)))
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
  if (!this->Expected->Has("position_ids"))
  {
    EXPECT_TRUE(this->Vision().rotarySections.empty());
    return;
  }
  const std::vector<RotaryPlace> places = TextPlaces(this->Config(), this->Input());
  const std::vector<std::int64_t> expected = this->Expected->Get("position_ids").ToInteger();
  const Shape& shape = this->Expected->Get("position_ids").shape;
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
    EXPECT_THAT(this->Expected->Row("rope_deltas", static_cast<std::int64_t>(s)),
      ElementsAre(last + 1 - shape[2]));
  }
  const std::vector<RotaryPlace> patches = PatchPlaces(this->Vision(), this->Input());
  ASSERT_EQ(
    static_cast<std::int64_t>(patches.size()), this->Expected->Get("vision.positions").shape[0]);
  for (std::size_t i = 0; i < patches.size(); ++i)
  {
    EXPECT_THAT(this->Expected->Row("vision.positions", static_cast<std::int64_t>(i)),
      ElementsAre(patches[i][0], patches[i][1], patches[i][2]));
  }
}

/// Qwen2.5-VL: pairs of frames that are seconds apart.
TEST(VisionLanguage, FramesOfFilmsHavePositionsByTime)
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
  const auto map = [&](const std::string& name, const std::vector<double>& x)
  {
    const TensorViews& tensors = weights.GetTensors();
    const std::vector<double> matrix =
      tensors.at("multi_modal_projector." + name + ".weight").ToDouble();
    std::vector<double> y = tensors.at("multi_modal_projector." + name + ".bias").ToDouble();
    for (std::size_t i = 0; i < y.size(); ++i)
    {
      for (std::size_t j = 0; j < x.size(); ++j)
      {
        y[i] += matrix[i * x.size() + j] * x[j];
      }
    }
    return y;
  };
  const std::vector<double> hidden = oracle.Get("vision.hidden.2").ToDouble();
  constexpr std::size_t columns = 12;
  const std::int64_t tokens = oracle.Get("image_tokens").shape[0];
  ASSERT_EQ(hidden.size(), static_cast<std::size_t>(tokens) * columns);
  double largest = 0;
  for (std::int64_t i = 0; i < tokens; ++i)
  {
    const auto first = hidden.begin() + i * static_cast<std::int64_t>(columns);
    std::vector<double> inner = map("linear_1", { first, first + columns });
    for (double& x : inner)
    {
      x *= 0.5 * (1 + std::erf(x / std::sqrt(2.)));
    }
    const std::vector<double> expected = map("linear_2", inner);
    const std::vector<std::int64_t> place = oracle.Row("image_tokens", i);
    const float* row = found.residual[0].Row(found.sequenceOffsets[place[0]] + place[1]);
    for (std::size_t c = 0; c < expected.size(); ++c)
    {
      RaiseTo(largest, static_cast<double>(row[c]) - expected[c]);
    }
  }
  EXPECT_LE(largest, VisionStreamTolerance);
}

/// Tokens, one after another, against runs of the whole text as it grows.
TEST_P(VisionLanguageParity, GreedyTokensAreThoseOfWholeRuns)
{
  constexpr std::int64_t count = 6;
  TransformerInput input = this->Input();
  std::vector<std::vector<std::int64_t>> expected(input.tokens.size());
  RecordOptions options;
  options.queriesAndKeys = false;
  options.values = false;
  options.logits = true;
  for (std::int64_t i = 0; i < count; ++i)
  {
    const Recording run = RecordTransformer(*this->Model, input, options);
    for (std::size_t s = 0; s < input.tokens.size(); ++s)
    {
      const float* logits = run.logits.Row(run.sequenceOffsets[s + 1] - 1);
      std::int64_t best = -1;
      for (std::int64_t token = 0; token < run.logits.columns; ++token)
      {
        const bool isOfPicture =
          token == this->Vision().imageToken || token == this->Vision().filmToken;
        best = !isOfPicture && (best < 0 || logits[token] > logits[best]) ? token : best;
      }
      expected[s].push_back(best);
      input.tokens[s].push_back(best);
    }
  }
  GenerationOptions generation;
  generation.count = count;
  EXPECT_EQ(GenerateTokens(*this->Model, this->Input(), generation), expected);
  generation.threads = 3;
  EXPECT_EQ(GenerateTokens(*this->Model, this->Input(), generation), expected);
}

TEST_P(VisionLanguageParity, ResultsDoNotDependOnThreads)
{
  RecordOptions options = AllOfPictures();
  options.threads = 1;
  const Recording one = RecordTransformer(*this->Model, this->Input(), options);
  options.threads = 3;
  ExpectEqual(RecordTransformer(*this->Model, this->Input(), options), one);
  ExpectEqual(this->Found, one);
}

/// A text and its pictures alone give the same as among others, to the byte.
TEST_P(VisionLanguageParity, ATextAloneGivesTheSame)
{
  const TransformerInput& all = this->Input();
  const std::vector<ImageToken> tokens = ImageTokens(this->Config(), all);
  for (std::size_t s = 0; s < all.tokens.size(); ++s)
  {
    TransformerInput input;
    input.tokens = { all.tokens[s] };
    const auto text = static_cast<std::int64_t>(s);
    const SequenceRange range = EncoderRange(this->Config(), all, tokens, { text, text + 1 });
    const TransformerConfig& encoder = *this->Vision().encoder;
    std::vector<std::int64_t> lengths = SequenceLengths(encoder, all);
    const std::int64_t firstPatch =
      std::accumulate(lengths.begin(), lengths.begin() + range.first, std::int64_t{ 0 });
    const std::int64_t endPatch =
      std::accumulate(lengths.begin(), lengths.begin() + range.end, std::int64_t{ 0 });
    const bool isAnySize = encoder.ReadsAnySize();
    const std::int64_t unit =
      static_cast<std::int64_t>(all.pixels.size()) /
      (isAnySize ? std::accumulate(lengths.begin(), lengths.end(), std::int64_t{ 0 }) : all.images);
    const std::int64_t first = isAnySize ? firstPatch : range.first;
    const std::int64_t end = isAnySize ? endPatch : range.end;
    input.pixels.assign(all.pixels.begin() + first * unit, all.pixels.begin() + end * unit);
    for (const ImageToken& token : tokens)
    {
      const bool isNew = token.frame == 0 && token.row == 0 && token.column == 0;
      if (token.sequence == text && isNew && isAnySize)
      {
        input.extents.push_back(all.extents[token.image]);
      }
      else if (token.sequence == text && isNew)
      {
        input.tiles.push_back(all.tiles[token.image]);
        input.tiles.back().picture -= s == 0 ? 0 : all.tiles[range.first].picture;
        ++input.images;
      }
    }
    const Recording alone = RecordTransformer(*this->Model, input, AllOfPictures());
    const auto compare = [](const Recording& part, const Recording& whole, std::int64_t firstRow)
    {
      const std::vector<SharedMatrix> a = TokenMatrices(part);
      const std::vector<SharedMatrix> b = TokenMatrices(whole);
      ASSERT_EQ(a.size(), b.size());
      for (std::size_t i = 0; i < a.size(); ++i)
      {
        ASSERT_EQ(a[i].columns, b[i].columns);
        EXPECT_TRUE(std::equal(a[i].Row(0), a[i].Row(0) + a[i].Count(), b[i].Row(firstRow)));
      }
    };
    compare(alone, this->Found, this->Found.sequenceOffsets[s]);
    EXPECT_EQ(alone.encoder != nullptr, range.first < range.end);
    if (alone.encoder != nullptr)
    {
      compare(
        *alone.encoder, *this->Found.encoder, this->Found.encoder->sequenceOffsets[range.first]);
    }
    else
    {
      EXPECT_TRUE(alone.tokens.picture.empty());
      EXPECT_TRUE(alone.pictures.IsEmpty());
    }
  }
}

/// The rows of a range of sequences are those of a run of all; other rows are 0, so that the parts
/// of several processes add up.
TEST_P(VisionLanguageParity, RangesAddUp)
{
  RecordOptions options = AllOfPictures();
  std::vector<Recording> parts;
  const std::vector<SequenceRange> ranges = SplitSequences(*this->Model, this->Input(), 3);
  EXPECT_EQ(ranges.back().end, 2);
  for (const SequenceRange& range : ranges)
  {
    options.sequences = range;
    parts.push_back(RecordTransformer(*this->Model, this->Input(), options));
  }
  for (const AttentionKind kind : { AttentionKind::Decoder, AttentionKind::Encoder })
  {
    const Recording& found = PartOf(this->Found, kind);
    const std::vector<SharedMatrix> expected = TokenMatrices(found);
    for (std::size_t i = 0; i < expected.size(); ++i)
    {
      SharedMatrix sum = SharedMatrix::Zero(expected[i].rows, expected[i].columns);
      for (const Recording& one : parts)
      {
        const SharedMatrix matrix = TokenMatrices(PartOf(one, kind))[i];
        std::transform(
          matrix.Row(0), matrix.Row(matrix.rows), sum.Row(0), sum.Row(0), std::plus<>());
      }
      ExpectEqual(sum, expected[i]);
    }
    for (const Recording& one : parts)
    {
      EXPECT_EQ(PartOf(one, kind).tokens.row, found.tokens.row);
      EXPECT_EQ(PartOf(one, kind).tokens.picture, found.tokens.picture);
      ExpectEqual(PartOf(one, kind).pictures, found.pictures);
    }
  }
}

TEST_P(VisionLanguageParity, MemoryIsThatOfAllParts)
{
  const auto bytesOf = [](const Recording& recording)
  {
    std::uint64_t bytes = 0;
    for (const Recording* part : WithParts(recording))
    {
      for (const SharedMatrix& matrix : TokenMatrices(*part))
      {
        bytes += matrix.Count() * sizeof(float);
      }
    }
    return bytes;
  };
  RecordOptions options = AllOfPictures();
  EXPECT_EQ(EstimateMemory(*this->Model, this->Input(), options).recording, bytesOf(this->Found));
  options = {};
  options.layers = { 0 };
  options.values = false;
  const Recording one = RecordTransformer(*this->Model, this->Input(), options);
  EXPECT_EQ(EstimateMemory(*this->Model, this->Input(), options).recording, bytesOf(one));
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
      tokens.id[t] == this->Vision().imageToken || tokens.id[t] == this->Vision().filmToken;
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
  const Recording whole = RecordTransformer(*this->Model, words, AllOfPictures());
  EXPECT_EQ(whole.encoder, nullptr);
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
  const auto refusal = [](const std::string& model, const NewNames& names)
  { return MessageOf<ModelError>([&] { RunRenamed(model, names); }); };
  EXPECT_THAT(refusal("llava", { { "multi_modal_projector.linear_2.weight", "other" } }),
    HasSubstr("tensor 'multi_modal_projector.linear_2.weight' is missing."));
  EXPECT_THAT(refusal("llava", { { "multi_modal_projector.linear_1.bias", "other" } }),
    HasSubstr("tensor 'multi_modal_projector.linear_1.bias' is missing."));
  EXPECT_THAT(refusal("qwen2_5_vl", { { "visual.merger.ln_q.weight", "other" } }),
    HasSubstr("tensor 'visual.merger.ln_q.weight' is missing."));
  EXPECT_THAT(refusal("internvl", { { "vision_tower.encoder.layer.1.lambda_2",
                                    "vision_tower.encoder.layer.2.lambda_2" } }),
    HasSubstr("tensor 'vision_tower.encoder.layer.1.lambda_2' is missing."));
  EXPECT_THAT(refusal("smolvlm", { { "lm_head.weight", "model.vision_model.extra_norm.weight" } }),
    HasSubstr("as configured, have no such tensor"));
}

std::string Refusal(const std::string& name, const std::function<void(TransformerInput&)>& change)
{
  const TransformerConfig config = ReadTransformerConfig(VisionOracle::Folder(name) / ConfigFile);
  TransformerInput input = VisionOracle(name).Input;
  CheckInput(config, input);
  change(input);
  return MessageOf<OptionError>([&] { CheckInput(config, input); });
}

TEST(VisionLanguage, TokensAndPicturesMustMatch)
{
  EXPECT_EQ(Refusal("llava", [](TransformerInput& input) { input.tokens[0][3] = 5; }),
    "expected 18 tokens with the id 60 for 2 images, found 17.");
  EXPECT_EQ(Refusal("qwen2_vl", [](TransformerInput& input) { input.tokens[0][0] = 59; }),
    "expected 4 tokens with the id 59 for 1 film, found 5.");
  EXPECT_EQ(Refusal("qwen2_vl",
              [](TransformerInput& input) { std::swap(input.tokens[0], input.tokens[1]); }),
    "sequence 0, position 2: expected the tokens of each picture or film together, in the order of "
    "pictures and films, found one of a film in place of token 0 of image 0.");
  EXPECT_THAT(Refusal("llava",
                [](TransformerInput& input)
                {
                  input.tokens[1].insert(input.tokens[1].begin(), 60);
                  input.tokens[0][11] = 5;
                }),
    HasSubstr("sequence 1, position 0: expected the tokens of each picture or film together"));
}

TEST(VisionLanguage, TilesMustBeThere)
{
  EXPECT_EQ(Refusal("internvl", [](TransformerInput& input) { input.tiles.pop_back(); }),
    "expected a tile for each of the 4 images, and no extents, found 3 tiles and 0 extents.");
  EXPECT_EQ(Refusal("internvl", [](TransformerInput& input) { input.tiles[1] = input.tiles[0]; }),
    "picture 0: expected each of its 1 x 2 tiles once, and the whole picture at most once, found 3 "
    "images of 1 tiles.");
  EXPECT_EQ(Refusal("internvl", [](TransformerInput& input) { input.tiles[1].column = 2; }),
    "image 1: expected a tile of its picture, or the whole picture, found row 0 and column 2 of 1 "
    "x 2 tiles.");
  EXPECT_EQ(Refusal("internvl", [](TransformerInput& input) { input.tiles[3].picture = 2; }),
    "image 3: expected it to be of picture 1, or of that of the image before, found 2.");
  EXPECT_EQ(Refusal("llava", [](TransformerInput& input) { input.pixels.pop_back(); }),
    "expected pixels of shape [2, 3, 12, 12], found 863 numbers.");
  EXPECT_THAT(Refusal("llava", [](TransformerInput& input) { input.extents.push_back({}); }),
    HasSubstr("no extents"));
}

TEST(VisionLanguage, ExtentsMustFit)
{
  EXPECT_EQ(Refusal("qwen2_vl", [](TransformerInput& input) { input.extents[0].rows = 3; }),
    "picture 0: expected rows and columns of patches to be multiples of 2 up to 65536, found 3 x "
    "6.");
  EXPECT_EQ(Refusal("qwen2_vl", [](TransformerInput& input) { input.extents[0].frames = 2; }),
    "picture 0: expected one group of frames, found 2.");
  EXPECT_EQ(Refusal("qwen2_vl", [](TransformerInput& input) { input.extents[1].seconds = -1; }),
    "film 1: expected its groups of frames to be a finite number of seconds apart, of at least 0, "
    "found -1.000000.");
  EXPECT_EQ(Refusal("qwen2_vl", [](TransformerInput& input) { input.extents[0].rows = 6; }),
    "expected pixels of shape [52, 3, 2, 4, 4], found 3840 numbers.");
  EXPECT_THAT(Refusal("qwen2_vl", [](TransformerInput& input) { input.images = 1; }),
    HasSubstr("expected extents of pictures, as they have any size, found 1 images and 0 tiles."));
  // Far apart in time, frames have positions beyond those of the model.
  EXPECT_THAT(Refusal("qwen2_5_vl",
                [](TransformerInput& input)
                {
                  input.tokens = { { 59, 59 } };
                  input.extents = { { 2, 2, 2, true, 40 } };
                  input.pixels.assign(2 * 4 * 96, 0.F);
                }),
    HasSubstr("by position 80, beyond the 64 of the model"));
}

TEST(VisionLanguage, OtherModelsReadNoPicturesAmongWords)
{
  TransformerConfig config =
    ReadTransformerConfig(VisionOracle::Folder("llava") / ConfigFile, "llama");
  TransformerInput input;
  input.tokens = { { 1, 2 } };
  CheckInput(config, input);
  input.tiles.resize(1);
  EXPECT_EQ(MessageOf<OptionError>([&] { CheckInput(config, input); }),
    "expected no pictures among words, since a model of architecture llama reads none, found 1.");
}

/// What needs runs of other inputs, or knows texts alone, says so.
TEST(VisionLanguage, WhatIsOfTextsAloneIsRefused)
{
  const Transformer model = Transformer::Read(VisionOracle::Folder("llava"));
  const VisionOracle oracle("llava");
  RecordOptions options;
  options.interventions.list = { { { ActivationKind::Residual, 0 }, Replacement::Source } };
  options.interventions.source = oracle.Input;
  EXPECT_EQ(MessageOf<ModelError>([&] { RecordTransformer(model, oracle.Input, options); }),
    "replacing activations by those of other inputs: expected a model without an encoder beside "
    "its decoder, found llava.");
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
