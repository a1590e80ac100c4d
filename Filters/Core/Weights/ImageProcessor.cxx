#include "ImageProcessor.h"

#include "Error.h"
#include "ImageSettings.h"
#include "Index.h"
#include "JsonSettings.h"
#include "JsonText.h"
#include "MappedFile.h"
#include "Pi.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

namespace atlas
{
namespace
{

constexpr std::size_t Channels = 3;
constexpr std::int64_t WeightBits = 22;

using Size = std::pair<std::int64_t, std::int64_t>; ///< height, width

/// For messages, width first.
std::string SizeText(Size size)
{
  return std::to_string(size.second) + " x " + std::to_string(size.first) +
         " pixels (width x height)";
}

/// Throws OptionError for an invalid image size.
void RequireSize(Size size)
{
  if (size.first < 1 || size.second < 1 || size.first > MaximumPixels / size.second)
  {
    throw OptionError("expected an image of 1 to " + std::to_string(MaximumPixels) +
                      " pixels, found " + SizeText(size) + ".");
  }
}

double Sinc(double x)
{
  return x == 0 ? 1 : std::sin(Pi * x) / (Pi * x);
}

double Support(ResampleFilter filter)
{
  switch (filter)
  {
    case ResampleFilter::Lanczos:
      return 3;
    case ResampleFilter::Bicubic:
      return 2;
    case ResampleFilter::Bilinear:
    case ResampleFilter::Hamming:
      return 1;
    default:
      return 0.5;
  }
}

/// The weight of a pixel at a distance, in units of the filter.
double Weight(ResampleFilter filter, double distance)
{
  const double x = std::abs(distance);
  switch (filter)
  {
    case ResampleFilter::Lanczos:
      return x < 3 ? Sinc(x) * Sinc(x / 3) : 0;
    case ResampleFilter::Bicubic:
      if (x < 1)
      {
        return (1.5 * x - 2.5) * x * x + 1;
      }
      return x < 2 ? -0.5 * (((x - 5) * x + 8) * x - 4) : 0;
    case ResampleFilter::Bilinear:
      return x < 1 ? 1 - x : 0;
    case ResampleFilter::Hamming:
      return x < 1 ? Sinc(x) * (0.54 + 0.46 * std::cos(Pi * x)) : 0;
    default: // half-open, so that neighbors share no pixel
      return distance > -0.5 && distance <= 0.5 ? 1 : 0;
  }
}

/// How a line is resampled to another length: output pixel i is the weighted sum of
/// weights[i].size() input pixels, starting at first[i]. Weights are in units of 2^-WeightBits.
struct Windows
{
  std::vector<std::int64_t> first;
  std::vector<std::vector<std::int64_t>> weights;
};

Windows MakeWindows(std::int64_t from, std::int64_t to, ResampleFilter filter)
{
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double unit = std::max(scale, 1.0);
  const double support = Support(filter) * unit;
  constexpr auto one = static_cast<double>(std::int64_t{ 1 } << WeightBits);
  Windows windows;
  for (std::int64_t i = 0; i < to; ++i)
  {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const auto begin = static_cast<std::int64_t>(std::max(std::floor(center - support + 0.5), 0.0));
    const auto end = std::min(static_cast<std::int64_t>(std::floor(center + support + 0.5)), from);
    std::vector<double> weights;
    double sum = 0;
    for (std::int64_t j = begin; j < end; ++j)
    {
      weights.push_back(Weight(filter, (static_cast<double>(j) - center + 0.5) * (1 / unit)));
      sum += weights.back();
    }
    windows.first.push_back(begin);
    std::vector<std::int64_t>& rounded = windows.weights.emplace_back();
    for (const double weight : weights)
    {
      const double part = (sum != 0 ? weight / sum : weight) * one;
      rounded.push_back(static_cast<std::int64_t>(part < 0 ? part - 0.5 : part + 0.5));
    }
  }
  return windows;
}

/// Converts a sum of weighted pixels to an integer from 0 to `maximum`.
std::uint16_t Rounded(std::int64_t sum, std::uint16_t maximum)
{
  constexpr std::int64_t half = std::int64_t{ 1 } << (WeightBits - 1);
  const std::int64_t value = std::max<std::int64_t>(sum + half, 0) >> WeightBits;
  return static_cast<std::uint16_t>(std::min<std::int64_t>(value, maximum));
}

/// An image with the same maximum and unset pixels.
Picture EmptyPicture(const Picture& like, Size size)
{
  RequireSize(size);
  return { size.first, size.second, like.maximum,
    std::vector<std::uint16_t>(Channels * ToIndex(size.first) * ToIndex(size.second)) };
}

Picture ResampleRows(const Picture& picture, std::int64_t width, ResampleFilter filter)
{
  Picture result = EmptyPicture(picture, { picture.height, width });
  const Windows windows = MakeWindows(picture.width, width, filter);
  std::uint16_t* to = result.pixels.data();
  for (std::int64_t row = 0; row < picture.height; ++row)
  {
    const std::uint16_t* line = picture.pixels.data() + Channels * ToIndex(row * picture.width);
    for (std::size_t x = 0; x < windows.first.size(); ++x)
    {
      const std::uint16_t* from = line + Channels * ToIndex(windows.first[x]);
      std::array<std::int64_t, Channels> sums = {};
      for (const std::int64_t weight : windows.weights[x])
      {
        for (std::int64_t& sum : sums)
        {
          sum += weight * *from++;
        }
      }
      for (const std::int64_t sum : sums)
      {
        *to++ = Rounded(sum, picture.maximum);
      }
    }
  }
  return result;
}

Picture ResampleColumns(const Picture& picture, std::int64_t height, ResampleFilter filter)
{
  Picture result = EmptyPicture(picture, { height, picture.width });
  const Windows windows = MakeWindows(picture.height, height, filter);
  const std::size_t length = Channels * ToIndex(picture.width);
  std::vector<std::int64_t> sums(length);
  std::uint16_t* to = result.pixels.data();
  for (std::size_t y = 0; y < windows.first.size(); ++y)
  {
    std::fill(sums.begin(), sums.end(), 0);
    const std::uint16_t* from = picture.pixels.data() + length * ToIndex(windows.first[y]);
    for (const std::int64_t weight : windows.weights[y])
    {
      for (std::int64_t& sum : sums)
      {
        sum += weight * *from++;
      }
    }
    for (const std::int64_t sum : sums)
    {
      *to++ = Rounded(sum, picture.maximum);
    }
  }
  return result;
}

/// The nearest input pixel of each output pixel. As in Pillow, steps are added up, which rounds.
std::vector<std::int64_t> NearestPixels(std::int64_t from, std::int64_t to)
{
  const double step = static_cast<double>(from) / static_cast<double>(to);
  std::vector<std::int64_t> pixels;
  double position = step * 0.5;
  for (std::int64_t i = 0; i < to; ++i)
  {
    pixels.push_back(std::min(static_cast<std::int64_t>(position), from - 1));
    position += step;
  }
  return pixels;
}

Picture ResampleNearest(const Picture& picture, Size size)
{
  Picture result = EmptyPicture(picture, size);
  const std::vector<std::int64_t> columns = NearestPixels(picture.width, size.second);
  std::uint16_t* to = result.pixels.data();
  for (const std::int64_t row : NearestPixels(picture.height, size.first))
  {
    for (const std::int64_t column : columns)
    {
      to = std::copy_n(
        picture.pixels.data() + Channels * ToIndex(row * picture.width + column), Channels, to);
    }
  }
  return result;
}

/// The size to which an image is resized.
Size ResizedSize(const Picture& picture, const ImageProcessor& processor)
{
  if (processor.shortestEdge == 0)
  {
    return { processor.height, processor.width };
  }
  const auto [shorter, longer] = std::minmax(picture.height, picture.width);
  // Hugging Face divides in double precision and truncates.
  const auto other = static_cast<std::int64_t>(
    static_cast<double>(processor.shortestEdge * longer) / static_cast<double>(shorter));
  return picture.width <= picture.height ? Size{ other, processor.shortestEdge }
                                         : Size{ processor.shortestEdge, other };
}

/// Half of an integer, rounded down.
std::int64_t Half(std::int64_t value)
{
  return (value - (value < 0 ? 1 : 0)) / 2;
}

Picture Crop(const Picture& picture, Size size)
{
  Picture result = EmptyPicture(picture, size);
  const std::int64_t top = Half(picture.height - size.first);
  const std::int64_t left = Half(picture.width - size.second);
  const std::int64_t begin = std::max<std::int64_t>(-left, 0);
  const std::int64_t end = std::min(picture.width - left, size.second);
  for (std::int64_t y = 0; y < size.first; ++y)
  {
    if (y + top >= 0 && y + top < picture.height)
    {
      std::copy_n(
        picture.pixels.data() + Channels * ToIndex((y + top) * picture.width + begin + left),
        Channels * ToIndex(end - begin),
        result.pixels.data() + Channels * ToIndex(y * size.second + begin));
    }
  }
  return result;
}

/// The nested object, or std::nullopt if the value is missing or of another type.
std::optional<Settings> FindNested(const Settings& settings, const char* key)
{
  return settings.IsNested({ key }) ? settings.Nested({ key }) : std::nullopt;
}

/// Reads a size that is an integer, a pair or an object of height and width.
Size ParseSize(const Settings& settings, const char* key, Size otherwise)
{
  if (!settings.Has({ key }))
  {
    return otherwise;
  }
  if (const auto size = FindNested(settings, key))
  {
    return { size->Size({ "height" }), size->Size({ "width" }) };
  }
  return settings.Extent({ key }, 0);
}

/// Whether a single number is the length of the shorter side, as in the original code of some.
bool SizeIsShorterSide(const Settings& settings)
{
  const std::string type = settings.Text({ "image_processor_type", "feature_extractor_type" }, "");
  const std::array<std::string_view, 5> types = { "Bit", "CLIP", "ChineseCLIP", "Llava", "Siglip" };
  return std::any_of(types.begin(), types.end(),
    [&](std::string_view name) { return type.compare(0, name.size(), name) == 0; });
}

void ParseResize(const Settings& settings, ImageProcessor& processor)
{
  const auto size = FindNested(settings, "size");
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
  if (filter > 5 || filter != std::floor(filter))
  {
    settings.Fail("unknown resample " + std::to_string(filter) +
                  ", expected 0 (nearest), 1 (Lanczos), 2 (bilinear), 3 (bicubic), 4 (box) or 5 "
                  "(Hamming).");
  }
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

Picture Resample(
  const Picture& picture, std::int64_t height, std::int64_t width, ResampleFilter filter)
{
  RequireSize({ height, width });
  if (filter == ResampleFilter::Nearest)
  {
    return ResampleNearest(picture, { height, width });
  }
  if (width == picture.width)
  {
    return height == picture.height ? picture : ResampleColumns(picture, height, filter);
  }
  Picture rows = ResampleRows(picture, width, filter);
  if (height == picture.height)
  {
    return rows;
  }
  return ResampleColumns(rows, height, filter);
}

ImageProcessor DefaultImageProcessor(const TransformerConfig& config)
{
  if (config.channels != static_cast<std::int64_t>(Channels))
  {
    throw ModelError("expected a model for images with 3 channels, "
                     "found one of architecture " +
                     config.architecture + " with " + std::to_string(config.channels) + ".");
  }
  ImageProcessor processor;
  processor.height = processor.cropHeight = processor.modelHeight = config.imageHeight;
  processor.width = processor.cropWidth = processor.modelWidth = config.imageWidth;
  return processor;
}

ImageProcessor ParseImageProcessor(
  std::string_view text, const std::string& source, const TransformerConfig& config)
{
  const nlohmann::json object = ParseJson(text, source, "the configuration");
  if (!object.is_object())
  {
    throw FormatError(source + ": expected the configuration to be a JSON object, found " +
                      object.type_name() + ".");
  }
  ImageProcessor processor = DefaultImageProcessor(config);
  const Settings settings(object, source);
  RefusePadding(settings);
  ParseImageSettings(settings, true, processor);
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
  processor.rescale = settings.Flag({ "do_rescale" }, true);
  processor.factor = settings.Number({ "rescale_factor" }, processor.factor);
  processor.normalize = settings.Flag({ "do_normalize" }, true);
  ParseChannels(settings, "image_mean", processor.mean);
  ParseChannels(settings, "image_std", processor.deviation);
  for (const double deviation : processor.deviation)
  {
    if (static_cast<float>(deviation) <= 0)
    {
      settings.Fail(
        "expected 'image_std' to be positive, found " + std::to_string(deviation) + ".");
    }
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
  const MappedFile file(path);
  return ParseImageProcessor(
    { reinterpret_cast<const char*>(file.Data()), file.Size() }, path.string(), config);
}

void AdoptImageSize(TransformerConfig& config, const std::filesystem::path& folder)
{
  if (config.positionSide == 0 || !std::filesystem::exists(folder / ImageProcessorFile))
  {
    return;
  }
  const ImageProcessor processor = ReadImageProcessor(folder, config);
  const Size size = processor.crop ? Size{ processor.cropHeight, processor.cropWidth }
                    : processor.resize && processor.shortestEdge == 0
                      ? Size{ processor.height, processor.width }
                      : Size{ config.imageHeight, config.imageWidth };
  if (size.first < config.patchHeight || size.second < config.patchWidth ||
      size.first > MaximumPixels / size.second)
  {
    throw ModelError((folder / ImageProcessorFile).string() + ": expected images of a patch, " +
                     SizeText({ config.patchHeight, config.patchWidth }) + ", to " +
                     std::to_string(MaximumPixels) + " pixels, found " + SizeText(size) + ".");
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
  const nlohmann::json settings = {
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
  return settings.dump();
}

Picture ResizeAndCrop(Picture picture, const ImageProcessor& processor)
{
  if (processor.resize)
  {
    const Size size = ResizedSize(picture, processor);
    picture = Resample(picture, size.first, size.second, processor.filter);
  }
  if (processor.crop)
  {
    picture = Crop(picture, { processor.cropHeight, processor.cropWidth });
  }
  const Size found = { picture.height, picture.width };
  const Size expected = { processor.modelHeight, processor.modelWidth };
  if (found != expected)
  {
    throw OptionError("preprocessing gives " + SizeText(found) + ", expected " +
                      SizeText(expected) + ", the input size of the model.");
  }
  return picture;
}

Picture PadToSquare(const Picture& picture, const std::array<double, Channels>& color)
{
  const std::int64_t side = std::max(picture.height, picture.width);
  Picture square = EmptyPicture(picture, { side, side });
  for (std::size_t i = 0; i < square.pixels.size(); ++i)
  {
    const double byte = std::floor(std::clamp(color[i % Channels], 0.0, 1.0) * 255);
    square.pixels[i] = static_cast<std::uint16_t>(std::lround(byte * picture.maximum / 255));
  }
  const std::int64_t top = (side - picture.height) / 2;
  const std::int64_t left = (side - picture.width) / 2;
  for (std::int64_t y = 0; y < picture.height; ++y)
  {
    std::copy_n(picture.pixels.data() + Channels * ToIndex(y * picture.width),
      Channels * ToIndex(picture.width),
      square.pixels.data() + Channels * ToIndex((top + y) * side + left));
  }
  return square;
}

std::vector<float> Normalized(const Picture& picture, const ImageProcessor& processor)
{
  const std::size_t count = ToIndex(picture.height) * ToIndex(picture.width);
  const double byte = 255.0 / picture.maximum;
  const double factor = processor.rescale ? processor.factor : 1;
  std::vector<float> pixels(Channels * count);
  for (std::size_t channel = 0; channel < Channels; ++channel)
  {
    for (std::size_t i = 0; i < count; ++i)
    {
      const double value = picture.pixels[Channels * i + channel] * byte;
      float& pixel = pixels[channel * count + i];
      pixel = static_cast<float>(value * factor); // each step rounds, as in the original
      if (processor.normalize)
      {
        pixel = (pixel - static_cast<float>(processor.mean[channel])) /
                static_cast<float>(processor.deviation[channel]);
      }
    }
  }
  return pixels;
}

std::vector<float> Preprocess(Picture picture, const ImageProcessor& processor)
{
  return Normalized(ResizeAndCrop(std::move(picture), processor), processor);
}

}
