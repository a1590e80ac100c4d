#pragma once

#include "Recording.h"
#include "Transformer.h"
#include "TransformerInput.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace atlas
{

/// What is recorded.
struct RecordOptions
{
  bool queriesAndKeys = true;
  bool values = true;
  bool headOutputs = false;
  bool residual = false;
  bool logits = false;
  std::vector<std::int64_t> layers; ///< whose heads are recorded, and the residuals before and
                                    ///< after them; empty: all
  int threads = 0;                  ///< as ThreadCount takes them; results do not depend on it

  /// The sequences that are run. The recording has the rows of all the same, those of others zero,
  /// to be filled by who runs these: see SplitSequences. None: all are run.
  std::optional<SequenceRange> sequences;

  /// Called now and then, by the calling thread, with the part that is done, from 0 to 1; returns
  /// false to stop.
  std::function<bool(double)> progress;
};

/// Checks what RecordTransformer would be given: the input, as CheckInput of TransformerInput.h,
/// then the options. Throws OptionError for layers that the model does not have, and for logits of
/// a model without an unembedding.
void CheckInput(
  const Transformer& model, const TransformerInput& input, const RecordOptions& options);

/// Splits the sequences of an input that CheckInput accepts into `parts` (at least 1) ranges, one
/// behind the other, with about as many tokens in each. Of more parts than sequences some are
/// empty.
std::vector<SequenceRange> SplitSequences(
  const Transformer& model, const TransformerInput& input, int parts);

struct MemoryEstimate
{
  std::uint64_t recording = 0; ///< bytes that stay
  std::uint64_t working = 0;   ///< bytes beside it at the highest point; the weights' files come
                               ///< on top, as far as they are F32 and in memory
};

/// The memory that RecordTransformer takes. Throws as CheckInput.
MemoryEstimate EstimateMemory(
  const Transformer& model, const TransformerInput& input, const RecordOptions& options);

/// Runs a transformer on each sequence and records what was asked for, in single precision.
///
/// With x the residual stream [tokens, d_model], begun by the embeddings, each layer is
///
///     x += sum_h A_h (n1(x) W_V^h + b_V^h) W_O^h + b_O,   x += MLP(n2(x))
///     A_h = softmax(mask(scale q k^T + slope_h j)),  q = n1(x) W_Q^h + b_Q^h,  k likewise
///
/// or with each normalization behind its sum (BERT); see TransformerConfig for what differs.
/// Sequences share matrix products but nothing else: there is no padding. Attention is computed for
/// blocks of queries and never stored.
///
/// Results have the same bytes for any number of threads, and for a sequence alone or among others,
/// on one machine with one OpenBLAS; another processor may sum in another order. So the rows of
/// ranges of sequences, recorded apart, are those of the whole.
///
/// Returns nothing if progress asked to stop. Throws as CheckInput does, whatever the range, then
/// OptionError for a range that is not within the sequences, and ModelError naming the layer if an
/// activation is infinite or not a number; FileError if a file of the weights was truncated or
/// changed since it was opened.
std::optional<Recording> RecordTransformer(
  const Transformer& model, const TransformerInput& input, const RecordOptions& options);

}
