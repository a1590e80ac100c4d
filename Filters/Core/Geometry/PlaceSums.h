#pragma once

#include "PlaceBinding.h"

#include <array>
#include <cstdint>
#include <vector>

namespace atlas
{

/// What the places of a token are together.
struct TokenPlaces
{
  std::int64_t places = 0; ///< their number; of slices, of those with a weight that is not 0
  double weight = 0;       ///< the sum of their weights
  bool hasCenter = false;  ///< unless there are none, or weights cancel
  std::array<double, 3> center = { 0, 0, 0 }; ///< the mean of their positions by their weights
};

/// Sums over the places of each token. They do not depend on the order of places, on threads or on
/// how ranks share a mesh: each summand is rounded to a multiple of a unit, which follows from the
/// limits of all places and is 2^-40 of the largest one or, of more than 2^22 places, so much that
/// 64 bits suffice.
class PlaceSums
{
public:
  /// `limits`: of all places, on all ranks.
  PlaceSums(std::int64_t tokens, const PlaceLimits& limits);

  /// Adds all places but those whose entry of `left` is not 0; nullptr: all. Canceled, it adds
  /// none.
  void Add(const BoundPlaces& places, const PositionOf& positionOf, const std::uint8_t* left,
    int threads, const Progress& progress = {});

  /// Adds some places alone.
  void Add(const BoundPlaces& places, const PositionOf& positionOf,
    const std::vector<std::int64_t>& chosen);

  ///@{
  /// All numbers, to send them to other ranks, and the sum with those of others.
  const std::vector<std::int64_t>& Numbers() const { return this->Sums; }
  void AddNumbers(const std::int64_t* others);
  ///@}

  std::int64_t TokenCount() const { return this->Tokens; }

  TokenPlaces Of(std::int64_t token) const { return this->Row(token, this->WeightUnit); }

  /// Of all places that were added, each with weight 1.
  TokenPlaces OfAll() const { return this->Row(this->Tokens, this->PlaceUnit); }

private:
  std::int64_t Tokens;
  int Bits;
  double One;         ///< 2^Bits
  double LengthScale; ///< a power of two that is at least the largest coordinate
  double WeightScale;
  double WeightUnit;
  double PlaceUnit;
  std::vector<std::int64_t> Sums; ///< [tokens + 1, 5]: number, weight, moments

  TokenPlaces Row(std::int64_t row, double unit) const;
  void AddPlace(const BoundPlaces& places, std::int64_t place, const double* position,
    std::vector<std::int64_t>& sums) const;
  void AddSlices(const BoundPlaces& places, const PositionOf& positionOf, const std::uint8_t* left,
    std::int64_t begin, std::int64_t end, std::vector<std::int64_t>& sums) const;
};

}
