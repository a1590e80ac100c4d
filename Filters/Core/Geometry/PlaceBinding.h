#pragma once

#include "Base/Progress.h"

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace atlas
{

/// The token of a place that has none.
inline constexpr std::int32_t NoToken = -1;

/// Places of a mesh, its points or cells, and the tokens of a sequence that they belong to. Each
/// place has `width` tokens with weights:
///
/// - by index, one token of weight 1: `tokens` alone, width 1;
/// - by slices (Wu et al., "Transolver", 2024), all of them: `weights` alone; slice s is token
///   firstToken + s;
/// - by a few slices each, the sparse form of the same: both.
///
/// Arrays belong to the caller.
struct BoundPlaces
{
  std::int64_t count = 0;
  std::int64_t width = 1;
  const std::int32_t* tokens = nullptr; ///< [count, width], positions in the sequence, or NoToken
  const float* weights = nullptr;       ///< [count, width]
  std::int64_t firstToken = 0;

  /// The token of an entry of a place, or NoToken.
  std::int64_t TokenOf(std::int64_t place, std::int64_t entry) const
  {
    return this->tokens == nullptr ? this->firstToken + entry
                                   : this->tokens[place * this->width + entry];
  }

  float WeightOf(std::int64_t place, std::int64_t entry) const
  {
    return this->weights == nullptr ? 1 : this->weights[place * this->width + entry];
  }
};

/// Gives the position of a place as three numbers. Several threads call it.
using PositionOf = std::function<void(std::int64_t place, double* position)>;

/// The largest numbers of some places, from which PlaceSums follows.
struct PlaceLimits
{
  double length = 0;       ///< of absolute coordinates
  double weight = 0;       ///< of absolute weights
  std::int64_t places = 0; ///< their number

  void Add(const PlaceLimits& other);
};

/// The limits of places. Throws OptionError, beginning with `source`, for a token that is not among
/// the first `tokens` ones and not NoToken, for slices that are more than the tokens, and for
/// positions or weights that are not finite.
PlaceLimits CheckPlaces(const BoundPlaces& places, const PositionOf& positionOf,
  std::int64_t tokens, const std::string& source, int threads, const Progress& progress = {});

/// Throws OptionError, beginning with `source`, unless the positions of all places are finite.
void RequireFinite(std::int64_t count, const PositionOf& positionOf, const std::string& source,
  int threads, const Progress& progress = {});

/// A grid of patches: boxes of the same size, whose tokens are in the order of x, then y, then z.
struct PatchLattice
{
  std::array<double, 3> origin = { 0, 0, 0 };
  std::array<double, 3> size = { 1, 1, 1 };
  std::array<std::int64_t, 3> counts = { 1, 1, 1 };

  /// The number of the patch in which a position is; NoToken outside the grid. A patch has its
  /// lower borders, and the last one its upper border too.
  std::int64_t PatchAt(const double* position) const;
};

/// Throws OptionError unless sizes are positive, the origin is finite, and the grid has 1 to
/// `tokens` patches.
void CheckLattice(const PatchLattice& lattice, std::int64_t tokens);

/// A residue of a protein: its chain and its number there, as in a .pdb file.
struct Residue
{
  std::int64_t chain = 0;
  std::int64_t number = 0;

  friend bool operator<(const Residue& a, const Residue& b)
  {
    return a.chain != b.chain ? a.chain < b.chain : a.number < b.number;
  }
  friend bool operator==(const Residue& a, const Residue& b)
  {
    return a.chain == b.chain && a.number == b.number;
  }
};

/// Each residue once, by chain, then number.
std::vector<Residue> DistinctResidues(std::vector<Residue> residues);

/// The place of a residue in such a list, which is its token.
std::int64_t NumberOf(const std::vector<Residue>& distinct, const Residue& residue);

}
