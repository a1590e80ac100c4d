#include "Attraction.h"

#include "Base/Index.h"
#include "Numerics/InstructionSets.h"
#include "Numerics/ParallelBlocks.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "Embedding/Internal/Attraction.cxx"
#include <hwy/foreach_target.h>
// foreach_target.h must come before these headers, which are read once per target.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace atlas::HWY_NAMESPACE
{

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, AttractionUnit>;
using V = hn::Vec<D>;
using DU = hn::RebindToUnsigned<D>;
inline constexpr std::size_t LaneCount = hn::MaxLanes(D());

HWY_INLINE V LoadWeight(const std::uint16_t* from)
{
  const auto bits = hn::PromoteTo(DU(), hn::LoadU(hn::Rebind<std::uint16_t, D>(), from));
  return hn::BitCast(
    D(), hn::Add(hn::ShiftLeft<12>(bits), hn::Set(DU(), AttractionExponent << 23U)));
}

/// The floats from one point to the next.
template<std::size_t Dimensions>
inline constexpr std::size_t Stride = Dimensions == 2 ? 2 : 4;

#if HWY_TARGET == HWY_SCALAR

template<std::size_t Dimensions, class Index>
HWY_INLINE void GatherPoints(const float* points, const Index* index, V* at)
{
  for (std::size_t i = 0; i < Dimensions; ++i)
  {
    at[i] = hn::Set(D(), points[*index * Stride<Dimensions> + i]);
  }
}

#else

using FourLanes = hn::Vec<hn::FixedTag<float, 4>>;

/// A point in 2-D, twice, or one in 3-D.
template<std::size_t Dimensions>
HWY_INLINE FourLanes LoadPoint(const float* point)
{
  const hn::FixedTag<float, 4> d;
  if constexpr (Dimensions == 3)
  {
    return hn::LoadU(d, point);
  }
  double both = 0;
  std::memcpy(&both, point, sizeof both);
  return hn::BitCast(d, hn::Set(hn::FixedTag<double, 2>(), both));
}

/// Of each four points: x0 x1 y0 y1, x2 x3 y2 y3, and in 3-D z0 z1 . ., z2 z3 . .
template<std::size_t Dimensions, class DF, class Index>
HWY_INLINE void GatherHalves(DF d, const float* points, const Index* index, hn::Vec<DF>* halves)
{
  constexpr std::size_t count = 2 * (Dimensions - 1);
  if constexpr (hn::MaxLanes(DF()) == 4)
  {
    FourLanes point[4];
    for (std::size_t i = 0; i < 4; ++i)
    {
      point[i] = LoadPoint<Dimensions>(points + index[i] * Stride<Dimensions>);
    }
    for (std::size_t i = 0; i < 2; ++i)
    {
      halves[i] = hn::InterleaveLower(d, point[2 * i], point[2 * i + 1]);
      if constexpr (Dimensions == 3)
      {
        halves[2 + i] = hn::InterleaveUpper(d, point[2 * i], point[2 * i + 1]);
      }
    }
  }
  else
  {
    const hn::Half<DF> half;
    hn::Vec<hn::Half<DF>> low[count];
    hn::Vec<hn::Half<DF>> high[count];
    GatherHalves<Dimensions>(half, points, index, low);
    GatherHalves<Dimensions>(half, points, index + hn::MaxLanes(half), high);
    for (std::size_t i = 0; i < count; ++i)
    {
      halves[i] = hn::Combine(d, high[i], low[i]);
    }
  }
}

/// Coordinates of the points of a vector of indices. They are loaded one by one: gather
/// instructions take twice as long on many processors.
template<std::size_t Dimensions, class Index>
HWY_INLINE void GatherPoints(const float* points, const Index* index, V* at)
{
  const D d;
  const hn::Repartition<double, D> dd;
  V halves[2 * (Dimensions - 1)];
  GatherHalves<Dimensions>(d, points, index, halves);
  const auto first = hn::BitCast(dd, halves[0]);
  const auto second = hn::BitCast(dd, halves[1]);
  at[0] = hn::BitCast(d, hn::InterleaveLower(dd, first, second));
  at[1] = hn::BitCast(d, hn::InterleaveUpper(dd, first, second));
  if constexpr (Dimensions == 3)
  {
    at[2] = hn::BitCast(
      d, hn::InterleaveLower(dd, hn::BitCast(dd, halves[2]), hn::BitCast(dd, halves[3])));
  }
}

#endif

/// 1 / x within a few units in the last place, for x from 1 to 1e37.
HWY_INLINE V Inverse(V x)
{
  const V estimate = hn::ApproximateReciprocal(x);
  return hn::Mul(estimate, hn::NegMulAdd(x, estimate, hn::Set(D(), 2.F)));
}

/// The attraction of one row, or in value[0] the sum of p ln(1 + d^2), in units of the largest p.
template<std::size_t Dimensions, bool IsDivergence, class Index>
HWY_INLINE void EvaluateRow(const float* points, std::size_t row, const Index* index,
  const std::uint16_t* weights, std::size_t count, float* value)
{
  const D d;
  const V one = hn::Set(d, 1.F);
  V own[Dimensions];
  V sum[Dimensions];
  for (std::size_t i = 0; i < Dimensions; ++i)
  {
    own[i] = hn::Set(d, points[row * Stride<Dimensions> + i]);
    sum[i] = hn::Zero(d);
  }
  for (std::size_t e = 0; e < count; e += LaneCount)
  {
    V at[Dimensions];
    GatherPoints<Dimensions>(points, index + e, at);
    const V p = LoadWeight(weights + e);
    V t = one;
    for (std::size_t i = 0; i < Dimensions; ++i)
    {
      at[i] = hn::Sub(own[i], at[i]);
      t = hn::MulAdd(at[i], at[i], t);
    }
    if constexpr (IsDivergence)
    {
      sum[0] = hn::MulAdd(p, hn::Log(d, t), sum[0]);
    }
    else
    {
      const V factor = hn::Mul(p, Inverse(t));
      for (std::size_t i = 0; i < Dimensions; ++i)
      {
        sum[i] = hn::MulAdd(factor, at[i], sum[i]);
      }
    }
  }
  for (std::size_t i = 0; i < (IsDivergence ? 1 : Dimensions); ++i)
  {
    value[i] = hn::GetLane(hn::SumOfLanes(d, sum[i]));
  }
}

/// Writes the attraction of rows first <= row < last, or returns their divergence.
template<std::size_t Dimensions, bool IsDivergence>
HWY_INLINE double EvaluateRows(const PackedAffinities& packed, const float* points,
  std::size_t first, std::size_t last, float* attraction)
{
  double sum = 0;
  for (std::size_t row = first; row < last; ++row)
  {
    const std::size_t begin = packed.begin[row];
    float value[Dimensions] = {};
    const auto evaluate = [&](const auto* index) HWY_ATTR
    {
      EvaluateRow<Dimensions, IsDivergence>(
        points, row, index + begin, packed.weights + begin, packed.begin[row + 1] - begin, value);
    };
    if (packed.shortIndex)
    {
      evaluate(packed.shortIndex);
    }
    else
    {
      evaluate(packed.longIndex);
    }
    sum += static_cast<double>(value[0]);
    for (std::size_t i = 0; i < (IsDivergence ? 0 : Dimensions); ++i)
    {
      attraction[row * Stride<Dimensions> + i] = packed.scale * value[i];
    }
  }
  return sum * static_cast<double>(packed.scale);
}

void AttractRows(const PackedAffinities& packed, const float* points, std::size_t first,
  std::size_t last, float* attraction)
{
  (packed.dimensions == 2 ? EvaluateRows<2, false> : EvaluateRows<3, false>)(packed, points, first,
    last, attraction);
}

double DivergeRows(
  const PackedAffinities& packed, const float* points, std::size_t first, std::size_t last)
{
  return (packed.dimensions == 2 ? EvaluateRows<2, true> : EvaluateRows<3, true>)(packed, points,
    first, last, nullptr);
}

}
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace atlas
{

HWY_EXPORT(AttractRows);
HWY_EXPORT(DivergeRows);

namespace
{

/// Rows that a thread takes at once.
constexpr std::int64_t RowBlock = 1024;

/// Packs 0 <= value <= 1.
std::uint16_t Pack(float value)
{
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  constexpr std::uint32_t least = AttractionExponent << 23U;
  constexpr std::uint32_t half = 1U << 11U;
  return bits + half < least ? std::uint16_t{ 0 }
                             : static_cast<std::uint16_t>((bits + half - least) >> 12U);
}

}

Attraction::Attraction(const Affinities& affinities, const std::vector<std::uint32_t>& order,
  int dimensions, int threads)
  : Dimensions(dimensions)
  , Scale(*std::max_element(affinities.value.begin(), affinities.value.end()))
  , Begin(order.size() + 1)
{
  InitializeTarget();
  std::vector<std::uint32_t> rank(order.size());
  for (std::size_t row = 0; row < order.size(); ++row)
  {
    rank[order[row]] = static_cast<std::uint32_t>(row);
    const std::size_t count = affinities.begin[order[row] + 1] - affinities.begin[order[row]];
    this->Begin[row + 1] =
      this->Begin[row] + (count + AttractionUnit - 1) / AttractionUnit * AttractionUnit;
  }
  this->Weights.resize(this->Begin.back());
  const auto pack = [&](auto& numbers)
  {
    numbers.resize(this->Begin.back());
    using Number = typename std::decay_t<decltype(numbers)>::value_type;
    ForBlocks(order.size(), RowBlock, threads,
      [&](std::int64_t first, std::int64_t last)
      {
        for (std::int64_t row = first; row < last; ++row)
        {
          std::size_t to = this->Begin[row];
          const std::int64_t end = affinities.begin[order[row] + 1];
          for (std::int64_t e = affinities.begin[order[row]]; e < end; ++e, ++to)
          {
            numbers[to] = static_cast<Number>(rank[affinities.index[e]]);
            this->Weights[to] = Pack(affinities.value[e] / this->Scale);
          }
          // The rest is the point itself, which it does not attract.
          std::fill(numbers.data() + to, numbers.data() + this->Begin[ToIndex(row) + 1],
            static_cast<Number>(row));
        }
      });
  };
  if (order.size() <= 65536)
  {
    pack(this->Short);
  }
  else
  {
    pack(this->Long);
  }
}

PackedAffinities Attraction::Packed() const
{
  return { this->Dimensions, this->Begin.data(), this->Short.empty() ? nullptr : this->Short.data(),
    this->Long.data(), this->Weights.data(), this->Scale };
}

void Attraction::Evaluate(const float* points, int threads, float* attraction) const
{
  const PackedAffinities packed = this->Packed();
  ForBlocks(this->Begin.size() - 1, RowBlock, threads, [&](std::int64_t first, std::int64_t last)
    { HWY_DYNAMIC_DISPATCH(AttractRows)(packed, points, first, last, attraction); });
}

double Attraction::EvaluateDivergence(const float* points, int threads) const
{
  const PackedAffinities packed = this->Packed();
  const std::int64_t rows = this->Begin.size() - 1;
  std::vector<double> sums(BlockCount(rows, RowBlock));
  ForBlocks(rows, RowBlock, threads, [&](std::int64_t first, std::int64_t last)
    { sums[first / RowBlock] = HWY_DYNAMIC_DISPATCH(DivergeRows)(packed, points, first, last); });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}

#endif
