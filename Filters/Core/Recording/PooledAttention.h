#pragma once

#include "Progress.h"
#include "RecordedAttention.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// How the values of a bin of queries and a bin of keys become one.
enum class AttentionPooling
{
  Maximum, ///< the largest
  Mean     ///< of all, also of those that the mask excludes
};

struct PoolingOptions
{
  std::int64_t size = 64; ///< bins along a side, at least 1. A shorter sequence, or text of cross
                          ///< attention, has a bin per token
  AttentionPooling pooling = AttentionPooling::Maximum;
};

/// The number of bins of `length` tokens, and the first token of bin b: floor(b length / bins), so
/// that bins differ by one token at most.
std::int64_t BinCount(std::int64_t length, std::int64_t size);
std::int64_t BinBegin(std::int64_t bin, std::int64_t bins, std::int64_t length);

/// Evaluates the attention of some heads (EvaluateAttention, with AllHeads and AllSequences) as
/// maps of bins x bins, one after another in `values`. Rows and columns are bins of queries and
/// keys, of QueryPositions and KeyPositions. If no value of a bin is finite, it is NaN.
///
/// Heads are pooled while they are evaluated, in blocks of a few rows, so that no map of tokens x
/// tokens is ever in memory; but Rollout, whose cost hardly depends on the number of rows, has one.
/// Uses up to ThreadCount(threads) threads; values do not depend on their number. Throws as
/// EvaluateAttention, and OptionError for a size below 1.
void PoolAttention(const Recording& recording, std::int64_t sequence, AttentionQuantity quantity,
  const std::vector<HeadPlace>& heads, const PoolingOptions& options, float* values, int threads,
  const Progress& progress = {});

}
