#include "TransformerKernels.h"

#include "MatrixProduct.h"

#include <algorithm>
#include <limits>

#include <unsupported/Eigen/SpecialFunctions>

namespace atlas
{
namespace
{

/// Values are taken this many at a time, the last ones filled up, so that each of them goes through
/// the same instructions wherever it lies; Eigen itself treats the ends of unaligned arrays
/// differently from their middle.
constexpr std::int64_t LaneCount = 16;
using Lanes = Eigen::Array<float, LaneCount, 1>;

Lanes Load(const float* values, std::int64_t count, float fill)
{
  if (count >= LaneCount)
  {
    return Eigen::Map<const Lanes>(values);
  }
  Lanes lanes = Lanes::Constant(fill);
  std::copy_n(values, count, lanes.data());
  return lanes;
}

void Store(const Lanes& lanes, std::int64_t count, float* values)
{
  if (count >= LaneCount)
  {
    Eigen::Map<Lanes>{ values } = lanes;
  }
  else
  {
    std::copy_n(lanes.data(), count, values);
  }
}

/// Calls function(first value, number of values that are left) for each group of lanes.
template<class Function>
void ForLanes(std::int64_t count, const Function& function)
{
  for (std::int64_t i = 0; i < count; i += LaneCount)
  {
    function(i, count - i);
  }
}

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

Lanes Apply(Activation activation, const Lanes& x)
{
  constexpr float rootHalf = 0.70710678F;
  constexpr float rootTwoOverPi = 0.79788456F;
  constexpr float cubic = 0.044715F;
  switch (activation)
  {
    case Activation::Gelu:
      return 0.5F * x * (1 + (rootHalf * x).erf());
    case Activation::GeluTanh:
      return 0.5F * x * (1 + (rootTwoOverPi * (x + cubic * x.cube())).tanh());
    case Activation::Relu:
      return 0.5F * (x + x.abs()); // keeps what is not a number
    case Activation::Silu:
      return x / (1 + (-x).exp());
  }
  return x;
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
  ForLanes(count, [&](std::int64_t i, std::int64_t left)
    { Store(Apply(activation, Load(values + i, left, 0)), left, values + i); });
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

void SoftmaxRow(std::int64_t count, float* values)
{
  constexpr float lowest = -std::numeric_limits<float>::infinity();
  Lanes maxima = Lanes::Constant(lowest);
  ForLanes(count, [&](std::int64_t i, std::int64_t left)
    { maxima = maxima.max(Load(values + i, left, lowest)); });
  const float maximum = maxima.maxCoeff();
  Lanes sum = Lanes::Zero();
  ForLanes(count,
    [&](std::int64_t i, std::int64_t left)
    {
      // Beyond the row: exp(-infinity) = 0.
      const Lanes x = (Load(values + i, left, lowest) - maximum).exp();
      sum += x;
      Store(x, left, values + i);
    });
  const float factor = 1 / sum.sum();
  ForLanes(count, [&](std::int64_t i, std::int64_t left)
    { Store(Load(values + i, left, 0) * factor, left, values + i); });
}

std::int64_t FindNotFinite(std::int64_t count, const float* values)
{
  Lanes sum = Lanes::Zero();
  // 0 times infinity and 0 times not-a-number are not 0.
  ForLanes(
    count, [&](std::int64_t i, std::int64_t left) { sum += 0.0F * Load(values + i, left, 0); });
  if (sum.sum() == 0)
  {
    return -1;
  }
  return std::find_if(values, values + count, [](float x) { return !std::isfinite(x); }) - values;
}

void EvaluateContent(
  const HeadScores& head, std::int64_t begin, std::int64_t end, std::int64_t keys, float* values)
{
  MultiplyMatrices(end - begin, keys, head.dimension, head.scale,
    { head.query + begin * head.dimension, head.dimension }, { head.key, head.dimension, true },
    values, keys);
}

void AddBias(const HeadScores& head, std::int64_t rows, std::int64_t keys, float* values)
{
  if (head.slope == 0)
  {
    return;
  }
  for (std::int64_t row = 0; row < rows; ++row)
  {
    for (std::int64_t key = 0; key < keys; ++key)
    {
      values[row * keys + key] += head.slope * static_cast<float>(key);
    }
  }
}

void EvaluateWeights(
  const HeadScores& head, std::int64_t begin, std::int64_t end, std::int64_t keys, float* values)
{
  EvaluateContent(head, begin, end, keys, values);
  AddBias(head, end - begin, keys, values);
  for (std::int64_t query = begin; query < end; ++query)
  {
    float* row = values + (query - begin) * keys;
    const std::int64_t allowed = head.KeyCount(query + 1);
    SoftmaxRow(allowed, row);
    std::fill(row + allowed, row + keys, 0.0F);
  }
}

}
