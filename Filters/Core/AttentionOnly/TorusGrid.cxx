#include "TorusGrid.h"

#include "Base/Pi.h"

#include <algorithm>
#include <cmath>

namespace atlas
{
namespace
{

/// Whether the angles from `first` to `last` span the whole circle.
bool IsWholeCircle(double first, double last)
{
  constexpr double tolerance = 1e-6;
  return std::abs(first + Pi) < tolerance && std::abs(last - Pi) < tolerance;
}

/// The position of a number among `count` equally spaced ones: the two it lies between, and the
/// fraction of the way from the first to the second.
struct Place
{
  std::int64_t index;
  double fraction;

  Place(double value, double first, double last, int count)
  {
    const double position = (value - first) / (last - first) * (count - 1);
    const double inside = std::clamp(position, 0., count - 1.);
    this->index = std::min(static_cast<std::int64_t>(inside), std::int64_t{ count } - 2);
    this->fraction = inside - static_cast<double>(this->index);
  }
};

}

TorusGrid::TorusGrid(int columnCount, int rowCount, const std::array<double, 2>& theta1,
  const std::array<double, 2>& theta2)
  : columns(columnCount)
  , rows(rowCount)
  , closed1(columnCount > 3 && IsWholeCircle(theta1[0], theta1[1]))
  , closed2(rowCount > 3 && IsWholeCircle(theta2[0], theta2[1]))
{
}

std::vector<std::int64_t> TorusGrid::DistinctPoints() const
{
  std::vector<std::int64_t> points;
  points.reserve(static_cast<std::size_t>(this->DistinctRows()) *
                 static_cast<std::size_t>(this->DistinctColumns()));
  for (int row = 0; row < this->DistinctRows(); ++row)
  {
    for (int column = 0; column < this->DistinctColumns(); ++column)
    {
      points.push_back(static_cast<std::int64_t>(row) * this->columns + column);
    }
  }
  return points;
}

std::array<GridCorner, 4> BilinearCorners(
  const TorusGrid& grid, const std::array<double, 4>& bounds, double theta1, double theta2)
{
  const Place column(theta1, bounds[0], bounds[1], grid.columns);
  const Place row(theta2, bounds[2], bounds[3], grid.rows);
  std::array<GridCorner, 4> corners;
  std::size_t corner = 0;
  for (const int right : { 0, 1 })
  {
    for (const int above : { 0, 1 })
    {
      corners[corner++] = { (row.index + above) * grid.columns + column.index + right,
        (right != 0 ? column.fraction : 1 - column.fraction) *
          (above != 0 ? row.fraction : 1 - row.fraction) };
    }
  }
  return corners;
}

Eigen::RowVector3d UnitNormal(const Eigen::RowVector3d& normal)
{
  const double length = normal.stableNorm();
  return length > 0 ? Eigen::RowVector3d(normal / length) : Eigen::RowVector3d(0, 0, 1);
}

GridPiece::GridPiece(const TorusGrid& grid, int piece, int pieces)
  : Grid(grid)
  , Begin((grid.rows - 1) * piece / pieces)
  , End((grid.rows - 1) * (piece + 1) / pieces)
  , Rows(pieces == 1 ? grid.DistinctRows()
                     : (this->Begin < this->End ? this->End - this->Begin + 1 : 0))
{
}

std::vector<std::int64_t> GridPiece::Points() const
{
  std::vector<std::int64_t> points;
  points.reserve(
    static_cast<std::size_t>(this->Rows) * static_cast<std::size_t>(this->Grid.DistinctColumns()));
  for (int row = this->Begin; row < this->Begin + this->Rows; ++row)
  {
    for (int column = 0; column < this->Grid.DistinctColumns(); ++column)
    {
      points.push_back(this->Grid.Distinct(column, row));
    }
  }
  return points;
}

}
