#include "PositionEncoding.h"

#include "Base/Index.h"
#include "Base/Pi.h"
#include "TransformerNorm.h"

#include <algorithm>
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
      this->MakeDistanceBiases(config, weights);
      break;
    case PositionKind::RelativeOfPatches:
      this->MakePatchBiases(config, weights);
      break;
    case PositionKind::Disentangled:
      this->MakeDistanceVectors(config, weights, length);
      break;
  }
}

namespace
{

/// The biases [H, count] of the places 0 <= p < count, of which each has a row of a table [rows,
/// H].
template<class RowOf>
SharedMatrix BiasesOf(
  const TensorView& table, std::int64_t heads, std::int64_t count, const RowOf& rowOf)
{
  const FloatValues biases(table);
  SharedMatrix all = SharedMatrix::Zero(heads, count);
  for (std::int64_t place = 0; place < count; ++place)
  {
    const float* row = biases.Data() + rowOf(place) * heads;
    for (std::int64_t head = 0; head < heads; ++head)
    {
      all.Row(head)[place] = row[head];
    }
  }
  return all;
}

}

void PositionEncoding::MakeDistanceBiases(
  const TransformerConfig& config, const TransformerWeights& weights)
{
  const std::int64_t reach = config.relativeDistance;
  const auto biasesOf = [&](const TensorView& table)
  {
    return BiasesOf(table, config.heads, 2 * reach + 1,
      [&](std::int64_t place) { return RelativeBucket(config, place - reach); });
  };
  if (!config.biasByLayer)
  {
    this->DistanceBias = biasesOf(weights.relativeBias);
    return;
  }
  for (const LayerTensors& layer : weights.layers)
  {
    this->LayerBiases.push_back(biasesOf(layer.relativeBias));
  }
}

void PositionEncoding::MakePatchBiases(
  const TransformerConfig& config, const TransformerWeights& weights)
{
  const std::int64_t count = (2 * config.PatchRows() - 1) * (2 * config.PatchColumns() - 1) + 3;
  const auto biasesOf = [&](const TensorView& table)
  { return BiasesOf(table, config.heads, count, [](std::int64_t place) { return place; }); };
  this->IsOfPatches = true;
  SharedMatrix shared;
  for (const LayerTensors& layer : weights.layers)
  {
    if (!config.biasByLayer && !shared.IsRecorded())
    {
      shared = biasesOf(weights.relativeBias);
    }
    this->LayerBiases.push_back(config.biasByLayer ? biasesOf(layer.relativeBias) : shared);
  }
  for (std::int64_t token = 0; token < config.positions; ++token)
  {
    const std::int64_t patch = token - config.TokensBeforePatches();
    const std::int64_t columns = config.PatchColumns();
    this->PatchRows.push_back(patch < 0 ? -1 : static_cast<std::int32_t>(patch / columns));
    this->PatchColumns.push_back(patch < 0 ? -1 : static_cast<std::int32_t>(patch % columns));
  }
}

void PositionEncoding::MakeDistanceVectors(
  const TransformerConfig& config, const TransformerWeights& weights, std::int64_t length)
{
  const std::int64_t reach =
    std::min(config.relativeDistance, std::max<std::int64_t>(length, 1) - 1);
  const std::int64_t d = config.modelDimension;
  const TensorView& stored = weights.distanceEmbedding;
  this->DistanceVectors = SharedMatrix::Zero(2 * reach + 1, d);
  for (std::int64_t distance = -reach; distance <= reach; ++distance)
  {
    const auto first = ToIndex(DistanceRow(config, distance) * d);
    stored.ToFloat(first, first + ToIndex(d), this->DistanceVectors.Row(reach + distance));
  }
  if (config.positionNorm)
  {
    float* rows = this->DistanceVectors.Row(0);
    TransformerNorm(config, weights.distanceNorm).Apply(2 * reach + 1, d, rows, rows, 1);
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

/// The angle of a row (axis 1) or column (2) of a picture whose sides are from -1 to 1; beyond the
/// picture 0, for tokens before the patches.
float PatchAngle(
  const TransformerConfig& config, std::uint8_t axis, std::int64_t place, float frequency)
{
  const std::int64_t count = axis == 1 ? config.PatchRows() : config.PatchColumns();
  if (place >= count)
  {
    return 0;
  }
  // In single precision, as the original code.
  const float part = (static_cast<float>(place) + 0.5F) / static_cast<float>(count);
  return static_cast<float>(2 * Pi) * (2 * part - 1) * frequency;
}

/// The number of a place by which each pair is rotated; empty: by the position.
std::vector<std::uint8_t> AxesOf(const TransformerConfig& config)
{
  std::vector<std::int64_t> sections;
  const std::int64_t pairs = config.RotatedDimension() / 2;
  if (config.position == PositionKind::RotaryOfPatches)
  {
    sections = { 0, (pairs + 1) / 2, pairs / 2 };
  }
  else if (config.vision != nullptr)
  {
    sections = config.vision->rotarySections;
  }
  std::vector<std::uint8_t> axes;
  const bool interleaves = config.vision != nullptr && config.vision->interleavesSections;
  for (std::int64_t pair = 0; pair < pairs && interleaves; ++pair)
  {
    const std::int64_t axis = pair % 3;
    axes.push_back(static_cast<std::uint8_t>(pair < 3 * sections[axis] ? axis : 0));
  }
  for (std::size_t axis = 0; axis < sections.size() && !interleaves; ++axis)
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
  this->ShortLength = config.rotaryScaling.DependsOnLength()
                        ? config.rotaryScaling.originalPositions
                        : static_cast<double>(length);
}

/// The tables of a layer: for short sequences and, if there are any and they differ, for long ones.
std::vector<RotationTable> PositionEncoding::TablesOf(
  const TransformerConfig& config, std::int64_t layer, std::int64_t length) const
{
  const RotaryScaling& scaling = config.RotaryScalingOf(layer);
  const bool hasLong =
    scaling.DependsOnLength() && static_cast<double>(length) > scaling.originalPositions;
  std::vector<RotationTable> tables;
  for (const std::int64_t tokens : { std::int64_t{ 0 }, length })
  {
    if (tokens > 0 && !hasLong)
    {
      break;
    }
    const std::vector<float> frequencies = RotaryFrequencies(config, layer, tokens);
    const bool isOther = tokens > 0 && scaling.longAttentionFactor > 0;
    const auto factor =
      static_cast<float>(isOther ? scaling.longAttentionFactor : scaling.attentionFactor);
    RotationTable table;
    table.pairs = static_cast<std::int64_t>(frequencies.size());
    table.neighbors = config.rotatesNeighbors;
    table.axes = AxesOf(config);
    table.cosines.reserve(length * table.pairs);
    table.sines.reserve(table.cosines.capacity());
    for (std::int64_t position = 0; position < length; ++position)
    {
      for (std::int64_t i = 0; i < table.pairs; ++i)
      {
        const float angle = config.normsPatches
                              ? PatchAngle(config, table.axes[i], position, frequencies[i])
                              : static_cast<float>(position) * frequencies[i];
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
