// Models of pictures among words, compared with the original code.

#include "Error.h"
#include "ErrorMessage.h"
#include "GenerateTokens.h"
#include "MappedFile.h"
#include "PictureTokens.h"
#include "RecordTransformer.h"
#include "RecordedAttention.h"
#include "Safetensors.h"
#include "SameRecording.h"
#include "TemporaryDirectory.h"
#include "TestName.h"
#include "VisionOracle.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <numeric>
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

constexpr double VisionTolerance = 2e-5;       ///< of scores, attention and head outputs
constexpr double VisionStreamTolerance = 2e-4; ///< of hidden states and logits

RecordOptions AllOfPictures()
{
  RecordOptions options;
  options.headOutputs = true;
  options.residual = true;
  options.logits = true;
  return options;
}

/// Not with std::max, which would lose NaN.
void RaiseTo(double& largest, double difference)
{
  largest = std::abs(difference) <= largest ? largest : std::abs(difference);
}

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

/// The row of a model in the table of deviations, if Plugin/scripts/parity.py asks for it.
void WriteVision(const std::string& model, const std::string& part,
  const std::map<std::string, double>& deviations)
{
  const char* folder = std::getenv("ATLAS_PARITY_DIR");
  if (folder == nullptr)
  {
    return;
  }
  std::ofstream file(std::filesystem::path(folder) / (model + "_" + part + ".json"));
  file << R"({"model": ")" << model << R"(", "architecture": ")" << part
       << R"(", "file": "safetensors", "dtype": "F32")";
  for (const auto& [quantity, deviation] : deviations)
  {
    file << ", \"" << quantity << "\": " << deviation;
  }
  file << "}\n";
}

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
    WriteVision(this->GetParam(), isText ? "decoder" : "encoder", deviations);
  }
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

/// LLaVA and Qwen2.5-VL written anew in double precision, from their formulas: weights by their
/// names in the file, settings from config.json, patches one by one.
class PlainVision
{
public:
  using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  explicit PlainVision(const std::string& name)
    : Oracle(name)
    , Config(nlohmann::json::parse(ReadFile(VisionOracle::Folder(name) / ConfigFile)))
    , Vision(this->Config["vision_config"])
    , Words(this->Config["text_config"])
    , File(VisionOracle::Folder(name) / "model.safetensors")
    , IsQwen(name == "qwen2_5_vl")
  {
  }

  /// The vectors of all image tokens, in the order of pictures.
  Rows Features() const
  {
    std::vector<Rows> all;
    Eigen::Index count = 0;
    const std::size_t pictures =
      this->IsQwen ? this->Oracle.Input.extents.size() : this->Oracle.Input.tiles.size();
    std::size_t pixel = 0;
    for (std::size_t i = 0; i < pictures; ++i)
    {
      all.push_back(this->IsQwen ? this->QwenPicture(i, pixel) : this->LlavaPicture(i));
      count += all.back().rows();
    }
    Rows features(count, all.front().cols());
    count = 0;
    for (const Rows& rows : all)
    {
      features.middleRows(count, rows.rows()) = rows;
      count += rows.rows();
    }
    return features;
  }

  /// The logits of a text, given the vectors of all image tokens.
  Rows Text(std::size_t s, const Rows& features) const
  {
    const std::string base = this->IsQwen ? "model." : "language_model.model.";
    const std::vector<std::int64_t>& ids = this->Oracle.Input.tokens[s];
    const std::int64_t imageToken =
      this->Config[this->IsQwen ? "image_token_id" : "image_token_index"];
    Eigen::Index next = 0; // of the features
    for (std::size_t before = 0; before < s; ++before)
    {
      const auto& earlier = this->Oracle.Input.tokens[before];
      next += std::count(earlier.begin(), earlier.end(), imageToken);
    }
    const Rows table = this->Get(base + "embed_tokens.weight");
    Rows x(static_cast<Eigen::Index>(ids.size()), table.cols());
    for (Eigen::Index t = 0; t < x.rows(); ++t)
    {
      x.row(t) = ids[t] == imageToken ? features.row(next++) : table.row(ids[t]);
    }
    std::vector<std::array<double, 3>> places;
    if (this->IsQwen)
    {
      places = this->Places(s, imageToken);
    }
    const double epsilon = this->Words["rms_norm_eps"];
    const int heads = this->Words["num_attention_heads"];
    const int keyHeads = this->Words["num_key_value_heads"];
    const Eigen::Index dimension =
      this->IsQwen ? x.cols() / heads : this->Words["head_dim"].get<Eigen::Index>();
    for (int l = 0; l < this->Words["num_hidden_layers"]; ++l)
    {
      const std::string layer = base + "layers." + std::to_string(l) + ".";
      const Rows y = this->RmsNorm(x, layer + "input_layernorm", epsilon);
      Rows query = this->Linear(y, layer + "self_attn.q_proj");
      Rows key = this->Linear(y, layer + "self_attn.k_proj");
      const Rows value = this->Linear(y, layer + "self_attn.v_proj");
      const auto angle = [&](Eigen::Index t, Eigen::Index pair)
      {
        const Eigen::Index axis = pair < 2 ? 0 : pair - 1; // Qwen: mrope_section 2, 1, 1
        const double position = this->IsQwen ? places[t][axis] : static_cast<double>(t);
        return position *
               std::pow(10000.0, -2 * static_cast<double>(pair) / static_cast<double>(dimension));
      };
      this->Rotate(query, dimension, angle);
      this->Rotate(key, dimension, angle);
      Rows mixed(x.rows(), heads * dimension);
      for (Eigen::Index h = 0; h < heads; ++h)
      {
        const Eigen::Index g = h / (heads / keyHeads);
        mixed.middleCols(h * dimension, dimension) =
          this->Attend(query.middleCols(h * dimension, dimension),
            key.middleCols(g * dimension, dimension), value.middleCols(g * dimension, dimension),
            [](Eigen::Index q, Eigen::Index k) { return k <= q; });
      }
      x += this->Linear(mixed, layer + "self_attn.o_proj");
      x += this->GatedMlp(
        this->RmsNorm(x, layer + "post_attention_layernorm", epsilon), layer + "mlp.");
    }
    x = this->RmsNorm(x, base + "norm", epsilon);
    return this->Linear(x, this->IsQwen ? "lm_head" : "language_model.lm_head");
  }

private:
  VisionOracle Oracle;
  nlohmann::json Config;
  nlohmann::json Vision;
  nlohmann::json Words;
  SafetensorsFile File;
  bool IsQwen;

  bool Has(const std::string& name) const { return this->File.GetTensors().count(name) != 0; }

  /// A matrix [first axis, all others]; a vector as one row.
  Rows Get(const std::string& name) const
  {
    const TensorView& view = this->File.GetTensors().at(name);
    const std::vector<double> values = view.ToDouble();
    const Eigen::Index rows = view.shape.size() == 1 ? 1 : view.shape[0];
    return Eigen::Map<const Rows>(
      values.data(), rows, static_cast<Eigen::Index>(values.size()) / rows);
  }

  Rows Linear(const Rows& x, const std::string& name) const
  {
    Rows y = x * this->Get(name + ".weight").transpose();
    if (this->Has(name + ".bias"))
    {
      y.rowwise() += this->Get(name + ".bias").row(0);
    }
    return y;
  }

  Rows RmsNorm(Rows x, const std::string& name, double epsilon) const
  {
    for (Eigen::Index i = 0; i < x.rows(); ++i)
    {
      x.row(i) /= std::sqrt(x.row(i).squaredNorm() / static_cast<double>(x.cols()) + epsilon);
      x.row(i).array() *= this->Get(name + ".weight").row(0).array();
    }
    return x;
  }

  Rows LayerNorm(Rows x, const std::string& name) const
  {
    for (Eigen::Index i = 0; i < x.rows(); ++i)
    {
      x.row(i).array() -= x.row(i).mean();
      x.row(i) /= std::sqrt(x.row(i).squaredNorm() / static_cast<double>(x.cols()) + 1e-5);
      x.row(i).array() *= this->Get(name + ".weight").row(0).array();
      x.row(i) += this->Get(name + ".bias").row(0);
    }
    return x;
  }

  Rows GatedMlp(const Rows& x, const std::string& prefix) const
  {
    Rows gate = this->Linear(x, prefix + "gate_proj");
    gate = gate.unaryExpr([](double v) { return v / (1 + std::exp(-v)); });
    return this->Linear(
      Rows(gate.array() * this->Linear(x, prefix + "up_proj").array()), prefix + "down_proj");
  }

  template<class Angle>
  static void Rotate(Rows& x, Eigen::Index dimension, const Angle& angle)
  {
    for (Eigen::Index t = 0; t < x.rows(); ++t)
    {
      for (Eigen::Index first = 0; first < x.cols(); first += dimension)
      {
        for (Eigen::Index i = 0; i < dimension / 2; ++i)
        {
          const double a = x(t, first + i);
          const double b = x(t, first + i + dimension / 2);
          x(t, first + i) = a * std::cos(angle(t, i)) - b * std::sin(angle(t, i));
          x(t, first + i + dimension / 2) = b * std::cos(angle(t, i)) + a * std::sin(angle(t, i));
        }
      }
    }
  }

  template<class Sees>
  static Rows Attend(const Rows& query, const Rows& key, const Rows& value, const Sees& sees)
  {
    Rows mixed = Rows::Zero(query.rows(), value.cols());
    for (Eigen::Index q = 0; q < query.rows(); ++q)
    {
      double sum = 0;
      for (Eigen::Index k = 0; k < key.rows(); ++k)
      {
        const double score =
          query.row(q).dot(key.row(k)) / std::sqrt(static_cast<double>(query.cols()));
        const double weight = sees(q, k) ? std::exp(score) : 0;
        mixed.row(q) += weight * value.row(k);
        sum += weight;
      }
      mixed.row(q) /= sum;
    }
    return mixed;
  }

  static Rows Gelu(const Rows& x)
  {
    return x.unaryExpr([](double v) { return v / 2 * (1 + std::erf(v / std::sqrt(2.0))); });
  }

  Rows LlavaPicture(std::size_t image) const
  {
    const std::string base = "vision_tower.vision_model.";
    const int side = this->Vision["image_size"];
    const int patch = this->Vision["patch_size"];
    const int across = side / patch;
    const Rows kernel = this->Get(base + "embeddings.patch_embedding.weight");
    Rows x(1 + across * across, kernel.rows());
    x.row(0) = this->Get(base + "embeddings.class_embedding");
    for (int i = 0; i < across * across; ++i)
    {
      Eigen::RowVectorXd pixels(kernel.cols());
      Eigen::Index next = 0;
      for (int channel = 0; channel < 3; ++channel)
      {
        for (int row = 0; row < patch; ++row)
        {
          for (int column = 0; column < patch; ++column)
          {
            const int y = i / across * patch + row;
            const int z = i % across * patch + column;
            const std::size_t at = ((image * 3 + channel) * side + y) * side + z;
            pixels[next++] = static_cast<double>(this->Oracle.Input.pixels[at]);
          }
        }
      }
      x.row(1 + i) = pixels * kernel.transpose();
    }
    x += this->Get(base + "embeddings.position_embedding.weight");
    x = this->LayerNorm(x, base + "pre_layrnorm");
    const int heads = this->Vision["num_attention_heads"];
    const Eigen::Index dimension = x.cols() / heads;
    const int layers = this->Vision["num_hidden_layers"];
    for (int l = 0; l < layers - 1; ++l) // the last one is not read
    {
      const std::string layer = base + "encoder.layers." + std::to_string(l) + ".";
      const Rows y = this->LayerNorm(x, layer + "layer_norm1");
      const Rows query = this->Linear(y, layer + "self_attn.q_proj");
      const Rows key = this->Linear(y, layer + "self_attn.k_proj");
      const Rows value = this->Linear(y, layer + "self_attn.v_proj");
      Rows mixed(x.rows(), x.cols());
      for (Eigen::Index h = 0; h < heads; ++h)
      {
        mixed.middleCols(h * dimension, dimension) =
          this->Attend(query.middleCols(h * dimension, dimension),
            key.middleCols(h * dimension, dimension), value.middleCols(h * dimension, dimension),
            [](Eigen::Index, Eigen::Index) { return true; });
      }
      x += this->Linear(mixed, layer + "self_attn.out_proj");
      Rows hidden = this->Linear(this->LayerNorm(x, layer + "layer_norm2"), layer + "mlp.fc1");
      hidden = hidden.unaryExpr([](double v) { return v / (1 + std::exp(-1.702 * v)); });
      x += this->Linear(hidden, layer + "mlp.fc2");
    }
    const Rows patches = x.bottomRows(across * across);
    return this->Linear(Gelu(this->Linear(patches, "multi_modal_projector.linear_1")),
      "multi_modal_projector.linear_2");
  }

  /// One picture, whose patches begin at a pixel; moves behind them.
  Rows QwenPicture(std::size_t image, std::size_t& pixel) const
  {
    const PatchExtent& extent = this->Oracle.Input.extents[image];
    const Rows kernel = this->Get("visual.patch_embed.proj.weight");
    Rows x(extent.Count(), kernel.rows());
    std::vector<std::pair<int, int>> places; // row and column
    for (Eigen::Index i = 0; i < x.rows(); ++i)
    {
      Eigen::RowVectorXd pixels(kernel.cols());
      for (Eigen::Index p = 0; p < kernel.cols(); ++p)
      {
        pixels[p] = static_cast<double>(this->Oracle.Input.pixels[pixel++]);
      }
      x.row(i) = pixels * kernel.transpose();
    }
    for (int top = 0; top < extent.rows; top += 2)
    {
      for (int left = 0; left < extent.columns; left += 2)
      {
        for (int i = 0; i < 4; ++i)
        {
          places.emplace_back(top + i / 2, left + i % 2);
        }
      }
    }
    const int heads = this->Vision["num_heads"];
    const Eigen::Index dimension = x.cols() / heads;
    const std::vector<int> whole = this->Vision["fullatt_block_indexes"];
    const int window =
      this->Vision["window_size"].get<int>() / this->Vision["patch_size"].get<int>();
    for (int l = 0; l < this->Vision["depth"]; ++l)
    {
      const std::string layer = "visual.blocks." + std::to_string(l) + ".";
      const Rows all = this->Linear(this->RmsNorm(x, layer + "norm1", 1e-6), layer + "attn.qkv");
      Rows query = all.leftCols(x.cols());
      Rows key = all.middleCols(x.cols(), x.cols());
      const Rows value = all.rightCols(x.cols());
      const auto angle = [&](Eigen::Index t, Eigen::Index pair)
      {
        const Eigen::Index quarter = dimension / 4;
        const int place = pair < quarter ? places[t].first : places[t].second;
        return place * std::pow(10000.0,
                         -static_cast<double>(pair % quarter) / static_cast<double>(quarter));
      };
      this->Rotate(query, dimension, angle);
      this->Rotate(key, dimension, angle);
      const bool isWhole = std::count(whole.begin(), whole.end(), l) != 0;
      const auto sees = [&](Eigen::Index q, Eigen::Index k)
      {
        return isWhole || (places[q].first / window == places[k].first / window &&
                            places[q].second / window == places[k].second / window);
      };
      Rows mixed(x.rows(), x.cols());
      for (Eigen::Index h = 0; h < heads; ++h)
      {
        mixed.middleCols(h * dimension, dimension) = this->Attend(
          query.middleCols(h * dimension, dimension), key.middleCols(h * dimension, dimension),
          value.middleCols(h * dimension, dimension), sees);
      }
      x += this->Linear(mixed, layer + "attn.proj");
      x += this->GatedMlp(this->RmsNorm(x, layer + "norm2", 1e-6), layer + "mlp.");
    }
    const Rows normed = this->RmsNorm(x, "visual.merger.ln_q", 1e-6);
    const Rows joined = Eigen::Map<const Rows>(normed.data(), x.rows() / 4, x.cols() * 4);
    return this->Linear(Gelu(this->Linear(joined, "visual.merger.mlp.0")), "visual.merger.mlp.2");
  }

  /// Qwen: frame, row and column of each token of a text, which has one picture.
  std::vector<std::array<double, 3>> Places(std::size_t s, std::int64_t imageToken) const
  {
    std::vector<std::array<double, 3>> places;
    double next = 0;
    double start = 0;
    std::int64_t inside = 0;
    for (const std::int64_t id : this->Oracle.Input.tokens[s])
    {
      if (id != imageToken)
      {
        places.push_back({ next, next, next });
        ++next;
        continue;
      }
      const PatchExtent& extent = this->Oracle.Input.extents[s];
      start = inside == 0 ? next : start;
      places.push_back({ start, start + static_cast<double>(inside / (extent.columns / 2)),
        start + static_cast<double>(inside % (extent.columns / 2)) });
      next = start + static_cast<double>(std::max(extent.rows, extent.columns) / 2);
      ++inside;
    }
    return places;
  }
};

TEST(VisionLanguage, IsThatOfPlainLoops)
{
  for (const char* name : { "llava", "qwen2_5_vl" })
  {
    const Transformer model = Transformer::Read(VisionOracle::Folder(name));
    const VisionOracle oracle(name);
    const Recording found = RecordTransformer(model, oracle.Input, AllOfPictures());
    const PlainVision plain(name);
    const PlainVision::Rows features = plain.Features();
    const std::vector<ImageToken> tokens = ImageTokens(model.GetConfig(), oracle.Input);
    ASSERT_EQ(features.rows(), static_cast<Eigen::Index>(tokens.size()));
    double largest = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i)
    {
      const float* row =
        found.residual[0].Row(found.sequenceOffsets[tokens[i].sequence] + tokens[i].position);
      for (Eigen::Index c = 0; c < features.cols(); ++c)
      {
        RaiseTo(largest, static_cast<double>(row[c]) - features(static_cast<Eigen::Index>(i), c));
      }
    }
    EXPECT_LE(largest, VisionStreamTolerance) << name;
    for (std::size_t s = 0; s < oracle.Input.tokens.size(); ++s)
    {
      const PlainVision::Rows logits = plain.Text(s, features);
      for (Eigen::Index t = 0; t < logits.rows(); ++t)
      {
        for (Eigen::Index c = 0; c < logits.cols(); ++c)
        {
          RaiseTo(largest,
            static_cast<double>(found.logits.Row(found.sequenceOffsets[s] + t)[c]) - logits(t, c));
        }
      }
    }
    EXPECT_LE(largest, VisionStreamTolerance) << name;
    std::cout << name << ": " << largest << "\n";
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
