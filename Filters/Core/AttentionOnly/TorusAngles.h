#pragma once

#include <Eigen/Core>

namespace atlas
{

/// How an angle is mapped to a point of the circle of layer-normalized word embeddings.
enum class AngleMap
{
  /// e(t) = sqrt(3) (cos(t) u + sin(t) v) with u = (1, 0, -1)/sqrt(2) and v = (-1, 2, -1)/sqrt(6):
  /// equal differences of angle are equal arc lengths.
  Isometric,
  /// e(t) = LN((cos t, sin t, 0)): the parametrization of the published figures.
  Skewed
};

/// Layer normalization (Ba et al. 2016) without gain, bias and epsilon: (x - mean(x)) /
/// sqrt(mean((x - mean(x))^2)), and 0 if all components of x are equal. The result has norm sqrt(3)
/// and is orthogonal to (1, 1, 1).
Eigen::Vector3d LayerNorm(const Eigen::Vector3d& x);

/// The embedding of norm sqrt(3) at angle `theta`, in radians.
Eigen::Vector3d EmbeddingAtAngle(double theta, AngleMap map);

/// The angle in (-pi, pi] of a layer-normalized embedding; the inverse of EmbeddingAtAngle. Returns
/// 0 for the zero vector, which has no angle.
double AngleOfEmbedding(const Eigen::Vector3d& embedding, AngleMap map);

}
