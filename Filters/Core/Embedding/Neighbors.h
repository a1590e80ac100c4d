#pragma once

#include "Base/Progress.h"
#include "PointView.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// The nearest neighbors of each of `points` points, nearest first, ties by the lower index. A
/// point is not its own neighbor, but may have others at distance 0.
struct NeighborLists
{
  std::int64_t points = 0;
  int count = 0;                    ///< neighbors of a point
  std::vector<std::uint32_t> index; ///< [points, count]
  std::vector<float> distance;      ///< [points, count]: 1 - cos for Cosine and SquaredCosine,
                                    ///< |x - y| for Euclidean

  /// Lists that are to be filled.
  static NeighborLists Of(std::int64_t points, int count)
  {
    return { points, count, std::vector<std::uint32_t>(points * count),
      std::vector<float>(points * count) };
  }
};

/// A sparse matrix [points, points].
struct SparseMatrix
{
  std::int64_t points = 0;
  std::vector<std::int64_t> begin;  ///< [points + 1]: row i has entries begin[i] to begin[i + 1]
  std::vector<std::uint32_t> index; ///< column of each entry, ascending in each row
  std::vector<float> value;
};

/// Throws OptionError unless there are points, of at least one dimension and all finite.
/// `what` begins the message: "t-SNE".
void CheckPoints(const PointView& points, const char* what);

/// By which points are multiplied before their distances are measured: to unit vectors, unless the
/// metric is Euclidean. 0 for a point without direction.
std::vector<double> ScalesOf(const PointView& points, PointMetric metric);

/// Finds the exact nearest neighbors. Products of blocks of points in single precision choose the
/// candidates, with a margin for rounding; their distances are then computed in double precision.
/// The result is equal to the byte for any number of threads (as for ThreadCount). Time: points^2 x
/// dimension. Memory: the result and about 5 MiB a thread. Throws as CheckPoints does, and
/// OptionError unless 1 <= count < points.
NeighborLists FindNeighbors(const PointView& points, PointMetric metric, int count, int threads,
  const Progress& progress = {});

}
