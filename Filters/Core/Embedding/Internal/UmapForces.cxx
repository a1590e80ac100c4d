#include "UmapForces.h"

#include "InstructionSets.h"

#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "UmapForces.cxx"
#include <hwy/foreach_target.h>
// foreach_target.h must come before these headers, which are read once per target.
#include "VectorMath-inl.h"
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace atlas::HWY_NAMESPACE
{

using DI = hn::RebindToSigned<D>;

static_assert(UmapGroup % hn::MaxLanes(D()) == 0, "groups are whole vectors");

/// ln x for x > 0 that are normal. With x = 2^n f and f in [sqrt(1/2), sqrt(2)), a polynomial for
/// ln f / (f - 1), whose error is at most 2e-7 of it.
HWY_INLINE V Logarithm(V x)
{
  const D d;
  const DI di;
  // The exponent of x / sqrt(1/2), whose bits are subtracted.
  const auto bits = hn::Sub(hn::BitCast(di, x), hn::Set(di, 0x3F3504F3));
  const auto exponent = hn::ShiftRight<23>(bits);
  const V f = hn::BitCast(d, hn::Sub(hn::BitCast(di, x), hn::ShiftLeft<23>(exponent)));
  const V t = hn::Sub(f, hn::Set(d, 1.F));
  V p = hn::Set(d, -0.101340567F);
  p = hn::MulAdd(p, t, hn::Set(d, 0.162341898F));
  p = hn::MulAdd(p, t, hn::Set(d, -0.172470133F));
  p = hn::MulAdd(p, t, hn::Set(d, 0.19898565F));
  p = hn::MulAdd(p, t, hn::Set(d, -0.249700717F));
  p = hn::MulAdd(p, t, hn::Set(d, 0.333351141F));
  p = hn::MulAdd(p, t, hn::Set(d, -0.500003631F));
  p = hn::MulAdd(p, t, hn::Set(d, 0.999999943F));
  return hn::MulAdd(hn::ConvertTo(d, exponent), hn::Set(d, 0.693147181F), hn::Mul(p, t));
}

/// x^power
HWY_INLINE V Power(V x, V power)
{
  const V limit = hn::Set(D(), ExpLimit);
  const V exponent = hn::Mul(power, Logarithm(x));
  return ExpInRange(Batch<1>{ { hn::Max(hn::Min(exponent, limit), hn::Neg(limit)) } }).v[0];
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

template<std::size_t Dimensions>
HWY_INLINE void Attract(const GroupedEdges& edges, std::int64_t group, std::int64_t lane,
  const UmapCurve& curve, const PlaceCoordinates& from, Forces<Dimensions>& forces)
{
  const D d;
  const DI di;
  const V one = hn::Set(d, 1.F);
  const V power = hn::Set(d, static_cast<float>(curve.b - 1));
  const V a = hn::Set(d, static_cast<float>(curve.a));
  const V factor = hn::Set(d, static_cast<float>(4 * curve.a * curve.b));
  for (std::int64_t e = edges.begin[group] * UmapGroup + lane;
    e < edges.begin[static_cast<std::size_t>(group) + 1] * UmapGroup; e += UmapGroup)
  {
    const auto target = hn::LoadU(di, edges.target.data() + e);
    V other[Dimensions];
    for (std::size_t c = 0; c < Dimensions; ++c)
    {
      other[c] = hn::GatherIndex(d, from[c].data(), target);
    }
    V difference[Dimensions];
    const V square = forces.Difference(other, difference);
    const V powered = Power(square, power);
    const V weight = hn::Mul(factor, hn::LoadU(d, edges.weight.data() + e));
    const V pull = hn::Div(hn::Mul(weight, powered), hn::MulAdd(hn::Mul(a, square), powered, one));
    forces.stiffness = hn::Add(forces.stiffness, pull);
    for (std::size_t c = 0; c < Dimensions; ++c)
    {
      forces.sum[c] = hn::MulAdd(pull, difference[c], forces.sum[c]);
    }
  }
}

template<std::size_t Dimensions>
HWY_INLINE void Repel(const GroupedEdges& edges, std::int64_t place, const UmapStep& step,
  const PlaceCoordinates& from, Forces<Dimensions>& forces)
{
  const D d;
  const V one = hn::Set(d, 1.F);
  const V least = hn::Set(d, 0.001F);
  const V limit = hn::Set(d, 4.F);
  const V power = hn::Set(d, static_cast<float>(step.curve.b));
  const V a = hn::Set(d, static_cast<float>(step.curve.a));
  const V factor = hn::Set(d, static_cast<float>(2 * step.curve.b));
  V push[Dimensions];
  for (V& sum : push)
  {
    sum = hn::Zero(d);
  }
  for (const std::int64_t shift : step.shifts)
  {
    V other[Dimensions];
    for (std::size_t c = 0; c < Dimensions; ++c)
    {
      other[c] = hn::LoadU(d, from[c].data() + place + shift);
    }
    V difference[Dimensions];
    const V square = forces.Difference(other, difference);
    const V similarity = hn::MulAdd(a, Power(square, power), one);
    const V strength = hn::Div(factor, hn::Mul(hn::Add(least, square), similarity));
    for (std::size_t c = 0; c < Dimensions; ++c)
    {
      const V force = hn::Mul(strength, difference[c]);
      push[c] = hn::Add(push[c], hn::Max(hn::Min(force, limit), hn::Neg(limit)));
    }
  }
  const V scale = hn::Mul(hn::Set(d, step.repulsion), hn::LoadU(d, edges.repulsion.data() + place));
  for (std::size_t c = 0; c < Dimensions; ++c)
  {
    forces.sum[c] = hn::NegMulAdd(scale, push[c], forces.sum[c]);
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
  for (std::int64_t place = begin * UmapGroup; place < end * UmapGroup; place += lanes)
  {
    Forces<Dimensions> forces;
    forces.stiffness = hn::Zero(d);
    for (std::size_t c = 0; c < Dimensions; ++c)
    {
      forces.place[c] = hn::LoadU(d, from[c].data() + place);
      forces.sum[c] = hn::Zero(d);
    }
    Attract(edges, place / UmapGroup, place % UmapGroup, step.curve, from, forces);
    Repel(edges, place, step, from, forces);
    const V part = hn::Div(rate, hn::MulAdd(rate, forces.stiffness, hn::Set(d, 1.F)));
    for (std::size_t c = 0; c < Dimensions; ++c)
    {
      const V last = hn::Sub(forces.place[c], hn::LoadU(d, to[c].data() + place));
      const V again = hn::MulAdd(momentum, last, forces.place[c]);
      hn::StoreU(hn::MulAdd(part, forces.sum[c], again), d, to[c].data() + place);
    }
  }
}

void MoveInPlane(const GroupedEdges& edges, const UmapStep& step, std::int64_t begin,
  std::int64_t end, const PlaceCoordinates& from, PlaceCoordinates& to)
{
  Move<2>(edges, step, begin, end, from, to);
}

void MoveInSpace(const GroupedEdges& edges, const UmapStep& step, std::int64_t begin,
  std::int64_t end, const PlaceCoordinates& from, PlaceCoordinates& to)
{
  Move<3>(edges, step, begin, end, from, to);
}

}
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace atlas
{

HWY_EXPORT(MoveInPlane);
HWY_EXPORT(MoveInSpace);

void MovePlaces(const GroupedEdges& edges, const UmapStep& step, std::int64_t begin,
  std::int64_t end, const PlaceCoordinates& from, PlaceCoordinates& to)
{
  InitializeTarget();
  if (step.dimensions == 2)
  {
    HWY_DYNAMIC_DISPATCH(MoveInPlane)(edges, step, begin, end, from, to);
  }
  else
  {
    HWY_DYNAMIC_DISPATCH(MoveInSpace)(edges, step, begin, end, from, to);
  }
}

}

#endif
