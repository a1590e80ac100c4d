#pragma once

#include "Files/PictureFile.h"
#include "LearningRandom.h"

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

/// The number of pictures that are held out, 20 of each class.
inline constexpr std::int64_t HeldOutPictures = 200;

/// Draws a picture with noise. The classes follow each other by `index`, the place in a batch.
///
/// Hue gradients: a third to two thirds of the color circle from one side to the other, at constant
/// saturation and value. Brightness gradients: from dark to bright, or the reverse, at constant hue
/// and saturation. Stripes: two colors, each period 5 to 10 pixels; diagonal ones rise or fall.
/// Disc, square and triangle: of one color, on another one, anywhere, 10 to 20 pixels wide. The two
/// colors are at least half of the cube's side apart. The noise is uniform in +-10 of 255.
ColorPicture DrawColorPicture(LearningRandom& random, std::int64_t index);

}
