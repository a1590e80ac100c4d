#include "TransformerEmbedding.h"

#include "Base/Index.h"
#include "Base/Parallel.h"
#include "SoundEmbedding.h"
#include "TransformerKernels.h"
#include "TransformerLinear.h"
#include "TransformerNorm.h"
#include "Weights/ResizedPositions.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace atlas
{
namespace
{

/// x[i] += row indices[i] of a table with d columns; negative indices stand for no row
void AddEmbedding(
  const TensorView& table, std::int64_t d, const std::vector<std::int64_t>& indices, float* x)
{
  std::vector<float> values(d);
  for (const std::int64_t index : indices)
  {
    if (index >= 0)
    {
      const std::uint64_t begin = ToIndex(index) * values.size();
      table.ToFloat(begin, begin + values.size(), values.data());
      AddRow(d, values.data(), x);
    }
    x += d;
  }
}

/// The pixels of each patch of an image, or of the features of a sound, in the order channel, row,
/// column.
void GatherPatches(const TransformerConfig& config, const float* image, float* to)
{
  for (std::int64_t patch = 0; patch < config.PatchRows() * config.PatchColumns(); ++patch)
  {
    const std::int64_t top = patch / config.PatchColumns() * config.RowStep();
    const std::int64_t left = patch % config.PatchColumns() * config.ColumnStep();
    for (std::int64_t channel = 0; channel < config.channels; ++channel)
    {
      for (std::int64_t row = top; row < top + config.patchHeight; ++row)
      {
        const std::int64_t line = channel * config.imageHeight + row;
        to = std::copy_n(image + line * config.imageWidth + left, config.patchWidth, to);
      }
    }
  }
}

/// Writes the class token, those after it, and the embeddings of the patches of each image.
void EmbedImages(const TransformerConfig& config, const TransformerWeights& weights,
  const TransformerInput& input, const SequenceRange& images, float* x, int threads)
{
  const Linear embedding(weights.patchEmbedding);
  const std::int64_t d = config.modelDimension;
  const std::int64_t patches = config.PatchRows() * config.PatchColumns();
  const std::int64_t size = config.channels * config.imageHeight * config.imageWidth;
  std::vector<float> pixels(patches * embedding.Inputs());
  const std::vector<float>& all = config.input == InputKind::Sound ? input.features : input.pixels;
  for (std::int64_t image = images.first; image < images.end; ++image)
  {
    GatherPatches(config, all.data() + image * size, pixels.data());
    for (const TensorView* token :
      { &weights.classToken, &weights.distillationToken, &weights.registers })
    {
      if (token->data != nullptr)
      {
        token->ToFloat(0, token->Count(), x);
        x += token->Count();
      }
    }
    ApplyLinear(embedding, patches, pixels.data(), x, {}, threads);
    x += patches * d;
  }
}

/// Adds a vector of d numbers to each of the rows, of these positions: sin(p f_j) with f_j =
/// 10000^(-2 j / d) for j < d / 2, then the cosines (Vaswani et al. 2017; this order: Marian); or
/// with f_j = 10000^(-j / (d / 2 - 1)) (M2M-100), which gives padding a 0 vector.
void AddSinusoids(
  const TransformerConfig& config, const std::vector<std::int64_t>& positions, float* x)
{
  const std::int64_t d = config.modelDimension;
  const bool ends = config.endsSinusoids;
  const std::int64_t sines = ends ? d / 2 : (d + 1) / 2;
  const std::int64_t intervals = std::max<std::int64_t>(d / 2 - 1, 1);
  const auto width = static_cast<double>(ends ? 2 * intervals : d);
  for (const std::int64_t position : positions)
  {
    const bool isNone = ends && position < config.firstPosition;
    for (std::int64_t i = 0; i < d; ++i, ++x)
    {
      const std::int64_t j = i < sines ? i : i - sines;
      if (isNone || j >= (ends ? sines : d)) // of odd d
      {
        continue;
      }
      const double angle =
        static_cast<double>(position) / std::pow(10000.0, 2 * static_cast<double>(j) / width);
      *x += static_cast<float>(i < sines ? std::sin(angle) : std::cos(angle));
    }
  }
}

/// ESM-2: embeddings of masks become 0, and all are scaled by the share of masks in training, 0.12,
/// and in this text (Lin et al. 2023).
void DropMasks(const TransformerConfig& config, const std::vector<std::int64_t>& tokens, float* x)
{
  const std::int64_t d = config.EmbeddingDimension();
  const auto masks = static_cast<float>(std::count(tokens.begin(), tokens.end(), config.maskToken));
  const float share = masks / static_cast<float>(tokens.size());
  for (const std::int64_t token : tokens)
  {
    for (std::int64_t i = 0; i < d; ++i, ++x)
    {
      *x = token == config.maskToken ? 0 : *x * 0.88F / (1 - share);
    }
  }
}

/// Adds the embeddings of the tokens of all sequences, scaled or projected if the model does so.
void EmbedTokens(const TransformerConfig& config, const TransformerWeights& weights,
  const TransformerInput& input, const PackedSequences& sequences, float* x, int threads)
{
  const std::int64_t width = config.EmbeddingDimension();
  const bool isProjected =
    weights.embeddingIn.Exists() && config.embeddingProjection == EmbeddingProjection::OfTokens;
  std::vector<float> memory(isProjected ? ToIndex(sequences.Rows() * width) : 0);
  float* embedded = isProjected ? memory.data() : x;
  float* first = embedded; // of the sequence
  for (std::int64_t s = sequences.run.first; s < sequences.run.end; ++s)
  {
    AddEmbedding(weights.tokenEmbedding, width, input.tokens[s], first);
    if (config.maskToken >= 0)
    {
      DropMasks(config, input.tokens[s], first);
    }
    first += sequences.Length(s) * width;
  }
  if (config.embeddingScale != 1)
  {
    const auto scale = static_cast<float>(config.embeddingScale);
    std::for_each(embedded, first, [scale](float& value) { value *= scale; });
  }
  if (isProjected)
  {
    ApplyLinear(Linear(weights.embeddingIn), sequences.Rows(), embedded, x, {}, threads);
  }
}

/// The rows of the position embedding of the next `length` tokens of a sequence, after `past`
/// others; -1: none.
std::vector<std::int64_t> PositionRows(const TransformerConfig& config,
  const TransformerInput& input, std::int64_t s, std::int64_t past, std::int64_t length)
{
  std::vector<std::int64_t> rows(length);
  std::iota(rows.begin(), rows.end(), config.firstPosition + past);
  if (config.input == InputKind::Images)
  {
    const auto registers = rows.begin() + config.classTokens;
    std::fill_n(registers, config.registers, -1);
    std::iota(registers + config.registers, rows.end(), config.classTokens);
  }
  else if (config.paddingToken >= 0)
  {
    std::int64_t next = config.firstPosition + past;
    for (std::size_t t = 0; t < rows.size(); ++t)
    {
      const bool isPadding = input.tokens[s][t] == config.paddingToken;
      rows[t] = isPadding ? config.firstPosition - 1 : next;
      next += isPadding ? 0 : 1;
    }
  }
  return rows;
}

/// Writes the embeddings of tokens, patches or sound.
void EmbedContent(const TransformerConfig& config, const TransformerWeights& weights,
  const TransformerInput& input, const PackedSequences& sequences, float* x, int threads)
{
  if (config.ReadsAnySize())
  {
    const Linear embedding(weights.patchEmbedding);
    const float* patches = input.pixels.data() + sequences.FirstRow() * embedding.Inputs();
    ApplyLinear(embedding, sequences.Rows(), patches, x, {}, threads);
  }
  else if (config.HasPatches())
  {
    EmbedImages(config, weights, input, sequences.run, x, threads);
  }
  else if (config.input == InputKind::Sound)
  {
    EmbedSounds(config, weights, input, sequences.run, x, threads);
  }
  else
  {
    EmbedTokens(config, weights, input, sequences, x, threads);
  }
}

/// The next tokens of a sequence, after `past` others.
struct NextTokens
{
  std::int64_t sequence;
  std::int64_t past;
  std::int64_t length;
};

/// Adds those of the patches of a picture, or of a group of frames, of any size.
void AddGridPositions(const TransformerConfig& config, const TransformerWeights& weights,
  const TransformerInput& input, const PackedSequences& sequences, std::int64_t sequence, float* x)
{
  const std::int64_t d = config.modelDimension;
  std::int64_t next = 0; // sequence
  const auto extent = std::find_if(input.extents.begin(), input.extents.end(),
    [&](const PatchExtent& one) { return (next += one.frames) > sequence; });
  const std::vector<float> positions =
    PositionsOfGrid(weights.positionEmbedding, config, extent->rows, extent->columns);
  const std::int64_t first = sequences.offsets[sequence];
  const auto group = std::find_if(sequences.groups.begin(), sequences.groups.end(),
    [first](const RowGroup& one) { return first < one.end; });
  for (std::int64_t i = 0; i < sequences.Length(sequence); ++i)
  {
    std::int64_t patch = i;
    if (!group->places.empty())
    {
      const RotaryPlace& place = group->places[first - group->begin + i];
      patch = place[1] * extent->columns + place[2];
    }
    AddRow(d, positions.data() + patch * d, x + i * d);
  }
}

/// Adds the vectors of their positions, if the model has some.
void AddPositions(const TransformerConfig& config, const TransformerWeights& weights,
  const TransformerInput& input, const NextTokens& next, float* x)
{
  const bool isSinusoidal = config.position == PositionKind::Sinusoidal;
  if (!config.HasPositionVectors() && !isSinusoidal)
  {
    return;
  }
  const std::vector<std::int64_t> rows =
    PositionRows(config, input, next.sequence, next.past, next.length);
  if (isSinusoidal && weights.positionEmbedding.data == nullptr)
  {
    AddSinusoids(config, rows, x);
  }
  else
  {
    AddEmbedding(weights.positionEmbedding, config.SumDimension(), rows, x);
  }
}

}

void EmbedInput(const TransformerConfig& config, const TransformerWeights& weights,
  const TransformerInput& input, const PackedSequences& sequences, float* x, int threads)
{
  const bool projectsSum =
    weights.embeddingIn.Exists() && config.embeddingProjection != EmbeddingProjection::OfTokens;
  const bool normsSum = config.embeddingProjection == EmbeddingProjection::OfNormed;
  const std::int64_t width = config.SumDimension();
  std::vector<float> memory(projectsSum ? ToIndex(sequences.Rows() * width) : 0);
  float* sum = projectsSum ? memory.data() : x;
  EmbedContent(config, weights, input, sequences, sum, threads);
  float* first = sum; // of the sequence
  for (std::int64_t s = sequences.run.first; s < sequences.run.end; ++s)
  {
    const std::int64_t length = sequences.Length(s);
    if (config.ReadsAnySize() && config.HasPositionVectors())
    {
      AddGridPositions(config, weights, input, sequences, s, first);
    }
    else
    {
      AddPositions(config, weights, input, { s, sequences.past, length }, first);
    }
    if (config.segments > 0)
    {
      AddEmbedding(weights.segmentEmbedding, width,
        input.segments.empty() ? std::vector<std::int64_t>(length) : input.segments[s], first);
    }
    if (config.tasks > 0)
    {
      AddEmbedding(weights.taskEmbedding, width, std::vector<std::int64_t>(length), first);
    }
    first += length * width;
  }
  const auto norm = [&](std::int64_t columns, float* values)
  {
    TransformerNorm(config, weights.embeddingNorm)
      .Apply(sequences.Rows(), columns, values, values, threads);
  };
  if (config.embeddingNorm && normsSum)
  {
    norm(width, sum);
  }
  if (projectsSum)
  {
    ApplyLinear(Linear(weights.embeddingIn), sequences.Rows(), sum, x, {}, threads);
  }
  if (config.embeddingNorm && !normsSum)
  {
    norm(config.modelDimension, x);
  }
}

const float* TransformForLogits(const TransformerConfig& config, const TransformerWeights& weights,
  const PackedSequences& sequences, const float* x, std::vector<float>& memory, int threads)
{
  if (weights.embeddingOut.Exists())
  {
    memory.resize(sequences.Rows() * config.EmbeddingDimension());
    ApplyLinear(Linear(weights.embeddingOut), sequences.Rows(), x, memory.data(), {}, threads);
    return memory.data();
  }
  if (config.logitScale != 1)
  {
    const std::int64_t d = config.modelDimension;
    memory.resize(sequences.Rows() * d);
    std::transform(x, x + sequences.Rows() * d, memory.begin(),
      [scale = static_cast<float>(config.logitScale)](float value) { return value * scale; });
    return memory.data();
  }
  if (!weights.logitsTransform.Exists())
  {
    return x;
  }
  const std::int64_t width = weights.logitsTransform.outputs;
  memory.resize(sequences.Rows() * width);
  ApplyLinear(Linear(weights.logitsTransform), sequences.Rows(), x, memory.data(),
    { config.logitsActivation.value_or(config.activation), nullptr, false }, threads);
  TransformerNorm(config, weights.logitsNorm)
    .Apply(sequences.Rows(), width, memory.data(), memory.data(), threads);
  return memory.data();
}

void EvaluateLogits(const TransformerConfig& config, const TransformerWeights& weights,
  const PackedSequences& sequences, const float* x, float* logits, int threads)
{
  std::vector<float> memory;
  x = TransformForLogits(config, weights, sequences, x, memory, threads);
  ApplyLinear(Linear(weights.unembedding), sequences.Rows(), x, logits, {}, threads);
  if (config.logitCap > 0)
  {
    const std::int64_t count = weights.unembedding.outputs;
    ParallelFor(sequences.Rows(), threads, [&](std::int64_t row)
      { CapRow(static_cast<float>(config.logitCap), count, logits + row * count); });
  }
}

}
