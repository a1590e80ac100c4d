#pragma once

#include "Weights/FloatValues.h"
#include "Weights/TransformerWeights.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// A normalization of rows, in single precision.
class TransformerNorm
{
public:
  /// Of the model's kind, or of another.
  TransformerNorm(const TransformerConfig& config, const NormTensors& tensors);
  TransformerNorm(const TransformerConfig& config, const NormTensors& tensors, NormKind kind);

  /// Normalizes one row; `to` may be the same as `from`.
  void ApplyRow(std::int64_t columns, const float* from, float* to) const;

  /// Normalizes packed rows; `to` may be the same as `from`. Runs in parallel.
  void Apply(
    std::int64_t rows, std::int64_t columns, const float* from, float* to, int threads) const;

private:
  FloatValues StoredGain;
  std::vector<float> Sums; ///< of stored gains and their offset, if they have one
  const float* Gain;
  FloatValues Shift;
  NormKind Kind;
  float Epsilon;
};

}
