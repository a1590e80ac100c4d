#include "SphericalVoronoi.h"

#include "Base/Error.h"
#include "Base/Pi.h"
#include "Numerics/ConvexHull.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include <Eigen/Geometry>
#include <Eigen/SVD>

namespace atlas
{
namespace
{

using Eigen::Index;
using Eigen::Matrix3d;
using Eigen::MatrixXd;
using Eigen::Vector2d;
using Eigen::Vector3d;

/// The angle between unit vectors, also accurate near 0 and pi.
double AngleBetween(const Vector3d& a, const Vector3d& b)
{
  return 2 * std::atan2((a - b).norm(), (a + b).norm());
}

/// The point at fraction `u` of the arc from `a` to `b`, which is shorter than a half circle.
Vector3d Interpolate(const Vector3d& a, const Vector3d& b, double u)
{
  const double angle = AngleBetween(a, b);
  if (angle < 1e-6) // the sine equals its argument
  {
    return ((1 - u) * a + u * b).normalized();
  }
  return (std::sin((1 - u) * angle) * a + std::sin(u * angle) * b).normalized();
}

void CheckRows(const Rows3& rows)
{
  ThrowIf<GeometryError>(rows.rows() == 0, "unembedding: expected at least 1 row, found none.");
  for (Index i = 0; i < rows.rows(); ++i)
  {
    ThrowIf<GeometryError>(!rows.row(i).allFinite(),
      "unembedding: expected finite numbers, found inf or NaN in row ", i, ".");
  }
}

/// The lowest class of each distinct row, in order.
std::vector<int> DistinctRows(const Rows3& rows)
{
  std::vector<int> order(rows.rows());
  std::iota(order.begin(), order.end(), 0);
  const auto compare = [&](int a, int b)
  {
    const double* p = rows.data() + 3 * static_cast<Index>(a);
    const double* q = rows.data() + 3 * static_cast<Index>(b);
    return std::tie(p[0], p[1], p[2], a) < std::tie(q[0], q[1], q[2], b);
  };
  std::sort(order.begin(), order.end(), compare);
  order.erase(std::unique(order.begin(), order.end(),
                [&](int a, int b) { return rows.row(a) == rows.row(b); }),
    order.end());
  std::sort(order.begin(), order.end());
  return order;
}

/// Computes the partition for distinct rows of magnitude at most 1.
class Partitioner
{
public:
  Partitioner(const Rows3& rows, std::vector<int> classes)
    : Rows(rows)
    , Classes(std::move(classes))
  {
    this->Result.reachable.resize(rows.rows(), false);
    this->FindAxes();
  }

  SphericalVoronoi Run()
  {
    switch (this->Dimension)
    {
      case 0:
        this->AddWholeSphere();
        return this->Result;
      case 1:
        this->AddLunes(this->Ends());
        break;
      case 2:
        this->AddLunes(ConvexPolygon(this->Scaled().topRows(2)));
        break;
      default:
        this->AddArcsOfHull();
    }
    this->AddCells();
    return this->Result;
  }

private:
  const Rows3& Rows;
  std::vector<int> Classes; ///< of the columns below
  Eigen::Matrix3Xd Local;   ///< the rows minus their mean, in the coordinates of Axes
  Matrix3d Axes;            ///< columns: right-handed, the longest extent of the rows first
  Vector3d Extents;         ///< largest magnitude of the rows along each axis
  int Dimension = 0;        ///< of the set of rows
  SphericalVoronoi Result;

  void FindAxes()
  {
    MatrixXd centred(this->Classes.size(), 3);
    for (Index i = 0; i < centred.rows(); ++i)
    {
      centred.row(i) = this->Rows.row(this->Classes[i]);
    }
    const Eigen::RowVector3d mean = centred.colwise().mean();
    centred.rowwise() -= mean;
    MatrixXd axes = MatrixXd::Identity(3, 3);
    axes = Eigen::JacobiSVD<MatrixXd>(centred, Eigen::ComputeFullV).matrixV();
    if (axes.determinant() < 0)
    {
      axes.col(2) *= -1;
    }
    this->Axes = axes;
    this->Local = (centred * axes).transpose();
    this->Extents = this->Local.cwiseAbs().rowwise().maxCoeff();
    while (this->Dimension < 3 && this->Extents[this->Dimension] > DegenerateExtent)
    {
      ++this->Dimension;
    }
  }

  /// The rows, scaled to the same extent along all axes that they span, for the convex hull.
  Eigen::Matrix3Xd Scaled() const
  {
    Eigen::Matrix3Xd scaled = this->Local;
    for (Index axis = 0; axis < this->Dimension; ++axis)
    {
      scaled.row(axis) /= this->Extents[axis];
    }
    return scaled;
  }

  int Class(Index column) const { return this->Classes[column]; }

  /// The two extreme rows of rows on a line.
  std::vector<Index> Ends() const
  {
    Index lowest = 0;
    Index highest = 0;
    this->Local.row(0).minCoeff(&lowest);
    this->Local.row(0).maxCoeff(&highest);
    return { highest, lowest };
  }

  void AddWholeSphere()
  {
    this->Result.cells.push_back({ this->Classes.front(), {}, Vector3d::UnitZ(), Pi });
    this->Result.reachable[this->Classes.front()] = true;
  }

  void AddArc(int first, int second, std::size_t begin, std::size_t end, const Vector3d& middle,
    double length)
  {
    if (first > second)
    {
      std::swap(first, second);
      std::swap(begin, end);
    }
    this->Result.arcs.push_back({ first, second, begin, end, middle, length });
  }

  /// For rows in a plane: adds half circles between the two normals of the plane, each around the
  /// outward normal of an edge of the rows' convex polygon, which is counterclockwise. Two rows
  /// count as a polygon.
  void AddLunes(const std::vector<Index>& polygon)
  {
    const Vector3d pole = this->Axes.col(2).normalized();
    this->Result.vertices = { -pole, pole };
    for (std::size_t i = 0; i < polygon.size(); ++i)
    {
      const Index a = polygon[i];
      const Index b = polygon[(i + 1) % polygon.size()];
      const Vector2d edge = (this->Local.col(b) - this->Local.col(a)).head<2>();
      const Vector3d middle = this->Axes.col(0) * edge.y() - this->Axes.col(1) * edge.x();
      this->AddArc(this->Class(a), this->Class(b), 0, 1, middle.normalized(), Pi);
    }
  }

  void AddArcsOfHull()
  {
    const ConvexPolyhedron hull = ConvexHull(this->Scaled());
    for (const Vector3d& normal : hull.normals)
    {
      // The normal of a plane of the scaled rows, before scaling.
      const Vector3d local = normal.cwiseQuotient(this->Extents) * this->Extents[2];
      this->Result.vertices.push_back((this->Axes * local).normalized());
    }
    for (const HullEdge& edge : hull.edges)
    {
      const Vector3d& begin = this->Result.vertices[edge.right];
      const Vector3d& end = this->Result.vertices[edge.left];
      const Vector3d normal = this->Axes * (this->Local.col(edge.from) - this->Local.col(edge.to));
      this->AddArc(this->Class(edge.from), this->Class(edge.to), edge.right, edge.left,
        Middle(begin, end, normal), AngleBetween(begin, end));
    }
  }

  /// The midpoint of the arc from `begin` to `end` that runs counterclockwise around `normal`.
  static Vector3d Middle(const Vector3d& begin, const Vector3d& end, const Vector3d& normal)
  {
    const Vector3d sum = begin + end;
    if (sum.norm() > 1e-3)
    {
      return sum.normalized();
    }
    const double half = AngleBetween(begin, end) / 2;
    return (std::cos(half) * begin + std::sin(half) * normal.cross(begin).normalized())
      .normalized();
  }

  void AddCells()
  {
    std::vector<std::vector<std::size_t>> arcsOf(this->Result.reachable.size());
    for (std::size_t i = 0; i < this->Result.arcs.size(); ++i)
    {
      arcsOf[this->Result.arcs[i].first].push_back(i);
      arcsOf[this->Result.arcs[i].second].push_back(i);
    }
    for (std::size_t c = 0; c < arcsOf.size(); ++c)
    {
      if (!arcsOf[c].empty())
      {
        VoronoiCell cell{ static_cast<int>(c), std::move(arcsOf[c]), Vector3d::Zero(), 0 };
        this->Chain(cell);
        this->FindCentre(cell);
        this->Result.cells.push_back(std::move(cell));
        this->Result.reachable[c] = true;
      }
    }
  }

  std::size_t Begin(const VoronoiArc& arc, int owner) const
  {
    return arc.first == owner ? arc.begin : arc.end;
  }
  std::size_t End(const VoronoiArc& arc, int owner) const
  {
    return arc.first == owner ? arc.end : arc.begin;
  }

  /// Sorts the arcs of a cell so that each begins where the one before it ends.
  void Chain(VoronoiCell& cell) const
  {
    std::vector<std::size_t>& arcs = cell.arcs;
    for (std::size_t i = 0; i < arcs.size(); ++i)
    {
      const std::size_t end = this->End(this->Result.arcs[arcs[i]], cell.owner);
      const auto follows = [&](std::size_t arc)
      { return this->Begin(this->Result.arcs[arc], cell.owner) == end; };
      const bool last = i + 1 == arcs.size();
      const auto next =
        last ? std::find_if(arcs.begin(), arcs.begin() + 1, follows)
             : std::find_if(arcs.begin() + static_cast<std::ptrdiff_t>(i) + 1, arcs.end(), follows);
      if (next == (last ? arcs.begin() + 1 : arcs.end()))
      {
        throw GeometryError("unembedding: row ", cell.owner,
          " is too close to others for the cells of the sphere to be told apart in double "
          "precision.");
      }
      if (!last)
      {
        std::iter_swap(arcs.begin() + static_cast<std::ptrdiff_t>(i) + 1, next);
      }
    }
  }

  /// Of the great circle of an arc around a cell.
  Vector3d InwardNormal(const VoronoiCell& cell, const VoronoiArc& arc) const
  {
    const int other = arc.first == cell.owner ? arc.second : arc.first;
    const Vector3d normal = (this->Rows.row(cell.owner) - this->Rows.row(other)).transpose();
    return normal.stableNormalized();
  }

  /// The depth of a point inside a cell: the sine of the smallest angle to its arcs; negative
  /// outside.
  double Depth(const VoronoiCell& cell, const Vector3d& point) const
  {
    double depth = 1;
    for (const std::size_t i : cell.arcs)
    {
      depth = std::min(depth, this->InwardNormal(cell, this->Result.arcs[i]).dot(point));
    }
    return depth;
  }

  /// Finds an interior point of a cell, which is convex. Its centroid is the sum of the normals of
  /// its arcs, weighted by their lengths, but rounding makes that inaccurate for small or thin
  /// cells. The other candidate is the mean of its vertices and arc midpoints. The one deeper
  /// inside is used.
  void FindCentre(VoronoiCell& cell) const
  {
    Vector3d centroid = Vector3d::Zero();
    Vector3d mean = Vector3d::Zero();
    for (const std::size_t i : cell.arcs)
    {
      const VoronoiArc& arc = this->Result.arcs[i];
      centroid += arc.length * this->InwardNormal(cell, arc);
      mean += this->Result.vertices[arc.begin] + 2 * arc.middle + this->Result.vertices[arc.end];
    }
    centroid = centroid.stableNormalized();
    mean = mean.stableNormalized();
    cell.centre = this->Depth(cell, centroid) >= this->Depth(cell, mean) ? centroid : mean;
    for (const std::size_t i : cell.arcs)
    {
      const VoronoiArc& arc = this->Result.arcs[i];
      for (const Vector3d& point :
        { this->Result.vertices[arc.begin], arc.middle, this->Result.vertices[arc.end] })
      {
        cell.radius = std::max(cell.radius, AngleBetween(cell.centre, point));
      }
    }
  }
};

/// The number of segments of an arc of this length.
int SegmentCount(double length, int resolution)
{
  const double segments = length * resolution / (2 * Pi);
  return std::max(1, static_cast<int>(std::ceil(segments - 1e-9)));
}

}

SphericalVoronoi PartitionSphere(const Rows3& rows)
{
  CheckRows(rows);
  const double largest = rows.cwiseAbs().maxCoeff();
  // Adding 0 turns -0 into 0.
  const Rows3 scaled = largest > 0 ? Rows3((rows / largest).array() + 0.) : rows;
  return Partitioner(scaled, DistinctRows(scaled)).Run();
}

double CountTessellationPoints(const SphericalVoronoi& partition, int resolution)
{
  double points = static_cast<double>(partition.vertices.size());
  for (const VoronoiCell& cell : partition.cells)
  {
    double boundary = cell.arcs.empty() ? resolution : 0;
    for (const std::size_t arc : cell.arcs)
    {
      boundary += SegmentCount(partition.arcs[arc].length, resolution);
    }
    points += boundary * SegmentCount(cell.radius, resolution);
  }
  return points;
}

SphereTessellator::SphereTessellator(const SphericalVoronoi& partition, int resolution)
  : Partition(partition)
  , Resolution(resolution)
{
  ThrowIf<OptionError>(resolution < MinimumSphereResolution, "Resolution: expected at least ",
    MinimumSphereResolution, " segments of a great circle, found ", resolution, ".");
  this->Result.points = partition.vertices;
  for (const VoronoiArc& arc : partition.arcs)
  {
    this->SubdivideArc(arc);
  }
}

void SphereTessellator::SubdivideArc(const VoronoiArc& arc)
{
  const Vector3d begin = this->Partition.vertices[arc.begin];
  const Vector3d end = this->Partition.vertices[arc.end];
  const int segments = SegmentCount(arc.length, this->Resolution);
  std::vector<std::int64_t> line = { static_cast<std::int64_t>(arc.begin) };
  for (int i = 1; i < segments; ++i)
  {
    const double u = 2. * i / segments;
    line.push_back(this->AddPoint(
      u < 1 ? Interpolate(begin, arc.middle, u) : Interpolate(arc.middle, end, u - 1)));
  }
  line.push_back(static_cast<std::int64_t>(arc.end));
  this->Result.polylines.push_back(std::move(line));
}

void SphereTessellator::AddCell(std::size_t index)
{
  const VoronoiCell& cell = this->Partition.cells[index];
  if (cell.arcs.empty())
  {
    this->AddWholeSphere(cell.owner);
    return;
  }
  const std::vector<std::int64_t> boundary = this->Boundary(cell);
  const int rings = SegmentCount(cell.radius, this->Resolution);
  if (rings == 1)
  {
    this->AddPolygon(boundary, cell.owner);
    return;
  }
  this->AddRings(cell, boundary, rings);
}

std::vector<std::int64_t> SphereTessellator::Boundary(const VoronoiCell& cell) const
{
  std::vector<std::int64_t> boundary;
  for (const std::size_t arc : cell.arcs)
  {
    const std::vector<std::int64_t>& line = this->Result.polylines[arc];
    if (this->Partition.arcs[arc].first == cell.owner)
    {
      boundary.insert(boundary.end(), line.begin(), line.end() - 1);
    }
    else
    {
      boundary.insert(boundary.end(), line.rbegin(), line.rend() - 1);
    }
  }
  return boundary;
}

void SphereTessellator::AddRings(
  const VoronoiCell& cell, const std::vector<std::int64_t>& boundary, int rings)
{
  std::vector<std::int64_t> inner;
  for (int r = 1; r <= rings; ++r)
  {
    std::vector<std::int64_t> outer = boundary;
    for (std::size_t i = 0; r < rings && i < boundary.size(); ++i)
    {
      const Vector3d end = this->Result.points[boundary[i]];
      outer[i] = this->AddPoint(Interpolate(cell.centre, end, static_cast<double>(r) / rings));
    }
    this->AddRing(cell.centre, inner, std::move(outer), cell.owner);
  }
}

void SphereTessellator::AddWholeSphere(int owner)
{
  const int rings = (this->Resolution + 1) / 2;
  std::vector<std::int64_t> inner;
  for (int r = 1; r < rings; ++r)
  {
    const double polar = Pi * r / rings;
    std::vector<std::int64_t> outer;
    for (int i = 0; i < this->Resolution; ++i)
    {
      const double around = 2 * Pi * i / this->Resolution;
      const Vector3d point(
        std::sin(polar) * std::cos(around), std::sin(polar) * std::sin(around), std::cos(polar));
      outer.push_back(this->AddPoint(point.normalized()));
    }
    this->AddRing(Vector3d::UnitZ(), inner, std::move(outer), owner);
  }
  std::reverse(inner.begin(), inner.end()); // counterclockwise around the other pole
  this->AddFan(this->AddPoint(-Vector3d::UnitZ()), inner, owner);
}

void SphereTessellator::AddRing(const Vector3d& centre, std::vector<std::int64_t>& inner,
  std::vector<std::int64_t> outer, int owner)
{
  if (inner.empty())
  {
    this->AddFan(this->AddPoint(centre), outer, owner);
  }
  for (std::size_t i = 0; i < inner.size(); ++i)
  {
    const std::size_t next = (i + 1) % inner.size();
    this->AddPolygon({ inner[i], outer[i], outer[next], inner[next] }, owner);
  }
  inner = std::move(outer);
}

void SphereTessellator::AddFan(
  std::int64_t centre, const std::vector<std::int64_t>& ring, int owner)
{
  for (std::size_t i = 0; i < ring.size(); ++i)
  {
    this->AddPolygon({ centre, ring[i], ring[(i + 1) % ring.size()] }, owner);
  }
}

void SphereTessellator::AddPolygon(const std::vector<std::int64_t>& corners, int owner)
{
  std::vector<std::int64_t>& all = this->Result.connectivity;
  all.insert(all.end(), corners.begin(), corners.end());
  this->Result.offsets.push_back(all.size());
  this->Result.owners.push_back(owner);
}

std::int64_t SphereTessellator::AddPoint(const Vector3d& point)
{
  this->Result.points.push_back(point);
  return static_cast<std::int64_t>(this->Result.points.size()) - 1;
}

}
