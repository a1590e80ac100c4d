#include "TransformerLayer.h"

#include "Index.h"

namespace atlas
{

TransformerLayer::TransformerLayer(const TransformerConfig& config, const LayerTensors& tensors,
  std::int64_t layer, const PositionEncoding& positions)
  : Config(config)
  , AttentionNorm(config, tensors.attentionNorm)
  , Attention(config, tensors, layer, positions)
  , MlpNorm(config, tensors.mlpNorm)
  , Gate(tensors.gate)
  , Up(tensors.up)
  , Down(tensors.down)
{
}

std::int64_t TransformerLayer::WorkingFloats(
  const TransformerConfig& config, std::int64_t rows, int threads)
{
  return rows * (config.modelDimension + (config.gated ? 2 : 1) * config.mlpDimension) +
         SelfAttention::WorkingFloats(config, rows, threads);
}

void TransformerLayer::Apply(const RowGroup& group, const std::vector<HeadRows>& heads, float* x,
  LayerWorkspace& work, int threads, const ActivationVisitor& visitor) const
{
  this->ApplySublayer(this->AttentionNorm, group, x, work, threads, [&](const float* from)
    { this->Attention.Add(group, from, heads, x, work.attention, threads, visitor); });
  if (this->Config.mlpDimension > 0)
  {
    this->ApplySublayer(this->MlpNorm, group, x, work, threads,
      [&](const float* from) { this->AddMlp(group, from, x, work, threads, visitor); });
  }
}

/// x += f(norm(x)) or norm(x + f(x)), where add(from) adds f(from) to x.
template<class AddSublayer>
void TransformerLayer::ApplySublayer(const TransformerNorm& norm, const RowGroup& group, float* x,
  LayerWorkspace& work, int threads, const AddSublayer& add) const
{
  const std::int64_t d = this->Config.modelDimension;
  if (this->Config.normPlace == NormPlace::AfterSublayer)
  {
    add(x);
    norm.Apply(group.Rows(), d, x, x, threads);
    return;
  }
  work.normed.resize(ToIndex(group.Rows() * d));
  norm.Apply(group.Rows(), d, x, work.normed.data(), threads);
  add(work.normed.data());
}

void TransformerLayer::AddMlp(const RowGroup& group, const float* from, float* to,
  LayerWorkspace& work, int threads, const ActivationVisitor& visitor) const
{
  const Activation activation = this->Config.activation;
  const std::size_t size = ToIndex(group.Rows() * this->Config.mlpDimension);
  work.hidden.resize(size);
  float* hidden = work.hidden.data();
  if (this->Config.gated)
  {
    work.factors.resize(size);
    float* factors = work.factors.data();
    ApplyLinear(this->Up, group.tiles, from, factors, {}, threads);
    ApplyLinear(this->Gate, group.tiles, from, hidden, { activation, factors, false }, threads);
  }
  else
  {
    ApplyLinear(this->Up, group.tiles, from, hidden, { activation, nullptr, false }, threads);
  }
  if (visitor)
  {
    visitor(ActivationPlace::Hidden, group, hidden);
  }
  ApplyLinear(this->Down, group.tiles, hidden, to, { std::nullopt, nullptr, true }, threads);
}

std::uint64_t WidenedBytes(const LayerTensors& layer)
{
  std::uint64_t bytes = 0;
  for (const LinearTensors* linear :
    { &layer.query, &layer.key, &layer.value, &layer.output, &layer.gate, &layer.up, &layer.down })
  {
    bytes += WidenedBytes(*linear);
  }
  return bytes;
}

}
