#pragma once

#include "AttentionOnlyModel.h"

#include <cstdint>
#include <vector>

#include <Eigen/Core>

namespace atlas
{

/// An arc of a great circle on which two classes tie; at most a half circle.
struct VoronoiArc
{
  int first = 0;          ///< class; less than `second`
  int second = 0;         ///< class
  std::size_t begin = 0;  ///< vertex; walking from begin to end, seen from outside, `first` is on
                          ///< the left
  std::size_t end = 0;    ///< vertex
  Eigen::Vector3d middle; ///< the midpoint
  double length = 0;      ///< in radians, 0 to pi
};

/// The cell of a class.
struct VoronoiCell
{
  int owner = 0;                 ///< class
  std::vector<std::size_t> arcs; ///< around it, counterclockwise seen from outside; empty if the
                                 ///< cell is the whole sphere
  Eigen::Vector3d centre;        ///< an interior point from which the whole cell is visible
  double radius = 0;             ///< the largest distance from it to a point of the cell, in
                                 ///< radians
};

/// The partition of the unit sphere by the class that a linear map predicts:
///
///     V(c) = {x : |x| = 1, w_c . x >= w_c' . x for all c'}
///
/// for the rows w_c of W_U [N, 3], as in "Visualizing small Attention-only Transformers". It is the
/// normal fan of the convex hull of the rows: each facet gives a vertex, each edge an arc and each
/// extreme row a cell. A row that is not extreme is predicted nowhere (or on a set of zero area)
/// and has no cell. Of several equal rows only the one with the lowest index has a cell.
struct SphericalVoronoi
{
  std::vector<Eigen::Vector3d> vertices; ///< where arcs end
  std::vector<VoronoiArc> arcs;
  std::vector<VoronoiCell> cells; ///< in the order of their classes
  std::vector<bool> reachable;    ///< [N]: whether the class has a cell
};

/// If all rows lie within this distance of a common plane, line or point, relative to the largest
/// magnitude, they are treated as lying in it. The cells are then lunes, hemispheres or the whole
/// sphere.
inline constexpr double DegenerateExtent = 1e-12;

/// Computes the partition for N >= 1 rows. Throws GeometryError if there are no rows, a row is not
/// finite, or the convex hull cannot be computed.
SphericalVoronoi PartitionSphere(const Rows3& rows);

/// The smallest allowed number of segments of a full great circle.
inline constexpr int MinimumSphereResolution = 8;

/// The cells as polygons whose corners lie on the unit sphere. Neighboring cells share the points
/// of their arc, so every edge belongs to exactly two polygons. Made by SphereTessellator.
struct SphereTessellation
{
  std::vector<Eigen::Vector3d> points;
  /// Polygon i is connectivity[offsets[i], offsets[i+1]).
  std::vector<std::int64_t> offsets = { 0 };
  std::vector<std::int64_t> connectivity;           ///< counterclockwise seen from outside
  std::vector<int> owners;                          ///< the class of each polygon
  std::vector<std::vector<std::int64_t>> polylines; ///< points of each arc, from begin to end
};

/// An estimate of the number of points of a tessellation, as a double because that cannot overflow.
double CountTessellationPoints(const SphericalVoronoi& partition, int resolution);

/// Builds a tessellation cell by cell.
class SphereTessellator
{
public:
  /// Subdivides the arcs; `resolution` is the number of segments of a full great circle. Throws
  /// OptionError if it is less than MinimumSphereResolution. `partition` must outlive this object.
  SphereTessellator(const SphericalVoronoi& partition, int resolution);

  /// Appends the polygons of a cell: a single one if its radius is less than a segment, otherwise
  /// rings around its center.
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
  /// Adds the strip between two closed rings with equally many points, or the fan from `centre` if
  /// there is no inner one yet. The outer ring is the inner one then.
  void AddRing(const Eigen::Vector3d& centre, std::vector<std::int64_t>& inner,
    std::vector<std::int64_t> outer, int owner);
  /// Adds the triangles between a point and the closed ring around it.
  void AddFan(std::int64_t centre, const std::vector<std::int64_t>& ring, int owner);
  void AddPolygon(const std::vector<std::int64_t>& corners, int owner);
  std::int64_t AddPoint(const Eigen::Vector3d& point);
};

}
