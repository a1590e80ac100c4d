#pragma once

// Internal to Core.

#include "FloatValues.h"
#include "TransformerWeights.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// How attention tells positions apart, the same in all layers. Learned positions (PositionKind)
/// are no part of it: they are in the embeddings.
class PositionEncoding
{
public:
  /// For sequences of at most `length` tokens.
  PositionEncoding(
    const TransformerConfig& config, const TransformerWeights& weights, std::int64_t length);

  /// Shortformer: the vector [d_model] that is added to what queries and keys read. Else nullptr.
  const float* Vector(std::int64_t position) const;

  /// Rotary: rotates the components i and i + d_head / 2 of a query or key. Else does nothing.
  void Rotate(std::int64_t position, float* values) const;

  /// ALiBi: the slope of a head. Else 0.
  float Slope(std::int64_t head) const;

  /// ALiBi: the slopes of all heads. Else none.
  const std::vector<double>& GetSlopes() const { return this->Slopes; }

private:
  FloatValues Vectors; ///< [positions, d_model], of shortformer
  std::int64_t Width;  ///< d_model

  // Of a rotary embedding, in single precision as in the original code.
  std::int64_t Pairs = 0;     ///< d_head / 2
  std::vector<float> Cosines; ///< [length, d_head / 2], of the angles
  std::vector<float> Sines;

  std::vector<double> Slopes; ///< of ALiBi

  void MakeRotations(const TransformerConfig& config, std::int64_t length);
};

}
