#include "Principal.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Numerics/MatrixProduct.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <Eigen/Eigenvalues>

namespace atlas
{
namespace
{

/// Points that are centered and multiplied at a time. Their products are added in double precision.
constexpr std::int64_t PointsPerProduct = 256;
/// Up to so many points, products are in double precision too, at little cost.
constexpr std::int64_t DoubleRows = 1024;

Eigen::Map<const Eigen::VectorXf> RowOf(const PointView& points, std::int64_t row)
{
  return { points.Row(row), points.dimension };
}

/// Sums of 64 rows are in single precision.
Eigen::VectorXd MeanOf(const PointView& points)
{
  constexpr std::int64_t few = 64;
  const std::vector<float> ones(few, 1);
  const SingleThreadedBlas blas;
  Eigen::VectorXf sum(points.dimension);
  Eigen::VectorXd total = Eigen::VectorXd::Zero(points.dimension);
  for (std::int64_t begin = 0; begin < points.count; begin += few)
  {
    const std::int64_t rows = std::min(few, points.count - begin);
    MultiplyMatrices(1, points.dimension, rows, 1, { ones.data(), few },
      { points.Row(begin), points.dimension }, sum.data(), points.dimension);
    total += sum.cast<double>();
  }
  return total / static_cast<double>(points.count);
}

/// Calls function(first point, number of points, their differences to the mean) block by block.
template<class Function>
void ForCenteredBlocks(
  const PointView& points, const Eigen::VectorXf& mean, const Function& function)
{
  std::vector<float> block(PointsPerProduct * points.dimension);
  for (std::int64_t begin = 0; begin < points.count; begin += PointsPerProduct)
  {
    const std::int64_t rows = std::min(PointsPerProduct, points.count - begin);
    for (std::int64_t i = 0; i < rows; ++i)
    {
      Eigen::Map<Eigen::VectorXf>(block.data() + i * points.dimension, points.dimension) =
        RowOf(points, begin + i) - mean;
    }
    function(begin, rows, block.data());
  }
}

Eigen::MatrixXd CovarianceOf(const PointView& points, const Eigen::VectorXd& mean)
{
  const std::int64_t d = points.dimension;
  const auto degrees = static_cast<double>(points.count - 1);
  if (points.count <= DoubleRows)
  {
    Eigen::MatrixXd centered(d, points.count);
    for (std::int64_t i = 0; i < points.count; ++i)
    {
      centered.col(i) = RowOf(points, i).cast<double>() - mean;
    }
    return centered * centered.transpose() / degrees;
  }
  const SingleThreadedBlas blas;
  Eigen::MatrixXf product(d, d);
  Eigen::MatrixXd sum = Eigen::MatrixXd::Zero(d, d);
  ForCenteredBlocks(points, mean.cast<float>(),
    [&](std::int64_t, std::int64_t rows, const float* block)
    {
      MultiplyMatrices(d, d, rows, 1, { block, d, true }, { block, d }, product.data(), d);
      sum += product.cast<double>();
    });
  return sum / degrees;
}

}

double PrincipalComponents::Ratio(std::int64_t number) const
{
  const auto begin = this->variance.begin();
  const std::int64_t shown = std::min<std::int64_t>(number, this->variance.size());
  const double total = std::accumulate(begin, this->variance.end(), 0.0);
  return total > 0 ? std::accumulate(begin, begin + shown, 0.0) / total : 1;
}

PrincipalComponents FindPrincipalComponents(const PointView& points, std::int64_t count)
{
  ThrowIf<OptionError>(points.count < 2 || points.dimension < 1 || count < 1,
    "principal components: expected at least 2 points and 1 component, found ", points.count,
    " and ", count, ".");
  const std::int64_t d = points.dimension;
  PrincipalComponents found;
  found.dimension = d;
  found.count = std::min(count, d);
  const Eigen::VectorXd mean = MeanOf(points);
  found.mean.assign(mean.begin(), mean.end());
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(CovarianceOf(points, mean));
  for (std::int64_t i = 0; i < d; ++i) // Eigen's values rise
  {
    found.variance.push_back(std::max(solver.eigenvalues()[d - 1 - i], 0.));
  }
  for (std::int64_t i = 0; i < found.count; ++i)
  {
    const Eigen::VectorXd component = solver.eigenvectors().col(d - 1 - i);
    Eigen::Index largest = 0;
    component.cwiseAbs().maxCoeff(&largest);
    const double sign = component[largest] < 0 ? -1 : 1;
    for (const double entry : component)
    {
      found.components.push_back(sign * entry);
    }
  }
  return found;
}

std::vector<float> Project(
  const PointView& points, const PrincipalComponents& principal, std::int64_t count)
{
  const std::int64_t d = principal.dimension;
  const std::int64_t used = std::min(count, principal.count);
  const std::vector<float> components(principal.components.begin(), principal.components.end());
  const Eigen::VectorXf mean =
    Eigen::Map<const Eigen::VectorXd>(principal.mean.data(), d).cast<float>();
  std::vector<float> scores(points.count * count);
  const SingleThreadedBlas blas;
  ForCenteredBlocks(points, mean,
    [&](std::int64_t begin, std::int64_t rows, const float* block)
    {
      MultiplyMatrices(rows, used, d, 1, { block, d }, { components.data(), d, true },
        scores.data() + begin * count, count);
    });
  return scores;
}

}
