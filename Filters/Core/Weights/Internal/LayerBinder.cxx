#include "LayerBinder.h"

#include "Base/Index.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace atlas
{
namespace
{

/// Outputs first <= o < first + count of a map that is stored as [outputs, inputs].
LinearTensors OutputsOf(const LinearTensors& linear, std::int64_t first, std::int64_t count)
{
  LinearTensors part = linear;
  part.weight = RowsOf(linear.weight, first, count);
  if (linear.bias.data != nullptr)
  {
    part.bias = RowsOf(linear.bias, first, count);
  }
  part.outputs = count;
  return part;
}

}

LayerTensors LayerBinder::BindLayer(std::int64_t l)
{
  if (!this->Config.HasLayerConfigs())
  {
    return this->BindLayer(l, this->Config);
  }
  return this->BindLayer(l, this->Config.WithSizesOf(l));
}

LayerTensors LayerBinder::BindLayer(std::int64_t l, const TransformerConfig& config)
{
  const std::string prefix = this->LayerPrefix(l);
  const std::int64_t d = config.modelDimension;
  LayerTensors layer;
  const bool normsBefore = config.normPlace != NormPlace::AfterOutput;
  if (normsBefore && (l > 0 || config.firstAttentionIsNormed))
  {
    layer.attentionNorm = this->GetNorm(prefix, this->Name.attentionNorm);
  }
  if (config.HasAttention(l))
  {
    this->BindAttention(layer, prefix, l, config);
  }
  else
  {
    this->BindMixer(layer.mixer, prefix, config.mixers[l]);
  }
  if (config.normPlace == NormPlace::BeforeAndAfter || !normsBefore)
  {
    layer.attentionAfter = this->GetNorm(prefix, this->Name.attentionAfter);
    layer.mlpAfter = this->GetNorm(prefix, this->Name.mlpAfter);
  }
  if (config.normsInside)
  {
    layer.mixedNorm =
      this->GetUnfoldedNorm(prefix, this->Name.mixedNorm, config.heads * config.ValueDimension());
    layer.hiddenNorm = this->GetUnfoldedNorm(prefix, this->Name.hiddenNorm, config.mlpDimension);
  }
  if (config.activation == Activation::Xielu)
  {
    layer.xielu = { this->GetNumber(prefix + this->Name.xieluSquare),
      this->GetNumber(prefix + this->Name.xieluNegative),
      this->GetNumber(prefix + this->Name.xieluLinear),
      this->GetNumber(prefix + this->Name.xieluLimit) };
  }
  if (config.convolution > 0 && l == 0)
  {
    layer.convolution = this->GetConvolution(this->Name.convolution, d, config.convolution);
    layer.convolutionNorm = this->GetNorm(this->Prefix, this->Name.convolutionNorm);
  }
  if (config.layerScales)
  {
    layer.attentionScale = this->Get(prefix + this->Name.attentionScale, { d });
    layer.mlpScale = this->Get(prefix + this->Name.mlpScale, { d });
  }
  if (config.encoder != nullptr)
  {
    const std::int64_t width = config.heads * config.headDimension;
    const std::int64_t keys = config.keyHeads * config.headDimension;
    const std::int64_t source = config.encoder->modelDimension;
    const auto get = [&](const PairNames& names)
    {
      LinearTensors linear =
        this->GetLinear(prefix, names, source, keys, config.inputBias && !names.bias.empty());
      linear.headStep = config.headDimension;
      return linear;
    };
    layer.crossNorm = this->GetNorm(prefix, this->Name.crossNorm);
    layer.crossQuery = this->GetHeads(prefix, this->Name.crossQuery, config.heads, false, config);
    layer.crossKey = get(this->Name.crossKey);
    layer.crossValue = get(this->Name.crossValue);
    if (config.normPlace == NormPlace::BeforeAndAfter)
    {
      layer.crossAfter = this->GetNorm(prefix, this->Name.crossAfter);
    }
    layer.crossOutput =
      this->GetLinear(prefix, this->Name.crossOutput, width, d, config.outputBias);
  }
  if (config.mlpDimension > 0)
  {
    if (normsBefore)
    {
      layer.mlpNorm = config.order == SublayerOrder::ParallelOfOneNorm
                        ? layer.attentionNorm
                        : this->GetNorm(prefix, this->Name.mlpNorm);
    }
    if (config.HasExperts(l))
    {
      this->BindExperts(layer.experts, prefix);
    }
    if (!config.HasExperts(l) || config.expertsBesideMlp)
    {
      this->BindMlp(layer, prefix, config);
    }
  }
  if (config.HasLayerSides())
  {
    this->BindSides(layer.sides, prefix);
  }
  return layer;
}

void LayerBinder::BindAttention(
  LayerTensors& layer, const std::string& prefix, std::int64_t l, const TransformerConfig& config)
{
  if (config.keyLatent > 0)
  {
    this->BindLatent(layer, prefix);
  }
  else if (this->Name.fused != Fused::No)
  {
    this->BindFused(layer, prefix);
  }
  else
  {
    this->BindHeads(layer, prefix, l, config);
  }
  layer.output = this->GetOutput(prefix, config);
  if (config.biasByLayer)
  {
    layer.relativeBias = this->GetRelativeBias(prefix);
  }
  if (config.position == PositionKind::Disentangled)
  {
    this->BindDistances(layer, prefix);
  }
  if (config.queryKeyNorm == QueryKeyNorm::WithoutGain)
  {
    layer.queryNorm.resize(config.Rotates(l) ? 1 : 0);
    layer.keyNorm = layer.queryNorm;
  }
  else if (config.queryKeyNorm != QueryKeyNorm::None)
  {
    layer.queryNorm = this->GetHeadNorms(prefix, this->Name.queryNorm, config.heads, config);
    if (config.KeyLayer(l) == l)
    {
      layer.keyNorm = this->GetHeadNorms(prefix, this->Name.keyNorm, config.keyHeads, config);
    }
  }
  if (config.sinks)
  {
    layer.sinks = this->Get(prefix + this->Name.sinks, { config.heads });
  }
}

void LayerBinder::BindMixer(MixerTensors& mixer, const std::string& prefix, Mixer kind)
{
  const TransformerConfig& config = this->Config;
  const TensorNames& name = this->Name;
  const std::int64_t d = config.modelDimension;
  const bool isConvolution = kind == Mixer::ShortConvolution;
  const bool isScan = kind == Mixer::StateSpace;
  const std::int64_t values = config.mixerHeads * config.mixerValueDimension;
  std::int64_t channels = d;
  if (isConvolution)
  {
    mixer.query = this->GetLinear(prefix, name.mixerQuery, d, 3 * d, config.mixerBias);
  }
  else
  {
    const std::int64_t keys = config.mixerKeyHeads * config.mixerKeyDimension;
    channels = 2 * keys + values;
    if (isScan)
    {
      this->BindScan(mixer, prefix, keys, values);
    }
    else
    {
      this->BindMixerHeads(mixer, prefix, keys, values);
    }
    mixer.decayScale = this->Get(prefix + name.mixerDecayScale, { config.mixerHeads });
    mixer.decayShift = this->Get(prefix + name.mixerDecayShift, { config.mixerHeads });
    mixer.norm =
      this->GetUnfoldedNorm(prefix, name.mixerNorm, isScan ? values : config.mixerValueDimension);
  }
  this->BindTaps(mixer, prefix, channels);
  mixer.output =
    this->GetLinear(prefix, name.mixerOutput, isConvolution ? d : values, d, config.mixerBias);
}

/// One matrix gives gates, values, keys, queries and steps of time.
void LayerBinder::BindScan(
  MixerTensors& mixer, const std::string& prefix, std::int64_t keys, std::int64_t values)
{
  const TransformerConfig& config = this->Config;
  const std::int64_t outputs = 2 * (values + keys) + config.mixerHeads;
  const LinearTensors all = this->GetLinear(
    prefix, this->Name.mixerQuery, config.modelDimension, outputs, config.mixerBias);
  mixer.gate = OutputsOf(all, 0, values);
  mixer.value = OutputsOf(all, values, values);
  mixer.key = OutputsOf(all, 2 * values, keys);
  mixer.query = OutputsOf(all, 2 * values + keys, keys);
  mixer.decay = OutputsOf(all, 2 * (values + keys), config.mixerHeads);
  mixer.skip = this->Get(prefix + this->Name.mixerSkip, { config.mixerHeads });
}

void LayerBinder::BindMixerHeads(
  MixerTensors& mixer, const std::string& prefix, std::int64_t keys, std::int64_t values)
{
  const TransformerConfig& config = this->Config;
  const TensorNames& name = this->Name;
  const std::int64_t d = config.modelDimension;
  const std::int64_t group = config.mixerHeads / config.mixerKeyHeads;
  const auto linear = [&](const PairNames& names, std::int64_t outputs)
  { return this->GetLinear(prefix, names, d, outputs, false); };
  const auto split = [](const LinearTensors& all, std::int64_t first, std::int64_t step)
  {
    LinearTensors part = all;
    part.headFirst = first;
    part.headStep = step;
    return part;
  };
  if (!name.mixerKey.weight.empty())
  {
    mixer.query = linear(name.mixerQuery, keys);
    mixer.key = linear(name.mixerKey, keys);
    mixer.value = linear(name.mixerValue, values);
    mixer.gate = linear(name.mixerGate, values);
  }
  else if (!name.mixerGate.weight.empty())
  {
    const LinearTensors all = linear(name.mixerQuery, 2 * keys + values);
    mixer.query = OutputsOf(all, 0, keys);
    mixer.key = OutputsOf(all, keys, keys);
    mixer.value = OutputsOf(all, 2 * keys, values);
    mixer.gate = linear(name.mixerGate, values);
  }
  else // of each head of keys: its query, key, values and gates
  {
    const LinearTensors all = linear(name.mixerQuery, 2 * keys + 2 * values);
    const std::int64_t dimension = config.mixerKeyDimension;
    const std::int64_t width = group * config.mixerValueDimension;
    const std::int64_t step = 2 * (dimension + width);
    mixer.query = split(all, 0, step);
    mixer.key = split(all, dimension, step);
    mixer.value = split(all, 2 * dimension, step);
    mixer.gate = split(all, 2 * dimension + width, step);
  }
  if (name.mixerDecay.weight.empty())
  {
    const LinearTensors all = linear(name.mixerRate, 2 * config.mixerHeads);
    mixer.rate = split(all, 0, 2 * group);
    mixer.decay = split(all, group, 2 * group);
    return;
  }
  mixer.rate = linear(name.mixerRate, config.mixerHeads);
  mixer.decay = linear(name.mixerDecay, config.mixerHeads);
}

void LayerBinder::BindTaps(MixerTensors& mixer, const std::string& prefix, std::int64_t channels)
{
  const TransformerConfig& config = this->Config;
  const std::string name = prefix + this->Name.mixerTaps.weight;
  const std::size_t star = name.find('*');
  std::int64_t left = channels;
  for (const std::string_view letter : { "q", "k", "v" })
  {
    const bool isWhole = star == std::string::npos;
    const std::string part = isWhole ? name : std::string(name).replace(star, 1, letter);
    const Shape& shape = this->Get(part).shape;
    const std::int64_t own = shape.empty() ? 0 : shape[0];
    const bool isLast = isWhole || letter == "v";
    const std::int64_t count = isLast ? left : std::min(own, left);
    const bool isMlx = shape == Shape{ count, config.mixerTaps, 1 }; // the numbers lie alike
    mixer.taps.push_back(this->Get(part, isMlx ? shape : Shape{ count, 1, config.mixerTaps }));
    left -= own;
    if (isWhole)
    {
      break;
    }
  }
  if (config.mixerTapsBias)
  {
    mixer.tapsBias = this->Get(prefix + this->Name.mixerTaps.bias, { channels });
  }
}

void LayerBinder::BindHeads(
  LayerTensors& layer, const std::string& prefix, std::int64_t l, const TransformerConfig& config)
{
  if (config.gatesAttention) // the query of a head, then its gate
  {
    const std::int64_t dimension = config.headDimension;
    layer.query = this->GetLinear(prefix, this->Name.query, config.modelDimension,
      2 * config.heads * dimension, config.inputBias);
    layer.query.headStep = 2 * dimension;
    layer.attentionGate = layer.query;
    layer.attentionGate.headFirst = dimension;
  }
  else
  {
    layer.query = this->GetHeads(prefix, this->Name.query, config.heads, false, config);
  }
  if (config.KeyLayer(l) != l)
  {
    for (const PairNames* names : { &this->Name.key, &this->Name.value, &this->Name.keyNorm })
    {
      this->Used.insert({ prefix + names->weight, prefix + names->bias });
    }
    return;
  }
  layer.key = this->GetHeads(prefix, this->Name.key, config.keyHeads, true, config);
  const bool areKeys = !config.valuesAreKeys.empty() && config.valuesAreKeys[l];
  layer.value =
    areKeys ? layer.key : this->GetHeads(prefix, this->Name.value, config.keyHeads, true, config);
}

void LayerBinder::BindDistances(LayerTensors& layer, const std::string& prefix)
{
  const TransformerConfig& config = this->Config;
  const std::int64_t d = config.modelDimension;
  const std::int64_t width = config.heads * config.headDimension;
  const auto get = [&](const LinearTensors& own, const PairNames& names)
  {
    return config.sharesPositionKeys
             ? own
             : this->GetLinear(prefix, names, d, width, !names.bias.empty());
  };
  if (config.readsKeysOfPositions)
  {
    layer.positionKey = get(layer.key, this->Name.positionKey);
  }
  if (config.readsQueriesOfPositions)
  {
    layer.positionQuery = get(layer.query, this->Name.positionQuery);
  }
}

void LayerBinder::BindSides(LayerSideTensors& sides, const std::string& prefix)
{
  const TransformerConfig& config = this->Config;
  const TensorNames& name = this->Name;
  const std::int64_t d = config.modelDimension;
  const auto linear = [&](const PairNames& names, std::int64_t inputs, std::int64_t outputs)
  { return this->GetLinear(prefix, names, inputs, outputs, false); };
  if (config.layerInput > 0)
  {
    sides.inputGate = linear(name.inputGate, d, config.layerInput);
    sides.inputProjection = linear(name.inputProjection, config.layerInput, d);
    sides.inputNorm = this->GetUnfoldedNorm(prefix, name.inputNorm);
  }
  if (config.layerFactors)
  {
    sides.factor = this->GetNumber(prefix + name.layerFactor);
  }
  if (config.streams > 1)
  {
    sides.router = linear(name.streamRouter, d, config.streams);
    sides.routerNorm = this->GetUnfoldedNorm(prefix, name.streamRouterNorm);
    sides.prediction =
      linear(name.streamPrediction, config.streams, config.streams * config.streams);
    sides.correction = linear(name.streamCorrection, config.streams, config.streams);
    sides.activeScale = this->Get(prefix + name.streamScale, { d });
  }
  if (config.laurelRank > 0)
  {
    sides.laurelIn = linear(name.laurelIn, d, config.laurelRank);
    sides.laurelOut = linear(name.laurelOut, config.laurelRank, d);
    sides.laurelNorm = this->GetUnfoldedNorm(prefix, name.laurelNorm);
  }
}

void LayerBinder::BindMlp(
  LayerTensors& layer, const std::string& prefix, const TransformerConfig& config)
{
  const std::int64_t d = config.modelDimension;
  const std::int64_t hidden = config.mlpDimension;
  if (config.gated)
  {
    this->BindGated(
      prefix, this->Name.gate, this->Name.up, hidden, config.mlpBias, layer.gate, layer.up);
  }
  else
  {
    layer.up = this->GetLinear(prefix, this->Name.up, d, hidden, config.mlpBias);
  }
  if (config.gated && this->Lens)
  {
    this->RequireZero(prefix + this->Name.up.bias, layer.up.bias);
  }
  layer.down = this->GetLinear(prefix, this->Name.down, hidden, d, config.mlpBias);
}

void LayerBinder::BindGated(const std::string& prefix, const PairNames& gateNames,
  const PairNames& upNames, std::int64_t hidden, bool hasBias, LinearTensors& gate,
  LinearTensors& up)
{
  const std::int64_t d = this->Config.modelDimension;
  if (upNames.weight.empty())
  {
    const LinearTensors both = this->GetLinear(prefix, gateNames, d, 2 * hidden, hasBias);
    gate = OutputsOf(both, 0, hidden);
    up = OutputsOf(both, hidden, hidden);
    return;
  }
  gate = this->GetLinear(prefix, gateNames, d, hidden, hasBias);
  up = this->GetLinear(prefix, upNames, d, hidden, hasBias);
}

std::vector<NormTensors> LayerBinder::GetHeadNorms(const std::string& prefix,
  const PairNames& names, std::int64_t heads, const TransformerConfig& config)
{
  const std::int64_t dimension = config.headDimension;
  if (this->Config.queryKeyNorm == QueryKeyNorm::OfAllHeads)
  {
    return { this->GetUnfoldedNorm(prefix, names, dimension) };
  }
  if (this->Config.queryKeyNorm == QueryKeyNorm::Together)
  {
    return { this->GetUnfoldedNorm(prefix, names, heads * dimension) };
  }
  std::vector<NormTensors> norms;
  if (names.weight.find('*') == std::string::npos)
  {
    const TensorView all = this->Get(prefix + names.weight, { heads, dimension });
    for (std::int64_t h = 0; h < heads; ++h)
    {
      norms.emplace_back().gain = RowsOf(all, h, 1);
      norms.back().gain.shape = { dimension };
    }
    return norms;
  }
  for (std::int64_t h = 0; h < heads; ++h)
  {
    norms.push_back(this->GetUnfoldedNorm(prefix, { Numbered(names.weight, h), {} }, dimension));
  }
  return norms;
}

void LayerBinder::BindExperts(ExpertTensors& tensors, const std::string& prefix)
{
  const TransformerConfig& config = this->Config;
  const std::int64_t d = config.modelDimension;
  const std::int64_t hidden = config.expertDimension;
  const bool hasBias = !this->Name.router.bias.empty();
  const bool hasBoth = this->Name.expertsUp.weight.empty();
  tensors.router = this->GetLinear(prefix, this->Name.router, d, config.experts, hasBias);
  if (config.expertBias)
  {
    const std::string name = prefix + this->Name.expertBias;
    tensors.bias = this->Get(name);
    if (tensors.bias.Count() != ToIndex(config.experts))
    {
      this->Get(name, { config.experts }); // its message
    }
  }
  if (config.expertsBesideMlp)
  {
    tensors.scales = this->Get(prefix + this->Name.expertScales, { config.experts });
    tensors.routerNorm = this->GetUnfoldedNorm(prefix, this->Name.routerNorm);
    tensors.norm = this->GetUnfoldedNorm(prefix, this->Name.expertsNorm);
    tensors.after = this->GetUnfoldedNorm(prefix, this->Name.expertsAfter);
    tensors.mlpAfter = this->GetUnfoldedNorm(prefix, this->Name.plainAfter);
  }
  tensors.gate = this->GetExperts(prefix, this->Name.expertsGate, d, hasBoth ? 2 * hidden : hidden);
  if (!hasBoth)
  {
    tensors.up = this->GetExperts(prefix, this->Name.expertsUp, d, hidden);
  }
  else if (this->Name.expertLayout == WeightLayout::OutputInput)
  {
    for (LinearTensors& both : tensors.gate)
    {
      tensors.up.push_back(OutputsOf(both, hidden, hidden));
      both = OutputsOf(both, 0, hidden);
    }
  }
  tensors.down = this->GetExperts(prefix, this->Name.expertsDown, hidden, d);
  if (config.sharedExpertDimension > 0)
  {
    const std::int64_t shared = config.sharedExpertDimension;
    const bool isBiased = config.mlpBias && !this->Name.sharedGate.bias.empty();
    this->BindGated(prefix, this->Name.sharedGate, this->Name.sharedUp, shared, isBiased,
      tensors.sharedGate, tensors.sharedUp);
    tensors.sharedDown = this->GetLinear(prefix, this->Name.sharedDown, shared, d, isBiased);
    if (config.sharedExpertHasGate)
    {
      tensors.sharedFactor = this->GetSharedFactor(prefix);
    }
  }
}

LinearTensors LayerBinder::GetSharedFactor(const std::string& prefix)
{
  const std::int64_t d = this->Config.modelDimension;
  const std::string name = prefix + this->Name.sharedFactor.weight;
  const TensorView* found = this->Find(name);
  if (this->Gguf && found != nullptr && found->shape == Shape{ d })
  {
    LinearTensors factor = { this->Get(name), {}, WeightLayout::OutputInput, d, 1 };
    factor.weight.shape = { 1, d };
    return factor;
  }
  return this->GetLinear(prefix, this->Name.sharedFactor, d, 1, false);
}

std::vector<LinearTensors> LayerBinder::GetExperts(
  const std::string& prefix, const PairNames& names, std::int64_t inputs, std::int64_t outputs)
{
  const std::int64_t count = this->Config.experts;
  std::vector<LinearTensors> experts;
  if (names.weight.find('*') != std::string::npos)
  {
    for (std::int64_t e = 0; e < count; ++e)
    {
      experts.push_back(
        this->GetLinear(prefix, { Numbered(names.weight, e), {} }, inputs, outputs, false));
    }
    return experts;
  }
  const TensorView* found = this->Find(prefix + names.weight);
  const bool isByRow = this->Gguf || (found != nullptr && found->packed != nullptr); // of outputs
  const WeightLayout layout = isByRow ? WeightLayout::OutputInput : this->Name.expertLayout;
  const Shape one =
    layout == WeightLayout::OutputInput ? Shape{ outputs, inputs } : Shape{ inputs, outputs };
  const TensorView weight = this->Get(prefix + names.weight, { count, one[0], one[1] });
  const TensorView bias =
    names.bias.empty() ? TensorView() : this->Get(prefix + names.bias, { count, outputs });
  for (std::int64_t e = 0; e < count; ++e)
  {
    LinearTensors& expert =
      experts.emplace_back(LinearTensors{ RowsOf(weight, e, 1), {}, layout, inputs, outputs });
    expert.weight.shape = one;
    if (bias.data != nullptr)
    {
      expert.bias = RowsOf(bias, e, 1);
      expert.bias.shape = { outputs };
    }
  }
  return experts;
}

void LayerBinder::RequireZero(const std::string& name, const TensorView& bias) const
{
  const std::vector<double> values = bias.data == nullptr ? std::vector<double>() : bias.ToDouble();
  if (std::any_of(values.begin(), values.end(), [](double value) { return value != 0; }))
  {
    this->Fail(name, ": expected zeros in a gated MLP.");
  }
}

void LayerBinder::BindFused(LayerTensors& layer, const std::string& prefix)
{
  const TransformerConfig& config = this->Config;
  const std::int64_t dimension = config.headDimension;
  const std::int64_t queries = config.heads * dimension;
  const std::int64_t keys = config.keyHeads * dimension;
  const bool hasBias = config.inputBias && this->Name.queryBias.empty();
  LinearTensors fused =
    this->GetLinear(prefix, this->Name.query, config.modelDimension, queries + 2 * keys, hasBias);
  if (!this->Name.queryBias.empty())
  {
    fused.bias = this->JoinBiases(prefix);
  }
  layer.query = layer.key = layer.value = fused;
  layer.query.headStep = layer.key.headStep = layer.value.headStep = dimension;
  switch (this->Name.fused)
  {
    case Fused::HeadKind:
    {
      const std::int64_t group = config.heads / config.keyHeads; // of queries, before key, value
      const std::int64_t step = (group + 2) * dimension;
      layer.key.headStep = layer.value.headStep = step;
      layer.key.headFirst = group * dimension;
      layer.value.headFirst = (group + 1) * dimension;
      layer.query.groupHeads = group > 1 ? group : 0;
      layer.query.groupStep = group > 1 ? step : 0;
      layer.query.headStep = group > 1 ? dimension : step;
      return;
    }
    case Fused::FourBlocks:
    {
      constexpr std::int64_t blocks = 4;
      const std::int64_t width = queries / blocks;
      layer.value.headFirst = width;
      layer.key.headFirst = 2 * width;
      for (LinearTensors* linear : { &layer.query, &layer.key, &layer.value })
      {
        linear->groupHeads = config.heads / blocks;
        linear->groupStep = 3 * width;
      }
      return;
    }
    default:
      break;
  }
  if (fused.layout == WeightLayout::OutputInput)
  {
    layer.query = OutputsOf(layer.query, 0, queries);
    layer.key = OutputsOf(layer.key, queries, keys);
    layer.value = OutputsOf(layer.value, queries + keys, keys);
  }
  else
  {
    layer.key.headFirst = queries;
    layer.value.headFirst = queries + keys;
  }
}

TensorView LayerBinder::JoinBiases(const std::string& prefix)
{
  const std::int64_t heads = this->Config.heads;
  const std::int64_t dimension = this->Config.headDimension;
  std::vector<float> joined(3 * heads * dimension);
  for (const auto& [name, kind] :
    { std::pair(&this->Name.queryBias, 0), std::pair(&this->Name.valueBias, 2) })
  {
    const TensorView bias = this->Get(prefix + *name, { heads * dimension });
    for (std::int64_t head = 0; head < heads; ++head)
    {
      const auto first = ToIndex(head * dimension);
      bias.ToFloat(
        first, first + ToIndex(dimension), joined.data() + (3 * head + kind) * dimension);
    }
  }
  const Shape shape = { 3 * heads * dimension };
  return this->Keep(std::move(joined), shape);
}

void LayerBinder::BindLatent(LayerTensors& layer, const std::string& prefix)
{
  const TransformerConfig& config = this->Config;
  const std::int64_t d = config.modelDimension;
  const std::int64_t plain = config.headDimension - config.RotatedDimension();
  const std::int64_t queries = config.heads * config.headDimension;
  if (config.queryLatent > 0)
  {
    layer.queryLatent =
      this->GetLinear(prefix, this->Name.queryLatent, d, config.queryLatent, config.inputBias);
    layer.queryLatentNorm =
      this->GetUnfoldedNorm(prefix, this->Name.queryLatentNorm, config.queryLatent);
  }
  layer.query = this->GetLinear(
    prefix, this->Name.query, config.queryLatent > 0 ? config.queryLatent : d, queries, false);
  layer.query.headStep = config.headDimension;
  layer.keyLatent = this->GetLinear(prefix, this->Name.keyLatent, d,
    config.keyLatent + config.RotatedDimension(), config.inputBias);
  layer.keyLatentNorm = this->GetUnfoldedNorm(prefix, this->Name.keyLatentNorm, config.keyLatent);
  if (!this->Name.value.weight.empty())
  {
    this->BindSplitLatent(layer, prefix, plain);
    return;
  }
  layer.key = this->GetLinear(prefix, this->Name.key, config.keyLatent,
    config.heads * (plain + config.ValueDimension()), false);
  layer.key.headStep = plain + config.ValueDimension();
  layer.value = layer.key;
  layer.value.headFirst = plain;
}

void LayerBinder::BindSplitLatent(
  LayerTensors& layer, const std::string& prefix, std::int64_t plain)
{
  const TransformerConfig& config = this->Config;
  const std::int64_t values = config.ValueDimension();
  const std::int64_t latent = config.keyLatent;
  layer.key = { this->Get(prefix + this->Name.key.weight, { config.heads, latent, plain }), {},
    WeightLayout::HeadInputOutput, latent, config.heads * plain, 0, plain };
  layer.value = { this->Get(prefix + this->Name.value.weight, { config.heads, values, latent }), {},
    WeightLayout::OutputInput, latent, config.heads * values, 0, values };
  layer.value.weight.shape = { config.heads * values, latent };
}

LinearTensors LayerBinder::GetHeads(const std::string& prefix, const PairNames& names,
  std::int64_t heads, bool grouped, const TransformerConfig& config)
{
  LinearTensors linear;
  if (this->Lens)
  {
    // Keys and values that are shared by groups of heads have an underscore: attn._W_K.
    const bool shared = grouped && config.keyHeads != config.heads;
    const auto name = [&](const std::string& end)
    { return prefix + "attn." + (shared ? "_" : "") + end.substr(5); };
    linear = { this->Get(
                 name(names.weight), { heads, config.modelDimension, config.headDimension }),
      this->GetOptional(name(names.bias), { heads, config.headDimension }),
      WeightLayout::HeadInputOutput, config.modelDimension, heads * config.headDimension };
  }
  else
  {
    const bool isOff = (&names == &this->Name.query && !config.queryBias) ||
                       (&names == &this->Name.key && !config.keyBias) ||
                       (&names == &this->Name.value && !config.valueBias);
    const bool hasBias = config.inputBias && !names.bias.empty() && !isOff; // not Whisper's keys
    linear =
      this->GetLinear(prefix, names, config.modelDimension, heads * config.headDimension, hasBias);
  }
  linear.headStep = config.headDimension;
  return linear;
}

LinearTensors LayerBinder::GetOutput(const std::string& prefix, const TransformerConfig& config)
{
  const std::int64_t inputs = config.heads * config.ValueDimension();
  const std::int64_t d = config.modelDimension;
  if (!this->Lens)
  {
    return this->GetLinear(prefix, this->Name.output, inputs, d, config.outputBias);
  }
  return { this->Get(prefix + this->Name.output.weight, { config.heads, config.headDimension, d }),
    this->GetOptional(prefix + this->Name.output.bias, { d }), WeightLayout::InputOutput, inputs,
    d };
}

}
