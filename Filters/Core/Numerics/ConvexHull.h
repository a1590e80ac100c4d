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

/// The boundary of a convex hull in 3D. Facets that are coplanar within rounding are merged.
struct ConvexPolyhedron
{
  std::vector<Eigen::Vector3d> normals; ///< outward unit normal of each facet
  std::vector<HullEdge> edges;
};

/// Computes the convex hull of the columns of `points` with Qhull (Barber, Dobkin and Huhdanpaa
/// 1996). The points must span three dimensions and have magnitudes of about 1. Throws
/// GeometryError if Qhull finds no hull within its precision.
ConvexPolyhedron ConvexHull(const Eigen::Matrix3Xd& points);

/// The extreme columns of `points`, counterclockwise. The points must span the plane. Throws as
/// ConvexHull does.
std::vector<Eigen::Index> ConvexPolygon(const Eigen::Matrix2Xd& points);

}
