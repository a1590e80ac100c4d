#pragma once

#include <cstdint>
#include <vector>

namespace atlas
{

/// Orders points [count, stride], of which the first `dimensions` (2 or 3) values are coordinates,
/// along a Hilbert curve, so that neighbors in the order are neighbors in space (Skilling,
/// "Programming the Hilbert curve", 2004). Points in the same cell of the curve stay in their
/// order. Returns the points, first to last.
std::vector<std::uint32_t> CurveOrder(
  const float* points, std::int64_t count, int dimensions, std::int64_t stride);

}
