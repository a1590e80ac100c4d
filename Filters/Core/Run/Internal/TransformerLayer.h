#pragma once

// Internal to Core.

#include "SelfAttention.h"
#include "TransformerNorm.h"

namespace atlas
{

/// What is computed for the rows of a group and thrown away, shared by all groups and layers.
struct LayerWorkspace
{
  std::vector<float> normed; ///< [rows, d_model]
  AttentionWorkspace attention;
  std::vector<float> hidden;  ///< [rows, mlpDimension]
  std::vector<float> factors; ///< [rows, mlpDimension], of a gated MLP
};

/// A layer with its weights in single precision: attention, then an MLP.
class TransformerLayer
{
public:
  /// `positions` must live as long as this. `layer` is the number of the layer.
  TransformerLayer(const TransformerConfig& config, const LayerTensors& tensors, std::int64_t layer,
    const PositionEncoding& positions);

  /// Takes the residual stream `x` [rows, d_model] at the rows of a group through the layer, and
  /// fills `heads` as SelfAttention::Add does. In parallel.
  void Apply(const RowGroup& group, const std::vector<HeadRows>& heads, float* x,
    LayerWorkspace& work, int threads) const;

  /// Floats that Apply takes at the most for groups of so many rows.
  static std::int64_t WorkingFloats(
    const TransformerConfig& config, std::int64_t rows, int threads);

private:
  const TransformerConfig& Config;
  TransformerNorm AttentionNorm;
  SelfAttention Attention;
  TransformerNorm MlpNorm;
  Linear Gate;
  Linear Up;
  Linear Down;

  template<class AddSublayer>
  void ApplySublayer(const TransformerNorm& norm, const RowGroup& group, float* x,
    LayerWorkspace& work, int threads, const AddSublayer& add) const;
  void AddMlp(
    const RowGroup& group, const float* from, float* to, LayerWorkspace& work, int threads) const;
};

/// What a TransformerLayer takes beside the tensors' own memory, in bytes.
std::uint64_t WidenedBytes(const LayerTensors& layer);

}
