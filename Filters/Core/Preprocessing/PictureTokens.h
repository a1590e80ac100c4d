#pragma once

#include "Recording/Recording.h"
#include "TransformerInput.h"
#include "Weights/TransformerConfig.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace atlas
{

/// The places by which the tokens of all texts are rotated: a word has the same position for frame,
/// row and column; tokens of a picture or video have positions of their own behind those of the
/// words before; then positions go on from the largest + 1 (Wang et al. 2024: Qwen2-VL). For a
/// model with rotarySections.
std::vector<RotaryPlace> TextPlaces(const TransformerConfig& config, const TransformerInput& input);

/// One more than the largest position in places; 0 without any.
std::int64_t EndOfPlaces(const std::vector<RotaryPlace>& places);

/// The places of all patches, for an encoder of any size: group of frames, row and column.
std::vector<RotaryPlace> PatchPlaces(std::int64_t merge, const TransformerInput& input);

/// The places of all tokens of images of one size: 0, row and column of a patch, or one more than
/// the largest of both for the tokens before the patches.
std::vector<RotaryPlace> GridPlaces(const TransformerConfig& config, std::int64_t images);

/// The sequences of the encoder that the pictures of texts first <= s < end are.
SequenceRange EncoderRange(const TransformerConfig& config, const TransformerInput& input,
  const std::vector<ImageToken>& tokens, const SequenceRange& texts);

/// The rows that the encoder runs for the pictures of each text.
std::vector<std::int64_t> EncoderRows(
  const TransformerConfig& config, const TransformerInput& input);

/// Adds what the pictures show to a recording of texts, and which parts of them tokens cover.
void DescribePictures(const TransformerConfig& config, const TransformerInput& input,
  const std::vector<ImageToken>& tokens, Recording& recording);

/// Row and column of patch i of an image with so many columns, in the order of squares of merge x
/// merge patches.
std::pair<std::int64_t, std::int64_t> PlaceOfPatch(
  std::int64_t i, std::int64_t columns, std::int64_t merge);

}
