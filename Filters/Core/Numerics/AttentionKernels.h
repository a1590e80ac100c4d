#pragma once

#include "AttentionKinds.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <Eigen/Core>

namespace atlas
{

/// Softmax in place, in double precision, for the logits [N] of small models, N at least 1. Returns
/// the log probability of `target`, 0 <= target < N.
double Softmax(Eigen::VectorXd& logits, Eigen::Index target);

/// Queries and keys of one head on one sequence, and what turns them into attention.
struct HeadScores
{
  const float* query = nullptr; ///< [length, dimension]
  const float* key = nullptr;   ///< [length, dimension]
  std::int64_t length = 0;      ///< tokens of the sequence
  std::int64_t dimension = 0;   ///< d_head
  float scale = 1;
  float slope = 0; ///< of ALiBi
  AttentionMask mask = AttentionMask::Causal;
  float cap = 0; ///< c > 0: scale * query . key becomes c tanh(scale * query . key / c), before
                 ///< the bias (Gemma 2)
  std::int64_t window = 0; ///< w > 0: query i attends to the keys j > i - w only
  float sink = -std::numeric_limits<float>::infinity(); ///< a further logit in the softmax, whose
                                                        ///< weight is dropped (gpt-oss)

  /// Keys that queries before `end` may attend to are the first so many.
  std::int64_t KeyCount(std::int64_t end) const
  {
    return this->mask == AttentionMask::Causal ? end : this->length;
  }

  /// The first key that the query of a row may attend to.
  std::int64_t FirstKey(std::int64_t row) const
  {
    return this->window > 0 ? std::max<std::int64_t>(row - this->window + 1, 0) : 0;
  }

  bool HasSink() const { return std::isfinite(this->sink); }
};

/// The part scale * query . key of the scores of queries begin <= i < end with the first `keys`
/// keys, before cap and mask: values [end - begin, keys], packed.
void EvaluateContent(
  const HeadScores& head, std::int64_t begin, std::int64_t end, std::int64_t keys, float* values);

/// Applies the cap, if there is one, to `count` values of scale * query . key.
void CapScores(const HeadScores& head, std::int64_t count, float* values);

/// Adds slope * position of the key to each of `rows` rows of `keys` values.
void AddBias(const HeadScores& head, std::int64_t rows, std::int64_t keys, float* values);

/// Turns scores [end - begin, keys] of queries begin <= i < end, packed, into attention in place:
/// the softmax over the keys that mask and window allow, 0 for the others (Vaswani et al.,
/// "Attention is all you need", 2017). With a sink, rows add up to less than 1. Of `head`, only
/// length, mask, window and sink are read.
void NormalizeScores(
  const HeadScores& head, std::int64_t begin, std::int64_t end, std::int64_t keys, float* values);

/// The attention of queries begin <= i < end to the first `keys` keys, at least KeyCount(end):
/// values [end - begin, keys], packed; 0 where mask or window forbid it.
void EvaluateWeights(
  const HeadScores& head, std::int64_t begin, std::int64_t end, std::int64_t keys, float* values);

}
