#include "MomentRoot.h"

#include <algorithm>

#include <Eigen/Eigenvalues>

namespace atlas
{

Eigen::MatrixXd MeanMoment(const std::vector<ExactSum>& sums, std::int64_t d, double count)
{
  return Eigen::MatrixXd::NullaryExpr(d, d, [&](Eigen::Index i, Eigen::Index j)
    { return sums[std::max(i, j) * d + std::min(i, j)].Value() / count; });
}

Eigen::VectorXd MeanVector(const std::vector<ExactSum>& sums, std::int64_t d, double count)
{
  return Eigen::VectorXd::NullaryExpr(d, [&](Eigen::Index i) { return sums[i].Value() / count; });
}

double SignOfLargest(const Eigen::VectorXd& vector)
{
  Eigen::Index largest = 0;
  vector.cwiseAbs().maxCoeff(&largest);
  return vector[largest] < 0 ? -1 : 1;
}

Eigen::MatrixXd SampleVectors(const CorpusStatistics& statistics, std::size_t head,
  std::vector<float> CorpusSample::* vectors, std::int64_t d)
{
  Eigen::MatrixXd rows(statistics.samples.size(), d);
  for (Eigen::Index s = 0; s < rows.rows(); ++s)
  {
    const float* first = (statistics.samples[s].*vectors).data() + head * d;
    rows.row(s) = Eigen::Map<const Eigen::RowVectorXf>(first, d).cast<double>();
  }
  return rows;
}

MomentRoot::MomentRoot(const Eigen::MatrixXd& matrix)
{
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(matrix);
  const Eigen::VectorXd values = solver.eigenvalues().cwiseMax(0).cwiseSqrt();
  const double least = values.maxCoeff() * 1e-6; // of the roots: 1e-12 of the variance
  const Eigen::VectorXd inverted =
    values.unaryExpr([least](double value) { return value > least ? 1 / value : 0.; });
  const Eigen::MatrixXd& vectors = solver.eigenvectors();
  this->root = vectors * values.asDiagonal() * vectors.transpose();
  this->inverse = vectors * inverted.asDiagonal() * vectors.transpose();
}

}
