#include "StartLayout.h"

#include "Index.h"
#include "MatrixProduct.h"
#include "Pi.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <Eigen/Core>
#include <Eigen/Eigenvalues>

namespace atlas
{
namespace
{

using RowMajorMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr double Deviation = 1e-4;

/// The points as they are compared, minus their mean.
RowMajorMatrix Centered(const PointView& points, PointMetric metric)
{
  RowMajorMatrix matrix =
    Eigen::Map<const RowMajorMatrix>(points.values, points.count, points.dimension);
  if (metric == PointMetric::Euclidean)
  {
    const float largest = matrix.cwiseAbs().maxCoeff(); // so that no square overflows
    matrix /= largest > 0 ? largest : 1;
  }
  else
  {
    for (Eigen::Index i = 0; i < matrix.rows(); ++i)
    {
      const double norm = matrix.row(i).cast<double>().norm();
      matrix.row(i) *= norm > 0 ? static_cast<float>(1 / norm) : 0.F;
    }
  }
  const Eigen::RowVectorXd mean = matrix.cast<double>().colwise().mean();
  matrix.rowwise() -= mean.cast<float>();
  return matrix;
}

/// Sums of products of coordinates [dimension, dimension], over blocks of points.
Eigen::MatrixXd Scatter(const RowMajorMatrix& points)
{
  constexpr Eigen::Index block = 1024;
  const SingleThreadedBlas blas;
  const Eigen::Index size = points.cols();
  Eigen::MatrixXd sum = Eigen::MatrixXd::Zero(size, size);
  RowMajorMatrix part(size, size);
  for (Eigen::Index begin = 0; begin < points.rows(); begin += block)
  {
    const float* rows = points.data() + begin * size;
    MultiplyMatrices(size, size, std::min(block, points.rows() - begin), 1, { rows, size, true },
      { rows, size }, part.data(), size);
    sum += part.cast<double>();
  }
  return sum;
}

double Uniform(std::mt19937_64& generator) // 0 < u < 1, the same with every standard library
{
  return (static_cast<double>(generator() >> 11U) + 0.5) * 0x1p-53;
}

}

std::vector<float> RandomStart(std::int64_t count, int dimensions, std::uint64_t seed)
{
  std::mt19937_64 generator(seed);
  std::vector<float> layout(ToIndex(count * dimensions));
  for (float& value : layout)
  {
    const double radius = std::sqrt(-2 * std::log(Uniform(generator)));
    value = static_cast<float>(Deviation * radius * std::cos(2 * Pi * Uniform(generator)));
  }
  return layout;
}

std::vector<float> PrincipalStart(
  const PointView& points, PointMetric metric, int dimensions, std::uint64_t seed)
{
  std::vector<float> layout = RandomStart(points.count, dimensions, seed);
  for (float& value : layout)
  {
    value *= 0.01F;
  }
  const RowMajorMatrix matrix = Centered(points, metric);
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(Scatter(matrix));
  const Eigen::Index size = points.dimension;
  const double largest = solver.eigenvalues()[size - 1];
  const Eigen::Index components = std::min<Eigen::Index>(dimensions, size);
  for (Eigen::Index component = 0; component < components; ++component)
  {
    // Eigenvalues ascend. What is left by rounding is no component.
    if (!(solver.eigenvalues()[size - 1 - component] > 1e-6 * largest))
    {
      break;
    }
    Eigen::VectorXd loadings = solver.eigenvectors().col(size - 1 - component);
    Eigen::Index at = 0;
    loadings.cwiseAbs().maxCoeff(&at);
    const double deviation = std::sqrt(largest / static_cast<double>(points.count));
    loadings *= (loadings[at] < 0 ? -Deviation : Deviation) / deviation;
    const Eigen::VectorXf scores = matrix * loadings.cast<float>();
    for (Eigen::Index i = 0; i < points.count; ++i)
    {
      layout[ToIndex(i * dimensions + component)] += scores[i];
    }
  }
  return layout;
}

}
