#pragma once

#include "TransformerConfig.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// The input of a transformer: sequences of token ids, or images. Of one with an encoder and a
/// decoder, `tokens` are those of the decoder, which begin with TransformerConfig::decoderStart,
/// and there is a source of each sequence: tokens or sound.
struct TransformerInput
{
  std::vector<std::vector<std::int64_t>> tokens;   ///< per sequence; lengths may differ
  std::vector<std::vector<std::int64_t>> segments; ///< token types, of the same lengths; empty: all
                                                   ///< 0
  std::vector<float> pixels; ///< [images, channels, height, width], normalized as in training
  std::int64_t images = 0;
  std::vector<std::vector<std::int64_t>> source; ///< tokens of the encoder, per sequence
  std::vector<float> features; ///< log-mel features of the encoder [sounds, bands, frames]
  std::int64_t sounds = 0;

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
/// if images have a wrong size; for a model with an encoder also if there is not one source per
/// sequence, or for the same reasons in these. The message gives sequence and position.
void CheckInput(const TransformerConfig& config, const TransformerInput& input);

/// The number of tokens of each sequence, of the decoder if there is one. The tokens of an image
/// are its class token and its patches, those of sound its places after the convolutions.
std::vector<std::int64_t> SequenceLengths(
  const TransformerConfig& config, const TransformerInput& input);

/// The number of tokens of each source; none for a model without an encoder.
std::vector<std::int64_t> SourceLengths(
  const TransformerConfig& config, const TransformerInput& input);

}
