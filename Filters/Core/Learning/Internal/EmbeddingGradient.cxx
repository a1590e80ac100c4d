#include "EmbeddingGradient.h"

#include <algorithm>

namespace atlas
{
namespace
{

/// Calls function(row in the slice, token id, segment).
template<class Function>
void ForTokens(const TransformerInput& input, const BatchSlice& slice, const Function& function)
{
  for (std::size_t s = 0; s < slice.Sequences(); ++s)
  {
    const std::size_t sequence = ToIndex(slice.firstSequence) + s;
    const std::vector<std::int64_t>& tokens = input.tokens[sequence];
    for (std::size_t i = 0; i < tokens.size(); ++i)
    {
      function(slice.offsets[s] + static_cast<std::int64_t>(i), tokens[i],
        input.segments.empty() ? 0 : input.segments[sequence][i]);
    }
  }
}

}

template<class Number>
void EmbeddingGradient<Number>::Embed(
  const TransformerInput& input, const BatchSlice& slice, Number* x)
{
  const std::int64_t d = this->Config.modelDimension;
  if (this->Config.input == InputKind::Images)
  {
    this->EmbedPatches(input, slice, x);
  }
  else
  {
    this->EmbedTokens(input, slice, x);
  }
  if (this->Config.position == PositionKind::Learned)
  {
    const Number* positions = this->Maps.Of(this->Weights.positionEmbedding);
    slice.ForRows([&](std::int64_t row, std::int64_t position)
      { AddTo(d, positions + position * d, x + row * d); });
  }
  if (this->Config.embeddingNorm)
  {
    this->Maps.ApplyNorm(this->Weights.embeddingNorm, slice.Rows(), x, x, this->Embedded);
  }
}

template<class Number>
void EmbeddingGradient<Number>::EmbedTokens(
  const TransformerInput& input, const BatchSlice& slice, Number* x) const
{
  const std::int64_t d = this->Config.modelDimension;
  const Number* embedding = this->Maps.Of(this->Weights.tokenEmbedding);
  const Number* segments =
    this->Config.segments > 0 ? this->Maps.Of(this->Weights.segmentEmbedding) : nullptr;
  ForTokens(input, slice,
    [&](std::int64_t row, std::int64_t token, std::int64_t segment)
    {
      std::copy_n(embedding + token * d, d, x + row * d);
      if (segments != nullptr)
      {
        AddTo(d, segments + segment * d, x + row * d);
      }
    });
}

/// Writes the pixels of the patches to Pixels [images * patches, channels * height * width].
template<class Number>
void EmbeddingGradient<Number>::GatherPixels(const TransformerInput& input, const BatchSlice& slice)
{
  const TransformerConfig& config = this->Config;
  const std::int64_t inputs = this->Weights.patchEmbedding.inputs;
  const std::int64_t patches = config.PatchRows() * config.PatchColumns();
  const auto images = static_cast<std::int64_t>(slice.Sequences());
  Reserve(this->Pixels, images * patches * inputs);
  Number* to = this->Pixels.data();
  for (std::int64_t image = 0; image < images; ++image)
  {
    const float* from = input.pixels.data() + (slice.firstSequence + image) * config.channels *
                                                config.imageHeight * config.imageWidth;
    for (std::int64_t p = 0; p < patches; ++p)
    {
      const std::int64_t top = p / config.PatchColumns() * config.patchHeight;
      const std::int64_t left = p % config.PatchColumns() * config.patchWidth;
      for (std::int64_t c = 0; c < config.channels; ++c)
      {
        for (std::int64_t y = top; y < top + config.patchHeight; ++y)
        {
          const float* row = from + (c * config.imageHeight + y) * config.imageWidth + left;
          to = std::copy_n(row, config.patchWidth, to);
        }
      }
    }
  }
}

template<class Number>
void EmbeddingGradient<Number>::EmbedPatches(
  const TransformerInput& input, const BatchSlice& slice, Number* x)
{
  this->GatherPixels(input, slice);
  const std::int64_t d = this->Config.modelDimension;
  const LinearTensors& linear = this->Weights.patchEmbedding;
  const std::int64_t patches = this->Config.PatchRows() * this->Config.PatchColumns();
  for (std::size_t s = 0; s < slice.Sequences(); ++s)
  {
    Number* first = x + slice.offsets[s] * d;
    std::copy_n(this->Maps.Of(this->Weights.classToken), d, first);
    this->Maps.Apply(linear, patches,
      this->Pixels.data() + static_cast<std::int64_t>(s) * patches * linear.inputs, first + d,
      false);
  }
}

template<class Number>
void EmbeddingGradient<Number>::EmbedBackward(
  const TransformerInput& input, const BatchSlice& slice, const Number* dx)
{
  const std::int64_t d = this->Config.modelDimension;
  if (this->Config.embeddingNorm)
  {
    Reserve(this->Sum, slice.Rows() * d);
    this->Maps.NormBackward(
      this->Weights.embeddingNorm, slice.Rows(), this->Embedded, dx, this->Sum.data(), false);
    dx = this->Sum.data();
  }
  if (this->Config.position == PositionKind::Learned)
  {
    Number* positions = this->Maps.GradientOf(this->Weights.positionEmbedding);
    slice.ForRows([&](std::int64_t row, std::int64_t position)
      { AddTo(d, dx + row * d, positions + position * d); });
  }
  if (this->Config.input == InputKind::Images)
  {
    this->PatchesBackward(slice, dx);
    return;
  }
  Number* embedding = this->Maps.GradientOf(this->Weights.tokenEmbedding);
  Number* segments =
    this->Config.segments > 0 ? this->Maps.GradientOf(this->Weights.segmentEmbedding) : nullptr;
  ForTokens(input, slice,
    [&](std::int64_t row, std::int64_t token, std::int64_t segment)
    {
      AddTo(d, dx + row * d, embedding + token * d);
      if (segments != nullptr)
      {
        AddTo(d, dx + row * d, segments + segment * d);
      }
    });
}

template<class Number>
void EmbeddingGradient<Number>::PatchesBackward(const BatchSlice& slice, const Number* dx) const
{
  const std::int64_t d = this->Config.modelDimension;
  const LinearTensors& linear = this->Weights.patchEmbedding;
  const std::int64_t patches = this->Config.PatchRows() * this->Config.PatchColumns();
  for (std::size_t s = 0; s < slice.Sequences(); ++s)
  {
    const Number* first = dx + slice.offsets[s] * d;
    AddTo(d, first, this->Maps.GradientOf(this->Weights.classToken));
    this->Maps.Backward(linear, patches,
      this->Pixels.data() + static_cast<std::int64_t>(s) * patches * linear.inputs, first + d,
      nullptr, false);
  }
}

template class EmbeddingGradient<float>;
template class EmbeddingGradient<double>;

}
