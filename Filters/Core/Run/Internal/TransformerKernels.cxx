#include "TransformerKernels.h"

#include "Numerics/Lanes.h"
#include "Numerics/VectorMath.h"

#include <algorithm>
#include <cmath>

#include <unsupported/Eigen/SpecialFunctions>

namespace atlas
{
namespace
{

float Mean(std::int64_t count, const float* values)
{
  Lanes sum = Lanes::Zero();
  ForLanes(count, [&](std::int64_t i, std::int64_t left) { sum += Load(values + i, left, 0); });
  return sum.sum() / static_cast<float>(count);
}

/// The mean of (x - center)^2.
float MeanSquare(std::int64_t count, const float* values, float center)
{
  Lanes sum = Lanes::Zero();
  ForLanes(count, [&](std::int64_t i, std::int64_t left)
    { sum += (Load(values + i, left, center) - center).square(); });
  return sum.sum() / static_cast<float>(count);
}

constexpr float RootHalf = 0.70710678F;
constexpr float RootEightOverPi = 1.59576912F;

template<class Function>
void ReplaceRow(std::int64_t count, float* values, const Function& function)
{
  ForLanes(count, [&](std::int64_t i, std::int64_t left)
    { Store(function(Load(values + i, left, 0)), left, values + i); });
}

}

void NormalizeRow(const NormParameters& norm, std::int64_t count, const float* from, float* to)
{
  if (norm.kind == NormKind::None)
  {
    std::copy_n(from, from == to ? 0 : count, to);
    return;
  }
  const float mean = norm.kind == NormKind::LayerNorm ? Mean(count, from) : 0;
  const float scale = 1 / std::sqrt(MeanSquare(count, from, mean) + norm.epsilon);
  ForLanes(count,
    [&](std::int64_t i, std::int64_t left)
    {
      Lanes x = (Load(from + i, left, 0) - mean) * scale;
      if (norm.gain != nullptr)
      {
        x *= Load(norm.gain + i, left, 0);
      }
      if (norm.shift != nullptr)
      {
        x += Load(norm.shift + i, left, 0);
      }
      Store(x, left, to + i);
    });
}

void Activate(Activation activation, std::int64_t count, float* values)
{
  switch (activation)
  {
    case Activation::Gelu:
      ReplaceRow(count, values,
        [](const Lanes& x) -> Lanes { return 0.5F * x * (1 + (RootHalf * x).erf()); });
      return;
    case Activation::GeluTanh:
      MultiplyByLogistic(RootEightOverPi, 0.044715F * RootEightOverPi, count, values);
      return;
    case Activation::Relu:
      ReplaceRow(count, values,
        [](const Lanes& x) -> Lanes { return 0.5F * (x + x.abs()); }); // preserves NaN
      return;
    case Activation::Silu:
      MultiplyByLogistic(1, 0, count, values);
      return;
    case Activation::QuickGelu:
      MultiplyByLogistic(1.702F, 0, count, values);
      return;
    case Activation::SquaredRelu:
      ReplaceRow(count, values,
        [](const Lanes& x) -> Lanes
        {
          const Lanes positive = 0.5F * (x + x.abs());
          return positive * positive;
        });
      return;
    case Activation::Xielu: // has parameters
      return;
  }
}

double Softplus(double x)
{
  return std::max(x, 0.) + std::log1p(std::exp(-std::abs(x)));
}

void ApplyXielu(const XieluParameters& xielu, std::int64_t count, float* values)
{
  std::transform(values, values + count, values,
    [&xielu](float x)
    {
      const float curved =
        x > 0 ? xielu.square * x * x : (std::expm1(std::min(x, xielu.limit)) - x) * xielu.negative;
      return curved + xielu.linear * x;
    });
}

void AddRow(std::int64_t count, const float* addend, float* values)
{
  for (std::int64_t i = 0; i < count; ++i)
  {
    values[i] += addend[i];
  }
}

void MultiplyRow(std::int64_t count, const float* factor, float* values)
{
  for (std::int64_t i = 0; i < count; ++i)
  {
    values[i] *= factor[i];
  }
}

void CapRow(float cap, std::int64_t count, float* values)
{
  ReplaceRow(count, values, [cap](const Lanes& x) -> Lanes { return cap * (x / cap).tanh(); });
}

void LimitRow(float limit, std::int64_t count, float* values)
{
  for (std::int64_t i = 0; i < count; ++i)
  {
    // Preserves NaN.
    values[i] = values[i] > limit ? limit : values[i] < -limit ? -limit : values[i];
  }
}

std::int64_t FindNotFinite(std::int64_t count, const float* values)
{
  Lanes sum = Lanes::Zero();
  // 0 * infinity and 0 * NaN are not 0.
  ForLanes(
    count, [&](std::int64_t i, std::int64_t left) { sum += 0.0F * Load(values + i, left, 0); });
  if (sum.sum() == 0)
  {
    return -1;
  }
  return std::find_if(values, values + count, [](float x) { return !std::isfinite(x); }) - values;
}

}
