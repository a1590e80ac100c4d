#include "ResidualComponents.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Base/Parallel.h"
#include "Files/MappedFile.h"
#include "Run/MixerOutputs.h"
#include "Weights/ArchitectureLimits.h"
#include "Weights/VectorNorm.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <sstream>

namespace atlas
{
namespace
{

using Vector = Eigen::RowVectorXd;

/// Rows of the MLP that are computed at a time.
constexpr std::int64_t MlpRows = 16;
/// Terms that are shown one by one.
constexpr std::size_t ReadableTerms = 40;
/// Numbers that LastMlps keeps.
constexpr std::size_t KeptNumbers = std::size_t{ 1 } << 23;

/// The residual stream before a layer.
Vector ResidualAt(const Recording& recording, std::int64_t row, std::int64_t layer)
{
  return RowOf(recording.residual[layer], row);
}

double Activated(Activation activation, double x)
{
  const double rootHalf = std::sqrt(0.5);
  const double rootTwoOverPi = std::sqrt(2 / std::acos(-1.));
  switch (activation)
  {
    case Activation::Gelu:
      return x / 2 * (1 + std::erf(x * rootHalf));
    case Activation::GeluTanh:
      return x / 2 * (1 + std::tanh(rootTwoOverPi * (x + 0.044715 * x * x * x)));
    case Activation::Relu:
      return std::max(x, 0.);
    case Activation::Silu:
      return x / (1 + std::exp(-x));
    case Activation::QuickGelu:
      return x / (1 + std::exp(-1.702 * x));
    case Activation::SquaredRelu:
      return std::max(x, 0.) * std::max(x, 0.);
    case Activation::Xielu: // refused, see RequireSum
      break;
  }
  return x;
}

/// The outputs of an MLP whose inputs are normalized.
DoubleMatrix Apply(
  const ProcessedMlp& mlp, const TransformerConfig& config, const DoubleMatrix& inputs)
{
  DoubleMatrix hidden = (inputs * mlp.up).rowwise() + mlp.upBias;
  const auto activate = [&](double x) { return Activated(config.activation, x); };
  if (config.gated)
  {
    const DoubleMatrix gate = (inputs * mlp.gate).rowwise() + mlp.gateBias;
    hidden = hidden.cwiseProduct(gate.unaryExpr(activate));
  }
  else
  {
    hidden = hidden.unaryExpr(activate).eval();
  }
  return (hidden * mlp.down).rowwise() + mlp.downBias;
}

/// Throws OptionError unless vectors are as long as those of the model. `what` they are.
void RequireWidth(
  const SharedMatrix& matrix, const TransformerConfig& config, const std::string& what)
{
  ThrowIf<OptionError>(matrix.columns != config.modelDimension, what, " of ", config.modelDimension,
    " components, found ", matrix.columns, ".");
}

/// What the heads and the bias of a layer, or what is in their place, add at a row.
Vector AttentionSum(const Recording& recording, const ResidualWeights& weights, std::int64_t row,
  std::int64_t layer, const KeptMixers& mixers)
{
  if (!weights.GetConfig().HasAttention(layer))
  {
    return mixers.At(row, layer);
  }
  Vector sum = weights.Bias(layer) - weights.ValueBiases(layer).colwise().sum();
  for (const RecordedHead& head : FindLayer(recording, layer).heads)
  {
    sum += RowOf(head.output, row);
  }
  return sum;
}

}

Vector RowOf(const SharedMatrix& matrix, std::int64_t row)
{
  return Eigen::Map<const Eigen::RowVectorXf>(matrix.Row(row), matrix.columns).cast<double>();
}

void RequireSum(const TransformerConfig& config)
{
  using Switch = ArchitectureSwitch;
  RefuseSwitches(config, "components of the residual stream", { Switch::Encoder });
  ThrowIf<ModelError>(config.normPlace == NormPlace::AfterSublayer,
    "components of the residual stream: expected a model whose normalizations come before "
    "attention and MLP, as in gpt2, found ",
    config.architecture, ", whose normalizations come after them, so that the stream is no sum.");
  RefuseSwitches(config, "components of the residual stream",
    { Switch::Parallel, Switch::NormsAfterToo, Switch::LayerScales, Switch::Sinks,
      Switch::ProjectionClip, Switch::Experts, Switch::EmbeddingScale, Switch::EmbeddingProjection,
      Switch::ShiftedPositions, Switch::NormsInside, Switch::FirstUnnormed, Switch::XieluActivation,
      Switch::ValueNorms, Switch::LayerSides });
}

std::int64_t PositionAt(const Recording& recording, std::int64_t row, std::int64_t count)
{
  const std::int64_t position = recording.tokens.position[row];
  ThrowIf<OptionError>(position < 0 || position >= count, "expected positions from 0 to ",
    count - 1, " as in the model, found ", position, ".");
  return position;
}

std::string NameOf(const ResidualComponent& component)
{
  const std::string layer = std::to_string(component.layer);
  switch (component.kind)
  {
    case ComponentKind::Embedding:
      return "embed";
    case ComponentKind::Position:
      return "pos";
    case ComponentKind::Head:
      return "head " + layer + "." + std::to_string(component.head);
    case ComponentKind::Bias:
      return "bias " + layer;
    case ComponentKind::Mlp:
      return "mlp " + layer;
    case ComponentKind::Mixer:
      return "mixer " + layer;
  }
  return {};
}

void RequireUnpatched(const Recording& recording, const TransformerConfig& config, bool processes,
  const std::string& what)
{
  // "0.1 to zero; r1@3 from another input: its text"; see ToText in Run/Interventions.h.
  const std::string sites = recording.interventions.substr(0, recording.interventions.find(": "));
  std::istringstream words(sites);
  const bool isZero = sites.find(" to zero") != std::string::npos;
  const std::string last = "m" + std::to_string(config.layers - 1);
  std::string replaced;
  for (std::string word; words >> word;)
  {
    word.erase(std::find_if(
                 word.begin(), word.end(), [](char c) { return c == '@' || c == ',' || c == ';'; }),
      word.end());
    const bool isStream = word.size() > 1 && word[0] == 'r' && word[1] >= '0' && word[1] <= '9';
    if (isStream || word == last)
    {
      replaced = word;
    }
  }
  ThrowIf<OptionError>(!replaced.empty(), what,
    ": expected a recording whose residual stream is the sum of what the model computed, found one "
    "with ",
    replaced, " replaced (", sites, ").");
  ThrowIf<OptionError>(isZero && processes, what,
    ": expected heads that write the biases of their values, which processed weights count "
    "elsewhere, found some set to zero (",
    sites, "); choose Processing None.");
}

std::vector<ResidualComponent> ComponentsBefore(const TransformerConfig& config, std::int64_t layer)
{
  std::vector<ResidualComponent> components = { { ComponentKind::Embedding } };
  if (config.HasPositionVectors())
  {
    components.push_back({ ComponentKind::Position });
  }
  for (std::int32_t l = 0; l < layer; ++l)
  {
    if (!config.HasAttention(l))
    {
      components.push_back({ ComponentKind::Mixer, l });
    }
    for (std::int32_t h = 0; config.HasAttention(l) && h < config.heads; ++h)
    {
      components.push_back({ ComponentKind::Head, l, h });
    }
    if (config.HasAttention(l))
    {
      components.push_back({ ComponentKind::Bias, l });
    }
    if (config.mlpDimension > 0)
    {
      components.push_back({ ComponentKind::Mlp, l });
    }
  }
  return components;
}

std::vector<NamedComponent> NamedComponentsBefore(
  const TransformerConfig& config, std::int64_t layer)
{
  std::vector<NamedComponent> named;
  for (const ResidualComponent& component : ComponentsBefore(config, layer))
  {
    named.push_back({ NameOf(component), component });
  }
  return named;
}

ComponentGroups::ComponentGroups(
  const std::vector<NamedComponent>& terms, ComponentGrouping grouping)
{
  const bool joins = grouping == ComponentGrouping::Layers ||
                     (grouping == ComponentGrouping::Automatic && terms.size() > ReadableTerms);
  std::map<std::string, std::int64_t> known;
  for (NamedComponent term : terms)
  {
    const ComponentKind kind = term.component.kind;
    if (joins && term.isOfStream && (kind == ComponentKind::Head || kind == ComponentKind::Bias))
    {
      term.name = "attn " + std::to_string(term.component.layer);
      term.component.head = -1;
    }
    const auto [found, isNew] = known.emplace(term.name, this->groups.size());
    if (isNew)
    {
      this->groups.push_back(term);
    }
    this->groupOf.push_back(found->second);
  }
}

ResidualWeights::ResidualWeights(const ProcessedWeights& weights, int threads)
  : Weights(weights)
{
  const TransformerConfig& config = this->GetConfig();
  RequireSum(config);
  this->PositionVectors = weights.PositionEmbedding();
  this->Written.resize(config.layers);
  this->Biases.resize(config.layers);
  ParallelFor(config.layers, threads,
    [&](std::int64_t layer)
    {
      if (weights.GetSteps() == WeightSteps::Stored || !config.HasAttention(layer))
      {
        const Vector bias = ToVector(weights.GetModel().GetWeights().layers[layer].output.bias);
        this->Written[layer] = DoubleMatrix::Zero(config.heads, config.modelDimension);
        this->Biases[layer] = bias.size() > 0 ? bias : Vector(Vector::Zero(config.modelDimension));
        return;
      }
      const ProcessedAttention attention = weights.Attention(layer);
      DoubleMatrix& written = this->Written[layer];
      written.resize(config.heads, config.modelDimension);
      for (std::int64_t h = 0; h < config.heads; ++h)
      {
        const ProcessedHead& head = attention.heads[h];
        written.row(h) = head.foldedBias * head.output;
      }
      this->Biases[layer] = attention.outputBias;
    });
}

namespace
{

[[noreturn]] void ThrowMissing(const std::string& begin, const char* what, std::int64_t layer)
{
  throw OptionError(begin, what, layer, ", found none.");
}

}

void RequireComponents(const Recording& recording, const TransformerConfig& config,
  std::int64_t layer, const std::string& what)
{
  RequireSum(config);
  const std::string begin =
    what + " needs a recording with HeadOutputs and Residual of all layers: expected ";
  const std::string residual = begin + "a residual stream";
  const std::string outputs = begin + "outputs of heads";
  for (std::int64_t l = 0; l <= std::min(layer, config.layers - 1); ++l)
  {
    if (ToIndex(l) >= recording.residual.size() || !recording.residual[l].IsRecorded())
    {
      ThrowMissing(begin, "the residual stream before layer ", l);
    }
    RequireWidth(recording.residual[l], config, residual);
    if (l == layer || !config.HasAttention(l))
    {
      continue;
    }
    const auto found = std::find_if(recording.layers.begin(), recording.layers.end(),
      [l](const RecordedLayer& recorded) { return recorded.index == l; });
    const bool hasOutputs = found != recording.layers.end() &&
                            found->heads.size() == ToIndex(config.heads) &&
                            std::all_of(found->heads.begin(), found->heads.end(),
                              [](const RecordedHead& head) { return head.output.IsRecorded(); });
    if (!hasOutputs)
    {
      ThrowMissing(begin, "the outputs of all heads of layer ", l);
    }
    for (const RecordedHead& head : found->heads)
    {
      RequireWidth(head.output, config, outputs);
    }
  }
}

void KeptMixers::Find(const Recording& recording, const Transformer& model,
  const std::vector<std::int64_t>& rows, int threads)
{
  const TransformerConfig& config = model.GetConfig();
  std::vector<std::int64_t> mixers;
  for (std::int64_t l = 0; l < config.layers; ++l)
  {
    if (!config.HasAttention(l))
    {
      mixers.push_back(l);
    }
  }
  if (mixers.empty())
  {
    return;
  }
  const auto size = static_cast<std::size_t>(config.modelDimension);
  if ((this->Known.size() + rows.size() * mixers.size()) * size > 2 * KeptNumbers) // of 4 bytes
  {
    this->Known.clear();
  }
  std::map<std::int64_t, std::vector<std::int64_t>> missing; // by sequence
  for (const std::int64_t row : rows)
  {
    if (this->Known.count({ row, mixers.front() }) == 0)
    {
      missing[recording.tokens.sequence[row]].push_back(row);
    }
  }
  for (const auto& [sequence, wanted] : missing)
  {
    const std::int64_t first = recording.sequenceOffsets[sequence];
    for (const std::int64_t l : mixers)
    {
      const SharedMatrix& all = recording.residual[l];
      const SharedMatrix residual = { recording.SequenceLength(sequence), all.columns,
        { all.values, all.Row(first) } };
      const SharedMatrix outputs = MixerOutputs(model, l, residual, threads);
      for (const std::int64_t row : wanted)
      {
        this->Known[{ row, l }] = RowOf(outputs, row - first).cast<float>();
      }
    }
  }
}

Eigen::RowVectorXd KeptMixers::At(std::int64_t row, std::int64_t layer) const
{
  return this->Known.at({ row, layer }).cast<double>();
}

DoubleMatrix LastMlpOutputs(const Recording& recording, const ResidualWeights& weights,
  const std::vector<std::int64_t>& rows, int threads, const KeptMixers& mixers)
{
  const TransformerConfig& config = weights.GetConfig();
  if (config.mlpDimension == 0)
  {
    return {};
  }
  const Transformer& model = weights.GetWeights().GetModel();
  const std::int64_t last = config.layers - 1;
  const NormTensors& norm = model.GetWeights().layers[last].mlpNorm;
  const ProcessedMlp mlp = ProcessedWeights(model, WeightSteps::Stored, 1).Mlp(last);
  const std::int64_t count = rows.size();
  DoubleMatrix outputs(count, config.modelDimension);
  ParallelFor((count + MlpRows - 1) / MlpRows, threads,
    [&](std::int64_t block)
    {
      const std::int64_t begin = block * MlpRows;
      const std::int64_t size = std::min(MlpRows, count - begin);
      DoubleMatrix inputs(size, config.modelDimension);
      for (std::int64_t i = 0; i < size; ++i)
      {
        const std::int64_t row = rows[begin + i];
        Vector x =
          ResidualAt(recording, row, last) + AttentionSum(recording, weights, row, last, mixers);
        NormalizeVector(config, norm, x);
        inputs.row(i) = x;
      }
      outputs.middleRows(begin, size) = Apply(mlp, config, inputs);
    });
  return outputs;
}

void LastMlps::Find(const Recording& recording, const ResidualWeights& weights,
  const std::vector<std::int64_t>& rows, int threads)
{
  this->Mixers.Find(recording, weights.GetWeights().GetModel(), rows, threads);
  std::vector<std::int64_t> missing;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(missing),
    [this](std::int64_t row) { return this->Known.count(row) == 0; });
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  if (missing.empty())
  {
    return;
  }
  const std::size_t size = weights.GetConfig().modelDimension;
  if ((this->Known.size() + missing.size()) * size > KeptNumbers)
  {
    this->Known.clear();
    missing = rows;
  }
  const DoubleMatrix outputs = LastMlpOutputs(recording, weights, missing, threads, this->Mixers);
  for (std::size_t i = 0; outputs.size() > 0 && i < missing.size(); ++i)
  {
    this->Known.emplace(missing[i], outputs.row(static_cast<std::int64_t>(i)));
  }
}

const double* LastMlps::At(std::int64_t row) const
{
  const auto found = this->Known.find(row);
  return found == this->Known.end() ? nullptr : found->second.data();
}

DoubleMatrix ComponentVectors(const Recording& recording, const ResidualWeights& weights,
  std::int64_t row, std::int64_t layer, const double* lastMlp, const KeptMixers& mixers)
{
  const TransformerConfig& config = weights.GetConfig();
  const std::vector<ResidualComponent> components = ComponentsBefore(config, layer);
  DoubleMatrix vectors(components.size(), config.modelDimension);
  std::int64_t c = 0;
  vectors.row(c++) = ResidualAt(recording, row, 0);
  if (config.HasPositionVectors())
  {
    vectors.row(c) = weights.Positions().row(
      PositionAt(recording, row, static_cast<std::int64_t>(weights.Positions().rows())));
    vectors.row(0) -= vectors.row(c++);
  }
  for (std::int64_t l = 0; l < layer; ++l)
  {
    const std::int64_t first = c;
    if (config.HasAttention(l))
    {
      const DoubleMatrix& biases = weights.ValueBiases(l);
      for (const RecordedHead& head : FindLayer(recording, l).heads)
      {
        vectors.row(c) = RowOf(head.output, row) - biases.row(c - first);
        ++c;
      }
      vectors.row(c++) = weights.Bias(l);
    }
    else
    {
      vectors.row(c++) = mixers.At(row, l);
    }
    if (config.mlpDimension > 0 && l + 1 < config.layers)
    {
      vectors.row(c) = ResidualAt(recording, row, l + 1) - ResidualAt(recording, row, l) -
                       vectors.middleRows(first, c - first).colwise().sum();
      ++c;
    }
    else if (config.mlpDimension > 0)
    {
      vectors.row(c++) = Eigen::Map<const Vector>(lastMlp, config.modelDimension);
    }
  }
  return vectors;
}

void RequireIntactRecording(const Recording& recording)
{
  for (const SharedMatrix& matrix : TokenMatrices(recording))
  {
    RequireIntact(matrix.values.get());
  }
}

}
