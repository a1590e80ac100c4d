#pragma once

#include "FuzzyGraph.h"
#include "UmapCurve.h"

#include <array>
#include <cstdint>
#include <vector>

namespace atlas
{

/// Points are moved in groups of this size.
inline constexpr std::int64_t UmapGroup = 16;

/// The edges of a graph between places, in the order in which groups of places read them. Columns
/// of a group have one edge of each of its places; missing ones have weight 0 and lead to the place
/// itself.
struct GroupedEdges
{
  std::vector<std::int64_t> begin;  ///< [groups + 1]: first column of each group
  std::vector<std::int32_t> target; ///< [columns, UmapGroup]: the place that an edge leads to
  std::vector<float> weight;        ///< [columns, UmapGroup]
  std::vector<float> repulsion;     ///< [groups, UmapGroup]: of a place, the sum of its weights
};

/// The coordinates of places: those of axis a at [a], of which those behind the last place repeat
/// the first ones, so that every range of `count` places is contiguous.
using PlaceCoordinates = std::array<std::vector<float>, 3>;

/// One step of UMAP's optimization.
struct UmapStep
{
  UmapCurve curve;
  int dimensions = 2;
  float rate = 1;                   ///< the learning rate
  float momentum = 0;               ///< the part of the last step that is taken again
  float repulsion = 1;              ///< times that of the place: of each place that repels
  std::vector<std::int64_t> shifts; ///< place i is repelled by i + shift for each, modulo count
};

/// Moves the places of groups [begin, end) from `from` to `to`, which has those before the last
/// step.
///
/// A place y is attracted by its edges to z with 2 weight c(|y - z|^2) (z - y) and repelled by
/// others with R r(|y - z|^2) (y - z), by axis at most 4 R, where R is its repulsion and, as in
/// UMAP, c(s) = 2 a b s^(b-1) / (1 + a s^b) and r(s) = 2 b / ((0.001 + s) (1 + a s^b)). Attraction
/// is taken implicitly in y, which is stable for any number of edges: y' = y + rate (sum of forces)
/// / (1 + rate sum of 2 weight c).
void MovePlaces(const GroupedEdges& edges, const UmapStep& step, std::int64_t begin,
  std::int64_t end, const PlaceCoordinates& from, PlaceCoordinates& to);

}
