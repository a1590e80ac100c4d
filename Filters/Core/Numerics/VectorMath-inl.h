// Vectorized functions, compiled once for each instruction set (Highway's foreach_target.h). All
// lanes go through the same operations, so a result depends only on its argument.

#if defined(ATLAS_VECTOR_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef ATLAS_VECTOR_MATH_INL_H
#undef ATLAS_VECTOR_MATH_INL_H
#else
#define ATLAS_VECTOR_MATH_INL_H
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace atlas::HWY_NAMESPACE
{

namespace hn = hwy::HWY_NAMESPACE;

/// Exp and Logistic are exact to rounding where |x| is at most this, about 126 ln 2: e^-ExpLimit is
/// about the smallest normal number.
inline constexpr float ExpLimit = 87.3365F;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

/// K independent vectors that go through the same operations together, so that the operations of
/// one fill the latency of the others.
template<std::size_t K>
struct Batch
{
  V v[K];
};

/// Applies `function` to each of the K vectors of the batches.
template<std::size_t K, class Function, class... Others>
HWY_INLINE Batch<K> Map(const Function& function, const Batch<K>& first, const Others&... others)
{
  Batch<K> result;
  for (std::size_t u = 0; u < K; ++u)
  {
    result.v[u] = function(first.v[u], others.v[u]...);
  }
  return result;
}

/// a b + c for each vector b.
template<std::size_t K>
HWY_INLINE Batch<K> MulAdd(const Batch<K>& a, const Batch<K>& b, float c)
{
  const V constant = hn::Set(D(), c);
  return Map([&](V x, V y) HWY_ATTR { return hn::MulAdd(x, y, constant); }, a, b);
}

/// a b + c for each vector a.
template<std::size_t K>
HWY_INLINE Batch<K> MulAdd(const Batch<K>& a, float b, const Batch<K>& c)
{
  const V constant = hn::Set(D(), b);
  return Map([&](V x, V y) HWY_ATTR { return hn::MulAdd(x, constant, y); }, a, c);
}

/// e^x for |x| <= ExpLimit, unchecked. With n = round(x / ln 2), e^x = 2^n e^f with |f| <= ln 2 /
/// 2. The polynomial for e^f is exact at 0; its coefficients minimize the relative error, which is
/// 9.2e-8.
template<std::size_t K>
HWY_INLINE Batch<K> ExpInRange(const Batch<K>& x)
{
  const D d;
  const hn::RebindToSigned<D> di;
  // Adding 1.5 * 2^23 rounds to an integer n, which is then in the lowest bits of the sum.
  const V shift = hn::Set(d, 12582912.F);
  const V perLn2 = hn::Set(d, 1.44269504F);
  const Batch<K> shifted = Map([&](V v) HWY_ATTR { return hn::MulAdd(v, perLn2, shift); }, x);
  const Batch<K> n = Map([&](V v) HWY_ATTR { return hn::Sub(v, shift); }, shifted);
  // ln 2 as a sum of two parts; the first has so few bits that its product with n is exact.
  Batch<K> f = MulAdd(n, -0.693359375F, x);
  f = MulAdd(n, 2.12194440e-4F, f);
  const V highest = hn::Set(d, 0.00829027221F);
  const V next = hn::Set(d, 0.0418981612F);
  Batch<K> p = Map([&](V v) HWY_ATTR { return hn::MulAdd(v, highest, next); }, f);
  p = MulAdd(f, p, 0.166676387F);
  p = MulAdd(f, p, 0.499991477F);
  p = MulAdd(f, p, 0.999999702F);
  p = MulAdd(f, p, 1.F);
  return Map(
    [&](V v, V s) HWY_ATTR
    {
      const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, s));
      return hn::BitCast(d, hn::Add(hn::BitCast(di, v), exponent));
    },
    p, shifted);
}

/// The values where x is at least -ExpLimit, and where it is not a number; below that 0, since no
/// normal number is that small.
template<std::size_t K>
HWY_INLINE Batch<K> ZeroBelowLimit(const Batch<K>& x, const Batch<K>& values)
{
  const V lowest = hn::Set(D(), -ExpLimit);
  return Map(
    [&](V v, V value) HWY_ATTR { return hn::IfThenZeroElse(hn::Lt(v, lowest), value); }, x, values);
}

/// e^x for x <= 0; 0 below -ExpLimit, where e^x is below 1.2e-38.
template<std::size_t K>
HWY_INLINE Batch<K> ExpOfNegative(const Batch<K>& x)
{
  const V lowest = hn::Set(D(), -ExpLimit);
  return ZeroBelowLimit(x, ExpInRange(Map([&](V v) HWY_ATTR { return hn::Max(v, lowest); }, x)));
}

/// 1 / (1 + e^-x), with x clamped to +-ExpLimit; 0 below.
template<std::size_t K>
HWY_INLINE Batch<K> Logistic(const Batch<K>& x)
{
  const V highest = hn::Set(D(), ExpLimit);
  const V lowest = hn::Set(D(), -ExpLimit);
  const V one = hn::Set(D(), 1.F);
  const Batch<K> limited =
    Map([&](V v) HWY_ATTR { return hn::Neg(hn::Max(hn::Min(v, highest), lowest)); }, x);
  return ZeroBelowLimit(
    x, Map([&](V v) HWY_ATTR { return hn::Div(one, hn::Add(one, v)); }, ExpInRange(limited)));
}

/// e^-x + c for |x| <= ExpLimit, unchecked. With n = round(-x / ln 2), e^-x = 2^n 2^-f, where f = x
/// / ln 2 + n and |f| <= 1/2. The polynomial for 2^-f is exact at 0; its coefficients minimize the
/// relative error, which is 1.1e-7. Reducing x in one step, unlike ExpInRange in two, adds a
/// relative error of 1.4e-8 |x|, or 7.4e-8 |x| without fused multiply-add. (Rounding x itself to
/// single precision adds up to 6.0e-8 |x|.) The product with 2^n is exact, so it is added without
/// another rounding.
template<std::size_t K>
HWY_INLINE Batch<K> AddExpOfMinus(const Batch<K>& x, const Batch<K>& c)
{
  const D d;
  const hn::RebindToSigned<D> di;
  // Adding 1.5 * 2^23 rounds to an integer. The lowest bits of the sum are then n + 127, which is
  // how a float stores the exponent of 2^n.
  const V shift = hn::Set(d, 12582912.F + 127);
  const V perLn2 = hn::Set(d, 1.44269504F);
  const Batch<K> shifted = Map([&](V v) HWY_ATTR { return hn::NegMulAdd(v, perLn2, shift); }, x);
  const Batch<K> f =
    Map([&](V v, V s) HWY_ATTR { return hn::MulAdd(v, perLn2, hn::Sub(s, shift)); }, x, shifted);
  const V highest = hn::Set(d, -0.00132647238F);
  const V next = hn::Set(d, 0.00967151858F);
  Batch<K> p = Map([&](V v) HWY_ATTR { return hn::MulAdd(v, highest, next); }, f);
  p = MulAdd(f, p, -0.0555073321F);
  p = MulAdd(f, p, 0.240222439F);
  p = MulAdd(f, p, -0.693147004F);
  p = MulAdd(f, p, 1.F);
  const Batch<K> power = Map(
    [&](V s) HWY_ATTR { return hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, s))); }, shifted);
  return Map([](V v, V w, V u) HWY_ATTR { return hn::MulAdd(v, w, u); }, p, power, c);
}

}
HWY_AFTER_NAMESPACE();

#endif
