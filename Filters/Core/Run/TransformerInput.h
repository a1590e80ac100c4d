#pragma once

#include "TransformerConfig.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// What a transformer runs on: sequences of token ids, or images.
struct TransformerInput
{
  std::vector<std::vector<std::int64_t>> tokens;   ///< per sequence; lengths may differ
  std::vector<std::vector<std::int64_t>> segments; ///< token types, as long; empty: all 0
  std::vector<float> pixels; ///< [images, channels, height, width], normalized as in training
  std::int64_t images = 0;
};

/// Sequences, or images, first <= s < end.
struct SequenceRange
{
  std::int64_t first = 0;
  std::int64_t end = 0;
};

/// Throws OptionError naming sequence and position: no sequences, an empty one, one longer than the
/// positions of the model (says by how much), token ids or types beyond the model's, images of
/// another size.
void CheckInput(const TransformerConfig& config, const TransformerInput& input);

/// Tokens of each sequence; those of an image are its class token and its patches.
std::vector<std::int64_t> SequenceLengths(
  const TransformerConfig& config, const TransformerInput& input);

}
