#pragma once

#include "ImageProcessor.h"

#include <string>

/// Pictures in files.
namespace AttentionAtlas
{

/// Whether a file begins as PNG and JPEG do. Throws atlas::FileError.
bool IsPicture(const std::string& path);

struct PictureFile
{
  atlas::Picture picture;
  bool hasTransparency = false; ///< which the picture lacks
};

/// Decodes a PNG or JPEG file: gray has three equal channels, palettes are looked up, alpha is left
/// out, colour profiles and an orientation in EXIF are not applied. Throws atlas::FileError, or
/// atlas::FormatError naming the file if it is neither, is damaged or cut off, has more than
/// atlas::MaximumPixels, or other than gray or red, green and blue in JPEG.
PictureFile ReadPicture(const std::string& path);

}
