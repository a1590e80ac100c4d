#pragma once

#include "AttentionOnlyModel.h"

#include <array>
#include <cstdint>
#include <vector>

#include <Eigen/Core>

namespace atlas
{

/// A grid of points over the torus with columns along theta_1 and rows along theta_2. If it spans
/// -pi to pi along an angle, its first and last points are the same point of the torus, and the
/// last one is not counted as distinct.
struct TorusGrid
{
  int columns = 0; ///< points along theta_1; 0 if there is no grid
  int rows = 0;    ///< points along theta_2
  bool closed1 = false;
  bool closed2 = false;

  /// A grid of columns x rows points, at least 2 x 2, between the first and last angles given, in
  /// radians. A direction is closed if it has more than 3 points and spans -pi to pi within 1e-6.
  TorusGrid(int columnCount, int rowCount, const std::array<double, 2>& theta1,
    const std::array<double, 2>& theta2);
  TorusGrid() = default;

  int DistinctColumns() const { return this->columns - (this->closed1 ? 1 : 0); }
  int DistinctRows() const { return this->rows - (this->closed2 ? 1 : 0); }

  /// The index of a point among the distinct points, row by row.
  std::int64_t Distinct(int column, int row) const
  {
    return static_cast<std::int64_t>(row % this->DistinctRows()) * this->DistinctColumns() +
           column % this->DistinctColumns();
  }

  /// The indices of the distinct points among all points, row by row.
  std::vector<std::int64_t> DistinctPoints() const;
};

/// One of the grid points from which a value between them is interpolated.
struct GridCorner
{
  std::int64_t point = 0; ///< index among all points, row by row
  double weight = 0;
};

/// The four grid points around (theta1, theta2) with their bilinear weights, which add up to 1.
/// `bounds` holds the first and last theta_1, then theta_2; angles outside are clamped to them.
std::array<GridCorner, 4> BilinearCorners(
  const TorusGrid& grid, const std::array<double, 4>& bounds, double theta1, double theta2);

/// The vector scaled to length 1; (0, 0, 1) for the zero vector of a degenerate surface.
Eigen::RowVector3d UnitNormal(const Eigen::RowVector3d& normal);

/// One of several pieces of a grid, a band of quad rows. A grid in one piece shares its first and
/// last points where it is closed; if there are several pieces, each has its own points at both
/// ends.
class GridPiece
{
public:
  /// Piece `piece` of `pieces`, counted from 0.
  GridPiece(const TorusGrid& grid, int piece, int pieces);

  int FirstRow() const { return this->Begin; }
  int LastRow() const { return this->End; }
  std::int64_t QuadCount() const
  {
    return static_cast<std::int64_t>(this->End - this->Begin) * (this->Grid.columns - 1);
  }

  /// The points of the piece as indices among the distinct points of the grid.
  std::vector<std::int64_t> Points() const;

  /// The index within the piece of a grid point, FirstRow() <= row <= LastRow().
  std::int64_t Point(int column, int row) const
  {
    return static_cast<std::int64_t>((row - this->Begin) % this->Rows) *
             this->Grid.DistinctColumns() +
           column % this->Grid.DistinctColumns();
  }

private:
  TorusGrid Grid;
  int Begin;
  int End;
  int Rows; ///< of points
};

}
