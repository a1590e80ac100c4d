#include "Embedding/Internal/FuzzyGraph.h"

#include "ExactTSne.h"
#include "UmapOracle.h"

#include <algorithm>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

using GraphOfUmap = OfUmap;

TEST_P(GraphOfUmap, ScalesAndMembershipsFromItsNeighbors)
{
  const NeighborLists lists = this->Neighbors();
  const NeighborScales scales = FitNeighborScales(lists, 2);
  // The lists are in single precision.
  ExpectClose("rho", scales.rho, this->Expected.Values(this->Prefix + "rho"), 1e-7);
  ExpectClose("sigma", scales.sigma, this->Expected.Values(this->Prefix + "sigma"), 3e-7);
  ExpectClose(
    "directed", NeighborMemberships(lists, scales, 2), this->WithoutSelf("directed"), 2e-6);
}

TEST_P(GraphOfUmap, ScalesFromThePoints)
{
  const NeighborLists lists = FindNeighbors(this->Points(), this->Metric, 14, 1);
  ExpectClose("distance", lists.distance, this->WithoutSelf("distance"), 1e-6);
  const NeighborScales scales = FitNeighborScales(lists, 1);
  ExpectClose("rho", scales.rho, this->Expected.Values(this->Prefix + "rho"), 1e-6);
  ExpectClose("sigma", scales.sigma, this->Expected.Values(this->Prefix + "sigma"), 3e-6);
}

TEST_P(GraphOfUmap, Graph)
{
  const FuzzyGraph graph = this->Graph();
  if (this->Expected.Has(this->Prefix + "graph"))
  {
    ExpectClose("graph", DenseMatrix(graph), this->Expected.Values(this->Prefix + "graph"), 2e-6);
  }
  const std::vector<std::uint32_t> parts = ConnectedParts(graph);
  EXPECT_EQ(*std::max_element(parts.begin(), parts.end()) + 1,
    this->Expected.Integers(this->Prefix + "components").front());
}

INSTANTIATE_TEST_SUITE_P(Oracle, GraphOfUmap, OfUmap::All(), OfUmap::Name);

/// Each point's neighbors and their distances.
NeighborLists Lists(int count, std::vector<std::uint32_t> index, std::vector<float> distance)
{
  const auto points = static_cast<std::int64_t>(index.size()) / count;
  return { points, count, std::move(index), std::move(distance) };
}

TEST(FuzzyGraph, EqualDistancesGiveTheSmallestSigma)
{
  // Of 3 neighbors at the same distance memberships add up to 3 > log2(4) for any sigma.
  const NeighborLists lists =
    Lists(3, { 1, 2, 3, 0, 2, 3, 0, 1, 3, 0, 1, 2 }, { 2, 2, 2, 0, 0, 0, 0, 0, 0, 2, 2, 2 });
  const NeighborScales scales = FitNeighborScales(lists, 1);
  EXPECT_THAT(scales.rho, testing::ElementsAre(2, 0, 0, 2));
  EXPECT_DOUBLE_EQ(scales.sigma[0], 1e-3 * 1.5);  // of the mean of 0, 2, 2, 2
  EXPECT_DOUBLE_EQ(scales.sigma[1], 1e-3 * 0.75); // of the mean of all
  EXPECT_THAT(NeighborMemberships(lists, scales, 1), testing::Each(1));
}

TEST(FuzzyGraph, AllDistancesZero)
{
  const NeighborLists lists = Lists(1, { 1, 0 }, { 0, 0 });
  const NeighborScales scales = FitNeighborScales(lists, 1);
  EXPECT_THAT(NeighborMemberships(lists, scales, 1), testing::Each(1));
  EXPECT_THAT(DenseMatrix(UniteMemberships(lists, { 1, 1 })), testing::ElementsAre(0, 1, 1, 0));
}

TEST(FuzzyGraph, UnionOfBothDirections)
{
  const FuzzyGraph graph =
    UniteMemberships(Lists(1, { 1, 0, 1 }, { 1, 1, 1 }), { 0.5F, 0.25F, 0.75F });
  EXPECT_THAT(graph.begin, testing::ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(graph.index, testing::ElementsAre(1, 0, 2, 1));
  EXPECT_THAT(graph.value, testing::ElementsAre(0.625F, 0.625F, 0.75F, 0.75F));
}

TEST(FuzzyGraph, PartsAndTheirGraphs)
{
  // 0 - 3 and 1 - 2 - 4
  const FuzzyGraph graph =
    UniteMemberships(Lists(1, { 3, 2, 1, 0, 2 }, { 1, 1, 1, 1, 1 }), { 1, 0.5F, 0.5F, 1, 0.125F });
  EXPECT_THAT(ConnectedParts(graph), testing::ElementsAre(0, 1, 1, 0, 1));
  const FuzzyGraph part = PartOf(graph, { 1, 2, 4 });
  EXPECT_EQ(part.points, 3);
  EXPECT_THAT(DenseMatrix(part), testing::ElementsAre(0, 0.75, 0, 0.75, 0, 0.125, 0, 0.125, 0));
}

}
