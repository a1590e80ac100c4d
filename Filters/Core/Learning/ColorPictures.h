#pragma once

#include "PictureFile.h"

#include <cstdint>
#include <string>
#include <vector>

namespace atlas
{

/// The pixels on a side of the pictures of the task ColorPatches.
inline constexpr std::int64_t ColorPictureSide = 32;

/// The names of their classes: "hue, horizontal", ..., "triangle".
const std::vector<std::string>& ColorPictureNames();

/// A picture and its class, as an index of the names.
struct ColorPicture
{
  Picture picture; ///< 8 bits per channel
  std::int64_t label = 0;
};

/// The pictures that the task ColorPatches holds out, 20 of each class, for TaskOptions of this
/// seed: what MakeHeldOut gives is their Preprocess.
std::vector<ColorPicture> HeldOutColorPictures(std::uint64_t seed);

}
