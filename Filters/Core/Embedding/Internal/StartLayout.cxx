#include "StartLayout.h"

#include "Base/Index.h"
#include "Base/Pi.h"
#include "Embedding/Principal.h"

#include <cmath>
#include <random>

#include <Eigen/Core>

namespace atlas
{
namespace
{

constexpr double Deviation = 1e-4;

/// The points, or their unit vectors; Euclidean ones in units of the largest coordinate, so that no
/// square overflows.
std::vector<float> AsCompared(const PointView& points, PointMetric metric)
{
  std::vector<float> values(points.values, points.values + points.count * points.dimension);
  Eigen::Map<Eigen::VectorXf> all(values.data(), points.count * points.dimension);
  const float largest = all.cwiseAbs().maxCoeff();
  all /= largest > 0 ? largest : 1;
  for (std::int64_t i = 0; i < points.count && metric != PointMetric::Euclidean; ++i)
  {
    Eigen::Map<Eigen::VectorXf> row(values.data() + i * points.dimension, points.dimension);
    const double norm = row.cast<double>().norm();
    row *= norm > 0 ? static_cast<float>(1 / norm) : 0.F;
  }
  return values;
}

double Uniform(std::mt19937_64& generator) // 0 < u < 1, the same with every standard library
{
  return (static_cast<double>(generator() >> 11U) + 0.5) * 0x1p-53;
}

}

std::vector<float> RandomStart(std::int64_t count, int dimensions, std::uint64_t seed)
{
  std::mt19937_64 generator(seed);
  std::vector<float> layout(count * dimensions);
  for (float& value : layout)
  {
    const double radius = std::sqrt(-2 * std::log(Uniform(generator)));
    value = static_cast<float>(Deviation * radius * std::cos(2 * Pi * Uniform(generator)));
  }
  return layout;
}

std::vector<float> PrincipalStart(
  const PointView& points, PointMetric metric, int dimensions, std::uint64_t seed)
{
  std::vector<float> layout = RandomStart(points.count, dimensions, seed);
  for (float& value : layout)
  {
    value *= 0.01F;
  }
  const std::vector<float> values = AsCompared(points, metric);
  const PointView compared = { values.data(), points.count, points.dimension };
  const PrincipalComponents principal = FindPrincipalComponents(compared, dimensions);
  const std::vector<float> scores = Project(compared, principal, dimensions);
  const double largest = principal.variance.front();
  const double scale = largest > 0 ? Deviation / std::sqrt(largest) : 0;
  for (std::int64_t component = 0; component < principal.count; ++component)
  {
    // What is left by rounding is no component.
    const bool isThere = principal.variance[component] > 1e-6 * largest;
    for (std::int64_t i = 0; i < points.count && isThere; ++i)
    {
      const std::size_t at = i * dimensions + component;
      layout[at] += static_cast<float>(scale * scores[at]);
    }
  }
  return layout;
}

}
