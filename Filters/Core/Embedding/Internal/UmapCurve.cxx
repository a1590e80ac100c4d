#include "UmapCurve.h"

#include <cmath>

#include <Eigen/Dense>

namespace atlas
{
namespace
{

constexpr int Samples = 300;

/// The sum of squared errors at (ln a, b), and its derivatives as Gauss and Newton take them.
struct CurveErrors
{
  double sum = 0;
  Eigen::Vector2d gradient = Eigen::Vector2d::Zero();
  Eigen::Matrix2d curvature = Eigen::Matrix2d::Zero();
};

CurveErrors ErrorsAt(const Eigen::Vector2d& parameters, double minimumDistance, double spread)
{
  CurveErrors errors;
  for (int i = 0; i < Samples; ++i)
  {
    const double distance = 3 * spread * i / (Samples - 1);
    const double target =
      distance < minimumDistance ? 1 : std::exp(-(distance - minimumDistance) / spread);
    if (distance == 0)
    {
      continue; // where every curve is 1
    }
    const double logarithm = std::log(distance);
    const double power = std::exp(parameters[0] + 2 * parameters[1] * logarithm);
    const double value = 1 / (1 + power);
    const double slope = -power * value * value; // by ln a
    const Eigen::Vector2d slopes(slope, 2 * logarithm * slope);
    errors.sum += (value - target) * (value - target);
    errors.gradient += (value - target) * slopes;
    errors.curvature += slopes * slopes.transpose();
  }
  return errors;
}

}

UmapCurve FitUmapCurve(double minimumDistance, double spread)
{
  // Levenberg and Marquardt's method, in (ln a, b).
  Eigen::Vector2d parameters(-2 * std::log(spread), 1);
  CurveErrors errors = ErrorsAt(parameters, minimumDistance, spread);
  double damping = 1e-3;
  for (int iteration = 0; iteration < 200 && damping < 1e12; ++iteration)
  {
    Eigen::Matrix2d system = errors.curvature;
    system.diagonal() *= 1 + damping;
    const Eigen::Vector2d step = system.ldlt().solve(-errors.gradient);
    const CurveErrors next = ErrorsAt(parameters + step, minimumDistance, spread);
    const bool better = next.sum <= errors.sum; // NaN is not
    damping = better ? damping / 10 : damping * 10;
    if (better)
    {
      parameters += step;
      errors = next;
      if (step.norm() < 1e-13)
      {
        break;
      }
    }
  }
  return { std::exp(parameters[0]), parameters[1] };
}

}
