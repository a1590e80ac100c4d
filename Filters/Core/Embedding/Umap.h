#pragma once

#include "Neighbors.h"
#include "PointView.h"
#include "TSne.h"

#include <cstdint>

namespace atlas
{

struct UmapOptions
{
  int dimensions = 2; ///< of the layout: 2 or 3
  PointMetric metric = PointMetric::Cosine;
  int neighbors = 15;           ///< of each point, itself counted, from 2 to the number of points
  double minimumDistance = 0.1; ///< up to which points of the layout count as together; at least 0,
                                ///< at most `spread`
  double spread = 1;            ///< the distance over which similarity falls by e; above 0
  int epochs = 0;               ///< steps of the optimization; 0: 500 for up to 10,000 points, else
                                ///< 200
  const float* start = nullptr; ///< [points, dimensions]: a layout to go on from; else the
                                ///< eigenvectors of the graph
  std::uint64_t seed = 0;       ///< of the places that repel, and of what the start needs
  int threads = 1;              ///< as for ThreadCount; results do not depend on it
  LayoutReport progress;        ///< of an estimate of the cross-entropy
  int interval = 25;            ///< epochs between reports, at least 1
};

/// Throws OptionError unless Umap accepts these options for so many points. If there are too many
/// neighbors, the message says how many work.
void CheckUmapOptions(std::int64_t points, const UmapOptions& options);

/// UMAP (McInnes, Healy and Melville, "UMAP: Uniform Manifold Approximation and Projection for
/// Dimension Reduction", 2018): places points so that those near each other lie together.
///
/// The graph: with rho_i the distance from point i to the nearest one that is not at distance 0,
/// i belongs to each of its neighbors j by exp(-max(0, d_ij - rho_i) / sigma_i), where sigma_i is
/// such that these add up to log2(neighbors); v = A + A' - A A' by elements. Two places of the
/// layout at distance d are similar by w = 1 / (1 + a d^2b), with a and b from minimumDistance and
/// spread. What is minimized is the cross-entropy
///
///     sum_{i<j} v ln(v / w) + (1 - v) ln((1 - v) / (1 - w)),
///
/// not exactly, but as by the authors' program: each edge repels its ends from 5 times v others.
/// All points move at the same time, by the mean force of all their edges and by that of up to 96
/// others, which are drawn for each step. The learning rate falls from 1/2 to 0; momentum rises
/// from 0 to 0.99 and falls to 0 again.
///
/// Neighbors are exact below ApproximateNeighborsFrom points. The same seed gives the same bytes
/// for any number of threads on one machine; coordinates are finite. The layout's divergence is an
/// estimate of the cross-entropy. Throws as CheckPoints and CheckUmapOptions do, and OptionError if
/// all points are at distance 0 from each other or the start is not finite.
Layout Umap(const PointView& points, const UmapOptions& options);

/// The same with neighbors that are known, at least neighbors - 1 of each point. `points` are read
/// for the start alone. Throws OptionError also if the lists do not fit.
Layout Umap(const PointView& points, const NeighborLists& neighbors, const UmapOptions& options);

}
