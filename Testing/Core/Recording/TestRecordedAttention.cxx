// Also tests: Recording

#include "RecordedAttention.h"

#include "Error.h"
#include "ErrorMessage.h"
#include "Oracle.h"

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::ExpectClose;
using atlas::test::MessageOf;
using testing::Each;
using testing::HasSubstr;

namespace
{

constexpr std::int64_t Dimension = 5;
constexpr std::size_t HeadCount = 2;

SharedMatrix Random(std::int64_t rows, std::int64_t columns, std::mt19937& generator)
{
  SharedMatrix matrix = SharedMatrix::Zero(rows, columns);
  for (std::size_t i = 0; i < matrix.Count(); ++i)
  {
    matrix.values.get()[i] = static_cast<float>(generator() % 2001) / 1000 - 1;
  }
  return matrix;
}

/// Sequences of 3, 1 and 6 tokens; layers 1 and 4 of 5; two heads.
Recording Make()
{
  std::mt19937 generator(3);
  Recording recording;
  recording.architecture = "hand-made";
  recording.layerCount = 5;
  recording.sequenceOffsets = { 0, 3, 4, 10 };
  recording.tokens.sequence = { 0, 0, 0, 1, 2, 2, 2, 2, 2, 2 };
  recording.tokens.position = { 0, 1, 2, 0, 0, 1, 2, 3, 4, 5 };
  for (const std::int32_t index : { 1, 4 })
  {
    RecordedLayer layer;
    layer.index = index;
    layer.scoreScale = 1.0 / (index + 1);
    for (std::size_t h = 0; h < HeadCount; ++h)
    {
      RecordedHead head;
      head.query = Random(10, Dimension, generator);
      head.key = Random(10, Dimension, generator);
      layer.heads.push_back(head);
    }
    recording.layers.push_back(layer);
  }
  return recording;
}

/// All quantities of one head on one sequence, by their formulas in double.
struct Reference
{
  std::vector<double> content;
  std::vector<double> bias;
  std::vector<double> scores;
  std::vector<double> weights;

  Reference(const Recording& recording, std::int64_t sequence, std::size_t layer, std::size_t h)
  {
    const std::int64_t first = recording.sequenceOffsets[static_cast<std::size_t>(sequence)];
    const std::int64_t length = recording.SequenceLength(sequence);
    const RecordedHead& head = recording.layers[layer].heads[h];
    for (std::int64_t i = 0; i < length; ++i)
    {
      double sum = 0;
      std::vector<double> row;
      for (std::int64_t j = 0; j < length; ++j)
      {
        double product = 0;
        for (std::int64_t c = 0; c < Dimension; ++c)
        {
          product += static_cast<double>(head.query.Row(first + i)[c]) *
                     static_cast<double>(head.key.Row(first + j)[c]);
        }
        this->content.push_back(recording.layers[layer].scoreScale * product);
        this->bias.push_back(
          recording.alibiSlopes.empty() ? 0 : recording.alibiSlopes[h] * static_cast<double>(j));
        this->scores.push_back(this->content.back() + this->bias.back());
        const bool allowed = recording.mask == AttentionMask::Bidirectional || j <= i;
        row.push_back(allowed ? std::exp(this->scores.back()) : 0);
        sum += row.back();
      }
      for (const double value : row)
      {
        this->weights.push_back(value / sum);
      }
    }
  }
};

std::vector<float> Evaluate(const Recording& recording, std::int64_t sequence, std::int64_t layer,
  std::int64_t head, AttentionQuantity quantity)
{
  const std::int64_t length = recording.SequenceLength(sequence);
  std::vector<float> values(static_cast<std::size_t>(length * length), -7);
  EvaluateAttention(recording, sequence, layer, head, quantity, 0, length, values.data());
  return values;
}

void ExpectReference(const Recording& recording)
{
  for (std::int64_t s = 0; s < 3; ++s)
  {
    for (std::size_t l = 0; l < 2; ++l)
    {
      for (std::size_t h = 0; h < HeadCount; ++h)
      {
        const Reference expected(recording, s, l, h);
        const std::int64_t layer = recording.layers[l].index;
        const auto head = static_cast<std::int64_t>(h);
        using Quantity = AttentionQuantity;
        ExpectClose("content", Evaluate(recording, s, layer, head, Quantity::Content),
          expected.content, 1e-6);
        ExpectClose(
          "bias", Evaluate(recording, s, layer, head, Quantity::Bias), expected.bias, 1e-6);
        ExpectClose(
          "scores", Evaluate(recording, s, layer, head, Quantity::Scores), expected.scores, 1e-6);
        ExpectClose("weights", Evaluate(recording, s, layer, head, Quantity::Weights),
          expected.weights, 1e-6);
      }
    }
  }
}

TEST(RecordedAttention, EqualsItsFormulas)
{
  Recording recording = Make();
  ExpectReference(recording);
  recording.mask = AttentionMask::Bidirectional;
  ExpectReference(recording);
  recording.alibiSlopes = { 0.5, 0.25 };
  ExpectReference(recording);
  recording.mask = AttentionMask::Causal;
  ExpectReference(recording);
}

TEST(RecordedAttention, LargeScoresDoNotOverflow)
{
  Recording recording = Make();
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
  Recording recording = Make();
  const auto refusal = [&](std::int64_t sequence, std::int64_t layer, std::int64_t head,
                         std::int64_t begin, std::int64_t end)
  {
    std::vector<float> values(100);
    return MessageOf<OptionError>(
      [&]
      {
        EvaluateAttention(
          recording, sequence, layer, head, AttentionQuantity::Weights, begin, end, values.data());
      });
  };
  EXPECT_EQ(refusal(3, 1, 0, 0, 1), "expected a sequence from 0 to 2, found 3.");
  EXPECT_EQ(refusal(-1, 1, 0, 0, 1), "expected a sequence from 0 to 2, found -1.");
  EXPECT_EQ(refusal(0, 2, 0, 0, 1), "layer 2 is not in the recording, which has layers 1 4.");
  EXPECT_EQ(refusal(0, 4, 2, 0, 1), "expected a head from 0 to 1, found 2.");
  EXPECT_EQ(refusal(0, 4, 1, 0, 4), "expected queries from 0 to 3, found 0 to 4.");
  EXPECT_EQ(refusal(0, 4, 1, 2, 1), "expected queries from 0 to 3, found 2 to 1.");
  recording.layers[1].heads[1].key = {};
  EXPECT_THAT(refusal(0, 4, 1, 0, 1), HasSubstr("has no queries and keys"));
}

TEST(Recording, ThatFitsTogetherIsAccepted)
{
  CheckRecording(Make(), "file");
  CheckRecording(Recording{ "", AttentionMask::Causal, {}, false, WeightProcessing::Unknown, 0, {},
                   { 0 }, {}, {}, {} },
    "file");
}

/// A change of a recording, and the expected message.
struct Damage
{
  const char* name;
  std::function<void(Recording&)> change;
  const char* message;
};

void PrintTo(const Damage& damage, std::ostream* stream)
{
  *stream << damage.name;
}

class DamagedRecording : public testing::TestWithParam<Damage>
{
};

RecordedHead& LastHead(Recording& recording)
{
  return recording.layers[1].heads[1];
}

INSTANTIATE_TEST_SUITE_P(, DamagedRecording,
  testing::Values(Damage{ "Dimension",
                    [](Recording& r)
                    {
                      LastHead(r).query = SharedMatrix::Zero(10, 4);
                      LastHead(r).key = LastHead(r).query;
                    },
                    "file: layer 4, head 1: query: expected shape [10, 5], found [10, 4]." },
    Damage{ "KeyDimension", [](Recording& r) { LastHead(r).key = SharedMatrix::Zero(10, 4); },
      "file: layer 4, head 1: key: expected shape [10, 5], found [10, 4]." },
    Damage{ "Rows", [](Recording& r) { LastHead(r).key = SharedMatrix::Zero(9, 5); },
      "layer 4, head 1: key: expected a row for each of the 10 tokens, found shape [9, 5]." },
    Damage{ "QueriesAlone", [](Recording& r) { LastHead(r).key = {}; },
      "layer 4, head 1: expected both queries and keys or neither, found queries alone." },
    Damage{ "OneValue", [](Recording& r) { LastHead(r).value = SharedMatrix::Zero(10, 5); },
      "layer 4, head 1: value: expected to be recorded in all heads or in none." },
    Damage{ "Heads", [](Recording& r) { r.layers[1].heads.pop_back(); },
      "layer 4: expected 2 as in layer 1, found 1." },
    Damage{ "LayerOrder", [](Recording& r) { r.layers[1].index = 1; },
      "layer 1: expected layers in ascending order and below 5." },
    Damage{ "LayerBeyond", [](Recording& r) { r.layers[1].index = 5; },
      "layer 5: expected layers in ascending order and below 5." },
    Damage{ "Slopes", [](Recording& r) { r.alibiSlopes = { 1 }; },
      "layer 1: expected 2 ALiBi slopes, found 1." },
    Damage{ "Positions", [](Recording& r) { r.tokens.position.pop_back(); },
      "expected a position for each of the 10 tokens, found 9." },
    Damage{ "Text", [](Recording& r) { r.tokens.text = { "a" }; },
      "expected a token text for each of the 10 tokens, found 1." },
    Damage{ "Offsets", [](Recording& r) { r.sequenceOffsets.back() = 11; },
      "increase from 0 to the number of tokens, 10, found [0, 3, 4, 11]." },
    Damage{
      "FallingOffsets", [](Recording& r) { r.sequenceOffsets[1] = 5; }, "found [0, 5, 4, 10]." },
    Damage{ "Sequence", [](Recording& r) { r.tokens.sequence[3] = 0; },
      "token 3: expected sequence 1, found 0." },
    Damage{ "Residuals", [](Recording& r) { r.residual.resize(5); },
      "expected 6 residuals, one more than layers, found 5." },
    Damage{ "Residual",
      [](Recording& r)
      {
        r.residual.resize(6);
        r.residual[1] = SharedMatrix::Zero(10, 7);
        r.residual[3] = SharedMatrix::Zero(10, 8);
      },
      "residual 3: expected shape [10, 7], found [10, 8]." },
    Damage{ "Logits", [](Recording& r) { r.logits = SharedMatrix::Zero(3, 7); },
      "logits: expected a row for each of the 10 tokens, found shape [3, 7]." }),
  [](const auto& damage) { return std::string(damage.param.name); });

TEST_P(DamagedRecording, IsRefused)
{
  Recording recording = Make();
  GetParam().change(recording);
  EXPECT_THAT(MessageOf<ModelError>([&] { CheckRecording(recording, "file"); }),
    testing::AllOf(testing::StartsWith("file: "), HasSubstr(GetParam().message)));
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

}
