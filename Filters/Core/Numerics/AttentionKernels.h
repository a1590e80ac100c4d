#pragma once

#include "AttentionKinds.h"

#include <cstdint>

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

  /// Keys that queries before `end` may attend to are the first so many.
  std::int64_t KeyCount(std::int64_t end) const
  {
    return this->mask == AttentionMask::Causal ? end : this->length;
  }
};

/// The part scale * query . key of the scores of queries begin <= i < end with the first `keys`
/// keys, before the mask: values [end - begin, keys], packed.
void EvaluateContent(
  const HeadScores& head, std::int64_t begin, std::int64_t end, std::int64_t keys, float* values);

/// Adds slope * position of the key to each of `rows` rows of `keys` values.
void AddBias(const HeadScores& head, std::int64_t rows, std::int64_t keys, float* values);

/// Turns scores [end - begin, keys] of queries begin <= i < end, packed, into attention in place:
/// the softmax over the keys that the mask allows, 0 for the others (Vaswani et al., "Attention is
/// all you need", 2017). Of `head`, only length and mask are read.
void NormalizeScores(
  const HeadScores& head, std::int64_t begin, std::int64_t end, std::int64_t keys, float* values);

/// The attention of queries begin <= i < end to the first `keys` keys, at least KeyCount(end):
/// values [end - begin, keys], packed; 0 where the mask forbids it.
void EvaluateWeights(
  const HeadScores& head, std::int64_t begin, std::int64_t end, std::int64_t keys, float* values);

}
