#pragma once

#include "ImageProcessor.h"
#include "Recording.h"
#include "TransformerConfig.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace atlas
{

/// The most bytes of pixels that a recording holds by default: 256 MiB, about 1,780 pictures of 224
/// x 224 pixels.
inline constexpr std::uint64_t MaximumPictureBytes = std::uint64_t{ 1 } << 28U;

/// The bytes of the pictures of this number of images.
std::uint64_t PictureBytes(const TransformerConfig& config, std::int64_t images);

/// The pictures that a model sees, from its input `pixels` [images, 3, height, width]: the
/// normalization of `processor` is taken back (Brightness) and each channel rounded to 8 bits.
/// Those of files are exactly the resized and cropped pixels; 16-bit files are rounded. The model's
/// images must have 3 channels.
///
/// With `keepPixels` the pixels themselves are recorded. Otherwise only the names of `files`, one
/// per image, with a hash of the pixels; nothing if `files` is empty.
RecordedPictures RecordPictures(const std::vector<float>& pixels, const TransformerConfig& config,
  const ImageProcessor& processor, const std::vector<std::string>& files, bool keepPixels);

/// The pixels [height, width, 3] of the picture of a sequence, top row first: those recorded, or
/// those of its file, read and processed again. Throws OptionError, with the file, if it is missing
/// or no picture, or if its pixels have changed since they were recorded; FileError if the file
/// that the recording is mapped from was truncated or changed. There must be pictures.
std::shared_ptr<const std::uint8_t> FindPicture(
  const RecordedPictures& pictures, std::int64_t sequence);

/// A hash of the size and the pixels of a picture, of 64 bits in hexadecimal (FNV-1a).
std::string PictureHash(const std::uint8_t* pixels, std::int64_t height, std::int64_t width);

}
