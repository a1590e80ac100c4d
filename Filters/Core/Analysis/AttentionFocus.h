#pragma once

#include "Recording/RecordedAttention.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace atlas
{

/// Where one query looks: statistics of its attention over the keys that the mask and the window
/// allow (Claus, "Attention Focus Plots"). Its attention is divided by its sum where that is not 1,
/// as of quantities other than weights; but weights beside a sink (gpt-oss) add up to less than 1
/// and remain so, except for the entropy.
struct QueryFocus
{
  std::int32_t query = 0;     ///< position in the sequence, from 0
  std::int32_t strongest = 0; ///< position of the key with the largest weight; the first of several
  float strongestWeight = 0;
  float strongestScore = 0; ///< before the softmax; 0 if only weights are known
  float selfWeight = 0;     ///< of the key at the query's own position; 0 of cross attention
  float firstWeight = 0;    ///< of the key at position 0; 0 where the window leaves it out
  float concentration = 0;  ///< largest minus second largest weight; the only one for a single key
  float entropy = 0;        ///< -sum a ln a / ln(keys), 0 to 1, of the keys that are allowed and
                            ///< weights a divided by their sum; 0 for a single key
  float firstCosine = 0;    ///< of the angle of q and k_0: q . k_0 = |q| |k_0| cosine; 0 where a
                            ///< vector is 0. This and both norms are 0 unless recorded
  float queryNorm = 0;      ///< |q|
  float firstKeyNorm = 0;   ///< |k_0|
};

/// Scores of a query before the softmax with the keys that it may attend to.
struct ScoreRow
{
  std::int64_t query;
  std::int64_t firstKey;
  std::int64_t keys;
  const float* scores;            ///< [keys]
  std::optional<float> sink;      ///< a further score in the softmax
  float share = 1;                ///< what the weights of all keys add up to without it
  const float* weights = nullptr; ///< [keys], if they are known: then no exponential is needed
};

/// The statistics of a query that follow from its scores: those up to entropy.
QueryFocus FocusOfScores(const ScoreRow& row);

/// The statistics of one query as numbers.
enum class FocusMeasure
{
  SelfWeight,
  FirstWeight,
  StrongestKey,     ///< its position
  StrongestIsSelf,  ///< 1 if the strongest key is at the query's own position, else 0
  StrongestIsFirst, ///< 1 if the strongest key is at position 0, else 0
  Concentration,
  Entropy,
  SinkRate, ///< 1 if the first weight is above a threshold, else 0 (Gu et al. 2024, "When attention
            ///< sink emerges in language models")
  FirstCosine,
  QueryNorm,
  FirstKeyNorm
};
inline constexpr std::size_t FocusMeasureCount = 11;

double FocusValue(const QueryFocus& focus, FocusMeasure measure, double sinkThreshold);

/// Means over queries.
struct FocusSums
{
  std::int64_t queries = 0;
  std::array<double, FocusMeasureCount> sums = {};

  void Add(const QueryFocus& focus, double sinkThreshold);
  void Add(const FocusSums& other);
  double Mean(FocusMeasure measure) const; ///< 0 without queries
};

/// Measures queries begin <= i < end of a sequence in one pass over their scores, or over their
/// attention where a recording holds no scores or `quantity` is not Weights. `focus` [end - begin].
/// `work` is working memory, which may be used again: [end - begin, T] floats. Blocks may be
/// measured in parallel. Throws as EvaluateAttention; an empty block is checked in the same way.
void MeasureFocus(const Recording& recording, std::int64_t sequence, std::int64_t layer,
  std::int64_t head, AttentionQuantity quantity, std::int64_t begin, std::int64_t end,
  std::vector<float>& work, QueryFocus* focus);

/// Indices of the values from the largest to the smallest; equal ones in ascending order.
std::vector<std::size_t> FallingOrder(const std::vector<double>& values);

}
