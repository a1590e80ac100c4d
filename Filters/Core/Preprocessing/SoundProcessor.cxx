#include "SoundProcessor.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Base/Pi.h"
#include "Files/JsonSettings.h"
#include "Files/JsonText.h"
#include "Files/MappedFile.h"
#include "VisionProcessor.h"
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
  /// Of frames of `size` samples, filled up to `filled`. A Hann window begins with 0, and repeats
  /// it after `period` samples.
  Spectra(std::int64_t size, std::int64_t filled, std::int64_t period)
    : Frame(ToIndex(filled))
  {
    for (std::int64_t i = 0; i < size; ++i)
    {
      this->Window.push_back(
        0.5 - 0.5 * std::cos(2 * Pi * static_cast<double>(i) / static_cast<double>(period)));
    }
  }

  /// The power of each frequency of a frame, [filled / 2 + 1].
  const std::vector<double>& Of(const double* samples)
  {
    for (std::size_t i = 0; i < this->Window.size(); ++i)
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

namespace
{

using Kind = SoundProcessor::Kind;

/// What Hugging Face calls it.
const char* ExtractorOf(Kind kind)
{
  return kind == Kind::LogMel     ? "WhisperFeatureExtractor"
         : kind == Kind::Waveform ? "Wav2Vec2FeatureExtractor"
                                  : "ASTFeatureExtractor";
}

/// The processor of a model without settings, but for what it reads.
SoundProcessor DefaultsOf(const TransformerConfig& config)
{
  SoundProcessor processor;
  processor.kind = config.sound != nullptr ? Kind::Waveform
                   : config.HasPatches()   ? Kind::FilterBank
                                           : Kind::LogMel;
  return processor;
}

nlohmann::json FoundOr(const Settings& settings, const char* key, double otherwise)
{
  const nlohmann::json* found = settings.Value({ key });
  return found == nullptr ? nlohmann::json(otherwise) : *found;
}

/// Throws ModelError if there is a setting that was not read and is not of files or batches.
void RefuseUnread(const Settings& settings)
{
  settings.Ignore({ "processor_class", "padding_side", "return_attention_mask", "return_tensors" });
  for (const Settings::Unread& unread : settings.FindUnread())
  {
    settings.Fail("'", unread.key, "' is ", Describe(*unread.value),
      ", a step of preprocessing that is not known.");
  }
}

/// Those of wav2vec 2.0 and AST.
void ParseOwn(const Settings& settings, const TransformerConfig& config, SoundProcessor& processor)
{
  processor.rate = settings.Signed({ "sampling_rate" }, processor.rate, 1000, 1'000'000);
  processor.normalizes = settings.Flag({ "do_normalize" }, true);
  settings.FailIf(settings.Signed({ "feature_size" }, 1) != 1,
    "expected 'feature_size' to be 1, that of one channel.");
  if (processor.kind == Kind::Waveform)
  {
    return;
  }
  processor.bands = settings.Signed({ "num_mel_bins" }, 128, 1, MostBands);
  processor.frames = settings.Signed({ "max_length" }, 1024, 1);
  const nlohmann::json mean = FoundOr(settings, "mean", processor.mean);
  settings.FailIf(!mean.is_number(), "expected 'mean' to be a number, found ", Describe(mean), ".");
  processor.mean = mean.get<double>();
  processor.deviation = settings.Number({ "std" }, processor.deviation);
  settings.FailIf(processor.bands != config.melBands || processor.frames != config.SoundFrames(),
    "expected ", config.melBands, " bands and ", config.SoundFrames(),
    " frames, as the model reads, found ", processor.bands, " and ", processor.frames, ".");
}

void RequireRate(const Sound& sound, const SoundProcessor& processor)
{
  ThrowIf<OptionError>(sound.rate != processor.rate, "expected a sound of ", processor.rate,
    " samples per second, as the model was trained with, found ", sound.rate, ".");
}

std::vector<float> NormalizedWaveform(const std::vector<float>& samples)
{
  const auto count = static_cast<double>(samples.size());
  const double mean = std::accumulate(samples.begin(), samples.end(), 0.) / count;
  double squares = 0;
  for (const float sample : samples)
  {
    squares += std::pow(static_cast<double>(sample) - mean, 2);
  }
  const double scale = 1 / std::sqrt(squares / count + 1e-7);
  std::vector<float> normalized;
  normalized.reserve(samples.size());
  for (const float sample : samples)
  {
    normalized.push_back(static_cast<float>((static_cast<double>(sample) - mean) * scale));
  }
  return normalized;
}

constexpr std::int64_t FilledFrame = 512;

/// The mel scale of Kaldi.
double ToKaldiMel(double frequency)
{
  return 1127 * std::log1p(frequency / 700);
}

/// The weights of filters [bands, FilledFrame / 2 + 1]: triangles of height 1 over mels.
std::vector<double> KaldiFilters(const SoundProcessor& processor)
{
  constexpr double lowest = 20;
  const double first = ToKaldiMel(lowest);
  const std::int64_t half = processor.rate / 2; // whole hertz, as in the original
  const double last = ToKaldiMel(static_cast<double>(half));
  const double step = (last - first) / static_cast<double>(processor.bands + 1);
  const double width = static_cast<double>(processor.rate) / FilledFrame; // Hz
  std::vector<double> filters;
  for (std::int64_t band = 0; band < processor.bands; ++band)
  {
    const double middle = first + step * static_cast<double>(band + 1);
    for (std::int64_t bin = 0; bin <= FilledFrame / 2; ++bin)
    {
      const double mel = ToKaldiMel(width * static_cast<double>(bin));
      filters.push_back(std::max(1 - std::abs(mel - middle) / step, 0.));
    }
  }
  return filters;
}

std::vector<float> FilterBankFeatures(const Sound& sound, const SoundProcessor& processor)
{
  constexpr double emphasis = 0.97;
  constexpr double least = 0x1p-23;
  const std::int64_t size = processor.window;
  const std::int64_t known = sound.samples.size();
  ThrowIf<OptionError>(
    known < size, "expected a sound of at least ", size, " samples, found ", known, ".");
  const std::int64_t frames = std::min((known - size) / processor.hop + 1, processor.frames);
  const std::vector<double> filters = KaldiFilters(processor);
  const std::int64_t bins = FilledFrame / 2 + 1;
  const double shift = processor.normalizes ? processor.mean : 0;
  const double scale = processor.normalizes ? 2 * processor.deviation : 1;
  std::vector<float> features(
    ToIndex(processor.bands * processor.frames), static_cast<float>(-shift / scale));
  Spectra spectra(size, FilledFrame, size - 1);
  std::vector<double> frame(ToIndex(size));
  for (std::int64_t f = 0; f < frames; ++f)
  {
    std::copy_n(sound.samples.begin() + f * processor.hop, size, frame.begin());
    const double mean = std::accumulate(frame.begin(), frame.end(), 0.) / static_cast<double>(size);
    for (double& sample : frame)
    {
      sample -= mean;
    }
    for (std::int64_t i = size - 1; i >= 0; --i)
    {
      frame[i] -= emphasis * frame[std::max<std::int64_t>(i - 1, 0)];
    }
    const std::vector<double>& power = spectra.Of(frame.data());
    for (std::int64_t band = 0; band < processor.bands; ++band)
    {
      const double* filter = filters.data() + band * bins;
      const double sum = std::inner_product(filter, filter + bins, power.begin(), 0.);
      features[band * processor.frames + f] =
        static_cast<float>((std::log(std::max(sum, least)) - shift) / scale);
    }
  }
  return features;
}

}

SoundProcessor ParseSoundProcessor(
  std::string_view text, const std::string& source, const TransformerConfig& config)
{
  const nlohmann::json object = ParseJsonObject(text, source, "the configuration");
  const Settings settings(object, source);
  SoundProcessor processor = DefaultsOf(config);
  const std::string kind = ExtractorOf(processor.kind);
  const std::string found = settings.Text({ "feature_extractor_type" }, kind);
  settings.FailIf(found != kind, "expected the feature_extractor_type to be ", kind,
    ", as the model reads, found ", found.substr(0, 80), ".");
  settings.RefuseVariants({ "dither", "padding_value" }, "a step of preprocessing");
  if (processor.kind != SoundProcessor::Kind::LogMel)
  {
    ParseOwn(settings, config, processor);
    RefuseUnread(settings);
    return processor;
  }
  settings.RefuseVariants({ "do_normalize" }, "a step of preprocessing");
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
  const std::filesystem::path whole = folder / ProcessorFile; // of release 5 of transformers
  if (std::filesystem::exists(whole))
  {
    const nlohmann::json object =
      ParseJsonObject(ReadFile(whole), whole.string(), "the configuration");
    const auto own = object.find("feature_extractor");
    if (own != object.end() && own->is_object())
    {
      return ParseSoundProcessor(own->dump(), whole.string(), config);
    }
  }
  SoundProcessor processor = DefaultsOf(config);
  processor.bands = config.melBands;
  processor.frames = config.SoundFrames();
  processor.samples = 2 * config.positions * processor.hop;
  return processor;
}

std::vector<float> LogMelFeatures(const Sound& sound, const SoundProcessor& processor)
{
  RequireRate(sound, processor);
  const std::vector<double> padded = Padded(sound.samples, processor);
  const std::vector<double> filters = MelFilters(processor);
  const std::int64_t frames = processor.Frames();
  const std::int64_t bins = processor.window / 2 + 1;
  std::vector<double> features(ToIndex(processor.bands * frames));
  Spectra spectra(processor.window, processor.window, processor.window);
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

std::vector<float> SoundFeatures(const Sound& sound, const SoundProcessor& processor)
{
  if (processor.kind == SoundProcessor::Kind::LogMel)
  {
    return LogMelFeatures(sound, processor);
  }
  RequireRate(sound, processor);
  if (processor.kind == SoundProcessor::Kind::FilterBank)
  {
    return FilterBankFeatures(sound, processor);
  }
  return processor.normalizes ? NormalizedWaveform(sound.samples) : sound.samples;
}

}
