#pragma once

#include "Base/Progress.h"
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
/// Sequences of more than 4096 tokens are pooled as PoolCells says.
/// Uses up to ThreadCount(threads) threads; values do not depend on their number. Throws as
/// EvaluateAttention, and OptionError for a size below 1.
void PoolAttention(const Recording& recording, std::int64_t sequence, AttentionQuantity quantity,
  const std::vector<HeadPlace>& heads, const PoolingOptions& options, float* values, int threads,
  const Progress& progress = {});

/// The map of a head on a sequence: what EvaluateAttention takes.
struct MapPlace
{
  std::int64_t sequence = 0;
  std::int64_t layer = 0;
  std::int64_t head = 0;
  AttentionQuantity quantity = AttentionQuantity::Weights;
};

/// Pools a map to cells of queries and keys that begin at these positions, ascending; the last
/// number is the end of the last cell. `values`: [cells of queries, cells of keys].
///
/// Where attention follows from queries and keys of one head on one sequence (Weights, Scores,
/// Content, NormWeighted), scores are reduced as they are computed, in tiles that stay in the
/// processor's cache (an online softmax: Milakov and Gimelshein 2018; tiles: Dao et al. 2022).
/// Each cell of a query has its largest score m and s = sum exp(x - m); its largest weight is exp(m
/// - M) / S and the sum of its weights s exp(m - M) / S, with the maximum M and the sum S over all
/// keys. Values are exact but for rounding. What a causal mask or a window excludes costs nothing,
/// and memory grows with cells and tokens, not with pairs. If the cells do not have all keys, M and
/// S need a second pass. Other maps are evaluated in rows, as PoolAttention does it.
void PoolCells(const Recording& recording, const MapPlace& place,
  const std::vector<std::int64_t>& queryEdges, const std::vector<std::int64_t>& keyEdges,
  AttentionPooling pooling, float* values, int threads, const Progress& progress = {});

}
