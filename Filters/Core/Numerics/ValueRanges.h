#pragma once

#include <cstddef>
#include <vector>

namespace atlas
{

/// The range of each component of many tuples, and of their lengths.
struct ValueRanges
{
  std::vector<double> least;   ///< per component
  std::vector<double> largest; ///< per component
  double leastSquare = 0;      ///< of the squared Euclidean length; 0 where there is one component
  double largestSquare = 0;    ///< likewise

  /// Takes in the ranges of other tuples; ranges without components are those of none.
  void Join(const ValueRanges& other);
};

/// The ranges of `tuples` times `components` values, both at least 1, none of them NaN. Value:
/// float, int or unsigned char.
template<class Value>
ValueRanges RangesOf(const Value* values, std::ptrdiff_t components, std::ptrdiff_t tuples);

}
