#include "ImageProcessor.h"

#include "Base/Error.h"
#include "Base/TextEnds.h"
#include "Files/JsonSettings.h"
#include "Files/JsonText.h"
#include "Files/MappedFile.h"
#include "Files/PictureFile.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

namespace atlas
{
namespace
{

constexpr std::size_t Channels = 3;

/// Our own setting, of recordings.
constexpr const char* MakerKey = "atlas_pixels";

/// Reads a size that is an integer, a pair or an object of height and width.
ImageSize ParseSize(const Settings& settings, const char* key, ImageSize otherwise)
{
  if (settings.IsNested({ key }))
  {
    const Settings size = settings.NestedOrEmpty({ key });
    return { size.Size({ "height" }), size.Size({ "width" }) };
  }
  return settings.Has({ key }) ? settings.Extent({ key }, 0) : otherwise;
}

/// Whether a single number is the length of the shorter side, as in the original code of some.
bool SizeIsShorterSide(const Settings& settings)
{
  const std::string type = settings.Text({ "image_processor_type", "feature_extractor_type" }, "");
  const std::array<std::string_view, 5> types = { "Bit", "CLIP", "ChineseCLIP", "Llava", "Siglip" };
  return std::any_of(
    types.begin(), types.end(), [&](std::string_view name) { return BeginsWith(type, name); });
}

void ParseResize(const Settings& settings, ImageProcessor& processor)
{
  const auto size = settings.IsNested({ "size" }) ? settings.Nested({ "size" }) : std::nullopt;
  if (size && size->Has({ "shortest_edge" }))
  {
    size->RefuseVariants({ "longest_edge", "max_height", "max_width" }, "a bound of sizes");
    processor.shortestEdge = size->Size({ "shortest_edge" });
  }
  else if (settings.Has({ "size" }))
  {
    processor.shortestEdge = 0;
    std::tie(processor.height, processor.width) = ParseSize(settings, "size", { 0, 0 });
    if (settings.Value({ "size" })->is_number() && SizeIsShorterSide(settings))
    {
      processor.shortestEdge = processor.height;
    }
  }
}

void ParseFilter(const Settings& settings, ImageProcessor& processor)
{
  const double filter =
    settings.Number({ "resample" }, static_cast<double>(processor.filter), true);
  settings.FailIf(filter > 5 || filter != std::floor(filter), "unknown resample ", filter,
    ", expected 0 (nearest), 1 (Lanczos), 2 (bilinear), 3 (bicubic), 4 (box) or 5 "
    "(Hamming).");
  processor.filter = static_cast<ResampleFilter>(filter);
}

/// Reads one number per channel.
void ParseChannels(
  const Settings& settings, const char* key, std::array<double, Channels>& channels)
{
  if (settings.Has({ key }))
  {
    const std::vector<double> numbers = settings.Numbers({ key }, Channels, 0.5);
    channels = { numbers[0], numbers[1], numbers[2] };
  }
}

}

std::string SizeText(ImageSize size)
{
  return std::to_string(size.second) + " x " + std::to_string(size.first) +
         " pixels (width x height)";
}

ImageProcessor DefaultImageProcessor(const TransformerConfig& config)
{
  ThrowIf<ModelError>(config.channels != static_cast<std::int64_t>(Channels),
    "expected a model for images with 3 channels, "
    "found one of architecture ",
    config.architecture, " with ", config.channels, ".");
  ImageProcessor processor;
  processor.height = processor.cropHeight = processor.modelHeight = config.imageHeight;
  processor.width = processor.cropWidth = processor.modelWidth = config.imageWidth;
  return processor;
}

ImageProcessor ParseImageProcessor(
  std::string_view text, const std::string& source, const TransformerConfig& config)
{
  const nlohmann::json object = ParseJsonObject(text, source, "the configuration");
  ImageProcessor processor = DefaultImageProcessor(config);
  const Settings settings(object, source);
  RefusePadding(settings);
  ParseImageSettings(settings, !config.ReadsAnySize(), processor);
  if (config.ReadsAnySize())
  {
    processor.maximumPatches =
      settings.Size({ "max_num_patches" }, ImageProcessor().maximumPatches);
  }
  return processor;
}

void RefusePadding(const Settings& settings)
{
  settings.RefuseVariants({ "do_pad" }, "a step of preprocessing");
}

void ParseImageSettings(const Settings& settings, bool hasSizes, ImageProcessor& processor)
{
  settings.RefuseVariants(
    { "do_flip_channel_order", "do_align_long_axis", "do_thumbnail", "crop_pct", "offset" },
    "a step of preprocessing");
  processor.resize = settings.Flag({ "do_resize" }, true);
  if (hasSizes)
  {
    ParseResize(settings, processor);
    processor.crop = settings.Flag({ "do_center_crop" }, processor.crop);
    std::tie(processor.cropHeight, processor.cropWidth) =
      ParseSize(settings, "crop_size", { processor.cropHeight, processor.cropWidth });
  }
  ParseFilter(settings, processor);
  processor.maker = settings.Choice({ MakerKey }, std::string(Name(processor.maker)), PixelMakers);
  processor.rescale = settings.Flag({ "do_rescale" }, true);
  processor.factor = settings.Number({ "rescale_factor" }, processor.factor);
  processor.normalize = settings.Flag({ "do_normalize" }, true);
  ParseChannels(settings, "image_mean", processor.mean);
  ParseChannels(settings, "image_std", processor.deviation);
  for (const double deviation : processor.deviation)
  {
    settings.FailIf(static_cast<float>(deviation) <= 0,
      "expected 'image_std' to be positive, found ", deviation, ".");
  }
}

ImageProcessor ReadImageProcessor(
  const std::filesystem::path& folder, const TransformerConfig& config)
{
  const std::filesystem::path path = folder / ImageProcessorFile;
  if (!std::filesystem::exists(path))
  {
    return DefaultImageProcessor(config);
  }
  return ParseImageProcessor(ReadFile(path), path.string(), config);
}

void AdoptImageSize(TransformerConfig& config, const std::filesystem::path& folder)
{
  if (config.positionSide == 0 || config.ReadsAnySize() ||
      !std::filesystem::exists(folder / ImageProcessorFile))
  {
    return;
  }
  const ImageProcessor processor = ReadImageProcessor(folder, config);
  const ImageSize size = processor.crop ? ImageSize{ processor.cropHeight, processor.cropWidth }
                         : processor.resize && processor.shortestEdge == 0
                           ? ImageSize{ processor.height, processor.width }
                           : ImageSize{ config.imageHeight, config.imageWidth };
  if (size.first < config.patchHeight || size.second < config.patchWidth ||
      size.first > MaximumPixels / size.second)
  {
    throw ModelError((folder / ImageProcessorFile).string(), ": expected images of a patch, ",
      SizeText({ config.patchHeight, config.patchWidth }), ", to ", MaximumPixels,
      " pixels, found ", SizeText(size), ".");
  }
  std::tie(config.imageHeight, config.imageWidth) = size;
  config.positions = config.PatchRows() * config.PatchColumns() + config.TokensBeforePatches();
}

std::string ToJson(const ImageProcessor& processor)
{
  nlohmann::json size = { { "height", processor.height }, { "width", processor.width } };
  if (processor.shortestEdge != 0)
  {
    size = { { "shortest_edge", processor.shortestEdge } };
  }
  nlohmann::json settings = {
    { "do_resize", processor.resize },
    { "size", size },
    { "resample", static_cast<int>(processor.filter) },
    { "do_center_crop", processor.crop },
    { "crop_size", { { "height", processor.cropHeight }, { "width", processor.cropWidth } } },
    { "do_rescale", processor.rescale },
    { "rescale_factor", processor.factor },
    { "do_normalize", processor.normalize },
    { "image_mean", processor.mean },
    { "image_std", processor.deviation },
  };
  if (processor.maker != PixelMaker::Pillow)
  {
    settings[MakerKey] = Name(processor.maker);
  }
  return settings.dump();
}

}
