#include "PositionEncoding.h"

#include "Base/Index.h"

#include <cmath>
#include <map>
#include <tuple>
#include <utility>

namespace atlas
{

PositionEncoding::PositionEncoding(
  const TransformerConfig& config, const TransformerWeights& weights, std::int64_t length)
  : Width(config.modelDimension)
{
  switch (config.position)
  {
    case PositionKind::Learned:
    case PositionKind::None:
    case PositionKind::Sinusoidal:
      break;
    case PositionKind::Shortformer:
      this->Vectors = FloatValues(weights.positionEmbedding);
      break;
    case PositionKind::Alibi:
      this->Slopes = AlibiSlopes(config.heads, config.slopeExponent);
      for (double& slope : this->Slopes)
      {
        slope *= config.slopeScale;
      }
      break;
    case PositionKind::Rotary:
    case PositionKind::RotaryOfPatches:
      this->MakeRotations(config, length);
      break;
    case PositionKind::Relative:
      this->MakeDistanceBias(config, weights);
      break;
  }
}

void PositionEncoding::MakeDistanceBias(
  const TransformerConfig& config, const TransformerWeights& weights)
{
  const std::int64_t reach = config.relativeDistance;
  const FloatValues biases(weights.relativeBias);
  this->DistanceBias = SharedMatrix::Zero(config.heads, 2 * reach + 1);
  for (std::int64_t distance = -reach; distance <= reach; ++distance)
  {
    const float* row = biases.Data() + RelativeBucket(config, distance) * config.heads;
    for (std::int64_t head = 0; head < config.heads; ++head)
    {
      this->DistanceBias.Row(head)[reach + distance] = row[head];
    }
  }
}

void RotationTable::Apply(std::int64_t position, float* values) const
{
  const float* cosine = this->cosines.data() + position * this->pairs;
  const float* sine = this->sines.data() + position * this->pairs;
  const std::int64_t step = this->neighbors ? 2 : 1;
  const std::int64_t other = this->neighbors ? 1 : this->pairs;
  for (std::int64_t i = 0; i < this->pairs; ++i)
  {
    const float a = values[i * step];
    const float b = values[i * step + other];
    values[i * step] = a * cosine[i] - b * sine[i];
    values[i * step + other] = b * cosine[i] + a * sine[i];
  }
}

void RotationTable::Apply(const RotaryPlace& place, float* values) const
{
  for (std::int64_t i = 0; i < this->pairs; ++i)
  {
    const std::int64_t at = place[this->axes[i]] * this->pairs + i;
    const float a = values[i];
    const float b = values[i + this->pairs];
    values[i] = a * this->cosines[at] - b * this->sines[at];
    values[i + this->pairs] = b * this->cosines[at] + a * this->sines[at];
  }
}

namespace
{

/// The number of a place by which each pair is rotated; empty: by the position.
std::vector<std::uint8_t> AxesOf(const TransformerConfig& config)
{
  std::vector<std::int64_t> sections;
  if (config.position == PositionKind::RotaryOfPatches)
  {
    sections = { 0, config.headDimension / 4, config.headDimension / 4 };
  }
  else if (config.vision != nullptr)
  {
    sections = config.vision->rotarySections;
  }
  std::vector<std::uint8_t> axes;
  for (std::size_t axis = 0; axis < sections.size(); ++axis)
  {
    axes.insert(axes.end(), ToIndex(sections[axis]), static_cast<std::uint8_t>(axis));
  }
  return axes;
}

}

void PositionEncoding::MakeRotations(const TransformerConfig& config, std::int64_t length)
{
  // By base, scaling and rotated components.
  std::map<std::tuple<double, bool, std::int64_t>, std::int64_t> known;
  for (std::int64_t l = 0; l < config.layers; ++l)
  {
    if (!config.Rotates(l))
    {
      this->RotationOf.push_back(-1);
      continue;
    }
    const bool hasSizes = !config.headDimensions.empty();
    const std::int64_t rotated = hasSizes ? config.headDimensions[l] : config.RotatedDimension();
    const auto [found, isNew] = known.try_emplace(
      { config.RotaryBaseOf(l), config.HasOwnRotation(l), rotated }, this->Rotations.size());
    if (isNew)
    {
      this->Rotations.push_back(
        this->TablesOf(hasSizes ? config.WithSizesOf(l) : config, l, length));
    }
    this->RotationOf.push_back(found->second);
  }
  this->ShortLength = config.rotaryScaling.kind == RotaryScaling::Kind::LongRope
                        ? config.rotaryScaling.originalPositions
                        : static_cast<double>(length);
}

/// The tables of a layer: for short sequences and, if there are any and they differ, for long ones.
std::vector<RotationTable> PositionEncoding::TablesOf(
  const TransformerConfig& config, std::int64_t layer, std::int64_t length) const
{
  const RotaryScaling& scaling = config.RotaryScalingOf(layer);
  const bool hasLong = scaling.kind == RotaryScaling::Kind::LongRope &&
                       static_cast<double>(length) > scaling.originalPositions;
  const auto factor = static_cast<float>(scaling.attentionFactor);
  std::vector<RotationTable> tables;
  for (const std::int64_t tokens : { std::int64_t{ 0 }, length })
  {
    if (tokens > 0 && !hasLong)
    {
      break;
    }
    const std::vector<float> frequencies = RotaryFrequencies(config, layer, tokens);
    RotationTable table;
    table.pairs = static_cast<std::int64_t>(frequencies.size());
    table.neighbors = config.rotatesNeighbors;
    table.axes = AxesOf(config);
    table.cosines.reserve(length * table.pairs);
    table.sines.reserve(table.cosines.capacity());
    for (std::int64_t position = 0; position < length; ++position)
    {
      for (const float frequency : frequencies)
      {
        const float angle = static_cast<float>(position) * frequency;
        table.cosines.push_back(factor * std::cos(angle));
        table.sines.push_back(factor * std::sin(angle));
      }
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

const RotationTable* PositionEncoding::Rotation(std::int64_t layer, std::int64_t length) const
{
  if (this->RotationOf.empty() || this->RotationOf[layer] < 0)
  {
    return nullptr;
  }
  const std::vector<RotationTable>& tables = this->Rotations[this->RotationOf[layer]];
  return static_cast<double>(length) > this->ShortLength ? &tables.back() : &tables.front();
}

}
