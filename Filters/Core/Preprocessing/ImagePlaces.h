#pragma once

#include <array>
#include <cstdint>
#include <tuple>

namespace atlas
{

/// Frame, row and column by which a token is rotated, each for a part of the component pairs.
using RotaryPlace = std::array<std::int64_t, 3>;

/// The part of a picture that an image shows to the encoder: all of it, or a tile.
struct TilePlace
{
  std::int64_t picture = 0; ///< from 0, of all sequences, in the order of their tokens
  std::int64_t row = -1;    ///< of the tile, from the top; -1: the whole picture
  std::int64_t column = -1; ///< of the tile, from the left; -1: the whole picture
  std::int64_t rows = 1;    ///< of tiles in this picture, beside which there may be all of it
  std::int64_t columns = 1;
  std::int64_t height = 0; ///< of the picture in its file, in pixels, where its padding is left out
  std::int64_t width = 0;  ///< (VisionConfig::gridSizes)

  bool IsWhole() const { return this->row < 0; }

  friend bool operator==(const TilePlace& a, const TilePlace& b)
  {
    return std::tie(a.picture, a.row, a.column, a.rows, a.columns, a.height, a.width) ==
           std::tie(b.picture, b.row, b.column, b.rows, b.columns, b.height, b.width);
  }
};

/// The patches of a picture or video, for an encoder of any size of images.
struct PatchExtent
{
  std::int64_t frames = 1; ///< groups of patchFrames frames
  std::int64_t rows = 0;   ///< of patches, a multiple of VisionConfig::merge, like the columns
  std::int64_t columns = 0;
  bool isVideo = false;         ///< its tokens are videoToken, not imageToken
  double seconds = 1;           ///< from one group of frames to the next
  std::int64_t givenFrames = 1; ///< of a video, before the last is repeated

  std::int64_t Count() const { return this->frames * this->rows * this->columns; }

  friend bool operator==(const PatchExtent& a, const PatchExtent& b)
  {
    return std::tie(a.frames, a.rows, a.columns, a.isVideo, a.seconds) ==
           std::tie(b.frames, b.rows, b.columns, b.isVideo, b.seconds);
  }
};

}
