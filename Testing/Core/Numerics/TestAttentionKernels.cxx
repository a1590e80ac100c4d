// Also tests: Lanes

#include "AttentionKernels.h"

#include "Lanes.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;

namespace
{

std::vector<float> Numbers(std::size_t count, unsigned seed, float width = 2)
{
  std::mt19937 generator(seed);
  std::vector<float> values(count);
  for (float& value : values)
  {
    value = width * (static_cast<float>(generator() % 2001) / 1000 - 1);
  }
  return values;
}

/// Softmax by its formula, in double.
std::vector<double> Softmax(const std::vector<double>& scores)
{
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  std::vector<double> weights;
  for (const double score : scores)
  {
    weights.push_back(std::exp(score - largest));
    sum += weights.back();
  }
  for (double& weight : weights)
  {
    weight /= sum;
  }
  return weights;
}

TEST(Lanes, AShortGroupIsPaddedAndOnlyItsValuesAreStored)
{
  const std::vector<float> values = Numbers(LaneCount + 3, 4);
  std::vector<float> copy(values.size(), 9);
  ForLanes(LaneCount + 3, [&](std::int64_t i, std::int64_t left)
    { Store(Load(values.data() + i, left, 7), left - 1, copy.data() + i); });
  EXPECT_THAT(std::vector<float>(copy.begin(), copy.end() - 1),
    testing::ElementsAreArray(values.data(), values.size() - 1));
  EXPECT_EQ(copy.back(), 9);
  const Lanes padded = Load(values.data(), 2, 7);
  EXPECT_EQ(padded[1], values[1]);
  EXPECT_TRUE((padded.tail<LaneCount - 2>() == 7).all());
}

struct Head
{
  static constexpr std::int64_t Length = 21;
  static constexpr std::int64_t Dimension = 5;
  std::vector<float> query = Numbers(Length * Dimension, 1);
  std::vector<float> key = Numbers(Length * Dimension, 2);
  HeadScores scores{ query.data(), key.data(), Length, Dimension, 0.7F, 0.25F,
    AttentionMask::Causal };

  double Content(std::int64_t i, std::int64_t j) const
  {
    double sum = 0;
    for (std::int64_t c = 0; c < Dimension; ++c)
    {
      sum += static_cast<double>(this->query[static_cast<std::size_t>(i * Dimension + c)]) *
             static_cast<double>(this->key[static_cast<std::size_t>(j * Dimension + c)]);
    }
    return static_cast<double>(0.7F) * sum;
  }
};

TEST(AttentionKernels, ContentAndBiasAreTheirFormulas)
{
  const Head head;
  std::vector<float> values(3 * 21);
  EvaluateContent(head.scores, 4, 7, 21, values.data());
  for (std::int64_t i = 0; i < 3; ++i)
  {
    for (std::int64_t j = 0; j < 21; ++j)
    {
      EXPECT_NEAR(values[static_cast<std::size_t>(i * 21 + j)], head.Content(4 + i, j), 1e-5);
    }
  }
  std::vector<float> biased(2 * 3, 1);
  AddBias(head.scores, 2, 3, biased.data());
  EXPECT_THAT(biased, testing::ElementsAre(1, 1.25F, 1.5F, 1, 1.25F, 1.5F));
}

TEST(AttentionKernels, WeightsAreTheSoftmaxOfWhatTheMaskAllows)
{
  for (const AttentionMask mask : { AttentionMask::Causal, AttentionMask::Bidirectional })
  {
    Head head;
    head.scores.mask = mask;
    constexpr std::int64_t begin = 5;
    constexpr std::int64_t end = 11;
    const std::int64_t keys = head.scores.KeyCount(end);
    EXPECT_EQ(keys, mask == AttentionMask::Causal ? 11 : 21);
    std::vector<float> values(static_cast<std::size_t>((end - begin) * keys), -1);
    EvaluateWeights(head.scores, begin, end, keys, values.data());
    for (std::int64_t query = begin; query < end; ++query)
    {
      std::vector<double> scores;
      for (std::int64_t key = 0; key < keys; ++key)
      {
        if (mask == AttentionMask::Bidirectional || key <= query)
        {
          scores.push_back(head.Content(query, key) + 0.25 * static_cast<double>(key));
        }
      }
      std::vector<double> expected = Softmax(scores);
      expected.resize(static_cast<std::size_t>(keys), 0);
      for (std::size_t key = 0; key < expected.size(); ++key)
      {
        const float found = values[static_cast<std::size_t>((query - begin) * keys) + key];
        EXPECT_NEAR(found, expected[key], 2e-6) << query << ", " << key;
        EXPECT_TRUE(expected[key] != 0 || found == 0) << "what is masked is exactly 0";
      }
    }
  }
}

TEST(AttentionKernels, CapWindowAndSinkAreTheirFormulas)
{
  Head head;
  head.scores.cap = 0.9F;
  head.scores.window = 4;
  head.scores.sink = 0.6F;
  constexpr std::int64_t begin = 2;
  constexpr std::int64_t end = 13;
  std::vector<float> values(static_cast<std::size_t>((end - begin) * end), -1);
  EvaluateWeights(head.scores, begin, end, end, values.data());
  for (std::int64_t query = begin; query < end; ++query)
  {
    std::vector<double> scores;
    const std::int64_t first = std::max<std::int64_t>(0, query - 3); // four keys with itself
    for (std::int64_t key = first; key <= query; ++key)
    {
      scores.push_back(
        0.9 * std::tanh(head.Content(query, key) / 0.9) + 0.25 * static_cast<double>(key));
    }
    scores.push_back(0.6); // the sink takes part in the sum, and its weight is dropped
    std::vector<double> expected = Softmax(scores);
    expected.pop_back();
    expected.insert(expected.begin(), static_cast<std::size_t>(first), 0);
    expected.resize(static_cast<std::size_t>(end), 0);
    for (std::size_t key = 0; key < expected.size(); ++key)
    {
      const float found = values[static_cast<std::size_t>((query - begin) * end) + key];
      EXPECT_NEAR(found, expected[key], 2e-6) << query << ", " << key;
      EXPECT_TRUE(expected[key] != 0 || found == 0) << query << ", " << key;
    }
  }
}

/// Of logits ln 1, ln 2 and ln 5, shifted so far that exp alone would overflow.
TEST(AttentionKernels, SoftmaxOfLogits)
{
  for (const double shift : { 0.0, 800.0, -800.0 })
  {
    Eigen::VectorXd logits(3);
    logits << shift, std::log(2.0) + shift, std::log(5.0) + shift;
    EXPECT_NEAR(atlas::Softmax(logits, 1), std::log(0.25), 1e-12) << shift;
    EXPECT_NEAR(logits[0], 0.125, 1e-13);
    EXPECT_NEAR(logits[1], 0.25, 1e-13);
    EXPECT_NEAR(logits[2], 0.625, 1e-13);
  }
}

}
