#pragma once

#include "Base/Progress.h"
#include "Preprocessing/TransformerInput.h"
#include "Weights/Transformer.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// How a text goes on.
struct GenerationOptions
{
  std::int64_t count = 0; ///< tokens to add to each sequence, at most
  double temperature = 0; ///< 0: always the most probable token. Otherwise logits are divided by
                          ///< it, and tokens are drawn from their softmax
  std::int64_t topK = 0;  ///< tokens are drawn from the topK most probable ones; 0: from all
  std::uint64_t seed = 0; ///< of the draws. A sequence's tokens do not depend on the others
  std::vector<std::int64_t> ends; ///< tokens after which a sequence ends
  int threads = 0;                ///< as for ThreadCount; results do not depend on it
  Progress progress;
};

/// Throws OptionError if the model cannot go on with a text (its mask is not causal, it has no
/// unembedding, or it reads images), if a count, the temperature or topK is negative or not finite,
/// or if the sequences would become longer than the model's positions. The input is one that
/// passes CheckInput.
void CheckGeneration(
  const Transformer& model, const TransformerInput& input, const GenerationOptions& options);

/// The memory that GenerateTokens needs in addition to a run of the whole sequences, in bytes: for
/// keys and values of one sequence.
std::uint64_t GenerationBytes(
  const Transformer& model, const TransformerInput& input, const GenerationOptions& options);

/// The tokens that the model adds to each sequence of an input that passes CheckInput, one after
/// another, each from the logits at the token before. Keys and values of earlier tokens are kept,
/// so that a token costs one row of each matrix product. Of equally probable tokens the one with
/// the smaller id comes first. A model with an encoder reads the source of each sequence, or its
/// pictures, once; tokens that stand for parts of pictures are never added.
///
/// On one machine with one version of OpenBLAS, tokens are the same for any number of threads.
/// Throws as CheckInput and CheckGeneration do, ModelError if a logit is infinite or NaN, and
/// FileError if a weights file was truncated or changed since it was opened.
std::vector<std::vector<std::int64_t>> GenerateTokens(
  const Transformer& model, const TransformerInput& input, const GenerationOptions& options);

}
