#pragma once

#include "AttentionOnly/SphericalVoronoi.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <Eigen/Geometry>

namespace atlas::test
{

/// Rows of independent normal numbers; on the unit sphere if asked for.
inline Rows3 RandomRows(Eigen::Index count, unsigned seed, bool onSphere = false)
{
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal;
  Rows3 rows(count, 3);
  for (Eigen::Index i = 0; i < rows.size(); ++i)
  {
    rows.data()[i] = normal(generator);
  }
  if (onSphere)
  {
    rows.rowwise().normalize();
  }
  return rows;
}

inline SphereTessellation Tessellate(const SphericalVoronoi& partition, int resolution)
{
  SphereTessellator tessellator(partition, resolution);
  for (std::size_t cell = 0; cell < partition.cells.size(); ++cell)
  {
    tessellator.AddCell(cell);
  }
  return tessellator.Get();
}

/// The inward normals of the great circles around a cell, from the rows alone.
inline std::vector<Eigen::Vector3d> InwardNormals(
  const SphericalVoronoi& partition, const VoronoiCell& cell, const Rows3& rows)
{
  std::vector<Eigen::Vector3d> normals;
  for (const std::size_t i : cell.arcs)
  {
    const VoronoiArc& arc = partition.arcs[i];
    const int other = arc.first == cell.owner ? arc.second : arc.first;
    normals.push_back((rows.row(cell.owner) - rows.row(other)).transpose().stableNormalized());
  }
  return normals;
}

/// The area of a cell by the theorem of Gauss and Bonnet: 2 pi without the angles by which its
/// boundary turns from one great circle to the next.
inline double ExactArea(
  const SphericalVoronoi& partition, const VoronoiCell& cell, const Rows3& rows)
{
  const double pi = std::acos(-1.0);
  if (cell.arcs.empty())
  {
    return 4 * pi;
  }
  const std::vector<Eigen::Vector3d> normals = InwardNormals(partition, cell, rows);
  double area = 2 * pi;
  for (std::size_t i = 0; i < normals.size(); ++i)
  {
    const Eigen::Vector3d& a = normals[i];
    const Eigen::Vector3d& b = normals[(i + 1) % normals.size()];
    area -= std::atan2(a.cross(b).norm(), a.dot(b));
  }
  return area;
}

/// The area of the spherical triangle between three unit vectors, positive if they are
/// counterclockwise from outside (Van Oosterom and Strackee 1983).
inline double TriangleArea(
  const Eigen::Vector3d& a, const Eigen::Vector3d& b, const Eigen::Vector3d& c)
{
  return 2 * std::atan2(a.dot(b.cross(c)), 1 + a.dot(b) + b.dot(c) + c.dot(a));
}

/// The area of each class on a tessellation whose edges are taken for arcs.
inline std::map<int, double> AreasOfPolygons(const SphereTessellation& sphere)
{
  std::map<int, double> areas;
  for (std::size_t p = 0; p < sphere.owners.size(); ++p)
  {
    const auto at = [&](std::int64_t i) -> const Eigen::Vector3d&
    { return sphere.points[sphere.connectivity[i]]; };
    for (std::int64_t i = sphere.offsets[p] + 1; i + 1 < sphere.offsets[p + 1]; ++i)
    {
      areas[sphere.owners[p]] += TriangleArea(at(sphere.offsets[p]), at(i), at(i + 1));
    }
  }
  return areas;
}

/// The number of edges that have other than two polygons, or two that run the same way.
inline std::size_t CountOpenEdges(
  const std::vector<std::int64_t>& offsets, const std::vector<std::int64_t>& connectivity)
{
  std::vector<std::pair<std::int64_t, std::int64_t>> edges;
  for (std::size_t p = 0; p + 1 < offsets.size(); ++p)
  {
    const std::int64_t size = offsets[p + 1] - offsets[p];
    for (std::int64_t i = 0; i < size; ++i)
    {
      edges.emplace_back(connectivity[offsets[p] + i], connectivity[offsets[p] + (i + 1) % size]);
    }
  }
  std::sort(edges.begin(), edges.end());
  std::size_t open = 0;
  for (std::size_t i = 0; i < edges.size(); ++i)
  {
    const bool twice = i > 0 && edges[i] == edges[i - 1];
    const bool back = std::binary_search(
      edges.begin(), edges.end(), std::make_pair(edges[i].second, edges[i].first));
    open += twice || !back || edges[i].first == edges[i].second;
  }
  return open;
}

}
