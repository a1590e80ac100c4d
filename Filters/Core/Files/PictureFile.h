#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace atlas
{

/// Pixels of the largest picture that is read or made: 2^27, some 0.8 GB in memory.
constexpr std::int64_t MaximumPixels = std::int64_t{ 1 } << 27;

/// A picture in memory.
struct Picture
{
  std::int64_t height = 0;           ///< pixels
  std::int64_t width = 0;            ///< pixels
  std::uint16_t maximum = 255;       ///< the value of full brightness: 255 or 65535
  std::vector<std::uint16_t> pixels; ///< [height, width, 3], red, green, blue, from the uppermost
                                     ///< row
};

/// Whether a file begins as PNG and JPEG do. Throws FileError.
bool IsPicture(const std::string& path);

struct PictureFile
{
  Picture picture;
  bool hasTransparency = false; ///< which the picture lacks
};

/// Decodes a PNG or JPEG file: gray has three equal channels, palettes are looked up, alpha is left
/// out, colour profiles and an orientation in EXIF are not applied. Throws FileError, or
/// FormatError naming the file if it is neither, is damaged or cut off, has more than
/// MaximumPixels, or other than gray or red, green and blue in JPEG.
PictureFile ReadPicture(const std::string& path);

}
