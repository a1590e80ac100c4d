#pragma once

#include "AttentionOnlyModel.h"

#include <array>
#include <cstdint>
#include <vector>

#include <Eigen/Core>

namespace atlas
{

/// A grid of points over the torus, columns along theta_1 and rows along theta_2. Where it reaches
/// from -pi to pi along an angle, its first and last points are the same point of the torus, and
/// the last ones are not counted as distinct.
struct TorusGrid
{
  int columns = 0; ///< points along theta_1; 0: no grid
  int rows = 0;    ///< points along theta_2
  bool closed1 = false;
  bool closed2 = false;

  /// The grid of columns x rows points, at least 2 x 2, between two angles each, in radians. A
  /// direction is closed if it has more than 3 points and runs from -pi to pi, within 1e-6.
  TorusGrid(int columnCount, int rowCount, const std::array<double, 2>& theta1,
    const std::array<double, 2>& theta2);
  TorusGrid() = default;

  int DistinctColumns() const { return this->columns - (this->closed1 ? 1 : 0); }
  int DistinctRows() const { return this->rows - (this->closed2 ? 1 : 0); }

  /// The number of a point among the distinct ones, row by row.
  std::int64_t Distinct(int column, int row) const
  {
    return static_cast<std::int64_t>(row % this->DistinctRows()) * this->DistinctColumns() +
           column % this->DistinctColumns();
  }

  /// The numbers of the distinct points among all points, row by row.
  std::vector<std::int64_t> DistinctPoints() const;
};

/// One of the points that a value between the points of a grid is interpolated from.
struct GridCorner
{
  std::int64_t point = 0; ///< among all points, row by row
  double weight = 0;
};

/// The four points around a place of a grid, with bilinear weights, which add up to 1. `bounds` are
/// the first and last theta_1 and theta_2; angles beyond them are moved to them.
std::array<GridCorner, 4> BilinearCorners(
  const TorusGrid& grid, const std::array<double, 4>& bounds, double theta1, double theta2);

/// A normal per distinct point of a surface [distinct points, 3]: the sum of the normals of the
/// quads around the point, each as long as twice its quad's area.
Rows3 SumQuadNormals(const TorusGrid& grid, const Rows3& points);

/// A vector as long as 1; (0, 0, 1) instead of 0, where a surface is degenerate.
Eigen::RowVector3d UnitNormal(const Eigen::RowVector3d& normal);

/// One of several parts of a grid: a band of rows of quads. A grid in a single part is joined with
/// itself where it is closed; each of several parts has both of its ends.
class GridPiece
{
public:
  /// Part `piece`, from 0, of `pieces`.
  GridPiece(const TorusGrid& grid, int piece, int pieces);

  int FirstRow() const { return this->Begin; }
  int LastRow() const { return this->End; }
  std::int64_t QuadCount() const
  {
    return static_cast<std::int64_t>(this->End - this->Begin) * (this->Grid.columns - 1);
  }

  /// The points of the piece, by their numbers among the distinct points of the grid.
  std::vector<std::int64_t> Points() const;

  /// The number in the piece of a point of the grid, FirstRow() <= row <= LastRow().
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
