#pragma once

#include "ExactSum.h"

#include <cstdint>
#include <vector>

#include <Eigen/Core>

namespace atlas
{

/// The mean of products of components [d, d], of whose sums the part i <= j is known.
Eigen::MatrixXd MeanMoment(const std::vector<ExactSum>& sums, std::int64_t d, double count);

/// The square root of a symmetric matrix without negative eigenvalues, and its pseudo-inverse:
/// eigenvalues below 1e-12 of the largest count as 0.
struct MomentRoot
{
  Eigen::MatrixXd root;
  Eigen::MatrixXd inverse;

  explicit MomentRoot(const Eigen::MatrixXd& matrix);
};

}
