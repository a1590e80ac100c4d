#include "VisionPixels.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "PreprocessPicture.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <tuple>
#include <utility>

namespace atlas
{
namespace
{

/// The proportions from which on pictures of any size are refused.
constexpr double MostElongated = 200;

/// The number of tiles on which the proportions of a picture are best kept: rows, columns.
ImageSize GridOf(const Picture& picture, const VisionProcessor& processor)
{
  const auto height = static_cast<double>(picture.height);
  const auto width = static_cast<double>(picture.width);
  const double proportions = width / height;
  const double tile = static_cast<double>(processor.image.modelHeight) *
                      static_cast<double>(processor.image.modelWidth);
  ImageSize best = { 1, 1 };
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
    ResampleFilter::Bicubic, image.maker);
  if (seen.rows * seen.columns > 1)
  {
    seen.whole =
      Resample(picture, image.modelHeight, image.modelWidth, ResampleFilter::Bicubic, image.maker);
  }
  return seen;
}

/// A length in proportion to another one, rounded down as the original does.
std::int64_t InProportion(std::int64_t longer, ImageSize sides)
{
  const auto height = static_cast<double>(sides.first);
  const auto width = static_cast<double>(sides.second);
  const double proportions = width / height;
  const auto length = static_cast<double>(longer);
  return static_cast<std::int64_t>(
    sides.second >= sides.first ? length / proportions : length * proportions);
}

/// The sides with a given length of the longer one and another one of the shorter one.
ImageSize SidesOf(ImageSize proportions, std::int64_t longer, std::int64_t shorter)
{
  return proportions.second >= proportions.first ? ImageSize{ shorter, longer }
                                                 : ImageSize{ longer, shorter };
}

ImageSize LongestEdgeSize(const Picture& picture, std::int64_t longestEdge)
{
  ImageSize sides = { picture.height, picture.width };
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
  ImageSize size = { picture.height, picture.width };
  Picture resized = picture;
  if (image.resize)
  {
    size = LongestEdgeSize(picture, processor.longestEdge);
    resized = Resample(picture, size.first, size.second, image.filter, image.maker);
  }
  SeenPicture seen;
  if (processor.splits)
  {
    const std::int64_t longer = UpTo(std::max(size.first, size.second), tile);
    const std::int64_t shorter =
      std::max(UpTo(InProportion(longer, size), tile), tile); // the original fails at 0
    size = SidesOf(size, longer, shorter);
    resized = Resample(resized, size.first, size.second, image.filter, image.maker);
    if (longer > tile)
    {
      seen.rows = size.first / tile;
      seen.columns = size.second / tile;
      seen.tiled = resized;
    }
  }
  seen.whole = Resample(resized, tile, tile, image.filter, image.maker);
  return seen;
}

/// The size, of those of a grid, in which the most pixels of a picture are shown.
ImageSize BestSize(const Picture& picture, const std::vector<ImageSize>& sizes)
{
  const auto height = static_cast<double>(picture.height);
  const auto width = static_cast<double>(picture.width);
  ImageSize best = sizes.front();
  std::int64_t most = 0;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const ImageSize& size : sizes)
  {
    const double scale =
      std::min(static_cast<double>(size.second) / width, static_cast<double>(size.first) / height);
    const std::int64_t shown =
      std::min(static_cast<std::int64_t>(width * scale) * static_cast<std::int64_t>(height * scale),
        picture.width * picture.height);
    const std::int64_t wasted = size.first * size.second - shown;
    if (shown > most || (shown == most && wasted < least))
    {
      best = size;
      most = shown;
      least = wasted;
    }
  }
  return best;
}

SeenPicture SeePadded(const Picture& picture, const VisionProcessor& processor)
{
  const ImageProcessor& image = processor.image;
  const ImageSize size = BestSize(picture, processor.gridSizes);
  const auto height = static_cast<double>(picture.height);
  const auto width = static_cast<double>(picture.width);
  const double across = static_cast<double>(size.second) / width;
  const double down = static_cast<double>(size.first) / height;
  const auto inProportion = [](double side, double scale, std::int64_t most)
  { return std::min(static_cast<std::int64_t>(std::ceil(side * scale)), most); };
  const ImageSize inner = across < down
                            ? ImageSize{ inProportion(height, across, size.first), size.second }
                            : ImageSize{ size.first, inProportion(width, down, size.second) };
  SeenPicture seen;
  seen.tiled = PadTo(
    Resample(picture, inner.first, inner.second, image.filter, image.maker), size, { 0, 0, 0 });
  seen.rows = size.first / image.modelHeight;
  seen.columns = size.second / image.modelWidth;
  seen.whole = Resample(picture, image.modelHeight, image.modelWidth, image.filter, image.maker);
  seen.source = { picture.height, picture.width };
  return seen;
}

/// A side of a picture as a number of tokens.
std::int64_t NearestCount(std::int64_t side, std::int64_t token)
{
  // Halves are rounded to even numbers, as in the original.
  return static_cast<std::int64_t>(
    std::nearbyint(static_cast<double>(side) / static_cast<double>(token)));
}

/// Pixtral: the size of a picture of which both sides have a bound.
ImageSize FittedSize(const Picture& picture, const VisionProcessor& processor)
{
  const auto height = static_cast<double>(picture.height);
  const auto width = static_cast<double>(picture.width);
  const double ratio = std::max(height / static_cast<double>(processor.longestHeight),
    width / static_cast<double>(processor.longestWidth));
  const std::int64_t token = processor.patchSize * processor.merge;
  const auto fitted = [&](std::int64_t side)
  {
    const std::int64_t length =
      ratio > 1 ? static_cast<std::int64_t>(std::floor(static_cast<double>(side) / ratio)) : side;
    return UpTo(std::max<std::int64_t>(length, 1), token);
  };
  return { fitted(picture.height), fitted(picture.width) };
}

/// The size of a picture, or of a video of so many frames.
ImageSize AnySizeOf(
  const Picture& picture, const VisionProcessor& processor, std::int64_t count = 1)
{
  if (processor.longestHeight > 0)
  {
    return FittedSize(picture, processor);
  }
  const double all = processor.countsFrames ? static_cast<double>(count) : 1;
  const std::int64_t groups =
    processor.countsFrames ? NearestCount(count, processor.patchFrames) * processor.patchFrames : 1;
  auto height = static_cast<double>(picture.height);
  auto width = static_cast<double>(picture.width);
  const std::int64_t token = processor.patchSize * processor.merge;
  const auto side = static_cast<double>(token);
  if (processor.countsFrames && std::min(height, width) < side)
  {
    const double scale = std::max(side / height, side / width);
    height = std::trunc(height * scale);
    width = std::trunc(width * scale);
  }
  ThrowIf<OptionError>(std::max(height, width) / std::min(height, width) > MostElongated,
    "expected one side of a picture to be at most 200 times the other, found ", picture.width,
    " x ", picture.height, " pixels (width x height).");
  ImageSize size = { NearestCount(static_cast<std::int64_t>(height), token) * token,
    NearestCount(static_cast<std::int64_t>(width), token) * token };
  if (groups * size.first * size.second > processor.maximumPixels)
  {
    const double ratio =
      std::sqrt(all * height * width / static_cast<double>(processor.maximumPixels));
    const auto scaled = [&](double length)
    {
      return std::max(token, static_cast<std::int64_t>(std::floor(length / ratio / side)) * token);
    };
    size = { scaled(height), scaled(width) };
  }
  else if (groups * size.first * size.second < processor.minimumPixels)
  {
    const double ratio =
      std::sqrt(static_cast<double>(processor.minimumPixels) / (all * height * width));
    const auto scaled = [&](double length)
    { return static_cast<std::int64_t>(std::ceil(length * ratio / side)) * token; };
    size = { scaled(height), scaled(width) };
  }
  return size;
}

/// A picture, or frame, in the size of a picture of any size.
Picture SeeAnySize(const Picture& picture, ImageSize size, const VisionProcessor& processor)
{
  if (processor.image.resize)
  {
    return Resample(
      picture, size.first, size.second, processor.image.filter, processor.image.maker);
  }
  const std::int64_t token = processor.patchSize * processor.merge;
  ThrowIf<OptionError>(picture.height % token != 0 || picture.width % token != 0,
    "expected sides that are multiples of ", token, " pixels, since do_resize is off, found ",
    picture.width, " x ", picture.height, " (width x height).");
  return picture;
}

/// Adds a block of a channel of normalized planes of this size.
void AddBlock(const std::vector<float>& planes, std::size_t channel, ImageSize size,
  ImageSize corner, ImageSize block, std::vector<float>& pixels)
{
  for (std::int64_t y = corner.first; y < corner.first + block.first; ++y)
  {
    const std::size_t first =
      (channel * ToIndex(size.first) + ToIndex(y)) * ToIndex(size.second) + ToIndex(corner.second);
    const auto from = planes.begin() + static_cast<std::ptrdiff_t>(first);
    pixels.insert(pixels.end(), from, from + block.second);
  }
}

void AddTiles(const SeenPicture& seen, const VisionProcessor& processor, VisionPixels& pixels)
{
  const std::int64_t picture = pixels.tiles.empty() ? 0 : pixels.tiles.back().picture + 1;
  const ImageSize tile = { processor.image.modelHeight, processor.image.modelWidth };
  if (seen.tiled)
  {
    const std::vector<float> planes = Normalized(*seen.tiled, processor.image);
    for (std::int64_t row = 0; row < seen.rows; ++row)
    {
      for (std::int64_t column = 0; column < seen.columns; ++column)
      {
        for (std::size_t channel = 0; channel < Channels; ++channel)
        {
          AddBlock(planes, channel, { seen.tiled->height, seen.tiled->width },
            { row * tile.first, column * tile.second }, tile, pixels.pixels);
        }
        pixels.tiles.push_back(
          { picture, row, column, seen.rows, seen.columns, seen.source.first, seen.source.second });
      }
    }
  }
  if (seen.whole)
  {
    const std::vector<float> planes = Normalized(*seen.whole, processor.image);
    pixels.pixels.insert(pixels.pixels.end(), planes.begin(), planes.end());
    pixels.tiles.push_back(
      { picture, -1, -1, seen.rows, seen.columns, seen.source.first, seen.source.second });
  }
  pixels.images = static_cast<std::int64_t>(pixels.tiles.size());
}

/// Adds a group of frames, normalized, of the size of a picture.
void AddGroup(const std::vector<std::vector<float>>& frames, ImageSize size,
  const VisionProcessor& processor, std::vector<float>& pixels)
{
  const std::int64_t patch = processor.patchSize;
  const std::int64_t columns = size.second / patch;
  const std::int64_t patches = size.first / patch * columns;
  for (std::int64_t i = 0; i < patches; ++i)
  {
    const auto [row, column] = PlaceOfPatch(i, columns, processor.merge);
    for (std::size_t channel = 0; channel < Channels; ++channel)
    {
      for (const std::vector<float>& frame : frames)
      {
        AddBlock(frame, channel, size, { row * patch, column * patch }, { patch, patch }, pixels);
      }
    }
  }
}

/// Adds frames, or the one of a picture, of any size; the last is repeated in a group.
void AddFrames(const std::vector<Picture>& frames, PatchExtent extent,
  const VisionProcessor& processor, VisionPixels& pixels)
{
  const auto count = static_cast<std::int64_t>(frames.size());
  extent.frames = (count + processor.patchFrames - 1) / processor.patchFrames;
  const ImageSize size = AnySizeOf(frames.front(), processor, count);
  ImageSize seen;
  for (std::int64_t group = 0; group < extent.frames; ++group)
  {
    std::vector<std::vector<float>> planes;
    for (std::int64_t i = 0; i < processor.patchFrames; ++i)
    {
      const std::int64_t frame = group * processor.patchFrames + i;
      if (frame >= count)
      {
        planes.push_back(planes.back());
        continue;
      }
      const Picture picture = SeeAnySize(frames[frame], size, processor);
      const ImageSize found = { picture.height, picture.width };
      seen = frame == 0 ? found : seen;
      ThrowIf<OptionError>(found != seen, "frame ", frame, ": expected the ", seen.second, " x ",
        seen.first, " pixels (width x height) of the first one, since do_resize is off, found ",
        picture.width, " x ", picture.height, ".");
      planes.push_back(Normalized(picture, processor.image));
    }
    AddGroup(planes, seen, processor, pixels.pixels);
  }
  extent.rows = seen.first / processor.patchSize;
  extent.columns = seen.second / processor.patchSize;
  extent.givenFrames = count;
  pixels.extents.push_back(extent);
}

}

SeenPicture SeePicture(const Picture& picture, const VisionProcessor& processor)
{
  SeenPicture seen;
  switch (processor.steps)
  {
    case PictureSteps::Grid:
      return SeeGrid(picture, processor);
    case PictureSteps::Split:
      return SeeSplit(picture, processor);
    case PictureSteps::Padded:
      return SeePadded(picture, processor);
    case PictureSteps::AnySize:
      seen.tiled = SeeAnySize(picture, AnySizeOf(picture, processor), processor);
      return seen;
    default:
      seen.whole =
        ResizeAndCrop(processor.padsToSquare ? PadToSquare(picture, processor.image.mean) : picture,
          processor.image);
      return seen;
  }
}

void AddPicture(const Picture& picture, const VisionProcessor& processor, VisionPixels& pixels)
{
  if (processor.steps == PictureSteps::AnySize)
  {
    AddFrames({ picture }, {}, processor, pixels);
  }
  else
  {
    AddTiles(SeePicture(picture, processor), processor, pixels);
  }
}

void AddVideo(const std::vector<Picture>& frames, double seconds, const VisionProcessor& processor,
  VisionPixels& pixels)
{
  if (processor.steps == PictureSteps::AnySize)
  {
    PatchExtent extent;
    extent.isVideo = true;
    extent.seconds = seconds * static_cast<double>(processor.patchFrames);
    AddFrames(frames, extent, processor, pixels);
    return;
  }
  for (const Picture& frame : frames)
  {
    AddPicture(frame, processor, pixels);
  }
  pixels.videoFrames.push_back(static_cast<std::int64_t>(frames.size()));
}

}
