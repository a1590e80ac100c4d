#include "ValueRanges.h"

#include <algorithm>

#include <Eigen/Core>

namespace atlas
{
namespace
{

template<class Values>
std::vector<double> Widened(const Values& values)
{
  return { values.data(), values.data() + values.size() };
}

}

void ValueRanges::Join(const ValueRanges& other)
{
  if (this->least.empty())
  {
    *this = other;
    return;
  }
  if (other.least.empty())
  {
    return;
  }
  for (std::size_t c = 0; c < other.least.size(); ++c)
  {
    this->least[c] = std::min(this->least[c], other.least[c]);
    this->largest[c] = std::max(this->largest[c], other.largest[c]);
  }
  this->leastSquare = std::min(this->leastSquare, other.leastSquare);
  this->largestSquare = std::max(this->largestSquare, other.largestSquare);
}

template<class Value>
ValueRanges RangesOf(const Value* values, std::ptrdiff_t components, std::ptrdiff_t tuples)
{
  ValueRanges ranges;
  if (components == 1)
  {
    const Eigen::Map<const Eigen::Array<Value, Eigen::Dynamic, 1>> all(values, tuples);
    ranges.least = { static_cast<double>(all.minCoeff()) };
    ranges.largest = { static_cast<double>(all.maxCoeff()) };
    return ranges;
  }
  const Eigen::Map<const Eigen::Array<Value, Eigen::Dynamic, Eigen::Dynamic>> all(
    values, components, tuples);
  Eigen::Array<Value, Eigen::Dynamic, 1> least = all.col(0);
  Eigen::Array<Value, Eigen::Dynamic, 1> largest = all.col(0);
  ranges.leastSquare = ranges.largestSquare = all.col(0).template cast<double>().square().sum();
  for (Eigen::Index i = 1; i < tuples; ++i)
  {
    double square = 0;
    for (Eigen::Index c = 0; c < components; ++c)
    {
      const Value value = all(c, i);
      least[c] = std::min(least[c], value);
      largest[c] = std::max(largest[c], value);
      square += static_cast<double>(value) * static_cast<double>(value);
    }
    ranges.leastSquare = std::min(ranges.leastSquare, square);
    ranges.largestSquare = std::max(ranges.largestSquare, square);
  }
  ranges.least = Widened(least);
  ranges.largest = Widened(largest);
  return ranges;
}

template ValueRanges RangesOf(const float*, std::ptrdiff_t, std::ptrdiff_t);
template ValueRanges RangesOf(const int*, std::ptrdiff_t, std::ptrdiff_t);
template ValueRanges RangesOf(const unsigned char*, std::ptrdiff_t, std::ptrdiff_t);

}
