#include "VectorMath.h"

#include "InstructionSets.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "VectorMath.cxx"
#include <hwy/foreach_target.h>
// foreach_target.h must come before these headers, which are read once per target.
#include "VectorMath-inl.h"
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace atlas::HWY_NAMESPACE
{

/// Applies `function` to the vectors of `x`; the last one is padded.
template<class Function>
void Transform(const float* x, std::size_t count, float* out, const Function& function)
{
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
  {
    hn::StoreU(function(hn::LoadU(d, x + i)), d, out + i);
  }
  if (i < count)
  {
    HWY_ALIGN float rest[hn::MaxLanes(D())] = {};
    std::copy(x + i, x + count, rest);
    hn::Store(function(hn::Load(d, rest)), d, rest);
    std::copy_n(rest, count - i, out + i);
  }
}

void ExponentialOf(const float* x, std::size_t count, float* out)
{
  const V limit = hn::Set(D(), ExpLimit);
  Transform(x, count, out, [&](V v) HWY_ATTR
    { return ExpInRange(Batch<1>{ { hn::Max(hn::Min(v, limit), hn::Neg(limit)) } }).v[0]; });
}

void LogisticOf(const float* x, std::size_t count, float* out)
{
  Transform(x, count, out, [](V v) HWY_ATTR { return Logistic(Batch<1>{ { v } }).v[0]; });
}

}
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace atlas
{

HWY_EXPORT(ExponentialOf);
HWY_EXPORT(LogisticOf);

void Exponential(const float* x, std::size_t count, float* out)
{
  InitializeTarget();
  HWY_DYNAMIC_DISPATCH(ExponentialOf)(x, count, out);
}

void Logistic(const float* x, std::size_t count, float* out)
{
  InitializeTarget();
  HWY_DYNAMIC_DISPATCH(LogisticOf)(x, count, out);
}

}

#endif
