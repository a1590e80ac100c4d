#include "Base/Error.h"
#include "Corpus/CorpusStatistics.h"
#include "Corpus/ExactSum.h"
#include "Corpus/QuantileSketch.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

using namespace atlas;

TEST(CorpusSums, DoNotDependOnTheOrder)
{
  std::mt19937_64 random(1);
  std::vector<double> values(10'000);
  double expected = 0;
  for (double& value : values)
  {
    value =
      std::ldexp(static_cast<double>(random() % 2'000'001) - 1e6, static_cast<int>(random() % 20));
    expected += value; // integers below 2^53: exact
  }
  ExactSum forward;
  for (const double value : values)
  {
    forward.Add(value);
  }
  std::shuffle(values.begin(), values.end(), random);
  ExactSum first;
  ExactSum second;
  for (std::size_t i = 0; i < values.size(); ++i)
  {
    (i % 3 == 0 ? first : second).Add(values[i]);
  }
  first.Add(second);
  EXPECT_EQ(forward.Value(), expected);
  EXPECT_EQ(first.Value(), expected);
  EXPECT_EQ(first.High(), forward.High());
  EXPECT_EQ(first.Low(), forward.Low());
}

TEST(CorpusSums, KeepTheirBits)
{
  ExactSum sum;
  for (const double value : { -0.25, -3e20, 1e-9 })
  {
    sum.Add(value);
    const ExactSum read = ExactSum::FromBits(sum.High(), sum.Low());
    EXPECT_EQ(read.Value(), sum.Value());
    EXPECT_EQ(read.High(), sum.High());
  }
  EXPECT_NEAR(sum.Value(), -3e20, 1e5);
  WeightSum weights;
  weights.Add(0.125);
  weights.Add(WeightSum::FromStored(weights.Stored()));
  EXPECT_EQ(weights.Value(), 0.25);
}

TEST(CorpusSums, QuantilesAreWithinTheError)
{
  std::mt19937_64 random(2);
  std::lognormal_distribution<double> draw(0, 3);
  std::vector<double> values(20'001);
  QuantileSketch even;
  QuantileSketch odd;
  for (std::size_t i = 0; i < values.size(); ++i)
  {
    values[i] = draw(random) * (i % 4 == 0 ? -1 : 1);
    (i % 2 == 0 ? even : odd).Add(values[i]);
  }
  even.Add(odd);
  std::sort(values.begin(), values.end());
  EXPECT_EQ(even.Count(), 20'001);
  for (int percent = 0; percent <= 100; ++percent)
  {
    const double exact = values[static_cast<std::size_t>(percent / 100. * 20'000)];
    EXPECT_NEAR(even.Quantile(percent / 100.), exact,
      QuantileSketch::RelativeError * std::abs(exact) * 1.0001)
      << percent;
  }
}

TEST(CorpusSums, QuantilesOfSmallAndNoNumbers)
{
  QuantileSketch sketch;
  EXPECT_EQ(sketch.Quantile(0.5), 0);
  sketch.Add(1e-7);
  EXPECT_EQ(sketch.Quantile(0.5), 0);
  sketch.Add(1e12); // counts as the largest
  EXPECT_NEAR(sketch.Quantile(1), QuantileSketch::Largest, 0.03 * QuantileSketch::Largest);
  const QuantileSketch read = QuantileSketch::FromBins(sketch.GetBins(), "test");
  EXPECT_EQ(read.Quantile(1), sketch.Quantile(1));
  EXPECT_THROW(QuantileSketch::FromBins({ 1, 2 }, "test"), FormatError);
  EXPECT_THROW(
    QuantileSketch::FromBins(std::vector<std::int64_t>(sketch.GetBins().size(), -1), "test"),
    FormatError);
}

/// The median is the smallest distance up to which half of the attention goes.
TEST(CorpusSums, DistancesHaveAMeanAndAMedian)
{
  struct Case
  {
    std::vector<double> attention; ///< by distance
    double mean;
    double median;
  };
  for (const Case& one :
    std::vector<Case>{ { { 1, 1 }, 0.5, 0 }, { { 1, 2, 1 }, 1, 1 }, { { 1, 1, 1, 1 }, 1.5, 1 },
      { { 0, 0, 3 }, 2, 2 }, { { 0, 1, 0, 0, 3 }, 3.25, 4 }, { {}, 0, 0 } })
  {
    CorpusHead head;
    head.distances.resize(one.attention.size());
    for (std::size_t d = 0; d < one.attention.size(); ++d)
    {
      head.distances[d].Add(one.attention[d]);
    }
    EXPECT_DOUBLE_EQ(MeanDistance(head), one.mean);
    EXPECT_EQ(MedianDistance(head), one.median);
  }
}
