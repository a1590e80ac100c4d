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

/// How sound becomes what a model reads.
struct SoundProcessor
{
  enum class Kind
  {
    LogMel,     ///< Radford et al. 2023, "Robust speech recognition via large-scale weak
                ///< supervision": the feature extractor of Hugging Face's Whisper
    Waveform,   ///< that of wav2vec 2.0: the samples, perhaps less their mean, divided by their
                ///< standard deviation
    FilterBank, ///< that of AST, which computes as Kaldi does
  };
  Kind kind = Kind::LogMel;
  std::int64_t bands = 80;       ///< mel filters, up to 8000 Hz
  std::int64_t rate = 16000;     ///< samples per second
  std::int64_t window = 400;     ///< samples of a Fourier transform
  std::int64_t hop = 160;        ///< samples from a frame to the next
  std::int64_t samples = 480000; ///< LogMel: to which a sound is cut or filled up by zeros
  std::int64_t frames = 1024;    ///< FilterBank: to which its features are
  bool normalizes = true;        ///< not LogMel
  double mean = -4.2677393;      ///< these: FilterBank, of features
  double deviation = 4.5689974;  ///< half of what they are divided by, less their mean

  std::vector<std::string> unknownSettings; ///< names of settings in the file that are not known,
                                            ///< for a warning

  std::int64_t Frames() const { return this->samples / this->hop; }

  /// The most samples that a model reads; 0: all.
  std::int64_t MostSamples() const
  {
    return this->kind == Kind::LogMel       ? this->samples
           : this->kind == Kind::FilterBank ? this->window + (this->frames - 1) * this->hop
                                            : 0;
  }

  /// LogMel: seconds from one place of the encoder to the next, of two frames.
  double SecondsPerPlace() const
  {
    return 2. * static_cast<double>(this->hop) / static_cast<double>(this->rate);
  }
};

/// Whether a model reads sound, or its encoder does.
inline bool ReadsSound(const TransformerConfig& config)
{
  return (config.encoder != nullptr ? *config.encoder : config).input == InputKind::Sound;
}

/// Parses a preprocessor_config.json. Throws FormatError if it is not a JSON object, ModelError if
/// a setting is out of range, if it is of another kind of model, or if bands and frames are not
/// those of the model.
SoundProcessor ParseSoundProcessor(
  std::string_view text, const std::string& source, const TransformerConfig& config);

/// Reads the preprocessor_config.json of a folder, or `feature_extractor` of a
/// processor_config.json; without one, settings are those of Whisper, wav2vec 2.0 or AST, for the
/// model's bands and positions. `config`: of the encoder, whose input is Sound. Throws as
/// ParseSoundProcessor, and FileError.
SoundProcessor ReadSoundProcessor(
  const std::filesystem::path& folder, const TransformerConfig& config);

/// The features [bands, frames]: the power of each frame of a Hann window, by a Fourier transform
/// in double precision, in triangular filters on Slaney's mel scale; of these log10, at least that
/// of the largest - 8; plus 4, divided by 4. Throws OptionError if the sound has another rate.
std::vector<float> LogMelFeatures(const Sound& sound, const SoundProcessor& processor);

/// What a model reads of a sound. LogMel: see above. Waveform: the samples. FilterBank [bands,
/// frames]: each frame less its mean, and each sample less 0.97 of that before, in a Hann window
/// filled up to 512 samples; its power, in triangular filters on the mel scale of Kaldi from 20 Hz
/// to half the rate; of these the logarithm, at least that of 2^-23; then 0 in frames behind the
/// sound, less `mean`, divided by 2 `deviation`. Throws OptionError if the sound has another rate,
/// or is shorter than a frame.
std::vector<float> SoundFeatures(const Sound& sound, const SoundProcessor& processor);

}
