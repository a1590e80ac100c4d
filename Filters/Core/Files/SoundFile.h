#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace atlas
{

/// The most samples of a sound that is read, of all channels together: 2^28, 1.1 GB in memory.
constexpr std::int64_t MaximumSamples = std::int64_t{ 1 } << 28;

/// A sound in memory.
struct Sound
{
  std::int64_t rate = 0;      ///< samples per second
  std::vector<float> samples; ///< mean of the channels, -1 to 1
};

/// Whether the name of a file ends as that of a sound: .wav, .flac, .ogg, .oga, .opus, .aif, .aiff,
/// .au or .mp3, in any case.
bool IsSound(const std::string& path);

/// Decodes a sound file, by libsndfile: WAV, FLAC, Ogg, AIFF, AU and what else it knows. Throws
/// FileError if the file cannot be read. Throws FormatError, with the name of the file, if it is no
/// sound, is damaged, is empty or has more than MaximumSamples samples, or one that is not finite.
Sound ReadSound(const std::string& path);

}
