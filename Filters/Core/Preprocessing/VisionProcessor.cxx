#include "VisionProcessor.h"

#include "Base/Error.h"
#include "Base/NamedValues.h"
#include "Base/TextEnds.h"
#include "Files/JsonSettings.h"
#include "Files/JsonText.h"
#include "Files/MappedFile.h"
#include "PictureTokens.h"
#include "PreprocessPicture.h"

#include <algorithm>
#include <array>
#include <memory>
#include <tuple>
#include <utility>

namespace atlas
{
namespace
{

using nlohmann::json;

/// The most tiles that a grid may have.
constexpr std::int64_t MostTiles = 1000;

/// The numbers of pixels of a frame, and of a picture, of any size if the file does not say.
constexpr std::pair<std::int64_t, std::int64_t> VideoPixels = { 128 * 28 * 28, 768 * 28 * 28 };
constexpr std::pair<std::int64_t, std::int64_t> PicturePixels = { 56 * 56, 1280 * 28 * 28 };

/// The processor that can pad pictures to squares.
constexpr const char* PaddingType = "LlavaImageProcessor";

/// The processor of pictures of any size whose sides have a bound.
constexpr const char* FittingType = "PixtralImageProcessor";

/// The known values of image_processor_type, without an ending Fast.
struct ProcessorType
{
  const char* name;
  PictureSteps value;
  bool isClips; ///< whether missing settings are those of CLIP
};
constexpr std::array<ProcessorType, 12> ProcessorTypes = { {
  { "CLIPImageProcessor", PictureSteps::Whole, true },
  { PaddingType, PictureSteps::Whole, true },
  { "SiglipImageProcessor", PictureSteps::Whole, false },
  { "ViTImageProcessor", PictureSteps::Whole, false },
  { "Gemma3ImageProcessor", PictureSteps::Whole, false },
  { "GotOcr2ImageProcessor", PictureSteps::Grid, true },
  { "SmolVLMImageProcessor", PictureSteps::Split, false },
  { "Idefics3ImageProcessor", PictureSteps::Split, false },
  { "Qwen2VLImageProcessor", PictureSteps::AnySize, true },
  { "Qwen2_5_VLImageProcessor", PictureSteps::AnySize, true },
  { FittingType, PictureSteps::AnySize, true },
  { "LlavaOnevisionImageProcessor", PictureSteps::Padded, true },
} };

/// The processor of videos whose numbers of pixels are those of all frames, and these numbers.
constexpr const char* CountingType = "Qwen3VLVideoProcessor";
constexpr std::pair<std::int64_t, std::int64_t> AllPixels = { 128 * 32 * 32, 768 * 32 * 32 };

/// The known values of video_processor_type, by what a model's pictures become.
constexpr std::array<ProcessorType, 4> VideoTypes = { {
  { "Qwen2VLVideoProcessor", PictureSteps::AnySize, true },
  { CountingType, PictureSteps::AnySize, false },
  { "InternVLVideoProcessor", PictureSteps::Grid, true },
  { "SmolVLMVideoProcessor", PictureSteps::Split, false },
} };

/// Settings that change no pixel of what is read here, or that the original reads in other steps:
/// which frames are chosen, and tiles of whatever crop_to_patches says.
constexpr std::string_view HarmlessOfPictures =
  "_processor_class _valid_processor_keys auto_map chat_template crop_size crop_to_patches "
  "data_format default_to_square device disable_grouping do_center_crop do_convert_rgb do_pad "
  "do_pan_and_scan do_sample_frames feature_extractor_type fps image_grid_pinpoints "
  "image_seq_length initial_shift input_data_format max_frames max_video_tokens min_frames "
  "model_size num_frames pad_size pan_and_scan_max_num_crops pan_and_scan_min_crop_size "
  "pan_and_scan_min_ratio_to_activate patch_size processor_class return_metadata "
  "return_row_col_info return_tensors size transformers_version video_metadata video_sampling";

/// The type of a model whose file does not say.
const ProcessorType& TypeOf(const TransformerConfig& config)
{
  const VisionConfig& vision = *config.vision;
  const bool isAnySize = vision.encoder->ReadsAnySize();
  const std::string& name = config.architecture;
  return *FindNamed(ProcessorTypes, vision.joinsByMatrix        ? FittingType
                                    : isAnySize                 ? "Qwen2VLImageProcessor"
                                    : !vision.gridSizes.empty() ? "LlavaOnevisionImageProcessor"
                                    : vision.averages           ? "Gemma3ImageProcessor"
                                    : name == "internvl"        ? "GotOcr2ImageProcessor"
                                    : name == "smolvlm" || name == "idefics3"
                                      ? "SmolVLMImageProcessor"
                                      : "CLIPImageProcessor");
}

const ProcessorType& ParseType(const Settings& settings, const TransformerConfig& config)
{
  std::string name = settings.Text({ "image_processor_type" }, TypeOf(config).name);
  constexpr std::string_view ending = "Fast";
  if (name.size() > ending.size() && EndsWith(name, ending))
  {
    name.resize(name.size() - ending.size());
  }
  const ProcessorType* type = FindNamed(ProcessorTypes, name);
  if (type == nullptr)
  {
    settings.Fail("unknown image_processor_type '", name.substr(0, 80), "', expected one of ",
      NamesOf(ProcessorTypes), ".");
  }
  const bool isAnySize = config.vision->encoder->ReadsAnySize();
  if ((type->value == PictureSteps::AnySize) != isAnySize)
  {
    settings.Fail("expected an image_processor_type for ",
      isAnySize ? "pictures of any size" : "images of one size",
      ", since the model reads these, found '", name, "'.");
  }
  const bool isPadded = !config.vision->gridSizes.empty();
  settings.FailIf((type->value == PictureSteps::Padded) != isPadded,
    "expected an image_processor_type ", isPadded ? "for" : "without",
    " tiles of padded pictures, ", isPadded ? "which the model reads" : "as the model reads others",
    ", found '", name, "'.");
  return *type;
}

bool PadsToSquares(const ProcessorType& type)
{
  return type.name == std::string_view(PaddingType);
}

/// The settings that images share with ImageProcessor.
ImageProcessor ParseBase(
  const Settings& settings, const ProcessorType& type, const TransformerConfig& encoder)
{
  ImageProcessor image = DefaultImageProcessor(encoder);
  if (type.isClips)
  {
    image.filter = ResampleFilter::Bicubic;
    image.mean = ClipMean;
    image.deviation = ClipDeviation;
  }
  if (type.isClips && type.value == PictureSteps::Whole)
  {
    image.shortestEdge = encoder.imageHeight;
    image.crop = true;
  }
  if (type.value == PictureSteps::Split)
  {
    image.filter = ResampleFilter::Lanczos;
  }
  const bool isPadded = type.value == PictureSteps::Padded;
  const bool hasSizes =
    type.value == PictureSteps::Whole || type.value == PictureSteps::Grid || isPadded;
  if (hasSizes && !PadsToSquares(type) && !isPadded)
  {
    RefusePadding(settings);
  }
  ParseImageSettings(settings, hasSizes, image);
  return image;
}

/// Throws ModelError unless a size is the model's.
void RequireModelSize(const Settings& settings, const std::string& name, ImageSize found,
  const TransformerConfig& encoder)
{
  const ImageSize expected = { encoder.imageHeight, encoder.imageWidth };
  settings.FailIf(found != expected, "expected '", name, "' to be the model's ", expected.first,
    " x ", expected.second, " pixels (height x width), found ", found.first, " x ", found.second,
    ".");
}

void ParseGrid(
  const Settings& settings, const TransformerConfig& encoder, VisionProcessor& processor)
{
  settings.FailIf(processor.image.shortestEdge != 0,
    "expected 'size' to have a height and a width, found 'shortest_edge'.");
  RequireModelSize(settings, "size", { processor.image.height, processor.image.width }, encoder);
  const auto count = [&settings](const char* name, std::int64_t otherwise)
  { return settings.Signed({ name }, otherwise, 1, MostTiles); };
  processor.minimumTiles = count("min_patches", 1);
  processor.maximumTiles = count("max_patches", 12);
  settings.FailIf(processor.minimumTiles > processor.maximumTiles,
    "expected 'min_patches' to be at most 'max_patches', ", processor.maximumTiles, ", found ",
    processor.minimumTiles, ".");
}

void ParseSplit(
  const Settings& settings, const TransformerConfig& encoder, VisionProcessor& processor)
{
  settings.FailIf(encoder.imageHeight != encoder.imageWidth,
    "expected a model of square tiles, found one of ", encoder.imageHeight, " x ",
    encoder.imageWidth, " pixels (height x width).");
  const auto tile = settings.Nested({ "max_image_size" });
  const std::int64_t side =
    tile ? tile->Size({ "longest_edge" }) : static_cast<std::int64_t>(encoder.imageHeight);
  RequireModelSize(settings, "max_image_size", { side, side }, encoder);
  processor.splits = settings.Flag({ "do_image_splitting" }, true);
  const auto size = settings.Nested({ "size" });
  processor.longestEdge = size ? size->Size({ "longest_edge" }) : 4 * encoder.imageHeight;
}

/// The sizes of all tiles must be those that the model knows.
void ParsePadded(
  const Settings& settings, const TransformerConfig& config, VisionProcessor& processor)
{
  ImageProcessor& image = processor.image;
  const ImageSize size = image.shortestEdge != 0
                           ? ImageSize{ image.shortestEdge, image.shortestEdge }
                           : ImageSize{ image.height, image.width };
  RequireModelSize(settings, "size", size, *config.vision->encoder);
  if (image.crop)
  {
    RequireModelSize(
      settings, "crop_size", { image.cropHeight, image.cropWidth }, *config.vision->encoder);
    image.crop = false; // of tiles of this size nothing is cut off
  }
  image.shortestEdge = 0;
  std::tie(image.height, image.width) = size;
  processor.gridSizes = config.vision->gridSizes;
  json expected = json::array();
  for (const ImageSize& one : processor.gridSizes)
  {
    expected.push_back({ one.first, one.second });
  }
  const json* found = settings.Value({ "image_grid_pinpoints" });
  settings.FailIf(found != nullptr && *found != expected,
    "expected 'image_grid_pinpoints' to be those of the model, ", expected.dump().substr(0, 200),
    ", found ", found == nullptr ? "" : found->dump().substr(0, 200), ".");
}

/// Pixtral: the longest sides of a picture.
void ParseFitted(
  const Settings& settings, const TransformerConfig& config, VisionProcessor& processor)
{
  settings.RefuseVariants({ "do_center_crop" }, "a step of preprocessing");
  const TransformerConfig& encoder = *config.vision->encoder;
  settings.FailIf(encoder.patchHeight != encoder.patchWidth,
    "expected a model of square patches, found patches of ", encoder.patchHeight, " x ",
    encoder.patchWidth, " pixels (height x width).");
  processor.patchSize = encoder.patchHeight; // whatever the settings say, as in the original
  processor.merge = config.vision->merge;
  constexpr std::int64_t side = 1024;
  const auto size = settings.IsNested({ "size" }) ? settings.Nested({ "size" }) : std::nullopt;
  if (size && size->Has({ "longest_edge" }))
  {
    processor.longestHeight = processor.longestWidth = size->Size({ "longest_edge" });
  }
  else if (size)
  {
    processor.longestHeight = size->Size({ "height" });
    processor.longestWidth = size->Size({ "width" });
  }
  else
  {
    std::tie(processor.longestHeight, processor.longestWidth) = settings.Extent({ "size" }, side);
  }
}

/// `pixels`: the fewest and the most of a picture, if the settings do not say.
void ParseAnySize(const Settings& settings, const TransformerConfig& config,
  std::pair<std::int64_t, std::int64_t> pixels, VisionProcessor& processor)
{
  const TransformerConfig& encoder = *config.vision->encoder;
  const auto require = [&settings](const char* name, std::int64_t expected)
  {
    const std::int64_t found = settings.Size({ name }, expected);
    settings.FailIf(found != expected, "expected '", name, "' to be the model's ", expected,
      ", found ", found, ".");
    return found;
  };
  settings.FailIf(encoder.patchHeight != encoder.patchWidth,
    "expected a model of square patches, found patches of ", encoder.patchHeight, " x ",
    encoder.patchWidth, " pixels (height x width).");
  processor.patchSize = require("patch_size", encoder.patchHeight);
  processor.merge = require("merge_size", config.vision->merge);
  processor.patchFrames = require("temporal_patch_size", encoder.patchFrames);
  std::tie(processor.minimumPixels, processor.maximumPixels) = pixels;
  if (const auto size = settings.Nested({ "size" }))
  {
    processor.minimumPixels =
      size->Size({ "shortest_edge", "min_pixels" }, processor.minimumPixels);
    processor.maximumPixels = size->Size({ "longest_edge", "max_pixels" }, processor.maximumPixels);
  }
  processor.minimumPixels = settings.Size({ "min_pixels" }, processor.minimumPixels);
  processor.maximumPixels = settings.Size({ "max_pixels" }, processor.maximumPixels);
  settings.FailIf(processor.minimumPixels > processor.maximumPixels,
    "expected the fewest pixels of a picture to be at most the most, ", processor.maximumPixels,
    ", found ", processor.minimumPixels, ".");
}

/// The part of the settings that is about images, or videos; all of them if there is none.
const json& PartOf(const json& object, const char* name)
{
  const auto part = object.find(name);
  return part != object.end() && part->is_object() ? *part : object;
}

constexpr const char* ImagePart = "image_processor";
constexpr const char* VideoPart = "video_processor";

/// Settings and where they are from.
using FoundSettings = std::pair<json, std::string>;

/// Those of the first of two files of a folder that has them: `name` or, in a part, ProcessorFile.
std::optional<FoundSettings> FindSettings(
  const std::filesystem::path& folder, const char* name, const char* part)
{
  for (const bool isShared : { false, true })
  {
    const std::filesystem::path path = folder / (isShared ? ProcessorFile : name);
    if (!std::filesystem::exists(path))
    {
      continue;
    }
    const std::string text = ReadFile(path);
    const json all = isShared ? ParseJson(text, path.string(), "the configuration")
                              : ParseJsonObject(text, path.string(), "the configuration");
    if (!isShared || (all.is_object() && all.contains(part)))
    {
      return FoundSettings(PartOf(all, part), path.string());
    }
  }
  return std::nullopt;
}

/// What settings say of the type of a processor.
VisionProcessor ParseSteps(const Settings& settings, const ProcessorType& type,
  const TransformerConfig& config, std::pair<std::int64_t, std::int64_t> pixels)
{
  const TransformerConfig& encoder = *config.vision->encoder;
  VisionProcessor processor;
  processor.steps = type.value;
  processor.image = ParseBase(settings, type, encoder);
  switch (processor.steps)
  {
    case PictureSteps::Whole:
      processor.padsToSquare = PadsToSquares(type) && settings.Flag({ "do_pad" }, false);
      break;
    case PictureSteps::Grid:
      ParseGrid(settings, encoder, processor);
      break;
    case PictureSteps::Split:
      ParseSplit(settings, encoder, processor);
      break;
    case PictureSteps::AnySize:
      if (type.name == std::string_view(FittingType))
      {
        ParseFitted(settings, config, processor);
      }
      else
      {
        ParseAnySize(settings, config, pixels, processor);
      }
      break;
    case PictureSteps::Padded:
      ParsePadded(settings, config, processor);
  }
  processor.image.unknownSettings = UnknownSettings(settings, HarmlessOfPictures);
  return processor;
}

VisionProcessor ParseProcessor(
  const json& object, const std::string& source, const TransformerConfig& config)
{
  const Settings settings(object, source);
  return ParseSteps(settings, ParseType(settings, config), config, PicturePixels);
}

/// The processor of videos of a model that reads them.
const ProcessorType& VideoTypeOf(const TransformerConfig& config)
{
  const PictureSteps steps = TypeOf(config).value;
  const bool counts = config.vision->interleavesSections;
  return *std::find_if(VideoTypes.begin(), VideoTypes.end(), [&](const ProcessorType& type)
    { return type.value == steps && (type.name == std::string_view(CountingType)) == counts; });
}

/// A frame is one tile.
void MakeVideoGrid(
  const Settings& settings, const TransformerConfig& encoder, VisionProcessor& processor)
{
  processor.minimumTiles = processor.maximumTiles = 1;
  ImageProcessor& image = processor.image;
  if (image.crop)
  {
    RequireModelSize(settings, "crop_size", { image.cropHeight, image.cropWidth }, encoder);
    image.crop = false; // of frames of this size nothing is cut off
  }
}

/// A frame gets the length of the longer side, then that of a tile, always bicubic in place of
/// Lanczos.
void MakeVideoSplit(const Settings& settings, VisionProcessor& processor)
{
  if (settings.Has({ "video_sampling" }) && !settings.Has({ "size" }))
  {
    const Settings sampling = settings.NestedOrEmpty({ "video_sampling" });
    processor.longestEdge = sampling.NestedOrEmpty({ "video_size" }).Size({ "longest_edge" });
  }
  processor.splits = false;
  processor.longestEdge = std::min(processor.longestEdge, LongestSplit);
  settings.FailIf(!processor.image.resize,
    "expected 'do_resize' to be on, since frames have the size of a tile.");
  if (processor.image.filter == ResampleFilter::Lanczos)
  {
    processor.image.filter = ResampleFilter::Bicubic;
  }
}

VisionProcessor ParseVideo(
  const json& object, const std::string& source, const TransformerConfig& config)
{
  const Settings settings(object, source);
  settings.FailIf(!ReadsVideos(config),
    "expected a model that reads videos, found one of architecture ", config.architecture, ".");
  const ProcessorType& type = VideoTypeOf(config);
  const std::string name = settings.Text({ "video_processor_type" }, type.name);
  settings.FailIf(name != type.name, "expected the video_processor_type '", type.name,
    "' for a model of architecture ", config.architecture, ", found '", name.substr(0, 80), "'.");
  const bool counts = type.name == std::string_view(CountingType);
  VisionProcessor processor = ParseSteps(settings, type, config, counts ? AllPixels : VideoPixels);
  if (counts)
  {
    settings.RefuseVariants({ "cap_pixels_per_frame" }, "a bound of the pixels of a frame");
    processor.countsFrames = true;
    processor.image.filter =
      settings.Has({ "resample" }) ? processor.image.filter : ResampleFilter::Bicubic;
  }
  if (processor.steps == PictureSteps::Grid)
  {
    MakeVideoGrid(settings, *config.vision->encoder, processor);
  }
  else if (processor.steps == PictureSteps::Split)
  {
    MakeVideoSplit(settings, processor);
  }
  return processor;
}

}

bool ReadsVideos(const TransformerConfig& config)
{
  return config.vision != nullptr &&
         (config.vision->videoToken >= 0 || config.architecture == "internvl" ||
           config.architecture == "smolvlm");
}

VisionProcessor DefaultVisionProcessor(const TransformerConfig& config)
{
  return ParseProcessor(json::object(), "the settings of pictures by default", config);
}

VisionProcessor ParseVisionProcessor(
  std::string_view text, const std::string& source, const TransformerConfig& config)
{
  const json object = ParseJsonObject(text, source, "the configuration");
  return ParseProcessor(PartOf(object, ImagePart), source, config);
}

VisionProcessor ReadVisionProcessor(
  const std::filesystem::path& folder, const TransformerConfig& config)
{
  const auto found = FindSettings(folder, ImageProcessorFile, ImagePart);
  return found ? ParseProcessor(found->first, found->second, config)
               : DefaultVisionProcessor(config);
}

VisionProcessor ParseVideoProcessor(
  std::string_view text, const std::string& source, const TransformerConfig& config)
{
  const json object = ParseJsonObject(text, source, "the configuration");
  return ParseVideo(PartOf(object, VideoPart), source, config);
}

VisionProcessor ReadVideoProcessor(
  const std::filesystem::path& folder, const TransformerConfig& config)
{
  std::optional<FoundSettings> found = FindSettings(folder, VideoProcessorFile, VideoPart);
  if (!found && config.vision->encoder->ReadsAnySize())
  {
    return ReadVisionProcessor(folder, config);
  }
  found = found ? found : FindSettings(folder, ImageProcessorFile, ImagePart);
  return found ? ParseVideo(found->first, found->second, config)
               : ParseVideo(json::object(), "the settings of videos by default", config);
}

std::string ToJson(const VisionProcessor& processor)
{
  json settings = json::parse(ToJson(processor.image));
  const auto type = std::find_if(ProcessorTypes.begin(), ProcessorTypes.end(),
    [&](const ProcessorType& known) { return known.value == processor.steps; });
  settings["image_processor_type"] = type->name;
  settings["model_size"] = { processor.image.modelHeight, processor.image.modelWidth };
  switch (processor.steps)
  {
    case PictureSteps::Whole:
      if (processor.padsToSquare)
      {
        settings["image_processor_type"] = PaddingType;
        settings["do_pad"] = true;
      }
      break;
    case PictureSteps::Grid:
      settings["min_patches"] = processor.minimumTiles;
      settings["max_patches"] = processor.maximumTiles;
      break;
    case PictureSteps::Split:
      settings.erase("crop_size");
      settings["size"] = { { "longest_edge", processor.longestEdge } };
      settings["max_image_size"] = { { "longest_edge", processor.image.modelHeight } };
      settings["do_image_splitting"] = processor.splits;
      break;
    case PictureSteps::AnySize:
      settings.erase("crop_size");
      settings.erase("model_size");
      settings["size"] = { { "shortest_edge", processor.minimumPixels },
        { "longest_edge", processor.maximumPixels } };
      settings["patch_size"] = processor.patchSize;
      settings["merge_size"] = processor.merge;
      settings["temporal_patch_size"] = processor.patchFrames;
      if (processor.longestHeight > 0)
      {
        settings["image_processor_type"] = FittingType;
        settings["size"] = { { "height", processor.longestHeight },
          { "width", processor.longestWidth } };
      }
      break;
    case PictureSteps::Padded:
      settings.erase("crop_size");
      settings["image_grid_pinpoints"] = json::array();
      for (const ImageSize& size : processor.gridSizes)
      {
        settings["image_grid_pinpoints"].push_back({ size.first, size.second });
      }
  }
  return settings.dump();
}

VisionProcessor ParseVisionProcessor(std::string_view text, const std::string& source)
{
  const json object = ParseJsonObject(text, source, "the configuration");
  const Settings settings(object, source);
  auto encoder = std::make_shared<TransformerConfig>();
  encoder->input = InputKind::Images;
  encoder->channels = Channels;
  VisionConfig vision;
  if (settings.Has({ "model_size" }))
  {
    std::tie(encoder->imageHeight, encoder->imageWidth) = settings.Extent({ "model_size" }, 1);
    const auto grids = object.value("image_grid_pinpoints", json::array());
    for (const json& size : grids.is_array() ? grids : json::array())
    {
      constexpr std::uint64_t most = 1'000'000; // pixels
      const bool isPair =
        size.is_array() && size.size() == 2 &&
        std::all_of(size.begin(), size.end(), [](const json& side)
          { return side.is_number_unsigned() && side.get<std::uint64_t>() <= most; });
      settings.FailIf(!isPair, "expected 'image_grid_pinpoints' to be pairs of sides, found ",
        Describe(size), ".");
      vision.gridSizes.emplace_back(size[0].get<std::int64_t>(), size[1].get<std::int64_t>());
    }
  }
  else
  {
    encoder->patchHeight = encoder->patchWidth = settings.Size({ "patch_size" });
    encoder->patchFrames = settings.Size({ "temporal_patch_size" });
    vision.merge = settings.Size({ "merge_size" });
  }
  vision.encoder = encoder;
  TransformerConfig config;
  config.vision = std::make_shared<VisionConfig>(vision);
  return ParseProcessor(object, source, config);
}

}
