#include "Learning/Internal/LearningRandom.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using testing::ElementsAre;

namespace
{

constexpr int Draws = 200000;

/// SplitMix64 with an increment of its own per draw, as its authors wrote it in Java's
/// SplittableRandom and Vigna in C.
std::uint64_t SplitMix(std::uint64_t& state)
{
  std::uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// Vigna's first numbers for the seed 1234567 show that the function above is SplitMix64.
TEST(LearningRandom, IsSplitMix64)
{
  std::uint64_t known = 1234567;
  EXPECT_EQ(SplitMix(known), 6457827717110365317U);
  EXPECT_EQ(SplitMix(known), 3203168211198807973U);
  // The state mixes seed, purpose and step in turn.
  std::uint64_t state = 77;
  state = SplitMix(state) + 1;
  state = SplitMix(state) + 5;
  state = SplitMix(state);
  LearningRandom random(77, RandomPurpose::HeldOut, 5);
  for (int i = 0; i < 5; ++i)
  {
    EXPECT_EQ(random.Bits(), SplitMix(state));
  }
}

TEST(LearningRandom, DependsOnSeedPurposeAndStep)
{
  const std::uint64_t first = LearningRandom(1, RandomPurpose::Batches, 2).Bits();
  EXPECT_EQ(LearningRandom(1, RandomPurpose::Batches, 2).Bits(), first);
  EXPECT_NE(LearningRandom(2, RandomPurpose::Batches, 2).Bits(), first);
  EXPECT_NE(LearningRandom(1, RandomPurpose::HeldOut, 2).Bits(), first);
  EXPECT_NE(LearningRandom(1, RandomPurpose::Batches, 3).Bits(), first);
}

/// Means within five standard errors.
TEST(LearningRandom, HasTheMomentsOfItsDistributions)
{
  LearningRandom random(3, RandomPurpose::Weights);
  double uniform = 0;
  double normal = 0;
  double square = 0;
  double fourth = 0;
  double exponential = 0;
  std::vector<int> counts(7);
  for (int i = 0; i < Draws; ++i)
  {
    uniform += random.Uniform(2, 6);
    const double x = random.Normal();
    normal += x;
    square += x * x;
    fourth += x * x * x * x;
    exponential += random.Exponential();
    ++counts[random.Integer(7)];
  }
  const double error = 5 / std::sqrt(Draws);
  EXPECT_NEAR(uniform / Draws, 4, error * 4 / std::sqrt(12));
  EXPECT_NEAR(normal / Draws, 0, error);
  EXPECT_NEAR(square / Draws, 1, error * std::sqrt(2));
  EXPECT_NEAR(fourth / Draws, 3, error * std::sqrt(96));
  EXPECT_NEAR(exponential / Draws, 1, error);
  for (const int count : counts)
  {
    EXPECT_NEAR(count / static_cast<double>(Draws), 1. / 7, error * std::sqrt(6. / 49));
  }
}

TEST(LearningRandom, IntegersCoverARange)
{
  LearningRandom random(5, RandomPurpose::Split);
  std::vector<std::int64_t> values;
  for (int i = 0; i < 200; ++i)
  {
    values.push_back(random.Integer(-1, 1));
  }
  EXPECT_EQ(*std::min_element(values.begin(), values.end()), -1);
  EXPECT_EQ(*std::max_element(values.begin(), values.end()), 1);
  EXPECT_EQ(random.Integer(4, 4), 4);
}

/// All six orders of three are alike often.
TEST(LearningRandom, PermutationsAreUniform)
{
  std::vector<int> counts(27);
  LearningRandom random(6, RandomPurpose::Split);
  for (int i = 0; i < 60000; ++i)
  {
    const std::vector<std::int64_t> order = random.Permutation(3);
    ++counts[9 * order[0] + 3 * order[1] + order[2]];
  }
  for (const int place : { 5, 7, 11, 15, 19, 21 }) // 012, 021, 102, 120, 201, 210
  {
    EXPECT_NEAR(counts[place], 10000, 5 * std::sqrt(60000. * 5 / 36));
  }
  EXPECT_THAT(random.Permutation(1), ElementsAre(0));
  EXPECT_TRUE(random.Permutation(0).empty());
}

TEST(LearningRandom, AShuffledBeginningIsASample)
{
  LearningRandom random(7, RandomPurpose::Batches);
  std::vector<int> counts(5);
  for (int i = 0; i < 50000; ++i)
  {
    std::vector<int> values = { 0, 1, 2, 3, 4 };
    random.Shuffle(values, 2);
    EXPECT_NE(values[0], values[1]);
    ++counts[values[0]];
    ++counts[values[1]];
  }
  for (const int count : counts)
  {
    EXPECT_NEAR(count, 20000, 5 * std::sqrt(50000 * 0.24));
  }
}

}
