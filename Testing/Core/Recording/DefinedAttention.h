#pragma once

#include "Recording/PooledAttention.h"
#include "Recording/RecordedAttention.h"
#include "Recording/Recording.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace atlas::test
{

/// All quantities of one head on one sequence, [tokens, tokens], by their formulas in double.
struct DefinedAttention
{
  std::vector<double> content;
  std::vector<double> bias;
  std::vector<double> scores;
  std::vector<double> weights;
  std::vector<double> normWeighted; ///< where norms are recorded

  DefinedAttention(
    const Recording& recording, std::int64_t sequence, std::size_t layer, std::size_t h)
  {
    const std::int64_t first = recording.sequenceOffsets[sequence];
    const std::int64_t length = recording.SequenceLength(sequence);
    const RecordedHead& head = recording.layers[layer].heads[h];
    for (std::int64_t i = 0; i < length; ++i)
    {
      double sum = 0;
      std::vector<double> row;
      for (std::int64_t j = 0; j < length; ++j)
      {
        double product = 0;
        for (std::int64_t c = 0; c < head.query.columns; ++c)
        {
          product += static_cast<double>(head.query.Row(first + i)[c]) *
                     static_cast<double>(head.key.Row(first + j)[c]);
        }
        this->content.push_back(recording.layers[layer].scoreScale * product);
        this->bias.push_back(
          recording.alibiSlopes.empty() ? 0 : recording.alibiSlopes[h] * static_cast<double>(j));
        if (recording.distanceBias.IsRecorded())
        {
          const std::int64_t reach = recording.distanceBias.columns / 2;
          const std::int64_t distance = std::min(std::max(j - i, -reach), reach);
          this->bias.back() += static_cast<double>(
            recording.distanceBias.Row(static_cast<std::int64_t>(h))[reach + distance]);
        }
        const double cap = recording.layers[layer].scoreCap;
        const double capped =
          cap > 0 ? cap * std::tanh(this->content.back() / cap) : this->content.back();
        this->scores.push_back(capped + this->bias.back());
        const std::int64_t window = recording.layers[layer].window;
        const std::int64_t chunk = recording.layers[layer].chunk;
        const bool allowed =
          recording.mask == AttentionMask::Cross
            ? i >= recording.sourceLengths[sequence] && j < recording.sourceLengths[sequence]
            : (recording.mask == AttentionMask::Bidirectional || j <= i) &&
                (window == 0 || std::abs(i - j) < window) && (chunk == 0 || i / chunk == j / chunk);
        row.push_back(allowed ? std::exp(this->scores.back()) : 0);
        sum += row.back();
      }
      const std::vector<float>& sinks = recording.layers[layer].sinks;
      sum += sinks.empty() ? 0 : std::exp(static_cast<double>(sinks[h]));
      for (const double value : row)
      {
        this->weights.push_back(sum > 0 ? value / sum : 0); // 0: a query of the source
      }
      for (std::int64_t j = 0; head.valueNorm.IsRecorded() && j < length; ++j)
      {
        this->normWeighted.push_back(
          this->weights[i * length + j] * static_cast<double>(*head.valueNorm.Row(first + j)));
      }
    }
  }
};

/// Pools a map pair by pair, in cells with these edges.
template<class Value>
std::vector<double> PoolMap(const std::vector<Value>& map, std::int64_t length,
  const std::vector<std::int64_t>& queries, const std::vector<std::int64_t>& keys,
  AttentionPooling pooling)
{
  std::vector<double> pooled;
  for (std::size_t row = 0; row + 1 < queries.size(); ++row)
  {
    for (std::size_t column = 0; column + 1 < keys.size(); ++column)
    {
      double largest = -HUGE_VAL;
      double sum = 0;
      double pairs = 0;
      for (std::int64_t i = queries[row]; i < queries[row + 1]; ++i)
      {
        for (std::int64_t j = keys[column]; j < keys[column + 1]; ++j, ++pairs)
        {
          const auto value = static_cast<double>(map[i * length + j]);
          largest = std::max(largest, value);
          sum += value;
        }
      }
      pooled.push_back(pooling == AttentionPooling::Maximum ? largest : sum / pairs);
    }
  }
  return pooled;
}

}
