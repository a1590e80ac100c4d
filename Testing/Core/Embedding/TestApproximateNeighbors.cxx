#include "Embedding/ApproximateNeighbors.h"

#include "Base/Error.h"
#include "Embedding/Internal/HashedNumbers.h"
#include "ErrorMessage.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;

namespace
{

/// Points around some centers in 16 dimensions.
struct Cloud
{
  static constexpr std::int64_t Dimension = 16;
  std::vector<float> values;

  explicit Cloud(std::int64_t count)
  {
    const HashedNumbers centers(1);
    const HashedNumbers offsets(2);
    for (std::int64_t i = 0; i < count * Dimension; ++i)
    {
      const auto number = static_cast<std::uint64_t>(i);
      const std::uint64_t center = centers.Bits(number / Dimension) % 50;
      this->values.push_back(
        static_cast<float>(centers.Signed(1'000'000 + center * Dimension + number % Dimension) +
                           0.5 * offsets.Signed(number)));
    }
  }

  PointView View() const
  {
    return { this->values.data(), static_cast<std::int64_t>(this->values.size()) / Dimension,
      Dimension };
  }
};

using ApproximateNeighbors = testing::TestWithParam<PointMetric>;

TEST_P(ApproximateNeighbors, AreMostOfTheNearest)
{
  const Cloud cloud(20'000);
  const NeighborLists lists = FindNeighborsApproximately(cloud.View(), GetParam(), 14, 0, 2);
  EXPECT_GT(NeighborRecall(cloud.View(), GetParam(), lists, 500, 2), 0.95);
  // Compared with the exact lists themselves: distances of the same neighbors are the same.
  const NeighborLists exact = FindNeighbors(cloud.View(), GetParam(), 14, 2);
  EXPECT_EQ(NeighborRecall(cloud.View(), GetParam(), exact, 100, 2), 1);
  std::size_t same = 0;
  for (std::size_t i = 0; i < lists.index.size(); i += 14)
  {
    EXPECT_TRUE(std::is_sorted(&lists.distance[i], &lists.distance[i] + 14));
    const std::uint32_t nearest = exact.index[i];
    const auto found = std::find(&lists.index[i], &lists.index[i] + 14, nearest);
    if (found != &lists.index[i] + 14)
    {
      ++same;
      EXPECT_EQ(
        lists.distance[i + static_cast<std::size_t>(found - &lists.index[i])], exact.distance[i]);
    }
    // No point is its own neighbor, or twice among those of another.
    std::vector<std::uint32_t> sorted(&lists.index[i], &lists.index[i] + 14);
    sorted.push_back(static_cast<std::uint32_t>(i / 14));
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(std::adjacent_find(sorted.begin(), sorted.end()), sorted.end());
  }
  EXPECT_GT(same, lists.index.size() / 14 * 95 / 100);
}

INSTANTIATE_TEST_SUITE_P(Metrics, ApproximateNeighbors,
  testing::Values(PointMetric::Cosine, PointMetric::SquaredCosine, PointMetric::Euclidean));

TEST(FindNeighborsApproximately, TheSameBytesForAnyNumberOfThreads)
{
  const Cloud cloud(5000);
  const NeighborLists one = FindNeighborsApproximately(cloud.View(), PointMetric::Cosine, 10, 3, 1);
  for (const int threads : { 2, 5 })
  {
    const NeighborLists lists =
      FindNeighborsApproximately(cloud.View(), PointMetric::Cosine, 10, 3, threads);
    EXPECT_EQ(lists.index, one.index);
    EXPECT_EQ(lists.distance, one.distance);
  }
}

TEST(FindNeighborsApproximately, EqualPointsAndPointsAtTheOrigin)
{
  Cloud cloud(6000);
  std::fill(cloud.values.begin(), cloud.values.begin() + 3000 * Cloud::Dimension, 1.F);
  std::fill(cloud.values.begin(), cloud.values.begin() + 700 * Cloud::Dimension, 0.F);
  for (const PointMetric metric : { PointMetric::Cosine, PointMetric::Euclidean })
  {
    const NeighborLists lists = FindNeighborsApproximately(cloud.View(), metric, 14, 0, 1);
    EXPECT_TRUE(std::all_of(
      lists.index.begin(), lists.index.end(), [](std::uint32_t j) { return j < 6000; }));
    EXPECT_TRUE(std::all_of(
      lists.distance.begin(), lists.distance.end(), [](float d) { return std::isfinite(d); }));
    EXPECT_GT(NeighborRecall(cloud.View(), metric, lists, 500, 1), 0.9);
  }
}

TEST(FindNeighborsApproximately, FewPointsAndHugeCoordinatesAreExact)
{
  const Cloud few(300);
  Cloud huge(3000);
  std::for_each(huge.values.begin(), huge.values.end(), [](float& value) { value *= 1e25F; });
  for (const auto& [view, metric] :
    { std::pair(few.View(), PointMetric::Cosine), std::pair(huge.View(), PointMetric::Euclidean) })
  {
    EXPECT_EQ(FindNeighborsApproximately(view, metric, 14, 0, 1).index,
      FindNeighbors(view, metric, 14, 1).index);
  }
}

TEST(FindNeighborsApproximately, ProgressStops)
{
  const Cloud cloud(5000);
  double last = -1;
  const auto progress = [&last](double done)
  {
    EXPECT_GT(done, last);
    last = done;
    if (done >= 0.5)
    {
      throw Canceled();
    }
  };
  EXPECT_THROW(
    FindNeighborsApproximately(cloud.View(), PointMetric::Cosine, 14, 0, 1, progress), Canceled);
  EXPECT_GE(last, 0.5);
}

TEST(FindNeighborsApproximately, RefusesWhatItCannotCompare)
{
  Cloud cloud(5000);
  const auto find = [&cloud](int count)
  {
    return MessageOf<OptionError>(
      [&] { FindNeighborsApproximately(cloud.View(), PointMetric::Cosine, count, 0, 1); });
  };
  EXPECT_THAT(find(0), HasSubstr("found 0"));
  cloud.values[33] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(find(5), HasSubstr("point 2, component 1"));
}

TEST(NeighborRecall, CountsTheNearest)
{
  // On a line: the first of the lists are right, those of point 3 are not.
  const std::vector<float> values = { 0, 1, 3, 7 };
  const PointView points{ values.data(), 4, 1 };
  const NeighborLists lists{ 4, 1, { 1, 0, 1, 0 }, { 1, 1, 2, 7 } };
  EXPECT_EQ(NeighborRecall(points, PointMetric::Euclidean, lists, 10, 1), 0.75);
  EXPECT_THAT(MessageOf<OptionError>([&]
                { NeighborRecall({ values.data(), 3, 1 }, PointMetric::Euclidean, lists, 1, 1); }),
    HasSubstr("lists of 3 points"));
}

}
