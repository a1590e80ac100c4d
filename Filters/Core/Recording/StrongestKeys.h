#pragma once

#include "Recording.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// The attention of a query to a key: positions in their sequence, and the weight, 0 to 1.
struct AttentionLink
{
  std::int32_t query = 0;
  std::int32_t key = 0;
  float weight = 0;
};

/// Which keys of a query are linked.
struct StrongestKeysOptions
{
  int top = 2;                ///< at most this number of keys per query, at least 1
  double minimumWeight = 0.1; ///< links have at least this weight. Weights of 0, such as those that
                              ///< the mask excludes, are never linked
};

/// Links queries begin <= i < end of a sequence to the keys of largest weight (EvaluateAttention),
/// by query, then falling weight; keys of equal weight are in ascending order. Appends to `links`.
/// `weights` is working memory, which may be used again. Throws as EvaluateAttention, and
/// OptionError for options outside their range.
void AppendStrongestKeys(const Recording& recording, std::int64_t sequence, std::int64_t layer,
  std::int64_t head, std::int64_t begin, std::int64_t end, const StrongestKeysOptions& options,
  std::vector<float>& weights, std::vector<AttentionLink>& links);

}
