#pragma once

#include "ResidualComponents.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// A score of a head, before the softmax.
struct ScorePlace
{
  std::int64_t sequence = 0;
  std::int64_t layer = 0; ///< of the head
  std::int64_t head = 0;
  std::int64_t query = -1; ///< position; -1: the last
  std::int64_t key = -1;   ///< position; -1: the key of the largest score, the first of equal ones
};

/// A score as the sum over pairs of components, of the query in rows and of the key in columns.
struct ScoreTerms
{
  ScorePlace place;                    ///< with the positions that were found
  std::vector<NamedComponent> queries; ///< those before the layer, "b_Q", and "ALiBi" if there are
                                       ///< slopes
  std::vector<NamedComponent> keys;    ///< the same, with "b_K"
  DoubleMatrix values;                 ///< [queries, keys]
  double score = 0;                    ///< as recorded
  double sum = 0;                      ///< of all values
};

/// The head of a score as it is stored in a model, and the gain of the normalization before it.
/// Holds about 2 d_model d_head numbers.
struct ScoreHead
{
  DoubleMatrix query;           ///< [d_model, d_head], gain times W_Q
  DoubleMatrix key;             ///< [d_model, d_head], gain times W_K
  Eigen::RowVectorXd queryBias; ///< [d_head], shift W_Q + b_Q
  Eigen::RowVectorXd keyBias;   ///< [d_head], shift W_K + b_K
  DoubleMatrix queryPositions;  ///< W_pos W_Q [positions, d_head] of shortformer positions, which
                                ///< only queries and keys read; otherwise empty
  DoubleMatrix keyPositions;    ///< W_pos W_K
};

/// The components of queries, or those of keys, in a layer, 0 <= layer < L: those of the residual
/// stream before it, with the position where queries and keys alone read one, then `bias` and
/// ALiBi.
std::vector<NamedComponent> ScoreComponents(
  const TransformerConfig& config, std::int64_t layer, const char* bias, bool hasAlibi);

/// Reads a head of a layer. Throws OptionError if the model has no such head.
ScoreHead ReadScoreHead(const Transformer& model, std::int64_t layer, std::int64_t head);

/// Splits a score: with the components c of the residual stream at the query and c' at the key,
///
///     score = scale sum_c sum_c' (((c - mean c) / sigma) W_Q) . (((c' - mean c') / sigma') W_K) +
///     ...
///
/// where sigma and sigma' are those of the whole streams, so that the normalization is frozen, W_Q
/// and W_K have its gain, and the biases of the head are a row and a column of their own, as is
/// slope * position of the key (ALiBi). Queries and keys of a rotary embedding are rotated each at
/// its position, which is linear. Without the mean for RMSNorm. Positions of the shortformer kind
/// are a component "pos".
///
/// Throws OptionError if there is no such score, the recording lacks components
/// (RequireComponents), or queries and keys, or it stores attention that does not follow from them;
/// ModelError if the layer caps its scores.
ScoreTerms AttributeScore(const Recording& recording, const ResidualWeights& weights,
  const ScoreHead& head, const ScorePlace& place);

/// Joins components.
ScoreTerms Grouped(const ScoreTerms& terms, ComponentGrouping grouping);

/// A term of a score: its row and column.
struct ScorePair
{
  std::int64_t query = 0;
  std::int64_t key = 0;
};

/// The `top` pairs of largest magnitude; equal ones by row, then column.
std::vector<ScorePair> StrongestPairs(const ScoreTerms& terms, std::int64_t top);

}
