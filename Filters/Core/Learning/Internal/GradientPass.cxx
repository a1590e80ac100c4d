#include "GradientPass.h"

#include "ArchitectureLimits.h"
#include "Error.h"
#include "Index.h"
#include "Parallel.h"

#include <cmath>
#include <string>
#include <utility>

namespace atlas
{
namespace
{

/// The number of shards of a large batch.
constexpr std::int64_t ShardCount = 8;

/// Rows that are run together, unless a single sequence has more.
constexpr std::int64_t SliceRows = 1024;

/// Queries whose attention is computed together.
constexpr std::int64_t QueryBlock = 64;

template<class Number>
void Reserve(std::vector<Number>& values, std::int64_t count)
{
  if (values.size() < ToIndex(count))
  {
    values.resize(ToIndex(count));
  }
}

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
        const std::int64_t output = linear.headFirst + h * linear.headStep + c;
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

}

/// Consecutive sequences that are run together, and the place of their rows in the batch.
template<class Number>
struct GradientPass<Number>::Slice
{
  std::int64_t firstSequence = 0;
  std::vector<std::int64_t>
    offsets;                 ///< first row of each sequence in the slice, then the row count
  std::int64_t firstRow = 0; ///< in the batch

  std::int64_t Rows() const { return this->offsets.back(); }
  std::size_t Sequences() const { return this->offsets.size() - 1; }
};

/// Runs slices forward and backward, with memory that is used again.
template<class Number>
class GradientPass<Number>::Worker
{
public:
  explicit Worker(const GradientPass& pass)
    : Pass(pass)
    , Block(pass.Parameters)
    , Config(Block.GetConfig())
    , Weights(Block.GetModel().GetWeights())
    , Layers(Weights.layers.size())
    , Slopes(Config.position == PositionKind::Alibi ? AlibiSlopes(Config.heads)
                                                    : std::vector<double>(ToIndex(Config.heads)))
    , HeadGradients(Weights.layers.size())
  {
  }

  /// Begins a shard, whose gradient is added to `gradient`; nullptr: none is computed. `weight` is
  /// 1 / targets of the batch.
  void Begin(const TrainingBatch& batch, Number weight, RowResults* results, Number* gradient)
  {
    this->Batch = &batch;
    this->Weight = weight;
    this->Results = results;
    this->Grad = gradient;
    if (gradient != nullptr)
    {
      for (PackedHeads<Number>& heads : this->HeadGradients)
      {
        heads.weight.assign(ToIndex(this->Config.modelDimension * HeadColumns(this->Config)), 0);
        heads.bias.assign(ToIndex(HeadColumns(this->Config)), 0);
      }
    }
  }

  /// The sum of the losses of the rows of a slice.
  double Run(const Slice& slice)
  {
    this->Part = &slice;
    this->Forward();
    return this->Unembed();
  }

  /// Ends a shard.
  void End()
  {
    if (this->Grad == nullptr)
    {
      return;
    }
    const std::int64_t columns = HeadColumns(this->Config);
    for (std::size_t l = 0; l < this->Layers.size(); ++l)
    {
      for (const HeadKind& kind : HeadKinds(this->Config, this->Weights.layers[l]))
      {
        Number* weight = this->GradientOf(kind.linear->weight);
        ForHeadWeights(*kind.linear, kind.heads, this->Config.headDimension, kind.first, columns,
          [&](std::int64_t packed, std::int64_t index)
          { weight[index] += this->HeadGradients[l].weight[ToIndex(packed)]; });
        if (kind.linear->bias.data != nullptr)
        {
          this->AddHeadBias(kind, this->HeadGradients[l].bias.data() + kind.first);
        }
      }
    }
  }

private:
  const GradientPass& Pass;
  const ParameterBlock<Number>& Block;
  const TransformerConfig& Config;
  const TransformerWeights& Weights;
  std::vector<LayerStore<Number>> Layers;
  std::vector<double> Slopes;

  const TrainingBatch* Batch = nullptr;
  const Slice* Part = nullptr;
  Number Weight = 0;
  RowResults* Results = nullptr;
  Number* Grad = nullptr;
  std::vector<PackedHeads<Number>> HeadGradients;

  std::vector<Number> X;      ///< the residual stream [rows, d], later its gradient
  std::vector<Number> Pixels; ///< [rows, inputs of a patch]
  SublayerStore<Number> Embedded;
  std::vector<std::int64_t> Rows; ///< of the slice that have targets
  std::vector<Number> Selected;   ///< their residual stream
  SublayerStore<Number> Final;
  std::vector<Number> Transform;  ///< BERT: before the activation
  SublayerStore<Number> LastNorm; ///< BERT
  std::vector<Number> Logits;
  std::vector<Number> Buffer;      ///< gradients of the input of a sublayer
  std::vector<Number> HeadsBuffer; ///< gradients of queries, keys and values
  std::vector<Number> MixedBuffer; ///< gradients of mixed values; of shifted inputs
  std::vector<Number> HiddenBuffer;
  std::vector<Number> GateBuffer;
  std::vector<Number> Scores;
  std::vector<Number> ScoreGradients;

  Number* GradientOf(const TensorView& view) const { return this->Block.In(this->Grad, view); }

  void AddHeadBias(const HeadKind& kind, const Number* from) const
  {
    Number* bias = this->GradientOf(kind.linear->bias);
    const std::int64_t dimension = this->Config.headDimension;
    for (std::int64_t h = 0; h < kind.heads; ++h)
    {
      AddTo(
        dimension, from + h * dimension, bias + kind.linear->headFirst + h * kind.linear->headStep);
    }
  }

  LearnedNorm<Number> Norm(const NormTensors& tensors) const
  {
    const bool exists = tensors.gain.data != nullptr;
    return { exists ? this->Config.norm : NormKind::None, static_cast<Number>(this->Config.epsilon),
      exists ? this->Block.Of(tensors.gain) : nullptr,
      tensors.shift.data != nullptr ? this->Block.Of(tensors.shift) : nullptr };
  }

  void ApplyNorm(const NormTensors& tensors, std::int64_t rows, const Number* x, Number* y,
    SublayerStore<Number>& store)
  {
    const std::int64_t d = this->Config.modelDimension;
    Reserve(store.normed, rows * d);
    Reserve(store.stats, 2 * rows);
    std::copy_n(x, rows * d, store.normed.data());
    Normalize(this->Norm(tensors), rows, d, store.normed.data(), y, store.stats.data());
  }

  /// dx = the gradient of the input of a normalization, or dx += it.
  void NormBackward(const NormTensors& tensors, std::int64_t rows,
    const SublayerStore<Number>& store, const Number* dy, Number* dx, bool add)
  {
    NormalizeBackward(this->Norm(tensors), rows, this->Config.modelDimension, store.normed.data(),
      store.stats.data(), dy, dx, add,
      tensors.gain.data != nullptr ? this->GradientOf(tensors.gain) : nullptr,
      tensors.shift.data != nullptr ? this->GradientOf(tensors.shift) : nullptr);
  }

  /// y = x W + b, or y += x W + b
  void Apply(
    const LinearTensors& linear, std::int64_t rows, const Number* x, Number* y, bool add) const
  {
    if (linear.bias.data != nullptr)
    {
      const Number* bias = this->Block.Of(linear.bias);
      for (std::int64_t r = 0; r < rows; ++r)
      {
        Number* to = y + r * linear.outputs;
        add ? AddTo(linear.outputs, bias, to) : (void)std::copy_n(bias, linear.outputs, to);
      }
    }
    const bool transposed = linear.layout == WeightLayout::OutputInput;
    Multiply<Number>(rows, linear.outputs, linear.inputs, 1, { x, linear.inputs, false },
      { this->Block.Of(linear.weight), transposed ? linear.inputs : linear.outputs, transposed }, y,
      linear.outputs, add || linear.bias.data != nullptr);
  }

  /// Adds to the gradients of W and b; dx = dy W^T, or dx += it, unless dx is nullptr.
  void Backward(const LinearTensors& linear, std::int64_t rows, const Number* x, const Number* dy,
    Number* dx, bool add) const
  {
    const bool transposed = linear.layout == WeightLayout::OutputInput;
    Number* weight = this->GradientOf(linear.weight);
    if (transposed)
    {
      Multiply<Number>(linear.outputs, linear.inputs, rows, 1, { dy, linear.outputs, true },
        { x, linear.inputs, false }, weight, linear.inputs, true);
    }
    else
    {
      Multiply<Number>(linear.inputs, linear.outputs, rows, 1, { x, linear.inputs, true },
        { dy, linear.outputs, false }, weight, linear.outputs, true);
    }
    if (linear.bias.data != nullptr)
    {
      AddColumnSums(rows, linear.outputs, dy, linear.outputs, this->GradientOf(linear.bias));
    }
    if (dx != nullptr)
    {
      Multiply<Number>(rows, linear.inputs, linear.outputs, 1, { dy, linear.outputs, false },
        { this->Block.Of(linear.weight), transposed ? linear.inputs : linear.outputs, !transposed },
        dx, linear.inputs, add);
    }
  }

  // The embedding.

  void Embed()
  {
    const std::int64_t d = this->Config.modelDimension;
    Reserve(this->X, this->Part->Rows() * d);
    if (this->Config.input == InputKind::Images)
    {
      this->EmbedPatches();
    }
    else
    {
      this->EmbedTokens();
    }
    if (this->Config.position == PositionKind::Learned)
    {
      const Number* positions = this->Block.Of(this->Weights.positionEmbedding);
      this->ForRows([&](std::int64_t row, std::int64_t position)
        { AddTo(d, positions + position * d, this->X.data() + row * d); });
    }
    if (this->Config.embeddingNorm)
    {
      this->ApplyNorm(this->Weights.embeddingNorm, this->Part->Rows(), this->X.data(),
        this->X.data(), this->Embedded);
    }
  }

  /// Calls function(row in the slice, position in its sequence).
  template<class Function>
  void ForRows(const Function& function) const
  {
    for (std::size_t s = 0; s < this->Part->Sequences(); ++s)
    {
      for (std::int64_t row = this->Part->offsets[s]; row < this->Part->offsets[s + 1]; ++row)
      {
        function(row, row - this->Part->offsets[s]);
      }
    }
  }

  /// Calls function(row in the slice, token id, segment).
  template<class Function>
  void ForTokens(const Function& function) const
  {
    const TransformerInput& input = this->Batch->input;
    for (std::size_t s = 0; s < this->Part->Sequences(); ++s)
    {
      const std::size_t sequence = ToIndex(this->Part->firstSequence) + s;
      const std::vector<std::int64_t>& tokens = input.tokens[sequence];
      for (std::size_t i = 0; i < tokens.size(); ++i)
      {
        function(this->Part->offsets[s] + static_cast<std::int64_t>(i), tokens[i],
          input.segments.empty() ? 0 : input.segments[sequence][i]);
      }
    }
  }

  void EmbedTokens()
  {
    const std::int64_t d = this->Config.modelDimension;
    const Number* embedding = this->Block.Of(this->Weights.tokenEmbedding);
    const Number* segments =
      this->Config.segments > 0 ? this->Block.Of(this->Weights.segmentEmbedding) : nullptr;
    this->ForTokens(
      [&](std::int64_t row, std::int64_t token, std::int64_t segment)
      {
        Number* x = this->X.data() + row * d;
        std::copy_n(embedding + token * d, d, x);
        if (segments != nullptr)
        {
          AddTo(d, segments + segment * d, x);
        }
      });
  }

  /// Writes the pixels of the patches to Pixels [images * patches, channels * height * width].
  void GatherPixels()
  {
    const TransformerConfig& config = this->Config;
    const std::int64_t inputs = this->Weights.patchEmbedding.inputs;
    const std::int64_t patches = config.PatchRows() * config.PatchColumns();
    const auto images = static_cast<std::int64_t>(this->Part->Sequences());
    Reserve(this->Pixels, images * patches * inputs);
    Number* to = this->Pixels.data();
    for (std::int64_t image = 0; image < images; ++image)
    {
      const float* from =
        this->Batch->input.pixels.data() + (this->Part->firstSequence + image) * config.channels *
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

  void EmbedPatches()
  {
    this->GatherPixels();
    const std::int64_t d = this->Config.modelDimension;
    const LinearTensors& linear = this->Weights.patchEmbedding;
    const std::int64_t patches = this->Config.PatchRows() * this->Config.PatchColumns();
    for (std::size_t s = 0; s < this->Part->Sequences(); ++s)
    {
      Number* x = this->X.data() + this->Part->offsets[s] * d;
      std::copy_n(this->Block.Of(this->Weights.classToken), d, x);
      this->Apply(linear, patches,
        this->Pixels.data() + static_cast<std::int64_t>(s) * patches * linear.inputs, x + d, false);
    }
  }

  /// X is the gradient of the sum of the embeddings.
  void EmbedBackward()
  {
    const std::int64_t d = this->Config.modelDimension;
    if (this->Config.embeddingNorm)
    {
      Reserve(this->Buffer, this->Part->Rows() * d);
      this->NormBackward(this->Weights.embeddingNorm, this->Part->Rows(), this->Embedded,
        this->X.data(), this->Buffer.data(), false);
      this->X.swap(this->Buffer);
    }
    if (this->Config.position == PositionKind::Learned)
    {
      Number* positions = this->GradientOf(this->Weights.positionEmbedding);
      this->ForRows([&](std::int64_t row, std::int64_t position)
        { AddTo(d, this->X.data() + row * d, positions + position * d); });
    }
    if (this->Config.input == InputKind::Images)
    {
      this->PatchesBackward();
      return;
    }
    Number* embedding = this->GradientOf(this->Weights.tokenEmbedding);
    Number* segments =
      this->Config.segments > 0 ? this->GradientOf(this->Weights.segmentEmbedding) : nullptr;
    this->ForTokens(
      [&](std::int64_t row, std::int64_t token, std::int64_t segment)
      {
        const Number* x = this->X.data() + row * d;
        AddTo(d, x, embedding + token * d);
        if (segments != nullptr)
        {
          AddTo(d, x, segments + segment * d);
        }
      });
  }

  void PatchesBackward()
  {
    const std::int64_t d = this->Config.modelDimension;
    const LinearTensors& linear = this->Weights.patchEmbedding;
    const std::int64_t patches = this->Config.PatchRows() * this->Config.PatchColumns();
    for (std::size_t s = 0; s < this->Part->Sequences(); ++s)
    {
      const Number* x = this->X.data() + this->Part->offsets[s] * d;
      AddTo(d, x, this->GradientOf(this->Weights.classToken));
      this->Backward(linear, patches,
        this->Pixels.data() + static_cast<std::int64_t>(s) * patches * linear.inputs, x + d,
        nullptr, false);
    }
  }

  // Layers.

  bool IsPreNorm() const { return this->Config.normPlace == NormPlace::BeforeSublayer; }

  /// Runs a sublayer with its normalization: add(input) adds to X.
  template<class Add>
  void Sublayer(const NormTensors& norm, SublayerStore<Number>& store, const Add& add)
  {
    const std::int64_t rows = this->Part->Rows();
    const std::int64_t size = rows * this->Config.modelDimension;
    Reserve(store.input, size);
    if (this->IsPreNorm())
    {
      this->ApplyNorm(norm, rows, this->X.data(), store.input.data(), store);
      add(store.input.data());
    }
    else
    {
      std::copy_n(this->X.data(), size, store.input.data());
      add(store.input.data());
      this->ApplyNorm(norm, rows, this->X.data(), this->X.data(), store);
    }
  }

  /// X is the gradient of the residual stream after the sublayer, then that before it;
  /// backward(dy, dx) writes the gradient of the sublayer's input.
  template<class BackwardFunction>
  void SublayerBackward(
    const NormTensors& norm, const SublayerStore<Number>& store, const BackwardFunction& backward)
  {
    const std::int64_t rows = this->Part->Rows();
    const std::int64_t size = rows * this->Config.modelDimension;
    Reserve(this->Buffer, size);
    if (this->IsPreNorm())
    {
      backward(this->X.data(), this->Buffer.data());
      this->NormBackward(norm, rows, store, this->Buffer.data(), this->X.data(), true);
    }
    else
    {
      this->NormBackward(norm, rows, store, this->X.data(), this->Buffer.data(), false);
      this->X.swap(this->Buffer);
      backward(this->X.data(), this->Buffer.data());
      AddTo(size, this->Buffer.data(), this->X.data());
    }
  }

  void Forward()
  {
    this->Embed();
    for (std::size_t l = 0; l < this->Layers.size(); ++l)
    {
      const LayerTensors& tensors = this->Weights.layers[l];
      LayerStore<Number>& store = this->Layers[l];
      this->Sublayer(tensors.attentionNorm, store.attention,
        [&](const Number* input) { this->AddAttention(l, input); });
      if (this->Config.mlpDimension > 0)
      {
        this->Sublayer(tensors.mlpNorm, store.mlp,
          [&](const Number* input) { this->AddMlp(tensors, store, input); });
      }
    }
  }

  void BackwardLayers()
  {
    for (std::size_t l = this->Layers.size(); l-- > 0;)
    {
      const LayerTensors& tensors = this->Weights.layers[l];
      LayerStore<Number>& store = this->Layers[l];
      if (this->Config.mlpDimension > 0)
      {
        this->SublayerBackward(tensors.mlpNorm, store.mlp,
          [&](const Number* dy, Number* dx) { this->MlpBackward(tensors, store, dy, dx); });
      }
      this->SublayerBackward(tensors.attentionNorm, store.attention,
        [&](const Number* dy, Number* dx) { this->AttentionBackward(l, dy, dx); });
    }
    this->EmbedBackward();
  }

  void AddMlp(const LayerTensors& tensors, LayerStore<Number>& store, const Number* input)
  {
    const std::int64_t rows = this->Part->Rows();
    const std::int64_t size = rows * this->Config.mlpDimension;
    Reserve(store.up, size);
    Reserve(store.hidden, size);
    this->Apply(tensors.up, rows, input, store.up.data(), false);
    if (this->Config.gated)
    {
      Reserve(store.gate, size);
      this->Apply(tensors.gate, rows, input, store.gate.data(), false);
      ActivateRows(this->Config.activation, size, store.gate.data(), store.hidden.data());
      for (std::int64_t i = 0; i < size; ++i)
      {
        store.hidden[ToIndex(i)] *= store.up[ToIndex(i)];
      }
    }
    else
    {
      ActivateRows(this->Config.activation, size, store.up.data(), store.hidden.data());
    }
    this->Apply(tensors.down, rows, store.hidden.data(), this->X.data(), true);
  }

  void MlpBackward(
    const LayerTensors& tensors, LayerStore<Number>& store, const Number* dy, Number* dx)
  {
    const std::int64_t rows = this->Part->Rows();
    const std::int64_t size = rows * this->Config.mlpDimension;
    Reserve(this->HiddenBuffer, size);
    Number* hidden = this->HiddenBuffer.data();
    this->Backward(tensors.down, rows, store.hidden.data(), dy, hidden, false);
    if (this->Config.gated)
    {
      // hidden = activation(gate) * up. The factor of dup is activation(gate) itself.
      Reserve(this->GateBuffer, size);
      Number* gate = this->GateBuffer.data();
      for (std::int64_t i = 0; i < size; ++i)
      {
        gate[i] = hidden[i] * store.up[ToIndex(i)];
      }
      ActivateBackward(this->Config.activation, size, store.gate.data(), gate, gate);
      this->Backward(tensors.gate, rows, store.mlp.input.data(), gate, dx, false);
      ActivateRows(this->Config.activation, size, store.gate.data(), gate);
      for (std::int64_t i = 0; i < size; ++i)
      {
        hidden[i] *= gate[i];
      }
      this->Backward(tensors.up, rows, store.mlp.input.data(), hidden, dx, true);
      return;
    }
    ActivateBackward(this->Config.activation, size, store.up.data(), hidden, hidden);
    this->Backward(tensors.up, rows, store.mlp.input.data(), hidden, dx, false);
  }

  // Attention.

  /// Columns of the packed matrix and the rows that they are multiplied with.
  struct HeadInput
  {
    std::int64_t first;
    std::int64_t count;
    const Number* rows;
    bool isShifted;
  };

  /// Queries and keys of Shortformer read the input plus positions.
  std::vector<HeadInput> HeadInputs(const LayerStore<Number>& store, const Number* input) const
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

  void ShiftInput(LayerStore<Number>& store, const Number* input) const
  {
    if (this->Config.position != PositionKind::Shortformer)
    {
      return;
    }
    const std::int64_t d = this->Config.modelDimension;
    const Number* positions = this->Block.Of(this->Weights.positionEmbedding);
    Reserve(store.shifted, this->Part->Rows() * d);
    std::copy_n(input, this->Part->Rows() * d, store.shifted.data());
    this->ForRows([&](std::int64_t row, std::int64_t position)
      { AddTo(d, positions + position * d, store.shifted.data() + row * d); });
  }

  /// Rotates queries and keys by the angles of their positions times `direction`, 1 or -1.
  void Rotate(Number* heads, Number direction) const
  {
    if (this->Config.position != PositionKind::Rotary)
    {
      return;
    }
    const std::int64_t columns = HeadColumns(this->Config);
    const std::int64_t half = this->Config.headDimension / 2;
    this->ForRows(
      [&](std::int64_t row, std::int64_t position)
      {
        const Number* cosines = this->Pass.Cosines.data() + position * half;
        const Number* sines = this->Pass.Sines.data() + position * half;
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

  void AddAttention(std::size_t l, const Number* input)
  {
    LayerStore<Number>& store = this->Layers[l];
    const PackedHeads<Number>& packed = this->Pass.Heads[l];
    const std::int64_t rows = this->Part->Rows();
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
        Number* weights = this->EvaluateAttention(block, l);
        Multiply<Number>(block.Queries(), this->Config.headDimension, block.keys, 1,
          { weights, block.keys, false }, { block.value, columns, false },
          store.mixed.data() + block.MixedBegin(), block.mixedStride, false);
      });
    this->Apply(this->Weights.layers[l].output, rows, store.mixed.data(), this->X.data(), true);
  }

  /// Queries begin <= i < end of a head in a sequence.
  struct HeadBlock
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

  template<class Function>
  void ForHeads(const LayerStore<Number>& store, const Function& function)
  {
    const TransformerConfig& config = this->Config;
    const std::int64_t columns = HeadColumns(config);
    const std::int64_t group = config.heads / config.keyHeads;
    HeadBlock block;
    block.dimension = config.headDimension;
    block.mixedStride = config.heads * config.headDimension;
    for (std::size_t s = 0; s < this->Part->Sequences(); ++s)
    {
      block.row = this->Part->offsets[s];
      const std::int64_t length = this->Part->offsets[s + 1] - block.row;
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

  /// The attention [queries, keys] of a block, packed.
  Number* EvaluateAttention(const HeadBlock& block, std::size_t layer)
  {
    const std::int64_t columns = HeadColumns(this->Config);
    Reserve(this->Scores, block.Queries() * block.keys);
    Number* scores = this->Scores.data();
    Multiply<Number>(block.Queries(), block.keys, this->Config.headDimension,
      this->ScoreScale(layer), { block.query, columns, false }, { block.key, columns, true },
      scores, block.keys, false);
    const auto slope = static_cast<Number>(this->Slopes[ToIndex(block.head)]);
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

  Number ScoreScale(std::size_t layer) const
  {
    return static_cast<Number>(this->Config.ScoreScale(static_cast<std::int64_t>(layer)));
  }

  /// Writes the gradients of queries, keys and values to HeadsBuffer from that of the mixed values.
  void MixBackward(std::size_t l)
  {
    const LayerStore<Number>& store = this->Layers[l];
    const std::int64_t columns = HeadColumns(this->Config);
    const std::int64_t dimension = this->Config.headDimension;
    const Number scale = this->ScoreScale(l);
    Reserve(this->HeadsBuffer, this->Part->Rows() * columns);
    std::fill_n(this->HeadsBuffer.data(), this->Part->Rows() * columns, Number(0));
    this->ForHeads(store,
      [&](const HeadBlock& block)
      {
        const Number* weights = this->EvaluateAttention(block, l);
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

  /// Turns the gradients of attention weights into scale times those of the scores.
  static void SoftmaxBackward(
    std::int64_t queries, std::int64_t keys, Number scale, const Number* weights, Number* gradients)
  {
    for (std::int64_t i = 0; i < queries; ++i, weights += keys, gradients += keys)
    {
      const Number mean =
        LaneSum<Number>(keys, [=](std::int64_t j) { return weights[j] * gradients[j]; });
      for (std::int64_t j = 0; j < keys; ++j)
      {
        gradients[j] = scale * weights[j] * (gradients[j] - mean);
      }
    }
  }

  void AttentionBackward(std::size_t l, const Number* dy, Number* dx)
  {
    LayerStore<Number>& store = this->Layers[l];
    const PackedHeads<Number>& packed = this->Pass.Heads[l];
    const std::int64_t rows = this->Part->Rows();
    const std::int64_t d = this->Config.modelDimension;
    const std::int64_t columns = HeadColumns(this->Config);
    Reserve(this->MixedBuffer, rows * this->Config.heads * this->Config.headDimension);
    this->Backward(this->Weights.layers[l].output, rows, store.mixed.data(), dy,
      this->MixedBuffer.data(), false);
    this->MixBackward(l);
    const Number* heads = this->HeadsBuffer.data();
    this->Rotate(this->HeadsBuffer.data(), -1);
    AddColumnSums(rows, columns, heads, columns, this->HeadGradients[l].bias.data());
    bool add = false;
    for (const HeadInput& part : this->HeadInputs(store, store.attention.input.data()))
    {
      Multiply<Number>(d, part.count, rows, 1, { part.rows, d, true },
        { heads + part.first, columns, false }, this->HeadGradients[l].weight.data() + part.first,
        columns, true);
      Multiply<Number>(rows, d, part.count, 1, { heads + part.first, columns, false },
        { packed.weight.data() + part.first, columns, true }, dx, d, add);
      if (part.isShifted)
      {
        Number* positions = this->GradientOf(this->Weights.positionEmbedding);
        this->ForRows([&](std::int64_t row, std::int64_t position)
          { AddTo(d, dx + row * d, positions + position * d); });
      }
      add = true;
    }
  }

  // The loss.

  void SelectRows()
  {
    const std::int64_t d = this->Config.modelDimension;
    this->Rows.clear();
    for (std::int64_t row = 0; row < this->Part->Rows(); ++row)
    {
      if (this->TargetOf(row) >= 0)
      {
        this->Rows.push_back(row);
      }
    }
    Reserve(this->Selected, static_cast<std::int64_t>(this->Rows.size()) * d);
    Number* to = this->Selected.data();
    for (const std::int64_t row : this->Rows)
    {
      to = std::copy_n(this->X.data() + row * d, d, to);
    }
  }

  std::int64_t TargetOf(std::int64_t row) const
  {
    return this->Batch->targets[ToIndex(this->Part->firstRow + row)];
  }

  /// The loss and, if there is one, the gradient of a slice.
  double Unembed()
  {
    this->SelectRows();
    const auto rows = static_cast<std::int64_t>(this->Rows.size());
    const std::int64_t d = this->Config.modelDimension;
    const LinearTensors& unembedding = this->Block.GetUnembedding();
    const bool transforms = this->Weights.logitsTransform.Exists();
    if (rows == 0)
    {
      return 0;
    }
    Number* x = this->Selected.data();
    if (this->Config.finalNorm)
    {
      this->ApplyNorm(this->Weights.finalNorm, rows, x, x, this->Final);
    }
    if (transforms)
    {
      this->TransformForLogits(rows);
      x = this->LastNorm.input.data();
    }
    Reserve(this->Logits, rows * unembedding.outputs);
    this->Apply(unembedding, rows, x, this->Logits.data(), false);
    const double loss = this->EvaluateLoss(rows, unembedding.outputs);
    if (this->Grad == nullptr)
    {
      return loss;
    }
    Reserve(this->Buffer, this->Part->Rows() * d);
    this->Backward(unembedding, rows, x, this->Logits.data(), this->Buffer.data(), false);
    if (transforms)
    {
      this->TransformBackward(rows);
    }
    this->SpreadGradient(rows);
    this->BackwardLayers();
    return loss;
  }

  /// X = the gradient of the residual stream after the last layer, from that in Buffer.
  void SpreadGradient(std::int64_t rows)
  {
    const std::int64_t d = this->Config.modelDimension;
    Number* gradient = this->Buffer.data();
    if (this->Config.finalNorm)
    {
      this->NormBackward(
        this->Weights.finalNorm, rows, this->Final, gradient, this->Selected.data(), false);
      gradient = this->Selected.data();
    }
    std::fill_n(this->X.data(), this->Part->Rows() * d, Number(0));
    for (std::int64_t i = 0; i < rows; ++i)
    {
      std::copy_n(gradient + i * d, d, this->X.data() + this->Rows[ToIndex(i)] * d);
    }
  }

  /// BERT: LastNorm.input = norm(activation(Selected W + b)).
  void TransformForLogits(std::int64_t rows)
  {
    const std::int64_t size = rows * this->Config.modelDimension;
    Reserve(this->Transform, size);
    Reserve(this->LastNorm.input, size);
    Reserve(this->Buffer, size);
    this->Apply(
      this->Weights.logitsTransform, rows, this->Selected.data(), this->Transform.data(), false);
    ActivateRows(this->Config.activation, size, this->Transform.data(), this->Buffer.data());
    this->ApplyNorm(this->Weights.logitsNorm, rows, this->Buffer.data(),
      this->LastNorm.input.data(), this->LastNorm);
  }

  /// Buffer is the gradient of the input of the unembedding, then that of Selected.
  void TransformBackward(std::int64_t rows)
  {
    const std::int64_t size = rows * this->Config.modelDimension;
    Number* gradient = this->LastNorm.input.data(); // no longer needed
    this->NormBackward(
      this->Weights.logitsNorm, rows, this->LastNorm, this->Buffer.data(), gradient, false);
    ActivateBackward(this->Config.activation, size, this->Transform.data(), gradient, gradient);
    this->Backward(this->Weights.logitsTransform, rows, this->Selected.data(), gradient,
      this->Buffer.data(), false);
  }

  /// The sum of the losses; turns the logits into their gradient.
  double EvaluateLoss(std::int64_t rows, std::int64_t classes)
  {
    double sum = 0;
    for (std::int64_t i = 0; i < rows; ++i)
    {
      Number* logits = this->Logits.data() + i * classes;
      const std::int64_t row = this->Rows[ToIndex(i)];
      const std::int64_t target = this->TargetOf(row);
      const std::int64_t best = std::max_element(logits, logits + classes) - logits;
      const double difference = static_cast<double>(logits[best]) - logits[target];
      SoftmaxOf(classes, logits);
      // The largest of the probabilities is 1 / sum exp(logit - largest).
      const double loss = difference - std::log(static_cast<double>(logits[best]));
      sum += loss;
      if (this->Results != nullptr)
      {
        this->Results->loss[ToIndex(this->Part->firstRow + row)] = loss;
        this->Results->predicted[ToIndex(this->Part->firstRow + row)] = best;
      }
      for (std::int64_t c = 0; c < classes; ++c)
      {
        logits[c] *= this->Weight;
      }
      logits[target] -= this->Weight;
    }
    return sum;
  }
};

template<class Number>
GradientPass<Number>::GradientPass(const ParameterBlock<Number>& parameters)
  : Parameters(parameters)
{
  RequireNoSwitches(parameters.GetConfig(), "learning");
  if (parameters.GetConfig().rotaryScaling.kind != RotaryScaling::Kind::None)
  {
    throw ModelError("learning: expected a model without scaling of its rotary embedding, found " +
                     parameters.GetConfig().architecture + ".");
  }
}

template<class Number>
GradientPass<Number>::~GradientPass() = default;

template<class Number>
void GradientPass<Number>::PackHeads()
{
  const TransformerConfig& config = this->Parameters.GetConfig();
  const std::int64_t columns = HeadColumns(config);
  this->Heads.resize(ToIndex(config.layers));
  for (std::size_t l = 0; l < this->Heads.size(); ++l)
  {
    PackedHeads<Number>& packed = this->Heads[l];
    packed.weight.resize(ToIndex(config.modelDimension * columns));
    packed.bias.assign(ToIndex(columns), 0);
    for (const HeadKind& kind :
      HeadKinds(config, this->Parameters.GetModel().GetWeights().layers[l]))
    {
      const Number* weight = this->Parameters.Of(kind.linear->weight);
      ForHeadWeights(*kind.linear, kind.heads, config.headDimension, kind.first, columns,
        [&](std::int64_t to, std::int64_t from) { packed.weight[ToIndex(to)] = weight[from]; });
      if (kind.linear->bias.data != nullptr)
      {
        const Number* bias = this->Parameters.Of(kind.linear->bias);
        for (std::int64_t h = 0; h < kind.heads; ++h)
        {
          std::copy_n(bias + kind.linear->headFirst + h * kind.linear->headStep,
            config.headDimension, packed.bias.data() + kind.first + h * config.headDimension);
        }
      }
    }
  }
}

template<class Number>
void GradientPass<Number>::PrepareRotations(std::int64_t length)
{
  const TransformerConfig& config = this->Parameters.GetConfig();
  const std::int64_t half = config.headDimension / 2;
  if (config.position != PositionKind::Rotary || this->Cosines.size() >= ToIndex(length * half))
  {
    return;
  }
  this->Cosines.clear();
  this->Sines.clear();
  for (std::int64_t position = 0; position < length; ++position)
  {
    for (std::int64_t i = 0; i < half; ++i)
    {
      const Number frequency = static_cast<Number>(std::pow(config.rotaryBase,
        -2 * static_cast<double>(i) / static_cast<double>(config.headDimension)));
      // In single precision as in the original code.
      const Number angle = static_cast<Number>(position) * frequency;
      this->Cosines.push_back(std::cos(angle));
      this->Sines.push_back(std::sin(angle));
    }
  }
}

template<class Number>
std::vector<std::vector<typename GradientPass<Number>::Slice>> GradientPass<Number>::MakeShards(
  const TrainingBatch& batch) const
{
  const std::vector<std::int64_t> lengths =
    SequenceLengths(this->Parameters.GetConfig(), batch.input);
  const auto count = static_cast<std::int64_t>(lengths.size());
  const std::int64_t shardCount = std::min(ShardCount, count);
  std::vector<std::vector<Slice>> shards(ToIndex(shardCount));
  std::int64_t row = 0;
  for (std::int64_t s = 0; s < count; ++s)
  {
    std::vector<Slice>& shard = shards[ToIndex(s * shardCount / count)];
    const std::int64_t length = lengths[ToIndex(s)];
    if (shard.empty() || shard.back().Rows() + length > SliceRows)
    {
      shard.push_back({ s, { 0 }, row });
    }
    shard.back().offsets.push_back(shard.back().Rows() + length);
    row += length;
  }
  return shards;
}

template<class Number>
std::unique_ptr<typename GradientPass<Number>::Worker> GradientPass<Number>::TakeWorker()
{
  const std::lock_guard<std::mutex> lock(this->Mutex);
  if (this->Idle.empty())
  {
    return std::make_unique<Worker>(*this);
  }
  std::unique_ptr<Worker> worker = std::move(this->Idle.back());
  this->Idle.pop_back();
  return worker;
}

namespace
{

/// The number of rows that have a target. Throws unless they fit the model.
std::int64_t CountTargets(
  const TransformerConfig& config, std::int64_t classes, const TrainingBatch& batch)
{
  CheckInput(config, batch.input);
  std::int64_t rows = 0;
  for (const std::int64_t length : SequenceLengths(config, batch.input))
  {
    rows += length;
  }
  if (batch.targets.size() != ToIndex(rows))
  {
    throw OptionError("the targets of a batch: expected one for each of " + std::to_string(rows) +
                      " rows, found " + std::to_string(batch.targets.size()) + ".");
  }
  std::int64_t count = 0;
  for (const std::int64_t target : batch.targets)
  {
    if (target >= classes)
    {
      throw OptionError("the targets of a batch: expected less than " + std::to_string(classes) +
                        ", the number of classes, found " + std::to_string(target) + ".");
    }
    count += target >= 0 ? 1 : 0;
  }
  if (count == 0)
  {
    throw OptionError("the targets of a batch: no row has one.");
  }
  return count;
}

}

template<class Number>
double GradientPass<Number>::Run(
  const TrainingBatch& batch, int threads, std::size_t& shardCount, RowResults* rows, bool backward)
{
  const std::int64_t targets =
    CountTargets(this->Parameters.GetConfig(), this->Parameters.GetUnembedding().outputs, batch);
  const std::vector<std::vector<Slice>> shards = this->MakeShards(batch);
  shardCount = shards.size();
  this->PackHeads();
  std::int64_t longest = 0;
  for (const std::int64_t length : SequenceLengths(this->Parameters.GetConfig(), batch.input))
  {
    longest = std::max(longest, length);
  }
  this->PrepareRotations(longest);
  if (backward && this->ShardGradients.size() < shards.size())
  {
    this->ShardGradients.resize(shards.size());
  }
  std::vector<double> losses(shards.size());
  const SingleThreadedBlas single;
  ParallelFor(static_cast<std::int64_t>(shards.size()), threads,
    [&](std::int64_t i)
    {
      std::unique_ptr<Worker> worker = this->TakeWorker();
      Number* gradient = nullptr;
      if (backward)
      {
        this->ShardGradients[ToIndex(i)].assign(ToIndex(this->Parameters.Size()), 0);
        gradient = this->ShardGradients[ToIndex(i)].data();
      }
      worker->Begin(batch, 1 / static_cast<Number>(targets), rows, gradient);
      for (const Slice& slice : shards[ToIndex(i)])
      {
        losses[ToIndex(i)] += worker->Run(slice);
      }
      worker->End();
      const std::lock_guard<std::mutex> lock(this->Mutex);
      this->Idle.push_back(std::move(worker));
    });
  double sum = 0;
  for (const double loss : losses)
  {
    sum += loss;
  }
  return sum / static_cast<double>(targets);
}

template<class Number>
double GradientPass<Number>::Loss(const TrainingBatch& batch, int threads, RowResults& rows)
{
  rows.loss.assign(batch.targets.size(), 0);
  rows.predicted.assign(batch.targets.size(), -1);
  std::size_t shards = 0;
  return this->Run(batch, threads, shards, &rows, false);
}

template<class Number>
double GradientPass<Number>::Gradient(const TrainingBatch& batch, int threads, Number* gradient)
{
  std::size_t shards = 0;
  const double loss = this->Run(batch, threads, shards, nullptr, true);
  constexpr std::int64_t block = 16384;
  const std::int64_t size = this->Parameters.Size();
  ParallelFor((size + block - 1) / block, threads,
    [&](std::int64_t b)
    {
      const std::int64_t first = b * block;
      const std::int64_t count = std::min(block, size - first);
      std::copy_n(this->ShardGradients[0].data() + first, count, gradient + first);
      for (std::size_t s = 1; s < shards; ++s)
      {
        AddTo(count, this->ShardGradients[s].data() + first, gradient + first);
      }
    });
  return loss;
}

template class GradientPass<float>;
template class GradientPass<double>;

}
