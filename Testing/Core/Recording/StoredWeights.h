#pragma once

#include "Recording/Recording.h"
#include "Recording/StrongestKeys.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <vector>

namespace atlas::test
{

/// Query, key and weight.
using Link = std::tuple<int, int, float>;

inline std::vector<Link> LinksOf(const std::vector<AttentionLink>& links)
{
  std::vector<Link> found;
  for (const AttentionLink& link : links)
  {
    found.emplace_back(link.query, link.key, link.weight);
  }
  return found;
}

/// One layer with one head, whose weights [tokens, tokens] of each sequence are stored.
inline Recording StoredWeights(const std::vector<std::vector<float>>& sequences)
{
  Recording recording;
  recording.mask = AttentionMask::Bidirectional;
  recording.layerCount = 1;
  recording.sequenceOffsets = { 0 };
  RecordedHead head;
  for (const std::vector<float>& weights : sequences)
  {
    const auto tokens = std::lround(std::sqrt(static_cast<double>(weights.size())));
    for (std::int32_t t = 0; t < tokens; ++t)
    {
      recording.tokens.sequence.push_back(static_cast<std::int32_t>(head.weights.size()));
      recording.tokens.position.push_back(t);
    }
    recording.sequenceOffsets.push_back(recording.tokens.Count());
    head.weights.push_back(SharedMatrix::Zero(tokens, tokens));
    std::copy(weights.begin(), weights.end(), head.weights.back().values.get());
  }
  recording.layers.push_back({ 0, 1, { head } });
  return recording;
}

}
