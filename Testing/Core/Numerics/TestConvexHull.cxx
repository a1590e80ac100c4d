#include "Numerics/ConvexHull.h"

#include "Base/Error.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <Eigen/Geometry>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using Eigen::Index;
using Eigen::Matrix2Xd;
using Eigen::Matrix3Xd;
using Eigen::Vector3d;

namespace
{

/// The corners of a cube, and points within it.
Matrix3Xd Cube()
{
  Matrix3Xd points(3, 11);
  for (Index i = 0; i < 8; ++i)
  {
    points.col(i) = Vector3d((i & 1) != 0 ? 1 : -1, (i & 2) != 0 ? 1 : -1, (i & 4) != 0 ? 1 : -1);
  }
  points.rightCols(3) << 0, 0.5, -0.9, 0, 0.25, 0.9, 0, -0.5, 0.1;
  return points;
}

/// What holds of every hull: a facet's edges lie in its plane, all points are behind it, and an
/// edge has its left facet on its left.
void ExpectConvex(const Matrix3Xd& points, const ConvexPolyhedron& hull)
{
  std::vector<double> offsets(hull.normals.size(), -1e300);
  for (const HullEdge& edge : hull.edges)
  {
    offsets[edge.left] = hull.normals[edge.left].dot(points.col(edge.from));
    offsets[edge.right] = hull.normals[edge.right].dot(points.col(edge.from));
  }
  for (std::size_t facet = 0; facet < hull.normals.size(); ++facet)
  {
    EXPECT_NEAR(hull.normals[facet].norm(), 1, 1e-12);
    EXPECT_LE((hull.normals[facet].transpose() * points).maxCoeff(), offsets[facet] + 1e-12);
  }
  for (const HullEdge& edge : hull.edges)
  {
    const Vector3d along = points.col(edge.to) - points.col(edge.from);
    EXPECT_NEAR(hull.normals[edge.left].dot(along), 0, 1e-12);
    EXPECT_NEAR(hull.normals[edge.right].dot(along), 0, 1e-12);
    // Seen from outside: along the z axis at the corner x = y = 1 of a cube, x = 1 is on the left.
    EXPECT_GT(hull.normals[edge.left].cross(hull.normals[edge.right]).dot(along), 0);
  }
}

TEST(ConvexHull, OfACubeHasSixFacets)
{
  const Matrix3Xd points = Cube();
  const ConvexPolyhedron hull = ConvexHull(points);
  ASSERT_EQ(hull.normals.size(), 6U) << "triangles of a face are one facet";
  EXPECT_EQ(hull.edges.size(), 12U);
  for (const double sign : { -1., 1. })
  {
    for (int axis = 0; axis < 3; ++axis)
    {
      EXPECT_EQ(std::count_if(hull.normals.begin(), hull.normals.end(), [&](const Vector3d& normal)
                  { return normal.isApprox(sign * Vector3d::Unit(axis), 1e-12); }),
        1);
    }
  }
  for (const HullEdge& edge : hull.edges)
  {
    EXPECT_LT(std::max(edge.from, edge.to), 8) << "points within are no vertices";
    EXPECT_NEAR((points.col(edge.from) - points.col(edge.to)).norm(), 2, 1e-12);
  }
  ExpectConvex(points, hull);
}

TEST(ConvexHull, OfPointsOnASphereObeysEuler)
{
  // A spiral of 50 points, no four of them in a plane: all are vertices and all facets triangles.
  Matrix3Xd points(3, 50);
  for (Index i = 0; i < 50; ++i)
  {
    const double z = 1 - (2 * static_cast<double>(i) + 1) / 50;
    const double angle = 2.4 * static_cast<double>(i);
    const double radius = std::sqrt(1 - z * z);
    points.col(i) << radius * std::cos(angle), radius * std::sin(angle), z;
  }
  const ConvexPolyhedron hull = ConvexHull(points);
  EXPECT_EQ(hull.edges.size(), 3U * 50 - 6);
  EXPECT_EQ(hull.normals.size(), 2U * 50 - 4);
  std::set<Index> vertices;
  for (const HullEdge& edge : hull.edges)
  {
    vertices.insert(edge.from);
    vertices.insert(edge.to);
  }
  EXPECT_EQ(vertices.size(), 50U);
  ExpectConvex(points, hull);
}

TEST(ConvexPolygon, RunsCounterclockwise)
{
  Matrix2Xd points(2, 6);
  points << 0, 1, 0.5, 1, 0, 0.2, //
    0, 1, 0.5, 0, 1, 0.9;
  const std::vector<Index> corners = ConvexPolygon(points);
  EXPECT_THAT(corners, testing::UnorderedElementsAre(0, 1, 3, 4));
  double area = 0;
  for (std::size_t i = 0; i < corners.size(); ++i)
  {
    const auto& a = points.col(corners[i]);
    const auto& b = points.col(corners[(i + 1) % corners.size()]);
    area += (a.x() * b.y() - a.y() * b.x()) / 2;
  }
  EXPECT_NEAR(area, 1, 1e-12);
}

TEST(ConvexPolygon, FlatPointsAndPointsOnALineAreRefused)
{
  Matrix3Xd flat = Cube();
  flat.row(2).setZero();
  EXPECT_THROW(ConvexHull(flat), GeometryError);
  Matrix2Xd line(2, 3);
  line << 0, 1, 2, 0, 1, 2;
  EXPECT_THROW(ConvexPolygon(line), GeometryError);
}

}
