#include "RecordPictures.h"

#include "Error.h"
#include "Index.h"
#include "MappedFile.h"
#include "PictureFile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <utility>

namespace atlas
{
namespace
{

constexpr std::size_t Channels = 3;
constexpr double White = 255;

std::shared_ptr<std::uint8_t> NewBytes(std::uint64_t count)
{
  const std::shared_ptr<std::uint8_t[]> memory(new std::uint8_t[count]);
  return { memory, memory.get() };
}

std::uint8_t ToByte(double brightness)
{
  return static_cast<std::uint8_t>(std::floor(White * brightness + 0.5));
}

struct PixelSquare
{
  std::int64_t height = 0;
  std::int64_t width = 0;
};

/// The part of an image that patches cover, from the top left.
PixelSquare CoveredPart(const TransformerConfig& config)
{
  return { config.PatchRows() * config.patchHeight, config.PatchColumns() * config.patchWidth };
}

/// The pixels of a part of an image, from the planes of its channels.
void ToPicture(const float* planes, const TransformerConfig& config, PixelSquare part,
  const ImageProcessor& processor, std::uint8_t* pixels)
{
  for (std::int64_t y = 0; y < part.height; ++y)
  {
    for (std::int64_t x = 0; x < part.width; ++x)
    {
      const float* pixel = planes + y * config.imageWidth + x;
      for (std::size_t channel = 0; channel < Channels; ++channel)
      {
        *pixels++ = ToByte(Brightness(processor, channel, *pixel));
        pixel += config.imageHeight * config.imageWidth;
      }
    }
  }
}

std::shared_ptr<std::uint8_t> ToBytes(const Picture& picture)
{
  auto bytes = NewBytes(picture.pixels.size());
  for (std::size_t i = 0; i < picture.pixels.size(); ++i)
  {
    bytes.get()[i] = static_cast<std::uint8_t>(
      std::floor(White * picture.pixels[i] / static_cast<double>(picture.maximum) + 0.5));
  }
  return bytes;
}

/// How the pictures of an encoder are made again. Whatever its patches do not cover is not shown;
/// then the size of its images is a setting, too.
std::string ProcessingOf(
  const TransformerConfig& config, PixelSquare shown, const ImageProcessor& processor)
{
  if (shown.height == config.imageHeight && shown.width == config.imageWidth)
  {
    return ToJson(processor);
  }
  VisionProcessor whole;
  whole.image = processor;
  return ToJson(whole);
}

/// The processor that made the pictures; of the model only the size of its images matters.
ImageProcessor ProcessorOf(const RecordedPictures& pictures)
{
  if (pictures.processing.find("\"model_size\"") != std::string::npos)
  {
    return ParseVisionProcessor(pictures.processing, "how pictures were processed").image;
  }
  TransformerConfig config;
  config.channels = Channels;
  config.imageHeight = pictures.height;
  config.imageWidth = pictures.width;
  return ParseImageProcessor(pictures.processing, "how pictures were processed", config);
}

/// The part of an encoder's images that tokens cover, and where in the input it is.
struct PictureEntry
{
  PictureContent content;
  std::int64_t first = 0; ///< image, or number in the input's pixels of any size
  std::int64_t rows = 1;  ///< of tiles
  std::int64_t columns = 1;
};

/// The pixels of a token.
PixelSquare TokenSquare(const TransformerConfig& config)
{
  const VisionConfig& vision = *config.vision;
  return { vision.merge * vision.encoder->patchHeight, vision.merge * vision.encoder->patchWidth };
}

/// The part of a tile that its tokens cover.
PixelSquare ShownTile(const TransformerConfig& config)
{
  const TransformerConfig& encoder = *config.vision->encoder;
  const PixelSquare token = TokenSquare(config);
  return { encoder.imageHeight / token.height * token.height,
    encoder.imageWidth / token.width * token.width };
}

std::vector<PictureEntry> EntriesOfTiles(
  const TransformerConfig& config, const TransformerInput& input)
{
  const PixelSquare tile = ShownTile(config);
  std::vector<PictureEntry> entries;
  for (std::size_t image = 0; image < input.tiles.size(); ++image)
  {
    const TilePlace& place = input.tiles[image];
    const bool isNext = image == 0 || input.tiles[image - 1].picture != place.picture;
    if (!isNext && !place.IsWhole())
    {
      continue;
    }
    PictureEntry entry;
    entry.first = static_cast<std::int64_t>(image);
    entry.rows = place.IsWhole() ? 1 : place.rows;
    entry.columns = place.IsWhole() ? 1 : place.columns;
    entry.content.picture = static_cast<std::int32_t>(place.picture);
    entry.content.isSmall = !isNext;
    entry.content.height = static_cast<std::int32_t>(entry.rows * tile.height);
    entry.content.width = static_cast<std::int32_t>(entry.columns * tile.width);
    entries.push_back(entry);
  }
  return entries;
}

std::vector<PictureEntry> EntriesOfExtents(
  const TransformerConfig& config, const TransformerInput& input)
{
  const TransformerConfig& encoder = *config.vision->encoder;
  std::vector<PictureEntry> entries;
  std::int64_t first = 0;
  for (std::size_t picture = 0; picture < input.extents.size(); ++picture)
  {
    const PatchExtent& extent = input.extents[picture];
    for (std::int64_t group = 0; group < extent.frames; ++group)
    {
      PictureEntry entry;
      entry.first = first;
      first += extent.rows * extent.columns * encoder.channels * encoder.patchFrames *
               encoder.patchHeight * encoder.patchWidth;
      entry.content.picture = static_cast<std::int32_t>(picture);
      entry.content.frame = static_cast<std::int32_t>(group * encoder.patchFrames);
      entry.content.frames =
        extent.isFilm ? static_cast<std::int32_t>(encoder.patchFrames) : std::int32_t{ 1 };
      entry.content.height = static_cast<std::int32_t>(extent.rows * encoder.patchHeight);
      entry.content.width = static_cast<std::int32_t>(extent.columns * encoder.patchWidth);
      entries.push_back(entry);
    }
  }
  return entries;
}

std::vector<PictureEntry> EntriesOf(const TransformerConfig& config, const TransformerInput& input)
{
  return config.vision->encoder->ReadsAnySize() ? EntriesOfExtents(config, input)
                                                : EntriesOfTiles(config, input);
}

/// The brightness of an entry, [height, width, 3].
class EntryBrightness
{
public:
  EntryBrightness(
    const TransformerInput& input, const TransformerConfig& config, const ImageProcessor& processor)
    : Input(input)
    , Config(config)
    , Processor(processor)
  {
  }

  std::vector<double> Of(const PictureEntry& entry) const
  {
    std::vector<double> result(
      Channels * ToIndex(entry.content.height) * ToIndex(entry.content.width));
    if (this->Config.vision->encoder->ReadsAnySize())
    {
      this->AddPatches(entry, result);
    }
    else
    {
      this->AddTiles(entry, result);
    }
    return result;
  }

private:
  const TransformerInput& Input;
  const TransformerConfig& Config;
  const ImageProcessor& Processor;

  /// Copies a block of one channel, whose rows are `stride` numbers apart.
  void Copy(std::size_t channel, const float* from, std::int64_t stride, PixelSquare block,
    std::int64_t top, std::int64_t left, const PictureEntry& entry, std::vector<double>& to) const
  {
    for (std::int64_t y = 0; y < block.height; ++y)
    {
      for (std::int64_t x = 0; x < block.width; ++x)
      {
        const std::size_t pixel = ToIndex((top + y) * entry.content.width + left + x);
        to[Channels * pixel + channel] = Brightness(this->Processor, channel, from[y * stride + x]);
      }
    }
  }

  void AddTiles(const PictureEntry& entry, std::vector<double>& to) const
  {
    const TransformerConfig& encoder = *this->Config.vision->encoder;
    const PixelSquare shown = ShownTile(this->Config);
    const std::int64_t plane = encoder.imageHeight * encoder.imageWidth;
    const float* from = this->Input.pixels.data() + entry.first * std::int64_t{ Channels } * plane;
    for (std::int64_t tile = 0; tile < entry.rows * entry.columns; ++tile)
    {
      for (std::size_t channel = 0; channel < Channels; ++channel, from += plane)
      {
        this->Copy(channel, from, encoder.imageWidth, shown, tile / entry.columns * shown.height,
          tile % entry.columns * shown.width, entry, to);
      }
    }
  }

  /// The first frame of a group.
  void AddPatches(const PictureEntry& entry, std::vector<double>& to) const
  {
    const TransformerConfig& encoder = *this->Config.vision->encoder;
    const PixelSquare patch = { encoder.patchHeight, encoder.patchWidth };
    const PixelSquare token = TokenSquare(this->Config);
    const std::int64_t merge = this->Config.vision->merge;
    const float* from = this->Input.pixels.data() + entry.first;
    for (std::int64_t top = 0; top < entry.content.height; top += token.height)
    {
      for (std::int64_t left = 0; left < entry.content.width; left += token.width)
      {
        for (std::int64_t i = 0; i < merge * merge; ++i)
        {
          for (std::size_t channel = 0; channel < Channels; ++channel)
          {
            this->Copy(channel, from, patch.width, patch, top + i / merge * patch.height,
              left + i % merge * patch.width, entry, to);
            from += encoder.patchFrames * patch.height * patch.width;
          }
        }
      }
    }
  }
};

/// The picture that an entry shows, of a file.
std::shared_ptr<std::uint8_t> ToEntry(
  const Picture& picture, const PictureContent& content, const VisionProcessor& processor)
{
  if (processor.steps == PictureSteps::AnySize) // a frame has the size of the first of its film
  {
    return ToBytes(processor.image.resize
                     ? Resample(picture, content.height, content.width, processor.image.filter)
                     : picture);
  }
  const SeenPicture seen = SeePicture(picture, processor);
  const bool isTiled = seen.tiled && !content.isSmall;
  if (!isTiled && !seen.whole)
  {
    return nullptr;
  }
  const Picture& all = isTiled ? *seen.tiled : *seen.whole;
  const std::int64_t rows = isTiled ? seen.rows : 1;
  const std::int64_t columns = isTiled ? seen.columns : 1;
  const PixelSquare shown = { content.height / rows, content.width / columns };
  const PixelSquare tile = { all.height / rows, all.width / columns };
  if (shown.height * rows != content.height || shown.width * columns != content.width ||
      shown.height > tile.height || shown.width > tile.width)
  {
    return nullptr;
  }
  Picture joined = { content.height, content.width, all.maximum, {} };
  for (std::int64_t y = 0; y < content.height; ++y)
  {
    const std::int64_t row = y / shown.height * tile.height + y % shown.height;
    for (std::int64_t column = 0; column < columns; ++column)
    {
      const auto from = all.pixels.begin() + static_cast<std::ptrdiff_t>(Channels) *
                                               (row * all.width + column * tile.width);
      joined.pixels.insert(
        joined.pixels.end(), from, from + static_cast<std::ptrdiff_t>(Channels) * shown.width);
    }
  }
  return ToBytes(joined);
}

/// The part of a picture from its top left, at most all of it.
Picture TopLeft(const Picture& picture, PixelSquare part)
{
  Picture result = { std::min(part.height, picture.height), std::min(part.width, picture.width),
    picture.maximum, {} };
  for (std::int64_t y = 0; y < result.height; ++y)
  {
    const auto from =
      picture.pixels.begin() + static_cast<std::ptrdiff_t>(Channels) * (y * picture.width);
    result.pixels.insert(
      result.pixels.end(), from, from + static_cast<std::ptrdiff_t>(Channels) * result.width);
  }
  return result;
}

/// Makes the picture of a file again; null if it has another size by now.
std::shared_ptr<std::uint8_t> MakeAgain(
  const RecordedPictures& pictures, std::int64_t index, Picture picture)
{
  if (pictures.contents.empty())
  {
    const Picture seen = ResizeAndCrop(std::move(picture), ProcessorOf(pictures));
    return ToBytes(TopLeft(seen, { pictures.height, pictures.width }));
  }
  const VisionProcessor processor =
    ParseVisionProcessor(pictures.processing, "how pictures were processed");
  const PictureContent& content = pictures.contents[index];
  if (processor.steps == PictureSteps::AnySize && !processor.image.resize &&
      (picture.height != content.height || picture.width != content.width))
  {
    return nullptr;
  }
  return ToEntry(picture, content, processor);
}

/// Reads the picture of a file again.
std::shared_ptr<std::uint8_t> ReadAgain(const RecordedPictures& pictures, std::int64_t index)
{
  const PictureSource& source = pictures.sources[index];
  const std::filesystem::path path = source.file;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) // a pipe would be waited for
  {
    throw OptionError(source.file + ": there is no such file.");
  }
  auto pixels = MakeAgain(pictures, index, ReadPicture(source.file).picture);
  const std::string hash = pixels == nullptr ? "a picture of another size"
                                             : PictureHash(pixels.get(), pictures.HeightOf(index),
                                                 pictures.WidthOf(index));
  if (pixels == nullptr || hash != source.hash)
  {
    throw OptionError(source.file + ": the picture has changed: expected pixels of hash " +
                      source.hash + ", found " + hash + ".");
  }
  return pixels;
}

/// The file that an entry was read from; empty if it is not known.
std::string FileOf(const PictureEntry& entry, const std::vector<std::string>& files,
  const std::vector<PictureEntry>& entries)
{
  const std::size_t pictures = ToIndex(entries.back().content.picture) + 1;
  const std::size_t each = files.size() / pictures; // frames of a film
  const std::size_t file = ToIndex(entry.content.picture) * each + ToIndex(entry.content.frame);
  return file < files.size() ? files[file] : std::string();
}

}

std::uint64_t PictureBytes(const TransformerConfig& config, std::int64_t images)
{
  const PixelSquare shown = CoveredPart(config);
  return static_cast<std::uint64_t>(images) * Channels *
         static_cast<std::uint64_t>(shown.height * shown.width);
}

RecordedPictures RecordPictures(const std::vector<float>& pixels, const TransformerConfig& config,
  const ImageProcessor& processor, const std::vector<std::string>& files, bool keepPixels)
{
  RecordedPictures pictures;
  const PixelSquare shown = CoveredPart(config);
  pictures.height = shown.height;
  pictures.width = shown.width;
  const std::uint64_t bytes = pictures.BytesPerPicture();
  const std::size_t size = Channels * ToIndex(config.imageHeight * config.imageWidth);
  const std::size_t images = pixels.size() / size;
  if (!keepPixels && files.size() != images)
  {
    return {};
  }
  pictures.count = static_cast<std::int64_t>(images);
  pictures.pixels = NewBytes(keepPixels ? bytes * images : bytes);
  for (std::size_t image = 0; image < images; ++image)
  {
    std::uint8_t* place = pictures.pixels.get() + (keepPixels ? image * bytes : 0);
    ToPicture(pixels.data() + image * size, config, shown, processor, place);
    if (!keepPixels)
    {
      pictures.sources.push_back(
        { files[image], PictureHash(place, pictures.height, pictures.width) });
    }
  }
  if (!keepPixels)
  {
    pictures.pixels.reset();
    pictures.processing = ProcessingOf(config, shown, processor);
  }
  return pictures;
}

std::vector<PictureContent> PictureContents(
  const TransformerConfig& config, const TransformerInput& input)
{
  std::vector<PictureContent> contents;
  for (const PictureEntry& entry : EntriesOf(config, input))
  {
    contents.push_back(entry.content);
  }
  return contents;
}

std::uint64_t PictureBytes(const std::vector<PictureContent>& contents)
{
  RecordedPictures pictures;
  pictures.contents = contents;
  return pictures.FirstByte(static_cast<std::int64_t>(contents.size()));
}

RecordedPictures RecordPictures(const TransformerInput& input, const TransformerConfig& config,
  const VisionProcessor& processor, const std::vector<std::string>& files, bool keepPixels)
{
  const std::vector<PictureEntry> entries = EntriesOf(config, input);
  RecordedPictures pictures;
  if (entries.empty())
  {
    return pictures;
  }
  pictures.contents = PictureContents(config, input);
  pictures.count = static_cast<std::int64_t>(entries.size());
  if (!keepPixels && files.empty())
  {
    return pictures;
  }
  const EntryBrightness brightness(input, config, processor.image);
  if (keepPixels)
  {
    pictures.pixels = NewBytes(pictures.FirstByte(pictures.count));
  }
  for (std::int64_t i = 0; i < pictures.count; ++i)
  {
    const PictureEntry& entry = entries[i];
    const std::vector<double> values = brightness.Of(entry);
    const auto bytes = keepPixels ? std::shared_ptr<std::uint8_t>(pictures.pixels,
                                      pictures.pixels.get() + pictures.FirstByte(i))
                                  : NewBytes(values.size());
    std::transform(values.begin(), values.end(), bytes.get(), ToByte);
    if (!keepPixels)
    {
      pictures.sources.push_back({ FileOf(entry, files, entries),
        PictureHash(bytes.get(), entry.content.height, entry.content.width) });
    }
  }
  if (!keepPixels)
  {
    pictures.processing = ToJson(processor);
  }
  return pictures;
}

SharedMatrix SquareColors(const TransformerInput& input, const TransformerConfig& config,
  const VisionProcessor& processor, const RecordedTokens& tokens, std::int64_t rows,
  std::int64_t columns)
{
  const std::vector<PictureEntry> entries = EntriesOf(config, input);
  const EntryBrightness brightness(input, config, processor.image);
  SharedMatrix colors = SharedMatrix::Zero(tokens.Count(), Channels);
  std::fill(colors.values.get(), colors.values.get() + colors.Count(), -1.F);
  std::int64_t known = -1; // tokens of a picture follow each other
  std::vector<double> values;
  for (std::int64_t i = 0; i < tokens.Count(); ++i)
  {
    const std::int64_t picture = tokens.picture[i];
    if (picture < 0)
    {
      continue;
    }
    const PictureEntry& entry = entries[picture];
    if (picture != known)
    {
      values = brightness.Of(entry);
      known = picture;
    }
    std::array<double, Channels> sums = {};
    for (std::int64_t y = tokens.row[i] * rows; y < (tokens.row[i] + 1) * rows; ++y)
    {
      for (std::int64_t x = tokens.column[i] * columns; x < (tokens.column[i] + 1) * columns; ++x)
      {
        for (std::size_t c = 0; c < Channels; ++c)
        {
          sums[c] += values[Channels * ToIndex(y * entry.content.width + x) + c];
        }
      }
    }
    std::transform(sums.begin(), sums.end(), colors.Row(i),
      [&](double sum) { return static_cast<float>(sum / static_cast<double>(rows * columns)); });
  }
  return colors;
}

std::shared_ptr<const std::uint8_t> FindPicture(
  const RecordedPictures& pictures, std::int64_t sequence)
{
  if (sequence < 0 || sequence >= pictures.count)
  {
    throw OptionError("expected a picture from 0 to " + std::to_string(pictures.count - 1) +
                      ", found " + std::to_string(sequence) + ".");
  }
  if (pictures.pixels != nullptr)
  {
    RequireIntact(pictures.pixels.get());
    return { pictures.pixels, pictures.pixels.get() + pictures.FirstByte(sequence) };
  }
  if (pictures.sources.empty())
  {
    throw OptionError("expected the pixels of picture " + std::to_string(sequence) +
                      ", or the file it was read from, found neither in the recording.");
  }
  try
  {
    return ReadAgain(pictures, sequence);
  }
  catch (const Error& e)
  {
    throw OptionError("picture of image " + std::to_string(sequence) +
                      ", which was recorded without its pixels: " + e.what());
  }
}

std::string PictureHash(const std::uint8_t* pixels, std::int64_t height, std::int64_t width)
{
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto add = [&hash](std::uint64_t byte) { hash = (hash ^ byte) * 0x100000001b3U; };
  for (const std::int64_t side : { height, width })
  {
    for (unsigned int shift = 0; shift < 64; shift += 8)
    {
      add(static_cast<std::uint64_t>(side) >> shift & 0xFFU);
    }
  }
  const std::size_t count = Channels * ToIndex(height) * ToIndex(width);
  for (std::size_t i = 0; i < count; ++i)
  {
    add(pixels[i]);
  }
  constexpr std::array<char, 17> digits = { "0123456789abcdef" };
  std::string text;
  for (unsigned int shift = 64; shift > 0; shift -= 4)
  {
    text += digits[hash >> (shift - 4) & 0xFU];
  }
  return text;
}

}
