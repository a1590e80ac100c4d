#include "PreprocessPicture.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Base/Pi.h"

#include <cmath>
#include <utility>

namespace atlas
{
namespace
{

constexpr std::int64_t WeightBits = 22;

void RequireSize(ImageSize size)
{
  ThrowIf<OptionError>(
    size.first < 1 || size.second < 1 || size.first > MaximumPixels / size.second,
    "expected an image of 1 to ", MaximumPixels, " pixels, found ", SizeText(size), ".");
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
/// weights[i].size() input pixels, starting at first[i]. Weights are in units of 2^-bits.
struct Windows
{
  std::vector<std::int64_t> first;
  std::vector<std::vector<std::int64_t>> weights;
  std::int64_t bits = WeightBits;
};

/// The unit of weights of which `largest` is the largest, as torchvision chooses it.
std::int64_t BitsFor(double largest)
{
  constexpr double most = 1 << 15;
  std::int64_t bits = 0;
  while (
    bits < WeightBits && std::floor(0.5 + std::ldexp(largest, static_cast<int>(bits) + 1)) < most)
  {
    ++bits;
  }
  return bits;
}

Windows MakeWindows(std::int64_t from, std::int64_t to, ResampleFilter filter, PixelMaker maker)
{
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double unit = std::max(scale, 1.0);
  const double support = Support(filter) * unit;
  Windows windows;
  std::vector<std::vector<double>> all;
  double largest = 0;
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
    for (double& weight : weights)
    {
      weight = sum != 0 ? weight / sum : weight;
      largest = std::max(largest, weight);
    }
    all.push_back(std::move(weights));
  }
  windows.bits = maker == PixelMaker::Torchvision ? BitsFor(largest) : WeightBits;
  const auto one = static_cast<double>(std::int64_t{ 1 } << windows.bits);
  for (const std::vector<double>& weights : all)
  {
    std::vector<std::int64_t>& rounded = windows.weights.emplace_back();
    for (const double weight : weights)
    {
      const double part = weight * one;
      rounded.push_back(static_cast<std::int64_t>(part < 0 ? part - 0.5 : part + 0.5));
    }
  }
  return windows;
}

/// Converts a sum of weighted pixels to an integer from 0 to `maximum`.
std::uint16_t Rounded(std::int64_t sum, std::int64_t bits, std::uint16_t maximum)
{
  const std::int64_t half = std::int64_t{ 1 } << (bits - 1);
  const std::int64_t value = std::max<std::int64_t>(sum + half, 0) >> bits;
  return static_cast<std::uint16_t>(std::min<std::int64_t>(value, maximum));
}

/// A black image with the same maximum. Throws OptionError for an invalid size.
Picture EmptyPicture(const Picture& like, ImageSize size)
{
  RequireSize(size);
  return { size.first, size.second, like.maximum,
    std::vector<std::uint16_t>(Channels * ToIndex(size.first) * ToIndex(size.second)) };
}

/// Resamples one side of each of `lines` parts of a picture. The numbers of neighbors along that
/// side are `stride` apart: a pixel, or a row.
Picture ResampleLines(const Picture& picture, ImageSize size, std::int64_t lines,
  std::size_t stride, const Windows& windows)
{
  Picture result = EmptyPicture(picture, size);
  const std::size_t length = picture.pixels.size() / ToIndex(lines);
  std::vector<std::int64_t> sums(stride);
  std::uint16_t* to = result.pixels.data();
  for (std::int64_t line = 0; line < lines; ++line)
  {
    for (std::size_t i = 0; i < windows.first.size(); ++i)
    {
      std::fill(sums.begin(), sums.end(), 0);
      const std::uint16_t* from =
        picture.pixels.data() + ToIndex(line) * length + stride * ToIndex(windows.first[i]);
      for (const std::int64_t weight : windows.weights[i])
      {
        for (std::int64_t& sum : sums)
        {
          sum += weight * *from++;
        }
      }
      for (const std::int64_t sum : sums)
      {
        *to++ = Rounded(sum, windows.bits, picture.maximum);
      }
    }
  }
  return result;
}

Picture ResampleRows(
  const Picture& picture, std::int64_t width, ResampleFilter filter, PixelMaker maker)
{
  return ResampleLines(picture, { picture.height, width }, picture.height, Channels,
    MakeWindows(picture.width, width, filter, maker));
}

Picture ResampleColumns(
  const Picture& picture, std::int64_t height, ResampleFilter filter, PixelMaker maker)
{
  return ResampleLines(picture, { height, picture.width }, 1, Channels * ToIndex(picture.width),
    MakeWindows(picture.height, height, filter, maker));
}

/// The nearest input pixel of each output pixel. As in Pillow, steps are added up, which rounds;
/// torchvision multiplies in single precision.
std::vector<std::int64_t> NearestPixels(std::int64_t from, std::int64_t to, PixelMaker maker)
{
  const double step = static_cast<double>(from) / static_cast<double>(to);
  std::vector<std::int64_t> pixels;
  double position = step * 0.5;
  for (std::int64_t i = 0; i < to; ++i)
  {
    if (maker == PixelMaker::Torchvision)
    {
      const float scale = static_cast<float>(from) / static_cast<float>(to);
      position = static_cast<double>(std::floor((static_cast<float>(i) + 0.5F) * scale));
    }
    pixels.push_back(std::min(static_cast<std::int64_t>(position), from - 1));
    position += step;
  }
  return pixels;
}

Picture ResampleNearest(const Picture& picture, ImageSize size, PixelMaker maker)
{
  Picture result = EmptyPicture(picture, size);
  const std::vector<std::int64_t> columns = NearestPixels(picture.width, size.second, maker);
  std::uint16_t* to = result.pixels.data();
  for (const std::int64_t row : NearestPixels(picture.height, size.first, maker))
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
ImageSize ResizedSize(const Picture& picture, const ImageProcessor& processor)
{
  if (processor.shortestEdge == 0)
  {
    return { processor.height, processor.width };
  }
  const auto [shorter, longer] = std::minmax(picture.height, picture.width);
  // Hugging Face divides in double precision and truncates.
  const auto other = static_cast<std::int64_t>(
    static_cast<double>(processor.shortestEdge * longer) / static_cast<double>(shorter));
  return picture.width <= picture.height ? ImageSize{ other, processor.shortestEdge }
                                         : ImageSize{ processor.shortestEdge, other };
}

/// Half of an integer, rounded down.
std::int64_t Half(std::int64_t value)
{
  return (value - (value < 0 ? 1 : 0)) / 2;
}

Picture Crop(const Picture& picture, ImageSize size, PixelMaker maker)
{
  Picture result = EmptyPicture(picture, size);
  const bool isTorch = maker == PixelMaker::Torchvision; // an odd pixel is at the right or below
  const std::int64_t rows = picture.height - size.first;
  const std::int64_t columns = picture.width - size.second;
  const std::int64_t top = isTorch ? rows / 2 : Half(rows);
  const std::int64_t left = isTorch ? columns / 2 : Half(columns);
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

}

Picture Resample(const Picture& picture, std::int64_t height, std::int64_t width,
  ResampleFilter filter, PixelMaker maker)
{
  RequireSize({ height, width });
  if (maker == PixelMaker::Torchvision)
  {
    ThrowIf<OptionError>(filter == ResampleFilter::Box || filter == ResampleFilter::Hamming,
      "expected a filter that torchvision has for pixels as it makes them, found ",
      filter == ResampleFilter::Box ? "box" : "Hamming", ".");
    filter = filter == ResampleFilter::Lanczos ? ResampleFilter::Bicubic : filter;
  }
  if (filter == ResampleFilter::Nearest)
  {
    return ResampleNearest(picture, { height, width }, maker);
  }
  if (width == picture.width)
  {
    return height == picture.height ? picture : ResampleColumns(picture, height, filter, maker);
  }
  const Picture rows = ResampleRows(picture, width, filter, maker);
  return height == picture.height ? rows : ResampleColumns(rows, height, filter, maker);
}

Picture ResizeAndCrop(Picture picture, const ImageProcessor& processor)
{
  if (processor.resize)
  {
    const ImageSize size = ResizedSize(picture, processor);
    picture = Resample(picture, size.first, size.second, processor.filter, processor.maker);
  }
  if (processor.crop)
  {
    picture = Crop(picture, { processor.cropHeight, processor.cropWidth }, processor.maker);
  }
  const ImageSize found = { picture.height, picture.width };
  const ImageSize expected = { processor.modelHeight, processor.modelWidth };
  ThrowIf<OptionError>(found != expected, "preprocessing gives ", SizeText(found), ", expected ",
    SizeText(expected), ", the input size of the model.");
  return picture;
}

Picture PadToSquare(const Picture& picture, const std::array<double, Channels>& color)
{
  const std::int64_t side = std::max(picture.height, picture.width);
  return PadTo(picture, { side, side }, color);
}

Picture PadTo(const Picture& picture, ImageSize size, const std::array<double, Channels>& color)
{
  Picture square = EmptyPicture(picture, size);
  for (std::size_t i = 0; i < square.pixels.size(); ++i)
  {
    const double byte = std::floor(std::clamp(color[i % Channels], 0.0, 1.0) * 255);
    square.pixels[i] = static_cast<std::uint16_t>(std::lround(byte * picture.maximum / 255));
  }
  const std::int64_t top = (size.first - picture.height) / 2;
  const std::int64_t left = (size.second - picture.width) / 2;
  for (std::int64_t y = 0; y < picture.height; ++y)
  {
    std::copy_n(picture.pixels.data() + Channels * ToIndex(y * picture.width),
      Channels * ToIndex(picture.width),
      square.pixels.data() + Channels * ToIndex((top + y) * size.second + left));
  }
  return square;
}

std::vector<float> Normalized(const Picture& picture, const ImageProcessor& processor)
{
  const std::size_t count = ToIndex(picture.height) * ToIndex(picture.width);
  const double byte = 255.0 / picture.maximum;
  const double factor = processor.rescale ? processor.factor : 1;
  const bool isTorch = processor.maker == PixelMaker::Torchvision;
  const bool isFused = isTorch && processor.rescale && processor.normalize;
  std::vector<float> pixels(Channels * count);
  for (std::size_t channel = 0; channel < Channels; ++channel)
  {
    const auto white = static_cast<float>(1 / factor);
    const float mean = static_cast<float>(processor.mean[channel]) * white;
    const float deviation = static_cast<float>(processor.deviation[channel]) * white;
    for (std::size_t i = 0; i < count; ++i)
    {
      const double value = picture.pixels[Channels * i + channel] * byte;
      if (isFused)
      {
        pixels[channel * count + i] = (static_cast<float>(value) - mean) / deviation;
        continue;
      }
      float& pixel = pixels[channel * count + i];
      pixel = isTorch // each step rounds, as in the original
                ? static_cast<float>(value) * static_cast<float>(factor)
                : static_cast<float>(value * factor);
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
