#pragma once

#include "Base/Error.h"
#include "Base/Progress.h"
#include "Embedding/TSne.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace atlas
{

/// What `find` returns, which takes a Progress; std::nullopt if `report` stops it.
template<class Find>
std::optional<NeighborLists> FindUnlessStopped(const LayoutReport& report, const Find& find)
{
  const Progress progress = [&report](double)
  {
    if (report && !report(0, std::numeric_limits<double>::quiet_NaN(), nullptr))
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
