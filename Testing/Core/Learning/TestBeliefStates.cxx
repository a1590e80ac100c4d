#include "Learning/BeliefStates.h"

#include "TaskModel.h"

#include <cmath>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

/// The matrices as they stand in Shai et al. 2024, with beta = (1 - alpha) / 2 and y = 1 - 2 x.
std::vector<std::vector<std::vector<double>>> PublishedMatrices(double a, double x)
{
  const double b = (1 - a) / 2;
  const double y = 1 - 2 * x;
  return { { { a * y, b * x, b * x }, { a * x, b * y, b * x }, { a * x, b * x, b * y } },
    { { b * y, a * x, b * x }, { b * x, a * y, b * x }, { b * x, a * x, b * y } },
    { { b * y, b * x, a * x }, { b * x, b * y, a * x }, { b * x, b * x, a * y } } };
}

TEST(Mess3, HasThePublishedTransitions)
{
  const Mess3 process;
  EXPECT_EQ(process.alpha, 0.85);
  EXPECT_EQ(process.x, 0.05);
  const auto matrices = PublishedMatrices(0.85, 0.05);
  for (std::size_t i = 0; i < 3; ++i)
  {
    double row = 0;
    double column = 0; // the stationary distribution is uniform
    for (std::size_t symbol = 0; symbol < 3; ++symbol)
    {
      for (std::size_t j = 0; j < 3; ++j)
      {
        EXPECT_NEAR(process.Transition(static_cast<std::int64_t>(symbol),
                      static_cast<std::int64_t>(i), static_cast<std::int64_t>(j)),
          matrices[symbol][i][j], 1e-15);
        row += matrices[symbol][i][j];
        column += matrices[symbol][j][i];
      }
    }
    EXPECT_NEAR(row, 1, 1e-15);
    EXPECT_NEAR(column, 1, 1e-15);
  }
}

/// The probability of symbols with a last hidden state, by adding up all hidden paths.
double PathSum(const std::vector<std::int64_t>& symbols, std::int64_t last)
{
  const auto matrices = PublishedMatrices(0.85, 0.05);
  const auto length = static_cast<int>(symbols.size());
  double sum = 0;
  const int paths = static_cast<int>(std::lround(std::pow(3, length + 1)));
  for (int path = 0; path < paths; ++path)
  {
    double probability = 1. / 3;
    int rest = path;
    int state = rest % 3;
    for (const std::int64_t symbol : symbols)
    {
      rest /= 3;
      probability *= matrices[symbol][state][rest % 3];
      state = rest % 3;
    }
    sum += state == last ? probability : 0;
  }
  return sum;
}

double PathSum(const std::vector<std::int64_t>& symbols)
{
  return PathSum(symbols, 0) + PathSum(symbols, 1) + PathSum(symbols, 2);
}

TEST(BeliefStates, AreThoseOfAllPaths)
{
  const std::vector<std::int64_t> symbols = { 0, 0, 2, 1, 1, 0 };
  const std::vector<Belief> beliefs = BeliefsAfter({}, symbols);
  const std::vector<double> losses = OptimalLosses({}, symbols);
  ASSERT_EQ(beliefs.size(), symbols.size());
  ASSERT_EQ(losses.size(), symbols.size() - 1);
  for (std::size_t i = 0; i < symbols.size(); ++i)
  {
    const std::vector<std::int64_t> prefix(
      symbols.begin(), symbols.begin() + static_cast<std::ptrdiff_t>(i + 1));
    for (std::size_t state = 0; state < 3; ++state)
    {
      EXPECT_NEAR(beliefs[i][state],
        PathSum(prefix, static_cast<std::int64_t>(state)) / PathSum(prefix), 1e-12);
    }
    if (i > 0)
    {
      const std::vector<std::int64_t> before(prefix.begin(), prefix.end() - 1);
      EXPECT_NEAR(losses[i - 1], -std::log(PathSum(prefix) / PathSum(before)), 1e-12);
      EXPECT_NEAR(
        NextSymbol({}, beliefs[i - 1])[symbols[i]], PathSum(prefix) / PathSum(before), 1e-12);
    }
  }
  EXPECT_TRUE(BeliefsAfter({}, {}).empty());
  EXPECT_TRUE(OptimalLosses({}, { 1 }).empty());
}

/// Symbols of the task have the probabilities of the process: all pairs and triples of symbols.
TEST(BeliefStatesTask, DrawsTheProcess)
{
  constexpr std::int64_t count = 40000;
  TaskOptions options = OptionsOf(TaskKind::BeliefStates, 5);
  options.context = 6;
  const TrainingBatch batch = MakeTask(options)->MakeBatch(0, count);
  std::vector<double> first(27);
  std::vector<double> last(27);
  for (std::size_t s = 0; s < count; ++s)
  {
    const std::vector<std::int64_t>& tokens = batch.input.tokens[s];
    ++first[9 * tokens[0] + 3 * tokens[1] + tokens[2]];
    const std::int64_t target = batch.targets[6 * s + 5];
    ++last[9 * tokens[4] + 3 * tokens[5] + target];
  }
  for (std::int64_t code = 0; code < 27; ++code)
  {
    const double probability = PathSum({ code / 9, code / 3 % 3, code % 3 });
    const double error = 5 * std::sqrt(count * probability);
    EXPECT_NEAR(first[code], count * probability, error);
    EXPECT_NEAR(last[code], count * probability, error);
  }
}

/// Beliefs that are a linear function of the rows are found, whatever else the rows hold.
TEST(BeliefRegression, FindsALinearMap)
{
  const std::vector<std::int64_t> symbols = { 0, 1, 1, 2, 0, 0, 0, 2, 2, 1, 0, 2, 1, 1 };
  const std::vector<Belief> beliefs = BeliefsAfter({}, symbols);
  std::vector<float> rows;
  for (std::size_t i = 0; i < beliefs.size(); ++i)
  {
    rows.push_back(static_cast<float>(3 * beliefs[i][0] - beliefs[i][1] + 7));
    rows.push_back(static_cast<float>(beliefs[i][1]));
    rows.push_back(5);                                              // constant
    rows.push_back(static_cast<float>(2 * beliefs[i][1] + 1));      // depends on another
    rows.push_back(i % 3 == 0 ? 1.F : static_cast<float>(i) / 4.F); // something else
  }
  const BeliefRegression found = RegressBeliefs(beliefs, rows.data(), 5);
  EXPECT_NEAR(found.r2, 1, 1e-8);
  EXPECT_EQ(found.beliefs, beliefs);
  for (std::size_t i = 0; i < beliefs.size(); ++i)
  {
    for (std::size_t state = 0; state < 3; ++state)
    {
      EXPECT_NEAR(found.predicted[i][state], beliefs[i][state], 1e-5);
    }
  }
}

/// One number per row that tells two groups apart: each is predicted by its mean.
TEST(BeliefRegression, PredictsTheMeansOfGroups)
{
  const std::vector<Belief> beliefs = { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 }, { 0.5, 0.5, 0 } };
  const std::vector<float> rows = { -1, -1, 4, 4 };
  const BeliefRegression found = RegressBeliefs(beliefs, rows.data(), 1);
  const Belief low = { 0.5, 0.5, 0 };
  const Belief high = { 0.25, 0.25, 0.5 };
  for (std::size_t state = 0; state < 3; ++state)
  {
    EXPECT_NEAR(found.predicted[1][state], low[state], 1e-12);
    EXPECT_NEAR(found.predicted[2][state], high[state], 1e-12);
  }
  // Squares: within groups 1 + 0.75; of all from their mean (3/8, 3/8, 1/4) 2.5 - 4 * 0.34375.
  EXPECT_NEAR(
    found.r2, 1 - (0.5 + 0.5 + 2 * (0.0625 + 0.0625 + 0.25)) / (3.5 - 4 * 0.34375), 1e-12);
  EXPECT_EQ(RegressBeliefs({}, nullptr, 4).r2, 0);
}

/// A model whose residual stream is the current symbol: the prediction is the mean belief after
/// each, and its loss is log 3.
TEST(BeliefStatesTask, MeasuresBeliefsAndExcessLoss)
{
  const auto task = MakeTask(OptionsOf(TaskKind::BeliefStates));
  EXPECT_THAT(task->MeasureNames(), testing::ElementsAre("Belief R2", "Excess Loss"));
  TaskModel model(*task, {});
  for (std::int64_t symbol = 0; symbol < 3; ++symbol)
  {
    model.Set("embed.W_E", symbol, 5 * symbol, 2);
  }
  const TrainingBatch batch = task->MakeHeldOut();
  std::vector<Belief> sums(4);
  std::vector<double> counts(4);
  double squares = 0;
  double best = 0;
  for (std::size_t s = 0; s < batch.input.tokens.size(); ++s)
  {
    std::vector<std::int64_t> symbols = batch.input.tokens[s];
    const std::vector<Belief> beliefs = BeliefsAfter({}, symbols);
    for (std::size_t i = 0; i < symbols.size(); ++i)
    {
      for (const std::size_t group : { static_cast<std::size_t>(symbols[i]), std::size_t{ 3 } })
      {
        ++counts[group];
        for (std::size_t state = 0; state < 3; ++state)
        {
          sums[group][state] += beliefs[i][state];
        }
      }
      squares += std::inner_product(beliefs[i].begin(), beliefs[i].end(), beliefs[i].begin(), 0.);
    }
    symbols.push_back(batch.targets[10 * s + 9]);
    for (const double loss : OptimalLosses({}, symbols))
    {
      best += loss / static_cast<double>(batch.targets.size());
    }
  }
  const auto explained = [&](std::size_t group)
  {
    const Belief& sum = sums[group];
    return std::inner_product(sum.begin(), sum.end(), sum.begin(), 0.) / counts[group];
  };
  const double within = squares - explained(0) - explained(1) - explained(2);
  const std::vector<double> measures = task->Measure(model.Make(), 1);
  EXPECT_NEAR(measures[0], 1 - within / (squares - explained(3)), 1e-9);
  EXPECT_NEAR(measures[1], std::log(3.) - best, 1e-6); // the model is in single precision
  const BeliefRegression found = RegressBeliefs({}, model.Make(), batch.input.tokens, 1);
  EXPECT_NEAR(found.r2, measures[0], 1e-12);
  EXPECT_EQ(found.predicted.size(), 2560U);
}

}
