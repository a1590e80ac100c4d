#pragma once

#include "RecordOptions.h"
#include "Recording/Recording.h"
#include "Weights/Transformer.h"

#include <vector>

namespace atlas
{

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

/// The sequences of the encoder that the pictures of some ranges of texts are, for a model of
/// pictures among words.
std::vector<SequenceRange> EncoderRanges(const TransformerConfig& config,
  const TransformerInput& input, const std::vector<SequenceRange>& texts);

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
