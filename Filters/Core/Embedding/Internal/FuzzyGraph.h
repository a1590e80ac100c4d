#pragma once

#include "Embedding/Neighbors.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// UMAP's scales of the distances from each point to its neighbors (McInnes, Healy and Melville,
/// "UMAP: Uniform Manifold Approximation and Projection", 2018, section 3.1).
struct NeighborScales
{
  std::vector<double> rho;   ///< smallest distance other than 0; 0 if there is none
  std::vector<double> sigma; ///< sum_j exp(-max(0, d_ij - rho_i) / sigma_i) = log2(count + 1), but
                             ///< at least 1/1000 of the mean distance (with that to itself, 0)
};

NeighborScales FitNeighborScales(const NeighborLists& neighbors, int threads);

/// How much each neighbor j belongs to its point i: exp(-max(0, d_ij - rho_i) / sigma_i), in the
/// order of the lists.
std::vector<float> NeighborMemberships(
  const NeighborLists& neighbors, const NeighborScales& scales, int threads);

/// Symmetric, without diagonal; the entries are above 0 and at most 1.
using FuzzyGraph = SparseMatrix;

/// The fuzzy union A + A' - A A' (by elements) of the memberships A of all points.
FuzzyGraph UniteMemberships(const NeighborLists& neighbors, const std::vector<float>& memberships);

/// The part of each point, counted from 0 in the order of the first points of the parts. Points of
/// one part are connected by edges.
std::vector<std::uint32_t> ConnectedParts(const FuzzyGraph& graph);

/// The rows and columns of some points, ascending, of a graph; they have no edges to others.
FuzzyGraph PartOf(const FuzzyGraph& graph, const std::vector<std::uint32_t>& points);

}
