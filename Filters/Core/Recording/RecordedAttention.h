#pragma once

#include "Recording.h"

#include <cstdint>
#include <string_view>

namespace atlas
{

/// What an attention map of one head shows for each query and key.
enum class AttentionQuantity
{
  Weights, ///< softmax over the keys that the mask allows; 0 for all other keys
  Scores,  ///< Content + Bias, before the mask
  Content, ///< scoreScale * query . key
  Bias     ///< slope * position of the key (ALiBi, Press et al. 2022); 0 without slopes
};

/// Evaluates scaled dot-product attention (Vaswani et al. 2017) of one head on one sequence of a
/// recording, for queries begin <= i < end of the sequence and all of its T keys: values [end -
/// begin, T], row-major and packed. No other memory is allocated, so callers may choose any block
/// size. Blocks may be evaluated in parallel. Results for the same query may differ by rounding
/// between block sizes.
///
/// Weights and scores stored in the recording are returned unchanged. If only scores are stored,
/// the weights are their softmax.
///
/// `layer` is the index of the layer in the model. Throws OptionError if the recording does not
/// have the sequence, layer, head or query, or has neither the quantity nor queries and keys.
/// Throws FileError if the file that the head is mapped from was truncated or changed. An empty
/// block (begin = end) is checked in the same way; `values` is then not used.
void EvaluateAttention(const Recording& recording, std::int64_t sequence, std::int64_t layer,
  std::int64_t head, AttentionQuantity quantity, std::int64_t begin, std::int64_t end,
  float* values);

}
