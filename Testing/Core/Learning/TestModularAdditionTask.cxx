#include "Learning/Internal/Tasks.h"
#include "TaskModel.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;

namespace
{

const double Turn = 2 * std::acos(-1.);

std::set<std::vector<std::int64_t>> PairsOf(const TrainingBatch& batch)
{
  return { batch.input.tokens.begin(), batch.input.tokens.end() };
}

TEST(ModularAdditionTask, SplitsAllPairs)
{
  const auto task = MakeTask(OptionsOf(TaskKind::ModularAddition, 2));
  const TrainingBatch trained = task->MakeBatch(0, 0);
  const TrainingBatch heldOut = task->MakeHeldOut();
  EXPECT_EQ(trained.input.tokens.size(), 1124U); // 40 % of 2809
  EXPECT_EQ(heldOut.input.tokens.size(), 1685U);
  std::set<std::vector<std::int64_t>> all = PairsOf(trained);
  all.merge(PairsOf(heldOut));
  EXPECT_EQ(all.size(), 2809U);
  for (const TrainingBatch& batch : { trained, heldOut })
  {
    for (std::size_t i = 0; i < batch.input.tokens.size(); ++i)
    {
      const std::vector<std::int64_t>& tokens = batch.input.tokens[i];
      EXPECT_EQ(tokens[2], 53);
      EXPECT_EQ(batch.targets[3 * i], -1);
      EXPECT_EQ(batch.targets[3 * i + 1], -1);
      EXPECT_EQ(batch.targets[3 * i + 2], (tokens[0] + tokens[1]) % 53);
    }
  }
}

TEST(ModularAdditionTask, SmallBatchesAreSamples)
{
  const auto task = MakeTask(OptionsOf(TaskKind::ModularAddition));
  const std::set<std::vector<std::int64_t>> all = PairsOf(task->MakeBatch(0, 0));
  const std::set<std::vector<std::int64_t>> some = PairsOf(task->MakeBatch(7, 100));
  EXPECT_EQ(some.size(), 100U);
  EXPECT_TRUE(std::includes(all.begin(), all.end(), some.begin(), some.end()));
  EXPECT_EQ(PairsOf(task->MakeBatch(7, 5000)), all);
}

TEST(ModularAdditionTask, LeavesPairsOnBothSides)
{
  TaskOptions options = OptionsOf(TaskKind::ModularAddition);
  options.vocabulary = 2;
  options.trainShare = 1e-9;
  EXPECT_EQ(MakeTask(options)->MakeBatch(0, 0).input.tokens.size(), 1U);
  options.trainShare = 1 - 1e-9;
  EXPECT_EQ(MakeTask(options)->MakeHeldOut().input.tokens.size(), 1U);
}

/// The mean, 16, is part of the whole alone.
TEST(CyclicSpectrum, TheStrongestFrequenciesAreAShare)
{
  const std::vector<double> spectrum = { 16, 0, 0, 4, 0, 0.5, 0 };
  EXPECT_DOUBLE_EQ(StrongestFrequencies(spectrum, 1), 4 / 20.5);
  EXPECT_DOUBLE_EQ(StrongestFrequencies(spectrum, 2), 4.5 / 20.5);
  EXPECT_DOUBLE_EQ(StrongestFrequencies(spectrum, 99), 4.5 / 20.5);
}

/// By the definition, also for an even number, whose highest frequency has no partner.
TEST(CyclicSpectrum, IsTheFourierTransform)
{
  for (const std::int64_t p : { 2, 8, 13 })
  {
    constexpr std::int64_t dimension = 3;
    std::vector<float> vectors;
    for (std::int64_t i = 0; i < p * dimension; ++i)
    {
      vectors.push_back(static_cast<float>((i * i * 7 + 3 * i) % 11) - 4);
    }
    std::vector<double> expected(p / 2 + 1);
    double norm = 0;
    for (std::int64_t k = 0; k < p; ++k)
    {
      for (std::int64_t c = 0; c < dimension; ++c)
      {
        std::complex<double> sum;
        for (std::int64_t a = 0; a < p; ++a)
        {
          sum += static_cast<double>(vectors[a * dimension + c]) *
                 std::polar(1., -Turn * static_cast<double>(k * a) / static_cast<double>(p));
        }
        expected[std::min(k, p - k)] += std::norm(sum) / static_cast<double>(p);
        norm += std::norm(sum) / static_cast<double>(p);
      }
    }
    const std::vector<double> spectrum = CyclicSpectrum(vectors.data(), p, dimension);
    ASSERT_EQ(spectrum.size(), expected.size());
    for (std::size_t k = 0; k < spectrum.size(); ++k)
    {
      EXPECT_NEAR(spectrum[k], expected[k], 1e-10 * norm) << p << " " << k;
    }
  }
}

TEST(CyclicSpectrum, OfNothingHasNoShares)
{
  const std::vector<float> zeros(10);
  EXPECT_EQ(StrongestFrequencies(CyclicSpectrum(zeros.data(), 5, 2), 5), 0);
}

/// Numbers on one circle; "=" must not count. The model answers 0 always.
TEST(ModularAdditionTask, MeasuresTrainAccuracyAndCircles)
{
  const auto task = MakeTask(OptionsOf(TaskKind::ModularAddition));
  TaskModel model(*task, {});
  for (std::int64_t a = 0; a < 53; ++a)
  {
    const double angle = Turn * 11 * static_cast<double>(a) / 53;
    model.Set("embed.W_E", a, 4, static_cast<float>(std::cos(angle)));
    model.Set("embed.W_E", a, 9, static_cast<float>(std::sin(angle)));
  }
  model.Set("embed.W_E", 53, 0, 100);
  const TrainingBatch batch = task->MakeBatch(0, 0);
  const auto zeros = std::count(batch.targets.begin(), batch.targets.end(), 0);
  EXPECT_THAT(task->MeasureNames(), ElementsAre("Train Accuracy", "Fourier Energy"));
  EXPECT_THAT(task->Measure(model.Make(), 1),
    ElementsAre(
      testing::DoubleNear(static_cast<double>(zeros) / 1124, 1e-12), testing::DoubleNear(1, 1e-9)));
}

TEST(ModularAdditionTask, NamesTokens)
{
  const std::vector<std::string> names =
    MakeTask(OptionsOf(TaskKind::ModularAddition))->TokenNames();
  EXPECT_EQ(names[7], "7");
  EXPECT_EQ(names[53], "=");
}

}
