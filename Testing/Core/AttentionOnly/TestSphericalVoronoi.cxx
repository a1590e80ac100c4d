#include "AttentionOnly/SphericalVoronoi.h"
#include "Base/Pi.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "Oracle.h"
#include "Sphere.h"

#include <gmock/gmock.h>

using namespace atlas;
using namespace atlas::test;
using Eigen::Index;
using Eigen::Vector3d;
using testing::ElementsAre;
using testing::HasSubstr;

namespace
{

Rows3 Rows(std::initializer_list<Vector3d> vectors)
{
  Rows3 rows(vectors.size(), 3);
  Index i = 0;
  for (const Vector3d& vector : vectors)
  {
    rows.row(i++) = vector.transpose();
  }
  return rows;
}

std::vector<int> Owners(const SphericalVoronoi& partition)
{
  std::vector<int> owners;
  for (const VoronoiCell& cell : partition.cells)
  {
    owners.push_back(cell.owner);
  }
  return owners;
}

/// Expects that the cells cover the sphere exactly once, that every edge of the polygons belongs to
/// two of them, and that corners lie on the unit sphere.
void ExpectCovers(const SphericalVoronoi& partition, const Rows3& rows, int resolution)
{
  const SphereTessellation sphere = Tessellate(partition, resolution);
  std::map<int, double> areas = AreasOfPolygons(sphere);
  double sum = 0;
  double sumOfPolygons = 0;
  double largestDifference = 0;
  for (const VoronoiCell& cell : partition.cells)
  {
    const double exact = ExactArea(partition, cell, rows);
    sum += exact;
    sumOfPolygons += areas[cell.owner];
    largestDifference = std::max(largestDifference, std::abs(exact - areas[cell.owner]));
  }
  EXPECT_NEAR(sum, 4 * Pi, 1e-6);
  EXPECT_NEAR(sumOfPolygons, 4 * Pi, 1e-6);
  EXPECT_LE(largestDifference, 1e-7);
  EXPECT_EQ(areas.size(), partition.cells.size());
  EXPECT_EQ(CountOpenEdges(sphere.offsets, sphere.connectivity), 0U);
  EXPECT_TRUE(std::all_of(sphere.points.begin(), sphere.points.end(),
    [](const Vector3d& point) { return std::abs(point.norm() - 1) <= 4e-16; }));
}

/// Whether 0 is a positive combination of these, of which no fewer than all are dependent.
bool SurroundZero(const Vector3d& a, const Vector3d& b)
{
  return a.cross(b).isZero(0) && a.dot(b) < 0;
}
bool SurroundZero(const Vector3d& a, const Vector3d& b, const Vector3d& c)
{
  return a.dot(b.cross(c)) == 0 && a.cross(b).dot(b.cross(c)) > 0 && b.cross(c).dot(c.cross(a)) > 0;
}
bool SurroundZero(const Vector3d& a, const Vector3d& b, const Vector3d& c, const Vector3d& d)
{
  // By Cramer's rule.
  const Eigen::Vector4d factors(
    b.dot(c.cross(d)), -a.dot(c.cross(d)), a.dot(b.cross(d)), -a.dot(b.cross(c)));
  return factors.minCoeff() > 0 || factors.maxCoeff() < 0;
}

bool AnySurroundZero(const std::vector<Vector3d>& d)
{
  for (std::size_t i = 0; i < d.size(); ++i)
  {
    for (std::size_t j = 0; j < i; ++j)
    {
      if (SurroundZero(d[i], d[j]))
      {
        return true;
      }
      for (std::size_t k = 0; k < j; ++k)
      {
        if (SurroundZero(d[i], d[j], d[k]))
        {
          return true;
        }
        for (std::size_t l = 0; l < k; ++l)
        {
          if (SurroundZero(d[i], d[j], d[k], d[l]))
          {
            return true;
          }
        }
      }
    }
  }
  return false;
}

/// By the theorem of Gordan, w_c . x > w_k . x for all k has a solution if and only if 0 is not in
/// the convex hull of the w_c - w_k; if it is, it is in one of four of these or less
/// (Caratheodory). Of equal rows the lowest is meant to win. Exact for small integers.
bool IsReachableByBruteForce(const Rows3& rows, Index c)
{
  std::vector<Vector3d> d;
  for (Index k = 0; k < rows.rows(); ++k)
  {
    const Vector3d difference = (rows.row(c) - rows.row(k)).transpose();
    if (!difference.isZero(0))
    {
      d.push_back(difference);
    }
    else if (k < c)
    {
      return false;
    }
  }
  return !AnySurroundZero(d);
}

void ExpectReachable(const SphericalVoronoi& partition, const Rows3& rows)
{
  for (Index c = 0; c < rows.rows(); ++c)
  {
    ASSERT_EQ(partition.reachable[c], IsReachableByBruteForce(rows, c)) << c;
  }
}

/// Polygons of each class with the inward normals of their edges.
class PointLocator
{
public:
  explicit PointLocator(const SphereTessellation& sphere)
  {
    for (std::size_t p = 0; p < sphere.owners.size(); ++p)
    {
      const std::int64_t size = sphere.offsets[p + 1] - sphere.offsets[p];
      std::vector<Vector3d> normals;
      for (std::int64_t i = 0; i < size; ++i)
      {
        const auto corner = [&](std::int64_t k)
        { return sphere.points[sphere.connectivity[sphere.offsets[p] + k % size]]; };
        normals.push_back(corner(i).cross(corner(i + 1)).stableNormalized());
      }
      this->Polygons[sphere.owners[p]].push_back(std::move(normals));
    }
  }

  /// Whether a polygon of that class contains the direction, or misses it by `tolerance`.
  bool IsIn(int owner, const Vector3d& x, double tolerance) const
  {
    const auto found = this->Polygons.find(owner);
    return found != this->Polygons.end() &&
           std::any_of(found->second.begin(), found->second.end(),
             [&](const std::vector<Vector3d>& normals)
             {
               return std::all_of(normals.begin(), normals.end(),
                 [&](const Vector3d& normal) { return normal.dot(x) >= -tolerance; });
             });
  }

private:
  std::map<int, std::vector<std::vector<Vector3d>>> Polygons;
};

/// Expects that the class that is predicted in random directions is that of the cell there: by the
/// polygons, and by the great circles of the cells, all others of which exclude the direction.
void ExpectPredictions(const Rows3& rows, int directions)
{
  const SphericalVoronoi partition = PartitionSphere(rows);
  const PointLocator locator(Tessellate(partition, 24));
  std::mt19937_64 generator(7);
  std::normal_distribution<double> normal;
  int outside = 0;
  int inOthers = 0;
  int ties = 0;
  std::vector<std::vector<Vector3d>> circles;
  for (const VoronoiCell& cell : partition.cells)
  {
    circles.push_back(InwardNormals(partition, cell, rows));
  }
  for (int i = 0; i < directions; ++i)
  {
    const Vector3d x =
      Vector3d(normal(generator), normal(generator), normal(generator)).normalized();
    Eigen::VectorXd logits = rows * x;
    Index best = 0;
    const double largest = logits.maxCoeff(&best);
    logits[best] = -INFINITY;
    if (rows.rows() > 1 && largest - logits.maxCoeff() < 1e-9)
    {
      ++ties;
      continue;
    }
    const int predicted = static_cast<int>(best);
    outside += !locator.IsIn(predicted, x, 1e-12);
    for (std::size_t c = 0; c < circles.size(); ++c)
    {
      const bool inside = std::all_of(circles[c].begin(), circles[c].end(),
        [&](const Vector3d& circle) { return circle.dot(x) >= 0; });
      inOthers += inside != (partition.cells[c].owner == predicted);
    }
  }
  EXPECT_EQ(outside, 0);
  EXPECT_EQ(inOthers, 0);
  EXPECT_LT(ties, directions / 1000 + 1);
}

/// Checks that no row beats those that meet at a vertex, as a partition requires.
void ExpectVerticesAreWonByTheirCells(const SphericalVoronoi& partition, const Rows3& rows)
{
  double worst = 0;
  for (const VoronoiArc& arc : partition.arcs)
  {
    for (const std::size_t v : { arc.begin, arc.end })
    {
      const Eigen::VectorXd logits = rows * partition.vertices[v];
      worst = std::max(
        { worst, logits.maxCoeff() - logits[arc.first], logits.maxCoeff() - logits[arc.second] });
    }
  }
  EXPECT_LE(worst, 1e-12 * rows.cwiseAbs().maxCoeff());
}

using OracleSphere = OracleTest;
INSTANTIATE_TEST_SUITE_P(, OracleSphere, OracleTest::Models(), OracleTest::Name);

TEST_P(OracleSphere, HasACellForEachClassThatTheOraclePredicts)
{
  const SphericalVoronoi partition = PartitionSphere(GetOracle().GetModel().unembedding);
  const std::vector<std::int64_t> predicted = GetOracle().Integers("none.class");
  for (const std::int64_t c : std::set<std::int64_t>(predicted.begin(), predicted.end()))
  {
    EXPECT_TRUE(partition.reachable[c]) << c;
  }
}

using RandomSphere = testing::TestWithParam<int>;
INSTANTIATE_TEST_SUITE_P(
  , RandomSphere, testing::Values(2, 3, 4, 5, 40, 1000), testing::PrintToStringParamName());

TEST_P(RandomSphere, PredictsInRandomDirections)
{
  ExpectPredictions(RandomRows(GetParam(), 11), 100000);
}

TEST_P(RandomSphere, IsCovered)
{
  for (const bool onSphere : { false, true })
  {
    const Rows3 rows = RandomRows(GetParam(), 12, onSphere);
    const SphericalVoronoi partition = PartitionSphere(rows);
    ExpectVerticesAreWonByTheirCells(partition, rows);
    for (const int resolution : { 8, 33, 128, 300 })
    {
      ExpectCovers(partition, rows, resolution);
    }
  }
}

TEST(Sphere, KnowsWhatCanBePredicted)
{
  for (const Index count : { 2, 3, 4, 5, 8, 15, 40 })
  {
    for (unsigned seed = 0; seed < 5; ++seed)
    {
      const Rows3 rows = RandomRows(count, seed);
      ExpectReachable(PartitionSphere(rows), rows);
    }
  }
}

TEST(Sphere, OfFiftyThousandRowsIsCovered)
{
  const Rows3 rows = RandomRows(50000, 4, true); // of one norm: all are extreme
  const SphericalVoronoi partition = PartitionSphere(rows);
  EXPECT_EQ(partition.cells.size(), 50000U);
  EXPECT_EQ(partition.vertices.size(), 2 * 50000U - 4);
  ExpectCovers(partition, rows, 128);
}

TEST(Sphere, MergesCoplanarFacets)
{
  // A cube: three of its rows make a facet, the fourth lies in it; with the centers of its facets
  // and the middles of its edges, which are on the hull but not extreme.
  std::vector<Vector3d> corners;
  std::vector<Vector3d> others;
  for (const int x : { -1, 0, 1 })
  {
    for (const int y : { -1, 0, 1 })
    {
      for (const int z : { -1, 0, 1 })
      {
        (x * y * z != 0 ? corners : others).emplace_back(x, y, z);
      }
    }
  }
  Rows3 rows(27, 3);
  for (std::size_t i = 0; i < 27; ++i)
  {
    rows.row(static_cast<Index>(i)) = (i < 19 ? others[i] : corners[i - 19]).transpose();
  }
  const SphericalVoronoi partition = PartitionSphere(rows);
  EXPECT_THAT(Owners(partition), ElementsAre(19, 20, 21, 22, 23, 24, 25, 26));
  EXPECT_EQ(partition.vertices.size(), 6U);
  EXPECT_EQ(partition.arcs.size(), 12U);
  ExpectCovers(partition, rows, 128);
}

TEST(Sphere, OfAGridHasTheEightOctants)
{
  // Many rows in the facets and edges of a turned and stretched box.
  Rows3 rows(11 * 11 * 11, 3);
  for (Index i = 0; i < rows.rows(); ++i)
  {
    rows.row(i) << static_cast<double>(i % 11), 0.3 * static_cast<double>(i / 11 % 11),
      7.1 * static_cast<double>(i / 121);
  }
  const Rows3 turned =
    rows * Eigen::AngleAxisd(0.7, Vector3d(1, 2, 3).normalized()).toRotationMatrix();
  const SphericalVoronoi partition = PartitionSphere(turned);
  EXPECT_THAT(Owners(partition), ElementsAre(0, 10, 110, 120, 1210, 1220, 1320, 1330));
  for (const VoronoiCell& cell : partition.cells)
  {
    EXPECT_NEAR(ExactArea(partition, cell, turned), Pi / 2, 1e-9);
  }
  ExpectCovers(partition, turned, 128);
}

TEST(Sphere, IsOwnedByTheLowestOfEqualRows)
{
  for (const Rows3& rows :
    { Rows({ { 1, 2, 3 } }), Rows({ { 0, 0, 0 } }), Rows({ { 0, 0, 0 }, { -0., 0, -0. } }),
      Rows({ { 3, -1, 2 }, { 3, -1, 2 }, { 3, -1, 2 }, { 3, -1, 2 } }) })
  {
    const SphericalVoronoi partition = PartitionSphere(rows);
    EXPECT_THAT(Owners(partition), ElementsAre(0));
    EXPECT_TRUE(partition.arcs.empty());
    EXPECT_TRUE(partition.reachable[0]);
    EXPECT_EQ(std::count(partition.reachable.begin(), partition.reachable.end(), true), 1);
    for (const int resolution : { 8, 9, 128 })
    {
      ExpectCovers(partition, rows, resolution);
    }
  }
}

TEST(Sphere, OfTwoRowsHasTwoHemispheres)
{
  const Rows3 rows = Rows({ { 1, 2, 3 }, { 1, 2.5, 3 } });
  const SphericalVoronoi partition = PartitionSphere(rows);
  EXPECT_THAT(Owners(partition), ElementsAre(0, 1));
  for (const VoronoiCell& cell : partition.cells)
  {
    EXPECT_NEAR(ExactArea(partition, cell, rows), 2 * Pi, 1e-12);
    EXPECT_NEAR(cell.centre.y(), cell.owner == 0 ? -1 : 1, 1e-12);
  }
  ExpectCovers(partition, rows, 128);
  ExpectPredictions(rows, 10000);
}

TEST(Sphere, OfRowsInAPlaneHasLunes)
{
  // A square with its center, the middle of a side and a duplicate: four lunes of a right angle.
  const Vector3d centre(5, -1, 2);
  const Vector3d a(1, 2, -1);
  const Vector3d b(1, 0, 1);
  const Vector3d u = a.normalized();
  const Vector3d v = b.normalized();
  const Rows3 rows = Rows(
    { centre, centre + u, centre + v, centre - u, centre - v, centre + u, centre + (u + v) / 2 });
  const SphericalVoronoi partition = PartitionSphere(rows);
  EXPECT_THAT(Owners(partition), ElementsAre(1, 2, 3, 4));
  for (const VoronoiCell& cell : partition.cells)
  {
    EXPECT_EQ(cell.arcs.size(), 2U);
    EXPECT_NEAR(ExactArea(partition, cell, rows), Pi, 1e-12);
    EXPECT_NEAR((cell.centre - (rows.row(cell.owner).transpose() - centre)).norm(), 0, 1e-12);
  }
  ExpectCovers(partition, rows, 128);
}

TEST(Sphere, DoesNotDependOnShiftOrScale)
{
  const Rows3 rows = RandomRows(50, 8);
  const std::vector<int> expected = Owners(PartitionSphere(rows));
  for (const double scale : { 1e-300, 1e-20, 1e20, 1e300 })
  {
    const SphericalVoronoi partition = PartitionSphere(rows * scale);
    EXPECT_EQ(Owners(partition), expected);
    ExpectCovers(partition, rows, 32);
  }
  EXPECT_EQ(Owners(PartitionSphere(rows.array() + 100)), expected);
}

TEST(Sphere, OfSmallIntegersIsCovered)
{
  // Equal, collinear and coplanar rows and facets of many corners, in all combinations.
  std::mt19937_64 generator(15);
  for (int i = 0; i < 3000; ++i)
  {
    const auto largest = std::uniform_int_distribution<int>(1, 3)(generator);
    const auto count = std::uniform_int_distribution<Index>(1, 14)(generator);
    std::uniform_int_distribution<int> number(-largest, largest);
    Rows3 rows(count, 3);
    for (Index k = 0; k < rows.size(); ++k)
    {
      rows.data()[k] = number(generator);
    }
    SCOPED_TRACE(testing::Message() << "rows\n" << rows);
    const SphericalVoronoi partition = PartitionSphere(rows);
    ExpectCovers(partition, rows, 12);
    ExpectVerticesAreWonByTheirCells(partition, rows);
    ExpectReachable(partition, rows);
  }
}

TEST(Sphere, OfNearlyDegenerateRowsIsCovered)
{
  for (const double thickness : { 1e-3, 1e-6, 1e-8, 1e-10, 1e-11, 1e-13, 1e-16 })
  {
    for (const Index thin : { 1, 2 })
    {
      Rows3 rows = RandomRows(40, 9);
      rows.rightCols(thin) *= thickness;
      SCOPED_TRACE(testing::Message() << thickness << " in " << thin);
      const SphericalVoronoi partition = PartitionSphere(rows);
      const SphereTessellation sphere = Tessellate(partition, 64);
      EXPECT_EQ(CountOpenEdges(sphere.offsets, sphere.connectivity), 0U);
      double sum = 0;
      for (const auto& area : AreasOfPolygons(sphere))
      {
        sum += area.second;
      }
      EXPECT_NEAR(sum, 4 * Pi, 1e-6);
    }
  }
}

TEST(Sphere, OfNearlyEqualRowsIsCovered)
{
  for (const double distance : { 1e-4, 1e-8, 1e-12, 1e-14, 1e-15, 1e-16 })
  {
    Rows3 rows(60, 3);
    rows << RandomRows(20, 10), RandomRows(20, 10), RandomRows(20, 10);
    rows.bottomRows(40) += distance * RandomRows(40, 11);
    SCOPED_TRACE(distance);
    const SphericalVoronoi partition = PartitionSphere(rows);
    ExpectVerticesAreWonByTheirCells(partition, rows);
    const SphereTessellation sphere = Tessellate(partition, 64);
    EXPECT_EQ(CountOpenEdges(sphere.offsets, sphere.connectivity), 0U);
  }
}

TEST(Sphere, IsTheSameEachTime)
{
  const Rows3 rows = RandomRows(500, 13);
  const SphereTessellation a = Tessellate(PartitionSphere(rows), 64);
  const SphereTessellation b = Tessellate(PartitionSphere(rows), 64);
  EXPECT_EQ(a.points, b.points);
  EXPECT_EQ(a.connectivity, b.connectivity);
  EXPECT_EQ(a.owners, b.owners);
}

TEST(Sphere, KnowsItsSizeBefore)
{
  for (const int n : { 1, 2, 3, 5, 40, 1000 })
  {
    const SphericalVoronoi partition = PartitionSphere(RandomRows(n, 14));
    const auto points = static_cast<double>(Tessellate(partition, 200).points.size());
    const double estimate = CountTessellationPoints(partition, 200);
    EXPECT_GE(estimate, points * 0.99) << n;
    EXPECT_LE(estimate, points * 1.5 + 10) << n;
  }
  EXPECT_GT(CountTessellationPoints(PartitionSphere(RandomRows(1, 1)), 2000000000), 1e18);
}

TEST(Sphere, RefusesWhatItCannotPartition)
{
  EXPECT_THAT(
    MessageOf<GeometryError>([]() { PartitionSphere(Rows3(0, 3)); }), HasSubstr("found none"));
  Rows3 rows = RandomRows(5, 1);
  rows(3, 1) = std::nan("");
  EXPECT_THAT(MessageOf<GeometryError>([&]() { PartitionSphere(rows); }),
    HasSubstr("found inf or NaN in row 3"));
  const SphericalVoronoi partition = PartitionSphere(RandomRows(5, 1));
  EXPECT_THAT(MessageOf<OptionError>([&]() { SphereTessellator(partition, 7); }),
    HasSubstr("at least 8 segments of a great circle, found 7"));
}

}
