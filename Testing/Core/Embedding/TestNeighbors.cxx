#include "Embedding/Neighbors.h"

#include "Base/Error.h"
#include "Embedding/Internal/ExtendedNeighbors.h"
#include "Embedding/Internal/NeighborCandidates.h"
#include "ErrorMessage.h"
#include "EveryTarget.h"
#include "Reports.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace
{

/// Some of a list from `begin` on.
template<class Number>
std::vector<Number> FirstOf(
  const std::vector<Number>& list, std::size_t count, std::size_t begin = 0)
{
  return { list.data() + begin, list.data() + begin + count };
}

struct RandomPoints
{
  std::vector<float> values;
  PointView view;

  RandomPoints(std::int64_t count, std::int64_t dimension, unsigned seed)
    : values(count * dimension)
    , view{ this->values.data(), count, dimension }
  {
    std::mt19937 generator(seed);
    for (float& value : this->values)
    {
      value = static_cast<float>(generator() % 2001) / 1000 - 1;
    }
  }
};

/// 1 - cos or |x - y|, in double precision.
double DistanceOf(const PointView& points, PointMetric metric, std::int64_t i, std::int64_t j)
{
  using Row = Eigen::Map<const Eigen::VectorXf>;
  const auto x = Row(points.Row(i), points.dimension).cast<double>();
  const auto y = Row(points.Row(j), points.dimension).cast<double>();
  return metric == PointMetric::Euclidean
           ? (x - y).norm()
           : 1 - x.dot(y) / std::sqrt(x.squaredNorm() * y.squaredNorm());
}

/// Expects the neighbors to be those of a search over all pairs, where their distances differ by
/// more than rounding.
void ExpectExact(const PointView& points, PointMetric metric, const NeighborLists& found)
{
  constexpr double tolerance = 1e-6; // of the distances, which are floats
  for (std::int64_t i = 0; i < points.count; ++i)
  {
    std::vector<std::pair<double, std::uint32_t>> all;
    for (std::int64_t j = 0; j < points.count; ++j)
    {
      if (i != j)
      {
        all.emplace_back(DistanceOf(points, metric, i, j), static_cast<std::uint32_t>(j));
      }
    }
    std::sort(all.begin(), all.end());
    for (int k = 0; k < found.count; ++k)
    {
      const std::size_t at = i * found.count + k;
      const double expected = all[k].first;
      ASSERT_NEAR(found.distance[at], expected, tolerance) << i << " " << k;
      ASSERT_NEAR(DistanceOf(points, metric, i, found.index[at]), expected, 1e-14) << i << " " << k;
    }
  }
}

using NeighborsOnTarget = OnTarget;

TEST_P(NeighborsOnTarget, AreExact)
{
  for (const std::int64_t dimension : { 1, 7, 64 })
  {
    const RandomPoints points(1500, dimension, 1);
    for (const PointMetric metric :
      { PointMetric::Cosine, PointMetric::SquaredCosine, PointMetric::Euclidean })
    {
      if (dimension > 1 || metric == PointMetric::Euclidean)
      {
        ExpectExact(points.view, metric, FindNeighbors(points.view, metric, 40, 1));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
  All, NeighborsOnTarget, NeighborsOnTarget::Targets(), NeighborsOnTarget::Name);

/// Distances much smaller than the coordinates, where single precision alone would fail.
TEST(Neighbors, AreExactFarFromTheOrigin)
{
  RandomPoints points(1200, 3, 2);
  for (float& value : points.values)
  {
    value = 1000 + std::round(value * 1000) / 1024;
  }
  for (const PointMetric metric : { PointMetric::Euclidean, PointMetric::Cosine })
  {
    ExpectExact(points.view, metric, FindNeighbors(points.view, metric, 10, 1));
  }
}

TEST(Neighbors, TiesGoToTheLowerIndex)
{
  std::vector<float> values;
  for (int i = 0; i < 2500; ++i)
  {
    values.push_back(static_cast<float>(i % 2));
    values.push_back(1);
  }
  const PointView points = { values.data(), 2500, 2 };
  for (const PointMetric metric : { PointMetric::Cosine, PointMetric::Euclidean })
  {
    const NeighborLists found = FindNeighbors(points, metric, 3, 1);
    for (std::uint32_t i = 0; i < 2500; ++i)
    {
      std::vector<std::uint32_t> expected;
      for (std::uint32_t j = i % 2; expected.size() < 3; j += 2)
      {
        if (j != i)
        {
          expected.push_back(j);
        }
      }
      EXPECT_EQ(FirstOf(found.index, 3, 3 * i), expected);
      EXPECT_EQ(found.distance[3 * i + 2], 0);
    }
  }
}

TEST(Neighbors, PointsWithoutDirectionAreAtDistanceOne)
{
  const std::vector<float> values = { 0, 0, 1, 0, 1, 1, 0, 0 };
  const NeighborLists found = FindNeighbors({ values.data(), 4, 2 }, PointMetric::Cosine, 3, 1);
  EXPECT_THAT(FirstOf(found.distance, 3), ElementsAre(1, 1, 1));
  EXPECT_THAT(FirstOf(found.index, 3), ElementsAre(1, 2, 3));
}

TEST(Neighbors, DoNotDependOnThreads)
{
  const RandomPoints points(3000, 20, 3);
  const NeighborLists one = FindNeighbors(points.view, PointMetric::Cosine, 30, 1);
  for (const int threads : { 2, 5 })
  {
    const NeighborLists found = FindNeighbors(points.view, PointMetric::Cosine, 30, threads);
    EXPECT_EQ(found.index, one.index);
    EXPECT_EQ(found.distance, one.distance);
  }
}

TEST(ExtendedNeighbors, AreTheNearestOfTheListsOfNeighbors)
{
  constexpr std::int64_t count = 500;
  const RandomPoints points(count, 7, 6);
  for (const PointMetric metric : { PointMetric::Cosine, PointMetric::Euclidean })
  {
    const NeighborLists known = FindNeighbors(points.view, metric, 6, 1);
    const NeighborLists found = ExtendNeighbors(points.view, metric, known, 12, 2);
    const auto listOf = [&known](std::uint32_t i) { return FirstOf(known.index, 6, 6 * i); };
    for (std::uint32_t i = 0; i < count; ++i)
    {
      std::set<std::uint32_t> others;
      for (const std::uint32_t j : listOf(i))
      {
        const std::vector<std::uint32_t> behind = listOf(j);
        others.insert(j);
        others.insert(behind.begin(), behind.end());
      }
      others.erase(i);
      std::vector<double> distances;
      for (const std::uint32_t j : others)
      {
        distances.push_back(DistanceOf(points.view, metric, i, j));
      }
      std::sort(distances.begin(), distances.end());
      distances.resize(12, distances.back()); // filled with the farthest
      for (std::size_t k = 0; k < 12; ++k)
      {
        EXPECT_EQ(others.count(found.index[12 * i + k]), 1U);
        EXPECT_NEAR(found.distance[12 * i + k], distances[k], 1e-6);
      }
    }
  }
}

TEST_P(NeighborsOnTarget, NearRowsAreKeptAndNoneThatIsMuchFarther)
{
  for (const std::int64_t dimension : { 1, 5, 16, 67 })
  {
    constexpr std::int64_t count = 300;
    const RandomPoints points(count, dimension, 7);
    const float* values = points.values.data();
    std::vector<double> squares(count);
    for (std::int64_t j = 0; j < count; ++j)
    {
      squares[j] = std::pow(DistanceOf(points.view, PointMetric::Euclidean, 0, j), 2);
    }
    for (const double limit : { squares[0], squares[1], squares[100], squares[299] })
    {
      std::vector<std::uint32_t> kept(count);
      std::iota(kept.begin(), kept.end(), 0U);
      KeepNear(values, values, dimension, limit, 1e-8, kept);
      EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
      for (std::uint32_t j = 0; j < count; ++j)
      {
        const bool isKept = std::binary_search(kept.begin(), kept.end(), j);
        EXPECT_TRUE(isKept || squares[j] > limit);
        EXPECT_FALSE(isKept && squares[j] > limit * 1.0001 + 1e-12);
      }
    }
  }
}

TEST_P(NeighborsOnTarget, NearRowsAreAllKeptWithoutALimit)
{
  // The squares of these distances are no floats.
  const std::vector<float> values = { 0, 1e30F, -3e38F, 3e38F };
  std::vector<std::uint32_t> kept = { 3, 1, 2, 0 };
  KeepNear(values.data() + 2, values.data(), 1, std::numeric_limits<double>::infinity(), 0, kept);
  EXPECT_THAT(kept, ElementsAre(3, 1, 2, 0));
  KeepNear(values.data() + 2, values.data(), 1, 1e70, 0, kept);
  EXPECT_THAT(kept, ElementsAre(3, 1, 2, 0));
  KeepNear(values.data() + 2, values.data(), 1, 1, 0, kept);
  EXPECT_THAT(kept, ElementsAre(2));
}

TEST(ExtendedNeighbors, AreFilledWhereThereAreTooFew)
{
  // Two cliques of four points: no list leaves its clique.
  const std::vector<float> values = { 0, 1, 2, 3, 100, 101, 102, 103 };
  const PointView points = { values.data(), 8, 1 };
  const NeighborLists found = ExtendNeighbors(
    points, PointMetric::Euclidean, FindNeighbors(points, PointMetric::Euclidean, 3, 1), 5, 1);
  EXPECT_THAT(FirstOf(found.index, 5), ElementsAre(1, 2, 3, 3, 3));
}

TEST(Neighbors, ReportProgressAndStop)
{
  const RandomPoints points(1000, 4, 4);
  std::vector<double> shares;
  FindNeighbors(points.view, PointMetric::Cosine, 5, 1, KeepReports(shares));
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_EQ(shares.back(), 1);
  EXPECT_GE(shares.size(), 4U);
  EXPECT_THROW(
    FindNeighbors(points.view, PointMetric::Cosine, 5, 1, [](double) { throw Canceled(); }),
    Canceled);
}

TEST(Neighbors, RejectWhatHasNone)
{
  std::vector<float> values = { 1, 2, 3, 4, 5, 6 };
  const auto message = [&](PointView points, int count)
  {
    return MessageOf<OptionError>([&] { FindNeighbors(points, PointMetric::Euclidean, count, 1); });
  };
  EXPECT_THAT(message({ values.data(), 3, 2 }, 3), HasSubstr("from 1 to 2"));
  EXPECT_THAT(message({ values.data(), 3, 2 }, 0), HasSubstr("found 0"));
  EXPECT_THAT(message({ values.data(), 0, 2 }, 1), HasSubstr("found 0 of dimension 2"));
  values[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(message({ values.data(), 3, 2 }, 1), HasSubstr("found nan in point 1, component 1"));
}

}
