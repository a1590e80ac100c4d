#include "TorusAngles.h"

#include "Base/Pi.h"

#include <cmath>
#include <limits>

namespace atlas
{
namespace
{

const Eigen::Vector3d AxisU = Eigen::Vector3d(1, 0, -1) / std::sqrt(2.0);
const Eigen::Vector3d AxisV = Eigen::Vector3d(-1, 2, -1) / std::sqrt(6.0);

/// atan2 in (-pi, pi]; std::atan2 rounds angles slightly above -pi to -pi.
double Angle(double sine, double cosine)
{
  const double angle = std::atan2(sine, cosine);
  return angle <= -Pi ? Pi : angle;
}

}

Eigen::Vector3d LayerNorm(const Eigen::Vector3d& x)
{
  const Eigen::Vector3d centred = x.array() - x.mean();
  const double deviation = centred.stableNorm() / std::sqrt(3.0);
  // Because of rounding, the deviation of a constant vector may be a few units in the last place.
  if (deviation <= 4 * std::numeric_limits<double>::epsilon() * x.cwiseAbs().maxCoeff())
  {
    return Eigen::Vector3d::Zero();
  }
  return centred / deviation;
}

Eigen::Vector3d EmbeddingAtAngle(double theta, AngleMap map)
{
  if (map == AngleMap::Skewed)
  {
    return LayerNorm({ std::cos(theta), std::sin(theta), 0 });
  }
  return std::sqrt(3.0) * (std::cos(theta) * AxisU + std::sin(theta) * AxisV);
}

double AngleOfEmbedding(const Eigen::Vector3d& embedding, AngleMap map)
{
  if (map == AngleMap::Skewed)
  {
    // LN((c, s, 0)) is proportional to (c - m, s - m, -m), so differences recover c and s.
    return Angle(embedding.y() - embedding.z(), embedding.x() - embedding.z());
  }
  return Angle(embedding.dot(AxisV), embedding.dot(AxisU));
}

}
