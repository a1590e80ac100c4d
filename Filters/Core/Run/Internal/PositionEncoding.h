#pragma once

#include "PackedSequences.h"
#include "Recording/Recording.h"
#include "Weights/FloatValues.h"
#include "Weights/TransformerWeights.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// The rotations of a rotary embedding by position (Su et al. 2021), in single precision as in the
/// original code.
struct RotationTable
{
  std::int64_t pairs = 0;         ///< r / 2 of r rotated components
  bool neighbors = false;         ///< pairs are (2i, 2i + 1), not (i, i + r / 2)
  std::vector<std::uint8_t> axes; ///< per pair: 0, 1 or 2, the number of a place by which it is
                                  ///< rotated; empty: by the position
  std::vector<float> cosines;     ///< [length, pairs], of the angles
  std::vector<float> sines;

  /// Rotates a query or key at a position, or at a place; by `direction` -1 the gradient of what
  /// was rotated.
  template<class Number>
  void Apply(std::int64_t position, Number* values, Number direction = 1) const
  {
    const float* cosine = this->cosines.data() + position * this->pairs;
    const float* sine = this->sines.data() + position * this->pairs;
    const std::int64_t step = this->neighbors ? 2 : 1;
    const std::int64_t other = this->neighbors ? 1 : this->pairs;
    for (std::int64_t i = 0; i < this->pairs; ++i)
    {
      const Number a = values[i * step];
      const Number b = values[i * step + other];
      const auto turn = direction * static_cast<Number>(sine[i]);
      const auto stay = static_cast<Number>(cosine[i]);
      values[i * step] = a * stay - b * turn;
      values[i * step + other] = b * stay + a * turn;
    }
  }
  void Apply(const RotaryPlace& place, float* values) const;
};

/// The position encoding inside attention. Learned and sinusoidal positions (PositionKind)
/// are not part of it, as they are added to the embeddings.
class PositionEncoding
{
public:
  /// Prepares sequences of at most `length` tokens, or positions in places below it.
  PositionEncoding(
    const TransformerConfig& config, const TransformerWeights& weights, std::int64_t length);

  /// Shortformer (Press et al. 2021): the vector [d_model] that is added to the input of queries
  /// and keys; otherwise nullptr.
  const float* Vector(std::int64_t position) const
  {
    return this->Vectors.Data() == nullptr ? nullptr
                                           : this->Vectors.Data() + position * this->Width;
  }

  /// The rotary embedding of a layer for a sequence of this many tokens, on which LongRope depends;
  /// nullptr if there is none.
  const RotationTable* Rotation(std::int64_t layer, std::int64_t length) const;

  /// ALiBi (Press et al. 2022): the slope of a head; otherwise 0.
  float Slope(std::int64_t head) const
  {
    return this->Slopes.empty() ? 0 : static_cast<float>(this->Slopes[head]);
  }

  /// ALiBi: the slopes of all heads; otherwise empty.
  const std::vector<double>& GetSlopes() const { return this->Slopes; }

  /// T5 (Raffel et al. 2020): the biases [H, 2 D + 1] of the distances key - query = -D ... D; keys
  /// beyond have that of the end. Those of all layers, or of one that has its own (uMT5). Otherwise
  /// empty.
  const SharedMatrix& GetDistanceBias() const { return this->DistanceBias; }
  const SharedMatrix& GetDistanceBias(std::int64_t layer) const
  {
    return this->LayerBiases.empty() || this->IsOfPatches ? this->DistanceBias
                                                          : this->LayerBiases[layer];
  }

  /// BEiT (Bao et al. 2022): the biases of a layer, as HeadScores has them; otherwise nullptr. And
  /// the places of the tokens, -1 for the class token.
  const SharedMatrix* GetPatchBias(std::int64_t layer) const
  {
    return this->IsOfPatches ? &this->LayerBiases[layer] : nullptr;
  }
  const std::vector<std::int32_t>& GetPatchRows() const { return this->PatchRows; }
  const std::vector<std::int32_t>& GetPatchColumns() const { return this->PatchColumns; }

  /// DeBERTa (He et al. 2021): the vectors [2 D + 1, d_model] of the distances query - key = -D ...
  /// D; those beyond have that of the end. Otherwise empty.
  const SharedMatrix& GetDistanceVectors() const { return this->DistanceVectors; }

private:
  FloatValues Vectors; ///< [positions, d_model], for Shortformer
  std::int64_t Width;  ///< d_model

  std::vector<std::vector<RotationTable>> Rotations; ///< those that differ: of each for short
                                                     ///< sequences, then for long ones, if these
                                                     ///< differ
  std::vector<std::int64_t> RotationOf;              ///< per layer: which of them; -1: none
  double ShortLength = 0;                            ///< tokens of the longest short sequence

  std::vector<double> Slopes;            ///< for ALiBi
  SharedMatrix DistanceBias;             ///< for T5
  std::vector<SharedMatrix> LayerBiases; ///< of each layer, for uMT5 and BEiT
  bool IsOfPatches = false;              ///< these are of patches
  std::vector<std::int32_t> PatchRows;
  std::vector<std::int32_t> PatchColumns;
  SharedMatrix DistanceVectors; ///< for DeBERTa

  void MakeRotations(const TransformerConfig& config, std::int64_t length);
  std::vector<RotationTable> TablesOf(
    const TransformerConfig& config, std::int64_t layer, std::int64_t length) const;
  void MakeDistanceBiases(const TransformerConfig& config, const TransformerWeights& weights);
  void MakePatchBiases(const TransformerConfig& config, const TransformerWeights& weights);
  void MakeDistanceVectors(
    const TransformerConfig& config, const TransformerWeights& weights, std::int64_t length);
};

}
