#pragma once

#include "Weights/TransformerConfig.h"

#include <cstdint>

namespace atlas
{

/// The arithmetic of a transformer between its matrix products, in single precision. Results depend
/// only on the arguments, not on memory alignment or threads.

/// The parameters of a normalization of rows.
struct NormParameters
{
  NormKind kind = NormKind::LayerNorm;
  float epsilon = 0;
  const float* gain = nullptr;  ///< nullptr: 1
  const float* shift = nullptr; ///< nullptr: 0
};

/// Normalizes `count` values; `to` may be the same as `from`. NormKind::None copies.
void NormalizeRow(const NormParameters& norm, std::int64_t count, const float* from, float* to);

/// Applies an activation to each value. Activation::Xielu has parameters, see ApplyXielu.
void Activate(Activation activation, std::int64_t count, float* values);

/// The parameters of Activation::Xielu.
struct XieluParameters
{
  float square = 0;
  float negative = 0;
  float linear = 0;
  float limit = 0;
};

/// Applies it to each value.
void ApplyXielu(const XieluParameters& xielu, std::int64_t count, float* values);

/// values[i] += addend[i]
void AddRow(std::int64_t count, const float* addend, float* values);

/// values[i] *= factor[i]
void MultiplyRow(std::int64_t count, const float* factor, float* values);

/// values[i] = cap tanh(values[i] / cap)
void CapRow(float cap, std::int64_t count, float* values);

/// Limits each value to -limit ... limit.
void LimitRow(float limit, std::int64_t count, float* values);

/// log(1 + exp(x))
double Softplus(double x);

/// The index of the first value that is infinite or NaN, or -1 if there is none.
std::int64_t FindNotFinite(std::int64_t count, const float* values);

}
