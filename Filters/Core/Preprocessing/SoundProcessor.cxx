#include "SoundProcessor.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Base/Pi.h"
#include "Files/JsonSettings.h"
#include "Files/JsonText.h"
#include "Files/MappedFile.h"
#include "Weights/ImageProcessor.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>

#include <unsupported/Eigen/FFT>

namespace atlas
{
namespace
{

constexpr const char* WhisperType = "WhisperFeatureExtractor";

/// Settings that change no number: sounds are filled up at their end, and the model knows how far.
constexpr std::string_view HarmlessOfSounds =
  "auto_map mel_filters nb_max_frames padding_side processor_class return_attention_mask "
  "transformers_version";

constexpr double HighestFrequency = 8000;
constexpr std::int64_t MostWindow = 1 << 16;
constexpr std::int64_t MostBands = 4096;

/// Slaney's mel scale: linear below 1000 Hz, logarithmic above (Slaney 1998, "Auditory toolbox").
constexpr double LinearUpTo = 1000;
constexpr double MelPerHertz = 3. / 200;
constexpr double FirstLogMel = LinearUpTo * MelPerHertz;

double LogStep()
{
  return 27 / std::log(6.4);
}

double ToMel(double frequency)
{
  return frequency < LinearUpTo ? frequency * MelPerHertz
                                : FirstLogMel + std::log(frequency / LinearUpTo) * LogStep();
}

double ToFrequency(double mel)
{
  return mel < FirstLogMel ? mel / MelPerHertz
                           : LinearUpTo * std::exp((mel - FirstLogMel) / LogStep());
}

/// The weights of the mel filters [bands, window / 2 + 1]: triangles of area 1 over frequencies.
std::vector<double> MelFilters(const SoundProcessor& processor)
{
  const std::int64_t bins = processor.window / 2 + 1;
  const std::int64_t half = processor.rate / 2; // Hz, of the last bin
  const double highest = ToMel(HighestFrequency);
  const auto edge = [&](std::int64_t i)
  {
    return ToFrequency(highest * static_cast<double>(i) / static_cast<double>(processor.bands + 1));
  };
  std::vector<double> filters;
  for (std::int64_t band = 0; band < processor.bands; ++band)
  {
    const double low = edge(band);
    const double middle = edge(band + 1);
    const double high = edge(band + 2);
    for (std::int64_t bin = 0; bin < bins; ++bin)
    {
      const double frequency =
        static_cast<double>(half) * static_cast<double>(bin) / static_cast<double>(bins - 1);
      const double weight =
        std::min((frequency - low) / (middle - low), (high - frequency) / (high - middle));
      filters.push_back(std::max(weight, 0.) * 2 / (high - low));
    }
  }
  return filters;
}

/// The sound as frames see it: cut or filled up, and mirrored at both ends by half a window.
std::vector<double> Padded(const std::vector<float>& sound, const SoundProcessor& processor)
{
  const std::int64_t half = processor.window / 2;
  const std::int64_t last = processor.samples - 1;
  const std::int64_t known = sound.size();
  std::vector<double> padded;
  for (std::int64_t i = -half; i <= last + half; ++i)
  {
    const std::int64_t place = i < 0 ? -i : i > last ? 2 * last - i : i;
    padded.push_back(place < known ? static_cast<double>(sound[place]) : 0);
  }
  return padded;
}

/// The power spectra of frames.
class Spectra
{
public:
  explicit Spectra(std::int64_t size)
    : Frame(size)
  {
    for (std::int64_t i = 0; i < size; ++i) // periodic
    {
      this->Window.push_back(
        0.5 - 0.5 * std::cos(2 * Pi * static_cast<double>(i) / static_cast<double>(size)));
    }
  }

  /// The power of each frequency of a frame, [window / 2 + 1].
  const std::vector<double>& Of(const double* samples)
  {
    for (std::size_t i = 0; i < this->Frame.size(); ++i)
    {
      this->Frame[i] = samples[i] * this->Window[i];
    }
    this->Transform.fwd(this->Spectrum, this->Frame);
    this->Power.resize(this->Frame.size() / 2 + 1);
    std::transform(this->Spectrum.begin(),
      this->Spectrum.begin() + static_cast<std::ptrdiff_t>(this->Power.size()), this->Power.begin(),
      [](const std::complex<double>& value) { return std::norm(value); });
    return this->Power;
  }

private:
  std::vector<double> Window;
  std::vector<double> Frame;
  std::vector<std::complex<double>> Spectrum;
  std::vector<double> Power;
  Eigen::FFT<double> Transform;
};

}

SoundProcessor ParseSoundProcessor(
  std::string_view text, const std::string& source, const TransformerConfig& config)
{
  const nlohmann::json object = ParseJsonObject(text, source, "the configuration");
  const Settings settings(object, source);
  settings.RefuseVariants({ "dither", "padding_value", "do_normalize" }, "a step of preprocessing");
  const std::string type = settings.Text({ "feature_extractor_type" }, WhisperType);
  settings.FailIf(type != WhisperType, "unknown feature_extractor_type '", type.substr(0, 80),
    "', expected ", WhisperType, ".");
  SoundProcessor processor;
  const auto read = [&](const char* key, std::int64_t& value, std::int64_t most)
  { value = settings.Signed({ key }, value, 1, most); };
  read("feature_size", processor.bands, MostBands);
  read("sampling_rate", processor.rate, 1'000'000);
  read("n_fft", processor.window, MostWindow);
  read("hop_length", processor.hop, MostWindow);
  std::int64_t seconds = 30;
  read("chunk_length", seconds, 3600);
  processor.samples = seconds * processor.rate;
  read("n_samples", processor.samples, MaximumSamples);
  settings.FailIf(static_cast<double>(processor.rate) < 2 * HighestFrequency ||
                    processor.window % 2 != 0 || processor.samples <= processor.window,
    "expected a sampling_rate of at least 16000, an even n_fft and more samples than "
    "that, found ",
    processor.rate, ", ", processor.window, " and ", processor.samples, ".");
  settings.FailIf(processor.bands != config.melBands || processor.Frames() != 2 * config.positions,
    "expected ", config.melBands, " bands and ", 2 * config.positions,
    " frames, as the model reads, found ", processor.bands, " and ", processor.Frames(), ".");
  processor.unknownSettings = UnknownSettings(settings, HarmlessOfSounds);
  return processor;
}

SoundProcessor ReadSoundProcessor(
  const std::filesystem::path& folder, const TransformerConfig& config)
{
  const std::filesystem::path path = folder / ImageProcessorFile;
  if (std::filesystem::exists(path))
  {
    return ParseSoundProcessor(ReadFile(path), path.string(), config);
  }
  SoundProcessor processor;
  processor.bands = config.melBands;
  processor.samples = 2 * config.positions * processor.hop;
  return processor;
}

std::vector<float> LogMelFeatures(const Sound& sound, const SoundProcessor& processor)
{
  ThrowIf<OptionError>(sound.rate != processor.rate, "expected a sound of ", processor.rate,
    " samples per second, as the model was trained with, found ", sound.rate, ".");
  const std::vector<double> padded = Padded(sound.samples, processor);
  const std::vector<double> filters = MelFilters(processor);
  const std::int64_t frames = processor.Frames();
  const std::int64_t bins = processor.window / 2 + 1;
  std::vector<double> features(ToIndex(processor.bands * frames));
  Spectra spectra(processor.window);
  double largest = -10;
  for (std::int64_t frame = 0; frame < frames; ++frame)
  {
    const std::vector<double>& power = spectra.Of(padded.data() + frame * processor.hop);
    for (std::int64_t band = 0; band < processor.bands; ++band)
    {
      const double* filter = filters.data() + band * bins;
      const double sum = std::inner_product(filter, filter + bins, power.begin(), 0.);
      const double level = std::log10(std::max(sum, 1e-10));
      features[band * frames + frame] = level;
      largest = std::max(largest, level);
    }
  }
  std::vector<float> scaled;
  scaled.reserve(features.size());
  for (const double level : features)
  {
    scaled.push_back(static_cast<float>((std::max(level, largest - 8) + 4) / 4));
  }
  return scaled;
}

}
