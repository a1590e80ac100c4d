#include "SoundFile.h"

#include "Base/Error.h"
#include "Base/Index.h"

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
  ThrowIf<FileError>(!std::filesystem::is_regular_file(path, error), path, ": expected a file.");
  SF_INFO info = {};
  const std::unique_ptr<SNDFILE, decltype(&sf_close)> file(
    sf_open(path.c_str(), SFM_READ, &info), sf_close);
  if (file == nullptr)
  {
    throw FormatError(path, ": expected a sound, such as a .wav file: ", sf_strerror(nullptr));
  }
  const std::int64_t channels = info.channels;
  ThrowIf<FormatError>(info.frames < 1 || channels < 1 || info.samplerate < 1 ||
                         info.frames > MaximumSamples / channels,
    path, ": expected 1 to ", MaximumSamples, " samples of all channels, found ", info.frames,
    " of ", channels, " channels at ", info.samplerate, " Hz.");
  Sound sound;
  sound.rate = info.samplerate;
  std::vector<float> block(ToIndex(FramesAtOnce * channels));
  for (std::int64_t read = 0; read < info.frames;)
  {
    const std::int64_t wanted = std::min(FramesAtOnce, std::int64_t{ info.frames } - read);
    const std::int64_t found = sf_readf_float(file.get(), block.data(), wanted);
    ThrowIf<FormatError>(found != wanted, path, ": expected ", info.frames,
      " samples, found the end of the file after ", read + std::max(found, std::int64_t{ 0 }), ".");
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
    throw FormatError(path, ": expected finite samples, found ", *other, " at ",
      other - sound.samples.begin(), ".");
  }
  return sound;
}

}
