#pragma once

#include <Eigen/Core>

namespace atlas
{

/// A thin singular value decomposition a = u diag(values) v^T of a matrix [m, n], k = min(m, n).
struct ThinSvd
{
  Eigen::MatrixXd u;      ///< [m, k]
  Eigen::VectorXd values; ///< [k], falling
  Eigen::MatrixXd v;      ///< [n, k]
};
ThinSvd DecomposeThin(const Eigen::MatrixXd& matrix);

/// The singular values alone, falling: [min(m, n)].
Eigen::VectorXd SingularValuesOf(const Eigen::MatrixXd& matrix);

}
