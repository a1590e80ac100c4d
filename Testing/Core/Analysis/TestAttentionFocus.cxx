#include "Analysis/AttentionFocus.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "FocusOracle.h"
#include "PicturedRecording.h"
#include "Recording/RecordingFile.h"
#include "VariantOracle.h"

#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

std::vector<QueryFocus> Measure(const Recording& recording, std::int64_t sequence,
  std::int64_t layer, std::int64_t head, AttentionQuantity quantity = AttentionQuantity::Weights)
{
  const std::int64_t length = recording.SequenceLength(sequence);
  std::vector<QueryFocus> focus(length);
  std::vector<float> work;
  MeasureFocus(recording, sequence, layer, head, quantity, 0, length, work, focus.data());
  return focus;
}

/// The arrays of the oracle. The wrong key or flag would be off by more than the tolerance.
const std::map<std::string, FocusMeasure>& Measures()
{
  static const std::map<std::string, FocusMeasure> measures = {
    { "focus.self_weight", FocusMeasure::SelfWeight },
    { "focus.first_weight", FocusMeasure::FirstWeight },
    { "focus.top", FocusMeasure::StrongestKey },
    { "focus.top_is_self", FocusMeasure::StrongestIsSelf },
    { "focus.top_is_first", FocusMeasure::StrongestIsFirst },
    { "focus.concentration", FocusMeasure::Concentration },
  };
  return measures;
}

/// Weights of one head on one sequence, stored.
Recording Stored(const std::vector<std::vector<float>>& rows)
{
  Recording recording;
  recording.mask = AttentionMask::Bidirectional;
  recording.layerCount = 1;
  const std::int64_t count = rows.size();
  recording.sequenceOffsets = { 0, count };
  recording.tokens.sequence.assign(rows.size(), 0);
  recording.tokens.position.assign(rows.size(), 0);
  SharedMatrix weights = SharedMatrix::Zero(count, count);
  for (std::int64_t i = 0; i < count; ++i)
  {
    const std::vector<float>& row = rows[i];
    std::copy(row.begin(), row.end(), weights.Row(i));
  }
  RecordedLayer layer;
  layer.heads.resize(1);
  layer.heads[0].weights = { weights };
  recording.layers.push_back(layer);
  return recording;
}

/// The measures of query i by their definition, from its weights, of which `keys` may be other than
/// 0: their sum is less than 1 beside a sink.
void ExpectFocus(
  const QueryFocus& found, std::size_t i, const std::vector<double>& weights, std::int64_t keys)
{
  constexpr double tolerance = 2e-5;
  std::vector<double> sorted = weights;
  std::sort(sorted.rbegin(), sorted.rend());
  double entropy = 0;
  double sum = 0;
  for (const double weight : weights)
  {
    entropy -= weight > 0 ? weight * std::log(weight) : 0;
    sum += weight;
  }
  const auto count = static_cast<double>(keys);
  EXPECT_EQ(found.query, static_cast<std::int32_t>(i));
  EXPECT_NEAR(found.selfWeight, weights[i], tolerance);
  EXPECT_NEAR(found.firstWeight, weights[0], tolerance);
  EXPECT_NEAR(found.strongestWeight, sorted[0], tolerance);
  EXPECT_NEAR(weights[found.strongest], sorted[0], tolerance);
  EXPECT_NEAR(found.concentration, sorted[0] - (keys > 1 ? sorted[1] : 0), 2 * tolerance);
  EXPECT_NEAR(
    found.entropy, keys > 1 ? (entropy / sum + std::log(sum)) / std::log(count) : 0, 1e-4);
}

/// Compares the measures of all queries, by layer, sequence and head, with those that
/// `valuesOf(name)` returns.
template<class ValuesOf>
void ExpectMeasures(const Recording& recording, const ValuesOf& valuesOf)
{
  for (const auto& [name, measure] : Measures())
  {
    std::vector<double> found;
    for (const RecordedLayer& layer : recording.layers)
    {
      for (std::int64_t sequence = 0; sequence < recording.SequenceCount(); ++sequence)
      {
        for (std::size_t head = 0; head < layer.heads.size(); ++head)
        {
          for (const QueryFocus& focus :
            Measure(recording, sequence, layer.index, static_cast<std::int64_t>(head)))
          {
            found.push_back(FocusValue(focus, measure, 0.3));
          }
        }
      }
    }
    ExpectClose(name, found, valuesOf(name), FocusTolerance);
  }
}

using FocusOfModel = OfFocus;

TEST_P(FocusOfModel, EqualsTheOracle)
{
  ExpectMeasures(this->Oracle.GetRecording(),
    [&](const std::string& name) { return this->Oracle.Values(name); });
}

/// The score of the first key is the product of a cosine and two lengths.
TEST_P(FocusOfModel, SplitsTheFirstScore)
{
  const Recording& recording = this->Oracle.GetRecording();
  this->Oracle.ForHeads(
    [&](std::int64_t layer, std::int64_t sequence, std::int64_t head)
    {
      const RecordedHead& recorded = FindHead(recording, layer, head);
      const std::int64_t first = recording.sequenceOffsets[sequence];
      const std::vector<QueryFocus> focus = Measure(recording, sequence, layer, head);
      for (std::size_t i = 0; i < focus.size(); ++i)
      {
        const float* query = recorded.query.Row(first + static_cast<std::int64_t>(i));
        const double product =
          std::inner_product(query, query + recorded.query.columns, recorded.key.Row(first), 0.);
        const double found = static_cast<double>(focus[i].firstCosine) *
                             static_cast<double>(focus[i].queryNorm) *
                             static_cast<double>(focus[i].firstKeyNorm);
        EXPECT_NEAR(found, product, 1e-5 * std::max(1., std::abs(product)));
      }
    });
}

INSTANTIATE_TEST_SUITE_P(Models, FocusOfModel, OfFocus::Models(), OfFocus::Name);

/// The real GPT-2 on three prompts, whose attention is stored.
TEST(AttentionFocus, OfTheRealGpt2EqualsTheOracle)
{
  const std::filesystem::path folder = ATLAS_ORACLE_DIR;
  const SafetensorsFile expected(folder / "analysis" / "gpt2-real.focus.safetensors");
  for (const std::string prompt : { "prompt0", "prompt1", "prompt2" })
  {
    const Recording recording =
      ReadRecording(folder / "gpt2" / (prompt + ".safetensors")).recording;
    ExpectMeasures(recording, [&](const std::string& name)
      { return expected.GetTensors().at(prompt + "." + name).ToDouble(); });
  }
}

using FocusOfVariant = testing::TestWithParam<std::string>;

INSTANTIATE_TEST_SUITE_P(Models, FocusOfVariant, testing::ValuesIn(VariantOracle::Names()),
  [](const auto& model) { return TestName(model.param); });

/// Windows, caps and sinks: the attention of the original code is the measure, whose rows add up to
/// less than 1 beside a sink. First from queries and keys, then from the attention as stored.
TEST_P(FocusOfVariant, EqualsTheOriginalAttention)
{
  const VariantOracle oracle(GetParam());
  Recording recording = oracle.MakeRecording();
  const std::size_t length = recording.SequenceLength(0);
  for (const bool isStored : { false, true })
  {
    for (RecordedLayer& layer : recording.layers)
    {
      const std::vector<double> all = oracle.Values(layer.index, "attention");
      RecordedHead& head = layer.heads[1];
      if (isStored)
      {
        head.weights.assign(
          2, SharedMatrix::Zero(recording.SequenceLength(0), recording.SequenceLength(0)));
        std::transform(all.begin() + static_cast<std::ptrdiff_t>(length * length),
          all.begin() + static_cast<std::ptrdiff_t>(2 * length * length), head.weights[0].Row(0),
          [](double weight) { return static_cast<float>(weight); });
      }
      const std::vector<QueryFocus> focus = Measure(recording, 0, layer.index, 1);
      for (std::size_t i = 0; i < length; ++i)
      {
        const auto row =
          all.begin() + static_cast<std::ptrdiff_t>((length + i) * length); // of head 1
        const KeyRange keys = AllowedKeys(recording, 0, layer.index, static_cast<std::int64_t>(i));
        ExpectFocus(
          focus[i], i, { row, row + static_cast<std::ptrdiff_t>(length) }, keys.end - keys.begin);
      }
    }
  }
}

TEST(AttentionFocus, OfStoredWeights)
{
  const std::vector<QueryFocus> focus =
    Measure(Stored({ { 0.5F, 0.5F, 0 }, { 0.125F, 0.25F, 0.625F }, { 1, 0, 0 } }), 0, 0, 0);
  EXPECT_EQ(focus[0].strongest, 0); // the first of equal ones
  EXPECT_NEAR(focus[0].concentration, 0, 1e-6);
  EXPECT_NEAR(focus[0].entropy, std::log(2.) / std::log(3.), 1e-6);
  EXPECT_EQ(focus[1].strongest, 2);
  EXPECT_NEAR(focus[1].selfWeight, 0.25, 1e-6);
  EXPECT_NEAR(focus[1].firstWeight, 0.125, 1e-6);
  EXPECT_NEAR(focus[1].concentration, 0.375, 1e-6);
  EXPECT_NEAR(focus[2].concentration, 1, 1e-6);
  EXPECT_NEAR(focus[2].entropy, 0, 1e-6);
  EXPECT_EQ(focus[2].queryNorm, 0); // not recorded
  EXPECT_EQ(focus[2].strongestScore, 0);
}

/// Images of 3 x 5 patches in windows of 2 x 2, 2 x 1, 1 x 2 and 1 x 1, against a loop over the
/// pairs of patches: from queries and keys, from stored scores, and from stored weights.
TEST(AttentionFocus, OfWindowsOfPatches)
{
  constexpr std::int64_t Columns = 5;
  constexpr std::int64_t Count = 3 * Columns;
  Recording recording = WindowedQueriesAndKeys(3, Columns);
  RecordedHead& head = recording.layers[0].heads[0];
  const auto windowOf = [](std::int64_t i) { return std::pair(i / Columns / 2, i % Columns / 2); };
  const auto scoreOf = [&](std::int64_t i, std::int64_t j)
  {
    return 0.5 * std::inner_product(head.query.Row(i), head.query.Row(i) + 3, head.key.Row(j), 0.);
  };
  SharedMatrix scores = SharedMatrix::Zero(Count, Count);
  SharedMatrix weights = SharedMatrix::Zero(Count, Count);
  std::vector<std::int64_t> keys(Count);
  for (std::int64_t i = 0; i < Count; ++i)
  {
    double sum = 0;
    for (std::int64_t j = 0; j < Count; ++j)
    {
      const bool isThere = windowOf(i) == windowOf(j);
      sum += isThere ? std::exp(scoreOf(i, j)) : 0;
      keys[i] += isThere ? 1 : 0;
      scores.Row(i)[j] = static_cast<float>(isThere ? scoreOf(i, j) : 1000);
    }
    for (std::int64_t j = 0; j < Count; ++j)
    {
      weights.Row(i)[j] =
        static_cast<float>(windowOf(i) == windowOf(j) ? std::exp(scoreOf(i, j)) / sum : 0);
    }
  }
  for (const std::string source : { "queries and keys", "scores", "weights" })
  {
    SCOPED_TRACE(source);
    head.scores.clear();
    if (source == "scores")
    {
      head.scores = { scores };
    }
    if (source == "weights")
    {
      head.weights = { weights };
    }
    const std::vector<QueryFocus> found = Measure(recording, 0, 0, 0);
    for (std::int64_t i = 0; i < Count; ++i)
    {
      ExpectFocus(found[i], i, { weights.Row(i), weights.Row(i) + Count }, keys[i]);
      const double score = source == "weights" ? 0 : scoreOf(i, found[i].strongest);
      EXPECT_NEAR(found[i].strongestScore, score, 1e-5);
    }
  }
}

TEST(AttentionFocus, OfNormWeightedAttentionIsAShare)
{
  Recording recording = Stored({ { 0.5F, 0.5F }, { 0.9F, 0.1F } });
  recording.layers[0].heads[0].valueNorm = SharedMatrix::Zero(2, 1);
  *recording.layers[0].heads[0].valueNorm.Row(0) = 1;
  *recording.layers[0].heads[0].valueNorm.Row(1) = 9;
  const std::vector<QueryFocus> focus =
    Measure(recording, 0, 0, 0, AttentionQuantity::NormWeighted);
  EXPECT_NEAR(focus[0].selfWeight, 0.1, 1e-6);
  EXPECT_NEAR(focus[0].concentration, 0.8, 1e-6);
  EXPECT_NEAR(focus[1].selfWeight, 0.5, 1e-6);
}

TEST(AttentionFocus, OfASingleTokenAndOfNothing)
{
  const std::vector<QueryFocus> one = Measure(Stored({ { 1 } }), 0, 0, 0);
  EXPECT_EQ(one[0].concentration, 1);
  EXPECT_EQ(one[0].entropy, 0);
  EXPECT_EQ(one[0].selfWeight, 1);
  const std::vector<QueryFocus> none = Measure(Stored({ { 0, 0 }, { 0, 0 } }), 0, 0, 0);
  EXPECT_NEAR(none[0].entropy, 1, 1e-6); // nothing prefers a key
  EXPECT_EQ(FocusSums().Mean(FocusMeasure::Entropy), 0);
}

/// Scores 0, ln 2, ln 4, ln 1, and a sink of ln 8: weights 1, 2, 4, 1 of 16.
TEST(AttentionFocus, OfScoresIsTheSameWithTheirWeights)
{
  const float scores[] = { 0, std::log(2.F), std::log(4.F), 0 };
  const float weights[] = { 1 / 16.F, 2 / 16.F, 4 / 16.F, 1 / 16.F };
  ScoreRow row = { 3, 0, 4, scores, std::log(8.F) };
  for (const float* known : { static_cast<const float*>(nullptr), weights })
  {
    row.weights = known;
    const QueryFocus focus = FocusOfScores(row);
    EXPECT_EQ(focus.strongest, 2);
    EXPECT_NEAR(focus.strongestWeight, 0.25, 1e-7);
    EXPECT_NEAR(focus.selfWeight, 1 / 16., 1e-7);
    EXPECT_NEAR(focus.firstWeight, 1 / 16., 1e-7);
    EXPECT_NEAR(focus.concentration, 1 / 8., 1e-7);
    // Of 1/8, 1/4, 1/2, 1/8: 1.75 bits of 2.
    EXPECT_NEAR(focus.entropy, 1.75 / 2, 1e-6);
  }
}

TEST(AttentionFocus, NamesWhatIsMissing)
{
  Recording recording = Stored({ { 1 } });
  EXPECT_THAT(MessageOf<OptionError>([&] { Measure(recording, 0, 1, 0); }),
    HasSubstr("layer 1 is not in the recording"));
  recording.layers[0].heads[0].weights.clear();
  EXPECT_THAT(
    MessageOf<OptionError>([&] { Measure(recording, 0, 0, 0); }), HasSubstr("no queries and keys"));
}

TEST(AttentionFocus, EqualValuesKeepTheirOrder)
{
  EXPECT_THAT(FallingOrder({ 1, 3, 2, 3 }), ElementsAre(1, 3, 2, 0));
}

}
