#include "ThinSvd.h"

#include <Eigen/SVD>

namespace atlas
{

ThinSvd DecomposeThin(const Eigen::MatrixXd& matrix)
{
// Since version 5, Eigen takes its options as arguments of the class.
#if EIGEN_MAJOR_VERSION >= 5
  const Eigen::BDCSVD<Eigen::MatrixXd, Eigen::ComputeThinU | Eigen::ComputeThinV> svd(matrix);
#else
  const Eigen::BDCSVD<Eigen::MatrixXd> svd(matrix, Eigen::ComputeThinU | Eigen::ComputeThinV);
#endif
  return { svd.matrixU(), svd.singularValues(), svd.matrixV() };
}

Eigen::VectorXd SingularValuesOf(const Eigen::MatrixXd& matrix)
{
  return Eigen::BDCSVD<Eigen::MatrixXd>(matrix).singularValues();
}

}
