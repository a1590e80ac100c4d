#pragma once

#include <algorithm>
#include <cstdint>

#include <Eigen/Core>

namespace atlas
{

/// Values are processed in groups of this size, and the last group is padded. Every value thus goes
/// through the same instructions wherever it lies; Eigen itself treats the ends of unaligned arrays
/// differently from the middle.
inline constexpr std::int64_t LaneCount = 16;
using Lanes = Eigen::Array<float, LaneCount, 1>;

inline Lanes Load(const float* values, std::int64_t count, float fill)
{
  if (count >= LaneCount)
  {
    return Eigen::Map<const Lanes>(values);
  }
  Lanes lanes = Lanes::Constant(fill);
  std::copy_n(values, count, lanes.data());
  return lanes;
}

inline void Store(const Lanes& lanes, std::int64_t count, float* values)
{
  if (count >= LaneCount)
  {
    Eigen::Map<Lanes>{ values } = lanes;
  }
  else
  {
    std::copy_n(lanes.data(), count, values);
  }
}

/// Calls function(first value, number of remaining values) for each group of lanes.
template<class Function>
void ForLanes(std::int64_t count, const Function& function)
{
  for (std::int64_t i = 0; i < count; i += LaneCount)
  {
    function(i, count - i);
  }
}

/// The sum of values in double precision.
inline double SumOf(std::int64_t count, const float* values)
{
  using DoubleLanes = Eigen::Array<double, LaneCount, 1>;
  DoubleLanes sum = DoubleLanes::Zero();
  ForLanes(count,
    [&](std::int64_t i, std::int64_t left) { sum += Load(values + i, left, 0).cast<double>(); });
  return sum.sum();
}

}
