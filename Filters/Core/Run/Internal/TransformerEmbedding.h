#pragma once

// Internal to Core: the two ends of the residual stream.

#include "PackedSequences.h"
#include "TransformerWeights.h"

namespace atlas
{

/// Writes the embeddings of tokens or patches, positions and segments, normalized where that
/// belongs, to `x` [rows to run, d_model], which is 0. In parallel.
void EmbedInput(const TransformerConfig& config, const TransformerWeights& weights,
  const TransformerInput& input, const PackedSequences& sequences, float* x, int threads);

/// Writes the logits [rows to run, outputVocabulary] that the residual stream `x` [rows to run,
/// d_model] behind the final normalization gives. In parallel.
void EvaluateLogits(const TransformerConfig& config, const TransformerWeights& weights,
  const PackedSequences& sequences, const float* x, float* logits, int threads);

}
