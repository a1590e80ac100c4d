#include "VisionProcessor.h"

#include "Error.h"
#include "ImageSettings.h"
#include "Index.h"
#include "JsonSettings.h"
#include "JsonText.h"
#include "MappedFile.h"
#include "NamedValues.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <tuple>
#include <utility>

namespace atlas
{
namespace
{

using nlohmann::json;

constexpr std::size_t ColorChannels = 3;

/// The longest side of a picture that is split.
constexpr std::int64_t LongestSplit = 4096;

/// The most tiles that a grid may have.
constexpr std::uint64_t MostTiles = 1000;

/// The proportions from which on pictures of any size are refused.
constexpr double MostElongated = 200;

/// The numbers of pixels of a frame, and of a picture, of any size if the file does not say.
constexpr std::pair<std::int64_t, std::int64_t> FilmPixels = { 128 * 28 * 28, 768 * 28 * 28 };
constexpr std::pair<std::int64_t, std::int64_t> PicturePixels = { 56 * 56, 1280 * 28 * 28 };

using Size = std::pair<std::int64_t, std::int64_t>; ///< height, width

/// The processor that can pad pictures to squares.
constexpr const char* PaddingType = "LlavaImageProcessor";

/// The known values of image_processor_type, without an ending Fast.
struct ProcessorType
{
  const char* name;
  PictureSteps value;
  bool isClips; ///< whether missing settings are those of CLIP
};
constexpr std::array<ProcessorType, 9> ProcessorTypes = { {
  { "CLIPImageProcessor", PictureSteps::Whole, true },
  { PaddingType, PictureSteps::Whole, true },
  { "SiglipImageProcessor", PictureSteps::Whole, false },
  { "ViTImageProcessor", PictureSteps::Whole, false },
  { "GotOcr2ImageProcessor", PictureSteps::Grid, true },
  { "SmolVLMImageProcessor", PictureSteps::Split, false },
  { "Idefics3ImageProcessor", PictureSteps::Split, false },
  { "Qwen2VLImageProcessor", PictureSteps::AnySize, true },
  { "Qwen2_5_VLImageProcessor", PictureSteps::AnySize, true },
} };

/// The known values of video_processor_type, by what a model's pictures become.
constexpr std::array<ProcessorType, 3> FilmTypes = { {
  { "Qwen2VLVideoProcessor", PictureSteps::AnySize, true },
  { "InternVLVideoProcessor", PictureSteps::Grid, true },
  { "SmolVLMVideoProcessor", PictureSteps::Split, false },
} };

/// The type of a model whose file does not say.
const ProcessorType& TypeOf(const TransformerConfig& config)
{
  const bool isAnySize = config.vision->encoder->ReadsAnySize();
  const std::string& name = config.architecture;
  return *FindNamed(ProcessorTypes, isAnySize            ? "Qwen2VLImageProcessor"
                                    : name == "internvl" ? "GotOcr2ImageProcessor"
                                    : name == "smolvlm" || name == "idefics3"
                                      ? "SmolVLMImageProcessor"
                                      : "CLIPImageProcessor");
}

const ProcessorType& ParseType(const Settings& settings, const TransformerConfig& config)
{
  std::string name = settings.Text({ "image_processor_type" }, TypeOf(config).name);
  const std::string ending = "Fast";
  if (name.size() > ending.size() &&
      name.compare(name.size() - ending.size(), ending.size(), ending) == 0)
  {
    name.resize(name.size() - ending.size());
  }
  const ProcessorType* type = FindNamed(ProcessorTypes, name);
  if (type == nullptr)
  {
    settings.Fail("unknown image_processor_type '" + name.substr(0, 80) + "', expected one of " +
                  NamesOf(ProcessorTypes) + ".");
  }
  const bool isAnySize = config.vision->encoder->ReadsAnySize();
  if ((type->value == PictureSteps::AnySize) != isAnySize)
  {
    settings.Fail("expected an image_processor_type for " +
                  std::string(isAnySize ? "pictures of any size" : "images of one size") +
                  ", since the model reads these, found '" + name + "'.");
  }
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
    image.mean = { 0.48145466, 0.4578275, 0.40821073 };
    image.deviation = { 0.26862954, 0.26130258, 0.27577711 };
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
  const bool hasSizes = type.value == PictureSteps::Whole || type.value == PictureSteps::Grid;
  if (hasSizes && !PadsToSquares(type))
  {
    RefusePadding(settings);
  }
  ParseImageSettings(settings, hasSizes, image);
  return image;
}

/// Throws ModelError unless a size is the model's.
void RequireModelSize(
  const Settings& settings, const std::string& name, Size found, const TransformerConfig& encoder)
{
  const Size expected = { encoder.imageHeight, encoder.imageWidth };
  if (found != expected)
  {
    settings.Fail("expected '" + name + "' to be the model's " + std::to_string(expected.first) +
                  " x " + std::to_string(expected.second) + " pixels (height x width), found " +
                  std::to_string(found.first) + " x " + std::to_string(found.second) + ".");
  }
}

void ParseGrid(
  const Settings& settings, const TransformerConfig& encoder, VisionProcessor& processor)
{
  if (processor.image.shortestEdge != 0)
  {
    settings.Fail("expected 'size' to have a height and a width, found 'shortest_edge'.");
  }
  RequireModelSize(settings, "size", { processor.image.height, processor.image.width }, encoder);
  const auto count = [&settings](const char* name, std::uint64_t otherwise)
  { return static_cast<std::int64_t>(settings.Integer({ name }, otherwise, 1, MostTiles)); };
  processor.minimumTiles = count("min_patches", 1);
  processor.maximumTiles = count("max_patches", 12);
  if (processor.minimumTiles > processor.maximumTiles)
  {
    settings.Fail("expected 'min_patches' to be at most 'max_patches', " +
                  std::to_string(processor.maximumTiles) + ", found " +
                  std::to_string(processor.minimumTiles) + ".");
  }
}

void ParseSplit(
  const Settings& settings, const TransformerConfig& encoder, VisionProcessor& processor)
{
  if (encoder.imageHeight != encoder.imageWidth)
  {
    settings.Fail("expected a model of square tiles, found one of " +
                  std::to_string(encoder.imageHeight) + " x " + std::to_string(encoder.imageWidth) +
                  " pixels (height x width).");
  }
  const auto tile = settings.Nested({ "max_image_size" });
  const std::int64_t side =
    tile ? tile->Size({ "longest_edge" }) : static_cast<std::int64_t>(encoder.imageHeight);
  RequireModelSize(settings, "max_image_size", { side, side }, encoder);
  processor.splits = settings.Flag({ "do_image_splitting" }, true);
  const auto size = settings.Nested({ "size" });
  processor.longestEdge = size ? size->Size({ "longest_edge" }) : 4 * encoder.imageHeight;
}

/// `pixels`: the fewest and the most of a picture, if the settings do not say.
void ParseAnySize(const Settings& settings, const TransformerConfig& config,
  std::pair<std::int64_t, std::int64_t> pixels, VisionProcessor& processor)
{
  const TransformerConfig& encoder = *config.vision->encoder;
  const auto require = [&settings](const char* name, std::int64_t expected)
  {
    const std::int64_t found = settings.Size({ name }, expected);
    if (found != expected)
    {
      settings.Fail("expected '" + std::string(name) + "' to be the model's " +
                    std::to_string(expected) + ", found " + std::to_string(found) + ".");
    }
    return found;
  };
  if (encoder.patchHeight != encoder.patchWidth)
  {
    settings.Fail("expected a model of square patches, found patches of " +
                  std::to_string(encoder.patchHeight) + " x " + std::to_string(encoder.patchWidth) +
                  " pixels (height x width).");
  }
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
  if (processor.minimumPixels > processor.maximumPixels)
  {
    settings.Fail("expected the fewest pixels of a picture to be at most the most, " +
                  std::to_string(processor.maximumPixels) + ", found " +
                  std::to_string(processor.minimumPixels) + ".");
  }
}

json ParseSettingsObject(std::string_view text, const std::string& source)
{
  json object = ParseJson(text, source, "the configuration");
  if (!object.is_object())
  {
    throw FormatError(source + ": expected the configuration to be a JSON object, found " +
                      object.type_name() + ".");
  }
  return object;
}

/// The part of the settings that is about images, or films; all of them if there is none.
const json& PartOf(const json& object, const char* name)
{
  const auto part = object.find(name);
  return part != object.end() && part->is_object() ? *part : object;
}

constexpr const char* ImagePart = "image_processor";
constexpr const char* FilmPart = "video_processor";

/// The text of the first of these files of a folder that has the settings, and its path. Those of
/// ProcessorFile are in a part.
std::optional<std::pair<std::string, std::string>> FindSettings(
  const std::filesystem::path& folder, const std::array<const char*, 2>& names, const char* part)
{
  for (const char* name : names)
  {
    const std::filesystem::path path = folder / name;
    if (!std::filesystem::exists(path))
    {
      continue;
    }
    const MappedFile file(path);
    const std::string_view text(reinterpret_cast<const char*>(file.Data()), file.Size());
    const json all = ParseJson(text, path.string(), "the configuration");
    if (name != std::string_view(ProcessorFile) || (all.is_object() && all.contains(part)))
    {
      return std::pair(std::string(text), path.string());
    }
  }
  return std::nullopt;
}

VisionProcessor ParseProcessor(
  const json& object, const std::string& source, const TransformerConfig& config)
{
  const Settings settings(object, source);
  const TransformerConfig& encoder = *config.vision->encoder;
  const ProcessorType& type = ParseType(settings, config);
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
      ParseAnySize(settings, config, PicturePixels, processor);
  }
  return processor;
}

/// The processor of films of a model that reads them.
const ProcessorType& FilmTypeOf(const TransformerConfig& config)
{
  const PictureSteps steps = TypeOf(config).value;
  return *std::find_if(FilmTypes.begin(), FilmTypes.end(),
    [steps](const ProcessorType& type) { return type.value == steps; });
}

/// A frame is one tile.
void ParseFilmGrid(
  const Settings& settings, const TransformerConfig& encoder, VisionProcessor& processor)
{
  ParseGrid(settings, encoder, processor);
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
void ParseFilmSplit(
  const Settings& settings, const TransformerConfig& encoder, VisionProcessor& processor)
{
  ParseSplit(settings, encoder, processor);
  if (settings.Has({ "video_sampling" }) && !settings.Has({ "size" }))
  {
    const Settings sampling = settings.NestedOrEmpty({ "video_sampling" });
    processor.longestEdge = sampling.NestedOrEmpty({ "video_size" }).Size({ "longest_edge" });
  }
  processor.splits = false;
  processor.longestEdge = std::min(processor.longestEdge, LongestSplit);
  if (!processor.image.resize)
  {
    settings.Fail("expected 'do_resize' to be on, since frames have the size of a tile.");
  }
  if (processor.image.filter == ResampleFilter::Lanczos)
  {
    processor.image.filter = ResampleFilter::Bicubic;
  }
}

VisionProcessor ParseFilm(
  const json& object, const std::string& source, const TransformerConfig& config)
{
  const Settings settings(object, source);
  if (!ReadsFilms(config))
  {
    settings.Fail(
      "expected a model that reads films, found one of architecture " + config.architecture + ".");
  }
  const ProcessorType& type = FilmTypeOf(config);
  const std::string name = settings.Text({ "video_processor_type" }, type.name);
  if (name != type.name)
  {
    settings.Fail("expected the video_processor_type '" + std::string(type.name) +
                  "' for a model of architecture " + config.architecture + ", found '" +
                  name.substr(0, 80) + "'.");
  }
  const TransformerConfig& encoder = *config.vision->encoder;
  VisionProcessor processor;
  processor.steps = type.value;
  processor.image = ParseBase(settings, type, encoder);
  switch (processor.steps)
  {
    case PictureSteps::Grid:
      ParseFilmGrid(settings, encoder, processor);
      break;
    case PictureSteps::Split:
      ParseFilmSplit(settings, encoder, processor);
      break;
    default:
      ParseAnySize(settings, config, FilmPixels, processor);
  }
  return processor;
}

/// The number of tiles on which the proportions of a picture are best kept: rows, columns.
Size GridOf(const Picture& picture, const VisionProcessor& processor)
{
  const auto height = static_cast<double>(picture.height);
  const auto width = static_cast<double>(picture.width);
  const double proportions = width / height;
  const double tile = static_cast<double>(processor.image.modelHeight) *
                      static_cast<double>(processor.image.modelWidth);
  Size best = { 1, 1 };
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t tiles = processor.minimumTiles; tiles <= processor.maximumTiles; ++tiles)
  {
    for (std::int64_t columns = 1; columns <= tiles; ++columns)
    {
      if (tiles % columns != 0)
      {
        continue;
      }
      const std::int64_t rows = tiles / columns;
      const double difference =
        std::abs(proportions - static_cast<double>(columns) / static_cast<double>(rows));
      if (difference < least ||
          (difference == least && height * width > 0.5 * tile * static_cast<double>(tiles)))
      {
        best = { rows, columns };
      }
      least = std::min(least, difference);
    }
  }
  return best;
}

SeenPicture SeeGrid(const Picture& picture, const VisionProcessor& processor)
{
  const ImageProcessor& image = processor.image;
  SeenPicture seen;
  if (processor.maximumTiles == 1) // the only case in which `resample` and `do_resize` matter
  {
    ImageProcessor resize = image;
    resize.crop = false;
    seen.tiled = ResizeAndCrop(picture, resize);
    return seen;
  }
  std::tie(seen.rows, seen.columns) = GridOf(picture, processor);
  seen.tiled = Resample(picture, seen.rows * image.modelHeight, seen.columns * image.modelWidth,
    ResampleFilter::Bicubic);
  if (seen.rows * seen.columns > 1)
  {
    seen.whole = Resample(picture, image.modelHeight, image.modelWidth, ResampleFilter::Bicubic);
  }
  return seen;
}

/// A length in proportion to another one, rounded down as the original does.
std::int64_t InProportion(std::int64_t longer, Size sides)
{
  const auto height = static_cast<double>(sides.first);
  const auto width = static_cast<double>(sides.second);
  const double proportions = width / height;
  const auto length = static_cast<double>(longer);
  return static_cast<std::int64_t>(
    sides.second >= sides.first ? length / proportions : length * proportions);
}

/// The sides with a given length of the longer one and another one of the shorter one.
Size SidesOf(Size proportions, std::int64_t longer, std::int64_t shorter)
{
  return proportions.second >= proportions.first ? Size{ shorter, longer }
                                                 : Size{ longer, shorter };
}

Size LongestEdgeSize(const Picture& picture, std::int64_t longestEdge)
{
  Size sides = { picture.height, picture.width };
  std::int64_t shorter = InProportion(longestEdge, sides);
  shorter += shorter % 2;
  sides = SidesOf(sides, longestEdge, std::max<std::int64_t>(shorter, 1));
  const std::int64_t longer = std::max(sides.first, sides.second);
  if (longer > LongestSplit)
  {
    sides =
      SidesOf(sides, LongestSplit, std::max<std::int64_t>(InProportion(LongestSplit, sides), 1));
  }
  return sides;
}

/// The next multiple of a length.
std::int64_t UpTo(std::int64_t length, std::int64_t multiple)
{
  return (length + multiple - 1) / multiple * multiple;
}

SeenPicture SeeSplit(const Picture& picture, const VisionProcessor& processor)
{
  const ImageProcessor& image = processor.image;
  const std::int64_t tile = image.modelHeight;
  Size size = { picture.height, picture.width };
  Picture resized = picture;
  if (image.resize)
  {
    size = LongestEdgeSize(picture, processor.longestEdge);
    resized = Resample(picture, size.first, size.second, image.filter);
  }
  SeenPicture seen;
  if (processor.splits)
  {
    const std::int64_t longer = UpTo(std::max(size.first, size.second), tile);
    const std::int64_t shorter =
      std::max(UpTo(InProportion(longer, size), tile), tile); // the original fails at 0
    size = SidesOf(size, longer, shorter);
    resized = Resample(resized, size.first, size.second, image.filter);
    if (longer > tile)
    {
      seen.rows = size.first / tile;
      seen.columns = size.second / tile;
      seen.tiled = resized;
    }
  }
  seen.whole = Resample(resized, tile, tile, image.filter);
  return seen;
}

/// A side of a picture as a number of tokens.
std::int64_t NearestCount(std::int64_t side, std::int64_t token)
{
  // Halves are rounded to even numbers, as in the original.
  return static_cast<std::int64_t>(
    std::nearbyint(static_cast<double>(side) / static_cast<double>(token)));
}

Size AnySizeOf(const Picture& picture, const VisionProcessor& processor)
{
  const auto height = static_cast<double>(picture.height);
  const auto width = static_cast<double>(picture.width);
  if (std::max(height, width) / std::min(height, width) > MostElongated)
  {
    throw OptionError("expected one side of a picture to be at most 200 times the other, found " +
                      std::to_string(picture.width) + " x " + std::to_string(picture.height) +
                      " pixels (width x height).");
  }
  const std::int64_t token = processor.patchSize * processor.merge;
  Size size = { NearestCount(picture.height, token) * token,
    NearestCount(picture.width, token) * token };
  const auto side = static_cast<double>(token);
  if (size.first * size.second > processor.maximumPixels)
  {
    const double ratio = std::sqrt(height * width / static_cast<double>(processor.maximumPixels));
    const auto scaled = [&](double length)
    {
      return std::max(token, static_cast<std::int64_t>(std::floor(length / ratio / side)) * token);
    };
    size = { scaled(height), scaled(width) };
  }
  else if (size.first * size.second < processor.minimumPixels)
  {
    const double ratio = std::sqrt(static_cast<double>(processor.minimumPixels) / (height * width));
    const auto scaled = [&](double length)
    { return static_cast<std::int64_t>(std::ceil(length * ratio / side)) * token; };
    size = { scaled(height), scaled(width) };
  }
  return size;
}

/// A picture, or frame, in the size of a picture of any size.
Picture SeeAnySize(const Picture& picture, Size size, const VisionProcessor& processor)
{
  if (processor.image.resize)
  {
    return Resample(picture, size.first, size.second, processor.image.filter);
  }
  const std::int64_t token = processor.patchSize * processor.merge;
  if (picture.height % token != 0 || picture.width % token != 0)
  {
    throw OptionError("expected sides that are multiples of " + std::to_string(token) +
                      " pixels, since do_resize is off, found " + std::to_string(picture.width) +
                      " x " + std::to_string(picture.height) + " (width x height).");
  }
  return picture;
}

/// Adds the planes of a part of a picture that is normalized.
void AddPart(
  const std::vector<float>& planes, Size size, Size corner, Size part, std::vector<float>& pixels)
{
  for (std::size_t channel = 0; channel < ColorChannels; ++channel)
  {
    for (std::int64_t y = 0; y < part.first; ++y)
    {
      const std::size_t first =
        (channel * ToIndex(size.first) + ToIndex(corner.first + y)) * ToIndex(size.second) +
        ToIndex(corner.second);
      const auto from = planes.begin() + static_cast<std::ptrdiff_t>(first);
      pixels.insert(pixels.end(), from, from + part.second);
    }
  }
}

void AddTiles(const SeenPicture& seen, const VisionProcessor& processor, VisionPixels& pixels)
{
  const std::int64_t picture = pixels.tiles.empty() ? 0 : pixels.tiles.back().picture + 1;
  const Size tile = { processor.image.modelHeight, processor.image.modelWidth };
  if (seen.tiled)
  {
    const std::vector<float> planes = Normalized(*seen.tiled, processor.image);
    for (std::int64_t row = 0; row < seen.rows; ++row)
    {
      for (std::int64_t column = 0; column < seen.columns; ++column)
      {
        AddPart(planes, { seen.tiled->height, seen.tiled->width },
          { row * tile.first, column * tile.second }, tile, pixels.pixels);
        pixels.tiles.push_back({ picture, row, column, seen.rows, seen.columns });
      }
    }
  }
  if (seen.whole)
  {
    const std::vector<float> planes = Normalized(*seen.whole, processor.image);
    pixels.pixels.insert(pixels.pixels.end(), planes.begin(), planes.end());
    pixels.tiles.push_back({ picture, -1, -1, seen.rows, seen.columns });
  }
  pixels.images = static_cast<std::int64_t>(pixels.tiles.size());
}

/// Adds a group of frames, normalized, of the size of a picture.
void AddGroup(const std::vector<const std::vector<float>*>& frames, Size size,
  const VisionProcessor& processor, std::vector<float>& pixels)
{
  const std::int64_t patch = processor.patchSize;
  const std::int64_t token = patch * processor.merge;
  const auto addPatch = [&](std::int64_t top, std::int64_t left)
  {
    for (std::size_t channel = 0; channel < ColorChannels; ++channel)
    {
      for (const std::vector<float>* frame : frames)
      {
        for (std::int64_t y = 0; y < patch; ++y)
        {
          const std::size_t first =
            (channel * ToIndex(size.first) + ToIndex(top + y)) * ToIndex(size.second) +
            ToIndex(left);
          const auto from = frame->begin() + static_cast<std::ptrdiff_t>(first);
          pixels.insert(pixels.end(), from, from + patch);
        }
      }
    }
  };
  for (std::int64_t top = 0; top < size.first; top += token)
  {
    for (std::int64_t left = 0; left < size.second; left += token)
    {
      for (std::int64_t i = 0; i < processor.merge * processor.merge; ++i)
      {
        addPatch(top + i / processor.merge * patch, left + i % processor.merge * patch);
      }
    }
  }
}

PatchExtent ExtentOf(Size size, std::int64_t groups, const VisionProcessor& processor)
{
  PatchExtent extent;
  extent.frames = groups;
  extent.rows = size.first / processor.patchSize;
  extent.columns = size.second / processor.patchSize;
  return extent;
}

}

bool ReadsFilms(const TransformerConfig& config)
{
  return config.vision != nullptr &&
         (config.vision->filmToken >= 0 || config.architecture == "internvl" ||
           config.architecture == "smolvlm");
}

VisionProcessor DefaultVisionProcessor(const TransformerConfig& config)
{
  return ParseProcessor(json::object(), "the settings of pictures by default", config);
}

VisionProcessor ParseVisionProcessor(
  std::string_view text, const std::string& source, const TransformerConfig& config)
{
  const json object = ParseSettingsObject(text, source);
  return ParseProcessor(PartOf(object, ImagePart), source, config);
}

VisionProcessor ReadVisionProcessor(
  const std::filesystem::path& folder, const TransformerConfig& config)
{
  const auto found = FindSettings(folder, { ImageProcessorFile, ProcessorFile }, ImagePart);
  return found ? ParseVisionProcessor(found->first, found->second, config)
               : DefaultVisionProcessor(config);
}

VisionProcessor ParseFilmProcessor(
  std::string_view text, const std::string& source, const TransformerConfig& config)
{
  const json object = ParseSettingsObject(text, source);
  return ParseFilm(PartOf(object, FilmPart), source, config);
}

VisionProcessor ReadFilmProcessor(
  const std::filesystem::path& folder, const TransformerConfig& config)
{
  if (const auto found = FindSettings(folder, { FilmProcessorFile, ProcessorFile }, FilmPart))
  {
    return ParseFilmProcessor(found->first, found->second, config);
  }
  if (config.vision->encoder->ReadsAnySize())
  {
    return ReadVisionProcessor(folder, config);
  }
  const auto found = FindSettings(folder, { ImageProcessorFile, ProcessorFile }, ImagePart);
  return found ? ParseFilm(PartOf(ParseSettingsObject(found->first, found->second), ImagePart),
                   found->second, config)
               : ParseFilm(json::object(), "the settings of films by default", config);
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
  }
  return settings.dump();
}

VisionProcessor ParseVisionProcessor(std::string_view text, const std::string& source)
{
  const json object = ParseSettingsObject(text, source);
  const Settings settings(object, source);
  auto encoder = std::make_shared<TransformerConfig>();
  encoder->input = InputKind::Images;
  encoder->channels = ColorChannels;
  VisionConfig vision;
  if (settings.Has({ "model_size" }))
  {
    std::tie(encoder->imageHeight, encoder->imageWidth) = settings.Extent({ "model_size" }, 1);
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

SeenPicture SeePicture(const Picture& picture, const VisionProcessor& processor)
{
  switch (processor.steps)
  {
    case PictureSteps::Grid:
      return SeeGrid(picture, processor);
    case PictureSteps::Split:
      return SeeSplit(picture, processor);
    case PictureSteps::AnySize:
    {
      SeenPicture seen;
      seen.tiled = SeeAnySize(picture, AnySizeOf(picture, processor), processor);
      return seen;
    }
    default:
    {
      SeenPicture seen;
      seen.whole =
        ResizeAndCrop(processor.padsToSquare ? PadToSquare(picture, processor.image.mean) : picture,
          processor.image);
      return seen;
    }
  }
}

void AddPicture(const Picture& picture, const VisionProcessor& processor, VisionPixels& pixels)
{
  if (processor.steps != PictureSteps::AnySize)
  {
    AddTiles(SeePicture(picture, processor), processor, pixels);
    return;
  }
  const Picture seen = SeeAnySize(picture, AnySizeOf(picture, processor), processor);
  const Size size = { seen.height, seen.width };
  const std::vector<float> planes = Normalized(seen, processor.image);
  const std::vector<const std::vector<float>*> frames(processor.patchFrames, &planes);
  AddGroup(frames, size, processor, pixels.pixels);
  pixels.extents.push_back(ExtentOf(size, 1, processor));
}

void AddFilm(const std::vector<Picture>& frames, double seconds, const VisionProcessor& processor,
  VisionPixels& pixels)
{
  const auto count = static_cast<std::int64_t>(frames.size());
  if (processor.steps != PictureSteps::AnySize)
  {
    for (const Picture& frame : frames)
    {
      AddPicture(frame, processor, pixels);
    }
    pixels.filmFrames.push_back(count);
    return;
  }
  const std::int64_t groups = (count + processor.patchFrames - 1) / processor.patchFrames;
  const Size size = AnySizeOf(frames.front(), processor);
  Size seen;
  for (std::int64_t group = 0; group < groups; ++group)
  {
    std::vector<std::vector<float>> planes;
    for (std::int64_t i = 0; i < processor.patchFrames; ++i)
    {
      const std::int64_t frame = std::min(group * processor.patchFrames + i, count - 1);
      const Picture picture = SeeAnySize(frames[frame], size, processor);
      if (frame == 0)
      {
        seen = { picture.height, picture.width };
      }
      else if (seen != Size{ picture.height, picture.width })
      {
        throw OptionError("frame " + std::to_string(frame) + ": expected the " +
                          std::to_string(seen.second) + " x " + std::to_string(seen.first) +
                          " pixels (width x height) of the first one, since do_resize is off, "
                          "found " +
                          std::to_string(picture.width) + " x " + std::to_string(picture.height) +
                          ".");
      }
      planes.push_back(Normalized(picture, processor.image));
    }
    std::vector<const std::vector<float>*> planesOf;
    planesOf.reserve(planes.size());
    for (const std::vector<float>& plane : planes)
    {
      planesOf.push_back(&plane);
    }
    AddGroup(planesOf, seen, processor, pixels.pixels);
  }
  PatchExtent extent = ExtentOf(seen, groups, processor);
  extent.isFilm = true;
  extent.seconds = seconds * static_cast<double>(processor.patchFrames);
  pixels.extents.push_back(extent);
}

}
