#include "Analysis/HeadPatterns.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "LongRecording.h"
#include "Oracle.h"
#include "OracleFile.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

constexpr std::array<std::pair<const char*, HeadPattern>, 3> Patterns = { {
  { "previous", HeadPattern::PreviousToken },
  { "duplicate", HeadPattern::DuplicateToken },
  { "induction", HeadPattern::Induction },
} };

/// The order of the last axis of the oracle's scores.
constexpr std::array<PatternOptions, 4> Exclusions = { { { false, false }, { true, false },
  { false, true }, { true, true } } };

/// Attention of a small transformer on 15 random tokens, twice, and what an independent program
/// made of it (Testing/Oracle/analysis/README.md, B).
class OfHeads : public testing::TestWithParam<std::string>
{
protected:
  OracleFile Expected{ "analysis/" + GetParam() + ".heads.safetensors" };

  std::vector<double> Values(const std::string& name) const
  {
    return this->Expected.Values("heads." + name);
  }

  Recording MakeRecording() const
  {
    const TensorView& attention = this->Expected.Tensors().at("heads.attention");
    const std::int64_t length = attention.shape[2];
    const std::vector<double> values = attention.ToDouble();
    Recording recording;
    recording.layerCount = static_cast<std::int32_t>(attention.shape[0]);
    recording.sequenceOffsets = { 0, length };
    recording.tokens.sequence.assign(length, 0);
    recording.tokens.position.resize(length);
    std::iota(recording.tokens.position.begin(), recording.tokens.position.end(), 0);
    recording.tokens.id = this->Expected.Integers("heads.ids");
    auto next = values.begin();
    for (std::int32_t layer = 0; layer < recording.layerCount; ++layer)
    {
      recording.layers.push_back({ layer, 1, {} });
      for (std::int64_t head = 0; head < attention.shape[1]; ++head)
      {
        SharedMatrix weights = SharedMatrix::Zero(length, length);
        std::transform(next, next + length * length, weights.Row(0),
          [](double value) { return static_cast<float>(value); });
        next += length * length;
        recording.layers.back().heads.emplace_back();
        recording.layers.back().heads.back().weights = { weights };
      }
    }
    return recording;
  }
};

/// The sums of all queries, in blocks.
PatternSums Measure(const Recording& recording, std::int64_t sequence, std::int64_t layer,
  std::int64_t head, const PatternOptions& options = {})
{
  const RepeatedTokens tokens(recording, sequence);
  const std::int64_t length = recording.SequenceLength(sequence);
  std::vector<float> work;
  PatternSums sums;
  for (std::int64_t begin = 0; begin < length; begin += 7)
  {
    sums.Add(MeasurePatterns(
      recording, tokens, sequence, layer, head, begin, std::min(begin + 7, length), options, work));
  }
  return sums;
}

/// Calls of(layer, head) for each head.
template<class Of>
std::vector<double> ForHeads(const Recording& recording, const Of& of)
{
  std::vector<double> all;
  for (const RecordedLayer& layer : recording.layers)
  {
    for (std::size_t head = 0; head < layer.heads.size(); ++head)
    {
      const std::vector<double> values = of(layer.index, static_cast<std::int64_t>(head));
      all.insert(all.end(), values.begin(), values.end());
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(, OfHeads,
  testing::Values("gpt2", "bloom", "llama", "attn-only", "attn-only-shortformer"),
  atlas::test::OracleTest::Name);

TEST_P(OfHeads, MulAndAbs)
{
  const Recording recording = this->MakeRecording();
  for (const auto& [name, pattern] : Patterns)
  {
    const auto scores = [&, wanted = pattern](PatternMeasure measure)
    {
      return ForHeads(recording,
        [&](std::int64_t layer, std::int64_t head)
        {
          std::vector<double> values;
          for (const PatternOptions& options : Exclusions)
          {
            values.push_back(Measure(recording, 0, layer, head, options).Score(wanted, measure));
          }
          return values;
        });
    };
    const std::string prefix = name;
    const bool isPrevious = pattern == HeadPattern::PreviousToken;
    std::vector<double> mul = scores(PatternMeasure::Mul);
    std::vector<double> exact = scores(PatternMeasure::Abs);
    constexpr double queries = 30;
    for (std::size_t i = 0; i < mul.size() && isPrevious; ++i)
    {
      // The original counts the first query, whose attention is 1, unless its only key is excluded.
      const double first = i % Exclusions.size() == 0 ? 1 : 0;
      mul[i] *= first > 0 ? (queries - 1) / queries : 1;
      exact[i] = 1 - ((1 - exact[i]) * (queries - 1) + first) / queries;
    }
    ExpectClose(prefix + ".mul", mul, this->Values(prefix + ".mul"), 1e-6);
    ExpectClose(prefix + ".abs_exact", exact, this->Values(prefix + ".abs_exact"), 1e-6);
    for (double& score : exact)
    {
      score = 1 - std::round((1 - score) * 1000) / 1000; // as TransformerLens rounds
    }
    ExpectClose(prefix + ".abs", exact, this->Values(prefix + ".abs"), 1e-6);
  }
}

TEST_P(OfHeads, Stripes)
{
  const Recording recording = this->MakeRecording();
  EXPECT_EQ(RepeatedTokens(recording, 0).Period(), 15);
  const auto stripes = [&](std::int64_t layer, std::int64_t head)
  {
    const PatternSums sums = Measure(recording, 0, layer, head, { true, true });
    std::vector<double> scores;
    for (const auto& [name, pattern] : Patterns)
    {
      scores.push_back(sums.Score(pattern, PatternMeasure::Stripe));
    }
    return scores;
  };
  ExpectClose("stripe", ForHeads(recording, stripes), this->Values("stripe"), 1e-6);
}

/// The most direct way, from the attention of the oracle in double.
TEST_P(OfHeads, PrefixMatchingAndSink)
{
  const Recording recording = this->MakeRecording();
  const std::vector<double> attention = this->Values("attention");
  const std::vector<std::int64_t>& ids = recording.tokens.id;
  std::vector<double> expected;
  for (std::size_t head = 0; head < 8; ++head)
  {
    double prefix = 0;
    double sink = 0;
    int queries = 0;
    for (std::size_t i = 0; i < 30; ++i)
    {
      const double* row = attention.data() + (head * 30 + i) * 30;
      bool isRepeated = false;
      for (std::size_t j = 1; j <= i; ++j)
      {
        prefix += ids[j - 1] == ids[i] ? row[j] : 0;
        isRepeated = isRepeated || ids[j - 1] == ids[i];
      }
      queries += isRepeated ? 1 : 0;
      sink += i > 0 ? row[0] : 0;
    }
    expected.insert(expected.end(), { prefix / queries, sink / 29 });
  }
  const auto scores = [&](std::int64_t layer, std::int64_t head)
  {
    const PatternSums sums = Measure(recording, 0, layer, head, { true, true });
    return std::vector<double>{ sums.PrefixMatching(), sums.Sink() };
  };
  ExpectClose("prefix and sink", ForHeads(recording, scores), expected, 1e-6);
}

RepeatedTokens TokensOf(const std::vector<std::int64_t>& ids)
{
  Recording recording = LongRecording(ids.size());
  recording.tokens.id = ids;
  return { recording, 0 };
}

TEST(RepeatedTokens, KnowTheirPeriod)
{
  using Period = std::pair<std::int64_t, std::int64_t>;
  const auto periodOf = [](const std::vector<std::int64_t>& ids)
  {
    const RepeatedTokens tokens = TokensOf(ids);
    return Period(tokens.First(), tokens.Period());
  };
  EXPECT_EQ(periodOf({ 1, 2, 3, 1, 2, 3 }), Period(0, 3));
  EXPECT_EQ(periodOf({ 9, 1, 2, 3, 1, 2, 3 }), Period(1, 3));
  EXPECT_EQ(periodOf({ 1, 2, 3, 1, 2, 3, 1 }), Period(0, 3));
  EXPECT_EQ(periodOf({ 1, 2, 3, 1, 2 }), Period(0, 0)); // not twice
  EXPECT_EQ(periodOf({ 1, 2, 3, 1, 2, 4 }), Period(0, 0));
  EXPECT_EQ(periodOf({ 5, 5, 5 }), Period(0, 1));
  EXPECT_EQ(periodOf({ 5 }), Period(0, 0));
}

TEST(RepeatedTokens, AreThoseOfTheSameIdOrText)
{
  const RepeatedTokens tokens = TokensOf({ 4, 7, 4, 4, 7 });
  EXPECT_TRUE(tokens.AreKnown());
  std::vector<std::int64_t> before;
  for (std::int64_t i = 0; i < 5; ++i)
  {
    before.push_back(tokens.Before(i));
  }
  EXPECT_THAT(before, testing::ElementsAre(-1, -1, 0, 2, 1));
  Recording recording = LongRecording(2);
  EXPECT_FALSE(RepeatedTokens(recording, 0).AreKnown());
  EXPECT_EQ(RepeatedTokens(recording, 0).Before(1), -1);
  recording.tokens.text = { "a", "a" };
  EXPECT_EQ(RepeatedTokens(recording, 0).Before(1), 0);
  EXPECT_THAT(MessageOf<OptionError>([&] { RepeatedTokens(recording, 1); }),
    testing::HasSubstr("from 0 to 0, found 1"));
}

/// A source of the tokens 5 7 5 and a target of 7 5 9, with weights that were given.
Recording Translated(const std::vector<std::int64_t>& ids)
{
  Recording recording = LongRecording(6);
  recording.mask = AttentionMask::Cross;
  recording.sourceLengths = { 3 };
  recording.tokens.id = ids;
  SharedMatrix weights = SharedMatrix::Zero(6, 6);
  const std::vector<float> rows = { 0.25F, 0.5F, 0.25F, 0.5F, 0.125F, 0.375F, 0, 1, 0 };
  for (std::size_t i = 0; i < 3; ++i)
  {
    std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(3 * i), 3,
      weights.Row(3 + static_cast<std::int64_t>(i)));
  }
  recording.layers.front().heads[0].weights = { weights };
  return recording;
}

TEST(HeadPatterns, OfCrossAttentionAreCopiesAndTheSink)
{
  const Recording recording = Translated({ 5, 7, 5, 7, 5, 9 });
  const auto measure = [&](const PatternOptions& options)
  {
    const RepeatedTokens tokens(recording, 0);
    std::vector<float> work;
    PatternSums sums = MeasurePatterns(recording, tokens, 0, 1, 0, 3, 5, options, work);
    sums.Add(MeasurePatterns(recording, tokens, 0, 1, 0, 5, 6, options, work));
    return sums;
  };
  const PatternSums all = measure({});
  // 7 has the weight 0.5 on itself, 5 has 0.5 and 0.375, 9 is not in the source.
  EXPECT_EQ(all.Score(HeadPattern::DuplicateToken, PatternMeasure::Mul), 1.375 / 3);
  // |A - D|: 0.25 + 0.5 + 0.25, 0.5 + 0.125 + 0.625, 1
  EXPECT_EQ(all.Score(HeadPattern::DuplicateToken, PatternMeasure::Abs), 1 - 3.25 / 3);
  EXPECT_EQ(all.Sink(), 0.75 / 3);
  Recording labeled = recording; // with vocabularies of their own, in which 5 and 8 are a
  labeled.tokens.id = { 5, 7, 5, 6, 8, 5 };
  labeled.tokens.text = { "a", "b", "a", "b", "a", "c" };
  const RepeatedTokens texts(labeled, 0);
  std::vector<float> work;
  EXPECT_EQ(MeasurePatterns(labeled, texts, 0, 1, 0, 3, 6, {}, work)
              .Score(HeadPattern::DuplicateToken, PatternMeasure::Mul),
    all.Score(HeadPattern::DuplicateToken, PatternMeasure::Mul));
  const PatternSums rest = measure({ true, true });
  EXPECT_EQ(rest.Score(HeadPattern::DuplicateToken, PatternMeasure::Mul), 0.875 / 2.25);
  EXPECT_EQ(rest.Sink(), all.Sink());
}

TEST(HeadPatterns, OfSoundAreNoCopies)
{
  const Recording sound = Translated({ -1, -1, -1, 7, 5, 7 });
  const RepeatedTokens tokens(sound, 0);
  EXPECT_FALSE(tokens.AreKnown());
  EXPECT_EQ(tokens.Before(5), -1);
  std::vector<float> work;
  EXPECT_EQ(MeasurePatterns(sound, tokens, 0, 1, 0, 3, 6, {}, work).Sink(), 0.25);
}

TEST(HeadPatterns, OneTokenHasNoScores)
{
  Recording recording = LongRecording(1);
  recording.tokens.id = { 3 };
  const PatternSums sums = Measure(recording, 0, 1, 0, { true, true });
  for (const auto& [name, pattern] : Patterns)
  {
    EXPECT_EQ(sums.Score(pattern, PatternMeasure::Mul), 0);
    // The first query does not count for the previous token.
    const double isCounted = pattern == HeadPattern::PreviousToken ? 0 : 1;
    EXPECT_EQ(sums.Score(pattern, PatternMeasure::Abs), isCounted);
    EXPECT_EQ(sums.Score(pattern, PatternMeasure::Stripe), 0);
  }
  EXPECT_EQ(sums.PrefixMatching(), 0);
  EXPECT_EQ(sums.Sink(), 0);
  EXPECT_EQ(PatternSums().Score(HeadPattern::Induction, PatternMeasure::Abs), 0);
}

}
