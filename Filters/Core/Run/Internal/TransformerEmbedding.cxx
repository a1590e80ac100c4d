#include "TransformerEmbedding.h"

#include "Index.h"
#include "TransformerKernels.h"
#include "TransformerNorm.h"

#include <algorithm>
#include <numeric>

namespace atlas
{
namespace
{

/// x[i] += row indices[i] of a table with d columns
void AddEmbedding(
  const TensorView& table, std::int64_t d, const std::vector<std::int64_t>& indices, float* x)
{
  std::vector<float> values(ToIndex(d));
  for (const std::int64_t index : indices)
  {
    const std::uint64_t begin = ToIndex(index) * values.size();
    table.ToFloat(begin, begin + values.size(), values.data());
    AddRow(d, values.data(), x);
    x += d;
  }
}

/// The pixels of each patch of an image, in the order channel, row, column.
void GatherPatches(const TransformerConfig& config, const float* image, float* to)
{
  for (std::int64_t patch = 0; patch < config.positions - 1; ++patch)
  {
    const std::int64_t top = patch / config.PatchColumns() * config.patchHeight;
    const std::int64_t left = patch % config.PatchColumns() * config.patchWidth;
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

/// Writes the class token and the embeddings of the patches of each image.
void EmbedImages(const TransformerConfig& config, const TransformerWeights& weights,
  const TransformerInput& input, const SequenceRange& images, float* x, int threads)
{
  const Linear embedding(weights.patchEmbedding);
  const std::int64_t d = config.modelDimension;
  const std::int64_t patches = config.positions - 1;
  const std::int64_t size = config.channels * config.imageHeight * config.imageWidth;
  std::vector<float> pixels(ToIndex(patches * embedding.Inputs()));
  for (std::int64_t image = images.first; image < images.end; ++image)
  {
    GatherPatches(config, input.pixels.data() + image * size, pixels.data());
    weights.classToken.ToFloat(0, ToIndex(d), x);
    ApplyLinear(embedding, MakeRowTiles({ patches }), pixels.data(), x + d, {}, threads);
    x += (1 + patches) * d;
  }
}

}

void EmbedInput(const TransformerConfig& config, const TransformerWeights& weights,
  const TransformerInput& input, const PackedSequences& sequences, float* x, int threads)
{
  const std::int64_t d = config.modelDimension;
  if (config.input == InputKind::Images)
  {
    EmbedImages(config, weights, input, sequences.run, x, threads);
  }
  float* first = x; // of the sequence
  for (std::int64_t s = sequences.run.first; s < sequences.run.end; ++s)
  {
    const std::int64_t length = sequences.Length(s);
    if (config.input == InputKind::Tokens)
    {
      AddEmbedding(weights.tokenEmbedding, d, input.tokens[ToIndex(s)], first);
    }
    std::vector<std::int64_t> indices(ToIndex(length));
    if (config.position == PositionKind::Learned)
    {
      std::iota(indices.begin(), indices.end(), sequences.past);
      AddEmbedding(weights.positionEmbedding, d, indices, first);
    }
    if (config.segments > 0)
    {
      std::fill(indices.begin(), indices.end(), 0);
      AddEmbedding(weights.segmentEmbedding, d,
        input.segments.empty() ? indices : input.segments[ToIndex(s)], first);
    }
    first += length * d;
  }
  if (config.embeddingNorm)
  {
    TransformerNorm(config, weights.embeddingNorm).Apply(sequences.Rows(), d, x, x, threads);
  }
}

const float* TransformForLogits(const TransformerConfig& config, const TransformerWeights& weights,
  const PackedSequences& sequences, const float* x, std::vector<float>& memory, int threads)
{
  if (!weights.logitsTransform.Exists())
  {
    return x;
  }
  const std::int64_t d = config.modelDimension;
  memory.resize(ToIndex(sequences.Rows() * d));
  ApplyLinear(Linear(weights.logitsTransform), sequences.Tiles(), x, memory.data(),
    { config.activation, nullptr, false }, threads);
  TransformerNorm(config, weights.logitsNorm)
    .Apply(sequences.Rows(), d, memory.data(), memory.data(), threads);
  return memory.data();
}

void EvaluateLogits(const TransformerConfig& config, const TransformerWeights& weights,
  const PackedSequences& sequences, const float* x, float* logits, int threads)
{
  std::vector<float> memory;
  x = TransformForLogits(config, weights, sequences, x, memory, threads);
  ApplyLinear(Linear(weights.unembedding), sequences.Tiles(), x, logits, {}, threads);
}

}
