#pragma once

#include "ImageProcessor.h"
#include "JsonSettings.h"

#include <array>

namespace atlas
{

/// Reads the settings of a preprocessor_config.json that ParseImageProcessor names into a processor
/// with the values of missing ones. Unless `hasSizes`, `size` and `crop_size` are left out, which
/// have another meaning for some processors. Throws ModelError as ParseImageProcessor.
void ParseImageSettings(const Settings& settings, bool hasSizes, ImageProcessor& processor);

/// Throws ModelError if pictures would be padded.
void RefusePadding(const Settings& settings);

/// A picture in the middle of a square, whose other pixels have a color from 0 to 1, rounded down
/// to bytes. An odd difference leaves one more pixel at the right or below. Throws OptionError if
/// more than MaximumPixels would have to be stored.
Picture PadToSquare(const Picture& picture, const std::array<double, 3>& color);

}
