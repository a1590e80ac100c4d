#include "ValueRanges.h"

#include "InstructionSets.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "Numerics/ValueRanges.cxx"
#include <hwy/foreach_target.h>
// foreach_target.h must come before these headers, which are read once per target.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace atlas::HWY_NAMESPACE
{

namespace hn = hwy::HWY_NAMESPACE;

/// The least and the largest lanes of many vectors.
template<class D>
struct Extremes
{
  hn::Vec<D> least;
  hn::Vec<D> largest;

  HWY_INLINE void Add(hn::Vec<D> values)
  {
    this->least = hn::Min(this->least, values);
    this->largest = hn::Max(this->largest, values);
  }
  HWY_INLINE void Extend(double& lowest, double& highest) const
  {
    const D d;
    HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(D())];
    hn::Store(this->least, d, lanes);
    const auto low = *std::min_element(lanes, lanes + hn::Lanes(d));
    hn::Store(this->largest, d, lanes);
    const auto high = *std::max_element(lanes, lanes + hn::Lanes(d));
    lowest = std::min(lowest, static_cast<double>(low));
    highest = std::max(highest, static_cast<double>(high));
  }
};

/// Extends ranges by the first of many numbers, as many as fill vectors, at least one vector.
/// Returns how many.
template<class Value>
std::size_t NumbersOf(const Value* values, std::size_t count, ValueRanges& ranges)
{
  const hn::ScalableTag<Value> d;
  const std::size_t lanes = hn::Lanes(d);
  Extremes<hn::ScalableTag<Value>> all{ hn::LoadU(d, values), hn::LoadU(d, values) };
  std::size_t i = lanes;
  for (; i + lanes <= count; i += lanes)
  {
    all.Add(hn::LoadU(d, values + i));
  }
  all.Extend(ranges.least[0], ranges.largest[0]);
  return i;
}

/// In which type squares of a type are exact to rounding.
template<class Value>
using SquareType = std::conditional_t<std::is_same_v<Value, float>, double, std::int32_t>;

/// As many triples as fill a vector of squares.
template<class Value>
using TripleTag = hn::Rebind<Value, hn::ScalableTag<SquareType<Value>>>;

template<class Value, class V>
HWY_INLINE auto SquareOf(const V* v)
{
  const hn::ScalableTag<SquareType<Value>> d;
  const auto a = hn::PromoteTo(d, v[0]);
  const auto b = hn::PromoteTo(d, v[1]);
  const auto c = hn::PromoteTo(d, v[2]);
  return hn::Add(hn::Add(hn::Mul(a, a), hn::Mul(b, b)), hn::Mul(c, c));
}

/// The same for triples of numbers.
template<class Value>
std::size_t TriplesOf(const Value* values, std::size_t count, ValueRanges& ranges)
{
  const TripleTag<Value> d;
  const std::size_t lanes = hn::Lanes(d);
  hn::Vec<TripleTag<Value>> v[3];
  hn::LoadInterleaved3(d, values, v[0], v[1], v[2]);
  Extremes<TripleTag<Value>> components[3] = { { v[0], v[0] }, { v[1], v[1] }, { v[2], v[2] } };
  Extremes<hn::ScalableTag<SquareType<Value>>> squares{ SquareOf<Value>(v), SquareOf<Value>(v) };
  std::size_t i = lanes;
  for (; i + lanes <= count; i += lanes)
  {
    hn::LoadInterleaved3(d, values + 3 * i, v[0], v[1], v[2]);
    components[0].Add(v[0]);
    components[1].Add(v[1]);
    components[2].Add(v[2]);
    squares.Add(SquareOf<Value>(v));
  }
  for (std::size_t c = 0; c < 3; ++c)
  {
    components[c].Extend(ranges.least[c], ranges.largest[c]);
  }
  squares.Extend(ranges.leastSquare, ranges.largestSquare);
  return i;
}

std::size_t FloatsOf(const float* values, std::size_t count, ValueRanges& ranges)
{
  return NumbersOf(values, count, ranges);
}
std::size_t IntegersOf(const std::int32_t* values, std::size_t count, ValueRanges& ranges)
{
  return NumbersOf(values, count, ranges);
}
std::size_t FloatTriplesOf(const float* values, std::size_t count, ValueRanges& ranges)
{
  return TriplesOf(values, count, ranges);
}
std::size_t ByteTriplesOf(const std::uint8_t* values, std::size_t count, ValueRanges& ranges)
{
  return TriplesOf(values, count, ranges);
}

}
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace atlas
{

HWY_EXPORT(FloatsOf);
HWY_EXPORT(IntegersOf);
HWY_EXPORT(FloatTriplesOf);
HWY_EXPORT(ByteTriplesOf);

namespace
{

/// No vector has more numbers or triples.
constexpr std::ptrdiff_t MostLanes = 64;

/// Extends ranges by the tuples begin <= i < end.
template<class Value>
void AddTuples(ValueRanges& ranges, const Value* values, std::ptrdiff_t components,
  std::ptrdiff_t begin, std::ptrdiff_t end)
{
  for (std::ptrdiff_t i = begin; i < end; ++i)
  {
    double square = 0;
    for (std::ptrdiff_t c = 0; c < components; ++c)
    {
      const auto value = static_cast<double>(values[i * components + c]);
      const std::size_t k = c;
      ranges.least[k] = std::min(ranges.least[k], value);
      ranges.largest[k] = std::max(ranges.largest[k], value);
      square += value * value;
    }
    if (components > 1)
    {
      ranges.leastSquare = std::min(ranges.leastSquare, square);
      ranges.largestSquare = std::max(ranges.largestSquare, square);
    }
  }
}

std::size_t Vectors(
  const float* values, std::ptrdiff_t components, std::size_t count, ValueRanges& ranges)
{
  return components == 1   ? HWY_DYNAMIC_DISPATCH(FloatsOf)(values, count, ranges)
         : components == 3 ? HWY_DYNAMIC_DISPATCH(FloatTriplesOf)(values, count, ranges)
                           : 0;
}
std::size_t Vectors(
  const int* values, std::ptrdiff_t components, std::size_t count, ValueRanges& ranges)
{
  return components == 1 ? HWY_DYNAMIC_DISPATCH(IntegersOf)(values, count, ranges) : 0;
}
std::size_t Vectors(
  const unsigned char* values, std::ptrdiff_t components, std::size_t count, ValueRanges& ranges)
{
  return components == 3 ? HWY_DYNAMIC_DISPATCH(ByteTriplesOf)(values, count, ranges) : 0;
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
void ValueRanges::Add(const Value* values, std::ptrdiff_t components, std::ptrdiff_t tuples)
{
  if (this->least.empty())
  {
    this->least.assign(components, std::numeric_limits<double>::infinity());
    this->largest.assign(components, -std::numeric_limits<double>::infinity());
    this->leastSquare = components > 1 ? std::numeric_limits<double>::infinity() : 0;
  }
  std::size_t done = 0;
  if (tuples >= MostLanes)
  {
    InitializeTarget();
    done = Vectors(values, components, tuples, *this);
  }
  AddTuples(*this, values, components, static_cast<std::ptrdiff_t>(done), tuples);
}

template void ValueRanges::Add(const float*, std::ptrdiff_t, std::ptrdiff_t);
template void ValueRanges::Add(const int*, std::ptrdiff_t, std::ptrdiff_t);
template void ValueRanges::Add(const unsigned char*, std::ptrdiff_t, std::ptrdiff_t);

bool AreFinite(const float* values, std::ptrdiff_t count)
{
  // All bits of the exponent are 1 in NaN and infinity alone. Adding its lowest bit then carries to
  // the sign. Several lanes, so that the compiler uses vectors.
  constexpr std::uint32_t exponent = 0x7F800000;
  constexpr std::uint32_t lowest = 0x00800000;
  constexpr std::uint32_t sign = 0x80000000;
  std::array<std::uint32_t, 16> lanes = {};
  std::ptrdiff_t i = 0;
  for (const std::int64_t size = lanes.size(); i + size <= count; i += size)
  {
    std::array<std::uint32_t, 16> bits;
    std::memcpy(bits.data(), values + i, sizeof(bits));
    for (std::size_t lane = 0; lane < lanes.size(); ++lane)
    {
      lanes[lane] |= (bits[lane] & exponent) + lowest;
    }
  }
  const bool areFinite =
    std::all_of(lanes.begin(), lanes.end(), [](std::uint32_t lane) { return (lane & sign) == 0; });
  return areFinite &&
         std::all_of(values + i, values + count, [](float value) { return std::isfinite(value); });
}

}

#endif
