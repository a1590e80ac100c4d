#pragma once

#include "PictureFile.h"
#include "TransformerConfig.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// Ways to resample, by Pillow's numbers.
enum class ResampleFilter
{
  Nearest = 0,
  Lanczos = 1, ///< of support 3
  Bilinear = 2,
  Bicubic = 3, ///< with a = -1/2
  Box = 4,
  Hamming = 5
};

/// A picture of another size, as Pillow's Image.resize makes it, to the byte for 8 bits.
///
/// Except for Nearest, a pixel is the average of those around its centre, first along rows and then
/// along columns, rounded to whole numbers after each, and only where the size changes. The weights
/// are those of the filter, whose support grows with the factor by which the picture shrinks, add
/// up to 1, and are rounded to multiples of 2^-22.
///
/// Throws OptionError if the new size is not positive, or more than MaximumPixels would have to be
/// held.
Picture Resample(
  const Picture& picture, std::int64_t height, std::int64_t width, ResampleFilter filter);

/// How pictures become the input of a vision transformer: Hugging Face's ViTImageProcessor, whose
/// steps are taken in the order of the members.
struct ImageProcessor
{
  bool resize = true;
  std::int64_t height = 0;       ///< pixels after resizing
  std::int64_t width = 0;        ///< pixels after resizing
  std::int64_t shortestEdge = 0; ///< unless 0, the shorter side after resizing instead of both: the
                                 ///< longer one, rounded down, keeps the proportion
  ResampleFilter filter = ResampleFilter::Bilinear;
  bool crop = false;
  std::int64_t cropHeight = 0; ///< pixels in the middle that are kept; black is added to less
  std::int64_t cropWidth = 0;  ///< pixels
  bool rescale = true;
  double factor = 1 / 255.0; ///< of values from 0 to 255
  bool normalize = true;     ///< (value - mean) / deviation
  std::array<double, 3> mean = { 0.5, 0.5, 0.5 };
  std::array<double, 3> deviation = { 0.5, 0.5, 0.5 };

  std::int64_t modelHeight = 0; ///< pixels that the model expects
  std::int64_t modelWidth = 0;  ///< pixels
};

/// The processor of a model without a preprocessor_config.json: its image size, and else the
/// defaults above. Throws ModelError if its images have other than 3 channels.
ImageProcessor DefaultImageProcessor(const TransformerConfig& config);

/// Reads the text of a preprocessor_config.json: do_resize, size (an integer, [height, width], or
/// an object of height and width or of shortest_edge), resample, do_center_crop, crop_size,
/// do_rescale, rescale_factor, do_normalize, image_mean and image_std. What it leaves out is the
/// default. Throws FormatError if it is not a JSON object, ModelError for values that cannot be and
/// for other steps that are switched on; the message starts with `source`.
ImageProcessor ParseImageProcessor(
  std::string_view text, const std::string& source, const TransformerConfig& config);

/// The file of a model's folder that ReadImageProcessor looks for.
inline constexpr const char* ImageProcessorFile = "preprocessor_config.json";

/// Reads the preprocessor_config.json of a model's folder, or gives the default where there is
/// none. Throws FileError too.
ImageProcessor ReadImageProcessor(
  const std::filesystem::path& folder, const TransformerConfig& config);

/// A picture as the model takes it, [3, height, width]. Throws OptionError, which tells both sizes,
/// if the steps do not end in that of the model, and as Resample does.
std::vector<float> Preprocess(Picture picture, const ImageProcessor& processor);

}
