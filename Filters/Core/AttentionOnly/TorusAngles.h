#pragma once

#include <Eigen/Core>

namespace atlas
{

/// How an angle names a point on the circle of layer-normalized word embeddings.
enum class AngleMap
{
  /// e(t) = sqrt(3) (cos(t) u + sin(t) v) with u = (1, 0, -1)/sqrt(2) and v = (-1, 2, -1)/sqrt(6):
  /// equal angles are equal arcs.
  Isometric,
  /// e(t) = LN((cos t, sin t, 0)): the parametrization of the published figures.
  Skewed
};

/// Layer normalization without gain and bias: (x - mean(x)) / sqrt(mean((x - mean(x))^2)), and 0
/// for an x whose components are all equal. The result has norm sqrt(3) and is orthogonal to (1, 1,
/// 1).
Eigen::Vector3d LayerNorm(const Eigen::Vector3d& x);

/// The embedding of norm sqrt(3) at angle `theta`, in radians.
Eigen::Vector3d EmbeddingAtAngle(double theta, AngleMap map);

/// The angle in (-pi, pi] of a layer-normalized embedding; the inverse of EmbeddingAtAngle. The
/// zero vector, which lies on no angle, gives 0.
double AngleOfEmbedding(const Eigen::Vector3d& embedding, AngleMap map);

}
