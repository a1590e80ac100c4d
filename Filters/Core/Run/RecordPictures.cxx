#include "RecordPictures.h"

#include "Error.h"
#include "Index.h"
#include "MappedFile.h"
#include "PictureFile.h"

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

/// The pixels of one image, from its planes of channels.
void ToPicture(
  const float* planes, std::size_t count, const ImageProcessor& processor, std::uint8_t* pixels)
{
  for (std::size_t channel = 0; channel < Channels; ++channel)
  {
    for (std::size_t i = 0; i < count; ++i)
    {
      const double brightness = Brightness(processor, channel, planes[channel * count + i]);
      pixels[Channels * i + channel] =
        static_cast<std::uint8_t>(std::floor(White * brightness + 0.5));
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

/// The processor that made the pictures; of the model only the size of its images matters.
ImageProcessor ProcessorOf(const RecordedPictures& pictures)
{
  TransformerConfig config;
  config.channels = Channels;
  config.imageHeight = pictures.height;
  config.imageWidth = pictures.width;
  return ParseImageProcessor(pictures.processing, "how pictures were processed", config);
}

/// Reads the picture of a file again.
std::shared_ptr<std::uint8_t> ReadAgain(
  const RecordedPictures& pictures, const PictureSource& source)
{
  const std::filesystem::path path = source.file;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) // a pipe would be waited for
  {
    throw OptionError(source.file + ": there is no such file.");
  }
  auto pixels = ToBytes(ResizeAndCrop(ReadPicture(source.file).picture, ProcessorOf(pictures)));
  const std::string hash = PictureHash(pixels.get(), pictures.height, pictures.width);
  if (hash != source.hash)
  {
    throw OptionError(source.file + ": the picture has changed: expected pixels of hash " +
                      source.hash + ", found " + hash + ".");
  }
  return pixels;
}

}

std::uint64_t PictureBytes(const TransformerConfig& config, std::int64_t images)
{
  return static_cast<std::uint64_t>(images) * Channels *
         static_cast<std::uint64_t>(config.imageHeight * config.imageWidth);
}

RecordedPictures RecordPictures(const std::vector<float>& pixels, const TransformerConfig& config,
  const ImageProcessor& processor, const std::vector<std::string>& files, bool keepPixels)
{
  RecordedPictures pictures;
  pictures.height = config.imageHeight;
  pictures.width = config.imageWidth;
  const std::uint64_t bytes = pictures.BytesPerPicture();
  const std::size_t images = pixels.size() / bytes;
  if (!keepPixels && files.size() != images)
  {
    return {};
  }
  pictures.count = static_cast<std::int64_t>(images);
  pictures.pixels = NewBytes(keepPixels ? bytes * images : bytes);
  for (std::size_t image = 0; image < images; ++image)
  {
    std::uint8_t* place = pictures.pixels.get() + (keepPixels ? image * bytes : 0);
    ToPicture(pixels.data() + image * bytes, bytes / Channels, processor, place);
    if (!keepPixels)
    {
      pictures.sources.push_back(
        { files[image], PictureHash(place, pictures.height, pictures.width) });
    }
  }
  if (!keepPixels)
  {
    pictures.pixels.reset();
    pictures.processing = ToJson(processor);
  }
  return pictures;
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
    return { pictures.pixels,
      pictures.pixels.get() + static_cast<std::uint64_t>(sequence) * pictures.BytesPerPicture() };
  }
  const PictureSource& source = pictures.sources[sequence];
  try
  {
    return ReadAgain(pictures, source);
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
