#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace atlas
{

/// The largest number of pixels of an image that is read or made: 2^27, about 0.8 GB in memory.
constexpr std::int64_t MaximumPixels = std::int64_t{ 1 } << 27;

/// An image in memory.
struct Picture
{
  std::int64_t height = 0;           ///< pixels
  std::int64_t width = 0;            ///< pixels
  std::uint16_t maximum = 255;       ///< the value of full brightness: 255 or 65535
  std::vector<std::uint16_t> pixels; ///< [height, width, 3]: red, green, blue; top row first
};

/// Whether the first bytes of a file are those of PNG or JPEG. Throws FileError.
bool IsPicture(const std::string& path);

struct PictureFile
{
  Picture picture;
  bool hasTransparency = false; ///< in the file; `picture` has none
};

/// Decodes a PNG or JPEG file. Gray becomes three equal channels, palettes are resolved and alpha
/// is dropped; color profiles and EXIF orientation are not applied. Throws FileError if the file
/// cannot be read. Throws FormatError, with the name of the file, if it is neither PNG nor JPEG, is
/// damaged or truncated, has more than MaximumPixels pixels, or is a JPEG file that is neither gray
/// nor RGB.
PictureFile ReadPicture(const std::string& path);

}
