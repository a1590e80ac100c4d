#pragma once

// Internal to Core: the embedding of tokens or patches, forward and backward.

#include "ParameterMaps.h"
#include "Preprocessing/TransformerInput.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// Writes the residual stream before the first layer, and adds to the gradients of what it is made
/// of.
template<class Number>
class EmbeddingGradient
{
public:
  /// Both must outlive this object.
  EmbeddingGradient(const ParameterBlock<Number>& parameters, const ParameterMaps<Number>& maps)
    : Config(parameters.GetConfig())
    , Weights(parameters.GetModel().GetWeights())
    , Maps(maps)
  {
  }

  /// Writes x [rows of the slice, d].
  void Embed(const TransformerInput& input, const BatchSlice& slice, Number* x);

  /// Takes the gradient of x, for the slice of the last call of Embed.
  void EmbedBackward(const TransformerInput& input, const BatchSlice& slice, const Number* dx);

private:
  const TransformerConfig& Config;
  const TransformerWeights& Weights;
  const ParameterMaps<Number>& Maps;
  std::vector<Number> Pixels; ///< [images * patches, inputs of a patch]
  SublayerStore<Number> Embedded;
  std::vector<Number> Sum; ///< gradient of the sum of the embeddings [rows, d]

  void EmbedTokens(const TransformerInput& input, const BatchSlice& slice, Number* x) const;
  void EmbedPatches(const TransformerInput& input, const BatchSlice& slice, Number* x);
  void GatherPixels(const TransformerInput& input, const BatchSlice& slice);
  void PatchesBackward(const BatchSlice& slice, const Number* dx) const;
};

extern template class EmbeddingGradient<float>;
extern template class EmbeddingGradient<double>;

}
