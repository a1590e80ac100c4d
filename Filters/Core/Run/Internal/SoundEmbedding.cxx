#include "SoundEmbedding.h"

#include "Base/Index.h"
#include "Base/Parallel.h"
#include "TransformerKernels.h"
#include "TransformerLinear.h"
#include "TransformerNorm.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace atlas
{
namespace
{

/// The places of a convolution that are computed at once.
constexpr std::int64_t PlacesAtOnce = 1024;

/// How a convolution reads the places before it.
struct Frames
{
  std::int64_t count = 0;    ///< of places
  std::int64_t channels = 0; ///< that it reads
  std::int64_t width = 0;
  std::int64_t stride = 1;
  std::int64_t before = 0; ///< the places before the first one, which are 0
};

/// Calls at(frame) for the first value of a frame, of which each channel is `step` numbers behind
/// the one before, and writes what the convolution makes of `places` places to `to`, packed.
template<class At>
void Convolve(const Linear& linear, const Frames& frames, std::int64_t places, const At& at,
  std::int64_t step, float* to, const LinearFinish& finish, int threads)
{
  const std::int64_t inputs = frames.channels * frames.width;
  std::vector<float> rows(ToIndex(std::min(places, PlacesAtOnce) * inputs));
  for (std::int64_t first = 0; first < places; first += PlacesAtOnce)
  {
    const std::int64_t count = std::min(PlacesAtOnce, places - first);
    ParallelFor(count, threads,
      [&](std::int64_t i)
      {
        float* row = rows.data() + i * inputs;
        for (std::int64_t k = 0; k < frames.width; ++k)
        {
          const std::int64_t frame = (first + i) * frames.stride + k - frames.before;
          const bool isIn = frame >= 0 && frame < frames.count;
          const float* from = isIn ? at(frame) : nullptr;
          for (std::int64_t channel = 0; channel < frames.channels; ++channel)
          {
            row[channel * frames.width + k] = isIn ? from[channel * step] : 0;
          }
        }
      });
    ApplyLinear(linear, count, rows.data(), to + first * linear.Outputs(), finish, threads);
  }
}

/// Two convolutions over three frames, each followed by an activation: the second one reads every
/// second place.
void EmbedFeatures(const TransformerConfig& config, const TransformerWeights& weights,
  const float* features, float* x, int threads)
{
  const LinearFinish finish = { Activation::Gelu, nullptr, false };
  const std::int64_t d = config.modelDimension;
  const std::int64_t frames = config.SoundFrames();
  std::vector<float> hidden(ToIndex(frames * d));
  Convolve(
    Linear(weights.firstConvolution), { frames, config.melBands, 3, 1, 1 }, frames,
    [&](std::int64_t frame) { return features + frame; }, frames, hidden.data(), finish, threads);
  Convolve(
    Linear(weights.secondConvolution), { frames, d, 3, 2, 1 }, config.positions,
    [&](std::int64_t frame) { return hidden.data() + frame * d; }, 1, x, finish, threads);
}

/// Normalizes each channel over all places.
void NormChannels(const TransformerConfig& config, const NormTensors& tensors, std::int64_t places,
  std::int64_t channels, std::vector<float>& x, int threads)
{
  const FloatValues gain(tensors.gain);
  const FloatValues shift(tensors.shift);
  ParallelFor(channels, threads,
    [&](std::int64_t channel)
    {
      double sum = 0;
      double squares = 0;
      for (std::int64_t place = 0; place < places; ++place)
      {
        sum += static_cast<double>(x[place * channels + channel]);
      }
      const double mean = sum / static_cast<double>(places);
      for (std::int64_t place = 0; place < places; ++place)
      {
        squares += std::pow(static_cast<double>(x[place * channels + channel]) - mean, 2);
      }
      const double scale = static_cast<double>(gain.Data()[channel]) /
                           std::sqrt(squares / static_cast<double>(places) + config.epsilon);
      for (std::int64_t place = 0; place < places; ++place)
      {
        float& value = x[place * channels + channel];
        value = static_cast<float>(
          (static_cast<double>(value) - mean) * scale + static_cast<double>(shift.Data()[channel]));
      }
    });
}

/// Adds what a convolution of groups of channels makes of all places to them.
void AddConvolvedPositions(const TransformerConfig& config, const TransformerWeights& weights,
  std::int64_t places, float* x, int threads)
{
  const SoundConfig& sound = *config.sound;
  const std::int64_t d = config.modelDimension;
  const std::int64_t size = d / sound.positionGroups;
  const Frames frames = { places, size, sound.positionWidth, 1, sound.positionWidth / 2 };
  std::vector<float> positions(ToIndex(places * d));
  for (std::int64_t group = 0; group < sound.positionGroups; ++group)
  {
    LinearTensors tensors = weights.positionConvolution;
    tensors.weight = RowsOf(tensors.weight, group * size, size);
    tensors.bias = RowsOf(tensors.bias, group * size, size);
    tensors.outputs = size;
    Convolve(
      Linear(tensors), frames, places,
      [&](std::int64_t place) { return x + place * d + group * size; }, 1,
      positions.data() + group * places * size, { sound.activation, nullptr, false }, threads);
  }
  ParallelFor(places, threads,
    [&](std::int64_t place)
    {
      for (std::int64_t group = 0; group < sound.positionGroups; ++group)
      {
        AddRow(
          size, positions.data() + (group * places + place) * size, x + place * d + group * size);
      }
    });
}

/// Returns the tokens.
std::int64_t EmbedWaveform(const TransformerConfig& config, const TransformerWeights& weights,
  const float* samples, std::int64_t count, float* x, int threads)
{
  const SoundConfig& sound = *config.sound;
  TransformerConfig norms = config; // those of convolutions have the epsilon of torch
  norms.epsilon = 1e-5;
  std::vector<float> before(samples, samples + count);
  std::int64_t channels = 1;
  for (std::size_t i = 0; i < sound.channels.size(); ++i)
  {
    const bool isNormed = i == 0 || sound.normsEach;
    const std::int64_t places = (count - sound.widths[i]) / sound.strides[i] + 1;
    const std::int64_t outputs = sound.channels[i];
    std::vector<float> after(ToIndex(places * outputs));
    LinearFinish finish;
    if (!isNormed)
    {
      finish.activation = sound.activation;
    }
    Convolve(
      Linear(weights.soundConvolutions[i]), { count, channels, sound.widths[i], sound.strides[i] },
      places, [&](std::int64_t place) { return before.data() + place * channels; }, 1, after.data(),
      finish, threads);
    if (isNormed && sound.normsEach)
    {
      TransformerNorm(norms, weights.soundNorms[i])
        .Apply(places, outputs, after.data(), after.data(), threads);
    }
    else if (isNormed)
    {
      NormChannels(norms, weights.soundNorms[i], places, outputs, after, threads);
    }
    if (isNormed)
    {
      ParallelFor(places, threads, [&](std::int64_t place)
        { Activate(sound.activation, outputs, after.data() + place * outputs); });
    }
    before.swap(after);
    count = places;
    channels = outputs;
  }
  if (sound.normsLast)
  {
    TransformerNorm(config, weights.featureNorm)
      .Apply(count, channels, before.data(), before.data(), threads);
  }
  ApplyLinear(Linear(weights.embeddingIn), count, before.data(), x, {}, threads);
  AddConvolvedPositions(config, weights, count, x, threads);
  return count;
}

}

void EmbedSounds(const TransformerConfig& config, const TransformerWeights& weights,
  const TransformerInput& input, const SequenceRange& sounds, float* x, int threads)
{
  if (config.sound == nullptr)
  {
    const std::int64_t size = config.melBands * config.SoundFrames();
    for (std::int64_t sound = sounds.first; sound < sounds.end; ++sound)
    {
      EmbedFeatures(config, weights, input.features.data() + sound * size, x, threads);
      x += config.positions * config.modelDimension;
    }
    return;
  }
  const auto begin = input.samples.begin();
  const float* samples =
    input.features.data() + std::accumulate(begin, begin + sounds.first, std::int64_t{ 0 });
  for (std::int64_t sound = sounds.first; sound < sounds.end; ++sound)
  {
    const std::int64_t count = input.samples[sound];
    x += EmbedWaveform(config, weights, samples, count, x, threads) * config.modelDimension;
    samples += count;
  }
}

std::int64_t SoundFloats(
  const TransformerConfig& config, const TransformerInput& input, const SequenceRange& sounds)
{
  const std::int64_t d = config.modelDimension;
  if (config.sound == nullptr)
  {
    const std::int64_t frames = config.SoundFrames();
    return frames * d + PlacesAtOnce * 3 * std::max(config.melBands, d);
  }
  const SoundConfig& sound = *config.sound;
  std::int64_t most = 0;
  for (std::int64_t s = sounds.first; s < sounds.end; ++s)
  {
    std::int64_t count = input.samples[s];
    std::int64_t before = count;
    for (std::size_t i = 0; i < sound.channels.size(); ++i)
    {
      const std::int64_t inputs = (i == 0 ? 1 : sound.channels[i - 1]) * sound.widths[i];
      count = (count - sound.widths[i]) / sound.strides[i] + 1;
      const std::int64_t after = count * sound.channels[i];
      most = std::max(most, before + after + std::min(count, PlacesAtOnce) * inputs);
      before = after;
    }
    most = std::max(
      most, before + count * d +
              std::min(count, PlacesAtOnce) * d / sound.positionGroups * sound.positionWidth);
  }
  return most;
}

}
