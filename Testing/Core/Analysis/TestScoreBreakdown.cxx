#include "Analysis/ScoreBreakdown.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "FocusOracle.h"
#include "ModelsOracle.h"
#include "OracleFile.h"
#include "PicturedRecording.h"
#include "Recording/RecordedAttention.h"
#include "Run/RecordTransformer.h"
#include "TestName.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

/// The parts of all scores of a head on a sequence.
std::vector<ScoreParts> PartsOf(const FocusOracle& oracle, std::int64_t layer,
  std::int64_t sequence, std::int64_t head, std::int64_t top)
{
  const Recording& recording = oracle.GetRecording();
  const std::vector<float> bias = QueryBias(oracle.GetModel(), layer, head);
  const KeyScores keys = EvaluateKeyScores(recording, sequence, layer, head, bias);
  std::vector<ScoreParts> parts;
  AppendScoreParts(recording, sequence, layer, head, bias, keys, 0,
    recording.SequenceLength(sequence), top, parts);
  return parts;
}

/// Models whose scores depend on the distance in products with vectors, or on rows and columns: the
/// parts of all scores give the attention that the original code computed.
class BreakdownOfSaved : public TestWithParam<std::string>
{
};

INSTANTIATE_TEST_SUITE_P(, BreakdownOfSaved,
  Values("encoder/deberta-a", "encoder/deberta-c2p", "encoder/deberta-v2-a",
    "encoder/deberta-v2-p2c", "encoder/mpnet-a", "vision/beit-a"),
  [](const auto& test) { return TestName(test.param); });

TEST_P(BreakdownOfSaved, AddsUpToTheOriginalAttention)
{
  const std::filesystem::path folder = AnyOracle("v5/" + this->GetParam());
  ASSERT_FALSE(folder.empty());
  const OracleFile expected(folder / "expected.safetensors");
  const Transformer model = Transformer::Read(folder);
  TransformerInput input;
  if (expected.Has("0.input_ids"))
  {
    input.tokens = { expected.Integers("0.input_ids") };
  }
  else
  {
    input.images = 1;
    input.pixels = expected.Floats("0.pixel_values");
  }
  const Recording recording = RecordTransformer(model, input, {});
  const std::int64_t length = recording.tokens.Count();
  for (std::int64_t layer = 0; layer < recording.layerCount; ++layer)
  {
    const std::vector<double> attention = expected.Values("0.attention." + std::to_string(layer));
    for (std::int64_t head = 0; head < model.GetConfig().heads; ++head)
    {
      const std::vector<float> bias = QueryBias(model, layer, head);
      const KeyScores keys = EvaluateKeyScores(recording, 0, layer, head, bias);
      std::vector<ScoreParts> parts;
      AppendScoreParts(recording, 0, layer, head, bias, keys, 0, length, length, parts);
      std::vector<double> sums(length);
      for (const ScoreParts& part : parts)
      {
        EXPECT_NEAR(part.score,
          part.alibi + part.distance + part.contentToPosition + part.positionToContent + part.bias +
            part.attention,
          1e-4);
        sums[part.query] += std::exp(static_cast<double>(part.score));
      }
      for (const ScoreParts& part : parts)
      {
        const std::int64_t at = (head * length + part.query) * length + part.key;
        EXPECT_NEAR(
          std::exp(static_cast<double>(part.score)) / sums[part.query], attention[at], 2e-5);
      }
    }
  }
}

using BreakdownOfModel = OfFocus;

/// breakdown.sorted.*: [L, B, H, T, T], by query and rank.
TEST_P(BreakdownOfModel, SortsScoresAsTheOracle)
{
  const std::size_t length = this->Oracle.ShapeOf("breakdown.alibi")[1];
  std::vector<double> index;
  std::vector<std::vector<double>> found(4);
  this->Oracle.ForHeads(
    [&](std::int64_t layer, std::int64_t sequence, std::int64_t head)
    {
      const std::size_t before = index.size();
      index.resize(before + length * length, -1);
      for (std::vector<double>& values : found)
      {
        values.resize(index.size(), 0);
      }
      for (const ScoreParts& part : PartsOf(this->Oracle, layer, sequence, head, 1000))
      {
        const std::size_t at = before + static_cast<std::size_t>(part.query) * length +
                               static_cast<std::size_t>(part.rank);
        index[at] = part.key;
        found[0][at] = part.score;
        found[1][at] = part.alibi;
        found[2][at] = part.bias;
        found[3][at] = part.attention;
        EXPECT_NEAR(part.score, part.alibi + part.bias + part.attention,
          1e-6 * std::max(1.F, std::abs(part.score)));
      }
    });
  const std::vector<std::int64_t> keys = this->Oracle.Integers("breakdown.sorted.index");
  ExpectClose("breakdown.sorted.index", index, { keys.begin(), keys.end() }, 0);
  std::size_t i = 0;
  for (const std::string name : { "score", "alibi", "bias", "attention" })
  {
    const std::string quantity = "breakdown.sorted." + name;
    ExpectClose(quantity, found[i++], this->Oracle.Values(quantity), FocusTolerance);
  }
}

/// content + query_bias is attention, key_bias + constant is bias, cell by cell.
TEST_P(BreakdownOfModel, SplitsScoresAsTheOracle)
{
  const std::vector<double> content = this->Oracle.Values("breakdown.content");
  const std::vector<double> queryBias = this->Oracle.Values("breakdown.query_bias");
  const std::vector<double> keyBias = this->Oracle.Values("breakdown.key_bias");
  const std::vector<double> constant = this->Oracle.Values("breakdown.constant");
  const std::vector<double> alibi = this->Oracle.Values("breakdown.alibi");
  const std::size_t length = this->Oracle.ShapeOf("breakdown.alibi")[1];
  const std::size_t heads = this->Oracle.ShapeOf("breakdown.alibi")[0];
  std::vector<double> found;
  std::vector<double> expected;
  std::size_t block = 0; // of [L, B, H]
  this->Oracle.ForHeads(
    [&](std::int64_t layer, std::int64_t sequence, std::int64_t head)
    {
      for (const ScoreParts& part : PartsOf(this->Oracle, layer, sequence, head, 1000))
      {
        const std::size_t i = part.query;
        const std::size_t j = part.key;
        const std::size_t h = head;
        const std::size_t l = static_cast<std::size_t>(layer) * heads + h;
        found.insert(found.end(), { part.attention, part.bias, part.alibi });
        expected.insert(expected.end(),
          { content[(block * length + i) * length + j] + queryBias[block * length + i],
            keyBias[block * length + j] + constant[l], alibi[h * length + j] });
      }
      ++block;
    });
  ExpectClose("breakdown", found, expected, FocusTolerance);
}

TEST_P(BreakdownOfModel, HasMeanFreePartsOfKeys)
{
  std::vector<double> bias;
  std::vector<double> alibi;
  this->Oracle.ForHeads(
    [&](std::int64_t layer, std::int64_t sequence, std::int64_t head)
    {
      const KeyScores keys = EvaluateKeyScores(this->Oracle.GetRecording(), sequence, layer, head,
        QueryBias(this->Oracle.GetModel(), layer, head));
      const std::vector<double> b = WithoutMean(keys.bias);
      bias.insert(bias.end(), b.begin(), b.end());
      if (layer == 0 && sequence == 0)
      {
        const std::vector<double> a = WithoutMean(keys.alibi);
        alibi.insert(alibi.end(), a.begin(), a.end());
      }
    });
  ExpectClose("figure3.bias", bias, this->Oracle.Values("figure3.bias"), FocusTolerance);
  ExpectClose("figure3.alibi", alibi, this->Oracle.Values("figure3.alibi"), FocusTolerance);
}

INSTANTIATE_TEST_SUITE_P(
  Models, BreakdownOfModel, testing::Values("gpt2", "bloom", "attn-only"), OfFocus::Name);

/// Queries that see all keys: the parts add up to the scores of the attention map.
TEST(ScoreBreakdown, OfBidirectionalModels)
{
  for (const std::string name : { "bert", "vit" })
  {
    SCOPED_TRACE(name);
    const Transformer model = Transformer::Read(TransformerOracle::Folder(name));
    const Recording recording =
      RecordTransformer(model, TransformerOracle(name).Input(), RecordOptions());
    const std::vector<float> bias = QueryBias(model, 1, 3);
    const KeyScores keys = EvaluateKeyScores(recording, 1, 1, 3, bias);
    const std::int64_t length = recording.SequenceLength(1);
    std::vector<ScoreParts> parts;
    AppendScoreParts(recording, 1, 1, 3, bias, keys, 0, length, length, parts);
    ASSERT_THAT(parts, SizeIs(length * length));
    std::vector<float> scores(parts.size());
    EvaluateAttention(recording, 1, 1, 3, AttentionQuantity::Scores, 0, length, scores.data());
    std::vector<float> found(parts.size());
    for (const ScoreParts& part : parts)
    {
      found[part.query * length + part.key] = part.score;
    }
    ExpectClose("scores", found, { scores.begin(), scores.end() }, FocusTolerance);
  }
}

/// Keys before the window are not among the scores; capped scores are no sums.
TEST(ScoreBreakdown, OfWindowsButNotOfCaps)
{
  const FocusOracle oracle("bloom");
  Recording recording = oracle.GetRecording();
  recording.layers[1].window = 3;
  const std::vector<float> bias = QueryBias(oracle.GetModel(), 1, 2);
  const KeyScores keys = EvaluateKeyScores(recording, 0, 1, 2, bias);
  std::vector<ScoreParts> parts;
  AppendScoreParts(recording, 0, 1, 2, bias, keys, 0, recording.SequenceLength(0), 16, parts);
  std::vector<ScoreParts> expected;
  for (ScoreParts part : PartsOf(oracle, 1, 0, 2, 16))
  {
    if (part.key > part.query - 3)
    {
      const bool isFirst = expected.empty() || expected.back().query != part.query;
      part.rank = isFirst ? 0 : expected.back().rank + 1;
      expected.push_back(part);
    }
  }
  ASSERT_THAT(parts, SizeIs(expected.size()));
  for (std::size_t i = 0; i < parts.size(); ++i)
  {
    EXPECT_EQ(parts[i].key, expected[i].key);
    EXPECT_EQ(parts[i].rank, expected[i].rank);
    EXPECT_EQ(parts[i].score, expected[i].score);
  }
  recording.layers[1].scoreCap = 50;
  EXPECT_THAT(MessageOf<ModelError>([&] { EvaluateKeyScores(recording, 0, 1, 2, bias); }),
    HasSubstr("layer 1: the model caps scores"));
}

/// Images of 3 x 5 patches in windows of 2 x 2, 2 x 1, 1 x 2 and 1 x 1, against a loop over the
/// pairs of patches.
TEST(ScoreBreakdown, OfWindowsOfPatches)
{
  constexpr std::int64_t Columns = 5;
  constexpr std::int64_t Count = 3 * Columns;
  const Recording recording = WindowedQueriesAndKeys(3, Columns);
  const RecordedHead& head = recording.layers[0].heads[0];
  const std::vector<float> bias = { 1, -2, 0.5 };
  const auto product = [](const float* a, const float* b)
  { return 0.5F * (a[0] * b[0] + a[1] * b[1] + a[2] * b[2]); };
  const KeyScores keys = EvaluateKeyScores(recording, 0, 0, 0, bias);
  for (const std::int64_t top : { 1, 3, 1000 })
  {
    std::vector<ScoreParts> expected;
    for (std::int32_t i = 0; i < Count; ++i)
    {
      std::vector<ScoreParts> row;
      for (std::int32_t j = 0; j < Count; ++j)
      {
        if (i / Columns / 2 == j / Columns / 2 && i % Columns / 2 == j % Columns / 2)
        {
          ScoreParts part;
          part.query = i;
          part.key = j;
          part.score = product(head.query.Row(i), head.key.Row(j));
          part.bias = product(bias.data(), head.key.Row(j));
          row.push_back(part);
        }
      }
      std::stable_sort(row.begin(), row.end(),
        [](const ScoreParts& a, const ScoreParts& b) { return a.score > b.score; });
      const auto kept = std::min(static_cast<std::size_t>(top), row.size());
      expected.insert(expected.end(), row.begin(), row.begin() + static_cast<std::ptrdiff_t>(kept));
    }
    std::vector<ScoreParts> parts;
    AppendScoreParts(recording, 0, 0, 0, bias, keys, 0, 7, top, parts);
    AppendScoreParts(recording, 0, 0, 0, bias, keys, 7, Count, top, parts);
    ASSERT_THAT(parts, SizeIs(expected.size()));
    for (std::size_t i = 0; i < parts.size(); ++i)
    {
      EXPECT_EQ(parts[i].query, expected[i].query);
      EXPECT_EQ(parts[i].key, expected[i].key);
      EXPECT_NEAR(parts[i].score, expected[i].score, 1e-5);
      EXPECT_NEAR(parts[i].bias, expected[i].bias, 1e-5);
      EXPECT_NEAR(parts[i].attention, expected[i].score - expected[i].bias, 1e-5);
      const bool isFirst = i == 0 || parts[i - 1].query != parts[i].query;
      EXPECT_EQ(parts[i].rank, isFirst ? 0 : parts[i - 1].rank + 1);
    }
  }
}

TEST(ScoreBreakdown, HasNoBiasWithoutOne)
{
  const FocusOracle oracle("llama"); // rotates, without a bias
  EXPECT_THAT(QueryBias(oracle.GetModel(), 0, 1), Each(0.F));
  const KeyScores keys =
    EvaluateKeyScores(oracle.GetRecording(), 0, 0, 1, QueryBias(oracle.GetModel(), 0, 1));
  EXPECT_THAT(keys.bias, Each(0.F));
  EXPECT_THAT(keys.alibi, Each(0.F));
  EXPECT_THAT(WithoutMean({ 1, 2, 6 }), ElementsAre(-2, -1, 3));
}

TEST(ScoreBreakdown, NamesWhatIsWrong)
{
  const FocusOracle oracle("gpt2");
  const auto message = [](const Recording& recording, std::size_t components)
  {
    return MessageOf<OptionError>(
      [&] { EvaluateKeyScores(recording, 0, 0, 0, std::vector<float>(components, 1.F)); });
  };
  EXPECT_THAT(message(oracle.GetRecording(), 5), HasSubstr("queries of 8 components"));
  Recording recording = oracle.GetRecording();
  recording.rotated = true;
  EXPECT_THAT(message(recording, 8), HasSubstr("rotates queries together with their bias"));
  recording.rotated = false;
  recording.layers[0].heads[0].weights = { SharedMatrix::Zero(17, 17), SharedMatrix::Zero(17, 17) };
  EXPECT_THAT(message(recording, 8), HasSubstr("does not follow from its queries and keys"));
  recording.layers[0].heads[0] = {};
  EXPECT_THAT(message(recording, 8), HasSubstr("no queries and keys"));
  EXPECT_THAT(MessageOf<OptionError>([&] { QueryBias(oracle.GetModel(), 2, 0); }),
    HasSubstr("layer 2 and head 0, found one of 2 layers of 4 heads"));
}

}
