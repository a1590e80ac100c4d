#pragma once

#include "PointView.h"

#include <cstdint>

namespace atlas
{

/// How well a layout keeps the neighborhoods of points, each from 0 to 1 (best).
struct EmbeddingQuality
{
  /// 1 - 2 / (n k (2n - 3k - 1)) sum_i sum_j (r(i, j) - k), over the j that are among the k nearest
  /// of i in the layout and not among its k nearest points; r(i, j) is the rank of j by its
  /// distance from i among the points, the nearest having rank 1 (Venna and Kaski, "Neighborhood
  /// preservation in nonlinear projection methods", 2001).
  double trustworthiness = 1;
  /// The share of the k nearest points of a point that are among its k nearest in the layout, on
  /// average.
  double neighborsKept = 1;
};

/// Compares a layout [points, dimensions] with the points themselves. Ties of distances go to the
/// lower index. Distances are exact up to rounding to single precision.
///
/// Takes time proportional to (points x sample): `sample` points, spread evenly over the indices,
/// stand for all; 0: all of them. Results are equal for any number of threads (as for ThreadCount).
/// Throws OptionError as CheckPoints does, if the layout is not finite, unless 1 <= k and
/// 3k + 1 < 2 points, k < points, and unless dimensions >= 1 and sample >= 0.
EmbeddingQuality MeasureEmbedding(const PointView& points, PointMetric metric, const float* layout,
  int dimensions, int k, int threads, std::int64_t sample = 0);

/// `neighborsKept` alone, which takes less time.
double NeighborsKept(const PointView& points, PointMetric metric, const float* layout,
  int dimensions, int k, int threads, std::int64_t sample = 0);

}
