#include "ApproximateNeighbors.h"
namespace atlas
{
NeighborLists FindNeighborsApproximately(const PointView& p, PointMetric m, int count,
  std::uint64_t, int threads, const NeighborProgress& progress)
{
  return FindNeighbors(p, m, count, threads, progress);
}
}
