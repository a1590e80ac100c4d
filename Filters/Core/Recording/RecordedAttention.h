#pragma once

#include "Recording.h"

#include <cstdint>
#include <string_view>

namespace atlas
{

/// What a map of the attention of one head shows, for each query and key.
enum class AttentionQuantity
{
  Weights, ///< softmax over the keys that the mask allows; 0 for others
  Scores,  ///< Content + Bias, before the mask
  Content, ///< scoreScale * query . key
  Bias     ///< slope * position of the key (ALiBi); 0 without slopes
};

/// Evaluates one head on one sequence of a recording, for queries begin <= i < end of the sequence
/// and all of its T keys: values [end - begin, T], row-major and packed. The memory taken is that
/// of `values`, so that callers choose blocks as they like; blocks may be evaluated in parallel. A
/// block's values may differ by rounding from those of the same queries in a block of another size.
///
/// Weights and scores that the recording holds are given as they are; where it holds scores alone,
/// weights are their softmax.
///
/// `layer` is the layer's number in the model. Throws OptionError for a sequence, layer, head or
/// query that the recording does not have, and if it has neither the quantity nor queries and keys.
/// FileError if the file that the head is mapped from was truncated or changed.
/// An empty block (begin = end) is checked likewise, and `values` is not touched.
void EvaluateAttention(const Recording& recording, std::int64_t sequence, std::int64_t layer,
  std::int64_t head, AttentionQuantity quantity, std::int64_t begin, std::int64_t end,
  float* values);

}
