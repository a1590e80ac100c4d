#pragma once

#include "Base/NamedValues.h"
#include "TransformerConfig.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace atlas
{

class Settings; // Files/JsonSettings.h

/// Resampling filters, numbered as in Pillow.
enum class ResampleFilter
{
  Nearest = 0,
  Lanczos = 1, ///< support 3
  Bilinear = 2,
  Bicubic = 3, ///< a = -1/2
  Box = 4,
  Hamming = 5
};

/// Whose arithmetic pixels are made with. Those of resized pictures differ by a gray level in some
/// places.
enum class PixelMaker
{
  Pillow,     ///< as the processors of transformers 4, and those of Pillow in 5
  Torchvision ///< as those that transformers 5 takes by default: weights have 16 bits, Bicubic is
              ///< in place of Lanczos, and both steps of normalization are one
};

/// Their names in files and data objects, in this order.
inline constexpr std::array<Named<PixelMaker>, 2> PixelMakers = { {
  { "pillow", PixelMaker::Pillow },
  { "torchvision", PixelMaker::Torchvision },
} };

inline std::string_view Name(PixelMaker maker)
{
  return PixelMakers[static_cast<std::size_t>(maker)].name;
}

/// Height and width in pixels.
using ImageSize = std::pair<std::int64_t, std::int64_t>;

/// A size for messages, width first.
std::string SizeText(ImageSize size);

/// How images are converted to the input of a vision transformer (Dosovitskiy et al. 2021), as in
/// Hugging Face's ViTImageProcessor. The steps are applied in the order of the members.
struct ImageProcessor
{
  bool resize = true;
  std::int64_t height = 0;       ///< pixels after resizing
  std::int64_t width = 0;        ///< pixels after resizing
  std::int64_t shortestEdge = 0; ///< unless 0, the length of the shorter side after resizing; the
                                 ///< longer side, rounded down, keeps the aspect ratio
  ResampleFilter filter = ResampleFilter::Bilinear;
  bool crop = false;
  std::int64_t cropHeight = 0; ///< pixels kept in the center; smaller images are padded with black
  std::int64_t cropWidth = 0;  ///< pixels
  bool rescale = true;
  double factor = 1 / 255.0; ///< applied to values from 0 to 255
  bool normalize = true;     ///< (value - mean) / deviation
  std::array<double, 3> mean = { 0.5, 0.5, 0.5 };
  std::array<double, 3> deviation = { 0.5, 0.5, 0.5 };

  std::int64_t modelHeight = 0; ///< input size of the model, in pixels
  std::int64_t modelWidth = 0;  ///< pixels

  std::int64_t maximumPatches = 256; ///< of a picture for an encoder of any grid (SigLIP 2)

  PixelMaker maker = PixelMaker::Pillow; ///< no setting of models' files

  std::vector<std::string> unknownSettings; ///< names of settings in the file that are not known,
                                            ///< for a warning
};

/// The mean and deviation of CLIP's colors.
inline constexpr std::array<double, 3> ClipMean = { 0.48145466, 0.4578275, 0.40821073 };
inline constexpr std::array<double, 3> ClipDeviation = { 0.26862954, 0.26130258, 0.27577711 };

/// The processor of a model without a preprocessor_config.json: the image size of the model and the
/// defaults above. Throws ModelError if the model's images do not have 3 channels.
ImageProcessor DefaultImageProcessor(const TransformerConfig& config);

/// Reads the text of a preprocessor_config.json: do_resize, size (an integer, [height, width], or
/// an object of height and width or of shortest_edge; an integer is a shortest_edge for the
/// image_processor_type or feature_extractor_type of CLIP, DINOv2, LLaVA and SigLIP), resample,
/// do_center_crop, crop_size, do_rescale, rescale_factor, do_normalize, image_mean and image_std.
/// Missing settings have the default of the type or, if the file names none, of ViT. Throws
/// FormatError if it is not a JSON object, and ModelError for invalid values, a type that is not
/// known, or if an unsupported step is switched on; the message starts with `source`.
ImageProcessor ParseImageProcessor(
  std::string_view text, const std::string& source, const TransformerConfig& config);

/// The file in a model's folder that ReadImageProcessor looks for.
inline constexpr const char* ImageProcessorFile = "preprocessor_config.json";

/// Reads the preprocessor_config.json of a model's folder, or returns the default if there is none.
/// Throws as ParseImageProcessor does, and FileError.
ImageProcessor ReadImageProcessor(
  const std::filesystem::path& folder, const TransformerConfig& config);

/// Gives a model whose positions fit any size of images (TransformerConfig::positionSide) the size
/// of those that the preprocessor_config.json of its folder makes, if it makes all alike. Throws as
/// ReadImageProcessor does, and ModelError if they are smaller than a patch or too large.
void AdoptImageSize(TransformerConfig& config, const std::filesystem::path& folder);

/// The settings of a processor as the text of a preprocessor_config.json, from which
/// ParseImageProcessor makes the same one for a model of the same image size.
std::string ToJson(const ImageProcessor& processor);

/// Reads the settings of a preprocessor_config.json that ParseImageProcessor names into a processor
/// with the values of missing ones. Unless `hasSizes`, `size` and `crop_size` are left out, which
/// have another meaning for some processors. Throws ModelError as ParseImageProcessor.
void ParseImageSettings(const Settings& settings, bool hasSizes, ImageProcessor& processor);

/// The names of the settings that were not read and are not among the words of `known`, unless they
/// are off.
std::vector<std::string> UnknownSettings(const Settings& settings, std::string_view known);

/// Throws ModelError if pictures would be padded.
void RefusePadding(const Settings& settings);

}
