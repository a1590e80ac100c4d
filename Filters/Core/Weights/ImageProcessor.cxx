#include "ImageProcessor.h"

#include "Base/Error.h"
#include "Base/TextEnds.h"
#include "Files/JsonSettings.h"
#include "Files/JsonText.h"
#include "Files/MappedFile.h"
#include "Files/PictureFile.h"
#include "Internal/SettingRoles.h"

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

/// The type that a file names; empty if it names none.
std::string TypeName(const Settings& settings)
{
  return settings.Text({ "image_processor_type", "feature_extractor_type" }, "");
}

/// Whether a single number is the length of the shorter side, as in the original code of some.
bool SizeIsShorterSide(const Settings& settings)
{
  const std::string type = TypeName(settings);
  const std::array<std::string_view, 5> types = { "Bit", "CLIP", "ChineseCLIP", "Llava", "Siglip" };
  return std::any_of(
    types.begin(), types.end(), [&](std::string_view name) { return BeginsWith(type, name); });
}

using Colors = std::array<double, Channels>;
constexpr Colors Halves = { 0.5, 0.5, 0.5 };
constexpr Colors ImageNetMean = { 0.485, 0.456, 0.406 };
constexpr Colors ImageNetDeviation = { 0.229, 0.224, 0.225 };

/// A class of the original's processors, by what its name begins with, and the settings that a file
/// may leave out. Its own size and that of what is cut out are those of the model here.
struct ProcessorKind
{
  ResampleFilter filter;
  Colors mean;
  Colors deviation;
  bool crops;
  bool hasShorterSide;   ///< the size is the length of the shorter side
  std::int64_t side = 0; ///< of pictures before the middle is cut out; 0: the model's
};
constexpr std::array<Named<ProcessorKind>, 9> ProcessorKinds = { {
  { "Beit", { ResampleFilter::Bicubic, Halves, Halves, false, false } },
  { "Bit", { ResampleFilter::Bicubic, ClipMean, ClipDeviation, true, true } },
  { "CLIP", { ResampleFilter::Bicubic, ClipMean, ClipDeviation, true, true } },
  { "ChineseCLIP", { ResampleFilter::Bicubic, ClipMean, ClipDeviation, true, true } },
  { "DINOv3ViT", { ResampleFilter::Bilinear, ImageNetMean, ImageNetDeviation, false, false } },
  { "DeiT", { ResampleFilter::Bicubic, Halves, Halves, true, false, 256 } },
  { "Siglip", { ResampleFilter::Bicubic, Halves, Halves, false, false } },
  { "Siglip2", { ResampleFilter::Bilinear, Halves, Halves, false, false } },
  { "ViT", { ResampleFilter::Bilinear, Halves, Halves, false, false } },
} };

/// Sets what the type of a processor says, if the file names one.
void ParseType(const Settings& settings, ImageProcessor& processor)
{
  std::string name = TypeName(settings);
  if (name.empty())
  {
    return;
  }
  const std::string full = name;
  for (const std::string_view ending :
    { "Pil", "Fast", "ImageProcessor", "FeatureExtractor" }) // CLIPImageProcessorFast
  {
    if (EndsWith(name, ending))
    {
      name.resize(name.size() - ending.size());
    }
  }
  const auto* kind = FindNamed(ProcessorKinds, name);
  settings.FailIf(kind == nullptr, "unknown image_processor_type '", full.substr(0, 80),
    "', expected ImageProcessor behind one of ", NamesOf(ProcessorKinds), ".");
  processor.filter = kind->value.filter;
  processor.mean = kind->value.mean;
  processor.deviation = kind->value.deviation;
  processor.crop = kind->value.crops;
  processor.shortestEdge = kind->value.hasShorterSide ? processor.height : 0;
  processor.height = std::max(processor.height, kind->value.side);
  processor.width = std::max(processor.width, kind->value.side);
}

/// Settings that change no pixel of what is read here: pictures have three colors always, and one
/// grid of patches.
constexpr std::string_view HarmlessOfImages =
  "_processor_class _valid_processor_keys auto_map data_format device disable_grouping "
  "do_convert_rgb do_reduce_labels feature_extractor_type image_processor_type input_data_format "
  "pad_size processor_class reduce_labels return_tensors transformers_version";

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
  ParseType(settings, processor);
  settings.RefuseVariants(
    { "keep_aspect_ratio", "size_divisor", "do_grayscale" }, "a step of preprocessing");
  const std::int64_t multiple = settings.Signed({ "ensure_multiple_of" }, 1);
  settings.FailIf(multiple > 1, "'ensure_multiple_of' is ", multiple,
    ", a step of preprocessing that is not known; expected 1.");
  ParseImageSettings(settings, !config.ReadsAnySize(), processor);
  settings.Ignore({ "patch_size" });
  if (config.ReadsAnySize())
  {
    const std::int64_t patch = settings.Size({ "patch_size" }, config.patchHeight);
    settings.FailIf(patch != config.patchHeight, "expected 'patch_size' to be the model's ",
      config.patchHeight, ", found ", patch, ".");
    processor.maximumPatches =
      settings.Size({ "max_num_patches" }, ImageProcessor().maximumPatches);
    settings.Ignore({ "size", "crop_size", "do_center_crop" });
  }
  processor.unknownSettings = UnknownSettings(settings, HarmlessOfImages);
  return processor;
}

std::vector<std::string> UnknownSettings(const Settings& settings, std::string_view known)
{
  std::vector<std::string> unknown;
  for (const Settings::Unread& unread : settings.FindUnread())
  {
    if (!HasWord(known, unread.key) && !IsOff(*unread.value))
    {
      unknown.push_back(unread.place + unread.key);
    }
  }
  return unknown;
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
