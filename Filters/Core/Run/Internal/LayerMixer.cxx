#include "LayerMixer.h"

#include "Base/ParallelProgress.h"
#include "Numerics/DotProduct.h"
#include "TransformerKernels.h"

#include <algorithm>
#include <cmath>

namespace atlas
{
namespace
{

/// Added to the squared lengths of queries and keys, as in the original code.
constexpr double LengthEpsilon = 1e-6;

std::int64_t KeyWidth(const TransformerConfig& config)
{
  return config.mixerKeyHeads * config.mixerKeyDimension;
}

std::int64_t ValueWidth(const TransformerConfig& config)
{
  return config.mixerHeads * config.mixerValueDimension;
}

std::int64_t ChannelsOf(const TransformerConfig& config, Mixer kind)
{
  return kind == Mixer::ShortConvolution ? config.modelDimension
                                         : 2 * KeyWidth(config) + ValueWidth(config);
}

/// The most channels that layers of a model have.
std::int64_t MostChannels(const TransformerConfig& config)
{
  std::int64_t most = 0;
  for (const Mixer kind : config.mixers)
  {
    most = std::max(most, kind == Mixer::Attention ? 0 : ChannelsOf(config, kind));
  }
  return most;
}

double Logistic(double x)
{
  return 1 / (1 + std::exp(-x));
}

/// [taps, channels], from parts that are [channels, 1, taps].
std::vector<float> TransposedTaps(const std::vector<TensorView>& parts, std::int64_t taps)
{
  std::vector<float> stored;
  for (const TensorView& part : parts)
  {
    const FloatValues values(part);
    stored.insert(stored.end(), values.Data(), values.Data() + part.Count());
  }
  const std::int64_t channels = static_cast<std::int64_t>(stored.size()) / taps;
  std::vector<float> transposed(stored.size());
  for (std::int64_t c = 0; c < channels; ++c)
  {
    for (std::int64_t k = 0; k < taps; ++k)
    {
      transposed[k * channels + c] = stored[c * taps + k];
    }
  }
  return transposed;
}

/// Where a map writes: a row of a matrix, from a column on.
struct Target
{
  const Linear* linear = nullptr;
  std::vector<float>* matrix = nullptr;
  std::int64_t width = 0; ///< of the matrix
  std::int64_t first = 0;
  std::int64_t count = 0; ///< columns that the map has
  std::int64_t heads = 1; ///< between which they are shared; apart, if `isApart`
  bool isApart = false;
  const float* bias = nullptr; ///< of these columns
};

}

LayerMixer::LayerMixer(const TransformerConfig& config, const MixerTensors& tensors, Mixer kind)
  : Config(config)
  , Kind(kind)
  , Channels(ChannelsOf(config, kind))
  , Query(tensors.query)
  , Key(tensors.key)
  , Value(tensors.value)
  , Gate(tensors.gate)
  , Rate(tensors.rate)
  , Decay(tensors.decay)
  , Output(tensors.output)
  , Taps(TransposedTaps(tensors.taps, config.mixerTaps))
  , TapsBias(tensors.tapsBias)
  , DecayScale(tensors.decayScale)
  , DecayShift(tensors.decayShift)
  , Skip(tensors.skip)
  , Gain(tensors.norm.gain)
  , QueryFirst(kind == Mixer::StateSpace ? ValueWidth(config) + KeyWidth(config) : 0)
  , KeyFirst(kind == Mixer::StateSpace ? ValueWidth(config) : KeyWidth(config))
  , ValueFirst(kind == Mixer::StateSpace ? 0 : 2 * KeyWidth(config))
  , IsGrouped(tensors.query.headStep > 0)
  , IsRateGrouped(tensors.rate.headStep > 0)
{
}

std::int64_t LayerMixer::WorkingFloats(
  const TransformerConfig& config, std::int64_t rows, int threads)
{
  const std::int64_t channels = MostChannels(config);
  const std::int64_t inputs = std::max(config.modelDimension, ValueWidth(config));
  return channels == 0 ? 0
                       : rows * (std::max(2 * channels, channels + 3 * config.modelDimension) +
                                  inputs + 2 * config.mixerHeads) +
                           (config.mixerKeyDimension + 2) * config.mixerValueDimension * 2 *
                             ThreadCount(threads);
}

std::int64_t LayerMixer::StateFloats(const TransformerConfig& config)
{
  const std::int64_t taps = std::max<std::int64_t>(config.mixerTaps - 1, 0);
  return taps * MostChannels(config) + 2 * ValueWidth(config) * config.mixerKeyDimension;
}

double LayerMixer::Work(const RowGroup& group) const
{
  const auto rows = static_cast<double>(group.Rows());
  const auto d = static_cast<double>(this->Config.modelDimension);
  const std::int64_t columns =
    this->Kind == Mixer::ShortConvolution
      ? 4 * this->Config.modelDimension
      : 2 * (KeyWidth(this->Config) + ValueWidth(this->Config)) + ValueWidth(this->Config);
  return rows * d * static_cast<double>(columns) + this->LearnWork(group);
}

/// Those of the memory.
double LayerMixer::LearnWork(const RowGroup& group) const
{
  constexpr double products = 4;
  return this->Kind == Mixer::ShortConvolution
           ? 0
           : products * static_cast<double>(group.Rows()) *
               static_cast<double>(ValueWidth(this->Config) * this->Config.mixerKeyDimension);
}

void LayerMixer::Add(const RowGroup& group, const float* from, float* to, MixerWorkspace& work,
  int threads, MixerState* state, const Progress& progress) const
{
  const bool isConvolution = this->Kind == Mixer::ShortConvolution;
  if (isConvolution)
  {
    this->ProjectConvolved(group, from, work, threads);
  }
  else
  {
    this->Project(group, from, work, threads);
  }
  this->Convolve(group, work, threads, state);
  const double before = this->Work(group) - this->LearnWork(group);
  if (!isConvolution)
  {
    this->Learn(
      group, work, threads, state, progress.Part(before, this->Work(group), this->Work(group)));
  }
  const float* given = isConvolution ? work.mixed.data() : work.channels.data();
  ApplyLinear(this->Output, group.Rows(), given, to, { std::nullopt, nullptr, true }, threads);
}

/// B * X and C of ShortConvolution.
void LayerMixer::ProjectConvolved(
  const RowGroup& group, const float* from, MixerWorkspace& work, int threads) const
{
  const std::int64_t d = this->Config.modelDimension;
  const std::int64_t rows = group.Rows();
  work.mixed.resize(rows * 3 * d);
  work.channels.resize(rows * d);
  work.gates.resize(rows * d);
  ApplyLinear(this->Query, rows, from, work.mixed.data(), {}, threads);
  ParallelFor(rows, threads,
    [&](std::int64_t row)
    {
      const float* all = work.mixed.data() + row * 3 * d;
      std::copy_n(all, d, work.channels.data() + row * d);
      std::copy_n(all + d, d, work.gates.data() + row * d);
      MultiplyRow(d, all + 2 * d, work.channels.data() + row * d);
    });
}

/// Queries, keys, values and gates of DeltaRule and StateSpace.
void LayerMixer::Project(
  const RowGroup& group, const float* from, MixerWorkspace& work, int threads) const
{
  const std::int64_t rows = group.Rows();
  const std::int64_t keys = KeyWidth(this->Config);
  const std::int64_t values = ValueWidth(this->Config);
  const std::int64_t groups = this->Config.mixerKeyHeads;
  const std::int64_t heads = this->Config.mixerHeads;
  const std::vector<Target> targets = {
    { &this->Query, &work.channels, this->Channels, this->QueryFirst, keys, groups,
      this->IsGrouped },
    { &this->Key, &work.channels, this->Channels, this->KeyFirst, keys, groups, this->IsGrouped },
    { &this->Value, &work.channels, this->Channels, this->ValueFirst, values, groups,
      this->IsGrouped },
    { &this->Gate, &work.gates, values, 0, values, groups, this->IsGrouped },
    { &this->Decay, &work.decays, heads, 0, heads, groups, this->IsRateGrouped },
    { &this->Rate, &work.rates, heads, 0, this->Rate.Outputs() > 0 ? heads : 0, groups,
      this->IsRateGrouped },
  };
  std::vector<ColumnBlock> blocks;
  std::vector<Target> targetOf; // of a block; its first column
  for (const Target& target : targets)
  {
    target.matrix->resize(rows * target.width);
    const std::int64_t width =
      target.isApart ? target.count / target.heads : std::min(BlockColumns, target.count);
    for (std::int64_t column = 0; column < target.count; column += width)
    {
      blocks.push_back(
        { target.isApart ? target.linear->Head(column / width) : target.linear->Block(0, column),
          std::min(width, target.count - column) });
      targetOf.push_back(target);
      targetOf.back().first += column;
      targetOf.back().bias = target.isApart ? nullptr : target.linear->Bias(column);
    }
  }
  const auto visit = [&](std::size_t block, std::int64_t row, const float* product)
  {
    const Target& target = targetOf[block];
    float* to = target.matrix->data() + row * target.width + target.first;
    std::copy_n(product, blocks[block].columns, to);
    if (target.bias != nullptr)
    {
      AddRow(blocks[block].columns, target.bias, to);
    }
  };
  MultiplyRows(rows, blocks, this->Config.modelDimension, from, visit, threads);
}

/// Writes `mixed`. The token itself comes last in the taps.
void LayerMixer::Convolve(
  const RowGroup& group, MixerWorkspace& work, int threads, MixerState* state) const
{
  const std::int64_t count = this->Channels;
  const std::int64_t before = this->Config.mixerTaps - 1; // tokens
  const bool isConvolution = this->Kind == Mixer::ShortConvolution;
  work.mixed.assign(group.Rows() * count, 0.F);
  if (state != nullptr)
  {
    state->channels.resize(before * count);
  }
  ParallelFor(group.Rows(), threads,
    [&](std::int64_t row)
    {
      const std::int64_t begin = row - group.positions[row] + group.past; // of the sequence
      float* to = work.mixed.data() + row * count;
      if (this->TapsBias.Data() != nullptr)
      {
        std::copy_n(this->TapsBias.Data(), count, to);
      }
      for (std::int64_t k = 0; k <= before; ++k)
      {
        const std::int64_t source = row - before + k;
        if (source < begin && state == nullptr)
        {
          continue;
        }
        const float* read = source < begin
                              ? state->channels.data() + (before + source - begin) * count
                              : work.channels.data() + source * count;
        const float* tap = this->Taps.data() + k * count;
        for (std::int64_t c = 0; c < count; ++c)
        {
          to[c] += tap[c] * read[c];
        }
      }
      if (isConvolution)
      {
        MultiplyRow(count, work.gates.data() + row * count, to);
      }
      else
      {
        Activate(this->Config.activation, count, to);
      }
    });
  if (state != nullptr) // the last tokens, of those before and these
  {
    std::vector<float>& kept = state->channels;
    kept.insert(kept.end(), work.channels.begin(), work.channels.begin() + group.Rows() * count);
    kept.erase(kept.begin(), kept.end() - before * count);
  }
}

/// Writes what heads give to `channels`, which is no longer needed.
void LayerMixer::Learn(const RowGroup& group, MixerWorkspace& work, int threads, MixerState* state,
  const Progress& progress) const
{
  const std::int64_t heads = this->Config.mixerHeads;
  const std::int64_t size = this->Config.mixerKeyDimension * this->Config.mixerValueDimension;
  if (state != nullptr)
  {
    state->memory.resize(heads * size);
  }
  const std::int64_t sequences = static_cast<std::int64_t>(group.offsets.size()) - 1;
  ParallelFor(sequences * heads, threads, progress,
    [&](std::int64_t i)
    {
      const std::int64_t sequence = i / heads;
      const std::int64_t head = i % heads;
      std::vector<double> own(state == nullptr ? size : 0);
      double* memory = state == nullptr ? own.data() : state->memory.data() + head * size;
      const auto run =
        this->Kind == Mixer::StateSpace ? &LayerMixer::ScanHead : &LayerMixer::LearnHead;
      (this->*run)(work, group.offsets[sequence], group.offsets[sequence + 1], head, memory,
        work.channels.data());
    });
  if (this->Kind == Mixer::StateSpace)
  {
    this->NormGroups(group.Rows(), work.channels.data(), threads);
  }
}

/// Of one head, for rows begin <= row < end of a sequence.
void LayerMixer::LearnHead(const MixerWorkspace& work, std::int64_t begin, std::int64_t end,
  std::int64_t head, double* memory, float* to) const
{
  const TransformerConfig& config = this->Config;
  const std::int64_t keys = config.mixerKeyDimension;
  const std::int64_t values = config.mixerValueDimension;
  const std::int64_t keyHead = head / (config.mixerHeads / config.mixerKeyHeads);
  const double fall = std::exp(static_cast<double>(this->DecayScale.Data()[head]));
  const auto shift = static_cast<double>(this->DecayShift.Data()[head]);
  const double epsilon = this->Epsilon();
  std::vector<double> change(values);
  std::vector<double> given(values);
  for (std::int64_t row = begin; row < end; ++row)
  {
    const float* all = work.mixed.data() + row * this->Channels;
    const float* query = all + this->QueryFirst + keyHead * keys;
    const float* key = all + this->KeyFirst + keyHead * keys;
    const float* value = all + this->ValueFirst + head * values;
    const auto lengthOf = [keys](const float* vector)
    { return std::sqrt(DotProduct(vector, vector, keys) + LengthEpsilon); };
    const double keyFactor = 1 / lengthOf(key);
    const double queryFactor = 1 / (lengthOf(query) * std::sqrt(static_cast<double>(keys)));
    const std::int64_t at = row * config.mixerHeads + head;
    const double kept = std::exp(-fall * Softplus(static_cast<double>(work.decays[at]) + shift));
    const double learned = config.mixerRate * Logistic(static_cast<double>(work.rates[at]));
    std::fill(change.begin(), change.end(), 0.);
    for (std::int64_t i = 0; i < keys; ++i)
    {
      double* line = memory + i * values;
      const double factor = static_cast<double>(key[i]) * keyFactor;
      for (std::int64_t j = 0; j < values; ++j)
      {
        line[j] *= kept;
        change[j] += factor * line[j];
      }
    }
    for (std::int64_t j = 0; j < values; ++j)
    {
      change[j] = learned * (static_cast<double>(value[j]) - change[j]);
    }
    std::fill(given.begin(), given.end(), 0.);
    for (std::int64_t i = 0; i < keys; ++i)
    {
      double* line = memory + i * values;
      const double factor = static_cast<double>(key[i]) * keyFactor;
      const double asked = static_cast<double>(query[i]) * queryFactor;
      for (std::int64_t j = 0; j < values; ++j)
      {
        line[j] += factor * change[j];
        given[j] += asked * line[j];
      }
    }
    const double square = DotProduct(given.data(), given.data(), values);
    const double scale = 1 / std::sqrt(square / static_cast<double>(values) + epsilon);
    const float* gains = this->Gain.Data();
    const float* gate = work.gates.data() + at * values;
    float* written = to + at * values;
    for (std::int64_t j = 0; j < values; ++j)
    {
      const auto own = static_cast<double>(gate[j]);
      const double gain =
        (gains == nullptr ? 1 : static_cast<double>(gains[j])) * own * Logistic(own);
      written[j] = static_cast<float>(given[j] * scale * gain);
    }
  }
}

/// Likewise of StateSpace, before the normalization.
void LayerMixer::ScanHead(const MixerWorkspace& work, std::int64_t begin, std::int64_t end,
  std::int64_t head, double* memory, float* to) const
{
  const TransformerConfig& config = this->Config;
  const std::int64_t keys = config.mixerKeyDimension;
  const std::int64_t values = config.mixerValueDimension;
  const std::int64_t keyHead = head / (config.mixerHeads / config.mixerKeyHeads);
  const double fall = std::exp(static_cast<double>(this->DecayScale.Data()[head]));
  const auto shift = static_cast<double>(this->DecayShift.Data()[head]);
  const auto skip = static_cast<double>(this->Skip.Data()[head]);
  std::vector<double> given(values);
  for (std::int64_t row = begin; row < end; ++row)
  {
    const float* all = work.mixed.data() + row * this->Channels;
    const float* query = all + this->QueryFirst + keyHead * keys;
    const float* key = all + this->KeyFirst + keyHead * keys;
    const float* value = all + this->ValueFirst + head * values;
    const std::int64_t at = row * config.mixerHeads + head;
    double step = Softplus(static_cast<double>(work.decays[at]) + shift);
    step = std::max(step, config.mixerLeastStep);
    step = config.mixerMostStep > 0 ? std::min(step, config.mixerMostStep) : step;
    const double kept = std::exp(-fall * step);
    std::fill(given.begin(), given.end(), 0.);
    for (std::int64_t i = 0; i < keys; ++i)
    {
      double* line = memory + i * values;
      const double factor = step * static_cast<double>(key[i]);
      const auto asked = static_cast<double>(query[i]);
      for (std::int64_t j = 0; j < values; ++j)
      {
        line[j] = kept * line[j] + factor * static_cast<double>(value[j]);
        given[j] += asked * line[j];
      }
    }
    const float* gate = work.gates.data() + at * values;
    for (std::int64_t j = 0; j < values; ++j)
    {
      const auto own = static_cast<double>(gate[j]);
      const double whole = given[j] + skip * static_cast<double>(value[j]);
      to[at * values + j] = static_cast<float>(whole * own * Logistic(own));
    }
  }
}

/// Normalizes what all heads give together.
void LayerMixer::NormGroups(std::int64_t rows, float* values, int threads) const
{
  const std::int64_t width = ValueWidth(this->Config);
  const float* gains = this->Gain.Data();
  ParallelFor(rows, threads,
    [&](std::int64_t row)
    {
      float* own = values + row * width;
      const double square = DotProduct(own, own, width);
      const double scale = 1 / std::sqrt(square / static_cast<double>(width) + this->Epsilon());
      for (std::int64_t j = 0; j < width; ++j)
      {
        const double gain = gains == nullptr ? 1 : static_cast<double>(gains[j]);
        own[j] = static_cast<float>(static_cast<double>(own[j]) * scale * gain);
      }
    });
}

double LayerMixer::Epsilon() const
{
  return this->Config.mixerEpsilon > 0 ? this->Config.mixerEpsilon : this->Config.epsilon;
}

}
