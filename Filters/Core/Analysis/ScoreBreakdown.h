#pragma once

#include "Recording/Recording.h"
#include "Weights/Transformer.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// The bias b_Q [d_head] that a model adds to the queries of a head; zeros if it has none. Of kinds
/// other than Decoder, those of its encoder or of its cross attention. Throws OptionError if the
/// model has no such layer or head, or no encoder.
std::vector<float> QueryBias(const Transformer& model, std::int64_t layer, std::int64_t head,
  AttentionKind kind = AttentionKind::Decoder);

/// The parts of the scores of one head that depend on the key alone (Claus, "Attention Focus
/// Plots"): per key of a sequence.
struct KeyScores
{
  std::vector<float> alibi; ///< slope * position of the key; 0 without ALiBi
  std::vector<float> bias;  ///< scale * b_Q . k_j
};

/// Throws OptionError if the recording does not have the sequence, layer, head, or queries and keys
/// from which its scores follow, or if queries are rotated and have a bias: it would then be
/// rotated with them, so that no part depended on the key alone. ModelError if the layer caps its
/// scores, which are then no sums. FileError as EvaluateAttention.
KeyScores EvaluateKeyScores(const Recording& recording, std::int64_t sequence, std::int64_t layer,
  std::int64_t head, const std::vector<float>& queryBias);

/// One score of a query, before the softmax, as a sum.
struct ScoreParts
{
  std::int32_t query = 0; ///< position in the sequence, from 0
  std::int32_t key = 0;   ///< the same
  std::int32_t rank = 0;  ///< among the scores of the query, from 0 for the largest; equal ones in
                          ///< the order of their keys
  float score = 0;        ///< the sum of those below
  float alibi = 0;
  float distance = 0; ///< the bias of the distance from query to key (T5), or of patches (BEiT); 0
                      ///< without
  float contentToPosition = 0; ///< scale * q_i . the key of the distance (DeBERTa); 0 without
  float positionToContent = 0; ///< scale * k_j . the query of the distance; likewise
  float bias = 0;
  float attention = 0; ///< scale * (q_i - b_Q) . k_j
};

/// Splits the `top` largest scores of each of the queries begin <= i < end with the keys that the
/// mask and the window, also of patches, allow, by query, then rank. Appends to `parts`. Throws as
/// EvaluateKeyScores, whose result is `keys`.
void AppendScoreParts(const Recording& recording, std::int64_t sequence, std::int64_t layer,
  std::int64_t head, const std::vector<float>& queryBias, const KeyScores& keys, std::int64_t begin,
  std::int64_t end, std::int64_t top, std::vector<ScoreParts>& parts);

/// Values minus their mean.
std::vector<double> WithoutMean(const std::vector<float>& values);

}
