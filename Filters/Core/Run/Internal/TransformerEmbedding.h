#pragma once

// Internal to Core: the beginning and the end of the residual stream.

#include "PackedSequences.h"
#include "Weights/TransformerWeights.h"

namespace atlas
{

/// Writes the sum of the embeddings of tokens, patches or sound, positions and segments, normalized
/// if the model does so, to `x` [rows to run, d_model], which must be 0. Runs in parallel.
void EmbedInput(const TransformerConfig& config, const TransformerWeights& weights,
  const TransformerInput& input, const PackedSequences& sequences, float* x, int threads);

/// What is multiplied by W_U: `x` [rows to run, d_model], or, for BERT, OPT and T5, what is
/// written to `memory`: norm(activation(transform(x))), its projection or a multiple. Runs in
/// parallel.
const float* TransformForLogits(const TransformerConfig& config, const TransformerWeights& weights,
  const PackedSequences& sequences, const float* x, std::vector<float>& memory, int threads);

/// Computes the logits [rows to run, outputVocabulary] from the residual stream `x` [rows to run,
/// d_model] after the final normalization. Runs in parallel.
void EvaluateLogits(const TransformerConfig& config, const TransformerWeights& weights,
  const PackedSequences& sequences, const float* x, float* logits, int threads);

}
