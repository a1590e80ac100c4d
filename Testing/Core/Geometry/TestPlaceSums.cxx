#include "Geometry/PlaceSums.h"

#include "Reports.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

PositionOf At(const std::vector<double>& positions)
{
  return [&positions](std::int64_t place, double* position)
  { std::copy_n(positions.begin() + 3 * place, 3, position); };
}

/// Places of random slices.
struct Slices
{
  static constexpr std::int64_t Count = 20000;
  static constexpr std::int64_t Width = 5;
  std::vector<float> weights;
  std::vector<double> positions;
  std::vector<std::int32_t> tokens; ///< of the sparse form

  Slices()
  {
    std::mt19937 generator(3);
    for (std::int64_t i = 0; i < Count * Width; ++i)
    {
      this->weights.push_back(static_cast<float>(generator() % 1000) / 999);
      this->tokens.push_back(static_cast<std::int32_t>(2 + i % Width));
    }
    for (std::int64_t i = 0; i < 3 * Count; ++i)
    {
      this->positions.push_back(static_cast<double>(generator() % 2001) / 100 - 7);
    }
  }

  BoundPlaces Dense(std::int64_t begin = 0, std::int64_t end = Count) const
  {
    return { end - begin, Width, nullptr, this->weights.data() + begin * Width, 2 };
  }
};

TEST(PlaceSums, OfIndicesAreCountsAndMeans)
{
  const std::vector<std::int32_t> tokens = { 2, 0, 2, -1 };
  const std::vector<double> positions = { 1, 2, 3, 4, 5, 6, 3, 2, -3, 100, 0, 0 };
  BoundPlaces places;
  places.count = 4;
  places.tokens = tokens.data();
  PlaceSums sums(3, CheckPlaces(places, At(positions), 3, "", 1));
  sums.Add(places, At(positions), nullptr, 2);
  EXPECT_EQ(sums.Of(0).places, 1);
  EXPECT_EQ(sums.Of(1).places, 0);
  EXPECT_FALSE(sums.Of(1).hasCenter);
  EXPECT_EQ(sums.Of(2).places, 2);
  EXPECT_EQ(sums.Of(2).weight, 2);
  EXPECT_THAT(
    sums.Of(2).center, ElementsAre(DoubleNear(2, 1e-9), DoubleNear(2, 1e-9), DoubleNear(0, 1e-9)));
  EXPECT_EQ(sums.OfAll().places, 4);
  EXPECT_NEAR(sums.OfAll().center[0], 27, 1e-9);
}

TEST(PlaceSums, LeavesGhostsOut)
{
  const std::vector<std::int32_t> tokens = { 0, 0, 1 };
  const std::vector<std::uint8_t> left = { 0, 1, 0 };
  const std::vector<double> positions(9, 1);
  BoundPlaces places;
  places.count = 3;
  places.tokens = tokens.data();
  PlaceSums sums(2, { 1, 1, 3 });
  sums.Add(places, At(positions), left.data(), 1);
  EXPECT_EQ(sums.Of(0).places, 1);
  EXPECT_EQ(sums.OfAll().places, 2);

  const std::vector<float> weights = { 1, 0, 1, 1, 0.5F, 0 }; // of two slices
  PlaceSums ofSlices(2, { 1, 1, 3 });
  ofSlices.Add({ 3, 2, nullptr, weights.data(), 0 }, At(positions), left.data(), 1);
  EXPECT_EQ(ofSlices.Of(0).places, 2);
  EXPECT_EQ(ofSlices.Of(0).weight, 1.5);
  EXPECT_EQ(ofSlices.Of(1).places, 0);
  EXPECT_EQ(ofSlices.OfAll().places, 2);
}

/// Against sums in double precision.
TEST(PlaceSums, OfSlicesAreWeighted)
{
  const Slices slices;
  const BoundPlaces places = slices.Dense();
  PlaceSums sums(8, CheckPlaces(places, At(slices.positions), 8, "", 2));
  sums.Add(places, At(slices.positions), nullptr, 3);
  EXPECT_EQ(sums.Of(1).places, 0);
  for (std::int64_t s = 0; s < Slices::Width; ++s)
  {
    double weight = 0;
    std::array<double, 3> moment = { 0, 0, 0 };
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < Slices::Count; ++i)
    {
      const auto w = static_cast<double>(slices.weights[i * Slices::Width + s]);
      weight += w;
      count += w != 0 ? 1 : 0;
      for (std::size_t axis = 0; axis < 3; ++axis)
      {
        moment[axis] += w * slices.positions[3 * i + axis];
      }
    }
    const TokenPlaces found = sums.Of(2 + s);
    EXPECT_EQ(found.places, count);
    EXPECT_NEAR(found.weight, weight, 1e-6);
    for (std::size_t axis = 0; axis < 3; ++axis)
    {
      EXPECT_NEAR(found.center[axis], moment[axis] / weight, 1e-9);
    }
  }
}

TEST(PlaceSums, DoNotDependOnPartsThreadsAndForm)
{
  const Slices slices;
  const BoundPlaces all = slices.Dense();
  const PositionOf positions = At(slices.positions);
  const PlaceLimits limits = CheckPlaces(all, positions, 8, "", 1);
  PlaceSums whole(8, limits);
  whole.Add(all, positions, nullptr, 1);

  PlaceSums parts(8, limits);
  constexpr std::int64_t cut = 8191;
  parts.Add(slices.Dense(0, cut), positions, nullptr, 2);
  const auto behind = [&](std::int64_t place, double* position)
  { positions(place + cut, position); };
  PlaceSums other(8, limits);
  other.Add(slices.Dense(cut), behind, nullptr, 3);
  parts.AddNumbers(other.Numbers().data());
  EXPECT_EQ(parts.Numbers(), whole.Numbers());

  BoundPlaces sparse = all;
  sparse.tokens = slices.tokens.data();
  PlaceSums ofSparse(8, limits);
  ofSparse.Add(sparse, positions, nullptr, 2);
  EXPECT_EQ(ofSparse.Numbers(), whole.Numbers());

  std::vector<std::int64_t> chosen(Slices::Count);
  std::iota(chosen.rbegin(), chosen.rend(), 0);
  PlaceSums ofChosen(8, limits);
  ofChosen.Add(all, positions, chosen);
  EXPECT_EQ(ofChosen.Numbers(), whole.Numbers());
}

/// A million places, of which the first quarter is of token 0.
TEST(PlaceSums, ReportProgressAndAddNothingWhenCanceled)
{
  constexpr std::int64_t count = 1'000'000;
  std::vector<std::int32_t> tokens(count, 1);
  std::fill_n(tokens.begin(), count / 4, 0);
  BoundPlaces places;
  places.count = count;
  places.tokens = tokens.data();
  const auto at = [](std::int64_t place, double* position)
  { std::fill_n(position, 3, static_cast<double>(place)); };
  PlaceSums sums(2, { count, 1, count });
  std::vector<double> reports;
  EXPECT_THROW(sums.Add(places, at, nullptr, 2, KeepReports(reports, 2)), Canceled);
  EXPECT_EQ(reports.size(), 2U);
  EXPECT_LT(reports.back(), 1);
  EXPECT_THAT(sums.Numbers(), Each(0));
  reports.clear();
  sums.Add(places, at, nullptr, 3, KeepReports(reports));
  EXPECT_GT(reports.size(), 2U);
  EXPECT_TRUE(std::is_sorted(reports.begin(), reports.end()));
  EXPECT_EQ(reports.back(), 1);
  EXPECT_EQ(sums.Of(0).places, count / 4);
  EXPECT_EQ(sums.Of(1).places, count - count / 4);
  EXPECT_NEAR(sums.Of(0).center[2], (count / 4 - 1) / 2.0, 1e-6);
}

}
