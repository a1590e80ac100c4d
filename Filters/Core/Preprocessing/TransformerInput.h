#pragma once

#include "ImagePlaces.h"
#include "Weights/TransformerConfig.h"

#include <cstdint>
#include <string>
#include <vector>

namespace atlas
{

/// The input of a transformer: sequences of token ids, images, or sounds. Of one with an encoder
/// and a decoder, `tokens` are those of the decoder, which begin with
/// TransformerConfig::decoderStart, and there is a source of each sequence: tokens or sound.
struct TransformerInput
{
  std::vector<std::vector<std::int64_t>> tokens;   ///< per sequence; lengths may differ
  std::vector<std::vector<std::int64_t>> segments; ///< token types, of the same lengths; empty: all
                                                   ///< 0
  std::vector<float> pixels; ///< [images, channels, height, width], normalized as in training. For
                             ///< an encoder of any size [patches, channels, patchFrames,
                             ///< patchHeight, patchWidth]: of each of `extents` in turn by groups
                             ///< of frames, then squares of merge x merge patches by rows, then the
                             ///< patches of the square by rows. With channelsLast [patches,
                             ///< patchHeight, patchWidth, channels]
  std::int64_t images = 0;   ///< images of one size; 0 for an encoder of any size
  std::vector<TilePlace> tiles;     ///< these two: of pictures among words. Per image
  std::vector<PatchExtent> extents; ///< per picture or video, for an encoder of any size
  std::vector<std::vector<std::int64_t>> source; ///< tokens of the encoder, per sequence
  std::vector<float> features; ///< of sound [sounds, bands, frames], or waveforms one after another
  std::int64_t sounds = 0;
  std::vector<std::int64_t> samples; ///< of each waveform
  std::vector<std::int64_t> prompts; ///< per sequence, the number of its tokens that are of its
                                     ///< prompt, for VisionConfig::seesWholePrompts; empty: all

  bool operator==(const TransformerInput& other) const;
};

/// Sequences, or images, first <= s < end.
struct SequenceRange
{
  std::int64_t first = 0;
  std::int64_t end = 0;
};

/// The token of a text that stands for a square of patches. Its picture is an entry of `extents`,
/// or one of `tiles`.
struct ImageToken
{
  std::int64_t sequence = 0;
  std::int64_t position = 0; ///< in the sequence
  std::int64_t image = 0;    ///< index of the entry of `tiles` or `extents`
  std::int64_t frame = 0;    ///< group of frames of a video; 0 for a picture
  std::int64_t row = 0;    ///< among the tokens of this image or group of frames, from the top, or
                           ///< of all tiles of its picture (VisionConfig::gridSizes); -1 for the
                           ///< end of a row there
  std::int64_t column = 0; ///< likewise, from the left
};

/// The image tokens of all sequences, by sequence, then position: the n-th has the n-th vector of
/// the projector, those of videos counted apart. Throws OptionError if there are more or fewer than
/// the pictures have; the message says how many of each. `config` has `vision`.
std::vector<ImageToken> ImageTokens(const TransformerConfig& config, const TransformerInput& input);

/// Throws OptionError if there are no sequences, or one is empty or longer than the model's
/// positions (the message says by how much), if a token id or type is outside the model's range, or
/// if images have a wrong size; for a model with an encoder also if there is not one source per
/// sequence, or for the same reasons in these. The message gives sequence and position.
void CheckInput(const TransformerConfig& config, const TransformerInput& input);

/// The same with messages that begin with `name`.
void CheckInput(
  const TransformerConfig& config, const TransformerInput& input, const std::string& name);

/// The number of tokens of each sequence, of the decoder if there is one. The tokens of an image
/// are its class token and its patches, those of sound its places after the convolutions.
std::vector<std::int64_t> SequenceLengths(
  const TransformerConfig& config, const TransformerInput& input);

/// The number of tokens of each source; none for a model without an encoder.
std::vector<std::int64_t> SourceLengths(
  const TransformerConfig& config, const TransformerInput& input);

/// The first row of each sequence, given their lengths, then the row count.
std::vector<std::int64_t> SequenceOffsets(const std::vector<std::int64_t>& lengths);

}
