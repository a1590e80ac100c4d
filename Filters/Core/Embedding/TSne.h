#pragma once

#include "Neighbors.h"
#include "PointView.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace atlas
{

/// What a method has reached.
struct LayoutStep
{
  double done = 0;               ///< of the time that all will take, about: 0 to 1
  int iterations = 0;            ///< 0 while neighbors are sought
  double divergence = 0;         ///< what the method minimizes; NaN while neighbors are sought
  const float* layout = nullptr; ///< [points, dimensions]; nullptr while neighbors are sought
};

/// Called on the calling thread while neighbors are sought, before the first iteration, and after
/// each `interval` of them. Returns false to stop; the layout reached is kept.
using LayoutReport = std::function<bool(const LayoutStep& step)>;

struct TSneOptions
{
  int dimensions = 2; ///< of the layout: 2 or 3
  PointMetric metric = PointMetric::Cosine;
  double perplexity = 50;         ///< effective number of neighbors, from 1 to (points - 1) / 3
  int iterations = 750;           ///< at least 0
  double theta = 0.5;             ///< accuracy of the repulsion, 0 (exact) to 1 (coarse); its error
                                  ///< is below 0.3 % at 0.5
  double exaggeration = 12;       ///< of the attraction, at first; at least 1
  int exaggeratedIterations = -1; ///< -1: a third of the iterations
  double learningRate = 0;        ///< 0: points / exaggeration at first, then points
  bool randomStart = false;       ///< else the principal components, of deviation 1e-4
  const float* start = nullptr;   ///< [points, dimensions]: a layout to go on from, without
                                  ///< exaggeration
  std::uint64_t seed = 0;         ///< of the random start, and of the jitter of the other
  int threads = 1;                ///< as for ThreadCount; results do not depend on it
  LayoutReport progress;
  int interval = 25; ///< iterations between reports, at least 1
};

/// Points placed in the plane or in space.
struct Layout
{
  std::vector<float> points; ///< [points, dimensions], in the order of the input, centered
  double divergence = 0;     ///< what the method minimizes, at these points
  int iterations = 0;        ///< done
  bool stopped = false;      ///< by progress
};

/// Throws OptionError unless TSne accepts these options for so many points. If the perplexity is
/// too large, the message says the largest that works.
void CheckTSneOptions(std::int64_t points, const TSneOptions& options);

/// The largest perplexity for so many points, (points - 1) / 3; less than 1 if there are fewer than
/// 4 points, which t-SNE cannot place.
double LargestPerplexity(std::int64_t points);

/// The number of neighbors that TSne uses: 3 x perplexity, rounded down.
int TSneNeighborCount(double perplexity);

/// t-SNE (van der Maaten and Hinton, "Visualizing data using t-SNE", 2008): places points so that
/// those with similar neighbors lie together, by gradient descent on the Kullback-Leibler
/// divergence
///
///     KL = sum_ij p_ij ln(p_ij / q_ij),  q_ij = w_ij / Z,  w_ij = 1 / (1 + |y_i - y_j|^2),
///
/// where Z is the sum of all w_ij, i != j, and p_ij are the affinities of TSneAffinities. The
/// gradient is 4 sum_j (p_ij - w_ij / Z) w_ij (y_i - y_j). The repulsion, its second term, is
/// approximated as by Barnes and Hut, with cells given by their masses and quadrupoles.
/// The kernel is that of Student's t with 1 degree of freedom in 2-D and in 3-D.
///
/// Neighbors are exact below ApproximateNeighborsFrom points. From there on, those of the nearest
/// fifth are found by FindNeighborsApproximately (99 %), and the others are the best among the
/// neighbors of those (80 % and more). If the exaggeration makes all points fall together, as for a
/// perplexity that is large for so few points, the descent starts again without it.
///
/// The same seed gives the same bytes for any number of threads on one machine; coordinates are
/// finite. Throws as CheckPoints and CheckTSneOptions do, and OptionError if all points are at
/// distance 0 from each other or the start has coordinates beyond 10^6.
Layout TSne(const PointView& points, const TSneOptions& options);

/// The same with neighbors that are known, of which each point has at least
/// TSneNeighborCount(perplexity). `points` are read for the start alone. Throws OptionError also if
/// the lists do not fit.
Layout TSne(const PointView& points, const NeighborLists& neighbors, const TSneOptions& options);

/// Symmetric, without diagonal; the entries add up to 1.
using Affinities = SparseMatrix;

/// The affinities of t-SNE from the nearest neighbors of each point:
/// p_ij = (c_ij + c_ji) / (2 points), c_ij = exp(-beta_i d_ij^2) / (sum over the neighbors j of i),
/// and beta_i such that the entropy of c_i is ln(perplexity). Where more neighbors than
/// `perplexity` are at distance 0, they share the weight. Uses the first
/// TSneNeighborCount(perplexity) neighbors; throws OptionError if there are fewer.
Affinities TSneAffinities(
  const NeighborLists& neighbors, PointMetric metric, double perplexity, int threads);

}
