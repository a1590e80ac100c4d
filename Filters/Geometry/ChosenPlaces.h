#pragma once

#include "Geometry/PlaceSums.h"
#include "TokenMeshes.h"

#include <array>
#include <cstdint>
#include <vector>

class vtkDataObject;
class vtkSelection;

namespace AttentionAtlas
{

class RankGroup;

/// A mesh of this rank with all that queries need of it.
struct BoundMesh
{
  atlas::BoundPlaces places;
  atlas::PositionOf positionOf;
  std::vector<std::uint8_t> ghosts; ///< as GhostsOf

  bool IsGhost(std::int64_t place) const
  {
    return !this->ghosts.empty() && this->ghosts[place] != 0;
  }
};

/// All meshes of this rank, and what is known of all ranks' places together.
struct BoundMeshes
{
  std::vector<BoundMesh> meshes;
  atlas::PlaceLimits limits;
  atlas::PlaceSums sums;
};

/// Checks the places of all meshes and adds them up, on all ranks. Throws as atlas::CheckPlaces.
BoundMeshes BindMeshes(const std::vector<TokenMesh>& meshes, const Binding& binding,
  std::int64_t tokens, const RankGroup& ranks, const atlas::Progress& progress);

/// The sums of the places of a selection, on all ranks. Cells of a selection stand for their points
/// where points are bound, and points for the cells around them where cells are.
atlas::PlaceSums SumSelected(const std::vector<TokenMesh>& meshes, const Binding& binding,
  const BoundMeshes& bound, vtkDataObject* input, vtkSelection* selection, const RankGroup& ranks);

/// The sums of the place that is nearest to a position, on all ranks, which is of places at the
/// same distance that with the smallest x, then y, then z.
atlas::PlaceSums SumNearest(
  const BoundMeshes& bound, const std::array<double, 3>& position, const RankGroup& ranks);

}
