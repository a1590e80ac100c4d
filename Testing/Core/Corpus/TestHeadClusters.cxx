#include "Base/Error.h"
#include "Corpus/HeadClusters.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

using namespace atlas;

namespace
{

Eigen::MatrixXd RandomDistances(Eigen::Index count, unsigned seed)
{
  std::mt19937_64 random(seed);
  std::normal_distribution<double> draw;
  const Eigen::MatrixXd points =
    Eigen::MatrixXd::NullaryExpr(count, 3, [&] { return draw(random); });
  return Eigen::MatrixXd::NullaryExpr(count, count,
    [&](Eigen::Index i, Eigen::Index j) { return (points.row(i) - points.row(j)).norm(); });
}

}

/// Average linkage: the nearest pair of all, searched for anew before each merge, also of equal
/// distances, where the clusters whose first heads come first are merged.
TEST(HeadClusters, AreThoseOfASearchOfAllPairs)
{
  for (const unsigned seed : { 1U, 2U, 3U, 4U, 5U, 6U })
  {
    Eigen::MatrixXd left = RandomDistances(60, seed);
    if (seed > 2) // with many equal ones, the more the larger
    {
      left = (left * (8 - seed)).array().round().matrix();
    }
    const std::vector<HeadMerge> found = MergeHeads(left);
    ASSERT_EQ(found.size(), 59);
    std::vector<std::int64_t> cluster(60);
    std::iota(cluster.begin(), cluster.end(), 0);
    std::vector<double> size(60, 1);
    for (Eigen::Index merge = 0; merge < 59; ++merge)
    {
      Eigen::Index a = -1;
      Eigen::Index b = -1;
      for (Eigen::Index i = 0; i < 60; ++i)
      {
        for (Eigen::Index j = i + 1; j < 60; ++j)
        {
          if (cluster[i] >= 0 && cluster[j] >= 0 && (a < 0 || left(i, j) < left(a, b)))
          {
            a = i;
            b = j;
          }
        }
      }
      ASSERT_EQ(found[merge].first, std::min(cluster[a], cluster[b])) << seed << " " << merge;
      ASSERT_EQ(found[merge].second, std::max(cluster[a], cluster[b])) << seed << " " << merge;
      ASSERT_EQ(found[merge].distance, left(a, b));
      left.row(a) = (left.row(a) * size[a] + left.row(b) * size[b]) / (size[a] + size[b]);
      left.col(a) = left.row(a).transpose();
      size[a] += size[b];
      ASSERT_EQ(found[merge].heads, static_cast<std::int64_t>(size[a]));
      cluster[a] = 60 + merge;
      cluster[b] = -1;
    }
  }
}

TEST(HeadClusters, ReportProgressAndStop)
{
  const Eigen::MatrixXd distances = RandomDistances(50, 1);
  std::vector<double> reports;
  MergeHeads(distances, [&](double done) { reports.push_back(done); });
  EXPECT_EQ(reports.size(), 49);
  EXPECT_TRUE(std::is_sorted(reports.begin(), reports.end()));
  int calls = 0;
  const auto stop = [&](double)
  {
    if (++calls == 3)
    {
      throw Canceled();
    }
  };
  EXPECT_THROW(MergeHeads(distances, stop), Canceled);
  EXPECT_EQ(calls, 3);
}

/// Distances of points in a plane are kept.
TEST(HeadClusters, AreScaledToAPlane)
{
  std::mt19937_64 random(5);
  std::normal_distribution<double> draw;
  const Eigen::MatrixX2d points =
    Eigen::MatrixX2d::NullaryExpr(12, 2, [&] { return draw(random); });
  const auto distancesOf = [](const Eigen::MatrixX2d& places) -> Eigen::MatrixXd
  {
    return Eigen::MatrixXd::NullaryExpr(places.rows(), places.rows(),
      [&](Eigen::Index i, Eigen::Index j) { return (places.row(i) - places.row(j)).norm(); });
  };
  const Eigen::MatrixX2d scaled = ScaleDistances(distancesOf(points));
  EXPECT_LT((distancesOf(scaled) - distancesOf(points)).cwiseAbs().maxCoeff(), 1e-9);
  EXPECT_LT(scaled.colwise().mean().norm(), 1e-12);
  EXPECT_EQ(ScaleDistances(Eigen::MatrixXd::Zero(1, 1)), Eigen::MatrixX2d::Zero(1, 2));
}

TEST(HeadClusters, AreCut)
{
  // Points 0, 1, 10, 11, 30 on a line.
  const std::vector<double> points = { 0, 30, 10, 1, 11 };
  const Eigen::MatrixXd distances = Eigen::MatrixXd::NullaryExpr(
    5, 5, [&](Eigen::Index i, Eigen::Index j) { return std::abs(points[i] - points[j]); });
  const std::vector<HeadMerge> merges = MergeHeads(distances);
  EXPECT_EQ(ClustersOf(merges, 5), (std::vector<std::int32_t>{ 0, 1, 2, 3, 4 }));
  EXPECT_EQ(ClustersOf(merges, 3), (std::vector<std::int32_t>{ 0, 1, 2, 0, 2 }));
  EXPECT_EQ(ClustersOf(merges, 2), (std::vector<std::int32_t>{ 0, 1, 0, 0, 0 }));
  EXPECT_EQ(ClustersOf(merges, 1), (std::vector<std::int32_t>(5, 0)));
  EXPECT_EQ(merges[2].distance, 10); // mean of 10, 11, 9, 10
  EXPECT_THROW(ClustersOf(merges, 0), OptionError);
  EXPECT_THROW(ClustersOf(merges, 6), OptionError);
}

TEST(HeadClusters, DistancesOfStatistics)
{
  CorpusStatistics statistics;
  statistics.heads.resize(3);
  for (std::size_t h = 0; h < 3; ++h)
  {
    statistics.places.push_back({ 0, static_cast<std::int32_t>(h) });
    statistics.heads[h].counts[0] = 1;
    statistics.heads[h].sums[static_cast<std::size_t>(CorpusSum::Entropy)].Add(
      h == 2 ? 0.75 : 0.25);
  }
  // One column differs; its standard deviation is 0.5 sqrt(2) / 3.
  const Eigen::MatrixXd distances = HeadDistances(statistics, ClusterDistance::Statistics);
  EXPECT_EQ(distances(0, 1), 0);
  EXPECT_NEAR(distances(0, 2), 3 / std::sqrt(2.), 1e-9);
  EXPECT_THROW(HeadDistances(statistics, ClusterDistance::Agreement), OptionError);
}
