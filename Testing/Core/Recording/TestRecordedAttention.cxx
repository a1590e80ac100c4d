#include "Recording/RecordedAttention.h"

#include "Base/Error.h"
#include "DefinedAttention.h"
#include "EmbeddingOracle.h"
#include "ErrorMessage.h"
#include "HandMadeRecording.h"
#include "LongRecording.h"
#include "Numerics/AttentionKernels.h"
#include "Oracle.h"
#include "Recording/RecordingPrefix.h"
#include "Reports.h"
#include "TranslatedRecording.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <Eigen/Core>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::Each;
using testing::HasSubstr;

namespace
{

/// A cap and a window in one layer, sinks and another window in the next.
void AddVariants(Recording& recording)
{
  recording.layers[0].scoreCap = 0.75;
  recording.layers[0].window = 2;
  recording.layers[1].window = 4;
  recording.layers[1].sinks = { 0.5F, -1 };
  CheckRecording(recording, "recording");
}

std::vector<float> Evaluate(const Recording& recording, std::int64_t sequence, std::int64_t layer,
  std::int64_t head, AttentionQuantity quantity)
{
  const std::int64_t length = recording.SequenceLength(sequence);
  std::vector<float> values(length * length, -7);
  EvaluateAttention(recording, sequence, layer, head, quantity, 0, length, values.data());
  return values;
}

void ExpectDefinedAttention(const Recording& recording)
{
  for (std::int64_t s = 0; s < recording.SequenceCount(); ++s)
  {
    for (std::size_t l = 0; l < recording.layers.size(); ++l)
    {
      for (std::size_t h = 0; h < HandMadeHeads; ++h)
      {
        const DefinedAttention expected(recording, s, l, h);
        const std::int64_t layer = recording.layers[l].index;
        const auto head = static_cast<std::int64_t>(h);
        using Quantity = AttentionQuantity;
        for (const auto& [quantity, values] :
          { std::pair(Quantity::Content, &expected.content), { Quantity::Bias, &expected.bias },
            { Quantity::Scores, &expected.scores }, { Quantity::Weights, &expected.weights } })
        {
          ExpectClose(AttentionQuantityNames[static_cast<int>(quantity)],
            Evaluate(recording, s, layer, head, quantity), *values, 1e-6);
        }
        const std::vector<float> weights = Evaluate(recording, s, layer, head, Quantity::Weights);
        for (std::size_t i = 0; i < weights.size(); ++i)
        {
          EXPECT_TRUE(expected.weights[i] != 0 || weights[i] == 0)
            << "what is excluded is exactly 0";
        }
      }
    }
  }
}

TEST(RecordedAttention, EqualsItsFormulas)
{
  Recording recording = HandMadeRecording();
  ExpectDefinedAttention(recording);
  recording.mask = AttentionMask::Bidirectional;
  ExpectDefinedAttention(recording);
  recording.alibiSlopes = { 0.5, 0.25 };
  ExpectDefinedAttention(recording);
  recording.mask = AttentionMask::Causal;
  ExpectDefinedAttention(recording);
  AddVariants(recording);
  ExpectDefinedAttention(recording);
}

/// Falcon's: 257 is no number of BF16, which has 8 bits, nor is 2^-1/2, which becomes 181 / 256.
TEST(AlibiBias, IsRoundedToBf16BeforeItsUnit)
{
  EXPECT_EQ(AlibiBias(0.3, 0, 7), 0.3 * 7);
  EXPECT_EQ(AlibiBias(0.5, 1, 257), 128);
  EXPECT_EQ(AlibiBias(0.5, 1, 259), 130);
  EXPECT_EQ(AlibiBias(0.125 * std::sqrt(0.5), 0.125, 1), 0.125 * 181 / 256);
  EXPECT_EQ(AlibiBias(0.125 * std::sqrt(0.5), 0.125, 3), 0.125 * 272 / 128); // of 271.5
  Recording recording = HandMadeRecording();
  recording.alibiSlopes = { 0.125 * std::sqrt(0.5), 0.125 };
  recording.alibiUnit = 0.125;
  const HeadScores scores = ScoresOf(recording, 0, recording.layers[0].index, 0);
  std::vector<float> values(4, 1.F);
  AddBias(scores, 0, 1, 4, values.data());
  for (std::int64_t key = 0; key < 4; ++key)
  {
    EXPECT_FLOAT_EQ(
      values[key], static_cast<float>(1 + AlibiBias(recording.alibiSlopes[0], 0.125, key)));
  }
}

/// The three kinds of attention of a transformer with an encoder and a decoder.
TEST(RecordedAttention, PartsEqualTheirFormulas)
{
  const Recording recording = TranslatedRecording();
  for (const Recording* part : WithParts(recording))
  {
    ExpectDefinedAttention(*part);
  }
  const Recording& cross = PartOf(recording, AttentionKind::Cross);
  EXPECT_EQ(cross.mask, AttentionMask::Cross);
  EXPECT_EQ(&PartOf(recording, AttentionKind::Decoder), &recording);
  EXPECT_EQ(&PartOf(recording, AttentionKind::Encoder), recording.encoder.get());
  const KeyRange queries = QueryPositions(cross, 1);
  const KeyRange keys = KeyPositions(cross, 1);
  EXPECT_EQ(queries.begin, 2);
  EXPECT_EQ(queries.end, 7);
  EXPECT_EQ(keys.begin, 0);
  EXPECT_EQ(keys.end, 2);
  EXPECT_EQ(KeyPositions(cross, AllSequences).end, 4);
  EXPECT_EQ(QueryPositions(recording, 1).begin, 0);
  EXPECT_EQ(KeyPositions(recording, 1).end, 5);
  EXPECT_EQ(AllowedKeys(cross, 0, 0, 3).end, 0); // of the source
  EXPECT_EQ(AllowedKeys(cross, 0, 0, 4).end, 4);
}

/// Blocks may begin in the source and end in the target.
TEST(RecordedAttention, BlocksOfCrossAttentionEqualAllRows)
{
  const Recording cross = PartOf(TranslatedRecording(), AttentionKind::Cross);
  const std::vector<float> all = Evaluate(cross, 0, 2, 1, AttentionQuantity::Weights);
  std::vector<float> rows(4 * 7);
  EvaluateAttention(cross, 0, 2, 1, AttentionQuantity::Weights, 2, 6, rows.data());
  ExpectClose("weights", rows, { all.begin() + 14, all.begin() + 42 }, 1e-6);
  const std::vector<float> norms = Evaluate(cross, 0, 2, 1, AttentionQuantity::NormWeighted);
  for (std::int64_t j = 0; j < 4; ++j)
  {
    EXPECT_FLOAT_EQ(norms[5 * 7 + j], all[5 * 7 + j] * *cross.layers[2].heads[1].valueNorm.Row(j));
  }
}

TEST(RecordedAttention, CrossAttentionHasNeitherMeanNorRollout)
{
  const Recording recording = TranslatedRecording();
  const Recording& cross = *recording.cross;
  EXPECT_THAT(MessageOf<OptionError>(
                [&] { EvaluateAttention(cross, AllSequences, 0, 0, {}, 0, 0, nullptr); }),
    HasSubstr("expected one sequence of cross attention, found all"));
  EXPECT_THAT(MessageOf<OptionError>([&]
                { EvaluateAttention(cross, 0, 0, 0, AttentionQuantity::Rollout, 0, 0, nullptr); }),
    HasSubstr("expected another quantity than Rollout"));
  EXPECT_THAT(MessageOf<OptionError>([] { PartOf(HandMadeRecording(), AttentionKind::Cross); }),
    HasSubstr("for the attention 'cross', found one of hand-made."));
}

std::vector<double> WeightsOf(
  const Recording& recording, std::int64_t sequence, std::size_t layer, std::size_t head)
{
  return DefinedAttention(recording, sequence, layer, head).weights;
}

/// The mean over the heads of a layer of what `of` gives for each.
template<class Of>
std::vector<double> MeanOverHeads(const Of& of)
{
  std::vector<double> mean = of(std::size_t{ 0 });
  const std::vector<double> other = of(std::size_t{ 1 });
  std::transform(mean.begin(), mean.end(), other.begin(), mean.begin(),
    [](double a, double b) { return (a + b) / 2; });
  return mean;
}

/// The means of both layers, on all sequences.
void ExpectMeansOfHeads(const Recording& recording)
{
  for (std::int64_t s = 0; s < 3; ++s)
  {
    for (const std::size_t l : { 0U, 1U })
    {
      const std::int64_t layer = recording.layers[l].index;
      ExpectClose("weights", Evaluate(recording, s, layer, AllHeads, AttentionQuantity::Weights),
        MeanOverHeads([&](std::size_t h) { return WeightsOf(recording, s, l, h); }), 1e-6);
      ExpectClose("scores", Evaluate(recording, s, layer, AllHeads, AttentionQuantity::Scores),
        MeanOverHeads([&](std::size_t h) { return DefinedAttention(recording, s, l, h).scores; }),
        1e-6);
    }
  }
}

TEST(RecordedAttention, AveragesHeads)
{
  Recording recording = HandMadeRecording();
  recording.alibiSlopes = { 0.5, 0.25 };
  ExpectMeansOfHeads(recording);
  recording.mask = AttentionMask::Bidirectional;
  ExpectMeansOfHeads(recording);
  recording = HandMadeRecording();
  AddVariants(recording);
  ExpectMeansOfHeads(recording);
}

void AddNorms(Recording& recording)
{
  float norm = 1;
  for (RecordedLayer& layer : recording.layers)
  {
    for (RecordedHead& head : layer.heads)
    {
      head.valueNorm = SharedMatrix::Zero(10, 1);
      std::for_each(head.valueNorm.Row(0), head.valueNorm.Row(10),
        [&norm](float& value) { value = norm += 0.25F; });
    }
  }
}

TEST(RecordedAttention, WeighsByTheNormsOfValues)
{
  Recording recording = HandMadeRecording();
  AddNorms(recording);
  CheckRecording(recording, "recording");
  const auto quantity = AttentionQuantity::NormWeighted;
  for (std::int64_t s = 0; s < 3; ++s)
  {
    ExpectClose("one head", Evaluate(recording, s, 4, 1, quantity),
      DefinedAttention(recording, s, 1, 1).normWeighted, 1e-6);
    ExpectClose("mean", Evaluate(recording, s, 4, AllHeads, quantity),
      MeanOverHeads(
        [&](std::size_t h) { return DefinedAttention(recording, s, 1, h).normWeighted; }),
      1e-6);
  }
  AddVariants(recording);
  ExpectClose("with a sink", Evaluate(recording, 2, 4, 1, quantity),
    DefinedAttention(recording, 2, 1, 1).normWeighted, 1e-6);
  recording.layers[1].heads[1].valueNorm = {};
  EXPECT_THAT(MessageOf<OptionError>([&] { Evaluate(recording, 0, 4, 1, quantity); }),
    HasSubstr("no value norms, by which NormWeighted"));
}

/// The rollout of `layers` layers, in double.
std::vector<double> Rollout(const Recording& recording, std::int64_t sequence, std::size_t layers)
{
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const std::int64_t size = recording.SequenceLength(sequence);
  Matrix product = Matrix::Identity(size, size);
  for (std::size_t layer = 0; layer < layers; ++layer)
  {
    const std::vector<double> mean =
      MeanOverHeads([&](std::size_t h) { return WeightsOf(recording, sequence, layer, h); });
    const Eigen::Map<const Matrix> weights(mean.data(), size, size);
    product = (weights + Matrix::Identity(size, size)) / 2 * product;
  }
  return { product.data(), product.data() + product.size() };
}

TEST(RecordedAttention, RolloutMultipliesLayers)
{
  for (const std::int64_t length : { 1, 7, 530 }) // within one block, and beyond one slab
  {
    Recording recording = LongRecording(length);
    for (const AttentionMask mask : { AttentionMask::Causal, AttentionMask::Bidirectional })
    {
      recording.mask = mask;
      for (const std::size_t layers : { 1U, 2U, 3U })
      {
        ExpectClose("rollout",
          Evaluate(recording, 0, static_cast<std::int64_t>(layers), 1, AttentionQuantity::Rollout),
          Rollout(recording, 0, layers), 1e-5);
      }
    }
  }
}

TEST(RecordedAttention, RowsOfARolloutAreThoseOfTheWhole)
{
  const Recording recording = LongRecording(530);
  const std::vector<double> expected = Rollout(recording, 0, 2);
  std::vector<float> found(std::size_t{ 50 } * 530);
  EvaluateAttention(recording, 0, 2, AllHeads, AttentionQuantity::Rollout, 100, 150, found.data());
  ExpectClose("rollout", found,
    std::vector<double>(expected.begin() + 100 * 530, expected.begin() + 150 * 530), 1e-5);
}

TEST(RecordedAttention, RolloutNeedsAllLayers)
{
  const Recording recording = HandMadeRecording();
  EXPECT_THAT(
    MessageOf<OptionError>([&] { Evaluate(recording, 0, 4, 0, AttentionQuantity::Rollout); }),
    HasSubstr("layer 2 is not in the recording, which has layers 1 4"));
  ExpectClose("rollout", Evaluate(recording, 0, 1, 0, AttentionQuantity::Rollout),
    Rollout(recording, 0, 1), 1e-6);
}

std::vector<float> EvaluateMean(
  const Recording& recording, std::int64_t layer, std::int64_t head, AttentionQuantity quantity)
{
  const std::int64_t length = AttentionLength(recording, AllSequences);
  std::vector<float> values(length * length, -7);
  for (std::int64_t i = 0; i < length; i += 2) // in blocks
  {
    EvaluateAttention(recording, AllSequences, layer, head, quantity, i, std::min(i + 2, length),
      values.data() + i * length);
  }
  return values;
}

/// The mean over the sequences of 3, 1 and 6 tokens of what `of` gives for each.
template<class Of>
std::vector<double> MeanOverSequences(const Of& of)
{
  Eigen::ArrayXXd sum = Eigen::ArrayXXd::Zero(6, 6); // [key, query]
  Eigen::ArrayXXd count = sum;
  for (const auto& [sequence, length] : { std::pair(0, 3), std::pair(1, 1), std::pair(2, 6) })
  {
    const std::vector<double> values = of(sequence);
    sum.topLeftCorner(length, length) +=
      Eigen::Map<const Eigen::ArrayXXd>(values.data(), length, length);
    count.topLeftCorner(length, length) += 1;
  }
  sum /= count;
  return { sum.data(), sum.data() + sum.size() };
}

TEST(RecordedAttention, AveragesSequences)
{
  Recording recording = HandMadeRecording();
  AddNorms(recording);
  recording.mask = AttentionMask::Bidirectional;
  ExpectClose("mean", EvaluateMean(recording, 4, 1, AttentionQuantity::NormWeighted),
    MeanOverSequences(
      [&](std::int64_t s) { return DefinedAttention(recording, s, 1, 1).normWeighted; }),
    1e-6);
  EXPECT_EQ(AttentionLength(recording, AllSequences), 6);
}

/// The mean over sequences, against an independent program. Sequences of `bert` have 15 and 11
/// tokens, those of `gpt2` 17.
TEST(RecordedAttention, MeansOverSequencesAreThoseOfTheOracle)
{
  for (const std::string name : { "bert", "gpt2" })
  {
    const Recording recording = EmbeddingOracle(name).MakeRecording();
    const EmbeddingOracle expected(name + ".aggregates");
    for (std::int64_t layer = name == "gpt2" ? 1 : 0; layer < 2; ++layer)
    {
      for (std::int64_t head = 0; head < 4; ++head)
      {
        ExpectClose("aggregate", EvaluateMean(recording, layer, head, AttentionQuantity::Weights),
          expected.Values(expected.Prefix(layer, head) + "aggregate"), 1e-6);
      }
    }
  }
}

/// Rows in blocks, as a view asks for them, whose keys begin with the window.
TEST(RecordedAttention, BlocksOfALongWindowedSequenceAreThoseOfTheWhole)
{
  Recording recording = LongRecording(300);
  for (RecordedLayer& layer : recording.layers)
  {
    layer.window = 40;
    layer.sinks = { 0.5F, 1 };
  }
  const std::vector<float> whole = Evaluate(recording, 0, 2, 1, AttentionQuantity::Weights);
  ExpectClose("whole", whole, DefinedAttention(recording, 0, 1, 1).weights, 1e-6);
  std::vector<float> rows(std::size_t{ 300 } * 300);
  for (const int threads : { 1, 3 })
  {
    EvaluateAttentionRows(
      recording, { 0, 2, 1, AttentionQuantity::Weights, 0, 300 }, rows.data(), threads);
    ExpectClose("rows", rows, DefinedAttention(recording, 0, 1, 1).weights, 1e-6);
  }
  ExpectClose("rollout", Evaluate(recording, 0, 3, 0, AttentionQuantity::Rollout),
    Rollout(recording, 0, 3), 1e-5);
}

/// Rows with sinks add up to less than 1, and their mean to the mean of what they add up to.
TEST(RecordedAttention, MeansKeepWhatSinksTake)
{
  Recording recording = HandMadeRecording();
  AddVariants(recording);
  EXPECT_FALSE(HasSinks(recording, 1, AttentionQuantity::Weights));
  EXPECT_FALSE(HasSinks(recording, 1, AttentionQuantity::Rollout));
  EXPECT_TRUE(HasSinks(recording, 4, AttentionQuantity::Weights));
  EXPECT_TRUE(HasSinks(recording, 4, AttentionQuantity::Rollout));
  ExpectClose("mean", EvaluateMean(recording, 4, 0, AttentionQuantity::Weights),
    MeanOverSequences([&](std::int64_t s) { return WeightsOf(recording, s, 1, 0); }), 1e-6);
}

TEST(RecordedAttention, KnowsTheAllowedKeys)
{
  Recording recording = HandMadeRecording();
  AddVariants(recording);
  const auto range = [&](std::int64_t layer, std::int64_t query)
  {
    const KeyRange keys = AllowedKeys(recording, 2, layer, query);
    return std::pair(keys.begin, keys.end);
  };
  EXPECT_EQ(range(1, 0), std::pair(0L, 1L));
  EXPECT_EQ(range(1, 1), std::pair(0L, 2L));
  EXPECT_EQ(range(1, 5), std::pair(4L, 6L));
  EXPECT_EQ(range(4, 5), std::pair(2L, 6L));
  recording.layers[1].window = 0;
  recording.mask = AttentionMask::Bidirectional;
  EXPECT_EQ(range(4, 2), std::pair(0L, 6L));
  EXPECT_EQ(range(1, 0), std::pair(0L, 2L)); // the window of two keys on both sides
  EXPECT_EQ(range(1, 3), std::pair(2L, 5L));
  EXPECT_EQ(range(1, 5), std::pair(4L, 6L));
  recording.mask = AttentionMask::Causal;
  recording.layers[1].chunk = 4;
  EXPECT_EQ(range(4, 3), std::pair(0L, 4L));
  EXPECT_EQ(range(4, 4), std::pair(4L, 5L));
  EXPECT_THAT(MessageOf<ModelError>([&] { RequireUncapped(recording, 1, "split"); }),
    HasSubstr("layer 1: the model caps scores (attn_logit_softcapping)"));
  RequireUncapped(recording, 4, "split");
}

TEST(RecordedAttention, BytesDoNotDependOnThreads)
{
  const Recording recording = LongRecording(300);
  for (const AttentionQuantity quantity :
    { AttentionQuantity::Weights, AttentionQuantity::Rollout })
  {
    std::vector<float> expected;
    for (const int threads : { 1, 2, 5 })
    {
      std::vector<float> found(std::size_t{ 280 } * 300);
      std::vector<double> reported;
      const AttentionRows rows = { 0, 3, AllHeads, quantity, 20, 300 };
      EvaluateAttentionRows(recording, rows, found.data(), threads, KeepReports(reported));
      EXPECT_EQ(reported.back(), 1);
      expected = expected.empty() ? found : expected;
      EXPECT_TRUE(found == expected);
      EXPECT_THROW(EvaluateAttentionRows(
                     recording, rows, found.data(), threads, [](double) { throw Canceled(); }),
        Canceled);
    }
  }
}

TEST(RecordedAttention, LargeScoresDoNotOverflow)
{
  Recording recording = HandMadeRecording();
  recording.layers[0].scoreScale = 1e4;
  const std::vector<float> weights = Evaluate(recording, 2, 1, 0, AttentionQuantity::Weights);
  EXPECT_THAT(weights, Each(testing::AllOf(testing::Ge(0.0F), testing::Le(1.0F))));
  for (std::size_t row = 0; row < 6; ++row)
  {
    float sum = 0;
    for (std::size_t key = 0; key < 6; ++key)
    {
      sum += weights[6 * row + key];
    }
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

TEST(RecordedAttention, WhatTheRecordingLacksIsRefused)
{
  struct Request
  {
    std::int64_t sequence;
    std::int64_t layer;
    std::int64_t head;
    std::int64_t begin;
    std::int64_t end;
    const char* message;
  };
  const std::vector<Request> requests = { { 3, 1, 0, 0, 1, "a sequence from 0 to 2, found 3" },
    { -2, 1, 0, 0, 1, "a sequence from 0 to 2, found -2" },
    { 0, 4, -2, 0, 1, "a head from 0 to 1, found -2" },
    { 0, 2, 0, 0, 1, "layer 2 is not in the recording, which has layers 1 4" },
    { 0, 4, 2, 0, 1, "a head from 0 to 1, found 2" },
    { 0, 4, 1, 0, 4, "queries from 0 to 3, found 0 to 4" },
    { 0, 4, 1, 2, 1, "queries from 0 to 3, found 2 to 1" },
    { 0, 4, 0, 0, 1, "has no queries and keys" } };
  Recording recording = HandMadeRecording();
  recording.layers[1].heads[0].key = {};
  std::vector<float> values(100);
  for (const Request& one : requests)
  {
    const auto evaluate = [&]
    {
      EvaluateAttention(recording, one.sequence, one.layer, one.head, AttentionQuantity::Weights,
        one.begin, one.end, values.data());
    };
    EXPECT_THAT(MessageOf<OptionError>(evaluate), HasSubstr(one.message));
  }
}

/// Attention of two heads as a file holds it, of a sequence of 2 tokens, without queries and keys.
Recording MakeStored()
{
  Recording recording;
  recording.layerCount = 1;
  recording.sequenceOffsets = { 0, 2 };
  recording.tokens.sequence = { 0, 0 };
  recording.tokens.position = { 0, 1 };
  recording.layers.resize(1);
  recording.layers[0].heads.resize(2);
  SharedMatrix scores = SharedMatrix::Zero(2, 2);
  const std::vector<float> values = { 3, 9, 1, 1 + std::log(3.0F) };
  std::copy(values.begin(), values.end(), scores.values.get());
  recording.layers[0].heads[0].scores = { scores };
  recording.layers[0].heads[1].weights = { scores };
  return recording;
}

/// Stored scores become weights by the layer's window and sinks.
TEST(RecordedAttention, StoredScoresHaveWindowsAndSinks)
{
  Recording recording = MakeStored();
  recording.layers[0].sinks = { 1, 0 };
  std::vector<float> weights = Evaluate(recording, 0, 0, 0, AttentionQuantity::Weights);
  const double first = std::exp(3.0) / (std::exp(3.0) + std::exp(1.0));
  EXPECT_NEAR(weights[0], first, 1e-6);
  EXPECT_NEAR(weights[2], 0.2, 1e-6); // 1 : 3 : 1
  EXPECT_NEAR(weights[3], 0.6, 1e-6);
  recording.layers[0].window = 1;
  weights = Evaluate(recording, 0, 0, 0, AttentionQuantity::Weights);
  EXPECT_EQ(weights[2], 0);
  EXPECT_NEAR(weights[3], 0.75, 1e-6);
}

TEST(RecordedAttention, GivesWhatIsStored)
{
  const Recording recording = MakeStored();
  const std::vector<float> stored = { 3, 9, 1, 1 + std::log(3.0F) };
  EXPECT_EQ(Evaluate(recording, 0, 0, 0, AttentionQuantity::Scores), stored);
  EXPECT_EQ(Evaluate(recording, 0, 0, 1, AttentionQuantity::Weights), stored);
  ExpectClose("weights", Evaluate(recording, 0, 0, 0, AttentionQuantity::Weights),
    { 1, 0, 0.25, 0.75 }, 1e-6);
  Recording both = MakeStored();
  both.mask = AttentionMask::Bidirectional;
  const double first = 1 / (1 + std::exp(6.0));
  ExpectClose("weights", Evaluate(both, 0, 0, 0, AttentionQuantity::Weights),
    { first, 1 - first, 0.25, 0.75 }, 1e-6);
}

TEST(RecordedAttention, TellsWhatIsStored)
{
  const Recording recording = MakeStored();
  const auto evaluate = [&](std::int64_t head, AttentionQuantity quantity)
  { return MessageOf<OptionError>([&]() { Evaluate(recording, 0, 0, head, quantity); }); };
  EXPECT_THAT(evaluate(0, AttentionQuantity::Content), HasSubstr("it stores only the scores"));
  EXPECT_THAT(evaluate(1, AttentionQuantity::Scores), HasSubstr("it stores only the weights"));
}

/// Under a causal mask, tokens 1 to 3 of the last sequence are of one picture (Gemma 3).
TEST(RecordedAttention, TokensOfAPictureSeeEachOther)
{
  Recording recording = HandMadeRecording();
  recording.tokens.keyEnd = { 1, 2, 3, 1, 1, 4, 4, 4, 5, 6 };
  recording.layers[1].window = 2;
  CheckRecording(recording, "recording");
  for (const std::int64_t layer : { 1, 4 })
  {
    std::vector<float> scores(36);
    std::vector<float> weights(36);
    EvaluateAttention(recording, 2, layer, 1, AttentionQuantity::Scores, 0, 6, scores.data());
    EvaluateAttention(recording, 2, layer, 1, AttentionQuantity::Weights, 0, 6, weights.data());
    for (std::int64_t query = 0; query < 6; ++query)
    {
      const std::int64_t first = layer == 4 ? std::max<std::int64_t>(query - 1, 0) : 0;
      const std::int64_t end = recording.tokens.keyEnd[4 + query];
      const KeyRange allowed = AllowedKeys(recording, 2, layer, query);
      EXPECT_EQ(allowed.begin, first);
      EXPECT_EQ(allowed.end, end);
      double sum = 0;
      for (std::int64_t key = first; key < end; ++key)
      {
        sum += std::exp(static_cast<double>(scores[query * 6 + key]));
      }
      for (std::int64_t key = 0; key < 6; ++key)
      {
        const bool isSeen = key >= first && key < end;
        const double expected =
          isSeen ? std::exp(static_cast<double>(scores[query * 6 + key])) / sum : 0;
        EXPECT_NEAR(weights[query * 6 + key], expected, 1e-6);
      }
    }
  }
  // Rollout multiplies by rows of later keys, too.
  std::vector<float> rollout(36);
  EvaluateAttention(recording, 2, 1, AllHeads, AttentionQuantity::Rollout, 0, 6, rollout.data());
  EXPECT_GT(rollout[6 + 3], 0);
  // The first tokens do not depend on the later ones unless they are a part of the picture.
  EXPECT_THAT(MessageOf<OptionError>([&] { FirstTokens(recording, { 3, 1, 3 }); }),
    HasSubstr("a causal mask"));
  EXPECT_EQ(FirstTokens(recording, { 3, 1, 4 }).tokens.keyEnd.back(), 4);
  const auto refusal = [&](std::size_t token, std::int32_t end)
  {
    Recording other = recording;
    other.tokens.keyEnd[token] = end;
    return MessageOf<ModelError>([&] { CheckRecording(other, "recording"); });
  };
  EXPECT_THAT(refusal(5, 1), HasSubstr("sequence 2, token 1: expected it to see the first 2 to 6"));
  EXPECT_THAT(
    refusal(6, 3), HasSubstr("token 2: expected it to see the first 4 to 6 keys, found 3"));
  EXPECT_THAT(refusal(2, 4), HasSubstr("sequence 0, token 2"));
  recording.mask = AttentionMask::Bidirectional;
  EXPECT_THAT(MessageOf<ModelError>([&] { CheckRecording(recording, "recording"); }),
    HasSubstr("under a causal mask alone"));
}

}
