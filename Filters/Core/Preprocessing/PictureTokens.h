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

/// How the tiles of a picture become tokens where those of its padding are left out
/// (VisionConfig::gridSizes): of the patches of all tiles a part, whose vectors are resized to
/// those of tokenRows x tokenColumns tokens. All are 0 for a picture without tiles.
struct TiledPicture
{
  std::int64_t whole = 0; ///< image of all of it
  std::int64_t first = 0; ///< image of its first tile
  std::int64_t tileColumns = 0;
  std::int64_t top = 0; ///< first row of patches, then first column
  std::int64_t left = 0;
  std::int64_t rows = 0; ///< of patches
  std::int64_t columns = 0;
  std::int64_t tokenRows = 0; ///< without the ends of rows
  std::int64_t tokenColumns = 0;

  /// The tokens of its tiles, with the ends of rows.
  std::int64_t Tokens() const
  {
    return this->tokenRows == 0 ? 1 : this->tokenRows * (this->tokenColumns + 1);
  }
};

/// Those of all pictures, whose tiles are complete, and each has all of it.
std::vector<TiledPicture> TiledPictures(
  const TransformerConfig& config, const std::vector<TilePlace>& tiles);

/// Of each token of all sequences, how many of the first tokens of its sequence it sees: itself and
/// those before, and those of the same picture or prompt. For a model with seesWholePictures or
/// seesWholePrompts.
std::vector<std::int32_t> KeyEnds(const TransformerConfig& config, const TransformerInput& input);

/// Adds what the pictures show to a recording of texts, and which parts of them tokens cover.
void DescribePictures(const TransformerConfig& config, const TransformerInput& input,
  const std::vector<ImageToken>& tokens, Recording& recording);

/// Row and column of patch i of an image with so many columns, in the order of squares of merge x
/// merge patches.
std::pair<std::int64_t, std::int64_t> PlaceOfPatch(
  std::int64_t i, std::int64_t columns, std::int64_t merge);

}
