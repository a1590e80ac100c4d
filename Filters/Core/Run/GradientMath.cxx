#include "GradientMath.h"

#include "Base/Pi.h"

#include <Eigen/Core>
#include <unsupported/Eigen/SpecialFunctions>

namespace atlas
{
namespace
{

constexpr std::int64_t GroupSize = 16;

template<class Number>
using Group = Eigen::Array<Number, GroupSize, 1>;

/// Calls function(group of x, group of dy) and stores its result, for groups of equal size; the
/// last one is padded.
template<class Number, class Function>
void ForGroups(
  std::int64_t count, const Number* x, const Number* dy, Number* to, const Function& function)
{
  Group<Number> a = Group<Number>::Zero();
  Group<Number> b = Group<Number>::Zero();
  for (std::int64_t i = 0; i < count; i += GroupSize)
  {
    const std::int64_t left = std::min(GroupSize, count - i);
    std::copy_n(x + i, left, a.data());
    std::copy_n(dy + i, left, b.data());
    const Group<Number> result = function(a, b);
    std::copy_n(result.data(), left, to + i);
  }
}

constexpr double Cubic = 0.044715;
constexpr double QuickFactor = 1.702;

template<class Number>
Group<Number> TanhOfGelu(const Group<Number>& x)
{
  const auto factor = static_cast<Number>(std::sqrt(2 / Pi));
  return (factor * (x + static_cast<Number>(Cubic) * x.cube())).tanh();
}

template<class Number>
Group<Number> Apply(Activation activation, const Group<Number>& x)
{
  const auto half = static_cast<Number>(0.5);
  switch (activation)
  {
    case Activation::Gelu:
      return half * x * (1 + (static_cast<Number>(std::sqrt(0.5)) * x).erf());
    case Activation::GeluTanh:
      return half * x * (1 + TanhOfGelu<Number>(x));
    case Activation::Relu:
      return half * (x + x.abs()); // preserves NaN
    case Activation::Silu:
      return x / (1 + (-x).exp());
    case Activation::QuickGelu:
      return x / (1 + (static_cast<Number>(-QuickFactor) * x).exp());
    case Activation::SquaredRelu:
      return (half * (x + x.abs())).square();
    case Activation::Xielu: // refused by RequireNoSwitches
      break;
  }
  return x;
}

template<class Number>
Group<Number> Derivative(Activation activation, const Group<Number>& x)
{
  const auto half = static_cast<Number>(0.5);
  switch (activation)
  {
    case Activation::Gelu:
      return half * (1 + (static_cast<Number>(std::sqrt(0.5)) * x).erf()) +
             x * (-half * x.square()).exp() * static_cast<Number>(1 / std::sqrt(2 * Pi));
    case Activation::GeluTanh:
    {
      const Group<Number> t = TanhOfGelu<Number>(x);
      const auto factor = static_cast<Number>(std::sqrt(2 / Pi));
      return half * (1 + t) + half * x * (1 - t.square()) * factor *
                                (1 + static_cast<Number>(3 * Cubic) * x.square());
    }
    case Activation::Relu: // 0 at 0
      return (x > 0).template cast<Number>();
    case Activation::Silu:
    {
      const Group<Number> s = 1 / (1 + (-x).exp());
      return s * (1 + x * (1 - s));
    }
    case Activation::QuickGelu:
    {
      const auto factor = static_cast<Number>(QuickFactor);
      const Group<Number> s = 1 / (1 + (-factor * x).exp());
      return s * (1 + factor * x * (1 - s));
    }
    case Activation::SquaredRelu:
      return x + x.abs();
    case Activation::Xielu: // refused by RequireNoSwitches
      break;
  }
  return x;
}

}

template<class Number>
void ActivateRows(Activation activation, std::int64_t count, const Number* x, Number* y)
{
  ForGroups(count, x, x, y, [activation](const Group<Number>& a, const Group<Number>&)
    { return Apply<Number>(activation, a); });
}

template<class Number>
void ActivateBackward(
  Activation activation, std::int64_t count, const Number* x, const Number* dy, Number* dx)
{
  ForGroups(count, x, dy, dx, [activation](const Group<Number>& a, const Group<Number>& b)
    { return Group<Number>(b * Derivative<Number>(activation, a)); });
}

template void ActivateRows(Activation, std::int64_t, const float*, float*);
template void ActivateRows(Activation, std::int64_t, const double*, double*);
template void ActivateBackward(Activation, std::int64_t, const float*, const float*, float*);
template void ActivateBackward(Activation, std::int64_t, const double*, const double*, double*);

}
