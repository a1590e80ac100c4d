#pragma once

#include <Eigen/SVD>

namespace atlas
{

/// A thin singular value decomposition a = u diag(s) v^T, with falling s. Since version 5, Eigen
/// takes its options as arguments of the class.
#if EIGEN_MAJOR_VERSION >= 5
using ThinSvd = Eigen::BDCSVD<Eigen::MatrixXd, Eigen::ComputeThinU | Eigen::ComputeThinV>;

inline ThinSvd DecomposeThin(const Eigen::MatrixXd& matrix)
{
  return ThinSvd(matrix);
}
#else
using ThinSvd = Eigen::BDCSVD<Eigen::MatrixXd>;

inline ThinSvd DecomposeThin(const Eigen::MatrixXd& matrix)
{
  return { matrix, Eigen::ComputeThinU | Eigen::ComputeThinV };
}
#endif

}
