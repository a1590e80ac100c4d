#pragma once

#include <cstddef>
#include <vector>

namespace atlas
{

/// The range of each component of many tuples, and of their Euclidean lengths.
struct ValueRanges
{
  std::vector<double> least;   ///< per component
  std::vector<double> largest; ///< per component
  double leastSquare = 0;      ///< of the squared Euclidean length; 0 if there is only one
                               ///< component
  double largestSquare = 0;    ///< likewise

  /// Extends these ranges by `tuples` x `components` values; both sizes are at least 1 and no value
  /// is NaN. Value is float, int or unsigned char.
  template<class Value>
  void Add(const Value* values, std::ptrdiff_t components, std::ptrdiff_t tuples);

  /// Extends these ranges by those of other tuples. Ranges without components mean no tuples.
  void Join(const ValueRanges& other);
};

/// Whether none of these values is NaN or infinite.
bool AreFinite(const float* values, std::ptrdiff_t count);

}
