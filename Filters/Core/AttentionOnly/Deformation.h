#pragma once

#include "AttentionOnlyModel.h"

#include <Eigen/Core>

namespace atlas
{

/// A ring torus (a donut) around the z axis. theta_1 runs around the axis, theta_2 around the tube.
struct Donut
{
  double majorRadius = 2; ///< from the axis to the middle of the tube; greater than minorRadius
  double minorRadius = 1; ///< of the tube; greater than 0

  /// ((R + r cos theta_2) cos theta_1, (R + r cos theta_2) sin theta_1, r sin theta_2)
  Eigen::Vector3d Point(double theta1, double theta2) const;

  /// The outward unit normal there.
  Eigen::Vector3d Normal(double theta1, double theta2) const;
};

/// Throws OptionError unless 0 < r < R, both finite.
void CheckDonut(const Donut& donut);

/// The angle that is `theta` modulo 2 pi in [-pi, pi), so that both ends of a chart are one. Angles
/// within 1e-6 of pi count as its end.
double WrapAngle(double theta);

/// How a set of vectors x_1 ... x_n, such as the outputs of a model over the torus, becomes a shape
/// of a size and orientation that can be seen.
enum class Normalization
{
  None,      ///< x_i
  PerAxis,   ///< each component divided by its root mean square over all i; without centring
  Whitened,  ///< row i of U V^T, where U S V^T is the singular value decomposition of the matrix X
             ///< of all x_i (as in the source document), so that sum_i y_i y_i^T is the identity
  UnitSphere ///< x_i / |x_i|
};

/// The vectors under a normalization, which `reference` decides: the vectors themselves or, for
/// points of a surface such as token pairs or a frontier, those of the whole surface.
///
/// Directions in which the reference does not extend (less than 1e-6 of its largest extent) become
/// 0 where they would be divided by 0. Throws OptionError naming the vector if one is not finite,
/// or is 0 under UnitSphere.
Rows3 Normalize(const Rows3& vectors, const Rows3& reference, Normalization normalization);

}
