#pragma once

#include "Embedding/Neighbors.h"

namespace atlas
{

/// Longer lists of neighbors from shorter ones: the nearest `count` among the neighbors of a point
/// and the neighbors of those. Lists of points that have fewer such are filled with their farthest
/// neighbor. Needs count >= neighbors.count. The result does not depend on `threads`.
NeighborLists ExtendNeighbors(const PointView& points, PointMetric metric,
  const NeighborLists& neighbors, int count, int threads);

}
