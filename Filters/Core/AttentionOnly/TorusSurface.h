#pragma once

#include "AttentionOnlyModel.h"
#include "Deformation.h"
#include "TorusGrid.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <Eigen/Core>

/// Surfaces over the torus, evaluated row by row, so that threads can share the rows. Each row is
/// the same whichever others are evaluated.
namespace atlas
{

/// Columns x rows points of a donut: the cosines and sines that its points have in common.
class DonutGrid
{
public:
  /// The angles of the columns and of the rows, in radians.
  DonutGrid(const std::vector<double>& theta1, const std::vector<double>& theta2);

  /// Writes Donut::Point of a row: points [columns, 3], packed.
  void Points(const Donut& donut, std::size_t row, float* points) const;

  /// Writes Donut::Normal of a row, which no radius changes: normals [columns, 3], packed.
  void Normals(std::size_t row, float* normals) const;

private:
  std::vector<double> Cosine1;
  std::vector<double> Sine1;
  std::vector<double> Cosine2;
  std::vector<double> Sine2;
};

/// Vectors that are read in blocks, such as the rows of a grid.
struct VectorBlocks
{
  std::int64_t count = 0;    ///< of vectors
  std::int64_t perBlock = 1; ///< in each block but the last, which has the rest
  std::function<void(std::int64_t block, double* vectors)> read; ///< [vectors of the block, 3]

  std::int64_t Blocks() const { return (count + perBlock - 1) / perBlock; }
  std::int64_t SizeOf(std::int64_t block) const
  {
    return std::min(perBlock, count - block * perBlock);
  }
};

/// Normalize for vectors that are read in blocks.
class VectorNormalizer
{
public:
  /// Reads all vectors, and all of the reference unless that is the null pointer: then the scale is
  /// that of the vectors. On up to ThreadCount(threads) threads, on whose number the result does
  /// not depend. Throws as Normalize.
  VectorNormalizer(const VectorBlocks& vectors, const VectorBlocks* reference,
    Normalization normalization, int threads);

  /// Normalizes `count` vectors [count, 3] in place.
  void Apply(double* vectors, std::int64_t count) const;

private:
  Normalization Kind;
  Eigen::Matrix3d Map = Eigen::Matrix3d::Identity();
};

/// Reads the points of a distinct row of a grid: [distinct columns, 3].
using PointRow = std::function<void(std::int64_t row, double* points)>;

/// Writes rows begin <= row < end of a grid as floats: points and their unit normals, each [end -
/// begin, distinct columns, 3]. The normal of a point is that of the sum of the normals of the
/// adjacent quads, where the length of each is twice the area of its quad; (0, 0, 1) if the sum is
/// 0. Rows are counted on where the grid is closed: row DistinctRows() is row 0.
void EvaluateSurface(const TorusGrid& grid, const PointRow& read, std::int64_t begin,
  std::int64_t end, float* points, float* normals);

}
