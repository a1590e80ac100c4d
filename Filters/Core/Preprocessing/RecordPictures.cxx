#include "RecordPictures.h"

#include "Base/Error.h"
#include "Base/HashValues.h"
#include "Base/Index.h"
#include "Files/MappedFile.h"
#include "Files/PictureFile.h"
#include "PictureTokens.h"
#include "PreprocessPicture.h"
#include "VisionPixels.h"

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
PixelSquare TokenSquare(const VisionConfig& vision)
{
  return { vision.merge * vision.encoder->patchHeight, vision.merge * vision.encoder->patchWidth };
}

/// The part of an image, from the top left, that squares of `token` pixels cover.
PixelSquare CoveredPart(const TransformerConfig& encoder, PixelSquare token)
{
  return { encoder.imageHeight / token.height * token.height,
    encoder.imageWidth / token.width * token.width };
}

PixelSquare CoveredPart(const TransformerConfig& config)
{
  return CoveredPart(config, { config.patchHeight, config.patchWidth });
}

/// An entry per image, of those that are no part of pictures among words.
std::vector<PictureEntry> EntriesOfImages(const TransformerConfig& config, std::int64_t images)
{
  const PixelSquare shown = CoveredPart(config);
  PictureEntry entry;
  entry.content.height = static_cast<std::int32_t>(shown.height);
  entry.content.width = static_cast<std::int32_t>(shown.width);
  std::vector<PictureEntry> entries(images, entry);
  for (std::int64_t i = 0; i < images; ++i)
  {
    entries[i].first = i;
    entries[i].content.picture = static_cast<std::int32_t>(i);
  }
  return entries;
}

/// The number of images of an encoder in its pixels.
std::int64_t ImageCount(const std::vector<float>& pixels, const TransformerConfig& config)
{
  return static_cast<std::int64_t>(pixels.size()) /
         (std::int64_t{ Channels } * config.imageHeight * config.imageWidth);
}

std::vector<PictureEntry> EntriesOfTiles(
  const TransformerConfig& config, const TransformerInput& input)
{
  const PixelSquare tile = CoveredPart(*config.vision->encoder, TokenSquare(*config.vision));
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
        extent.isVideo ? static_cast<std::int32_t>(encoder.patchFrames) : std::int32_t{ 1 };
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

/// The brightness of entries, from the pixels that an encoder reads.
class EntryBrightness
{
public:
  EntryBrightness(const std::vector<float>& pixels, const TransformerConfig& encoder,
    std::int64_t merge, const ImageProcessor& processor)
    : Pixels(pixels)
    , Encoder(encoder)
    , Merge(merge)
    , Processor(processor)
  {
  }

  EntryBrightness(
    const TransformerInput& input, const TransformerConfig& config, const ImageProcessor& processor)
    : EntryBrightness(input.pixels, *config.vision->encoder, config.vision->merge, processor)
  {
  }

  /// That of an entry, [height, width, 3].
  std::vector<double> Of(const PictureEntry& entry) const
  {
    std::vector<double> result(
      Channels * ToIndex(entry.content.height) * ToIndex(entry.content.width));
    if (this->Encoder.ReadsAnySize())
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
  const std::vector<float>& Pixels;
  const TransformerConfig& Encoder;
  std::int64_t Merge;
  const ImageProcessor& Processor;

  PixelSquare Token() const
  {
    return { this->Merge * this->Encoder.patchHeight, this->Merge * this->Encoder.patchWidth };
  }

  /// Copies a block of all channels, whose rows are `stride` numbers apart, and which are `plane`
  /// numbers apart.
  void Copy(const float* from, std::int64_t stride, std::int64_t plane, PixelSquare block,
    std::int64_t top, std::int64_t left, const PictureEntry& entry, std::vector<double>& to) const
  {
    for (std::size_t channel = 0; channel < Channels; ++channel, from += plane)
    {
      for (std::int64_t y = 0; y < block.height; ++y)
      {
        for (std::int64_t x = 0; x < block.width; ++x)
        {
          const std::size_t pixel = ToIndex((top + y) * entry.content.width + left + x);
          to[Channels * pixel + channel] =
            Brightness(this->Processor, channel, from[y * stride + x]);
        }
      }
    }
  }

  void AddTiles(const PictureEntry& entry, std::vector<double>& to) const
  {
    const PixelSquare shown = CoveredPart(this->Encoder, this->Token());
    const std::int64_t plane = this->Encoder.imageHeight * this->Encoder.imageWidth;
    const float* from = this->Pixels.data() + entry.first * std::int64_t{ Channels } * plane;
    for (std::int64_t tile = 0; tile < entry.rows * entry.columns; ++tile)
    {
      this->Copy(from, this->Encoder.imageWidth, plane, shown, tile / entry.columns * shown.height,
        tile % entry.columns * shown.width, entry, to);
      from += std::int64_t{ Channels } * plane;
    }
  }

  /// The first frame of a group.
  void AddPatches(const PictureEntry& entry, std::vector<double>& to) const
  {
    const PixelSquare patch = { this->Encoder.patchHeight, this->Encoder.patchWidth };
    const std::int64_t plane = this->Encoder.patchFrames * patch.height * patch.width;
    const std::int64_t columns = entry.content.width / patch.width;
    const std::int64_t patches = entry.content.height / patch.height * columns;
    for (std::int64_t i = 0; i < patches; ++i)
    {
      const auto [row, column] = PlaceOfPatch(i, columns, this->Merge);
      this->Copy(this->Pixels.data() + entry.first + i * std::int64_t{ Channels } * plane,
        patch.width, plane, patch, row * patch.height, column * patch.width, entry, to);
    }
  }
};

/// The picture that an entry shows, of a file.
std::shared_ptr<std::uint8_t> ToEntry(
  const Picture& picture, const PictureContent& content, const VisionProcessor& processor)
{
  if (processor.steps == PictureSteps::AnySize) // a frame has the size of the first of its video
  {
    return ToBytes(processor.image.resize ? Resample(picture, content.height, content.width,
                                              processor.image.filter, processor.image.maker)
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
    throw OptionError(source.file, ": there is no such file.");
  }
  auto pixels = MakeAgain(pictures, index, ReadPicture(source.file).picture);
  const std::string hash = pixels == nullptr ? "a picture of another size"
                                             : PictureHash(pixels.get(), pictures.HeightOf(index),
                                                 pictures.WidthOf(index));
  ThrowIf<OptionError>(pixels == nullptr || hash != source.hash, source.file,
    ": the picture has changed: expected pixels of hash ", source.hash, ", found ", hash, ".");
  return pixels;
}

/// The file that an entry was read from; empty if it is not known.
std::string FileOf(const PictureEntry& entry, const std::vector<std::string>& files,
  const std::vector<PictureEntry>& entries)
{
  const std::size_t pictures = ToIndex(entries.back().content.picture) + 1;
  const std::size_t each = files.size() / pictures; // frames of a video
  const std::size_t file = ToIndex(entry.content.picture) * each + ToIndex(entry.content.frame);
  return file < files.size() ? files[file] : std::string();
}

/// Adds the pixels of all entries to `pictures`, which has their count and sizes, or else where
/// they come from.
void AddPixels(const EntryBrightness& brightness, const std::vector<PictureEntry>& entries,
  const std::vector<std::string>& files, bool keepPixels, RecordedPictures& pictures)
{
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
}

/// The mean colors of the squares that tokens cover, [tokens, 3]; `entryOf` of each is its entry,
/// or -1, for which the color is -1, too.
template<class EntryOf>
SharedMatrix MeanColors(const EntryBrightness& brightness, const std::vector<PictureEntry>& entries,
  const RecordedTokens& tokens, PixelSquare square, const EntryOf& entryOf)
{
  SharedMatrix colors = SharedMatrix::Zero(tokens.Count(), Channels);
  std::fill(colors.values.get(), colors.values.get() + colors.Count(), -1.F);
  std::int64_t known = -1; // tokens of a picture follow each other
  std::vector<double> values;
  for (std::int64_t i = 0; i < tokens.Count(); ++i)
  {
    const std::int64_t picture = entryOf(i);
    if (picture < 0)
    {
      continue;
    }
    if (picture != known)
    {
      values = brightness.Of(entries[picture]);
      known = picture;
    }
    const std::int64_t top = tokens.row[i] * square.height;
    const std::int64_t left = tokens.column[i] * square.width;
    std::array<double, Channels> sums = {};
    for (std::int64_t y = top; y < top + square.height; ++y)
    {
      for (std::int64_t x = left; x < left + square.width; ++x)
      {
        for (std::size_t c = 0; c < Channels; ++c)
        {
          sums[c] += values[Channels * ToIndex(y * entries[picture].content.width + x) + c];
        }
      }
    }
    const auto area = static_cast<double>(square.height * square.width);
    std::transform(sums.begin(), sums.end(), colors.Row(i),
      [&](double sum) { return static_cast<float>(sum / area); });
  }
  return colors;
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
  pictures.count = ImageCount(pixels, config);
  if (!keepPixels && static_cast<std::int64_t>(files.size()) != pictures.count)
  {
    return {};
  }
  AddPixels(EntryBrightness(pixels, config, 1, processor), EntriesOfImages(config, pictures.count),
    files, keepPixels, pictures);
  if (!keepPixels)
  {
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
  AddPixels(EntryBrightness(input, config, processor.image), entries, files, keepPixels, pictures);
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
  return MeanColors(EntryBrightness(input, config, processor.image), EntriesOf(config, input),
    tokens, { rows, columns }, [&](std::int64_t i) { return tokens.picture[i]; });
}

SharedMatrix PatchColors(const std::vector<float>& pixels, const TransformerConfig& config,
  const ImageProcessor& processor, const RecordedTokens& tokens)
{
  return MeanColors(EntryBrightness(pixels, config, 1, processor),
    EntriesOfImages(config, ImageCount(pixels, config)), tokens,
    { config.patchHeight, config.patchWidth },
    [&](std::int64_t i) { return tokens.row[i] < 0 ? -1 : tokens.sequence[i]; });
}

std::shared_ptr<const std::uint8_t> FindPicture(
  const RecordedPictures& pictures, std::int64_t sequence)
{
  ThrowIf<OptionError>(sequence < 0 || sequence >= pictures.count, "expected a picture from 0 to ",
    pictures.count - 1, ", found ", sequence, ".");
  if (pictures.pixels != nullptr)
  {
    RequireIntact(pictures.pixels.get());
    return { pictures.pixels, pictures.pixels.get() + pictures.FirstByte(sequence) };
  }
  ThrowIf<OptionError>(pictures.sources.empty(), "expected the pixels of picture ", sequence,
    ", or the file it was read from, found neither in the recording.");
  try
  {
    return ReadAgain(pictures, sequence);
  }
  catch (const Error& e)
  {
    throw OptionError(
      "picture of image ", sequence, ", which was recorded without its pixels: ", e.what());
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
  return HashText(hash);
}

}
