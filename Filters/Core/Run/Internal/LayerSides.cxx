#include "LayerSides.h"

#include "Base/Index.h"
#include "Base/Parallel.h"
#include "TransformerKernels.h"

#include <algorithm>
#include <cmath>

namespace atlas
{
namespace
{

/// The least mean square that a stream is divided by.
constexpr float LeastSquare = 1e-5F;

float MeanSquare(const float* row, std::int64_t count)
{
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i)
  {
    sum += static_cast<double>(row[i]) * static_cast<double>(row[i]);
  }
  return static_cast<float>(sum / static_cast<double>(count));
}

void ScaleRow(float factor, std::int64_t count, float* row)
{
  std::for_each_n(row, count, [factor](float& value) { value *= factor; });
}

/// to += factor from
void AddScaled(float factor, std::int64_t count, const float* from, float* to)
{
  for (std::int64_t i = 0; i < count; ++i)
  {
    to[i] += factor * from[i];
  }
}

}

RunSides::RunSides(const TransformerConfig& config, const TransformerWeights& weights)
  : Config(config)
  , Weights(weights)
{
}

std::int64_t RunSides::Floats(const TransformerConfig& config, std::int64_t rows)
{
  return config.HasLayerSides() ? rows * config.modelDimension * (config.streams + 3) : 0;
}

void RunSides::Begin(
  const TransformerInput& input, const PackedSequences& sequences, float* x, int threads)
{
  const std::int64_t d = this->Config.modelDimension;
  this->Embeddings.assign(x, x + sequences.Rows() * d);
  this->Tokens.clear();
  for (std::int64_t s = sequences.run.first; s < sequences.run.end; ++s)
  {
    this->Tokens.insert(this->Tokens.end(), input.tokens[s].begin(), input.tokens[s].end());
  }
  this->Streams.assign(ToIndex(this->Config.streams), {});
  for (std::int64_t k = 0; k < this->Config.streams; ++k)
  {
    const bool isActive = k == this->Config.activeStream;
    std::vector<float>& stream = this->Streams[k];
    stream = this->Embeddings;
    if (k > 0)
    {
      const float* embeddings = this->Embeddings.data();
      this->MapStream(
        this->Weights.streamIn[k - 1], embeddings, embeddings, stream.data(), threads);
    }
    if (isActive)
    {
      std::copy(stream.begin(), stream.end(), x);
      stream.clear();
    }
  }
}

/// Maps rows and makes each as long as that of `like`.
void RunSides::MapStream(
  const LinearTensors& map, const float* from, const float* like, float* to, int threads) const
{
  const std::int64_t d = this->Config.modelDimension;
  ApplyLinear(Linear(map), this->Rows(), from, to, {}, threads);
  ParallelFor(this->Rows(), threads,
    [&](std::int64_t row)
    {
      float* mapped = to + row * d;
      const float length = std::sqrt(MeanSquare(like + row * d, d));
      ScaleRow(length / std::sqrt(std::max(MeanSquare(mapped, d), LeastSquare)), d, mapped);
    });
}

void RunSides::GetInputs(
  std::int64_t layer, std::int64_t first, std::int64_t count, float* to, int threads) const
{
  const std::int64_t d = this->Config.modelDimension;
  const std::int64_t p = this->Config.layerInput;
  LinearTensors projection = this->Weights.layerProjection;
  projection.weight = RowsOf(projection.weight, layer * p, p);
  projection.outputs = p;
  ApplyLinear(Linear(projection), count, this->Embeddings.data() + first * d, to, {}, threads);
  const TransformerNorm norm(this->Config, this->Weights.layerProjectionNorm);
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(d)));
  const auto rootOfSize = static_cast<float>(std::sqrt(static_cast<double>(p)));
  const auto rootHalf = static_cast<float>(std::sqrt(0.5));
  ParallelFor(count, threads,
    [&](std::int64_t row)
    {
      float* values = to + row * p;
      ScaleRow(scale, p, values);
      norm.ApplyRow(p, values, values);
      const std::int64_t id = this->Tokens[first + row];
      const std::int64_t token = id < this->Config.layerInputVocabulary ? id : 0;
      std::vector<float> own(p);
      const std::uint64_t begin = ToIndex((token * this->Config.layers + layer) * p);
      this->Weights.layerTokens.ToFloat(begin, begin + ToIndex(p), own.data());
      AddScaled(rootOfSize, p, own.data(), values);
      ScaleRow(rootHalf, p, values);
    });
}

void RunSides::Finish(float* x, int threads) const
{
  const std::int64_t count = this->Config.streams;
  if (count == 1)
  {
    return;
  }
  const std::size_t size = this->Embeddings.size();
  const std::int64_t active = this->Config.activeStream;
  const auto stream = [&](std::int64_t k)
  { return k == active ? static_cast<const float*>(x) : this->Streams[k].data(); };
  std::vector<float> sum(stream(0), stream(0) + size);
  std::vector<float> mapped(size);
  for (std::int64_t k = 1; k < count; ++k)
  {
    this->MapStream(this->Weights.streamOut[k - 1], stream(k), stream(0), mapped.data(), threads);
    AddScaled(1, static_cast<std::int64_t>(size), mapped.data(), sum.data());
  }
  const float part = 1 / static_cast<float>(count);
  std::transform(sum.begin(), sum.end(), x, [part](float value) { return value * part; });
}

LayerSides::LayerSides(
  const TransformerConfig& config, const LayerSideTensors& tensors, std::int64_t layer)
  : Config(config)
  , Layer(layer)
  , InputGate(tensors.inputGate)
  , InputProjection(tensors.inputProjection)
  , InputNorm(config, tensors.inputNorm)
  , Router(tensors.router)
  , RouterNorm(config, tensors.routerNorm)
  , Prediction(tensors.prediction)
  , Correction(tensors.correction)
  , ActiveScale(tensors.activeScale)
  , LaurelIn(tensors.laurelIn)
  , LaurelOut(tensors.laurelOut)
  , LaurelNorm(config, tensors.laurelNorm)
{
  if (tensors.factor.data != nullptr)
  {
    tensors.factor.ToFloat(0, 1, &this->Factor);
  }
}

/// tanh(norm(x) W_router / d_model), [count, K]
std::vector<float> LayerSides::Route(std::int64_t count, const float* x, int threads) const
{
  const std::int64_t d = this->Config.modelDimension;
  std::vector<float> normed(count * d);
  this->RouterNorm.Apply(count, d, x, normed.data(), threads);
  std::vector<float> routed(count * this->Config.streams);
  ApplyLinear(this->Router, count, normed.data(), routed.data(), {}, threads);
  for (float& value : routed)
  {
    value = std::tanh(value / static_cast<float>(d));
  }
  return routed;
}

void LayerSides::Predict(
  const SideRows& rows, std::int64_t count, float* x, SideWorkspace& work, int threads) const
{
  const std::int64_t streams = this->Config.streams;
  if (streams == 1)
  {
    return;
  }
  const std::int64_t d = this->Config.modelDimension;
  const std::vector<float> routed = this->Route(count, x, threads);
  std::vector<float> factors(count * streams * streams);
  ApplyLinear(this->Prediction, count, routed.data(), factors.data(), {}, threads);
  ParallelFor(count, threads,
    [&](std::int64_t row)
    {
      const auto at = [&](std::int64_t k)
      { return (k == this->Config.activeStream ? x : rows.run->Stream(k, rows.first)) + row * d; };
      std::vector<float> predicted(streams * d);
      for (std::int64_t to = 0; to < streams; ++to)
      {
        float* sum = predicted.data() + to * d;
        std::copy_n(at(to), d, sum);
        for (std::int64_t from = 0; from < streams; ++from)
        {
          AddScaled(factors[(row * streams + to) * streams + from], d, at(from), sum);
        }
      }
      for (std::int64_t k = 0; k < streams; ++k)
      {
        std::copy_n(predicted.data() + k * d, d, at(k));
      }
    });
  work.predicted.assign(x, x + count * d);
}

void LayerSides::ReadAttentionInput(
  std::int64_t count, const float* normed, SideWorkspace& work, int threads) const
{
  if (this->Config.laurelRank == 0)
  {
    return;
  }
  const std::int64_t d = this->Config.modelDimension;
  std::vector<float> low(count * this->Config.laurelRank);
  work.lowRank.resize(count * d);
  float* mapped = work.lowRank.data();
  ApplyLinear(this->LaurelIn, count, normed, low.data(), {}, threads);
  ApplyLinear(this->LaurelOut, count, low.data(), mapped, {}, threads);
  this->LaurelNorm.Apply(count, d, mapped, mapped, threads);
  AddRow(count * d, normed, mapped);
}

void LayerSides::AddLowRank(
  std::int64_t count, float* x, const SideWorkspace& work, int threads) const
{
  if (this->Config.laurelRank == 0)
  {
    return;
  }
  const std::int64_t d = this->Config.modelDimension;
  const auto rootHalf = static_cast<float>(std::sqrt(0.5));
  ParallelFor(count, threads,
    [&](std::int64_t row)
    {
      AddRow(d, work.lowRank.data() + row * d, x + row * d);
      ScaleRow(rootHalf, d, x + row * d);
    });
}

void LayerSides::Correct(
  const SideRows& rows, std::int64_t count, float* x, const SideWorkspace& work, int threads) const
{
  const std::int64_t d = this->Config.modelDimension;
  const std::int64_t streams = this->Config.streams;
  if (streams > 1)
  {
    const std::vector<float> routed = this->Route(count, x, threads);
    std::vector<float> factors(count * streams);
    ApplyLinear(this->Correction, count, routed.data(), factors.data(), {}, threads);
    ParallelFor(count, threads,
      [&](std::int64_t row)
      {
        float* active = x + row * d;
        const float* predicted = work.predicted.data() + row * d;
        std::vector<float> change(active, active + d);
        AddScaled(-1, d, predicted, change.data());
        for (std::int64_t k = 0; k < streams; ++k)
        {
          const bool isActive = k == this->Config.activeStream;
          float* to = isActive ? active : rows.run->Stream(k, rows.first) + row * d;
          if (isActive)
          {
            std::copy_n(predicted, d, to);
          }
          AddScaled(factors[row * streams + k] + 1, d, change.data(), to);
        }
      });
  }
  if (this->Config.layerInput > 0)
  {
    this->AddInput(rows, count, x, threads);
  }
  if (this->Factor != 1)
  {
    ScaleRow(this->Factor, count * d, x);
  }
}

/// Adds norm((activation(x W_gate) * input) W_projection) to x, or to all streams but the first.
void LayerSides::AddInput(const SideRows& rows, std::int64_t count, float* x, int threads) const
{
  const std::int64_t d = this->Config.modelDimension;
  const std::int64_t p = this->Config.layerInput;
  std::vector<float> read(x, x + count * d);
  if (this->Config.scalesActiveStream)
  {
    ParallelFor(count, threads,
      [&](std::int64_t row) { MultiplyRow(d, this->ActiveScale.Data(), read.data() + row * d); });
  }
  std::vector<float> inputs(count * p);
  rows.run->GetInputs(this->Layer, rows.first, count, inputs.data(), threads);
  std::vector<float> gate(count * p);
  ApplyLinear(this->InputGate, count, read.data(), gate.data(),
    { this->Config.activation, inputs.data(), false }, threads);
  ApplyLinear(this->InputProjection, count, gate.data(), read.data(), {}, threads);
  this->InputNorm.Apply(count, d, read.data(), read.data(), threads);
  if (this->Config.streams == 1)
  {
    AddRow(count * d, read.data(), x);
    return;
  }
  for (std::int64_t k = 1; k < this->Config.streams; ++k)
  {
    AddRow(
      count * d, read.data(), k == this->Config.activeStream ? x : rows.run->Stream(k, rows.first));
  }
}

}
