#include "Numerics/AttentionKernels.h"

#include "Numerics/DotProduct.h"
#include "Numerics/Lanes.h"

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

TEST(DotProduct, IsAddedUpInDoublePrecision)
{
  const std::vector<float> a = { 1e8F, 1, -1e8F };
  const std::vector<float> b = { 1, 1, 1 };
  EXPECT_EQ(DotProduct(a.data(), b.data(), 3), 1);
  EXPECT_EQ(DotProduct(a.data(), b.data(), 0), 0);
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
  HeadScores scores{ query.data(), key.data(), Length, Dimension, 0.7F, 0.25F, 0,
    AttentionMask::Causal };

  double Content(std::int64_t i, std::int64_t j) const
  {
    double sum = 0;
    for (std::int64_t c = 0; c < Dimension; ++c)
    {
      sum += static_cast<double>(this->query[i * Dimension + c]) *
             static_cast<double>(this->key[j * Dimension + c]);
    }
    return static_cast<double>(0.7F) * sum;
  }
};

/// By the formulas: c tanh(x / c) + bias, keys j > i - w, and a logit in the sum that has no key.
TEST(AttentionKernels, CapsWindowsAndSinks)
{
  for (const std::int64_t window : { 0, 1, 4, 21, 100 })
  {
    for (const float cap : { 0.F, 1.5F })
    {
      for (const float sink : { -3.F, 0.F, 4.F })
      {
        Head head;
        head.scores.cap = cap;
        head.scores.window = window;
        head.scores.sink = sink;
        constexpr std::int64_t begin = 6;
        constexpr std::int64_t end = 17;
        std::vector<float> values((end - begin) * end, -1);
        EvaluateWeights(head.scores, begin, end, end, values.data());
        for (std::int64_t query = begin; query < end; ++query)
        {
          double sum = std::exp(static_cast<double>(sink));
          std::vector<double> expected(end);
          for (std::int64_t key = 0; key <= query; ++key)
          {
            const double x = head.Content(query, key);
            const double c = cap;
            const double score =
              (c > 0 ? c * std::tanh(x / c) : x) + 0.25 * static_cast<double>(key);
            const bool isSeen = window == 0 || key > query - window;
            expected[key] = isSeen ? std::exp(score) : 0;
            sum += expected[key];
          }
          for (std::size_t key = 0; key < expected.size(); ++key)
          {
            const float found = values[static_cast<std::size_t>((query - begin) * end) + key];
            EXPECT_NEAR(found, expected[key] / sum, 2e-6) << query << ", " << key;
            EXPECT_TRUE(expected[key] != 0 || found == 0) << "what is masked is exactly 0";
          }
        }
      }
    }
  }
}

/// A sink far above all scores takes everything, and one far below nothing.
TEST(AttentionKernels, ExtremeSinks)
{
  HeadScores head;
  head.length = 3;
  std::vector<float> row = { 1, 2, 3 };
  head.sink = 1e30F;
  NormalizeScores(head, 2, 3, 3, row.data());
  EXPECT_THAT(row, testing::Each(0));
  row = { 1, 2, 3 };
  std::vector<float> without = row;
  head.sink = -1e30F;
  NormalizeScores(head, 2, 3, 3, row.data());
  head.sink.reset();
  NormalizeScores(head, 2, 3, 3, without.data());
  EXPECT_EQ(row, without);
}

/// Patches of two rows and five columns in windows of two: queries see keys in their own, and a
/// class token sees itself.
TEST(AttentionKernels, WindowsOfPatches)
{
  const std::vector<std::int32_t> rows = { -1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2 };
  const std::vector<std::int32_t> columns = { -1, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 4 };
  const std::vector<int> window = { 0, 1, 1, 2, 2, 3, 1, 1, 2, 2, 3, 4 }; // counted by hand
  const auto length = static_cast<std::int64_t>(rows.size());
  HeadScores head;
  head.length = length;
  head.mask = AttentionMask::Bidirectional;
  head.patchWindow = 2;
  head.patchRow = rows.data();
  head.patchColumn = columns.data();
  head.sink = 0.5F;
  std::vector<float> values(length * length);
  for (std::int64_t i = 0; i < length * length; ++i)
  {
    values[i] = static_cast<float>(i * i % 7);
  }
  const std::vector<float> scores = values;
  NormalizeScores(head, 0, length, length, values.data());
  for (std::int64_t q = 0; q < length; ++q)
  {
    double sum = std::exp(0.5);
    for (std::int64_t k = 0; k < length; ++k)
    {
      const auto score = static_cast<double>(scores[q * length + k]);
      sum += window[q] == window[k] ? std::exp(score) : 0;
    }
    for (std::int64_t k = 0; k < length; ++k)
    {
      const auto score = static_cast<double>(scores[q * length + k]);
      const double expected = window[q] == window[k] ? std::exp(score) / sum : 0;
      EXPECT_NEAR(values[q * length + k], expected, 1e-6) << q << " " << k;
      EXPECT_EQ(values[q * length + k] == 0, window[q] != window[k]);
    }
  }
}

/// Capped values do not depend on where they lie in a row.
TEST(AttentionKernels, CapsAreOfEachValue)
{
  HeadScores head;
  head.cap = 5;
  std::vector<float> values = Numbers(37, 5, 200);
  const std::vector<float> before = values;
  CapScores(head, 1, 37, values.data());
  for (std::size_t i = 0; i < values.size(); ++i)
  {
    EXPECT_NEAR(values[i], 5 * std::tanh(static_cast<double>(before[i]) / 5), 2e-6);
    float alone = before[i];
    CapScores(head, 1, 1, &alone);
    EXPECT_EQ(alone, values[i]);
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
