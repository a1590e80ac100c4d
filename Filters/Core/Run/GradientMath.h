#pragma once

// Rows of numbers, forward and backward. Number is float or double. Results
// depend only on the arguments, not on memory alignment.

#include "Numerics/MatrixProduct.h"
#include "Numerics/VectorMath.h"
#include "Weights/TransformerConfig.h"
#include "Weights/TransformerWeights.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace atlas
{

/// The sum of term(i), 0 <= i < count, in lanes that compilers turn into vectors.
template<class Number, class Term>
Number LaneSum(std::int64_t count, const Term& term)
{
  constexpr std::int64_t size = 16;
  std::array<Number, size> lanes = {};
  std::int64_t i = 0;
  for (; i + size <= count; i += size)
  {
    for (std::int64_t k = 0; k < size; ++k)
    {
      lanes[k] += term(i + k);
    }
  }
  for (std::int64_t k = 0; i + k < count; ++k)
  {
    lanes[k] += term(i + k);
  }
  for (std::size_t half = size / 2; half > 0; half /= 2)
  {
    for (std::size_t k = 0; k < half; ++k)
    {
      lanes[k] += lanes[k + half];
    }
  }
  return lanes[0];
}

/// c = scale a b, or c += scale a b. Small products are summed here, since calling BLAS would take
/// longer.
template<class Number>
void Multiply(std::int64_t rows, std::int64_t columns, std::int64_t inner, Number scale,
  const MatrixBlockOf<Number>& a, const MatrixBlockOf<Number>& b, Number* c, std::int64_t stride,
  bool add)
{
  constexpr std::int64_t small = 1024; // multiplications
  if (rows * columns * inner > small)
  {
    MultiplyMatrices(rows, columns, inner, scale, a, b, c, stride, add);
    return;
  }
  assert(rows == 0 || inner == 0 || (a.data != nullptr && b.data != nullptr));
  const std::int64_t aRow = a.transposed ? 1 : a.stride;
  const std::int64_t aInner = a.transposed ? a.stride : 1;
  const std::int64_t bInner = b.transposed ? 1 : b.stride;
  const std::int64_t bColumn = b.transposed ? b.stride : 1;
  for (std::int64_t i = 0; i < rows; ++i)
  {
    Number* to = c + i * stride;
    if (!add)
    {
      std::fill_n(to, columns, Number(0));
    }
    for (std::int64_t k = 0; k < inner; ++k)
    {
      const Number factor = scale * a.data[i * aRow + k * aInner];
      const Number* from = b.data + k * bInner;
      for (std::int64_t j = 0; j < columns; ++j)
      {
        to[j] += factor * from[j * bColumn];
      }
    }
  }
}

template<class Number>
void AddTo(std::int64_t count, const Number* from, Number* to)
{
  for (std::int64_t i = 0; i < count; ++i)
  {
    to[i] += from[i];
  }
}

/// sum[j] += the sum of column j of `from` [rows, columns].
template<class Number>
void AddColumnSums(
  std::int64_t rows, std::int64_t columns, const Number* from, std::int64_t stride, Number* sum)
{
  for (std::int64_t r = 0; r < rows; ++r)
  {
    AddTo(columns, from + r * stride, sum);
  }
}

/// A normalization of rows [d]. Gain and shift may be nullptr.
template<class Number>
struct LearnedNorm
{
  NormKind kind = NormKind::None;
  Number epsilon = 0;
  const Number* gain = nullptr;
  const Number* shift = nullptr;
};

/// y = norm(x) for packed rows; `stats` [rows, 2] are mean and 1 / deviation.
template<class Number>
void Normalize(const LearnedNorm<Number>& norm, std::int64_t rows, std::int64_t d, const Number* x,
  Number* y, Number* stats)
{
  if (norm.kind == NormKind::None)
  {
    std::copy_n(x, rows * d, y);
    return;
  }
  for (std::int64_t r = 0; r < rows; ++r, x += d, y += d, stats += 2)
  {
    const auto size = static_cast<Number>(d);
    const Number mean = norm.kind == NormKind::LayerNorm
                          ? LaneSum<Number>(d, [x](std::int64_t i) { return x[i]; }) / size
                          : 0;
    const Number square =
      LaneSum<Number>(d, [x, mean](std::int64_t i) { return (x[i] - mean) * (x[i] - mean); });
    const Number scale = 1 / std::sqrt(square / size + norm.epsilon);
    for (std::int64_t i = 0; i < d; ++i)
    {
      y[i] = (x[i] - mean) * scale * norm.gain[i];
    }
    if (norm.shift != nullptr)
    {
      AddTo(d, norm.shift, y);
    }
    stats[0] = mean;
    stats[1] = scale;
  }
}

/// dx = the gradient of x, or dx += it; the gradients of gain and shift are added to, unless they
/// are nullptr.
template<class Number>
void NormalizeBackward(const LearnedNorm<Number>& norm, std::int64_t rows, std::int64_t d,
  const Number* x, const Number* stats, const Number* dy, Number* dx, bool add,
  Number* dGain = nullptr, Number* dShift = nullptr)
{
  if (!add)
  {
    std::fill_n(dx, rows * d, Number(0));
  }
  if (norm.kind == NormKind::None)
  {
    AddTo(rows * d, dy, dx);
    return;
  }
  const auto size = static_cast<Number>(d);
  const Number* gain = norm.gain;
  for (std::int64_t r = 0; r < rows; ++r, x += d, dy += d, dx += d, stats += 2)
  {
    const Number mean = stats[0];
    const Number scale = stats[1];
    const Number sum =
      norm.kind == NormKind::LayerNorm
        ? LaneSum<Number>(d, [=](std::int64_t i) { return dy[i] * gain[i]; }) / size
        : 0;
    const Number product =
      LaneSum<Number>(d, [=](std::int64_t i) { return dy[i] * gain[i] * (x[i] - mean); }) * scale /
      size;
    for (std::int64_t i = 0; i < d; ++i)
    {
      const Number unit = (x[i] - mean) * scale;
      dx[i] += scale * (dy[i] * gain[i] - sum - unit * product);
    }
    for (std::int64_t i = 0; dGain != nullptr && i < d; ++i)
    {
      dGain[i] += dy[i] * ((x[i] - mean) * scale);
    }
    if (dShift != nullptr)
    {
      AddTo(d, dy, dShift);
    }
  }
}

/// y = activation(x)
template<class Number>
void ActivateRows(Activation activation, std::int64_t count, const Number* x, Number* y);

/// dx = dy activation'(x)
template<class Number>
void ActivateBackward(
  Activation activation, std::int64_t count, const Number* x, const Number* dy, Number* dx);

extern template void ActivateRows(Activation, std::int64_t, const float*, float*);
extern template void ActivateRows(Activation, std::int64_t, const double*, double*);
extern template void ActivateBackward(Activation, std::int64_t, const float*, const float*, float*);
extern template void ActivateBackward(
  Activation, std::int64_t, const double*, const double*, double*);

/// Turns the gradients of attention weights into scale times those of the scores.
template<class Number>
void SoftmaxBackward(
  std::int64_t queries, std::int64_t keys, Number scale, const Number* weights, Number* gradients)
{
  for (std::int64_t i = 0; i < queries; ++i, weights += keys, gradients += keys)
  {
    const Number mean =
      LaneSum<Number>(keys, [=](std::int64_t j) { return weights[j] * gradients[j]; });
    for (std::int64_t j = 0; j < keys; ++j)
    {
      gradients[j] = scale * weights[j] * (gradients[j] - mean);
    }
  }
}

/// Softmax of a row in place.
inline void SoftmaxOf(std::int64_t count, float* values)
{
  SoftmaxRow(count, values);
}
inline void SoftmaxOf(std::int64_t count, double* values)
{
  const double largest = *std::max_element(values, values + count);
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i)
  {
    values[i] = std::exp(values[i] - largest);
    sum += values[i];
  }
  for (std::int64_t i = 0; i < count; ++i)
  {
    values[i] /= sum;
  }
}

}
