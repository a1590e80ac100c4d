#pragma once

#include <vector>

#include <Eigen/Core>

namespace atlas
{

/// An edge of a convex polyhedron, seen from outside: it runs from vertex `from` to vertex `to`
/// with the facet `left` on its left and the facet `right` on its right.
struct HullEdge
{
  Eigen::Index from = 0;
  Eigen::Index to = 0;
  std::size_t left = 0;
  std::size_t right = 0;
};

/// The boundary of a convex hull in 3D. Facets that are coplanar within rounding are one.
struct ConvexPolyhedron
{
  std::vector<Eigen::Vector3d> normals; ///< of each facet, outward, of norm 1
  std::vector<HullEdge> edges;
};

/// The convex hull of the columns of `points`, which span three dimensions and are of magnitude 1
/// or so. Throws GeometryError if Qhull, which computes it, finds no hull within its precision.
ConvexPolyhedron ConvexHull(const Eigen::Matrix3Xd& points);

/// The extreme columns of `points`, which span the plane, counterclockwise. Throws as ConvexHull.
std::vector<Eigen::Index> ConvexPolygon(const Eigen::Matrix2Xd& points);

}
