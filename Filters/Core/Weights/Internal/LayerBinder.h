#pragma once

// Internal to Core: the tensors of a layer.

#include "TensorBinder.h"

#include <cstdint>
#include <string>
#include <vector>

namespace atlas
{

/// Binds the tensors of a layer: its attention or what it has in its place, MLP or experts, and
/// normalizations.
class LayerBinder : public TensorBinder
{
public:
  using TensorBinder::TensorBinder;

protected:
  LayerTensors BindLayer(std::int64_t l);

private:
  /// With the sizes of this configuration.
  LayerTensors BindLayer(std::int64_t l, const TransformerConfig& config);

  void BindAttention(LayerTensors& layer, const std::string& prefix, std::int64_t l,
    const TransformerConfig& config);

  /// What a layer without attention has in its place.
  void BindMixer(MixerTensors& mixer, const std::string& prefix, Mixer kind);

  /// The maps of DeltaRule.
  void BindMixerHeads(
    MixerTensors& mixer, const std::string& prefix, std::int64_t keys, std::int64_t values);

  /// Those of StateSpace.
  void BindScan(
    MixerTensors& mixer, const std::string& prefix, std::int64_t keys, std::int64_t values);

  /// The convolution over `channels` channels, whose taps MLX has before an axis of 1. Files may
  /// split it into three parts: those of queries, keys and values, or thirds of all channels, as
  /// transformers 5 saves them.
  void BindTaps(MixerTensors& mixer, const std::string& prefix, std::int64_t channels);

  /// Queries, keys and values in tensors of their own. A layer with the keys and values of another
  /// has none; files may still have them.
  void BindHeads(LayerTensors& layer, const std::string& prefix, std::int64_t l,
    const TransformerConfig& config);

  /// What makes keys and queries of vectors of distances.
  void BindDistances(LayerTensors& layer, const std::string& prefix);

  void BindSides(LayerSideTensors& sides, const std::string& prefix);

  void BindMlp(LayerTensors& layer, const std::string& prefix, const TransformerConfig& config);

  /// The two maps into a gated MLP, in tensors of their own or, without a name for the second, in
  /// one.
  void BindGated(const std::string& prefix, const PairNames& gateNames, const PairNames& upNames,
    std::int64_t hidden, bool hasBias, LinearTensors& gate, LinearTensors& up);

  /// Normalizations [d_head] of the queries or keys of all heads, or of each, or one of all
  /// together [heads d_head].
  std::vector<NormTensors> GetHeadNorms(const std::string& prefix, const PairNames& names,
    std::int64_t heads, const TransformerConfig& config);

  void BindExperts(ExpertTensors& tensors, const std::string& prefix);

  /// What gives the factor of the shared expert. llama.cpp may leave out its first axis, of size 1.
  LinearTensors GetSharedFactor(const std::string& prefix);

  /// A matrix of each expert: tensors of their own; one [experts, inputs, outputs] with its biases
  /// [experts, outputs]; or, by the layout or in a GGUF file, one [experts, outputs, inputs].
  std::vector<LinearTensors> GetExperts(
    const std::string& prefix, const PairNames& names, std::int64_t inputs, std::int64_t outputs);

  /// TransformerLens adds the first bias of a gated MLP behind the gate, not before it as everyone
  /// else. Its converted models have zeros there.
  void RequireZero(const std::string& name, const TensorView& bias) const;

  /// Queries, keys and values in one tensor.
  void BindFused(LayerTensors& layer, const std::string& prefix);

  /// The biases of queries and values, which are apart, in the order of the fused tensor by heads;
  /// keys have none.
  TensorView JoinBiases(const std::string& prefix);

  /// Latent attention: queries perhaps, keys and values by two factors. The rows of the second one
  /// of keys and values are, for each head, components of the key that are not rotated, then those
  /// of the value.
  void BindLatent(LayerTensors& layer, const std::string& prefix);

  /// Keys and values from the latent vector as newer GGUF files have them: a tensor of each, with
  /// the inputs of keys before their outputs.
  void BindSplitLatent(LayerTensors& layer, const std::string& prefix, std::int64_t plain);

  /// Queries, keys or values in a separate tensor.
  LinearTensors GetHeads(const std::string& prefix, const PairNames& names, std::int64_t heads,
    bool grouped, const TransformerConfig& config);

  LinearTensors GetOutput(const std::string& prefix, const TransformerConfig& config);
};

}
