#include "SoundFile.h"

#include "Error.h"
#include "Index.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <memory>

#include <sndfile.h>

namespace atlas
{
namespace
{

constexpr std::int64_t FramesAtOnce = std::int64_t{ 1 } << 16;

struct CloseSound
{
  void operator()(SNDFILE* file) const { sf_close(file); }
};

}

bool IsSound(const std::string& path)
{
  std::string ending = std::filesystem::path(path).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
    [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  constexpr std::array<const char*, 9> endings = { ".wav", ".flac", ".ogg", ".oga", ".opus", ".aif",
    ".aiff", ".au", ".mp3" };
  return std::find(endings.begin(), endings.end(), ending) != endings.end();
}

Sound ReadSound(const std::string& path)
{
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
  {
    throw FileError(path + ": expected a file.");
  }
  SF_INFO info = {};
  const std::unique_ptr<SNDFILE, CloseSound> file(sf_open(path.c_str(), SFM_READ, &info));
  if (file == nullptr)
  {
    throw FormatError(path + ": expected a sound, such as a .wav file: " + sf_strerror(nullptr));
  }
  const std::int64_t channels = info.channels;
  if (info.frames < 1 || channels < 1 || info.samplerate < 1 ||
      info.frames > MaximumSamples / channels)
  {
    throw FormatError(path + ": expected 1 to " + std::to_string(MaximumSamples) +
                      " samples of all channels, found " + std::to_string(info.frames) + " of " +
                      std::to_string(channels) + " channels at " + std::to_string(info.samplerate) +
                      " Hz.");
  }
  Sound sound;
  sound.rate = info.samplerate;
  std::vector<float> block(ToIndex(FramesAtOnce * channels));
  for (std::int64_t read = 0; read < info.frames;)
  {
    const std::int64_t wanted = std::min(FramesAtOnce, std::int64_t{ info.frames } - read);
    const std::int64_t found = sf_readf_float(file.get(), block.data(), wanted);
    if (found != wanted)
    {
      throw FormatError(path + ": expected " + std::to_string(info.frames) +
                        " samples, found the end of the file after " +
                        std::to_string(read + std::max(found, std::int64_t{ 0 })) + ".");
    }
    for (std::int64_t i = 0; i < found; ++i)
    {
      float sum = 0;
      for (std::int64_t c = 0; c < channels; ++c)
      {
        sum += block[i * channels + c];
      }
      sound.samples.push_back(sum / static_cast<float>(channels));
    }
    read += found;
  }
  const auto other = std::find_if_not(
    sound.samples.begin(), sound.samples.end(), [](float sample) { return std::isfinite(sample); });
  if (other != sound.samples.end())
  {
    throw FormatError(path + ": expected finite samples, found " + std::to_string(*other) + " at " +
                      std::to_string(other - sound.samples.begin()) + ".");
  }
  return sound;
}

}
