#pragma once

// Internal to Core: attention, forward and backward.

#include "ParameterMaps.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// Queries, keys and values of a layer as one matrix: W [d, (H + 2 H_kv) d_head], with its bias.
template<class Number>
struct PackedHeads
{
  std::vector<Number> weight;
  std::vector<Number> bias; ///< 0 where the model has none
};

/// What the attention in all slices of a batch reads.
template<class Number>
struct AttentionTables
{
  std::vector<PackedHeads<Number>> heads; ///< of each layer
  std::vector<Number> cosines;            ///< Rotary: [positions, d_head / 2]
  std::vector<Number> sines;

  /// Reads the parameters as they are now, for sequences of up to `length` rows.
  void Prepare(const ParameterBlock<Number>& parameters, std::int64_t length);
};

/// Adds what the heads of a layer write to the residual stream, and the gradients of their weights.
/// Attention weights are computed again in the backward pass and never stored.
template<class Number>
class AttentionGradient
{
public:
  /// All must outlive this object.
  AttentionGradient(const ParameterBlock<Number>& parameters, const ParameterMaps<Number>& maps,
    const AttentionTables<Number>& tables);

  /// Sets the gradients of the packed heads to 0.
  void Begin();

  /// x += the output of a layer's attention, without residual, for its input [rows, d].
  void AddAttention(const BatchSlice& slice, std::size_t layer, const Number* input, Number* x);

  /// Writes dx, the gradient of `input`, from dy, that of the output, for the slice of the last
  /// call of AddAttention.
  void AttentionBackward(
    const BatchSlice& slice, std::size_t layer, const Number* input, const Number* dy, Number* dx);

  /// Adds the gradients of the packed heads to those of the parameters.
  void End();

private:
  /// What the forward pass of a layer keeps for the backward pass.
  struct LayerStore
  {
    std::vector<Number> shifted; ///< Shortformer: input plus positions [rows, d]
    std::vector<Number> heads;   ///< queries, keys and values [rows, (H + 2 H_kv) d_head]
    std::vector<Number> mixed;   ///< [rows, H d_head]
  };
  struct HeadInput;
  struct HeadBlock;

  const TransformerConfig& Config;
  const TransformerWeights& Weights;
  const ParameterMaps<Number>& Maps;
  const AttentionTables<Number>& Tables;
  const BatchSlice* Slice = nullptr; ///< of the present call
  std::vector<double> Slopes;        ///< ALiBi: of each head
  std::vector<LayerStore> Layers;
  std::vector<PackedHeads<Number>> HeadGradients;
  std::vector<Number> HeadsBuffer; ///< gradients of queries, keys and values
  std::vector<Number> MixedBuffer; ///< gradients of mixed values
  std::vector<Number> Scores;
  std::vector<Number> ScoreGradients;

  /// Queries and keys of Shortformer read the input plus positions.
  std::vector<HeadInput> HeadInputs(const LayerStore& store, const Number* input) const;
  void ShiftInput(LayerStore& store, const Number* input) const;
  /// Rotates queries and keys by the angles of their positions times `direction`, 1 or -1.
  void Rotate(Number* heads, Number direction) const;
  /// Calls function(block) for blocks of queries of each head in each sequence.
  template<class Function>
  void ForHeads(const LayerStore& store, const Function& function);
  /// The attention [queries, keys] of a block, packed.
  Number* EvaluateAttention(const HeadBlock& block, std::size_t layer);
  Number ScoreScale(std::size_t layer) const;
  /// Writes the gradients of queries, keys and values to HeadsBuffer from those in MixedBuffer.
  void MixBackward(std::size_t layer);
};

extern template struct AttentionTables<float>;
extern template struct AttentionTables<double>;
extern template class AttentionGradient<float>;
extern template class AttentionGradient<double>;

}
