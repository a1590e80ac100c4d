#include "SelfAttention.h"

#include "Base/ParallelProgress.h"
#include "Numerics/DotProduct.h"
#include "Numerics/MatrixProduct.h"
#include "TransformerKernels.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace atlas
{
namespace
{

/// The number of queries whose attention one thread computes at a time.
constexpr std::int64_t QueryBlock = 128;

/// The number of floats in the values of all heads of one row.
std::int64_t MixedWidth(const TransformerConfig& config)
{
  return config.heads * config.ValueDimension();
}

/// The normalization of a latent vector, which has an epsilon of its own in the original code.
TransformerNorm LatentNorm(TransformerConfig config, const NormTensors& tensors)
{
  config.epsilon = 1e-6;
  return { config, tensors };
}

/// The norm of a vector x in the metric G, given x and x G.
float NormOf(const float* vector, const float* product, std::int64_t count)
{
  const double square = DotProduct(vector, product, count);
  return static_cast<float>(std::sqrt(std::max(square, 0.0))); // rounding may give less than 0
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
  , Gate(tensors.attentionGate)
  , QueryLatent(tensors.queryLatent)
  , KeyLatent(tensors.keyLatent)
  , QueryLatentNorm(LatentNorm(config, tensors.queryLatentNorm))
  , KeyLatentNorm(LatentNorm(config, tensors.keyLatentNorm))
  , MixedNorm(config, tensors.mixedNorm)
  , Sinks(tensors.sinks)
{
  for (const NormTensors& norm : tensors.queryNorm)
  {
    this->QueryNorms.emplace_back(config, norm);
  }
  if (config.normsValues)
  {
    this->ValueNorms.emplace_back(config, NormTensors(), NormKind::RmsNorm);
  }
  for (const NormTensors& norm : tensors.keyNorm)
  {
    this->KeyNorms.emplace_back(config, norm);
  }
  this->PositionKeys = this->OfDistances(tensors.positionKey);
  this->PositionQueries = this->OfDistances(tensors.positionQuery);
}

/// What a matrix makes of the vectors of distances, of each head; empty without the matrix.
SharedMatrix SelfAttention::OfDistances(const LinearTensors& tensors) const
{
  if (!tensors.Exists())
  {
    return {};
  }
  const SharedMatrix& vectors = this->Positions.GetDistanceVectors();
  const std::int64_t heads = this->Config.heads;
  const std::int64_t dimension = this->Config.headDimension;
  std::vector<float> products(vectors.rows * heads * dimension);
  ApplyLinear(Linear(tensors), vectors.rows, vectors.Row(0), products.data(), {}, 1);
  SharedMatrix all = SharedMatrix::Zero(heads * vectors.rows, dimension);
  for (std::int64_t row = 0; row < vectors.rows; ++row)
  {
    for (std::int64_t head = 0; head < heads; ++head)
    {
      std::copy_n(products.data() + (row * heads + head) * dimension, dimension,
        all.Row(head * vectors.rows + row));
    }
  }
  return all;
}

std::int64_t SelfAttention::WorkingFloats(
  const TransformerConfig& config, std::int64_t rows, int threads)
{
  const std::int64_t weights = QueryBlock * rows; // of a block of queries
  const std::int64_t grams = MixedWidth(config) * config.ValueDimension();
  const std::int64_t latents = 2 * (config.keyLatent + config.queryLatent) +
                               (config.keyLatent > 0 ? config.RotatedDimension() : 0);
  const std::int64_t gathered = // of a window
    config.patchWindows.empty() ? 0 : rows * (2 * config.headDimension + config.ValueDimension());
  return rows * (config.modelDimension + MixedWidth(config) + latents) + grams +
         ThreadCount(threads) * (weights + gathered);
}

void SelfAttention::Add(const RowGroup& group, const float* from,
  const std::vector<HeadRows>& heads, float* to, AttentionWorkspace& work, int threads,
  const ActivationVisitor& visitor, const Progress& progress) const
{
  this->ProjectHeads(group, from, heads, work, threads);
  work.mixed.resize(group.Rows() * MixedWidth(this->Config));
  this->MeasureValues(group, heads, work, threads);
  const double projected = this->ProjectionWork(group);
  this->MixValues(group, group, heads, work.mixed.data(), threads,
    progress.Part(projected, projected + this->MixingWork(group), this->Work(group)));
  if (this->Config.gatesAttention)
  {
    this->MultiplyByGates(group, from, work.mixed.data(), threads);
  }
  if (visitor)
  {
    visitor(ActivationPlace::Mixed, group, work.mixed.data());
  }
  if (this->Config.normsInside)
  {
    this->MixedNorm.Apply(
      group.Rows(), MixedWidth(this->Config), work.mixed.data(), work.mixed.data(), threads);
  }
  this->SeparateOutputs(group, heads, work.mixed.data(), threads);
  ApplyLinear(
    this->Output, group.Rows(), work.mixed.data(), to, { std::nullopt, nullptr, true }, threads);
}

/// Multiplies what heads write by the sigmoids of their gates.
void SelfAttention::MultiplyByGates(
  const RowGroup& group, const float* from, float* mixed, int threads) const
{
  const std::int64_t dimension = this->Config.ValueDimension();
  std::vector<ColumnBlock> blocks;
  blocks.reserve(this->Config.heads);
  for (std::int64_t head = 0; head < this->Config.heads; ++head)
  {
    blocks.push_back({ this->Gate.Head(head), dimension });
  }
  const auto visit = [&](std::size_t block, std::int64_t row, float* product)
  {
    const auto head = static_cast<std::int64_t>(block);
    if (const float* bias = this->Gate.HeadBias(head))
    {
      AddRow(dimension, bias, product);
    }
    float* to = mixed + row * MixedWidth(this->Config) + head * dimension;
    for (std::int64_t i = 0; i < dimension; ++i)
    {
      to[i] /= 1 + std::exp(-product[i]);
    }
  };
  MultiplyRows(group.Rows(), blocks, this->Gate.Inputs(), from, visit, threads);
}

/// The multiplications of queries, keys and values.
double SelfAttention::ProjectionWork(const RowGroup& group) const
{
  const double columns = static_cast<double>(
    this->Config.heads * this->Config.headDimension +
    this->Config.keyHeads * (this->Config.headDimension + this->Config.ValueDimension()));
  return static_cast<double>(group.Rows() * this->Config.modelDimension) * columns;
}

/// The multiplications of scores and of weighted sums of values.
double SelfAttention::MixingWork(const RowGroup& group) const
{
  const bool isCausal = this->Config.mask == AttentionMask::Causal;
  const std::int64_t window = this->Config.Window(this->Layer);
  const std::int64_t chunk = this->Config.Chunk(this->Layer);
  double pairs = 0;
  for (std::size_t s = 0; s + 1 < group.offsets.size(); ++s)
  {
    const std::int64_t queries = group.offsets[s + 1] - group.offsets[s];
    std::int64_t keys = group.past + (isCausal ? (queries + 1) / 2 : queries);
    keys = window > 0 ? std::min(keys, window) : keys;
    keys = chunk > 0 ? std::min(keys, (chunk + 1) / 2) : keys;
    pairs += static_cast<double>(queries) * static_cast<double>(keys);
  }
  return pairs * static_cast<double>(this->Config.heads *
                                     (this->Config.headDimension + this->Config.ValueDimension()));
}

double SelfAttention::Work(const RowGroup& group) const
{
  const auto outputs = static_cast<double>(MixedWidth(this->Config) * this->Config.modelDimension);
  return this->ProjectionWork(group) + this->MixingWork(group) +
         static_cast<double>(group.Rows()) * outputs;
}

void SelfAttention::AddCross(const RowGroup& group, const float* from, const CrossSource& source,
  float* to, AttentionWorkspace& work, int threads) const
{
  this->Project({ this->Queries(false) }, group, from, source.heads, threads);
  if (!source.hasKeys)
  {
    this->Project(
      { this->Keys(false), this->Values() }, *source.group, source.rows, source.heads, threads);
    this->MeasureValues(*source.group, source.heads, work, threads);
  }
  work.mixed.resize(group.Rows() * MixedWidth(this->Config));
  this->MixValues(group, *source.group, source.heads, work.mixed.data(), threads, {});
  this->SeparateOutputs(group, source.heads, work.mixed.data(), threads);
  ApplyLinear(
    this->Output, group.Rows(), work.mixed.data(), to, { std::nullopt, nullptr, true }, threads);
}

SelfAttention::Projection SelfAttention::Queries(bool rotated) const
{
  const std::int64_t dimension = this->Config.headDimension;
  return { &this->Query, this->Config.heads, &HeadRows::query, &this->QueryNorms, rotated,
    dimension, dimension };
}

SelfAttention::Projection SelfAttention::Keys(bool rotated) const
{
  const std::int64_t dimension = this->Config.headDimension;
  return { &this->Key, this->Config.keyHeads, &HeadRows::key, &this->KeyNorms, rotated, dimension,
    dimension };
}

SelfAttention::Projection SelfAttention::Values() const
{
  const std::int64_t dimension = this->Config.headDimension;
  return { &this->Value, this->Config.keyHeads, &HeadRows::value, &this->ValueNorms, false,
    dimension, dimension };
}

/// Computes queries, keys and values of all heads, the first two normalized and rotated if the
/// model does so.
void SelfAttention::ProjectHeads(const RowGroup& group, const float* from,
  const std::vector<HeadRows>& heads, AttentionWorkspace& work, int threads) const
{
  if (this->Config.keyLatent > 0)
  {
    this->ProjectLatents(group, from, heads, work, threads);
    return;
  }
  const Projection query = this->Queries(true);
  if (this->Config.KeyLayer(this->Layer) != this->Layer)
  {
    this->Project({ query }, group, from, heads, threads);
    return;
  }
  const Projection key = this->Keys(true);
  const Projection value = this->Values();
  const float* fromWithPositions = this->AddPositions(group, from, work.shifted);
  if (fromWithPositions == from)
  {
    this->Project({ query, key, value }, group, from, heads, threads);
  }
  else
  {
    this->Project({ query, key }, group, fromWithPositions, heads, threads);
    this->Project({ value }, group, from, heads, threads);
  }
  if (this->Config.queryKeyNorm == QueryKeyNorm::Together)
  {
    this->FinishTogether(query, group, heads, threads);
    this->FinishTogether(key, group, heads, threads);
  }
}

/// The same of latent attention (DeepSeek-AI 2024).
void SelfAttention::ProjectLatents(const RowGroup& group, const float* from,
  const std::vector<HeadRows>& heads, AttentionWorkspace& work, int threads) const
{
  const std::int64_t rows = group.Rows();
  const std::int64_t dimension = this->Config.headDimension;
  const std::int64_t valueDimension = this->Config.ValueDimension();
  const std::int64_t rotated = this->Config.RotatedDimension();
  const std::int64_t latent = this->Config.keyLatent;
  const std::int64_t all = this->Config.heads;
  const float* queryFrom = from;
  if (this->Config.queryLatent > 0)
  {
    work.queryLatent.resize(rows * this->Config.queryLatent);
    float* vectors = work.queryLatent.data();
    ApplyLinear(this->QueryLatent, rows, from, vectors, {}, threads);
    this->QueryLatentNorm.Apply(rows, this->Config.queryLatent, vectors, vectors, threads);
    queryFrom = vectors;
  }
  this->Project({ { &this->Query, all, &HeadRows::query, nullptr, true, dimension, dimension } },
    group, queryFrom, heads, threads);
  work.latents.resize(rows * (latent + rotated));
  ApplyLinear(this->KeyLatent, rows, from, work.latents.data(), {}, threads);
  work.keyLatent.resize(rows * latent);
  ParallelFor(rows, threads,
    [&](std::int64_t row)
    {
      this->KeyLatentNorm.ApplyRow(latent, work.latents.data() + row * (latent + rotated),
        work.keyLatent.data() + row * latent);
    });
  const Projection key = { &this->Key, all, &HeadRows::key, nullptr, false, dimension - rotated,
    dimension };
  const Projection value = { &this->Value, all, &HeadRows::value, nullptr, false, valueDimension,
    valueDimension };
  this->Project({ key, value }, group, work.keyLatent.data(), heads, threads);
  this->ShareRotated(group, heads, work.latents, threads);
}

/// Rotates the last components of the keys, which are those of all heads.
void SelfAttention::ShareRotated(const RowGroup& group, const std::vector<HeadRows>& heads,
  std::vector<float>& latents, int threads) const
{
  const std::int64_t dimension = this->Config.headDimension;
  const std::int64_t rotated = this->Config.RotatedDimension();
  const std::int64_t stride = this->Config.keyLatent + rotated;
  ParallelFor(group.Rows(), threads,
    [&](std::int64_t row)
    {
      float* shared = latents.data() + row * stride + this->Config.keyLatent;
      this->Positions.Rotation(this->Layer, group.lengths[row])
        ->Apply(group.positions[row], shared);
      for (const HeadRows& head : heads)
      {
        std::copy_n(shared, rotated, head.key + (row + 1) * dimension - rotated);
      }
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
    AddRow(d, this->Positions.Vector(group.positions[row]), shifted.data() + row * d);
  }
  return shifted.data();
}

/// Computes from W^h + b^h for each head of the projections, and finishes it. Heads whose weights
/// are neighbors are multiplied together.
void SelfAttention::Project(const std::vector<Projection>& projections, const RowGroup& group,
  const float* from, const std::vector<HeadRows>& heads, int threads) const
{
  struct Heads
  {
    const Projection* projection;
    std::int64_t first;
    std::int64_t count;
  };
  std::vector<Heads> headsOf; // of a block
  std::vector<ColumnBlock> blocks;
  for (const Projection& projection : projections)
  {
    const std::int64_t dimension = projection.columns;
    const std::int64_t together = projection.linear->HeadsAreNeighbors(dimension)
                                    ? std::max<std::int64_t>(BlockColumns / dimension, 1)
                                    : 1;
    for (std::int64_t first = 0; first < projection.heads; first += together)
    {
      const std::int64_t count = std::min(together, projection.heads - first);
      headsOf.push_back({ &projection, first, count });
      blocks.push_back({ projection.linear->Head(first), count * dimension });
    }
  }
  const auto visit = [&](std::size_t block, std::int64_t row, float* product)
  {
    const Projection& projection = *headsOf[block].projection;
    const std::int64_t groupSize = this->Config.heads / projection.heads;
    for (std::int64_t i = 0; i < headsOf[block].count; ++i)
    {
      const std::int64_t head = headsOf[block].first + i;
      float* to = heads[head * groupSize].*projection.rows + row * projection.stride;
      std::copy_n(product + i * projection.columns, projection.columns, to);
      this->FinishHead(projection, head, group, row, to);
    }
  };
  const std::int64_t inner = projections.front().linear->Inputs();
  MultiplyRows(group.Rows(), blocks, inner, from, visit, threads);
}

/// Normalizes the queries or keys of all heads together, then limits and rotates them.
void SelfAttention::FinishTogether(const Projection& projection, const RowGroup& group,
  const std::vector<HeadRows>& heads, int threads) const
{
  const std::int64_t dimension = this->Config.headDimension;
  const std::int64_t groupSize = this->Config.heads / projection.heads;
  const auto limit = static_cast<float>(this->Config.projectionClip);
  ParallelFor(group.Rows(), threads,
    [&](std::int64_t row)
    {
      std::vector<float> all(projection.heads * dimension);
      const auto rowOf = [&](std::int64_t head)
      { return heads[head * groupSize].*projection.rows + row * dimension; };
      for (std::int64_t head = 0; head < projection.heads; ++head)
      {
        std::copy_n(rowOf(head), dimension, all.data() + head * dimension);
      }
      projection.norms->front().ApplyRow(projection.heads * dimension, all.data(), all.data());
      if (limit > 0)
      {
        LimitRow(limit, projection.heads * dimension, all.data());
      }
      for (std::int64_t head = 0; head < projection.heads; ++head)
      {
        std::copy_n(all.data() + head * dimension, dimension, rowOf(head));
        this->Rotate(group, row, rowOf(head));
      }
    });
}

void SelfAttention::Rotate(const RowGroup& group, std::int64_t row, float* values) const
{
  const RotationTable* rotation = this->Positions.Rotation(this->Layer, group.lengths[row]);
  if (rotation != nullptr)
  {
    const std::int64_t first =
      this->Config.rotatesLast ? this->Config.headDimension - this->Config.RotatedDimension() : 0;
    if (group.places.empty())
    {
      rotation->Apply(group.positions[row], values + first);
    }
    else
    {
      rotation->Apply(group.places[row], values + first);
    }
  }
}

/// Adds the bias of a query, key or value, and limits, normalizes and rotates it where the model
/// does so and not all heads are normalized together.
void SelfAttention::FinishHead(const Projection& projection, std::int64_t head,
  const RowGroup& group, std::int64_t row, float* values) const
{
  const std::int64_t dimension = projection.columns;
  const float* bias = projection.linear->HeadBias(head);
  if (bias != nullptr)
  {
    AddRow(dimension, bias, values);
  }
  if (projection.rotated && this->Config.queryKeyNorm == QueryKeyNorm::Together)
  {
    return;
  }
  const auto limit = static_cast<float>(this->Config.projectionClip);
  if (limit > 0)
  {
    LimitRow(limit, dimension, values);
  }
  const bool rotatesFirst = projection.rotated && this->Config.normsQueriesLast;
  if (rotatesFirst)
  {
    this->Rotate(group, row, values);
  }
  if (projection.norms != nullptr && !projection.norms->empty())
  {
    const std::vector<TransformerNorm>& norms = *projection.norms;
    const TransformerNorm& norm = norms.size() == 1 ? norms.front() : norms[head];
    norm.ApplyRow(dimension, values, values);
  }
  const bool isValue = projection.rows == &HeadRows::value;
  if ((projection.rotated && !rotatesFirst) || (isValue && this->Config.rotatesValues))
  {
    this->Rotate(group, row, values);
  }
  const bool grows = !this->Config.growsUnrotated || !this->Config.Rotates(this->Layer);
  if (this->Config.queryGrowth > 0 && grows && projection.rows == &HeadRows::query)
  {
    this->Grow(group.positions[row], values);
  }
}

/// Multiplies a query by what depends on its position (Ministral 3, Llama 4).
void SelfAttention::Grow(std::int64_t position, float* query) const
{
  const auto place = static_cast<double>(position + (this->Config.growsUnrotated ? 1 : 0));
  const double steps = std::floor(place / this->Config.queryGrowthStep);
  const auto factor = static_cast<float>(1 + this->Config.queryGrowth * std::log1p(steps));
  std::for_each_n(query, this->Config.headDimension, [factor](float& value) { value *= factor; });
}

/// Applies the attention of each head, in blocks of queries of each sequence, to keys and values of
/// the same sequences in `keys`: the group itself, or the group of the sources.
void SelfAttention::MixValues(const RowGroup& group, const RowGroup& keys,
  const std::vector<HeadRows>& heads, float* mixed, int threads, const Progress& progress) const
{
  if (this->Config.PatchWindow(this->Layer) > 0)
  {
    this->MixWindows(group, heads, mixed, threads, progress);
    return;
  }
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
  const std::int64_t count = heads.size();
  ParallelFor(static_cast<std::int64_t>(tasks.size()) * count, threads, progress,
    [&](std::int64_t i)
    {
      const Task& task = tasks[i / count];
      const std::int64_t head = i % count;
      this->MixBlock(group, keys, task.sequence, task.begin, head, heads[head], mixed);
    });
}

/// Computes a head's weighted sums of values for at most QueryBlock queries of a sequence, starting
/// at row `begin` of the sequence in the group.
void SelfAttention::MixBlock(const RowGroup& group, const RowGroup& keysOf, std::size_t sequence,
  std::int64_t begin, std::int64_t head, const HeadRows& rows, float* mixed) const
{
  const bool isCross = &keysOf != &group;
  const std::int64_t dimension = this->Config.headDimension;
  const std::int64_t first = group.offsets[sequence];
  const std::int64_t queries = group.offsets[sequence + 1] - first;
  const std::int64_t past = isCross ? 0 : group.past; // keys in the rows before those of the group
  const std::int64_t firstKey = keysOf.offsets[sequence] - past;
  HeadScores scores = this->ScoresOf(head);
  if (isCross)
  {
    scores.mask = AttentionMask::Bidirectional;
    scores.slope = 0;
    scores.window = 0;
    scores.distanceBias = nullptr;
  }
  else if (!group.keyEnds.empty()) // of sequences that are run at once
  {
    scores.keyEnds = group.keyEnds.data() + first;
  }
  scores.query = rows.query + first * dimension;
  scores.firstQuery = past;
  scores.key = rows.key + firstKey * dimension;
  scores.length = keysOf.offsets[sequence + 1] - firstKey;
  const std::int64_t from = past + begin; // position of the first query
  const std::int64_t end = std::min(past + queries, from + QueryBlock);
  const std::int64_t keys = scores.KeyCount(end);
  const std::int64_t unseen = scores.FirstKey(from); // keys before the window have no weight
  std::vector<float> weights((end - from) * keys);
  EvaluateWeights(scores, from, end, keys, weights.data());
  const std::int64_t stride = MixedWidth(this->Config);
  const std::int64_t width = this->Config.ValueDimension();
  MultiplyMatrices(end - from, width, keys - unseen, 1, { weights.data() + unseen, keys },
    { rows.value + (firstKey + unseen) * width, width },
    mixed + (first + begin) * stride + head * width, stride);
}

/// The same of patches that attend to their windows.
void SelfAttention::MixWindows(const RowGroup& group, const std::vector<HeadRows>& heads,
  float* mixed, int threads, const Progress& progress) const
{
  const std::int64_t side = std::max(this->Config.PatchWindow(this->Layer), std::int64_t{ 1 });
  std::vector<std::vector<std::int64_t>> windows; // their rows
  for (std::size_t s = 0; s + 1 < group.offsets.size(); ++s)
  {
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int64_t>> found;
    for (std::int64_t row = group.offsets[s]; row < group.offsets[s + 1]; ++row)
    {
      const RotaryPlace& place = group.places[row];
      found[{ place[1] / side, place[2] / side }].push_back(row);
    }
    for (auto& [place, rows] : found)
    {
      windows.push_back(std::move(rows));
    }
  }
  const std::int64_t count = heads.size();
  ParallelFor(static_cast<std::int64_t>(windows.size()) * count, threads, progress,
    [&](std::int64_t i)
    { this->MixWindow(windows[i / count], i % count, heads[i % count], mixed); });
}

/// Computes a head's weighted sums of values for the rows of a window.
void SelfAttention::MixWindow(const std::vector<std::int64_t>& rows, std::int64_t head,
  const HeadRows& from, float* mixed) const
{
  const std::int64_t dimension = this->Config.headDimension;
  const std::int64_t width = this->Config.ValueDimension();
  const std::int64_t count = rows.size();
  const auto gather = [&](const float* matrix, std::int64_t columns)
  {
    std::vector<float> gathered(count * columns);
    for (std::int64_t i = 0; i < count; ++i)
    {
      std::copy_n(matrix + rows[i] * columns, columns, gathered.data() + i * columns);
    }
    return gathered;
  };
  const std::vector<float> queries = gather(from.query, dimension);
  const std::vector<float> keys = gather(from.key, dimension);
  const std::vector<float> values = gather(from.value, width);
  HeadScores scores = this->ScoresOf(head);
  scores.query = queries.data();
  scores.key = keys.data();
  scores.length = count;
  std::vector<float> weights(std::min(count, QueryBlock) * count);
  std::vector<float> sums(std::min(count, QueryBlock) * width);
  for (std::int64_t begin = 0; begin < count; begin += QueryBlock)
  {
    const std::int64_t end = std::min(begin + QueryBlock, count);
    EvaluateWeights(scores, begin, end, count, weights.data());
    MultiplyMatrices(end - begin, width, count, 1, { weights.data(), count },
      { values.data(), width }, sums.data(), width);
    for (std::int64_t i = begin; i < end; ++i)
    {
      std::copy_n(sums.data() + (i - begin) * width, width,
        mixed + rows[i] * MixedWidth(this->Config) + head * width);
    }
  }
}

/// What turns queries and keys of a head into attention.
HeadScores SelfAttention::ScoresOf(std::int64_t head) const
{
  HeadScores scores;
  scores.dimension = this->Config.headDimension;
  scores.scale = this->Scale;
  scores.slope = this->Positions.Slope(head);
  scores.slopeUnit = static_cast<float>(this->Config.SlopeUnit());
  scores.mask = this->Config.mask;
  scores.cap = static_cast<float>(this->Config.scoreCap);
  scores.window = this->Config.Window(this->Layer);
  scores.chunk = this->Config.Chunk(this->Layer);
  if (this->Sinks.Data() != nullptr)
  {
    scores.sink = this->Sinks.Data()[head];
  }
  const SharedMatrix& biases = this->Positions.GetDistanceBias(this->Layer);
  if (biases.IsRecorded())
  {
    scores.reach = biases.columns / 2;
    scores.distanceBias = biases.Row(head) + scores.reach;
  }
  if (const SharedMatrix* patches = this->Positions.GetPatchBias(this->Layer))
  {
    scores.patchBias = patches->Row(head);
    scores.patchRow = this->Positions.GetPatchRows().data();
    scores.patchColumn = this->Positions.GetPatchColumns().data();
    scores.patchRows = this->Config.PatchRows();
    scores.patchColumns = this->Config.PatchColumns();
  }
  const std::int64_t distances = this->Positions.GetDistanceVectors().rows;
  scores.positionReach = distances / 2;
  for (const auto& [vectors, of] : { std::pair(&this->PositionKeys, &HeadScores::positionKey),
         std::pair(&this->PositionQueries, &HeadScores::positionQuery) })
  {
    if (vectors->IsRecorded())
    {
      scores.*of = vectors->Row(head * distances + scores.positionReach);
    }
  }
  return scores;
}

/// Calls visit(head, first row, rows) for parts of the rows of each head, in parallel.
template<class Visitor>
void SelfAttention::VisitHeads(std::int64_t rows, int threads, const Visitor& visit) const
{
  const std::int64_t parts = BlockCount(rows, RowsAtOnce);
  ParallelFor(this->Config.heads * parts, threads,
    [&](std::int64_t i)
    {
      const std::int64_t first = i % parts * RowsAtOnce;
      visit(i / parts, first, std::min(RowsAtOnce, rows - first));
    });
}

/// Computes the norms of value W_O^h if they are recorded, as sqrt(v (W_O W_O^T) v^T): d_head
/// rather than d_model multiplications per number of v.
void SelfAttention::MeasureValues(const RowGroup& group, const std::vector<HeadRows>& heads,
  AttentionWorkspace& work, int threads) const
{
  if (heads.front().valueNorm == nullptr)
  {
    return;
  }
  const std::int64_t dimension = this->Config.ValueDimension();
  const std::int64_t d = this->Config.modelDimension;
  const std::int64_t stride = MixedWidth(this->Config);
  work.grams.resize(stride * dimension);
  ParallelFor(this->Config.heads, threads,
    [&](std::int64_t head)
    {
      const MatrixBlock output = this->Output.Part(head * dimension, 0);
      MultiplyMatrices(dimension, dimension, d, 1, output,
        { output.data, output.stride, !output.transposed },
        work.grams.data() + head * dimension * dimension, dimension);
    });
  VisitHeads(group.Rows(), threads,
    [&](std::int64_t head, std::int64_t first, std::int64_t count)
    {
      const HeadRows& rows = heads[head];
      PackedColumns gram;
      gram.Set(
        { work.grams.data() + head * dimension * dimension, dimension }, dimension, dimension);
      VisitProducts(gram, count, rows.value + first * dimension, dimension,
        [&](std::int64_t row, const float* product)
        {
          rows.valueNorm[first + row] =
            NormOf(rows.value + (first + row) * dimension, product, dimension);
        });
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
  const std::int64_t dimension = this->Config.ValueDimension();
  const std::int64_t d = this->Config.modelDimension;
  const std::int64_t stride = MixedWidth(this->Config);
  VisitHeads(group.Rows(), threads,
    [&](std::int64_t head, std::int64_t first, std::int64_t count)
    {
      PackedColumns output;
      output.Set(this->Output.Part(head * dimension, 0), dimension, d,
        this->Output.Block(0, 0).products); // so that outputs add up to what all heads write
      VisitProducts(output, count, mixed + first * stride + head * dimension, stride,
        [&](std::int64_t row, const float* product)
        { std::copy_n(product, d, heads[head].output + (first + row) * d); });
    });
}

}
