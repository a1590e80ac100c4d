#include "VectorMath.h"

#include "InstructionSets.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "Numerics/VectorMath.cxx"
#include <hwy/foreach_target.h>
// foreach_target.h must come before these headers, which are read once per target.
#include "Numerics/VectorMath-inl.h"
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace atlas::HWY_NAMESPACE
{

/// Calls function(vector) for the vectors of a row, and once for its end, padded with
/// `fill`; what it returns is written back, without the padding.
template<class Function>
HWY_INLINE void ForRow(float* values, std::size_t count, float fill, const Function& function)
{
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
  {
    hn::StoreU(function(hn::LoadU(d, values + i)), d, values + i);
  }
  if (i < count)
  {
    HWY_ALIGN float rest[hn::MaxLanes(D())];
    std::fill(std::copy(values + i, values + count, rest), rest + lanes, fill);
    hn::Store(function(hn::Load(d, rest)), d, rest);
    std::copy_n(rest, count - i, values + i);
  }
}

void LogisticOf(const float* x, std::size_t count, float* out)
{
  std::copy_n(x, count, out);
  ForRow(out, count, 0, [](V v) HWY_ATTR { return Logistic(Batch<1>{ { v } }).v[0]; });
}

void MultiplyByLogisticOf(float linear, float cubic, std::size_t count, float* values)
{
  const D d;
  const V first = hn::Set(d, linear);
  const V third = hn::Set(d, cubic);
  const V limit = hn::Set(d, 2 * ExpLimit);
  ForRow(values, count, 0,
    [&](V x) HWY_ATTR
    {
      // Beyond ExpLimit the function is 0 or 1; beyond this, the cube could overflow.
      const V limited = hn::Max(hn::Min(x, limit), hn::Neg(limit));
      const V slope = hn::MulAdd(third, hn::Mul(limited, limited), first);
      return hn::Mul(x, Logistic(Batch<1>{ { hn::Mul(limited, slope) } }).v[0]);
    });
}

float LargestOf(const float* values, std::size_t count)
{
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  float largest = -std::numeric_limits<float>::infinity();
  std::size_t i = 0;
  if (count >= lanes)
  {
    V maxima = hn::LoadU(d, values);
    for (i = lanes; i + lanes <= count; i += lanes)
    {
      maxima = hn::Max(maxima, hn::LoadU(d, values + i));
    }
    largest = hn::GetLane(hn::MaxOfLanes(d, maxima));
  }
  for (; i < count; ++i)
  {
    largest = std::max(largest, values[i]);
  }
  return largest;
}

void SoftmaxRowOf(float* values, std::size_t count)
{
  const D d;
  const float largest = LargestOf(values, count);
  const V shift = hn::Set(d, largest);
  V sum = hn::Zero(d);
  // The padding is infinitely far below the maximum, and adds nothing.
  ForRow(values, count, -std::numeric_limits<float>::infinity(),
    [&](V x) HWY_ATTR
    {
      const V difference = hn::Sub(x, shift);
      const V power = ExpOfNegative(Batch<1>{ { difference } }).v[0];
      const V result = hn::IfThenElse(hn::IsNaN(difference), difference, power);
      sum = hn::Add(sum, result);
      return result;
    });
  const V factor = hn::Set(d, 1 / hn::GetLane(hn::SumOfLanes(d, sum)));
  ForRow(values, count, 0, [&](V x) HWY_ATTR { return hn::Mul(x, factor); });
}

}
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace atlas
{

HWY_EXPORT(LogisticOf);
HWY_EXPORT(MultiplyByLogisticOf);
HWY_EXPORT(SoftmaxRowOf);

void Logistic(const float* x, std::size_t count, float* out)
{
  InitializeTarget();
  HWY_DYNAMIC_DISPATCH(LogisticOf)(x, count, out);
}

void MultiplyByLogistic(float linear, float cubic, std::int64_t count, float* values)
{
  InitializeTarget();
  HWY_DYNAMIC_DISPATCH(MultiplyByLogisticOf)(linear, cubic, count, values);
}

void SoftmaxRow(std::int64_t count, float* values)
{
  InitializeTarget();
  HWY_DYNAMIC_DISPATCH(SoftmaxRowOf)(values, count);
}

}

#endif
