#include "Recording/SentenceAttention.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "LongRecording.h"
#include "StoredWeights.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

/// A sequence of one token, and one of four.
Recording Make(const std::vector<float>& values)
{
  return StoredWeights({ { 1 }, values });
}

// Sums of powers of 2, so that all results are exact.
const std::vector<float> SentenceWeights = { 1, 0, 0, 0, //
  0.5F, 0.5F, 0, 0,                                      //
  0.5F, 0.25F, 0.125F, 0.125F,                           //
  0.75F, 0, 0.125F, 0.125F };

SentenceOptions Whole()
{
  SentenceOptions options;
  options.sequence = 1;
  options.queries = options.keys = { 0, 4 };
  return options;
}

SentenceAttention Evaluate(const SentenceOptions& options, const std::vector<float>& values)
{
  SentenceAttention result;
  EvaluateSentence(Make(values), options, result, 1);
  return result;
}

TEST(SentenceAttention, HasALinePerWeight)
{
  const SentenceAttention all = Evaluate(Whole(), SentenceWeights);
  EXPECT_THAT(LinksOf(all.lines),
    ElementsAre(Link(0, 0, 1), Link(1, 0, 0.5F), Link(1, 1, 0.5F), Link(2, 0, 0.5F),
      Link(2, 1, 0.25F), Link(2, 2, 0.125F), Link(2, 3, 0.125F), Link(3, 0, 0.75F),
      Link(3, 2, 0.125F), Link(3, 3, 0.125F)));
  EXPECT_THAT(all.given, ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(all.received, ElementsAre(2.75, 0.75, 0.25, 0.25));
  EXPECT_EQ(all.largest, 1);
}

/// What is below the threshold has no line, but counts.
TEST(SentenceAttention, ThresholdIsOfLinesAlone)
{
  SentenceOptions options = Whole();
  options.threshold = 0.5;
  const SentenceAttention strong = Evaluate(options, SentenceWeights);
  EXPECT_THAT(LinksOf(strong.lines), ElementsAre(Link(0, 0, 1), Link(1, 0, 0.5F), Link(1, 1, 0.5F),
                                       Link(2, 0, 0.5F), Link(3, 0, 0.75F)));
  EXPECT_THAT(strong.received, ElementsAre(2.75, 0.75, 0.25, 0.25));
}

TEST(SentenceAttention, RangeIsOfLinesAlone)
{
  SentenceOptions options = Whole();
  options.queries = options.keys = { 1, 3 };
  const SentenceAttention part = Evaluate(options, SentenceWeights);
  EXPECT_THAT(
    LinksOf(part.lines), ElementsAre(Link(1, 1, 0.5F), Link(2, 1, 0.25F), Link(2, 2, 0.125F)));
  EXPECT_THAT(part.received, ElementsAre(2.75, 0.75, 0.25, 0.25));
  EXPECT_THAT(part.given, ElementsAre(1, 1, 1, 1));
}

/// The rest of each row is divided by its sum.
TEST(SentenceAttention, HiddenTokensLeaveOne)
{
  SentenceOptions options = Whole();
  options.hidden = { true, false, false, false };
  const SentenceAttention rest = Evaluate(options, SentenceWeights);
  EXPECT_THAT(LinksOf(rest.lines), ElementsAre(Link(1, 1, 1), Link(2, 1, 0.5F), Link(2, 2, 0.25F),
                                     Link(2, 3, 0.25F), Link(3, 2, 0.5F), Link(3, 3, 0.5F)));
  EXPECT_THAT(rest.given, ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(rest.received, ElementsAre(0, 1.5, 0.75, 0.75));

  options.renormalize = false;
  const SentenceAttention plain = Evaluate(options, SentenceWeights);
  EXPECT_THAT(plain.given, ElementsAre(0, 0.5, 0.5, 0.25));
  EXPECT_THAT(plain.received, ElementsAre(0, 0.75, 0.25, 0.25));

  options.hidden = { true, true, true, true };
  const SentenceAttention none = Evaluate(options, SentenceWeights);
  EXPECT_THAT(none.lines, IsEmpty());
  EXPECT_THAT(none.given, ElementsAre(0, 0, 0, 0));
}

/// A query that attends to hidden tokens alone has no lines, and no NaN.
TEST(SentenceAttention, NothingIsLeftOfSomeQueries)
{
  SentenceOptions options = Whole();
  options.hidden = { true, false, false, false };
  std::vector<float> values = SentenceWeights;
  values[4] = 1;
  values[5] = 0;
  const SentenceAttention rest = Evaluate(options, values);
  EXPECT_THAT(rest.given, ElementsAre(0, 0, 1, 1));
}

/// A sink keeps its share when keys are hidden: the rest is what the softmax gives without them.
TEST(SentenceAttention, HiddenTokensLeaveTheSinkItsShare)
{
  SentenceOptions options = Whole();
  options.hidden = { true, false, false, false };
  std::vector<float> values = SentenceWeights;
  values[8] = 0.25F; // of query 2 the sink has a quarter
  Recording recording = Make(values);
  recording.layers[0].sinks = { 1 };
  SentenceAttention rest;
  EvaluateSentence(recording, options, rest, 1);
  EXPECT_NEAR(rest.given[2], 0.5 / 0.75, 1e-7); // 0.5 of the keys and 0.25 of the sink are left
  EXPECT_NEAR(rest.given[1], 1, 1e-7);          // nothing of this query is the sink's
  EXPECT_NEAR(rest.given[3], 1, 1e-7);

  // By the softmax itself.
  Recording scored = Make(values);
  SharedMatrix scores = SharedMatrix::Zero(4, 4);
  for (std::int64_t i = 0; i < 16; ++i)
  {
    scores.values.get()[i] = static_cast<float>(i % 5) - 1;
  }
  scored.layers[0].heads[0].weights.clear();
  scored.layers[0].heads[0].scores = { SharedMatrix::Zero(1, 1), scores };
  scored.layers[0].sinks = { 0.5F };
  EvaluateSentence(scored, options, rest, 1);
  for (std::size_t i = 1; i < 4; ++i)
  {
    double sum = 0;
    for (std::int64_t j = 1; j < 4; ++j)
    {
      sum += std::exp(static_cast<double>(scores.Row(static_cast<std::int64_t>(i))[j]));
    }
    EXPECT_NEAR(rest.given[i], sum / (sum + std::exp(0.5)), 1e-6);
  }
}

/// With random weights: sums of 1, whatever is hidden.
TEST(SentenceAttention, RandomRowsAddUpToOne)
{
  std::mt19937 generator(3);
  for (int trial = 0; trial < 20; ++trial)
  {
    std::vector<float> values(16);
    for (float& value : values)
    {
      value = static_cast<float>(generator() % 1000 + 1) / 4000;
    }
    SentenceOptions options = Whole();
    options.hidden = { generator() % 2 == 0, generator() % 2 == 0, false, generator() % 2 == 0 };
    if (std::count(options.hidden.begin(), options.hidden.end(), true) == 0)
    {
      continue;
    }
    const SentenceAttention rest = Evaluate(options, values);
    for (std::size_t i = 0; i < 4; ++i)
    {
      EXPECT_NEAR(rest.given[i], options.hidden[i] ? 0 : 1, 2e-7); // roundings of four floats
    }
  }
}

TEST(SentenceAttention, ChosenTokensAreSummed)
{
  SentenceOptions options = Whole();
  options.chosen = { false, true, true, false };
  const SentenceAttention queries = Evaluate(options, SentenceWeights);
  EXPECT_THAT(
    LinksOf(queries.lines), ElementsAre(Link(1, 0, 0.5F), Link(1, 1, 0.5F), Link(2, 0, 0.5F),
                              Link(2, 1, 0.25F), Link(2, 2, 0.125F), Link(2, 3, 0.125F)));
  EXPECT_THAT(queries.received, ElementsAre(1, 0.75, 0.125, 0.125));
  EXPECT_THAT(queries.given, ElementsAre(0, 1, 1, 0));

  options.chosenSide = TokenSide::Key;
  const SentenceAttention keys = Evaluate(options, SentenceWeights);
  EXPECT_THAT(LinksOf(keys.lines),
    ElementsAre(Link(1, 1, 0.5F), Link(2, 1, 0.25F), Link(2, 2, 0.125F), Link(3, 2, 0.125F)));
  EXPECT_THAT(keys.given, ElementsAre(0, 0.5, 0.375, 0.125));
  EXPECT_THAT(keys.received, ElementsAre(0, 0.75, 0.25, 0));

  options.chosen = { false, false, false, false };
  EXPECT_THAT(Evaluate(options, SentenceWeights).lines, IsEmpty());
}

TEST(SentenceAttention, OfOneToken)
{
  SentenceOptions options;
  options.queries = options.keys = { 0, 1 };
  const SentenceAttention one = Evaluate(options, SentenceWeights);
  EXPECT_THAT(LinksOf(one.lines), ElementsAre(Link(0, 0, 1)));
  EXPECT_THAT(one.received, ElementsAre(1));
}

TEST(SentenceAttention, OfAnEmptySequence)
{
  const Recording recording = StoredWeights({ { 1 }, SentenceWeights, {} });
  SentenceOptions options;
  options.sequence = 2;
  SentenceAttention result;
  EvaluateSentence(recording, options, result, 1);
  EXPECT_THAT(result.lines, IsEmpty());
  EXPECT_THAT(result.given, IsEmpty());
}

/// Queries and keys with large scores, so that some weights are large.
Recording Long(std::int64_t tokens)
{
  return LongRecording(tokens, { 0 }, 1, 8, 6);
}

SentenceOptions OfLong(std::int64_t tokens, double threshold)
{
  SentenceOptions options;
  options.queries = options.keys = { 0, tokens };
  options.threshold = threshold;
  options.hidden.resize(tokens);
  options.hidden[7] = true;
  return options;
}

/// Several steps and blocks: by a loop over all weights, and on one thread as on three.
TEST(SentenceAttention, OfLongSequences)
{
  constexpr std::int64_t tokens = 5000; // more weights than a step
  const Recording recording = Long(tokens);
  const SentenceOptions options = OfLong(tokens, 0.2);
  SentenceAttention result;
  int reports = 0;
  EvaluateSentence(recording, options, result, 3, [&](double) { ++reports; });
  EXPECT_GT(reports, 1);
  std::vector<double> received(tokens);
  std::vector<Link> lines;
  std::vector<float> row(tokens);
  for (std::int64_t query = 4900; query < tokens; ++query)
  {
    EvaluateAttention(recording, 0, 0, 0, AttentionQuantity::Weights, query, query + 1, row.data());
    row[7] = 0;
    const double sum = std::accumulate(row.begin(), row.end(), 0.0);
    for (std::int64_t key = 0; key < tokens; ++key)
    {
      const double weight = static_cast<double>(row[key]) / sum;
      if (weight >= 0.2)
      {
        lines.emplace_back(query, key, static_cast<float>(weight));
      }
    }
  }
  const std::vector<Link> all = LinksOf(result.lines);
  const std::vector<Link> found(
    std::lower_bound(all.begin(), all.end(), Link(4900, 0, 0)), all.end());
  ASSERT_THAT(found, SizeIs(lines.size()));
  for (std::size_t i = 0; i < lines.size(); ++i)
  {
    EXPECT_EQ(std::get<0>(found[i]), std::get<0>(lines[i]));
    EXPECT_EQ(std::get<1>(found[i]), std::get<1>(lines[i]));
    EXPECT_NEAR(std::get<2>(found[i]), std::get<2>(lines[i]), 2e-6F); // blocks round otherwise
  }
  SentenceAttention alone;
  EvaluateSentence(recording, options, alone, 1);
  EXPECT_EQ(LinksOf(alone.lines), LinksOf(result.lines));
  EXPECT_EQ(alone.received, result.received);
  EXPECT_EQ(alone.given, result.given);
}

TEST(SentenceAttention, AnotherPageHasTheSameLinesAndSums)
{
  constexpr std::int64_t tokens = 5000;
  const Recording recording = Long(tokens);
  SentenceOptions options = OfLong(tokens, 0.001);
  SentenceAttention whole;
  EvaluateSentence(recording, options, whole, 1);

  for (const KeyRange& queries : { KeyRange{ 3001, 3050 }, { 4990, 6000 }, { 60, 70 }, { 8, 8 } })
  {
    options.queries = queries;
    SentenceAttention page;
    EvaluateSentence(recording, options, page, 1);
    SentenceAttention next;
    EvaluateSentence(recording, options, next, 2, {}, &whole);
    EXPECT_EQ(LinksOf(next.lines), LinksOf(page.lines)); // to the last bit
    EXPECT_EQ(next.given, whole.given);
    EXPECT_EQ(next.received, whole.received);
    EXPECT_EQ(next.largest, whole.largest);
  }
}

TEST(SentenceAttention, CanBeCanceled)
{
  SentenceAttention result;
  EXPECT_THROW(
    EvaluateSentence(Make(SentenceWeights), Whole(), result, 1, [](double) { throw Canceled(); }),
    Canceled);
}

TEST(SentenceAttention, KnowsCausalWeights)
{
  Recording recording = Make(SentenceWeights);
  EXPECT_FALSE(IsCausal(recording, 0));
  recording.mask = AttentionMask::Causal;
  EXPECT_TRUE(IsCausal(recording, 0));
  EXPECT_FALSE(IsCausal(recording, 1)); // whatever the mask says
  EXPECT_FALSE(IsCausal(recording, AllSequences));
  EXPECT_TRUE(IsCausal(Long(10), 0));
}

TEST(SentenceAttention, NamesWhatIsWrong)
{
  const auto message = [](const SentenceOptions& options)
  { return MessageOf<OptionError>([&] { Evaluate(options, SentenceWeights); }); };
  const auto expect = [&](const std::function<void(SentenceOptions&)>& change, const char* text)
  {
    SentenceOptions options = Whole();
    change(options);
    EXPECT_THAT(message(options), HasSubstr(text));
  };
  using Options = SentenceOptions;
  expect([](Options& o) { o.threshold = -0.5; }, "Threshold: expected a weight of at least 0");
  expect([](Options& o) { o.hidden = { true }; }, "a flag for each of 4 tokens, found 1");
  expect([](Options& o) { o.sequence = 2; }, "expected a sequence");
  expect([](Options& o) { o.head = 1; }, "a head from 0 to 0, found 1");
  expect([](Options& o) { o.layer = 3; }, "layer 3");
  expect([](Options& o) { o.quantity = AttentionQuantity::NormWeighted; }, "no value norms");
}

}
