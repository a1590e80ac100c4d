#pragma once

#include "Base/Error.h"
#include "Base/Progress.h"
#include "Embedding/TSne.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace atlas
{

/// The part of the time in which neighbors are sought, about, as measured of t-SNE and UMAP: all
/// pairs of some points are compared, and of many the time grows as that of an iteration.
inline double SearchShare(std::int64_t points, int iterations)
{
  constexpr double iterationsOfPoint = 0.02;
  constexpr std::int64_t many = 15'000;
  const double search = iterationsOfPoint * static_cast<double>(std::min(points, many));
  return search / (search + iterations);
}

/// What `find` returns, which takes a Progress; std::nullopt if `report` stops it. share: the part
/// of the time that it takes.
template<class Find>
std::optional<NeighborLists> FindUnlessStopped(
  const LayoutReport& report, double share, const Find& find)
{
  const Progress progress = [&report, share](double done)
  {
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    if (report && !report({ share * done, 0, none, nullptr }))
    {
      throw Canceled();
    }
  };
  try
  {
    return find(progress);
  }
  catch (const Canceled&)
  {
    return std::nullopt;
  }
}

/// Throws OptionError unless there are at least `count` neighbors of each point, and points differ.
inline void CheckNeighbors(
  const char* method, const PointView& points, const NeighborLists& neighbors, int count)
{
  ThrowIf<OptionError>(neighbors.points != points.count || neighbors.count < count, method,
    ": expected ", count, " neighbors of each of ", points.count, " points, found ",
    neighbors.count, " of ", neighbors.points, ".");
  ThrowIf<OptionError>(*std::max_element(neighbors.distance.begin(), neighbors.distance.end()) == 0,
    method, ": expected points that differ, found that each of the ", points.count,
    " points has only equal neighbors.");
}

}
