#include "AttentionGradient.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace atlas
{
namespace
{

/// Queries whose attention is computed together.
constexpr std::int64_t QueryBlock = 64;

std::int64_t HeadColumns(const TransformerConfig& config)
{
  return (config.heads + 2 * config.keyHeads) * config.headDimension;
}

/// Calls function(index in the packed matrix, index in the tensor) for the weights of one kind of
/// heads, whose first packed column is `first`.
template<class Function>
void ForHeadWeights(const LinearTensors& linear, std::int64_t heads, std::int64_t dimension,
  std::int64_t first, std::int64_t columns, const Function& function)
{
  for (std::int64_t h = 0; h < heads; ++h)
  {
    for (std::int64_t i = 0; i < linear.inputs; ++i)
    {
      for (std::int64_t c = 0; c < dimension; ++c)
      {
        const std::int64_t output = linear.FirstOutput(h) + c;
        const std::int64_t from =
          linear.layout == WeightLayout::HeadInputOutput ? (h * linear.inputs + i) * dimension + c
          : linear.layout == WeightLayout::InputOutput   ? i * linear.outputs + output
                                                         : output * linear.inputs + i;
        function(i * columns + first + h * dimension + c, from);
      }
    }
  }
}

/// The three kinds of heads of a layer, with their first packed columns.
struct HeadKind
{
  const LinearTensors* linear;
  std::int64_t heads;
  std::int64_t first;
};
std::array<HeadKind, 3> HeadKinds(const TransformerConfig& config, const LayerTensors& layer)
{
  const std::int64_t dimension = config.headDimension;
  return { { { &layer.query, config.heads, 0 },
    { &layer.key, config.keyHeads, config.heads * dimension },
    { &layer.value, config.keyHeads, (config.heads + config.keyHeads) * dimension } } };
}

template<class Number>
void PackHeads(const ParameterBlock<Number>& parameters, std::vector<PackedHeads<Number>>& heads)
{
  const TransformerConfig& config = parameters.GetConfig();
  const std::int64_t columns = HeadColumns(config);
  heads.resize(config.layers);
  for (std::size_t l = 0; l < heads.size(); ++l)
  {
    PackedHeads<Number>& packed = heads[l];
    packed.weight.resize(config.modelDimension * columns);
    packed.bias.assign(columns, 0);
    for (const HeadKind& kind : HeadKinds(config, parameters.GetModel().GetWeights().layers[l]))
    {
      const Number* weight = parameters.Of(kind.linear->weight);
      ForHeadWeights(*kind.linear, kind.heads, config.headDimension, kind.first, columns,
        [&](std::int64_t to, std::int64_t from) { packed.weight[to] = weight[from]; });
      if (kind.linear->bias.data != nullptr)
      {
        const Number* bias = parameters.Of(kind.linear->bias);
        for (std::int64_t h = 0; h < kind.heads; ++h)
        {
          std::copy_n(bias + kind.linear->FirstOutput(h), config.headDimension,
            packed.bias.data() + kind.first + h * config.headDimension);
        }
      }
    }
  }
}

template<class Number>
void PrepareRotations(
  const TransformerConfig& config, std::int64_t length, AttentionTables<Number>& tables)
{
  const std::int64_t half = config.headDimension / 2;
  if (config.position != PositionKind::Rotary || tables.cosines.size() >= ToIndex(length * half))
  {
    return;
  }
  tables.cosines.clear();
  tables.sines.clear();
  for (std::int64_t position = 0; position < length; ++position)
  {
    for (std::int64_t i = 0; i < half; ++i)
    {
      const Number frequency = static_cast<Number>(std::pow(config.rotaryBase,
        -2 * static_cast<double>(i) / static_cast<double>(config.headDimension)));
      // In single precision as in the original code.
      const Number angle = static_cast<Number>(position) * frequency;
      tables.cosines.push_back(std::cos(angle));
      tables.sines.push_back(std::sin(angle));
    }
  }
}

}

template<class Number>
void AttentionTables<Number>::Prepare(const ParameterBlock<Number>& parameters, std::int64_t length)
{
  PackHeads(parameters, this->heads);
  PrepareRotations(parameters.GetConfig(), length, *this);
}

/// Columns of the packed matrix and the rows that they are multiplied with.
template<class Number>
struct AttentionGradient<Number>::HeadInput
{
  std::int64_t first;
  std::int64_t count;
  const Number* rows;
  bool isShifted;
};

/// Queries begin <= i < end of a head in a sequence.
template<class Number>
struct AttentionGradient<Number>::HeadBlock
{
  std::int64_t row = 0; ///< first row of the sequence
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t keys = 0; ///< the first keys, which the queries may attend to
  std::int64_t head = 0;
  std::int64_t keyHead = 0;
  const Number* query = nullptr; ///< of `begin`
  const Number* key = nullptr;   ///< of the first row of the sequence
  const Number* value = nullptr;
  std::int64_t mixedStride = 0;
  std::int64_t dimension = 0;

  std::int64_t Queries() const { return this->end - this->begin; }
  std::int64_t MixedBegin() const
  {
    return (this->row + this->begin) * this->mixedStride + this->head * this->dimension;
  }
};

template<class Number>
AttentionGradient<Number>::AttentionGradient(const ParameterBlock<Number>& parameters,
  const ParameterMaps<Number>& maps, const AttentionTables<Number>& tables)
  : Config(parameters.GetConfig())
  , Weights(parameters.GetModel().GetWeights())
  , Maps(maps)
  , Tables(tables)
  , Slopes(Config.position == PositionKind::Alibi ? AlibiSlopes(Config.heads)
                                                  : std::vector<double>(Config.heads))
  , Layers(Weights.layers.size())
  , HeadGradients(Weights.layers.size())
{
}

template<class Number>
void AttentionGradient<Number>::Begin()
{
  for (PackedHeads<Number>& heads : this->HeadGradients)
  {
    heads.weight.assign(this->Config.modelDimension * HeadColumns(this->Config), 0);
    heads.bias.assign(HeadColumns(this->Config), 0);
  }
}

template<class Number>
void AttentionGradient<Number>::End()
{
  const std::int64_t columns = HeadColumns(this->Config);
  const std::int64_t dimension = this->Config.headDimension;
  for (std::size_t l = 0; l < this->Layers.size(); ++l)
  {
    for (const HeadKind& kind : HeadKinds(this->Config, this->Weights.layers[l]))
    {
      Number* weight = this->Maps.GradientOf(kind.linear->weight);
      ForHeadWeights(*kind.linear, kind.heads, dimension, kind.first, columns,
        [&](std::int64_t packed, std::int64_t index)
        { weight[index] += this->HeadGradients[l].weight[packed]; });
      if (kind.linear->bias.data != nullptr)
      {
        Number* bias = this->Maps.GradientOf(kind.linear->bias);
        const Number* from = this->HeadGradients[l].bias.data() + kind.first;
        for (std::int64_t h = 0; h < kind.heads; ++h)
        {
          AddTo(dimension, from + h * dimension, bias + kind.linear->FirstOutput(h));
        }
      }
    }
  }
}

template<class Number>
std::vector<typename AttentionGradient<Number>::HeadInput> AttentionGradient<Number>::HeadInputs(
  const LayerStore& store, const Number* input) const
{
  const std::int64_t columns = HeadColumns(this->Config);
  if (this->Config.position != PositionKind::Shortformer)
  {
    return { { 0, columns, input, false } };
  }
  const std::int64_t values = this->Config.keyHeads * this->Config.headDimension;
  return { { 0, columns - values, store.shifted.data(), true },
    { columns - values, values, input, false } };
}

template<class Number>
void AttentionGradient<Number>::ShiftInput(LayerStore& store, const Number* input) const
{
  if (this->Config.position != PositionKind::Shortformer)
  {
    return;
  }
  const std::int64_t d = this->Config.modelDimension;
  const Number* positions = this->Maps.Of(this->Weights.positionEmbedding);
  Reserve(store.shifted, this->Slice->Rows() * d);
  std::copy_n(input, this->Slice->Rows() * d, store.shifted.data());
  this->Slice->ForRows([&](std::int64_t row, std::int64_t position)
    { AddTo(d, positions + position * d, store.shifted.data() + row * d); });
}

template<class Number>
void AttentionGradient<Number>::Rotate(Number* heads, Number direction) const
{
  if (this->Config.position != PositionKind::Rotary)
  {
    return;
  }
  const std::int64_t columns = HeadColumns(this->Config);
  const std::int64_t half = this->Config.headDimension / 2;
  this->Slice->ForRows(
    [&](std::int64_t row, std::int64_t position)
    {
      const Number* cosines = this->Tables.cosines.data() + position * half;
      const Number* sines = this->Tables.sines.data() + position * half;
      for (std::int64_t h = 0; h < this->Config.heads + this->Config.keyHeads; ++h)
      {
        Number* x = heads + row * columns + 2 * h * half;
        for (std::int64_t i = 0; i < half; ++i)
        {
          const Number sine = direction * sines[i];
          const Number first = x[i] * cosines[i] - x[i + half] * sine;
          x[i + half] = x[i + half] * cosines[i] + x[i] * sine;
          x[i] = first;
        }
      }
    });
}

template<class Number>
void AttentionGradient<Number>::AddAttention(
  const BatchSlice& slice, std::size_t layer, const Number* input, Number* x)
{
  this->Slice = &slice;
  LayerStore& store = this->Layers[layer];
  const PackedHeads<Number>& packed = this->Tables.heads[layer];
  const std::int64_t rows = slice.Rows();
  const std::int64_t d = this->Config.modelDimension;
  const std::int64_t columns = HeadColumns(this->Config);
  Reserve(store.heads, rows * columns);
  Reserve(store.mixed, rows * this->Config.heads * this->Config.headDimension);
  this->ShiftInput(store, input);
  for (std::int64_t r = 0; r < rows; ++r)
  {
    std::copy_n(packed.bias.data(), columns, store.heads.data() + r * columns);
  }
  for (const HeadInput& part : this->HeadInputs(store, input))
  {
    Multiply<Number>(rows, part.count, d, 1, { part.rows, d, false },
      { packed.weight.data() + part.first, columns, false }, store.heads.data() + part.first,
      columns, true);
  }
  this->Rotate(store.heads.data(), 1);
  this->ForHeads(store,
    [&](const HeadBlock& block)
    {
      Number* weights = this->EvaluateAttention(block, layer);
      Multiply<Number>(block.Queries(), this->Config.headDimension, block.keys, 1,
        { weights, block.keys, false }, { block.value, columns, false },
        store.mixed.data() + block.MixedBegin(), block.mixedStride, false);
    });
  this->Maps.Apply(this->Weights.layers[layer].output, rows, store.mixed.data(), x, true);
}

template<class Number>
template<class Function>
void AttentionGradient<Number>::ForHeads(const LayerStore& store, const Function& function)
{
  const TransformerConfig& config = this->Config;
  const std::int64_t columns = HeadColumns(config);
  const std::int64_t group = config.heads / config.keyHeads;
  HeadBlock block;
  block.dimension = config.headDimension;
  block.mixedStride = config.heads * config.headDimension;
  for (std::size_t s = 0; s < this->Slice->Sequences(); ++s)
  {
    block.row = this->Slice->offsets[s];
    const std::int64_t length = this->Slice->offsets[s + 1] - block.row;
    const Number* heads = store.heads.data() + block.row * columns;
    for (block.head = 0; block.head < config.heads; ++block.head)
    {
      block.keyHead = block.head / group;
      block.key = heads + (config.heads + block.keyHead) * config.headDimension;
      block.value = block.key + config.keyHeads * config.headDimension;
      for (block.begin = 0; block.begin < length; block.begin = block.end)
      {
        block.end = std::min(block.begin + QueryBlock, length);
        block.keys = config.mask == AttentionMask::Causal ? block.end : length;
        block.query = heads + block.begin * columns + block.head * config.headDimension;
        function(block);
      }
    }
  }
}

template<class Number>
Number* AttentionGradient<Number>::EvaluateAttention(const HeadBlock& block, std::size_t layer)
{
  const std::int64_t columns = HeadColumns(this->Config);
  Reserve(this->Scores, block.Queries() * block.keys);
  Number* scores = this->Scores.data();
  Multiply<Number>(block.Queries(), block.keys, this->Config.headDimension, this->ScoreScale(layer),
    { block.query, columns, false }, { block.key, columns, true }, scores, block.keys, false);
  const auto slope = static_cast<Number>(this->Slopes[block.head]);
  for (std::int64_t i = block.begin; i < block.end; ++i)
  {
    Number* row = scores + (i - block.begin) * block.keys;
    const std::int64_t count = this->Config.mask == AttentionMask::Causal ? i + 1 : block.keys;
    if (slope != 0)
    {
      for (std::int64_t j = 0; j < count; ++j)
      {
        row[j] += slope * static_cast<Number>(j);
      }
    }
    SoftmaxOf(count, row);
    std::fill(row + count, row + block.keys, Number(0));
  }
  return scores;
}

template<class Number>
Number AttentionGradient<Number>::ScoreScale(std::size_t layer) const
{
  return static_cast<Number>(this->Config.ScoreScale(static_cast<std::int64_t>(layer)));
}

template<class Number>
void AttentionGradient<Number>::MixBackward(std::size_t layer)
{
  const LayerStore& store = this->Layers[layer];
  const std::int64_t columns = HeadColumns(this->Config);
  const std::int64_t dimension = this->Config.headDimension;
  const Number scale = this->ScoreScale(layer);
  Reserve(this->HeadsBuffer, this->Slice->Rows() * columns);
  std::fill_n(this->HeadsBuffer.data(), this->Slice->Rows() * columns, Number(0));
  this->ForHeads(store,
    [&](const HeadBlock& block)
    {
      const Number* weights = this->EvaluateAttention(block, layer);
      const Number* mixed = this->MixedBuffer.data() + block.MixedBegin();
      Number* first = this->HeadsBuffer.data() + block.row * columns;
      Number* query = first + block.begin * columns + block.head * dimension;
      Number* key = first + (this->Config.heads + block.keyHead) * dimension;
      Number* value = key + this->Config.keyHeads * dimension;
      const std::int64_t queries = block.Queries();
      Multiply<Number>(block.keys, dimension, queries, 1, { weights, block.keys, true },
        { mixed, block.mixedStride, false }, value, columns, true);
      Reserve(this->ScoreGradients, queries * block.keys);
      Number* gradients = this->ScoreGradients.data();
      Multiply<Number>(queries, block.keys, dimension, 1, { mixed, block.mixedStride, false },
        { block.value, columns, true }, gradients, block.keys, false);
      SoftmaxBackward(queries, block.keys, scale, weights, gradients);
      Multiply<Number>(queries, dimension, block.keys, 1, { gradients, block.keys, false },
        { block.key, columns, false }, query, columns, false);
      Multiply<Number>(block.keys, dimension, queries, 1, { gradients, block.keys, true },
        { block.query, columns, false }, key, columns, true);
    });
}

template<class Number>
void AttentionGradient<Number>::AttentionBackward(
  const BatchSlice& slice, std::size_t layer, const Number* input, const Number* dy, Number* dx)
{
  this->Slice = &slice;
  LayerStore& store = this->Layers[layer];
  const PackedHeads<Number>& packed = this->Tables.heads[layer];
  const std::int64_t rows = slice.Rows();
  const std::int64_t d = this->Config.modelDimension;
  const std::int64_t columns = HeadColumns(this->Config);
  Reserve(this->MixedBuffer, rows * this->Config.heads * this->Config.headDimension);
  this->Maps.Backward(this->Weights.layers[layer].output, rows, store.mixed.data(), dy,
    this->MixedBuffer.data(), false);
  this->MixBackward(layer);
  const Number* heads = this->HeadsBuffer.data();
  this->Rotate(this->HeadsBuffer.data(), -1);
  AddColumnSums(rows, columns, heads, columns, this->HeadGradients[layer].bias.data());
  bool add = false;
  for (const HeadInput& part : this->HeadInputs(store, input))
  {
    Multiply<Number>(d, part.count, rows, 1, { part.rows, d, true },
      { heads + part.first, columns, false }, this->HeadGradients[layer].weight.data() + part.first,
      columns, true);
    Multiply<Number>(rows, d, part.count, 1, { heads + part.first, columns, false },
      { packed.weight.data() + part.first, columns, true }, dx, d, add);
    if (part.isShifted)
    {
      Number* positions = this->Maps.GradientOf(this->Weights.positionEmbedding);
      slice.ForRows([&](std::int64_t row, std::int64_t position)
        { AddTo(d, dx + row * d, positions + position * d); });
    }
    add = true;
  }
}

template struct AttentionTables<float>;
template struct AttentionTables<double>;
template class AttentionGradient<float>;
template class AttentionGradient<double>;

}
