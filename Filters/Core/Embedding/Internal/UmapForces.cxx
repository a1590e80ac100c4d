#include "UmapForces.h"

#include "Numerics/InstructionSets.h"

#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "Embedding/Internal/UmapForces.cxx"
#include <hwy/foreach_target.h>
// foreach_target.h must come before these headers, which are read once per target.
#include "Numerics/VectorMath-inl.h"
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace atlas::HWY_NAMESPACE
{

using DI = hn::RebindToSigned<D>;

static_assert(UmapGroup % hn::MaxLanes(D()) == 0, "groups are whole vectors");

/// ln x for x > 0 that are normal. With x = 2^n f and f in [sqrt(1/2), sqrt(2)), a polynomial for
/// ln f / (f - 1), whose error is at most 2e-7 of it.
template<std::size_t K>
HWY_INLINE Batch<K> Logarithm(const Batch<K>& x)
{
  const D d;
  const DI di;
  // The exponent of x / sqrt(1/2), whose bits are subtracted.
  const auto root = hn::Set(di, 0x3F3504F3);
  const auto exponentOf = [&](V v) HWY_ATTR
  { return hn::ShiftRight<23>(hn::Sub(hn::BitCast(di, v), root)); };
  const Batch<K> t = Map(
    [&](V v) HWY_ATTR
    {
      const auto f = hn::Sub(hn::BitCast(di, v), hn::ShiftLeft<23>(exponentOf(v)));
      return hn::Sub(hn::BitCast(d, f), hn::Set(d, 1.F));
    },
    x);
  const V highest = hn::Set(d, -0.101340567F);
  const V next = hn::Set(d, 0.162341898F);
  Batch<K> p = Map([&](V v) HWY_ATTR { return hn::MulAdd(highest, v, next); }, t);
  p = MulAdd(p, t, -0.172470133F);
  p = MulAdd(p, t, 0.19898565F);
  p = MulAdd(p, t, -0.249700717F);
  p = MulAdd(p, t, 0.333351141F);
  p = MulAdd(p, t, -0.500003631F);
  p = MulAdd(p, t, 0.999999943F);
  const V ln2 = hn::Set(d, 0.693147181F);
  return Map([&](V v, V q, V u) HWY_ATTR
    { return hn::MulAdd(hn::ConvertTo(d, exponentOf(v)), ln2, hn::Mul(q, u)); }, x, p, t);
}

/// x^power
template<std::size_t K>
HWY_INLINE Batch<K> Power(const Batch<K>& x, V power)
{
  const V highest = hn::Set(D(), ExpLimit);
  const V lowest = hn::Neg(highest);
  return ExpInRange(Map([&](V v) HWY_ATTR
    { return hn::Max(hn::Min(hn::Mul(power, v), highest), lowest); }, Logarithm(x)));
}

/// The forces on one vector of places.
template<std::size_t Dimensions>
struct Forces
{
  V place[Dimensions];
  V sum[Dimensions];
  V stiffness;

  HWY_INLINE V Difference(const V* other, V* difference) const
  {
    // Distances below this attract and repel as it does.
    V square = hn::Set(D(), 1e-12F);
    for (std::size_t a = 0; a < Dimensions; ++a)
    {
      difference[a] = hn::Sub(other[a], this->place[a]);
      square = hn::MulAdd(difference[a], difference[a], square);
    }
    return square;
  }
};

/// The values of indices, loaded one by one: gather instructions take longer on many processors.
template<class DF>
HWY_INLINE hn::Vec<DF> LoadEach(DF d, const float* values, const std::int32_t* index)
{
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(d, values[*index]);
#else
  if constexpr (hn::MaxLanes(DF()) == 4)
  {
    const hn::Repartition<double, DF> dd;
    const auto first =
      hn::InterleaveLower(d, hn::Set(d, values[index[0]]), hn::Set(d, values[index[1]]));
    const auto second =
      hn::InterleaveLower(d, hn::Set(d, values[index[2]]), hn::Set(d, values[index[3]]));
    return hn::BitCast(d, hn::InterleaveLower(dd, hn::BitCast(dd, first), hn::BitCast(dd, second)));
  }
  else
  {
    const hn::Half<DF> half;
    const auto low = LoadEach(half, values, index);
    return hn::Combine(d, LoadEach(half, values, index + hn::MaxLanes(half)), low);
  }
#endif
}

/// The forces of K columns of edges, the first of which begins with edge `first`.
template<std::size_t Dimensions, std::size_t K>
HWY_INLINE void AddAttraction(const GroupedEdges& edges, std::int64_t first, const UmapCurve& curve,
  const PlaceCoordinates& from, Forces<Dimensions>& forces)
{
  const D d;
  const V one = hn::Set(d, 1.F);
  const V a = hn::Set(d, static_cast<float>(curve.a));
  const V factor = hn::Set(d, static_cast<float>(4 * curve.a * curve.b));
  V difference[K][Dimensions];
  Batch<K> square;
  Batch<K> weight;
  for (std::size_t k = 0; k < K; ++k)
  {
    const std::int64_t e = first + static_cast<std::int64_t>(k) * UmapGroup;
    V other[Dimensions];
    for (std::size_t c = 0; c < Dimensions; ++c)
    {
      other[c] = LoadEach(d, from[c].data(), edges.target.data() + e);
    }
    square.v[k] = forces.Difference(other, difference[k]);
    weight.v[k] = hn::Mul(factor, hn::LoadU(d, edges.weight.data() + e));
  }
  const Batch<K> pull = Map([&](V s, V powered, V w) HWY_ATTR
    { return hn::Div(hn::Mul(w, powered), hn::MulAdd(hn::Mul(a, s), powered, one)); }, square,
    Power(square, hn::Set(d, static_cast<float>(curve.b - 1))), weight);
  for (std::size_t k = 0; k < K; ++k)
  {
    forces.stiffness = hn::Add(forces.stiffness, pull.v[k]);
    for (std::size_t c = 0; c < Dimensions; ++c)
    {
      forces.sum[c] = hn::MulAdd(pull.v[k], difference[k][c], forces.sum[c]);
    }
  }
}

template<std::size_t Dimensions>
HWY_INLINE void Attract(const GroupedEdges& edges, std::int64_t group, std::int64_t lane,
  const UmapCurve& curve, const PlaceCoordinates& from, Forces<Dimensions>& forces)
{
  constexpr std::int64_t atOnce = 4;
  const std::int64_t end = edges.begin[static_cast<std::size_t>(group) + 1];
  std::int64_t column = edges.begin[group];
  for (; column + atOnce <= end; column += atOnce)
  {
    AddAttraction<Dimensions, atOnce>(edges, column * UmapGroup + lane, curve, from, forces);
  }
  for (; column < end; ++column)
  {
    AddAttraction<Dimensions, 1>(edges, column * UmapGroup + lane, curve, from, forces);
  }
}

/// The forces of K places that repel one vector of places.
template<std::size_t Dimensions, std::size_t K>
HWY_INLINE void AddRepulsion(const std::int64_t* shifts, std::int64_t place, const UmapCurve& curve,
  const PlaceCoordinates& from, const Forces<Dimensions>& forces, V* push)
{
  const D d;
  const V one = hn::Set(d, 1.F);
  const V least = hn::Set(d, 0.001F);
  const V highest = hn::Set(d, 4.F);
  const V lowest = hn::Set(d, -4.F);
  const V a = hn::Set(d, static_cast<float>(curve.a));
  const V factor = hn::Set(d, static_cast<float>(2 * curve.b));
  V difference[K][Dimensions];
  Batch<K> square;
  for (std::size_t k = 0; k < K; ++k)
  {
    V other[Dimensions];
    for (std::size_t c = 0; c < Dimensions; ++c)
    {
      other[c] = hn::LoadU(d, from[c].data() + place + shifts[k]);
    }
    square.v[k] = forces.Difference(other, difference[k]);
  }
  const Batch<K> strength = Map(
    [&](V s, V powered) HWY_ATTR
    {
      const V similarity = hn::MulAdd(a, powered, one);
      return hn::Div(factor, hn::Mul(hn::Add(least, s), similarity));
    },
    square, Power(square, hn::Set(d, static_cast<float>(curve.b))));
  for (std::size_t k = 0; k < K; ++k)
  {
    for (std::size_t c = 0; c < Dimensions; ++c)
    {
      const V force = hn::Mul(strength.v[k], difference[k][c]);
      push[c] = hn::Add(push[c], hn::Max(hn::Min(force, highest), lowest));
    }
  }
}

/// Places that are moved together: so many that those that repel them are read in long runs, which
/// the processor reads ahead.
inline constexpr std::int64_t TilePlaces = 256;

/// What attracts and repels the places of a tile, by axis.
template<std::size_t Dimensions>
struct TileForces
{
  HWY_ALIGN float sum[Dimensions][TilePlaces];
  HWY_ALIGN float push[Dimensions][TilePlaces]; ///< as if each place had a repulsion of 1
  HWY_ALIGN float stiffness[TilePlaces];
};

/// Adds what K places do to each place of a tile.
template<std::size_t Dimensions, std::size_t K>
HWY_INLINE void RepelTile(const std::int64_t* shifts, std::int64_t begin, std::int64_t count,
  const UmapCurve& curve, const PlaceCoordinates& from, TileForces<Dimensions>& tile)
{
  const D d;
  for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d)))
  {
    Forces<Dimensions> forces;
    V push[Dimensions];
    for (std::size_t c = 0; c < Dimensions; ++c)
    {
      forces.place[c] = hn::LoadU(d, from[c].data() + begin + i);
      push[c] = hn::Load(d, tile.push[c] + i);
    }
    AddRepulsion<Dimensions, K>(shifts, begin + i, curve, from, forces, push);
    for (std::size_t c = 0; c < Dimensions; ++c)
    {
      hn::Store(push[c], d, tile.push[c] + i);
    }
  }
}

template<std::size_t Dimensions>
void Move(const GroupedEdges& edges, const UmapStep& step, std::int64_t begin, std::int64_t end,
  const PlaceCoordinates& from, PlaceCoordinates& to)
{
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const V rate = hn::Set(d, step.rate);
  const V momentum = hn::Set(d, step.momentum);
  TileForces<Dimensions> tile;
  for (std::int64_t first = begin * UmapGroup; first < end * UmapGroup; first += TilePlaces)
  {
    const std::int64_t count =
      end * UmapGroup - first < TilePlaces ? end * UmapGroup - first : TilePlaces;
    for (std::int64_t i = 0; i < count; i += lanes)
    {
      const std::int64_t place = first + i;
      Forces<Dimensions> forces;
      forces.stiffness = hn::Zero(d);
      for (std::size_t c = 0; c < Dimensions; ++c)
      {
        forces.place[c] = hn::LoadU(d, from[c].data() + place);
        forces.sum[c] = hn::Zero(d);
      }
      Attract(edges, place / UmapGroup, place % UmapGroup, step.curve, from, forces);
      for (std::size_t c = 0; c < Dimensions; ++c)
      {
        hn::Store(forces.sum[c], d, tile.sum[c] + i);
        hn::Store(hn::Zero(d), d, tile.push[c] + i);
      }
      hn::Store(forces.stiffness, d, tile.stiffness + i);
    }
    constexpr std::size_t atOnce = 6;
    const std::size_t shifts = step.shifts.size();
    std::size_t shift = 0;
    for (; shift + atOnce <= shifts; shift += atOnce)
    {
      RepelTile<Dimensions, atOnce>(
        step.shifts.data() + shift, first, count, step.curve, from, tile);
    }
    for (; shift < shifts; ++shift)
    {
      RepelTile<Dimensions, 1>(step.shifts.data() + shift, first, count, step.curve, from, tile);
    }
    for (std::int64_t i = 0; i < count; i += lanes)
    {
      const std::int64_t place = first + i;
      const V scale =
        hn::Mul(hn::Set(d, step.repulsion), hn::LoadU(d, edges.repulsion.data() + place));
      const V part =
        hn::Div(rate, hn::MulAdd(rate, hn::Load(d, tile.stiffness + i), hn::Set(d, 1.F)));
      for (std::size_t c = 0; c < Dimensions; ++c)
      {
        const V own = hn::LoadU(d, from[c].data() + place);
        const V sum =
          hn::NegMulAdd(scale, hn::Load(d, tile.push[c] + i), hn::Load(d, tile.sum[c] + i));
        const V last = hn::Sub(own, hn::LoadU(d, to[c].data() + place));
        const V again = hn::MulAdd(momentum, last, own);
        hn::StoreU(hn::MulAdd(part, sum, again), d, to[c].data() + place);
      }
    }
  }
}

void MoveOf(const GroupedEdges& edges, const UmapStep& step, std::int64_t begin, std::int64_t end,
  const PlaceCoordinates& from, PlaceCoordinates& to)
{
  (step.dimensions == 2 ? Move<2> : Move<3>)(edges, step, begin, end, from, to);
}

}
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace atlas
{

HWY_EXPORT(MoveOf);

void MovePlaces(const GroupedEdges& edges, const UmapStep& step, std::int64_t begin,
  std::int64_t end, const PlaceCoordinates& from, PlaceCoordinates& to)
{
  InitializeTarget();
  HWY_DYNAMIC_DISPATCH(MoveOf)(edges, step, begin, end, from, to);
}

}

#endif
