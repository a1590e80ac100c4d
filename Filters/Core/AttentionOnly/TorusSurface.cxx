#include "TorusSurface.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Base/Parallel.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <Eigen/Geometry>

namespace atlas
{
namespace
{

using Eigen::RowVector3d;
using Vectors = Eigen::Map<Rows3>;

/// What is known of a block of vectors.
struct BlockSum
{
  Eigen::Matrix3d moment = Eigen::Matrix3d::Zero();
  std::int64_t notFinite = -1; ///< the first of the block
  std::int64_t zero = -1;      ///< the first of the block
  Eigen::Vector3d found = Eigen::Vector3d::Zero();
};

BlockSum SumOf(const Vectors& vectors)
{
  BlockSum sum;
  for (Eigen::Index i = 0; i < vectors.rows(); ++i)
  {
    const RowVector3d vector = vectors.row(i);
    if (!vector.allFinite())
    {
      sum.notFinite = i;
      sum.found = vector.transpose();
      return sum;
    }
    if (sum.zero < 0 && vector.isZero(0))
    {
      sum.zero = i;
    }
    sum.moment.noalias() += vector.transpose() * vector;
  }
  return sum;
}

/// Sums all vectors, block by block. Throws OptionError for one that is not finite.
BlockSum SumOf(const VectorBlocks& vectors, int threads)
{
  std::vector<BlockSum> sums(vectors.Blocks());
  constexpr std::int64_t perTask = 16;
  const std::int64_t tasks = (vectors.Blocks() + perTask - 1) / perTask;
  ParallelFor(tasks, threads,
    [&](std::int64_t task)
    {
      Rows3 values(vectors.perBlock, 3);
      const std::int64_t end = std::min((task + 1) * perTask, vectors.Blocks());
      for (std::int64_t block = task * perTask; block < end; ++block)
      {
        vectors.read(block, values.data());
        sums[block] = SumOf(Vectors(values.data(), vectors.SizeOf(block), 3));
      }
    });
  BlockSum all;
  for (std::size_t block = 0; block < sums.size(); ++block)
  {
    const BlockSum& sum = sums[block];
    const auto first = static_cast<std::int64_t>(block) * vectors.perBlock;
    if (sum.notFinite >= 0)
    {
      throw NotFinite(sum.found, first + sum.notFinite);
    }
    all.zero = all.zero < 0 && sum.zero >= 0 ? first + sum.zero : all.zero;
    all.moment += sum.moment;
  }
  return all;
}

RowVector3d QuickUnitNormal(const RowVector3d& normal)
{
  constexpr double least = 1e-280; // between these, squares are exact to the last digits
  constexpr double most = 1e280;
  const double square = normal.squaredNorm();
  return square > least && square < most ? RowVector3d(normal / std::sqrt(square))
                                         : UnitNormal(normal);
}

/// Rows of points and of the normals of the quads between them, as they move up a grid.
class MovingRows
{
public:
  MovingRows(const TorusGrid& grid, const PointRow& read, std::int64_t begin)
    : Grid(grid)
    , Read(read)
    , Here(grid.DistinctColumns(), 3)
    , Next(grid.DistinctColumns(), 3)
    , Below(Rows3::Zero(grid.columns - 1, 3))
    , Above(grid.columns - 1, 3)
  {
    if (this->HasQuads(begin - 1))
    {
      this->ReadRow(begin - 1, this->Here);
      this->ReadRow(begin, this->Next);
      this->FillQuads(this->Below);
      std::swap(this->Here, this->Next);
    }
    else
    {
      this->ReadRow(begin, this->Here);
    }
    this->Look(begin);
  }

  const Rows3& Points() const { return this->Here; }

  /// The sum of the normals of the quads around a point of the row.
  RowVector3d NormalAt(Eigen::Index column) const
  {
    const Eigen::Index last = this->Below.rows() - 1;
    const Eigen::Index left = column > 0 ? column - 1 : this->Grid.closed1 ? last : -1;
    // Numbers of their own stay in registers. A vector went through memory at each addition.
    double x = 0;
    double y = 0;
    double z = 0;
    const auto add = [&](const Rows3& quads, Eigen::Index quad)
    {
      const double* normal = quads.data() + 3 * quad;
      x += normal[0];
      y += normal[1];
      z += normal[2];
    };
    for (const Rows3* quads : { &this->Below, &this->Above })
    {
      if (left >= 0)
      {
        add(*quads, left);
      }
      if (column <= last)
      {
        add(*quads, column);
      }
    }
    return { x, y, z };
  }

  /// Goes on to the next row, of this number.
  void MoveTo(std::int64_t row)
  {
    std::swap(this->Below, this->Above);
    std::swap(this->Here, this->Next);
    this->Look(row);
  }

private:
  const TorusGrid& Grid;
  const PointRow& Read;
  Rows3 Here;
  Rows3 Next;
  Rows3 Below; ///< normals of the quads between the row before and this one; 0 if there are none
  Rows3 Above;

  bool HasQuads(std::int64_t row) const
  {
    return this->Grid.closed2 || (row >= 0 && row + 1 < this->Grid.rows);
  }

  void ReadRow(std::int64_t row, Rows3& points) const
  {
    const std::int64_t count = this->Grid.DistinctRows();
    this->Read((row + count) % count, points.data());
  }

  /// Reads the row above this one, and the quads between them.
  void Look(std::int64_t row)
  {
    if (this->HasQuads(row))
    {
      this->ReadRow(row + 1, this->Next);
      this->FillQuads(this->Above);
    }
    else
    {
      this->Above.setZero();
    }
  }

  void FillQuads(Rows3& quads) const
  {
    const Eigen::Index columns = this->Here.rows();
    for (Eigen::Index column = 0; column < quads.rows(); ++column)
    {
      const Eigen::Index right = column + 1 < columns ? column + 1 : 0;
      const RowVector3d rising = this->Next.row(right) - this->Here.row(column);
      const RowVector3d falling = this->Next.row(column) - this->Here.row(right);
      quads.row(column) = rising.cross(falling);
    }
  }
};

}

DonutGrid::DonutGrid(const std::vector<double>& theta1, const std::vector<double>& theta2)
{
  const auto map = [](const std::vector<double>& angles, double (*function)(double))
  {
    std::vector<double> values(angles.size());
    std::transform(angles.begin(), angles.end(), values.begin(), function);
    return values;
  };
  this->Cosine1 = map(theta1, [](double theta) { return std::cos(theta); });
  this->Sine1 = map(theta1, [](double theta) { return std::sin(theta); });
  this->Cosine2 = map(theta2, [](double theta) { return std::cos(theta); });
  this->Sine2 = map(theta2, [](double theta) { return std::sin(theta); });
}

void DonutGrid::Points(const Donut& donut, std::size_t row, float* points) const
{
  const double distance = donut.majorRadius + donut.minorRadius * this->Cosine2[row];
  const auto height = static_cast<float>(donut.minorRadius * this->Sine2[row]);
  for (std::size_t i = 0; i < this->Cosine1.size(); ++i)
  {
    points[3 * i] = static_cast<float>(distance * this->Cosine1[i]);
    points[3 * i + 1] = static_cast<float>(distance * this->Sine1[i]);
    points[3 * i + 2] = height;
  }
}

void DonutGrid::Normals(std::size_t row, float* normals) const
{
  this->Points({ 0, 1 }, row, normals);
}

VectorNormalizer::VectorNormalizer(const VectorBlocks& vectors, const VectorBlocks* reference,
  Normalization normalization, int threads)
  : Kind(normalization)
{
  const BlockSum own = SumOf(vectors, threads);
  if (normalization == Normalization::UnitSphere && own.zero >= 0)
  {
    throw NoDirection(own.zero);
  }
  if (normalization == Normalization::PerAxis || normalization == Normalization::Whitened)
  {
    const BlockSum sum = reference != nullptr ? SumOf(*reference, threads) : own;
    this->Map =
      LinearMap(sum.moment, reference != nullptr ? reference->count : vectors.count, normalization);
  }
}

void VectorNormalizer::Apply(double* vectors, std::int64_t count) const
{
  Vectors rows(vectors, count, 3);
  switch (this->Kind)
  {
    case Normalization::None:
      return;
    case Normalization::UnitSphere:
      for (Eigen::Index i = 0; i < count; ++i)
      {
        rows.row(i).stableNormalize();
      }
      return;
    case Normalization::PerAxis:
    case Normalization::Whitened:
      for (Eigen::Index i = 0; i < count; ++i)
      {
        rows.row(i) = (this->Map * rows.row(i).transpose()).eval().transpose();
      }
      return;
  }
}

void EvaluateSurface(const TorusGrid& grid, const PointRow& read, std::int64_t begin,
  std::int64_t end, float* points, float* normals)
{
  if (begin >= end)
  {
    return;
  }
  using FloatRows = Eigen::Map<Eigen::Matrix<float, Eigen::Dynamic, 3, Eigen::RowMajor>>;
  const Eigen::Index columns = grid.DistinctColumns();
  MovingRows rows(grid, read, begin);
  for (std::int64_t row = begin;;)
  {
    FloatRows(points, columns, 3) = rows.Points().cast<float>();
    FloatRows ofRow(normals, columns, 3);
    for (Eigen::Index column = 0; column < columns; ++column)
    {
      ofRow.row(column) = QuickUnitNormal(rows.NormalAt(column)).cast<float>();
    }
    points += 3 * columns;
    normals += 3 * columns;
    if (++row == end)
    {
      return;
    }
    rows.MoveTo(row);
  }
}

}
