#include "Deformation.h"

#include "Base/Error.h"
#include "Base/Pi.h"

#include <cmath>

#include <Eigen/Eigenvalues>

namespace atlas
{
namespace
{

constexpr double ChartEnd = 1e-6;

/// Extents smaller than this, relative to the largest, are treated as 0.
constexpr double Flat = 1e-6;

void CheckFinite(const Rows3& vectors)
{
  for (Eigen::Index i = 0; i < vectors.rows(); ++i)
  {
    if (!vectors.row(i).allFinite())
    {
      throw NotFinite(vectors.row(i), i);
    }
  }
}

/// 1 / extent, or 0 if the extent is treated as 0.
Eigen::Vector3d Invert(const Eigen::Vector3d& extents)
{
  const double smallest = Flat * extents.maxCoeff();
  return extents.unaryExpr([=](double extent) { return extent > smallest ? 1 / extent : 0; });
}

Rows3 ToUnitSphere(const Rows3& vectors)
{
  Rows3 result(vectors.rows(), 3);
  for (Eigen::Index i = 0; i < vectors.rows(); ++i)
  {
    if (vectors.row(i).isZero(0))
    {
      throw NoDirection(i);
    }
    // It also works for vectors whose squares would underflow.
    result.row(i) = vectors.row(i).stableNormalized();
  }
  return result;
}

}

Eigen::Vector3d Donut::Point(double theta1, double theta2) const
{
  const double distance = this->majorRadius + this->minorRadius * std::cos(theta2);
  return { distance * std::cos(theta1), distance * std::sin(theta1),
    this->minorRadius * std::sin(theta2) };
}

Eigen::Vector3d Donut::Normal(double theta1, double theta2) const
{
  return { std::cos(theta2) * std::cos(theta1), std::cos(theta2) * std::sin(theta1),
    std::sin(theta2) };
}

void CheckDonut(const Donut& donut)
{
  const bool valid = std::isfinite(donut.majorRadius) && donut.minorRadius > 0 &&
                     donut.majorRadius > donut.minorRadius;
  ThrowIf<OptionError>(!valid,
    "MajorRadius and MinorRadius: expected 0 < MinorRadius < MajorRadius, found ",
    donut.minorRadius, " and ", donut.majorRadius, ".");
}

double WrapAngle(double theta)
{
  const double wrapped = theta - 2 * Pi * std::floor((theta + Pi) / (2 * Pi));
  return wrapped > Pi - ChartEnd || wrapped < -Pi ? -Pi : wrapped;
}

OptionError NotFinite(const Eigen::Vector3d& vector, std::int64_t point)
{
  return OptionError("expected finite vectors, found (", vector[0], ", ", vector[1], ", ",
    vector[2], ") at point ", point, ".");
}

OptionError NoDirection(std::int64_t point)
{
  return OptionError(
    "expected vectors other than 0, as 0 has no direction, found 0 at point ", point, ".");
}

Eigen::Matrix3d LinearMap(
  const Eigen::Matrix3d& moment, std::int64_t count, Normalization normalization)
{
  if (normalization == Normalization::PerAxis)
  {
    return Invert((moment.diagonal() / static_cast<double>(count)).cwiseSqrt()).asDiagonal();
  }
  // sum_i x_i x_i^T = V S^2 V^T for the singular value decomposition X = U S V^T. Then U V^T =
  // X V S^-1 V^T, which needs only V and S.
  const Eigen::SelfAdjointEigenSolver<Eigen::Matrix3d> solver(moment);
  const Eigen::Vector3d singular = solver.eigenvalues().cwiseMax(0).cwiseSqrt();
  return solver.eigenvectors() * Invert(singular).asDiagonal() * solver.eigenvectors().transpose();
}

Rows3 Normalize(const Rows3& vectors, const Rows3& reference, Normalization normalization)
{
  CheckFinite(vectors);
  if (normalization == Normalization::None)
  {
    return vectors;
  }
  if (normalization == Normalization::UnitSphere)
  {
    return ToUnitSphere(vectors);
  }
  CheckFinite(reference);
  return vectors *
         LinearMap(reference.transpose() * reference, reference.rows(), normalization).transpose();
}

}
