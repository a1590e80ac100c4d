#include "Embedding/Internal/SpectralLayout.h"

#include "Base/Pi.h"
#include "Embedding/Internal/HashedNumbers.h"
#include "UmapOracle.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

using SpectralLayoutOfUmap = OfUmap;

TEST_P(SpectralLayoutOfUmap, EigenpairsOfTheLaplacian)
{
  const Eigenpairs pairs = LaplacianEigenpairs(this->Graph(), 5, 1e-11, 10'000, 3, 2);
  const Eigen::MatrixXd rows = pairs.vectors.transpose(); // row-major order of `vectors`
  ExpectClose("laplacian_eigenvalues",
    std::vector<double>(pairs.values.begin(), pairs.values.end()),
    this->Expected.Values(this->Prefix + "laplacian_eigenvalues"), 1e-6);
  ExpectClose("laplacian_eigenvectors", std::vector<double>(rows.data(), rows.data() + rows.size()),
    this->Expected.Values(this->Prefix + "laplacian_eigenvectors"), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Oracle, SpectralLayoutOfUmap, OfUmap::All(), OfUmap::Name);

/// A path with weights 1.
FuzzyGraph Path(std::int64_t points)
{
  FuzzyGraph graph{ points, { 0 }, {}, {} };
  for (std::int64_t i = 0; i < points; ++i)
  {
    for (const std::int64_t j : { i - 1, i + 1 })
    {
      if (j >= 0 && j < points)
      {
        graph.index.push_back(static_cast<std::uint32_t>(j));
        graph.value.push_back(1);
      }
    }
    graph.begin.push_back(graph.index.size());
  }
  return graph;
}

TEST(LaplacianEigenpairs, OfAPath)
{
  // The eigenvalues of a path's normalized Laplacian are 1 - cos(pi k / (n - 1)).
  for (const std::int64_t points : { 2, 3, 4, 50, 3000 })
  {
    const Eigenpairs pairs = LaplacianEigenpairs(Path(points), 4, 1e-9, 10'000, 0, 1);
    ASSERT_EQ(pairs.values.size(), std::min<std::int64_t>(points, 4));
    for (Eigen::Index k = 0; k < pairs.values.size(); ++k)
    {
      const double expected =
        1 - std::cos(Pi * static_cast<double>(k) / static_cast<double>(points - 1));
      EXPECT_NEAR(pairs.values[k], expected, 1e-9) << k << " of " << points;
      EXPECT_NEAR(pairs.vectors.col(k).norm(), 1, 1e-12);
      EXPECT_EQ(pairs.vectors.col(k).maxCoeff(), pairs.vectors.col(k).cwiseAbs().maxCoeff());
    }
  }
}

TEST(LaplacianEigenpairs, DoNotDependOnThreads)
{
  const FuzzyGraph graph = Path(10'000);
  const Eigenpairs one = LaplacianEigenpairs(graph, 3, 1e-4, 200, 1, 1);
  const Eigenpairs four = LaplacianEigenpairs(graph, 3, 1e-4, 200, 1, 4);
  EXPECT_TRUE(one.vectors == four.vectors);
  EXPECT_TRUE(one.values == four.values);
}

/// Points on lines, in clusters that are far apart; the 2 nearest are neighbors.
TEST(SpectralLayout, PartsAreApart)
{
  std::vector<float> values;
  for (const float center : { 0.F, 100.F, 300.F, 700.F })
  {
    for (int i = 0; i < 20; ++i)
    {
      const auto t = static_cast<float>(i);
      values.insert(values.end(), { center + t * (1 + t / 50), t });
    }
  }
  const PointView points = { values.data(), 80, 2 };
  const NeighborLists lists = FindNeighbors(points, PointMetric::Euclidean, 2, 1);
  const FuzzyGraph graph =
    UniteMemberships(lists, NeighborMemberships(lists, FitNeighborScales(lists, 1), 1));
  for (const int dimensions : { 2, 3 })
  {
    const std::vector<float> start =
      SpectralLayout(points, PointMetric::Euclidean, graph, dimensions, 0, 1);
    EXPECT_THAT(start, testing::Each(testing::AllOf(testing::Ge(-1e-4F), testing::Le(10.001F))));
    // Along the first axis, which is that of the centers, no two parts overlap.
    std::vector<std::pair<float, float>> ranges;
    for (std::size_t part = 0; part < 4; ++part)
    {
      float least = std::numeric_limits<float>::infinity();
      float most = -least;
      for (std::size_t i = part * 20; i < (part + 1) * 20; ++i)
      {
        least = std::min(least, start[i * static_cast<std::size_t>(dimensions)]);
        most = std::max(most, start[i * static_cast<std::size_t>(dimensions)]);
      }
      EXPECT_GT(most - least, 0.1F);
      ranges.emplace_back(least, most);
    }
    std::sort(ranges.begin(), ranges.end());
    for (std::size_t part = 1; part < 4; ++part)
    {
      EXPECT_GT(ranges[part].first, ranges[part - 1].second - 1e-3F);
    }
  }
}

TEST(SpectralLayout, PartsOfFewPointsAndEqualCenters)
{
  // Pairs are too small for eigenvectors; all centers are at the origin.
  const std::vector<float> values = { 1, 0, -1, 0, 0, 1, 0, -1 };
  const FuzzyGraph graph{ 4, { 0, 1, 2, 3, 4 }, { 1, 0, 3, 2 }, { 1, 1, 1, 1 } };
  const std::vector<float> start =
    SpectralLayout({ values.data(), 4, 2 }, PointMetric::Euclidean, graph, 2, 0, 1);
  EXPECT_THAT(start, testing::Each(testing::AllOf(testing::Ge(0.F), testing::Le(10.001F))));
  EXPECT_EQ(std::set<float>(start.begin(), start.end()).size(), 6U); // 0 and 10 occur twice
}

TEST(HashedNumbers, DifferBySeedStreamAndNumber)
{
  std::set<std::uint64_t> bits;
  for (std::uint64_t seed = 0; seed < 10; ++seed)
  {
    for (std::uint64_t stream = 0; stream < 10; ++stream)
    {
      const HashedNumbers numbers(seed, stream);
      for (std::uint64_t i = 0; i < 10; ++i)
      {
        bits.insert(numbers.Bits(i));
      }
    }
  }
  EXPECT_EQ(bits.size(), 1000U);
}

TEST(HashedNumbers, AreUniform)
{
  const HashedNumbers numbers(1);
  double sum = 0;
  double squares = 0;
  std::vector<int> counts(7, 0);
  constexpr std::uint64_t count = 70'000;
  for (std::uint64_t i = 0; i < count; ++i)
  {
    const double number = numbers.Signed(i);
    EXPECT_GE(number, -1);
    EXPECT_LT(number, 1);
    sum += number;
    squares += number * number;
    ++counts[numbers.Below(i, 7)];
  }
  EXPECT_NEAR(sum / count, 0, 0.01); // 4.6 standard deviations
  EXPECT_NEAR(squares / count, 1. / 3, 0.01);
  EXPECT_THAT(counts, testing::Each(testing::AllOf(testing::Gt(9500), testing::Lt(10'500))));
}

}
