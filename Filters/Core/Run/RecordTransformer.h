#pragma once

#include "Interventions.h"
#include "Progress.h"
#include "Recording.h"
#include "Transformer.h"
#include "TransformerInput.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace atlas
{

/// What is recorded and changed: what a recording of an input depends on.
struct RecordChoice
{
  bool queriesAndKeys = true;
  bool valueNorms = true; ///< with queries and keys: the norms of values, one number per token and
                          ///< head, with which these give norm-weighted attention
  bool values = true;
  bool headOutputs = false;
  bool residual = false;
  bool logits = false;
  bool routing = false;    ///< which experts were chosen for each token, and their weights
  bool finalScale = false; ///< sigma of the final normalization, for what follows at once: files
                           ///< and data objects do not keep it
  std::vector<std::int64_t> layers; ///< layers whose heads are recorded, and the residuals before
                                    ///< and after them; empty: all. Of the encoder, those of
                                    ///< them that it has

  /// What is changed during the run. Queries, keys, values and norms of values are those that the
  /// heads compute; head outputs and residuals are those after the change. Every sequence of a run
  /// with a source has as many tokens as the source. Of a model with an encoder, only the decoder's
  /// own attention, MLPs and residual stream can be changed, to zero or to the mean over positions.
  Interventions interventions;

  bool operator==(const RecordChoice& other) const;
};

struct RecordOptions : RecordChoice
{
  int threads = 0; ///< as for ThreadCount; results do not depend on it

  /// The sequences that are run; all if not set. The recording has rows for all sequences in any
  /// case. Rows of the other sequences are 0, to be filled by the processes that run them
  /// (SplitSequences).
  std::optional<SequenceRange> sequences;

  Progress progress;
};

/// Checks the arguments of RecordTransformer: the input, like CheckInput in TransformerInput.h,
/// then the options. Throws OptionError for layers that the model does not have, for logits if the
/// model has no unembedding, for routing if it has no experts, and as CheckInterventions does.
void CheckInput(
  const Transformer& model, const TransformerInput& input, const RecordOptions& options);

/// Splits the sequences of an input that passes CheckInput into `parts` (at least 1) consecutive
/// ranges with about equal numbers of tokens. If there are more parts than sequences, some are
/// empty.
std::vector<SequenceRange> SplitSequences(
  const Transformer& model, const TransformerInput& input, int parts);

struct MemoryEstimate
{
  std::uint64_t recording = 0; ///< size of the recording, in bytes
  std::uint64_t working = 0;   ///< peak of additional bytes while running; mapped files of
                               ///< weights are not included
};

/// Estimates the memory that RecordTransformer needs. Throws as CheckInput does.
MemoryEstimate EstimateMemory(
  const Transformer& model, const TransformerInput& input, const RecordOptions& options);

/// Runs a transformer on each sequence and records the requested quantities, in single precision.
///
/// With x the residual stream [tokens, d_model], which starts as the embeddings, each layer
/// computes (Vaswani et al. 2017; with normalization first as in Radford et al. 2019)
///
///     x += sum_h A_h (n1(x) W_V^h + b_V^h) W_O^h + b_O,   x += MLP(n2(x))
///     A_h = softmax(mask(scale q k^T + slope_h j)),  q = n1(x) W_Q^h + b_Q^h,  k likewise
///
/// or with each normalization after its sum (BERT); see TransformerConfig for the variants. A model
/// with an encoder runs it on the source first. With y what it returns, each layer of the decoder
/// computes, between the two,
///
///     x += sum_h C_h (y U_V^h + c_V^h) U_O^h + c_O,   C_h = softmax(scale q k^T)
///     q = n3(x) U_Q^h + c_Q^h,  k = y U_K^h + c_K^h
///
/// The parts `encoder` and `cross` of the recording have the same quantities as the decoder's.
///
/// A model of pictures among words runs its encoder on the pictures of the sequences first. The
/// vectors that the projector makes of patches replace the embeddings of image tokens. `encoder` is
/// there if there are pictures. Tokens have their places in `pictures`, which has no pixels.
///
/// Sequences share matrix products but nothing else: there is no padding. Attention is computed for
/// blocks of queries and is not stored.
///
/// On one machine with one version of OpenBLAS, results are equal to the byte for any number of
/// threads, and whether a sequence is run alone or with others. Ranges of sequences recorded
/// separately therefore give the same rows as a single run. On another processor sums may be in
/// another order.
///
/// Throws as CheckInput does, regardless of the range, and OptionError if the range exceeds the
/// sequences or interventions lack their means over prompts. Throws ModelError with the layer if an
/// activation is infinite or NaN, and FileError if a weights file was truncated or changed since it
/// was opened.
Recording RecordTransformer(
  const Transformer& model, const TransformerInput& input, const RecordOptions& options);

}
