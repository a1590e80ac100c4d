#pragma once

#include "Base/Progress.h"
#include "Recording/Recording.h"
#include "TopTokens.h"
#include "Weights/ProcessedWeights.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace atlas
{

/// The vectors of a head, each [d_head], that are read as tokens.
enum class HeadVector
{
  Query,     ///< q_i, before scaling
  Key,       ///< k_i
  Value,     ///< v_i without its bias
  Output,    ///< z_i = sum_j A_ij v_j, without the bias: what the head writes
  QueryKey,  ///< q_i * k_j, component by component, for each cell j <= i
  DotProduct ///< (q_i . k_j) in every component, for each cell j <= i; PublishedCode only
};

/// "Query", ...
std::string_view NameOf(HeadVector vector);

/// Whether there is one for each cell of query and key, and not one for each token.
constexpr bool IsOfCells(HeadVector vector)
{
  return vector == HeadVector::QueryKey || vector == HeadVector::DotProduct;
}

/// How many there are on a sequence: one for each token, or each cell j <= i.
std::int64_t VectorCount(HeadVector vector, std::int64_t length);

/// How a vector c becomes logits c P + b over the vocabulary: without the final normalization and
/// without any MLP.
enum class TokenReading
{
  Plain,        ///< P = W_O W_U, b = 0: what the vector would add to the logits of its position
  Refactored,   ///< the same of the refactored weights, b = b_U. Components of q, k and so of q * k
                ///< are those of a singular value decomposition, whose signs are open
  PublishedCode ///< P = (W_V diag(s))^T W_U of the refactored weights, s_m = sum_i W_O[i, m],
                ///< b = b_U: what the code behind the published figures computes
};

/// What to read as tokens.
struct AttentionTokenOptions
{
  std::vector<HeadVector> vectors = { HeadVector::QueryKey }; ///< at least one, each once
  TokenReading reading = TokenReading::Plain;
  bool processes = true;      ///< Plain: whether weights are processed as TransformerLens does
  int top = 1;                ///< tokens of largest logit, at least 1
  std::int64_t layer = -1;    ///< -1: all recorded ones
  std::int64_t head = -1;     ///< -1: all
  std::int64_t sequence = -1; ///< -1: all
  std::int64_t tokens = 0;    ///< read from the beginning of each sequence, at most; 0: all
  int threads = 0;            ///< as for ThreadCount; results do not depend on it
  int part = 0;               ///< of the vocabulary, which `parts` processes share: see JoinTokens
  int parts = 1;              ///< at least 1
  Progress progress;
};

/// The tokens of one vector of a head on one sequence.
struct HeadTokens
{
  std::int32_t layer = 0; ///< its index in the model
  std::int32_t head = 0;
  std::int32_t sequence = 0;
  HeadVector vector = HeadVector::QueryKey;
  std::int64_t length = 0;        ///< tokens of the sequence that are read, T
  std::int64_t top = 0;           ///< tokens of each vector
  std::vector<TokenLogit> tokens; ///< [T, top], or of cells [T (T + 1) / 2, top]: cell (i, j) is
                                  ///< number i (i + 1) / 2 + j. By falling logit; equal ones by id

  /// The number of vectors.
  std::size_t Count() const { return this->tokens.size() / static_cast<std::size_t>(this->top); }
  const TokenLogit& Best(std::size_t i) const
  {
    return this->tokens[i * static_cast<std::size_t>(this->top)];
  }
};

struct AttentionTokenMemory
{
  std::uint64_t tokens = 0; ///< that are found, of all vectors
  std::uint64_t bytes = 0;  ///< at most, beside the model and the recording
};

/// What FindAttentionTokens needs. Throws as it does for what can be told beforehand.
AttentionTokenMemory MemoryOf(
  const Recording& recording, const Transformer& model, const AttentionTokenOptions& options);

/// The attention tokens of heads: the tokens of largest logit of each vector, by layer, head,
/// sequence, and vector in the order of the options. The recording needs what the vectors are made
/// from: queries and keys, values. Only the model's own masks are causal, so cells have j <= i.
///
/// For each head, P [d_head, V] is computed in blocks of the vocabulary, and each vector is
/// multiplied with it; no list of logits is kept. Products are in single precision from weights in
/// double. Results are equal to the byte for any number of threads.
///
/// Throws OptionError for options that do not fit, for a recording of another model
/// (RequireSameModel) and for quantities that were not recorded, ModelError for models without
/// logits, whose mask is not causal, or which cannot be processed, and FileError for files that
/// were changed.
std::vector<HeadTokens> FindAttentionTokens(
  const Recording& recording, const Transformer& model, const AttentionTokenOptions& options);

/// Joins tokens that were found in one part of the vocabulary with those of another: both are lists
/// of the same vectors, one after another.
void JoinTokens(std::vector<HeadTokens>& tokens, const TokenLogit* others);

}
