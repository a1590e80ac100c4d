#include "Neighbors.h"

#include "EmbeddingOracle.h"
#include "Error.h"
#include "ErrorMessage.h"
#include "EveryTarget.h"
#include "ExtendedNeighbors.h"
#include "NeighborCandidates.h"
#include "Reports.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;

namespace
{

std::vector<float> RandomPoints(std::int64_t count, std::int64_t dimension, unsigned seed)
{
  std::mt19937 generator(seed);
  std::vector<float> values(count * dimension);
  for (float& value : values)
  {
    value = static_cast<float>(generator() % 2001) / 1000 - 1;
  }
  return values;
}

/// 1 - cos or |x - y|, in double precision.
double DistanceOf(const PointView& points, PointMetric metric, std::int64_t i, std::int64_t j)
{
  double xx = 0;
  double yy = 0;
  double xy = 0;
  double square = 0;
  for (std::int64_t c = 0; c < points.dimension; ++c)
  {
    const double x = points.Row(i)[c];
    const double y = points.Row(j)[c];
    xx += x * x;
    yy += y * y;
    xy += x * y;
    square += (x - y) * (x - y);
  }
  return metric == PointMetric::Euclidean ? std::sqrt(square) : 1 - xy / std::sqrt(xx * yy);
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

TEST(Neighbors, AreThoseOfTheOracle)
{
  int exchanged = 0; // of neighbors at about the same distance
  for (const std::string name : { "gpt2", "bert", "vit", "spiral" })
  {
    const EmbeddingOracle oracle(name);
    const std::string prefix = oracle.Prefix(1, 2);
    const std::vector<double> joint = oracle.Values(prefix + "joint");
    const std::vector<float> values(joint.begin(), joint.end());
    const auto count =
      static_cast<std::int64_t>(oracle.Values(prefix + "knn.cosine.index").size() / 15);
    const PointView points = { values.data(), count,
      static_cast<std::int64_t>(values.size()) / count };
    for (const auto& [metric, quantity] : { std::pair(PointMetric::Cosine, "knn.cosine."),
           std::pair(PointMetric::SquaredCosine, "knn.cosine."),
           std::pair(PointMetric::Euclidean, "knn.euclidean.") })
    {
      SCOPED_TRACE(name + " " + quantity);
      const NeighborLists found = FindNeighbors(points, metric, 15, 1);
      // The oracle's points are in double precision, ours are rounded.
      const std::vector<double> distance = oracle.Values(prefix + quantity + "distance");
      ExpectClose("distance", found.distance, distance, 2e-7);
      const std::vector<std::int64_t> index = oracle.Integers(prefix + quantity + "index");
      for (std::size_t i = 0; i < index.size(); ++i)
      {
        if (found.index[i] != index[i])
        {
          const auto isTie = [&](std::size_t j)
          { return j < index.size() && std::abs(distance[j] - distance[i]) < 1e-7; };
          EXPECT_TRUE(isTie(i - 1) || isTie(i + 1)) << i;
          ++exchanged;
        }
      }
    }
  }
  EXPECT_LE(exchanged, 2);
}

using NeighborsOnTarget = OnTarget;

TEST_P(NeighborsOnTarget, AreExact)
{
  for (const std::int64_t dimension : { 1, 7, 64 })
  {
    const std::vector<float> values = RandomPoints(1500, dimension, 1);
    const PointView points = { values.data(), 1500, dimension };
    for (const PointMetric metric : { PointMetric::Cosine, PointMetric::Euclidean })
    {
      if (dimension > 1 || metric == PointMetric::Euclidean)
      {
        ExpectExact(points, metric, FindNeighbors(points, metric, 40, 1));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
  All, NeighborsOnTarget, NeighborsOnTarget::Targets(), NeighborsOnTarget::Name);

/// Distances much smaller than the coordinates, where single precision alone would fail.
TEST(Neighbors, AreExactFarFromTheOrigin)
{
  std::vector<float> values = RandomPoints(1200, 3, 2);
  for (float& value : values)
  {
    value = 1000 + std::round(value * 1000) / 1024;
  }
  const PointView points = { values.data(), 1200, 3 };
  ExpectExact(points, PointMetric::Euclidean, FindNeighbors(points, PointMetric::Euclidean, 10, 1));
  ExpectExact(points, PointMetric::Cosine, FindNeighbors(points, PointMetric::Cosine, 10, 1));
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
      EXPECT_EQ(
        std::vector<std::uint32_t>(found.index.begin() + 3 * i, found.index.begin() + 3 * i + 3),
        expected);
      EXPECT_EQ(found.distance[3 * i + 2], 0);
    }
  }
}

TEST(Neighbors, PointsWithoutDirectionAreAtDistanceOne)
{
  const std::vector<float> values = { 0, 0, 1, 0, 1, 1, 0, 0 };
  const NeighborLists found = FindNeighbors({ values.data(), 4, 2 }, PointMetric::Cosine, 3, 1);
  EXPECT_EQ(std::vector<float>(found.distance.begin(), found.distance.begin() + 3),
    std::vector<float>({ 1, 1, 1 }));
  EXPECT_EQ(std::vector<std::uint32_t>(found.index.begin(), found.index.begin() + 3),
    std::vector<std::uint32_t>({ 1, 2, 3 }));
}

TEST(Neighbors, DoNotDependOnThreads)
{
  const std::vector<float> values = RandomPoints(3000, 20, 3);
  const PointView points = { values.data(), 3000, 20 };
  const NeighborLists one = FindNeighbors(points, PointMetric::Cosine, 30, 1);
  for (const int threads : { 2, 5 })
  {
    const NeighborLists found = FindNeighbors(points, PointMetric::Cosine, 30, threads);
    EXPECT_EQ(found.index, one.index);
    EXPECT_EQ(found.distance, one.distance);
  }
}

TEST(ExtendedNeighbors, AreMostlyTheNearest)
{
  const std::vector<float> values = RandomPoints(3000, 3, 5);
  const PointView points = { values.data(), 3000, 3 };
  for (const PointMetric metric : { PointMetric::Cosine, PointMetric::Euclidean })
  {
    const NeighborLists exact = FindNeighbors(points, metric, 60, 1);
    const NeighborLists found =
      ExtendNeighbors(points, metric, FindNeighbors(points, metric, 20, 1), 60, 2);
    std::size_t same = 0;
    for (std::size_t i = 0; i < found.index.size(); ++i)
    {
      same += found.distance[i] == exact.distance[i] ? 1U : 0U;
    }
    EXPECT_GT(same, found.index.size() * 8 / 10); // at the same place in the list
    // The nearest are always there.
    EXPECT_TRUE(std::equal(found.index.begin(), found.index.begin() + 20, exact.index.begin()));
  }
}

TEST(ExtendedNeighbors, AreTheNearestOfTheListsOfNeighbors)
{
  constexpr std::int64_t count = 500;
  const std::vector<float> values = RandomPoints(count, 7, 6);
  const PointView points = { values.data(), count, 7 };
  for (const PointMetric metric : { PointMetric::Cosine, PointMetric::Euclidean })
  {
    const NeighborLists known = FindNeighbors(points, metric, 6, 1);
    const NeighborLists found = ExtendNeighbors(points, metric, known, 12, 2);
    const auto listOf = [&known](std::uint32_t i)
    { return std::vector<std::uint32_t>(&known.index[6 * i], &known.index[6 * i] + 6); };
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
        distances.push_back(DistanceOf(points, metric, i, j));
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

using NearRowsOnTarget = OnTarget;

TEST_P(NearRowsOnTarget, AreKeptAndNoneThatIsMuchFarther)
{
  for (const std::int64_t dimension : { 1, 5, 16, 67 })
  {
    constexpr std::int64_t count = 300;
    const std::vector<float> values = RandomPoints(count, dimension, 7);
    const PointView points = { values.data(), count, dimension };
    std::vector<double> squares(count);
    for (std::int64_t j = 0; j < count; ++j)
    {
      squares[j] = std::pow(DistanceOf(points, PointMetric::Euclidean, 0, j), 2);
    }
    for (const double limit : { squares[0], squares[1], squares[100], squares[299] })
    {
      std::vector<std::uint32_t> kept(count);
      std::iota(kept.begin(), kept.end(), 0U);
      KeepNear(values.data(), values.data(), dimension, limit, 1e-8, kept);
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

TEST_P(NearRowsOnTarget, AreAllKeptWithoutALimit)
{
  // The squares of these distances are no floats.
  const std::vector<float> values = { 0, 1e30F, -3e38F, 3e38F };
  std::vector<std::uint32_t> kept = { 3, 1, 2, 0 };
  KeepNear(values.data() + 2, values.data(), 1, std::numeric_limits<double>::infinity(), 0, kept);
  EXPECT_EQ(kept, std::vector<std::uint32_t>({ 3, 1, 2, 0 }));
  KeepNear(values.data() + 2, values.data(), 1, 1e70, 0, kept);
  EXPECT_EQ(kept, std::vector<std::uint32_t>({ 3, 1, 2, 0 }));
  KeepNear(values.data() + 2, values.data(), 1, 1, 0, kept);
  EXPECT_EQ(kept, std::vector<std::uint32_t>({ 2 }));
}

INSTANTIATE_TEST_SUITE_P(
  All, NearRowsOnTarget, NearRowsOnTarget::Targets(), NearRowsOnTarget::Name);

TEST(ExtendedNeighbors, AreFilledWhereThereAreTooFew)
{
  // Two cliques of four points: no list leaves its clique.
  const std::vector<float> values = { 0, 1, 2, 3, 100, 101, 102, 103 };
  const PointView points = { values.data(), 8, 1 };
  const NeighborLists found = ExtendNeighbors(
    points, PointMetric::Euclidean, FindNeighbors(points, PointMetric::Euclidean, 3, 1), 5, 1);
  EXPECT_EQ(std::vector<std::uint32_t>(found.index.begin(), found.index.begin() + 5),
    std::vector<std::uint32_t>({ 1, 2, 3, 3, 3 }));
}

TEST(Neighbors, ReportProgressAndStop)
{
  const std::vector<float> values = RandomPoints(1000, 4, 4);
  std::vector<double> shares;
  const PointView points = { values.data(), 1000, 4 };
  FindNeighbors(points, PointMetric::Cosine, 5, 1, KeepReports(shares));
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_EQ(shares.back(), 1);
  EXPECT_GE(shares.size(), 4U);
  EXPECT_THROW(
    FindNeighbors(points, PointMetric::Cosine, 5, 1, [](double) { throw Canceled(); }), Canceled);
}

TEST(Neighbors, RejectWhatHasNone)
{
  std::vector<float> values = { 1, 2, 3, 4, 5, 6 };
  const auto message = [&](PointView points, int count)
  {
    return MessageOf<OptionError>([&] { FindNeighbors(points, PointMetric::Euclidean, count, 1); });
  };
  EXPECT_EQ(message({ values.data(), 3, 2 }, 3),
    "neighbors: expected a number from 1 to 2, one less than the points, found 3.");
  EXPECT_THAT(message({ values.data(), 3, 2 }, 0), HasSubstr("found 0"));
  EXPECT_EQ(message({ values.data(), 0, 2 }, 1),
    "neighbors: expected points of at least one dimension, found 0 of dimension 2.");
  values[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(message({ values.data(), 3, 2 }, 1),
    "neighbors: expected finite coordinates, found nan in point 1, component 1.");
}

}
