#pragma once

#include "Embedding/TSne.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace atlas
{

/// Rows have whole groups of so many affinities; vectors are not longer.
inline constexpr std::size_t AttractionUnit = 16;
/// The least exponent of a packed p, as floats have it.
inline constexpr std::uint32_t AttractionExponent = 127 - 31;

/// Affinities in the form that the kernel reads.
struct PackedAffinities
{
  int dimensions;                  ///< of the layouts
  const std::size_t* begin;        ///< of each row, in whole units
  const std::uint16_t* shortIndex; ///< rows of the other points if there are few, else nullptr
  const std::uint32_t* longIndex;  ///< otherwise
  const std::uint16_t* weights;    ///< p / scale
  float scale;                     ///< the largest p
};

/// The attraction of t-SNE, sum_j p_ij w_ij (y_i - y_j) with w_ij = 1 / (1 + |y_i - y_j|^2), over
/// affinities packed into 4 bytes each (6 above 65,536 points): the number of the point and p with
/// 11 bits after the first, rounded to nearest; the smallest is 2^-31 of the largest. Points are
/// [count, 2], or [count, 4] in 3-D with any fourth value.
class Attraction
{
public:
  /// Row r of the layouts is point order[r].
  Attraction(const Affinities& affinities, const std::vector<std::uint32_t>& order, int dimensions,
    int threads);

  /// Writes the attraction in the form of the points. Bytes do not depend on `threads`.
  void Evaluate(const float* points, int threads, float* attraction) const;

  /// The sum of p_ij ln(1 + |y_i - y_j|^2).
  double EvaluateDivergence(const float* points, int threads) const;

private:
  int Dimensions;
  float Scale;
  std::vector<std::size_t> Begin;
  std::vector<std::uint16_t> Short;
  std::vector<std::uint32_t> Long;
  std::vector<std::uint16_t> Weights;

  PackedAffinities Packed() const;
};

}
