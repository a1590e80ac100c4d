#include "Geometry/ProteinRibbon.h"

#include "Base/Pi.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace testing;

namespace
{

using Place = std::array<double, 3>;
using Places = std::vector<Place>;

/// C-alpha atoms of an alpha helix along z: 100 degrees and 1.5 Angstrom apart, 2.3 from the axis.
Places Helix(int count)
{
  Places places;
  for (int i = 0; i < count; ++i)
  {
    const double angle = 100 * i * Pi / 180;
    places.push_back({ 2.3 * std::cos(angle), 2.3 * std::sin(angle), 1.5 * i });
  }
  return places;
}

/// Those of a strand along x at this y: 3.4 apart along it, pleated by 0.85 up and down.
Places Strand(int count, double y)
{
  Places places;
  for (int i = 0; i < count; ++i)
  {
    places.push_back({ 3.4 * i, y, i % 2 == 0 ? 0.85 : -0.85 });
  }
  return places;
}

/// C for coils, H and E, as biologists write them.
std::string LettersOf(const std::vector<BackboneKind>& kinds)
{
  std::string letters;
  for (const BackboneKind kind : kinds)
  {
    letters += "CHE"[static_cast<int>(kind)];
  }
  return letters;
}

TEST(ProteinRibbon, HelicesHaveTheirDistances)
{
  EXPECT_EQ(LettersOf(FindBackboneKinds({ Helix(9) })[0]), "CHHHHHHHC");
  EXPECT_EQ(LettersOf(FindBackboneKinds({ Helix(6) })[0]), "CCCCCC"); // one of four is too short
}

/// A turn on a cubic lattice with the step of a protein goes around like a helix, and is none.
TEST(ProteinRibbon, TurnsOfALatticeAreCoils)
{
  Places places;
  for (int i = 0; i < 12; ++i) // three sides around, then one up
  {
    const int turn = i % 4;
    places.push_back({ turn == 1 || turn == 2 ? 3.8 : 0, turn >= 2 ? 3.8 : 0, 3.8 * (i / 4) });
  }
  EXPECT_EQ(LettersOf(FindBackboneKinds({ places })[0]), "CCCCCCCCCCCC");
}

TEST(ProteinRibbon, StrandsNeedAnotherBesideThem)
{
  EXPECT_EQ(LettersOf(FindBackboneKinds({ Strand(7, 0) })[0]), "CCCCCCC");
  const auto pair = FindBackboneKinds({ Strand(7, 0), Strand(7, 4.8) });
  EXPECT_EQ(LettersOf(pair[0]), "CEEEEEC");
  EXPECT_EQ(LettersOf(pair[1]), "CEEEEEC");
  EXPECT_EQ(LettersOf(FindBackboneKinds({ Strand(7, 0), Strand(7, 5.5) })[0]), "CCCCCCC");
  EXPECT_THAT(FindBackboneKinds({}), IsEmpty());
}

/// The atoms of a chain with these places, numbered from a place in its sequence on.
void AddChain(Structure& structure, const std::string& name, const Places& places,
  std::int32_t sequence = 1, std::int32_t model = 1)
{
  for (const Place& place : places)
  {
    StructureAtom atom;
    atom.position = place;
    atom.name = "CA";
    atom.chain = name;
    atom.sequence = sequence++;
    atom.model = model;
    structure.atoms.push_back(atom);
  }
}

/// How far a point of the surface is from the atom of its residue, at most.
double FarthestFromAtom(const ProteinRibbon& ribbon, const Structure& structure)
{
  double farthest = 0;
  for (std::size_t i = 0; i < ribbon.points.size(); ++i)
  {
    double sum = 0;
    for (std::size_t axis = 0; ribbon.atoms[i] >= 0 && axis < 3; ++axis)
    {
      const double step =
        ribbon.points[i].at(axis) - structure.atoms[ribbon.atoms[i]].position.at(axis);
      sum += step * step;
    }
    farthest = std::max(farthest, std::sqrt(sum));
  }
  return farthest;
}

/// A closed surface has each of its edges twice, once in each direction; points of both ends and of
/// the sides lie at one place.
void ExpectClosed(const ProteinRibbon& ribbon)
{
  const auto keyOf = [&ribbon](std::int64_t point)
  {
    std::array<std::int64_t, 3> key{};
    for (std::size_t axis = 0; axis < 3; ++axis)
    {
      key.at(axis) = std::llround(1e6 * ribbon.points[point].at(axis));
    }
    return key;
  };
  using Key = std::array<std::int64_t, 3>;
  std::map<std::pair<Key, Key>, int> edges;
  for (const std::array<std::int64_t, 3>& triangle : ribbon.triangles)
  {
    for (std::size_t i = 0; i < 3; ++i)
    {
      const Key from = keyOf(triangle.at(i));
      const Key to = keyOf(triangle.at((i + 1) % 3));
      ++edges[{ from, to }];
      --edges[{ to, from }];
    }
  }
  EXPECT_TRUE(
    std::all_of(edges.begin(), edges.end(), [](const auto& edge) { return edge.second == 0; }));
}

TEST(ProteinRibbon, IsAClosedSurfaceAroundItsAtoms)
{
  Structure structure;
  AddChain(structure, "A", Helix(12));
  AddChain(structure, "B", Strand(8, 20));
  AddChain(structure, "C", Strand(8, 24.8));
  const ProteinRibbon ribbon = MakeRibbon(structure);
  ASSERT_EQ(ribbon.normals.size(), ribbon.points.size());
  ASSERT_EQ(ribbon.kinds.size(), ribbon.points.size());
  ASSERT_THAT(ribbon.triangles, Not(IsEmpty()));
  ExpectClosed(ribbon);
  // Half of the way to the next residue, half of an arrow, and what a pleat is off.
  EXPECT_LT(FarthestFromAtom(ribbon, structure), 1.9 + 1.9 + 0.85);
  for (std::size_t i = 0; i < structure.atoms.size(); ++i) // first the atoms
  {
    EXPECT_EQ(ribbon.points[i], structure.atoms[i].position);
    EXPECT_EQ(ribbon.atoms[i], static_cast<std::int64_t>(i));
    EXPECT_THAT(ribbon.normals[i], Each(0));
  }
  for (std::size_t i = structure.atoms.size(); i < ribbon.points.size(); ++i)
  {
    const std::array<float, 3>& normal = ribbon.normals[i];
    EXPECT_NEAR(normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2], 1, 1e-5);
  }
}

/// The range of an axis over the points of some residues.
std::pair<double, double> ExtentOf(
  const ProteinRibbon& ribbon, std::size_t axis, std::int64_t first, std::int64_t last)
{
  std::pair<double, double> range{ 1e9, -1e9 };
  for (std::size_t i = 0; i < ribbon.points.size(); ++i)
  {
    if (ribbon.atoms[i] >= first && ribbon.atoms[i] <= last &&
        std::any_of(
          ribbon.normals[i].begin(), ribbon.normals[i].end(), [](float x) { return x != 0; }))
    {
      range.first = std::min(range.first, ribbon.points[i].at(axis));
      range.second = std::max(range.second, ribbon.points[i].at(axis));
    }
  }
  return range;
}

/// Strands lie flat in their sheet, here in the plane of x and y; coils are round.
TEST(ProteinRibbon, StrandsAreFlatArrows)
{
  Structure structure;
  AddChain(structure, "A", Strand(9, 0));
  AddChain(structure, "B", Strand(9, 4.8));
  const ProteinRibbon ribbon = MakeRibbon(structure);
  const auto thick = ExtentOf(ribbon, 2, 4, 4); // the pleat is gone
  EXPECT_NEAR(thick.first, -0.22, 1e-6);
  EXPECT_NEAR(thick.second, 0.22, 1e-6);
  const auto wide = ExtentOf(ribbon, 1, 4, 4);
  EXPECT_NEAR(wide.first, -1.2, 1e-6);
  EXPECT_NEAR(wide.second, 1.2, 1e-6);
  EXPECT_NEAR(ExtentOf(ribbon, 1, 6, 7).second, 1.9, 1e-6); // the arrow; residue 7 is the last one
  EXPECT_NEAR(ExtentOf(ribbon, 1, 8, 8).second, 0.3, 1e-6);
}

/// The flat side of a helix is turned to its axis, so that its width is along it.
TEST(ProteinRibbon, HelicesAreRibbonsAroundTheirAxis)
{
  Structure structure;
  AddChain(structure, "A", Helix(14));
  const ProteinRibbon ribbon = MakeRibbon(structure);
  double nearest = 1e9;
  double farthest = 0;
  for (std::size_t i = 14; i < ribbon.points.size(); ++i)
  {
    if (ribbon.atoms[i] >= 4 && ribbon.atoms[i] <= 9)
    {
      const double radius = std::hypot(ribbon.points[i][0], ribbon.points[i][1]);
      nearest = std::min(nearest, radius);
      farthest = std::max(farthest, radius);
    }
  }
  EXPECT_GT(nearest, 2.3 - 0.22 - 0.5); // the curve cuts corners; turned, it would reach 1.1
  EXPECT_LT(farthest, 2.3 + 0.22 + 0.2);
}

/// A loop of two residues was not resolved, and a chain that is cut is no loop.
TEST(ProteinRibbon, DashesCrossWhatWasNotResolved)
{
  const auto dashes = [](const Structure& structure)
  {
    const ProteinRibbon ribbon = MakeRibbon(structure);
    ExpectClosed(ribbon);
    return std::count(ribbon.atoms.begin(), ribbon.atoms.end(), -1);
  };
  const Places first = { { 0, 0, 0 }, { 3.8, 0, 0 } };
  const auto after = [](double x) { return Places{ { x, 0, 0 }, { x + 3.8, 0, 0 } }; };
  Structure loop;
  AddChain(loop, "A", first);
  AddChain(loop, "A", after(11.8), 5); // 8 apart; three steps reach 11.4
  EXPECT_EQ(dashes(loop), 5 * 4 * 12); // of 1.6, each with two ends and two rings of 12
  Structure far;
  AddChain(far, "A", first);
  AddChain(far, "A", after(20), 5);
  EXPECT_EQ(dashes(far), 0);
  Structure cut; // neighbors that are too far apart
  AddChain(cut, "A", first);
  AddChain(cut, "A", after(11.8), 3);
  EXPECT_EQ(dashes(cut), 0);
  EXPECT_LT(FarthestFromAtom(MakeRibbon(cut), cut), 3);
  Structure other;
  AddChain(other, "A", first);
  AddChain(other, "B", after(11.8), 5);
  EXPECT_EQ(dashes(other), 0);
}

TEST(ProteinRibbon, TheFirstModelAndLocationCount)
{
  Structure structure;
  AddChain(structure, "A", { { 9, 9, 9 } }, 1, 2); // of the second model
  AddChain(structure, "A", { { 3.8, 0, 0 } }, 2);  // the order of atoms does not count
  AddChain(structure, "A", { { 0, 0, 0 } }, 1);
  AddChain(structure, "A", { { 0.5, 0, 0 } }, 1);
  AddChain(structure, "A", { { 5, 5, 5 } }, 0); // calcium
  const ProteinRibbon ribbon = MakeRibbon(structure);
  EXPECT_EQ(ribbon.atoms[0], 2);
  EXPECT_EQ(ribbon.atoms[1], 1);
  EXPECT_THAT(ribbon.atoms, Each(AnyOf(1, 2)));
  ExpectClosed(ribbon);
  EXPECT_THAT(MakeRibbon({}).points, IsEmpty());
  Structure single;
  AddChain(single, "A", { { 1, 2, 3 } });
  EXPECT_THAT(MakeRibbon(single).triangles, Not(IsEmpty()));
  EXPECT_LT(FarthestFromAtom(MakeRibbon(single), single), 0.5);
}

}
