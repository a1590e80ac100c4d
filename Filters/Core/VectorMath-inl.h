// Functions of whole vectors, compiled once for each instruction set (Highway's foreach_target.h).
// Each lane goes through the same operations, so that a value depends on its argument alone.

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

/// Exp and Logistic are exact to rounding where |x| is at most this, about 126 ln 2.
inline constexpr float ExpLimit = 87.3365F;

/// e^x for |x| <= ExpLimit, without a check. With n = round(x / ln 2), e^x = 2^n e^f for an f of at
/// most ln 2 / 2 in magnitude; the polynomial's coefficients minimize its relative error there,
/// which is 9.2e-8, with e^0 = 1.
template<class D, class V = hn::Vec<D>>
HWY_INLINE V ExpInRange(D d, V x)
{
  const hn::RebindToSigned<D> di;
  // The sum is rounded to an integer, which then stands in its lowest bits: 1.5 * 2^23 + n.
  const V shift = hn::Set(d, 12582912.F);
  const V shifted = hn::MulAdd(x, hn::Set(d, 1.44269504F), shift);
  const V n = hn::Sub(shifted, shift);
  // ln 2 in two parts, the first so short that n times it is exact.
  V f = hn::NegMulAdd(n, hn::Set(d, 0.693359375F), x);
  f = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4F), f);
  V p = hn::MulAdd(f, hn::Set(d, 0.00829027221F), hn::Set(d, 0.0418981612F));
  p = hn::MulAdd(f, p, hn::Set(d, 0.166676387F));
  p = hn::MulAdd(f, p, hn::Set(d, 0.499991477F));
  p = hn::MulAdd(f, p, hn::Set(d, 0.999999702F));
  p = hn::MulAdd(f, p, hn::Set(d, 1.F));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, shifted));
  return hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
}

/// e^x for x <= 0; below -ExpLimit e^-ExpLimit = 1.2e-38.
template<class D, class V = hn::Vec<D>>
HWY_INLINE V ExpOfNegative(D d, V x)
{
  return ExpInRange(d, hn::Max(x, hn::Set(d, -ExpLimit)));
}

/// 1 / (1 + e^-x); beyond +-ExpLimit as there.
template<class D, class V = hn::Vec<D>>
HWY_INLINE V Logistic(D d, V x)
{
  const V limited = hn::Max(hn::Min(x, hn::Set(d, ExpLimit)), hn::Set(d, -ExpLimit));
  const V one = hn::Set(d, 1.F);
  return hn::Div(one, hn::Add(one, ExpInRange(d, hn::Neg(limited))));
}

}
HWY_AFTER_NAMESPACE();

#endif
