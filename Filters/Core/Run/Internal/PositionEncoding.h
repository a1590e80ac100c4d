#pragma once

// Internal to Core.

#include "FloatValues.h"
#include "TransformerWeights.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// The position encoding inside attention, the same in all layers. Learned positions (PositionKind)
/// are not part of it, as they are added to the embeddings.
class PositionEncoding
{
public:
  /// Prepares sequences of at most `length` tokens.
  PositionEncoding(
    const TransformerConfig& config, const TransformerWeights& weights, std::int64_t length);

  /// Shortformer (Press et al. 2021): the vector [d_model] that is added to the input of queries
  /// and keys; otherwise nullptr.
  const float* Vector(std::int64_t position) const;

  /// Rotary (Su et al. 2021): rotates the components i and i + d_head / 2 of a query or key;
  /// otherwise does nothing.
  void Rotate(std::int64_t position, float* values) const;

  /// ALiBi (Press et al. 2022): the slope of a head; otherwise 0.
  float Slope(std::int64_t head) const;

  /// ALiBi: the slopes of all heads; otherwise empty.
  const std::vector<double>& GetSlopes() const { return this->Slopes; }

private:
  FloatValues Vectors; ///< [positions, d_model], for Shortformer
  std::int64_t Width;  ///< d_model

  // For a rotary embedding, in single precision as in the original code.
  std::int64_t Pairs = 0;     ///< d_head / 2
  std::vector<float> Cosines; ///< [length, d_head / 2], cosines of the angles
  std::vector<float> Sines;

  std::vector<double> Slopes; ///< for ALiBi

  void MakeRotations(const TransformerConfig& config, std::int64_t length);
};

}
