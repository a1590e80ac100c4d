#include "Geometry/PlaceBinding.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "Reports.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

/// Places at x = 0, 1, 2, ...
void OnALine(std::int64_t place, double* position)
{
  position[0] = static_cast<double>(place);
  position[1] = position[2] = 0;
}

TEST(PatchLattice, NumbersPatchesInTheOrderOfTheAxes)
{
  const PatchLattice lattice = { { 10, 0, -1 }, { 2, 1, 0.5 }, { 3, 2, 4 } };
  const auto at = [&](double x, double y, double z)
  {
    const std::array<double, 3> position = { x, y, z };
    return lattice.PatchAt(position.data());
  };
  EXPECT_EQ(at(10, 0, -1), 0);
  EXPECT_EQ(at(11.9, 0.9, -0.6), 0);
  EXPECT_EQ(at(12, 0, -1), 1); // a patch has its lower border
  EXPECT_EQ(at(14.5, 1.5, 0.6), 2 + 3 * (1 + 2 * 3));
  EXPECT_EQ(at(16, 2, 1), 2 + 3 * (1 + 2 * 3)); // the last one its upper border
  EXPECT_EQ(at(16.1, 0, -1), NoToken);
  EXPECT_EQ(at(9.9, 0, -1), NoToken);
  EXPECT_EQ(at(10, 0, 1.1), NoToken);
  EXPECT_EQ(at(std::numeric_limits<double>::quiet_NaN(), 0, 0), NoToken);
}

TEST(PatchLattice, IsChecked)
{
  const auto message = [](const PatchLattice& lattice)
  { return MessageOf<OptionError>([&] { CheckLattice(lattice, 12); }); };
  CheckLattice({ { 0, 0, 0 }, { 1, 1, 1 }, { 3, 2, 2 } }, 12);
  EXPECT_THAT(message({ { 0, 0, 0 }, { 1, 1, 1 }, { 13, 1, 1 } }),
    HasSubstr("PatchCounts: expected at most 12 patches, one per token, found 13 x 1 x 1."));
  EXPECT_THAT(message({ { 0, 0, 0 }, { 1, 1, 1 }, { 3, 0, 1 } }), HasSubstr("at least 1, found 0"));
  EXPECT_THAT(message({ { 0, 0, 0 }, { 1, 0, 1 }, { 1, 1, 1 } }), HasSubstr("PatchSize"));
  EXPECT_THAT(
    message({ { 0, std::numeric_limits<double>::infinity(), 0 }, { 1, 1, 1 }, { 1, 1, 1 } }),
    HasSubstr("GridOrigin"));
}

TEST(Residues, AreNumberedByChainAndNumber)
{
  const std::vector<Residue> all = { { 'A', 5 }, { 'A', 5 }, { 'B', 2 }, { 'A', 7 }, { 'A', -1 },
    { 'B', 2 } };
  const std::vector<Residue> distinct = DistinctResidues(all);
  std::vector<std::int64_t> tokens;
  for (const Residue& residue : all)
  {
    tokens.push_back(NumberOf(distinct, residue));
  }
  EXPECT_THAT(tokens, ElementsAre(1, 1, 3, 2, 0, 3));
}

TEST(CheckPlaces, FindsLimits)
{
  const std::vector<float> weights = { 0.5F, -3, 0.25F, 1, 0, 2 };
  BoundPlaces places;
  places.count = 3;
  places.width = 2;
  places.weights = weights.data();
  places.firstToken = 4;
  const PlaceLimits limits = CheckPlaces(places, OnALine, 6, "Input", 2);
  EXPECT_EQ(limits.length, 2);
  EXPECT_EQ(limits.weight, 3);
  EXPECT_EQ(limits.places, 3);
}

TEST(CheckPlaces, ReportsProgressAndCanBeCanceled)
{
  const std::vector<std::int32_t> tokens(1'000'000, 0);
  BoundPlaces places;
  places.count = 1'000'000;
  places.tokens = tokens.data();
  std::vector<double> reports;
  EXPECT_EQ(CheckPlaces(places, OnALine, 1, "", 2, KeepReports(reports)).length, 999'999);
  EXPECT_GT(reports.size(), 2U);
  EXPECT_TRUE(std::is_sorted(reports.begin(), reports.end()));
  EXPECT_EQ(reports.back(), 1);
  reports.clear();
  EXPECT_THROW(CheckPlaces(places, OnALine, 1, "", 2, KeepReports(reports, 1)), Canceled);
  EXPECT_THROW(RequireFinite(places.count, OnALine, "", 1, KeepReports(reports, 2)),
    Canceled); // its first one
  EXPECT_LT(reports.back(), 1);
}

TEST(CheckPlaces, RefusesWhatIsWrong)
{
  std::vector<std::int32_t> tokens = { 0, 3, -1 };
  BoundPlaces byIndex;
  byIndex.count = 3;
  byIndex.tokens = tokens.data();
  const auto message = [](const BoundPlaces& places, const PositionOf& positionOf)
  { return MessageOf<OptionError>([&] { CheckPlaces(places, positionOf, 4, "Block 2", 2); }); };
  EXPECT_EQ(CheckPlaces(byIndex, OnALine, 4, "", 1).places, 3);
  tokens[1] = 4;
  EXPECT_THAT(message(byIndex, OnALine), HasSubstr("Block 2: expected tokens from 0 to 3"));
  tokens[1] = -2;
  EXPECT_THAT(message(byIndex, OnALine), HasSubstr("found -2 at place 1"));
  tokens[1] = 1;
  const auto nowhere = [](std::int64_t place, double* position)
  {
    OnALine(place, position);
    position[2] = place == 2 ? std::numeric_limits<double>::quiet_NaN() : 0;
  };
  EXPECT_THAT(message(byIndex, nowhere), HasSubstr("positions, found nan at place 2"));
  EXPECT_THAT(
    MessageOf<OptionError>([&] { RequireFinite(3, nowhere, "Input", 2); }), HasSubstr("place 2"));

  std::vector<float> weights = { 1, 0, 0, 1, 0.5F, std::numeric_limits<float>::infinity() };
  BoundPlaces bySlices = { 3, 2, nullptr, weights.data(), 0 };
  EXPECT_THAT(message(bySlices, OnALine), HasSubstr("finite weights, found others at place 2"));
  weights[5] = 0.5F;
  bySlices.firstToken = 3;
  EXPECT_THAT(message(bySlices, OnALine), HasSubstr("at most 1 slices"));
}

}
