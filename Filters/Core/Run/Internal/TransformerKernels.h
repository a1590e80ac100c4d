#pragma once

#include "TransformerConfig.h"

#include <cstdint>

namespace atlas
{

/// The arithmetic of a transformer between its matrix products, in single precision. Every result
/// depends on its arguments alone: not on where in memory they lie, nor on threads.

/// What a normalization does to a row.
struct NormParameters
{
  NormKind kind = NormKind::LayerNorm;
  float epsilon = 0;
  const float* gain = nullptr;  ///< nullptr: 1
  const float* shift = nullptr; ///< nullptr: 0
};

/// Normalizes `count` values; `to` may be `from`. NormKind::None copies.
void NormalizeRow(const NormParameters& norm, std::int64_t count, const float* from, float* to);

/// Applies an activation to each value.
void Activate(Activation activation, std::int64_t count, float* values);

/// values[i] += addend[i]
void AddRow(std::int64_t count, const float* addend, float* values);

/// values[i] *= factor[i]
void MultiplyRow(std::int64_t count, const float* factor, float* values);

/// Index of the first value that is infinite or not a number, or -1.
std::int64_t FindNotFinite(std::int64_t count, const float* values);

}
