#pragma once

#include "TransformerConfig.h"
#include "TransformerWeights.h"

#include <Eigen/Core>

namespace atlas
{

/// A tensor as a vector in double precision, or an empty one if it is missing.
Eigen::RowVectorXd ToVector(const TensorView& view);

/// A normalization split into the parts that are fixed and the one that depends on the vector:
/// norm(x) = gain (x - mean x) / sigma + shift, with the mean left out for RmsNorm.
struct NormSplit
{
  double sigma = 1;     ///< sqrt(mean of (x - mean x)^2 + epsilon), for RmsNorm of x^2; 1 without a
                        ///< normalization
  bool centers = false; ///< whether the mean is subtracted
};

/// The split of a model's normalizations at a vector [d_model].
NormSplit SplitNorm(const TransformerConfig& config, const Eigen::RowVectorXd& x);

/// Normalizes a vector [d_model] in double precision, with the gain and shift of a normalization.
void NormalizeVector(
  const TransformerConfig& config, const NormTensors& norm, Eigen::RowVectorXd& x);

}
