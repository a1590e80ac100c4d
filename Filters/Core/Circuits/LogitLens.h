#pragma once

#include "Analysis/TopTokens.h"
#include "Base/Progress.h"
#include "Recording/Recording.h"
#include "Weights/Transformer.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// The logit lens (nostalgebraist, "interpreting GPT: the logit lens", 2020): what the model would
/// predict if the residual stream were read before a layer already. Weights as stored.

struct LensOptions
{
  std::int64_t sequence = 0;
  std::int64_t top = 1; ///< tokens of each cell, at least 1
  int threads = 0;      ///< as for ThreadCount; results do not depend on it
  Progress progress;
};

/// Cells of layers and positions; a cell is layer index * length + position.
struct LensCells
{
  std::vector<std::int32_t> layers; ///< 0 ... L as far as the stream was recorded; L: after the
                                    ///< last layer
  std::int64_t length = 0;          ///< of the sequence
  std::int64_t top = 0;             ///< at most the vocabulary
  std::vector<TokenLogit> tokens;   ///< [cells, top], the largest logit first
  std::vector<float> probabilities; ///< [cells, top], of the softmax over the vocabulary

  std::vector<std::int32_t> nextRank; ///< per cell, of the token that follows in the sequence: how
                                      ///< many have a larger logit, plus 1; -1 at the last one
  std::vector<float> nextProbability; ///< per cell, its probability; -1 at the last one
};

/// Logits of rows begin <= row < end of a recording [rows, vocabulary]: the final normalization,
/// with gain and shift, of the residual stream before a layer, times W_U, plus b_U. What was
/// recorded after the last layer may be normalized already. In single precision, in products of
/// blocks of the vocabulary, whatever the number of threads. Throws OptionError if the stream was
/// not recorded.
std::vector<float> LensLogits(const Recording& recording, const Transformer& model,
  std::int64_t layer, std::int64_t begin, std::int64_t end, int threads = 0);

/// Throws OptionError if a recording has logits of another number of tokens than the model.
void RequireLogits(const Recording& recording, const Transformer& model);

/// The token of the largest logit at rows begin <= row < end of a recording, the first of equal
/// ones: of the recorded logits or, without them, of LensLogits after the last layer. Throws
/// likewise.
std::vector<std::int32_t> PredictedTokens(const Recording& recording, const Transformer& model,
  std::int64_t begin, std::int64_t end, int threads = 0);

/// Reads a sequence through the lens. At most about 16 million logits are in memory at a time.
/// Throws OptionError if there is no such sequence, residual stream or `top`, and ModelError if the
/// model has no unembedding of the stream (RequireUnembedding).
LensCells ReadThroughLens(
  const Recording& recording, const Transformer& model, const LensOptions& options);

}
