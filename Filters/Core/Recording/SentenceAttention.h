#pragma once

#include "Base/Progress.h"
#include "RecordedAttention.h"
#include "StrongestKeys.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// The two columns of words between which attention is drawn.
enum class TokenSide
{
  Query,
  Key
};

/// Which attention of a sequence is shown as lines between its tokens.
struct SentenceOptions
{
  std::int64_t sequence = 0;
  std::int64_t layer = 0;
  std::int64_t head = 0;
  AttentionQuantity quantity = AttentionQuantity::Weights;

  std::vector<bool> hidden;                ///< by position; empty: no token is
  bool renormalize = true;                 ///< see EvaluateSentence
  std::vector<bool> chosen;                ///< by position; empty: all tokens are
  TokenSide chosenSide = TokenSide::Query; ///< whether queries or keys are chosen

  double threshold = 0; ///< lines have at least this weight, at least 0
  KeyRange queries;     ///< lines have their ends at these positions
  KeyRange keys;
};

/// Sums of the attention of one head over a sequence of T tokens.
struct SentenceSums
{
  std::vector<double> given;    ///< [T], by each query: the sum over keys
  std::vector<double> received; ///< [T], by each key: the sum over queries
  float largest = 0;            ///< weight between any two tokens
};

/// The attention of one head between the tokens of a sequence.
struct SentenceAttention : SentenceSums
{
  std::vector<AttentionLink> lines; ///< by query, then key; weights are above 0
};

/// Evaluates EvaluateAttention's values a_ij of a head, in this order:
///
/// - Hidden tokens: a_ij = 0 where query i or key j is hidden. If `renormalize`, and a token is
///   hidden, the rest is divided by its sum, so that the weights of a query add up to 1; those of a
///   query that attends to hidden tokens alone stay 0. (AttentionViz, Yeh et al. 2023, divides by
///   1 - a_hidden instead, for one hidden token after another, and cuts at 1.) With sinks, whose
///   share of Weights and Rollout is b_i = 1 - sum_k a_ik before, it is divided by its sum + b_i:
///   what the softmax gives without the hidden keys.
/// - Chosen tokens: a_ij = 0 where query i, or key j, is not chosen.
/// - `given` and `received` are sums of what is left, over all positions and in ascending order.
/// - Lines are what is left from `threshold` on between `queries` and `keys`.
///
/// With `known`, the sums of an earlier call whose options had another threshold or other ranges at
/// most, those are not computed again, and no queries but those that are shown. Uses up to
/// ThreadCount(threads) threads, on whose number the result does not depend, and 64 MiB or 64 rows.
/// Throws as EvaluateAttention, and OptionError for options outside their range.
void EvaluateSentence(const Recording& recording, const SentenceOptions& options,
  SentenceAttention& result, int threads, const Progress& progress = {},
  const SentenceSums* known = nullptr);

/// Whether no query of a sequence attends to a later key, by the mask and by the weights that are
/// stored for heads of the recording. The sequence must be there, or be AllSequences.
bool IsCausal(const Recording& recording, std::int64_t sequence);

}
