#pragma once

#include "TransformerConfig.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// The input of a transformer: sequences of token ids, or images.
struct TransformerInput
{
  std::vector<std::vector<std::int64_t>> tokens;   ///< per sequence; lengths may differ
  std::vector<std::vector<std::int64_t>> segments; ///< token types, of the same lengths; empty: all
                                                   ///< 0
  std::vector<float> pixels; ///< [images, channels, height, width], normalized as in training
  std::int64_t images = 0;

  bool operator==(const TransformerInput& other) const;
};

/// Sequences, or images, first <= s < end.
struct SequenceRange
{
  std::int64_t first = 0;
  std::int64_t end = 0;
};

/// Throws OptionError if there are no sequences, or one is empty or longer than the model's
/// positions (the message says by how much), if a token id or type is outside the model's range, or
/// if images have a wrong size. The message gives sequence and position.
void CheckInput(const TransformerConfig& config, const TransformerInput& input);

/// The number of tokens of each sequence. The tokens of an image are its class token and its
/// patches.
std::vector<std::int64_t> SequenceLengths(
  const TransformerConfig& config, const TransformerInput& input);

}
