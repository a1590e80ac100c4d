#pragma once

#include "Corpus/CorpusStatistics.h"

#include <cstdint>
#include <vector>

#include <Eigen/Core>

namespace atlas
{

/// The mean of products of components [d, d], of whose sums the part i <= j is known.
Eigen::MatrixXd MeanMoment(const std::vector<ExactSum>& sums, std::int64_t d, double count);

/// The mean of vectors [d], of which the sums of components are known.
Eigen::VectorXd MeanVector(const std::vector<ExactSum>& sums, std::int64_t d, double count);

/// -1 if the entry of the largest magnitude is negative, otherwise 1.
double SignOfLargest(const Eigen::VectorXd& vector);

/// The vectors of a head, by its index, of the tokens that were drawn [samples, d].
Eigen::MatrixXd SampleVectors(const CorpusStatistics& statistics, std::size_t head,
  std::vector<float> CorpusSample::* vectors, std::int64_t d);

/// A direction of each part as a column [d, parts].
template<class Part>
Eigen::MatrixXd ColumnsOf(
  const std::vector<Part>& parts, Eigen::VectorXd Part::* direction, std::int64_t d)
{
  Eigen::MatrixXd columns(d, parts.size());
  for (std::size_t r = 0; r < parts.size(); ++r)
  {
    columns.col(r) = parts[r].*direction;
  }
  return columns;
}

/// The square root of a symmetric matrix without negative eigenvalues, and its pseudo-inverse:
/// eigenvalues below 1e-12 of the largest count as 0.
struct MomentRoot
{
  Eigen::MatrixXd root;
  Eigen::MatrixXd inverse;

  explicit MomentRoot(const Eigen::MatrixXd& matrix);
};

}
