#pragma once

#include "Base/Progress.h"
#include "Numerics/AttentionKernels.h"
#include "Recording/RecordedAttention.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace atlas
{

/// A map whose values are pooled as they are computed, tile by tile, so that no row of it is ever
/// in memory: that of one head on one sequence, from queries and keys.
struct StreamedMap
{
  HeadScores scores;
  AttentionQuantity quantity = AttentionQuantity::Weights; ///< not Bias or Rollout
  std::vector<float> keyBias;   ///< per position: what is added to scores; empty: nothing
  std::vector<float> logNorms;  ///< NormWeighted, per position: the same with the logarithm of the
                                ///< norm; otherwise empty
  std::vector<float> aheadBias; ///< by position of the query - position of the key, from -length +
                                ///< 1 on; empty: none

  /// Whether values are those after the softmax.
  bool IsNormalized() const
  {
    return this->quantity == AttentionQuantity::Weights ||
           this->quantity == AttentionQuantity::NormWeighted;
  }
};

/// Finds such a map, if the head has one: not for means over heads or sequences, Rollout and Bias,
/// attention that is stored, masks of pictures and chunks, and numbers that are not finite or whose
/// products might not be.
std::optional<StreamedMap> FindStreamed(const Recording& recording, std::int64_t sequence,
  std::int64_t layer, std::int64_t head, AttentionQuantity quantity);

/// Of the softmax of each query, by position: weights are factor * exp(score - shift).
struct Normalizers
{
  std::vector<float> shift;
  std::vector<float> factor;
};

/// Finds them for all queries. Sums are over the cells of keys, then over these.
Normalizers FindNormalizers(const StreamedMap& map, const KeyRange& queries,
  const std::vector<std::int64_t>& keyEdges, int threads, const Progress& progress);

/// Values of cells [cells of queries, cells of keys].
struct PooledCells
{
  std::vector<float> largest;
  std::vector<float> mean; ///< over all pairs, also those that the mask excludes
};

/// Pools a map to cells, which begin at these positions; the last number is the end of the last
/// cell. Without normalizers (nullptr) the cells of keys must be those of all keys; Weights alone
/// can do without. `found`, unless nullptr, is then filled with them.
PooledCells PoolStreamed(const StreamedMap& map, const std::vector<std::int64_t>& queryEdges,
  const std::vector<std::int64_t>& keyEdges, const Normalizers* normalizers, Normalizers* found,
  int threads, const Progress& progress);

}
