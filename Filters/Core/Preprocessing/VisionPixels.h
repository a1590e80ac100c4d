#pragma once

#include "Files/PictureFile.h"
#include "ImagePlaces.h"
#include "VisionProcessor.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace atlas
{

/// A picture as a model sees it.
struct SeenPicture
{
  std::optional<Picture> tiled; ///< what the tiles show together, or an image of any size
  std::int64_t rows = 1;        ///< of tiles
  std::int64_t columns = 1;
  std::optional<Picture> whole; ///< all of it as one image
  ImageSize source = { 0, 0 };  ///< Padded: of the picture
};

/// Resizes, and cuts off, a picture. Throws OptionError if its proportions are refused, or the
/// result would be too large or not fit the model.
SeenPicture SeePicture(const Picture& picture, const VisionProcessor& processor);

/// Pictures, or videos, as the input of a model: TransformerInput has the same members.
struct VisionPixels
{
  std::vector<float> pixels;
  std::int64_t images = 0;
  std::vector<TilePlace> tiles;
  std::vector<PatchExtent> extents;
  std::vector<std::int64_t> videoFrames; ///< of videos in tiles: the frames of each, each of which
                                         ///< is a picture of `tiles`; empty: these are pictures
};

/// Adds a picture. Throws as SeePicture does.
void AddPicture(const Picture& picture, const VisionProcessor& processor, VisionPixels& pixels);

/// Adds a video, by the processor of videos. AnySize: all frames get the size of the first one, and
/// the last is repeated until they are a multiple of patchFrames. `seconds` are between two frames.
/// Otherwise each frame is a picture. There must be frames, and not pictures beside videos in
/// tiles. Throws as SeePicture does.
void AddVideo(const std::vector<Picture>& frames, double seconds, const VisionProcessor& processor,
  VisionPixels& pixels);

}
