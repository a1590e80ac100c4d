#include "TransformerLayer.h"

#include "Base/Parallel.h"
#include "TransformerKernels.h"

#include <algorithm>
#include <cmath>

namespace atlas
{
namespace
{

/// Whether what sublayers add is normalized.
bool NormsOutputs(const TransformerConfig& config)
{
  return config.normPlace == NormPlace::BeforeAndAfter ||
         config.normPlace == NormPlace::AfterOutput;
}

/// Whether what sublayers add is normalized or scaled.
bool Changes(const TransformerConfig& config)
{
  return NormsOutputs(config) || config.layerScales || config.residualScale != 1;
}

/// The kind of the normalization before the attention of a layer.
NormKind AttentionNormKind(const TransformerConfig& config, std::int64_t layer)
{
  return layer == 0 && !config.firstAttentionIsNormed ? NormKind::None : config.norm;
}

/// The number of standard deviations below which the part p, 0 < p < 1, of a normal distribution
/// lies: by halving an interval.
double NormalQuantile(double p)
{
  double low = -40;
  double high = 40;
  for (int i = 0; i < 100; ++i)
  {
    const double middle = (low + high) / 2;
    (std::erfc(-middle * std::sqrt(0.5)) / 2 < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

XieluParameters XieluOf(const XieluTensors& tensors)
{
  if (tensors.square.data == nullptr)
  {
    return {};
  }
  const auto number = [](const TensorView& view)
  {
    float value = 0;
    view.ToFloat(0, 1, &value);
    return static_cast<double>(value);
  };
  const double linear = number(tensors.linear);
  return { static_cast<float>(Softplus(number(tensors.square))),
    static_cast<float>(linear + Softplus(number(tensors.negative))), static_cast<float>(linear),
    static_cast<float>(number(tensors.limit)) };
}

/// The tensors of the cross attention as those of an attention.
LayerTensors CrossTensors(const LayerTensors& tensors)
{
  LayerTensors cross;
  cross.query = tensors.crossQuery;
  cross.key = tensors.crossKey;
  cross.value = tensors.crossValue;
  cross.output = tensors.crossOutput;
  return cross;
}

}

TransformerLayer::TransformerLayer(const TransformerConfig& config, const LayerTensors& tensors,
  std::int64_t layer, const PositionEncoding& positions)
  : Sized(config.HasLayerConfigs()
            ? std::make_shared<const TransformerConfig>(config.WithSizesOf(layer))
            : nullptr)
  , Config(this->Sized != nullptr ? *this->Sized : config)
  , HasExperts(config.HasExperts(layer))
  , AttentionNorm(config, tensors.attentionNorm, AttentionNormKind(config, layer))
  , Attention(this->Config, tensors, layer, positions)
  , CrossNorm(config, tensors.crossNorm)
  , MlpNorm(config, tensors.mlpNorm)
  , Gate(tensors.gate)
  , Up(tensors.up)
  , Down(tensors.down)
  , Experts(config, tensors.experts)
  , RouterNorm(config, tensors.experts.routerNorm)
  , ExpertsNorm(config, tensors.experts.norm)
  , ExpertsAfter(config, tensors.experts.after)
  , PlainAfter(config, tensors.experts.mlpAfter)
  , HiddenNorm(config, tensors.hiddenNorm)
  , Xielu(XieluOf(tensors.xielu))
  , Convolution(tensors.convolution)
  , ConvolutionNorm(config, tensors.convolutionNorm)
  , AttentionFinish{ { config, tensors.attentionAfter }, FloatValues(tensors.attentionScale) }
  , CrossFinish{ { config, tensors.crossAfter }, {} }
  , MlpFinish{ { config, tensors.mlpAfter }, FloatValues(tensors.mlpScale) }
{
  if (config.HasLayerSides())
  {
    this->Sides.emplace(this->Config, tensors.sides, layer);
  }
  if (!config.gateSparsities.empty() && config.gateSparsities[layer] > 0)
  {
    this->GateCut = static_cast<float>(NormalQuantile(config.gateSparsities[layer]));
    this->CutsGate = true;
  }
  if (!config.HasAttention(layer))
  {
    this->InPlace.emplace(config, tensors.mixer, config.mixers[layer]);
  }
  if (config.encoder != nullptr)
  {
    this->Cross.emplace(config, CrossTensors(tensors), layer, positions);
  }
}

std::int64_t TransformerLayer::WorkingFloats(
  const TransformerConfig& config, std::int64_t rows, int threads)
{
  const std::int64_t plain = rows * (config.gated ? 2 : 1) * config.mlpDimension;
  const std::int64_t routed = ExpertMlp::WorkingFloats(config, rows);
  const std::int64_t mlp = config.expertsBesideMlp
                             ? plain + routed + 3 * rows * config.modelDimension
                             : std::max(routed, plain);
  const std::int64_t copies = 1 + (config.order == SublayerOrder::Parallel ? 1 : 0) +
                              (Changes(config) ? 1 : 0) + // of the residual stream
                              (config.convolution > 0 ? 1 + config.convolution : 0);
  return rows * copies * config.modelDimension + mlp +
         SelfAttention::WorkingFloats(config, rows, threads) +
         LayerMixer::WorkingFloats(config, rows, threads);
}

void TransformerLayer::Apply(const RowGroup& group, const std::vector<HeadRows>& heads, float* x,
  LayerWorkspace& work, int threads, const Progress& progress, const ActivationVisitor& visitor,
  const RoutingRows& routing, const CrossSource* cross, const SideRows& sides,
  MixerState* state) const
{
  if (this->Sides)
  {
    this->Sides->Predict(sides, group.Rows(), x, work.sides, threads);
  }
  const bool convolves = this->Convolution.Outputs() > 0;
  if (convolves)
  {
    work.read.assign(x, x + group.Rows() * this->Config.modelDimension);
  }
  const double attended = this->InPlace ? this->InPlace->Work(group) : this->Attention.Work(group);
  const Progress attending = progress.Part(0.0, attended, attended + this->MlpWork(group));
  if (this->Config.order != SublayerOrder::Sequential && this->Config.mlpDimension > 0)
  {
    this->ApplyParallel(group, heads, x, work, threads, attending, visitor, routing);
    return;
  }
  this->ApplySublayer(this->AttentionNorm, this->AttentionFinish, group, x, work, threads,
    [&](const float* from, float* to)
    {
      if (this->Sides)
      {
        this->Sides->ReadAttentionInput(group.Rows(), from, work.sides, threads);
      }
      if (this->InPlace)
      {
        this->InPlace->Add(group, from, to, work.mixer, threads, state, attending);
        return;
      }
      this->Attention.Add(group, from, heads, to, work.attention, threads, visitor, attending);
    });
  if (this->Sides)
  {
    this->Sides->AddLowRank(group.Rows(), x, work.sides, threads);
  }
  if (this->Cross)
  {
    this->ApplySublayer(this->CrossNorm, this->CrossFinish, group, x, work, threads,
      [&](const float* from, float* to)
      { this->Cross->AddCross(group, from, *cross, to, work.attention, threads); });
  }
  if (this->Config.mlpDimension > 0)
  {
    this->ApplySublayer(this->MlpNorm, this->MlpFinish, group, x, work, threads,
      [&](const float* from, float* to)
      {
        if (this->HasExperts && this->Config.expertsBesideMlp)
        {
          this->AddBoth(group, x, from, to, work, threads, visitor, routing);
          return;
        }
        this->AddMlp(group, from, to, work, threads, visitor, routing);
      });
  }
  if (this->Sides)
  {
    this->Sides->Correct(sides, group.Rows(), x, work.sides, threads);
  }
  if (convolves)
  {
    this->AddConvolution(group, x, work, threads);
  }
}

/// x = norm(x + f(C x0)), where C reads the tokens around each of what the layer read.
void TransformerLayer::AddConvolution(
  const RowGroup& group, float* x, LayerWorkspace& work, int threads) const
{
  const std::int64_t d = this->Config.modelDimension;
  const std::int64_t width = this->Config.convolution;
  const std::int64_t rows = group.Rows();
  work.windows.assign(rows * d * width, 0.F);
  ParallelFor(rows, threads,
    [&](std::int64_t row)
    {
      const std::int64_t begin = row - group.positions[row]; // of the sequence
      const std::int64_t end = begin + group.lengths[row];
      for (std::int64_t t = 0; t < width; ++t)
      {
        const std::int64_t source = row + t - width / 2;
        if (source >= begin && source < end)
        {
          for (std::int64_t i = 0; i < d; ++i)
          {
            work.windows[(row * d + i) * width + t] = work.read[source * d + i];
          }
        }
      }
    });
  // What the layer read is no longer needed.
  ApplyLinear(this->Convolution, rows, work.windows.data(), work.read.data(),
    { this->Config.convolutionActivation, nullptr, false }, threads);
  ParallelFor(
    rows, threads, [&](std::int64_t row) { AddRow(d, work.read.data() + row * d, x + row * d); });
  this->ConvolutionNorm.Apply(rows, d, x, x, threads);
}

/// x += f(norm(x)) or norm(x + f(x)), where add(from, to) adds f(from) to `to`.
template<class AddSublayer>
void TransformerLayer::ApplySublayer(const TransformerNorm& norm, const Finish& finish,
  const RowGroup& group, float* x, LayerWorkspace& work, int threads, const AddSublayer& add) const
{
  const std::int64_t d = this->Config.modelDimension;
  if (this->Config.normPlace == NormPlace::AfterSublayer)
  {
    add(x, x);
    norm.Apply(group.Rows(), d, x, x, threads);
    return;
  }
  if (this->Config.normPlace == NormPlace::AfterOutput)
  {
    this->AddFinished(finish, group, x, work, threads, [&](float* to) { add(x, to); });
    return;
  }
  work.normed.resize(group.Rows() * d);
  norm.Apply(group.Rows(), d, x, work.normed.data(), threads);
  this->AddFinished(
    finish, group, x, work, threads, [&](float* to) { add(work.normed.data(), to); });
}

/// x += scale norm(f), where add(to) adds f to `to`; norm and scale are those that there are.
template<class AddSublayer>
void TransformerLayer::AddFinished(const Finish& finish, const RowGroup& group, float* x,
  LayerWorkspace& work, int threads, const AddSublayer& add) const
{
  if (!Changes(this->Config))
  {
    add(x);
    return;
  }
  const std::int64_t d = this->Config.modelDimension;
  work.added.assign(group.Rows() * d, 0.F);
  float* added = work.added.data();
  const auto factor = static_cast<float>(this->Config.residualScale);
  add(added);
  if (NormsOutputs(this->Config))
  {
    finish.norm.Apply(group.Rows(), d, added, added, threads);
  }
  ParallelFor(group.Rows(), threads,
    [&](std::int64_t row)
    {
      if (finish.scale.Data() != nullptr)
      {
        MultiplyRow(d, finish.scale.Data(), added + row * d);
      }
      if (factor != 1)
      {
        std::for_each_n(added + row * d, d, [factor](float& value) { value *= factor; });
      }
      AddRow(d, added + row * d, x + row * d);
    });
}

/// x += A(n1 x) + F(n2 x), where n2 may be n1.
void TransformerLayer::ApplyParallel(const RowGroup& group, const std::vector<HeadRows>& heads,
  float* x, LayerWorkspace& work, int threads, const Progress& progress,
  const ActivationVisitor& visitor, const RoutingRows& routing) const
{
  const std::int64_t d = this->Config.modelDimension;
  const std::size_t size = group.Rows() * d;
  work.normed.resize(size);
  this->AttentionNorm.Apply(group.Rows(), d, x, work.normed.data(), threads);
  const float* mlpInput = work.normed.data();
  if (this->Config.order == SublayerOrder::Parallel)
  {
    work.mlpNormed.resize(size);
    this->MlpNorm.Apply(group.Rows(), d, x, work.mlpNormed.data(), threads);
    mlpInput = work.mlpNormed.data();
  }
  this->AddFinished(this->AttentionFinish, group, x, work, threads,
    [&](float* to)
    {
      this->Attention.Add(
        group, work.normed.data(), heads, to, work.attention, threads, visitor, progress);
    });
  this->AddFinished(this->MlpFinish, group, x, work, threads,
    [&](float* to) { this->AddMlp(group, mlpInput, to, work, threads, visitor, routing); });
}

/// About how many multiplications the MLP needs for a group.
double TransformerLayer::MlpWork(const RowGroup& group) const
{
  const std::int64_t routed = this->HasExperts
                                ? this->Config.expertsPerToken * this->Config.expertDimension +
                                    this->Config.sharedExpertDimension
                                : 0;
  const std::int64_t hidden =
    routed + (this->HasExperts && !this->Config.expertsBesideMlp ? 0 : this->Config.mlpDimension);
  const std::int64_t matrices = this->HasExperts || this->Config.gated ? 3 : 2;
  return static_cast<double>(group.Rows() * this->Config.modelDimension) *
         static_cast<double>(matrices * hidden);
}

void TransformerLayer::AddMlp(const RowGroup& group, const float* from, float* to,
  LayerWorkspace& work, int threads, const ActivationVisitor& visitor,
  const RoutingRows& routing) const
{
  if (this->HasExperts)
  {
    this->Experts.Add(group, from, from, to, routing, threads);
    return;
  }
  this->AddPlainMlp(group, from, to, work, threads, visitor);
}

/// norm(F(n x)) + norm(E(n x)) of the MLP F, which reads `from`, and experts E, to zeros. Their
/// router reads x normalized by its own gains over sqrt(d_model).
void TransformerLayer::AddBoth(const RowGroup& group, const float* x, const float* from, float* to,
  LayerWorkspace& work, int threads, const ActivationVisitor& visitor,
  const RoutingRows& routing) const
{
  const std::int64_t d = this->Config.modelDimension;
  const std::int64_t rows = group.Rows();
  this->AddPlainMlp(group, from, to, work, threads, visitor);
  this->PlainAfter.Apply(rows, d, to, to, threads);
  work.asked.resize(rows * d);
  this->RouterNorm.Apply(rows, d, x, work.asked.data(), threads);
  const auto factor = static_cast<float>(1 / std::sqrt(static_cast<double>(d)));
  std::for_each(work.asked.begin(), work.asked.end(), [factor](float& value) { value *= factor; });
  work.routed.resize(rows * d);
  this->ExpertsNorm.Apply(rows, d, x, work.routed.data(), threads);
  work.given.assign(rows * d, 0.F);
  this->Experts.Add(
    group, work.asked.data(), work.routed.data(), work.given.data(), routing, threads);
  this->ExpertsAfter.Apply(rows, d, work.given.data(), work.given.data(), threads);
  AddRow(rows * d, work.given.data(), to);
}

void TransformerLayer::AddPlainMlp(const RowGroup& group, const float* from, float* to,
  LayerWorkspace& work, int threads, const ActivationVisitor& visitor) const
{
  const Activation activation = this->Config.activation;
  const std::size_t size = group.Rows() * this->Config.mlpDimension;
  work.hidden.resize(size);
  float* hidden = work.hidden.data();
  if (this->Config.gated)
  {
    work.factors.resize(size);
    float* factors = work.factors.data();
    ApplyLinear(this->Up, group.Rows(), from, factors, {}, threads);
    if (this->CutsGate)
    {
      ApplyLinear(this->Gate, group.Rows(), from, hidden, {}, threads);
      this->CutGate(group.Rows(), factors, hidden, threads);
    }
    else
    {
      ApplyLinear(this->Gate, group.Rows(), from, hidden, { activation, factors, false }, threads);
    }
  }
  else
  {
    ApplyLinear(this->Up, group.Rows(), from, hidden, { activation, nullptr, false }, threads);
  }
  const std::int64_t width = this->Config.mlpDimension;
  if (activation == Activation::Xielu)
  {
    ParallelFor(group.Rows(), threads,
      [&](std::int64_t row) { ApplyXielu(this->Xielu, width, hidden + row * width); });
  }
  if (visitor)
  {
    visitor(ActivationPlace::Hidden, group, hidden);
  }
  if (this->Config.normsInside)
  {
    this->HiddenNorm.Apply(group.Rows(), width, hidden, hidden, threads);
  }
  ApplyLinear(this->Down, group.Rows(), hidden, to, { std::nullopt, nullptr, true }, threads);
}

/// Lowers the values of the gate so that those up to a quantile of the normal distribution become
/// 0, activates them and multiplies them by the other factors (Gemma 3n).
void TransformerLayer::CutGate(
  std::int64_t rows, const float* factors, float* hidden, int threads) const
{
  const std::int64_t width = this->Config.mlpDimension;
  ParallelFor(rows, threads,
    [&](std::int64_t row)
    {
      float* values = hidden + row * width;
      double sum = 0;
      double squares = 0;
      for (std::int64_t i = 0; i < width; ++i)
      {
        sum += static_cast<double>(values[i]);
      }
      const double mean = sum / static_cast<double>(width);
      for (std::int64_t i = 0; i < width; ++i)
      {
        const double off = static_cast<double>(values[i]) - mean;
        squares += off * off;
      }
      const double deviation = std::sqrt(squares / static_cast<double>(width));
      const auto cut = static_cast<float>(mean + deviation * static_cast<double>(this->GateCut));
      for (std::int64_t i = 0; i < width; ++i)
      {
        const float above = values[i] - cut;
        values[i] = above < 0 ? 0 : above; // preserves NaN
      }
      Activate(this->Config.activation, width, values);
      MultiplyRow(width, factors + row * width, values);
    });
}

std::uint64_t WidenedBytes(const LayerTensors& layer, int threads)
{
  std::uint64_t largest =
    std::max(WidenedBytes(layer.experts, threads), WidenedBytes(layer.convolution, threads));
  for (const LinearTensors* linear : MatricesOf(layer))
  {
    largest = std::max(largest, WidenedBytes(*linear, threads));
  }
  return WidenedBytes(layer.output.weight) + WidenedBytes(layer.crossOutput.weight) + largest;
}

std::uint64_t WidenedBytes(const TransformerWeights& weights, int threads)
{
  std::uint64_t largest = 0;
  for (const LinearTensors* linear : MatricesBesideLayers(weights))
  {
    largest = std::max(largest, WidenedBytes(*linear, threads));
  }
  for (const LayerTensors& layer : weights.layers)
  {
    largest = std::max(largest, WidenedBytes(layer, threads));
  }
  return largest;
}

}
