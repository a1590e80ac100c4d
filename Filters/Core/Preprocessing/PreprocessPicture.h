#pragma once

#include "Files/PictureFile.h"
#include "Weights/ImageProcessor.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace atlas
{

inline constexpr std::size_t Channels = 3; ///< of the pictures that models see

/// Resizes an image like Pillow's Image.resize, or like torchvision's resize of bytes with
/// antialias, with the same bytes for 8-bit images.
///
/// Except for Nearest, each pixel is a weighted average of the pixels around its center. Pixels are
/// averaged first along rows, then along columns, each only if that size changes, and the result of
/// each pass is rounded to integers. The weights come from the filter, whose support grows with the
/// factor by which the image shrinks. They add up to 1 and are rounded to multiples of 2^-22, of
/// Torchvision to the smallest such unit with which the largest weight has 15 bits.
///
/// Throws OptionError if the new size is not positive, or if more than MaximumPixels would have to
/// be stored, and for a filter that torchvision does not have.
Picture Resample(const Picture& picture, std::int64_t height, std::int64_t width,
  ResampleFilter filter, PixelMaker maker = PixelMaker::Pillow);

/// A picture in the middle of a larger one, or of a square, whose other pixels have a color from 0
/// to 1, rounded down to bytes. An odd difference leaves one more pixel at the right or below.
/// Throws OptionError if more than MaximumPixels would have to be stored.
Picture PadTo(const Picture& picture, ImageSize size, const std::array<double, 3>& color);
Picture PadToSquare(const Picture& picture, const std::array<double, 3>& color);

/// The steps of Preprocess up to cropping. Throws as Preprocess does.
Picture ResizeAndCrop(Picture picture, const ImageProcessor& processor);

/// The brightness of a channel, from 0 to 1, that Preprocess turned into `value`: the normalization
/// is taken back. A value that it makes of no brightness gives the nearest one.
inline double Brightness(const ImageProcessor& processor, std::size_t channel, float value)
{
  const double gain = processor.normalize ? processor.deviation[channel] : 1;
  const double offset = processor.normalize ? processor.mean[channel] : 0;
  const double full = processor.rescale ? processor.factor * 255 : 255; // of a white pixel
  const double brightness = (static_cast<double>(value) * gain + offset) / full;
  return brightness > 0 ? std::min(brightness, 1.0) : 0; // 0 for NaN, if `factor` is 0
}

/// The last steps of Preprocess, rescaling and normalization: [3, height, width].
std::vector<float> Normalized(const Picture& picture, const ImageProcessor& processor);

/// Converts an image to the input of the model, [3, height, width]. Throws OptionError with both
/// sizes if the result does not have the size that the model expects, and as Resample does.
std::vector<float> Preprocess(Picture picture, const ImageProcessor& processor);

}
