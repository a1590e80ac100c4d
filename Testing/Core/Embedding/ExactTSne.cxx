#include "ExactTSne.h"

#include "Base/Index.h"
#include "Base/Parallel.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <Eigen/Core>

namespace atlas
{
namespace
{

using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::Map<const Rows> PointsOf(const ExactLayout& layout)
{
  return { layout.values, layout.points, layout.dimensions };
}

Eigen::Map<const Rows> MatrixOf(const std::vector<double>& p, const ExactLayout& layout)
{
  return { p.data(), layout.points, layout.points };
}

/// w_ij, without those of points with themselves.
Rows WeightsOf(const ExactLayout& layout)
{
  const auto points = PointsOf(layout);
  Rows weights(layout.points, layout.points);
  for (Eigen::Index i = 0; i < points.rows(); ++i)
  {
    const Eigen::VectorXd squares = (points.rowwise() - points.row(i)).rowwise().squaredNorm();
    weights.row(i) = (1 + squares.array()).inverse();
    weights(i, i) = 0;
  }
  return weights;
}

/// sum_j factor_ij (y_i - y_j) of each point.
std::vector<double> SumDifferences(const ExactLayout& layout, const Rows& factors)
{
  const auto points = PointsOf(layout);
  std::vector<double> sums(layout.points * layout.dimensions);
  Eigen::Map<Rows>(sums.data(), points.rows(), points.cols()) =
    factors.rowwise().sum().asDiagonal() * points - factors * points;
  return sums;
}

}

std::vector<double> DenseMatrix(const SparseMatrix& matrix)
{
  std::vector<double> dense(matrix.points * matrix.points);
  for (std::int64_t i = 0; i < matrix.points; ++i)
  {
    for (std::int64_t e = matrix.begin[i]; e < matrix.begin[i + 1]; ++e)
    {
      dense[ToIndex(i * matrix.points) + matrix.index[e]] = static_cast<double>(matrix.value[e]);
    }
  }
  return dense;
}

std::vector<double> ExactRepulsion(const ExactLayout& layout, double& sum)
{
  const Rows weights = WeightsOf(layout);
  sum = weights.sum();
  return SumDifferences(layout, weights.cwiseProduct(weights));
}

std::vector<double> ExactAttraction(const std::vector<double>& p, const ExactLayout& layout)
{
  return SumDifferences(layout, MatrixOf(p, layout).cwiseProduct(WeightsOf(layout)));
}

std::vector<double> ExactGradient(const std::vector<double>& p, const ExactLayout& layout)
{
  const Rows weights = WeightsOf(layout);
  const Rows differences = MatrixOf(p, layout) - weights / weights.sum();
  return SumDifferences(layout, 4 * differences.cwiseProduct(weights));
}

double ExactDivergence(const std::vector<double>& p, const ExactLayout& layout)
{
  const Rows weights = WeightsOf(layout);
  const double sum = weights.sum();
  double divergence = 0;
  for (std::size_t i = 0; i < p.size(); ++i)
  {
    divergence += p[i] > 0 ? p[i] * std::log(p[i] * sum / weights.data()[i]) : 0;
  }
  return divergence;
}

std::vector<double> ExactDescent(
  const std::vector<double>& p, const ExactLayout& start, const ExactDescentOptions& options)
{
  std::vector<double> exaggerated = p;
  for (double& value : exaggerated)
  {
    value *= options.exaggeration;
  }
  std::vector<double> layout(start.values, start.values + start.points * start.dimensions);
  std::vector<double> update(layout.size());
  std::vector<double> gain(layout.size(), 1);
  for (int step = 0; step < options.steps; ++step)
  {
    const std::vector<double> gradient =
      ExactGradient(exaggerated, { layout.data(), start.points, start.dimensions });
    for (std::size_t i = 0; i < layout.size(); ++i)
    {
      gain[i] = gradient[i] * update[i] < 0 ? gain[i] + 0.2 : std::max(gain[i] * 0.8, 0.01);
      update[i] = options.momentum * update[i] - options.rate * gain[i] * gradient[i];
      layout[i] += update[i];
    }
  }
  return layout;
}

double TSneDivergence(
  const Affinities& affinities, const float* layout, int dimensions, int threads)
{
  const Rows points =
    Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
      layout, affinities.points, dimensions)
      .cast<double>();
  std::vector<double> weights(affinities.points); // sums of w by row
  std::vector<double> terms(weights.size());
  ParallelFor(affinities.points, threads,
    [&](std::int64_t i)
    {
      const Eigen::ArrayXd squares = (points.rowwise() - points.row(i)).rowwise().squaredNorm();
      weights[i] = (1 + squares).inverse().sum() - 1; // without itself
      for (std::int64_t e = affinities.begin[i]; e < affinities.begin[i + 1]; ++e)
      {
        const double p = affinities.value[e];
        terms[i] += p > 0 ? p * (std::log(p) + std::log1p(squares[affinities.index[e]])) : 0;
      }
    });
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  return std::accumulate(terms.begin(), terms.end(), std::log(sum));
}

}
