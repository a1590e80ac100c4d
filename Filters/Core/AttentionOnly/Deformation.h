#pragma once

#include "AttentionOnlyModel.h"
#include "Base/Error.h"

#include <cstdint>

#include <Eigen/Core>

namespace atlas
{

/// A ring torus (a donut) around the z axis. theta_1 runs around the axis, theta_2 around the tube.
struct Donut
{
  double majorRadius = 2; ///< from the axis to the center of the tube; greater than minorRadius
  double minorRadius = 1; ///< radius of the tube; greater than 0

  /// ((R + r cos theta_2) cos theta_1, (R + r cos theta_2) sin theta_1, r sin theta_2)
  Eigen::Vector3d Point(double theta1, double theta2) const;

  /// The outward unit normal at that point.
  Eigen::Vector3d Normal(double theta1, double theta2) const;
};

/// Throws OptionError unless 0 < r < R, both finite.
void CheckDonut(const Donut& donut);

/// The angle in [-pi, pi) that equals `theta` modulo 2 pi, so that both ends of a chart are the
/// same point. Angles within 1e-6 of pi count as pi and become -pi.
double WrapAngle(double theta);

/// How a set of vectors x_1 ... x_n, for example the outputs of a model over the torus, is
/// normalized to a shape that is easy to view.
enum class Normalization
{
  None,      ///< x_i
  PerAxis,   ///< each component divided by its root mean square over all i; not centered
  Whitened,  ///< row i of U V^T, where U S V^T is the singular value decomposition of the matrix X
             ///< of all x_i (as in the source post), so that sum_i y_i y_i^T is the identity
  UnitSphere ///< x_i / |x_i|
};

/// The linear map y = M x of PerAxis or Whitened for `count` vectors of the reference, with their
/// second moment sum_i x_i x_i^T.
Eigen::Matrix3d LinearMap(
  const Eigen::Matrix3d& moment, std::int64_t count, Normalization normalization);

/// The errors for a vector that is not finite, and for one of length 0, at a point.
OptionError NotFinite(const Eigen::Vector3d& vector, std::int64_t point);
OptionError NoDirection(std::int64_t point);

/// Normalizes `vectors`. The scale is computed from `reference`: the vectors themselves or, for
/// points on a surface such as token pairs or a decision boundary, those of the whole surface.
///
/// A direction in which the extent of the reference is less than 1e-6 of its largest extent becomes
/// 0 instead of being divided by about 0. Throws OptionError with the index of the vector if one is
/// not finite, or if it is 0 and the normalization is UnitSphere.
Rows3 Normalize(const Rows3& vectors, const Rows3& reference, Normalization normalization);

}
