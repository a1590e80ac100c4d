#pragma once

#include "AttentionOnlyModel.h"

#include <cstdint>
#include <vector>

#include <Eigen/Core>

namespace atlas
{

/// A piece of a great circle where two classes tie, at most half of it.
struct VoronoiArc
{
  int first = 0;          ///< class; less than `second`
  int second = 0;         ///< class
  std::size_t begin = 0;  ///< vertex. From begin to end, seen from outside, `first` is on the left
  std::size_t end = 0;    ///< vertex
  Eigen::Vector3d middle; ///< the point half way
  double length = 0;      ///< in radians, 0 to pi
};

/// The cell of a class.
struct VoronoiCell
{
  int owner = 0;                 ///< class
  std::vector<std::size_t> arcs; ///< around it, counterclockwise from outside; none: all the sphere
  Eigen::Vector3d centre;        ///< a point in its interior, from which all of it is seen
  double radius = 0;             ///< the largest distance of the cell from it, in radians
};

/// The partition of the unit sphere by the class that a linear map predicts:
///
///     V(c) = {x : |x| = 1, w_c . x >= w_c' . x for all c'}
///
/// for the rows w_c of W_U [N, 3]. It is the normal fan of the convex hull of the rows: a facet is
/// a vertex, an edge an arc and an extreme row a cell. A row that is not extreme is predicted
/// nowhere (or on a set without area) and has no cell; of equal rows the lowest has it.
struct SphericalVoronoi
{
  std::vector<Eigen::Vector3d> vertices; ///< where arcs end
  std::vector<VoronoiArc> arcs;
  std::vector<VoronoiCell> cells; ///< in the order of their classes
  std::vector<bool> reachable;    ///< [N]: whether the class has a cell
};

/// Rows that lie within this share of the largest magnitude of a plane, line or point are taken to
/// lie in it. Then cells are lunes, hemispheres or the whole sphere.
inline constexpr double DegenerateExtent = 1e-12;

/// The partition for N >= 1 rows. Throws GeometryError if there is no row or one is not finite, or
/// if the hull cannot be computed.
SphericalVoronoi PartitionSphere(const Rows3& rows);

/// The least number of segments of a full great circle.
inline constexpr int MinimumSphereResolution = 8;

/// Cells as polygons whose corners lie on the unit sphere. Neighbours share the points of their
/// arc, so that every edge has exactly two polygons. Written by SphereTessellator.
struct SphereTessellation
{
  std::vector<Eigen::Vector3d> points;
  std::vector<std::int64_t> offsets = {
    0
  };                                      ///< polygon i is connectivity[offsets[i], offsets[i+1])
  std::vector<std::int64_t> connectivity; ///< counterclockwise from outside
  std::vector<int> owners;                ///< class of each polygon
  std::vector<std::vector<std::int64_t>> polylines; ///< points of each arc, from begin to end
};

/// About the number of points of a tessellation. A double cannot overflow.
double CountTessellationPoints(const SphericalVoronoi& partition, int resolution);

/// Makes a tessellation, cell by cell.
class SphereTessellator
{
public:
  /// Subdivides the arcs; `resolution` is the number of segments of a full great circle. Throws
  /// OptionError if it is less than MinimumSphereResolution. `partition` must outlive this.
  SphereTessellator(const SphericalVoronoi& partition, int resolution);

  /// Appends the polygons of a cell: one if its radius is less than a segment, else rings around
  /// its centre.
  void AddCell(std::size_t cell);

  const SphereTessellation& Get() const { return this->Result; }

private:
  const SphericalVoronoi& Partition;
  int Resolution;
  SphereTessellation Result;

  void SubdivideArc(const VoronoiArc& arc);
  std::vector<std::int64_t> Boundary(const VoronoiCell& cell) const;
  void AddRings(const VoronoiCell& cell, const std::vector<std::int64_t>& boundary, int rings);
  void AddWholeSphere(int owner);
  /// The strip between two closed rings of as many points, the inner first.
  void AddStrip(
    const std::vector<std::int64_t>& inner, const std::vector<std::int64_t>& outer, int owner);
  /// The triangles between a point and the closed ring around it.
  void AddFan(std::int64_t centre, const std::vector<std::int64_t>& ring, int owner);
  void AddPolygon(const std::vector<std::int64_t>& corners, int owner);
  std::int64_t AddPoint(const Eigen::Vector3d& point);
};

}
