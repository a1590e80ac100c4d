#include "SelfAttention.h"

#include "AttentionKernels.h"
#include "Index.h"
#include "MatrixProduct.h"
#include "Parallel.h"
#include "TransformerKernels.h"

#include <algorithm>
#include <cmath>

namespace atlas
{
namespace
{

/// The number of queries whose attention one thread computes at a time.
constexpr std::int64_t QueryBlock = 128;

/// The number of floats in the values of all heads of one row.
std::int64_t MixedWidth(const TransformerConfig& config)
{
  return config.heads * config.headDimension;
}

/// The norm of a vector x in the metric G, given x and x G.
float NormOf(const float* vector, const float* product, std::int64_t count)
{
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i)
  {
    sum += static_cast<double>(vector[i]) * static_cast<double>(product[i]);
  }
  return static_cast<float>(std::sqrt(std::max(sum, 0.0))); // rounding may give less than 0
}

}

SelfAttention::SelfAttention(const TransformerConfig& config, const LayerTensors& tensors,
  std::int64_t layer, const PositionEncoding& positions)
  : Config(config)
  , Positions(positions)
  , Layer(layer)
  , Scale(static_cast<float>(config.ScoreScale(layer)))
  , Query(tensors.query)
  , Key(tensors.key)
  , Value(tensors.value)
  , Output(tensors.output)
  , Sinks(tensors.sinks)
{
  for (const NormTensors& norm : tensors.queryNorm)
  {
    this->QueryNorms.emplace_back(config, norm);
  }
  for (const NormTensors& norm : tensors.keyNorm)
  {
    this->KeyNorms.emplace_back(config, norm);
  }
}

std::int64_t SelfAttention::WorkingFloats(
  const TransformerConfig& config, std::int64_t rows, int threads)
{
  const std::int64_t weights = QueryBlock * rows; // of a block of queries
  const std::int64_t grams = MixedWidth(config) * config.headDimension;
  return rows * (config.modelDimension + MixedWidth(config)) + grams +
         ThreadCount(threads) * weights;
}

void SelfAttention::Add(const RowGroup& group, const float* from,
  const std::vector<HeadRows>& heads, float* to, AttentionWorkspace& work, int threads,
  const ActivationVisitor& visitor) const
{
  this->ProjectHeads(group, from, heads, work, threads);
  work.mixed.resize(ToIndex(group.Rows() * MixedWidth(this->Config)));
  this->MeasureValues(group, heads, work, threads);
  this->MixValues(group, heads, work.mixed.data(), threads);
  if (visitor)
  {
    visitor(ActivationPlace::Mixed, group, work.mixed.data());
  }
  this->SeparateOutputs(group, heads, work.mixed.data(), threads);
  ApplyLinear(
    this->Output, group.tiles, work.mixed.data(), to, { std::nullopt, nullptr, true }, threads);
}

/// Computes queries, keys and values of all heads, the first two normalized and rotated if the
/// model does so.
void SelfAttention::ProjectHeads(const RowGroup& group, const float* from,
  const std::vector<HeadRows>& heads, AttentionWorkspace& work, int threads) const
{
  const TransformerConfig& config = this->Config;
  const float* fromWithPositions = this->AddPositions(group, from, work.shifted);
  const auto tiles = static_cast<std::int64_t>(group.tiles.size());
  const std::int64_t groupSize = config.heads / config.keyHeads;
  ParallelFor((config.heads + 2 * config.keyHeads) * tiles, threads,
    [&](std::int64_t i)
    {
      const std::int64_t head = i / tiles;
      const RowTile& tile = group.tiles[ToIndex(i % tiles)];
      if (head < config.heads)
      {
        this->ProjectHead(this->Query, head, group, tile, fromWithPositions,
          heads[ToIndex(head)].query, &this->QueryNorms);
        return;
      }
      const bool isKey = head < config.heads + config.keyHeads;
      const std::int64_t keyHead = (head - config.heads) % config.keyHeads;
      const HeadRows& rows = heads[ToIndex(keyHead * groupSize)];
      this->ProjectHead(isKey ? this->Key : this->Value, keyHead, group, tile,
        isKey ? fromWithPositions : from, isKey ? rows.key : rows.value,
        isKey ? &this->KeyNorms : nullptr);
    });
}

/// The input of queries and keys: `from`, plus the positions for Shortformer (Press et al. 2021).
const float* SelfAttention::AddPositions(
  const RowGroup& group, const float* from, std::vector<float>& shifted) const
{
  if (this->Config.position != PositionKind::Shortformer)
  {
    return from;
  }
  const std::int64_t d = this->Config.modelDimension;
  shifted.assign(from, from + group.Rows() * d);
  for (std::int64_t row = 0; row < group.Rows(); ++row)
  {
    AddRow(d, this->Positions.Vector(group.positions[ToIndex(row)]), shifted.data() + row * d);
  }
  return shifted.data();
}

/// Computes from W^h + b^h for the rows of a tile. Queries and keys are then normalized with
/// `norms` and rotated; for values, it is nullptr.
void SelfAttention::ProjectHead(const Linear& linear, std::int64_t head, const RowGroup& group,
  const RowTile& tile, const float* from, float* to,
  const std::vector<TransformerNorm>* norms) const
{
  const std::int64_t dimension = this->Config.headDimension;
  const std::int64_t d = this->Config.modelDimension;
  MultiplyRows(tile, dimension, d, from, d, linear.Head(head), to, dimension, false);
  const float* bias = linear.HeadBias(head);
  const float limit = static_cast<float>(this->Config.projectionClip);
  const bool isPosition = norms != nullptr;
  const TransformerNorm* norm = !isPosition || norms->empty() ? nullptr
                                : norms->size() == 1          ? &norms->front()
                                                              : &(*norms)[ToIndex(head)];
  for (const RowChunk& chunk : tile.chunks)
  {
    for (std::int64_t row = chunk.begin; row < chunk.begin + chunk.rows; ++row)
    {
      if (bias != nullptr)
      {
        AddRow(dimension, bias, to + row * dimension);
      }
      if (limit > 0)
      {
        LimitRow(limit, dimension, to + row * dimension);
      }
      if (isPosition)
      {
        this->FinishHead(norm, this->Positions.Rotation(this->Layer, group.lengths[ToIndex(row)]),
          group.positions[ToIndex(row)], to + row * dimension);
      }
    }
  }
}

/// Normalizes and rotates a query or key, where the model does so.
void SelfAttention::FinishHead(const TransformerNorm* norm, const RotationTable* rotation,
  std::int64_t position, float* values) const
{
  if (norm != nullptr)
  {
    norm->ApplyRow(this->Config.headDimension, values, values);
  }
  if (rotation != nullptr)
  {
    rotation->Apply(position, values);
  }
}

/// Applies the attention of each head, in blocks of queries of each sequence.
void SelfAttention::MixValues(
  const RowGroup& group, const std::vector<HeadRows>& heads, float* mixed, int threads) const
{
  struct Task
  {
    std::size_t sequence;
    std::int64_t begin;
  };
  std::vector<Task> tasks;
  for (std::size_t s = 0; s + 1 < group.offsets.size(); ++s)
  {
    const std::int64_t length = group.offsets[s + 1] - group.offsets[s];
    for (std::int64_t begin = 0; begin < length; begin += QueryBlock)
    {
      tasks.push_back({ s, begin });
    }
  }
  const auto count = static_cast<std::int64_t>(heads.size());
  ParallelFor(static_cast<std::int64_t>(tasks.size()) * count, threads,
    [&](std::int64_t i)
    {
      const Task& task = tasks[ToIndex(i / count)];
      const std::int64_t head = i % count;
      this->MixBlock(group, task.sequence, task.begin, head, heads[ToIndex(head)], mixed);
    });
}

/// Computes a head's weighted sums of values for at most QueryBlock queries of a sequence, starting
/// at row `begin` of the sequence in the group.
void SelfAttention::MixBlock(const RowGroup& group, std::size_t sequence, std::int64_t begin,
  std::int64_t head, const HeadRows& rows, float* mixed) const
{
  const std::int64_t dimension = this->Config.headDimension;
  const std::int64_t first = group.offsets[sequence];
  const std::int64_t past = group.past; // keys in the rows before those of the group
  HeadScores scores;
  scores.query = rows.query + (first - past) * dimension;
  scores.key = rows.key + (first - past) * dimension;
  scores.length = past + group.offsets[sequence + 1] - first;
  scores.dimension = dimension;
  scores.scale = this->Scale;
  scores.slope = this->Positions.Slope(head);
  scores.mask = this->Config.mask;
  scores.cap = static_cast<float>(this->Config.scoreCap);
  scores.window = this->Config.Window(this->Layer);
  if (this->Sinks.Data() != nullptr)
  {
    scores.sink = this->Sinks.Data()[head];
  }
  const std::int64_t from = past + begin; // position of the first query
  const std::int64_t end = std::min(scores.length, from + QueryBlock);
  const std::int64_t keys = scores.KeyCount(end);
  const std::int64_t unseen = scores.FirstKey(from); // keys before the window have no weight
  std::vector<float> weights(ToIndex((end - from) * keys));
  EvaluateWeights(scores, from, end, keys, weights.data());
  const std::int64_t stride = MixedWidth(this->Config);
  MultiplyMatrices(end - from, dimension, keys - unseen, 1, { weights.data() + unseen, keys },
    { rows.value + (first - past + unseen) * dimension, dimension },
    mixed + (first + begin) * stride + head * dimension, stride);
}

/// Computes the norms of value W_O^h if they are recorded, as sqrt(v (W_O W_O^T) v^T): d_head
/// rather than d_model multiplications per number of v. Products v (W_O W_O^T) are where the
/// weighted sums of values will be.
void SelfAttention::MeasureValues(const RowGroup& group, const std::vector<HeadRows>& heads,
  AttentionWorkspace& work, int threads) const
{
  if (heads.front().valueNorm == nullptr)
  {
    return;
  }
  const std::int64_t dimension = this->Config.headDimension;
  const std::int64_t d = this->Config.modelDimension;
  const std::int64_t stride = MixedWidth(this->Config);
  work.grams.resize(ToIndex(stride * dimension));
  ParallelFor(this->Config.heads, threads,
    [&](std::int64_t head)
    {
      const MatrixBlock output = this->Output.Part(head * dimension, 0);
      MultiplyMatrices(dimension, dimension, d, 1, output,
        { output.data, output.stride, !output.transposed },
        work.grams.data() + head * dimension * dimension, dimension);
    });
  const auto tiles = static_cast<std::int64_t>(group.tiles.size());
  ParallelFor(this->Config.heads * tiles, threads,
    [&](std::int64_t i)
    {
      const std::int64_t head = i / tiles;
      const RowTile& tile = group.tiles[ToIndex(i % tiles)];
      const HeadRows& rows = heads[ToIndex(head)];
      float* products = work.mixed.data() + head * dimension;
      MultiplyRows(tile, dimension, dimension, rows.value, dimension,
        { work.grams.data() + head * dimension * dimension, dimension }, products, stride, false);
      for (const RowChunk& chunk : tile.chunks)
      {
        for (std::int64_t row = chunk.begin; row < chunk.begin + chunk.rows; ++row)
        {
          rows.valueNorm[row] =
            NormOf(rows.value + row * dimension, products + row * stride, dimension);
        }
      }
    });
}

/// Computes the output of each head separately if it is recorded.
void SelfAttention::SeparateOutputs(
  const RowGroup& group, const std::vector<HeadRows>& heads, const float* mixed, int threads) const
{
  if (heads.front().output == nullptr)
  {
    return;
  }
  const std::int64_t dimension = this->Config.headDimension;
  const std::int64_t d = this->Config.modelDimension;
  const auto tiles = static_cast<std::int64_t>(group.tiles.size());
  ParallelFor(this->Config.heads * tiles, threads,
    [&](std::int64_t i)
    {
      const std::int64_t head = i / tiles;
      MultiplyRows(group.tiles[ToIndex(i % tiles)], d, dimension, mixed + head * dimension,
        MixedWidth(this->Config), this->Output.Part(head * dimension, 0),
        heads[ToIndex(head)].output, d, false);
    });
}

}
