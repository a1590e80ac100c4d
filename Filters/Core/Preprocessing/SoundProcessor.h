#pragma once

#include "Files/SoundFile.h"
#include "Weights/TransformerConfig.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// How sound becomes the log-mel features that a model reads (Radford et al. 2023, "Robust speech
/// recognition via large-scale weak supervision"; the feature extractor of Hugging Face's Whisper).
struct SoundProcessor
{
  std::int64_t bands = 80;       ///< mel filters, up to 8000 Hz
  std::int64_t rate = 16000;     ///< samples per second
  std::int64_t window = 400;     ///< samples of a Fourier transform
  std::int64_t hop = 160;        ///< samples from a frame to the next
  std::int64_t samples = 480000; ///< to which a sound is cut or filled up by zeros

  std::vector<std::string> unknownSettings; ///< names of settings in the file that are not known,
                                            ///< for a warning

  std::int64_t Frames() const { return this->samples / this->hop; }

  /// Seconds from one place of the encoder to the next, of two frames.
  double SecondsPerPlace() const
  {
    return 2. * static_cast<double>(this->hop) / static_cast<double>(this->rate);
  }
};

/// Parses a preprocessor_config.json. Throws FormatError if it is not a JSON object, ModelError if
/// a setting is out of range, the type is not Whisper's, or bands and frames are not those of the
/// model.
SoundProcessor ParseSoundProcessor(
  std::string_view text, const std::string& source, const TransformerConfig& config);

/// Reads the preprocessor_config.json of a folder; without one, settings are those of Whisper, for
/// the model's bands and positions. `config`: of the encoder, whose input is Sound. Throws as
/// ParseSoundProcessor, and FileError.
SoundProcessor ReadSoundProcessor(
  const std::filesystem::path& folder, const TransformerConfig& config);

/// The features [bands, frames]: the power of each frame of a Hann window, by a Fourier transform
/// in double precision, in triangular filters on Slaney's mel scale; of these log10, at least that
/// of the largest - 8; plus 4, divided by 4. Throws OptionError if the sound has another rate.
std::vector<float> LogMelFeatures(const Sound& sound, const SoundProcessor& processor);

}
