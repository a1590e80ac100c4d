#pragma once

#include "Embedding/PointView.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// A layout [count, dimensions] to begin with: independent normal coordinates of deviation 1e-4.
std::vector<float> RandomStart(std::int64_t count, int dimensions, std::uint64_t seed);

/// The first principal components of the points, of their unit vectors unless the metric is
/// Euclidean, scaled so that the first has the deviation 1e-4, and with jitter of a hundredth of
/// that, so that equal points do not stay at one place. The largest loading of each component is
/// positive. Components that the points do not have are jitter alone.
std::vector<float> PrincipalStart(
  const PointView& points, PointMetric metric, int dimensions, std::uint64_t seed);

}
