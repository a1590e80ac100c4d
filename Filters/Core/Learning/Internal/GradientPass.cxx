#include "GradientPass.h"

#include "Base/Error.h"
#include "Base/Parallel.h"
#include "EmbeddingGradient.h"
#include "Weights/ArchitectureLimits.h"

#include <cmath>
#include <numeric>
#include <utility>

namespace atlas
{
namespace
{

/// The number of shards of a large batch.
constexpr std::int64_t ShardCount = 8;

/// Rows that are run together, unless a single sequence has more.
constexpr std::int64_t SliceRows = 1024;

/// Divides the sequences of a batch, of these lengths, into shards of slices.
std::vector<std::vector<BatchSlice>> MakeShards(const std::vector<std::int64_t>& lengths)
{
  const std::int64_t count = lengths.size();
  const std::int64_t shardCount = std::min(ShardCount, count);
  std::vector<std::vector<BatchSlice>> shards(shardCount);
  std::int64_t row = 0;
  for (std::int64_t s = 0; s < count; ++s)
  {
    std::vector<BatchSlice>& shard = shards[s * shardCount / count];
    const std::int64_t length = lengths[s];
    if (shard.empty() || shard.back().Rows() + length > SliceRows)
    {
      shard.push_back({ s, { 0 }, row });
    }
    shard.back().offsets.push_back(shard.back().Rows() + length);
    row += length;
  }
  return shards;
}

/// The number of targets, one per row. Throws OptionError unless they fit the model.
std::int64_t CountTargets(
  std::int64_t classes, std::int64_t rows, const std::vector<std::int64_t>& targets)
{
  const std::int64_t size = targets.size();
  ThrowIf<OptionError>(size != rows, "the targets of a batch: expected one for each of ", rows,
    " rows, found ", size, ".");
  std::int64_t count = 0;
  for (const std::int64_t target : targets)
  {
    ThrowIf<OptionError>(target >= classes, "the targets of a batch: expected less than ", classes,
      ", the number of classes, found ", target, ".");
    count += target >= 0 ? 1 : 0;
  }
  ThrowIf<OptionError>(count == 0, "the targets of a batch: no row has one.");
  return count;
}

}

/// Runs slices forward and backward, with memory that is used again.
template<class Number>
class GradientPass<Number>::Worker
{
public:
  Worker(const ParameterBlock<Number>& parameters, const AttentionTables<Number>& tables)
    : Parameters(parameters)
    , Config(parameters.GetConfig())
    , Weights(parameters.GetModel().GetWeights())
    , Maps(parameters)
    , Embedding(parameters, Maps)
    , Attention(parameters, Maps, tables)
    , Layers(Weights.layers.size())
  {
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Begins a shard, whose gradient is added to `gradient`; nullptr: none is computed. `weight` is
  /// 1 / targets of the batch.
  void Begin(const TrainingBatch& batch, Number weight, BatchEvaluation* results, Number* gradient)
  {
    this->Batch = &batch;
    this->Weight = weight;
    this->Results = results;
    this->Maps.SetGradient(gradient);
    if (gradient != nullptr)
    {
      this->Attention.Begin();
    }
  }

  /// The sum of the losses of the rows of a slice.
  double Run(const BatchSlice& slice)
  {
    this->Slice = &slice;
    this->Forward();
    return this->Unembed();
  }

  /// Ends a shard.
  void End()
  {
    if (this->Maps.HasGradient())
    {
      this->Attention.End();
    }
  }

private:
  /// What the forward pass of a layer keeps for the backward pass.
  struct LayerStore
  {
    SublayerStore<Number> attention;
    SublayerStore<Number> mlp;
    std::vector<Number> up;     ///< [rows, m], before the activation
    std::vector<Number> gate;   ///< [rows, m], before the activation; gated MLP only
    std::vector<Number> hidden; ///< [rows, m]
  };

  const ParameterBlock<Number>& Parameters;
  const TransformerConfig& Config;
  const TransformerWeights& Weights;
  ParameterMaps<Number> Maps;
  EmbeddingGradient<Number> Embedding;
  AttentionGradient<Number> Attention;
  std::vector<LayerStore> Layers;

  const TrainingBatch* Batch = nullptr;
  const BatchSlice* Slice = nullptr;
  Number Weight = 0;
  BatchEvaluation* Results = nullptr;

  std::vector<Number> X;          ///< the residual stream [rows, d], later its gradient
  std::vector<std::int64_t> Rows; ///< of the slice that have targets
  std::vector<Number> Selected;   ///< their residual stream
  SublayerStore<Number> Final;
  std::vector<Number> Transform;  ///< BERT: before the activation
  SublayerStore<Number> LastNorm; ///< BERT
  std::vector<Number> Logits;
  std::vector<Number> Buffer; ///< gradients of the input of a sublayer
  std::vector<Number> HiddenBuffer;
  std::vector<Number> GateBuffer;

  bool IsPreNorm() const { return this->Config.normPlace == NormPlace::BeforeSublayer; }

  /// Runs a sublayer with its normalization: add(input) adds to X.
  template<class Add>
  void Sublayer(const NormTensors& norm, SublayerStore<Number>& store, const Add& add)
  {
    const std::int64_t rows = this->Slice->Rows();
    const std::int64_t size = rows * this->Config.modelDimension;
    Reserve(store.input, size);
    if (this->IsPreNorm())
    {
      this->Maps.ApplyNorm(norm, rows, this->X.data(), store.input.data(), store);
      add(store.input.data());
    }
    else
    {
      std::copy_n(this->X.data(), size, store.input.data());
      add(store.input.data());
      this->Maps.ApplyNorm(norm, rows, this->X.data(), this->X.data(), store);
    }
  }

  /// X is the gradient of the residual stream after the sublayer, then that before it;
  /// backward(dy, dx) writes the gradient of the sublayer's input.
  template<class BackwardFunction>
  void SublayerBackward(
    const NormTensors& norm, const SublayerStore<Number>& store, const BackwardFunction& backward)
  {
    const std::int64_t rows = this->Slice->Rows();
    const std::int64_t size = rows * this->Config.modelDimension;
    Reserve(this->Buffer, size);
    if (this->IsPreNorm())
    {
      backward(this->X.data(), this->Buffer.data());
      this->Maps.NormBackward(norm, rows, store, this->Buffer.data(), this->X.data(), true);
    }
    else
    {
      this->Maps.NormBackward(norm, rows, store, this->X.data(), this->Buffer.data(), false);
      this->X.swap(this->Buffer);
      backward(this->X.data(), this->Buffer.data());
      AddTo(size, this->Buffer.data(), this->X.data());
    }
  }

  void Forward()
  {
    Reserve(this->X, this->Slice->Rows() * this->Config.modelDimension);
    this->Embedding.Embed(this->Batch->input, *this->Slice, this->X.data());
    for (std::size_t l = 0; l < this->Layers.size(); ++l)
    {
      const LayerTensors& tensors = this->Weights.layers[l];
      LayerStore& store = this->Layers[l];
      this->Sublayer(tensors.attentionNorm, store.attention, [&](const Number* input)
        { this->Attention.AddAttention(*this->Slice, l, input, this->X.data()); });
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
      LayerStore& store = this->Layers[l];
      if (this->Config.mlpDimension > 0)
      {
        this->SublayerBackward(tensors.mlpNorm, store.mlp,
          [&](const Number* dy, Number* dx) { this->MlpBackward(tensors, store, dy, dx); });
      }
      this->SublayerBackward(tensors.attentionNorm, store.attention,
        [&](const Number* dy, Number* dx)
        {
          this->Attention.AttentionBackward(*this->Slice, l, store.attention.input.data(), dy, dx);
        });
    }
    this->Embedding.EmbedBackward(this->Batch->input, *this->Slice, this->X.data());
  }

  void AddMlp(const LayerTensors& tensors, LayerStore& store, const Number* input)
  {
    const std::int64_t rows = this->Slice->Rows();
    const std::int64_t size = rows * this->Config.mlpDimension;
    Reserve(store.up, size);
    Reserve(store.hidden, size);
    this->Maps.Apply(tensors.up, rows, input, store.up.data(), false);
    if (this->Config.gated)
    {
      Reserve(store.gate, size);
      this->Maps.Apply(tensors.gate, rows, input, store.gate.data(), false);
    }
    const std::vector<Number>& activated = this->Config.gated ? store.gate : store.up;
    ActivateRows(this->Config.activation, size, activated.data(), store.hidden.data());
    for (std::int64_t i = 0; this->Config.gated && i < size; ++i)
    {
      store.hidden[i] *= store.up[i];
    }
    this->Maps.Apply(tensors.down, rows, store.hidden.data(), this->X.data(), true);
  }

  void MlpBackward(const LayerTensors& tensors, LayerStore& store, const Number* dy, Number* dx)
  {
    const std::int64_t rows = this->Slice->Rows();
    const std::int64_t size = rows * this->Config.mlpDimension;
    Reserve(this->HiddenBuffer, size);
    Number* hidden = this->HiddenBuffer.data();
    this->Maps.Backward(tensors.down, rows, store.hidden.data(), dy, hidden, false);
    if (this->Config.gated)
    {
      // hidden = activation(gate) * up. The factor of dup is activation(gate) itself.
      Reserve(this->GateBuffer, size);
      Number* gate = this->GateBuffer.data();
      for (std::int64_t i = 0; i < size; ++i)
      {
        gate[i] = hidden[i] * store.up[i];
      }
      ActivateBackward(this->Config.activation, size, store.gate.data(), gate, gate);
      this->Maps.Backward(tensors.gate, rows, store.mlp.input.data(), gate, dx, false);
      ActivateRows(this->Config.activation, size, store.gate.data(), gate);
      for (std::int64_t i = 0; i < size; ++i)
      {
        hidden[i] *= gate[i];
      }
    }
    else
    {
      ActivateBackward(this->Config.activation, size, store.up.data(), hidden, hidden);
    }
    this->Maps.Backward(tensors.up, rows, store.mlp.input.data(), hidden, dx, this->Config.gated);
  }

  // The loss.

  void SelectRows()
  {
    const std::int64_t d = this->Config.modelDimension;
    this->Rows.clear();
    for (std::int64_t row = 0; row < this->Slice->Rows(); ++row)
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
    return this->Batch->targets[this->Slice->firstRow + row];
  }

  /// The loss and, if there is one, the gradient of a slice.
  double Unembed()
  {
    this->SelectRows();
    const std::int64_t rows = this->Rows.size();
    const std::int64_t d = this->Config.modelDimension;
    const LinearTensors& unembedding = this->Parameters.GetUnembedding();
    const bool transforms = this->Weights.logitsTransform.Exists();
    if (rows == 0)
    {
      return 0;
    }
    Number* x = this->Selected.data();
    if (this->Config.finalNorm)
    {
      this->Maps.ApplyNorm(this->Weights.finalNorm, rows, x, x, this->Final);
    }
    if (transforms)
    {
      this->TransformForLogits(rows);
      x = this->LastNorm.input.data();
    }
    Reserve(this->Logits, rows * unembedding.outputs);
    this->Maps.Apply(unembedding, rows, x, this->Logits.data(), false);
    const double loss = this->EvaluateLoss(rows, unembedding.outputs);
    if (!this->Maps.HasGradient())
    {
      return loss;
    }
    Reserve(this->Buffer, this->Slice->Rows() * d);
    this->Maps.Backward(unembedding, rows, x, this->Logits.data(), this->Buffer.data(), false);
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
      this->Maps.NormBackward(
        this->Weights.finalNorm, rows, this->Final, gradient, this->Selected.data(), false);
      gradient = this->Selected.data();
    }
    std::fill_n(this->X.data(), this->Slice->Rows() * d, Number(0));
    for (std::int64_t i = 0; i < rows; ++i)
    {
      std::copy_n(gradient + i * d, d, this->X.data() + this->Rows[i] * d);
    }
  }

  /// BERT: LastNorm.input = norm(activation(Selected W + b)).
  void TransformForLogits(std::int64_t rows)
  {
    const std::int64_t size = rows * this->Config.modelDimension;
    Reserve(this->Transform, size);
    Reserve(this->LastNorm.input, size);
    Reserve(this->Buffer, size);
    this->Maps.Apply(
      this->Weights.logitsTransform, rows, this->Selected.data(), this->Transform.data(), false);
    ActivateRows(this->Config.activation, size, this->Transform.data(), this->Buffer.data());
    this->Maps.ApplyNorm(this->Weights.logitsNorm, rows, this->Buffer.data(),
      this->LastNorm.input.data(), this->LastNorm);
  }

  /// Buffer is the gradient of the input of the unembedding, then that of Selected.
  void TransformBackward(std::int64_t rows)
  {
    const std::int64_t size = rows * this->Config.modelDimension;
    Number* gradient = this->LastNorm.input.data(); // no longer needed
    this->Maps.NormBackward(
      this->Weights.logitsNorm, rows, this->LastNorm, this->Buffer.data(), gradient, false);
    ActivateBackward(this->Config.activation, size, this->Transform.data(), gradient, gradient);
    this->Maps.Backward(this->Weights.logitsTransform, rows, this->Selected.data(), gradient,
      this->Buffer.data(), false);
  }

  /// The sum of the losses; turns the logits into their gradient.
  double EvaluateLoss(std::int64_t rows, std::int64_t classes)
  {
    double sum = 0;
    for (std::int64_t i = 0; i < rows; ++i)
    {
      Number* logits = this->Logits.data() + i * classes;
      const std::int64_t row = this->Rows[i];
      const std::int64_t target = this->TargetOf(row);
      const std::int64_t best = std::max_element(logits, logits + classes) - logits;
      const double difference = static_cast<double>(logits[best]) - logits[target];
      SoftmaxOf(classes, logits);
      // The largest of the probabilities is 1 / sum exp(logit - largest).
      const double loss = difference - std::log(static_cast<double>(logits[best]));
      sum += loss;
      if (this->Results != nullptr)
      {
        this->Results->rowLoss[this->Slice->firstRow + row] = loss;
        this->Results->predicted[this->Slice->firstRow + row] = best;
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
  ThrowIf<ModelError>(parameters.GetConfig().rotaryScaling.kind != RotaryScaling::Kind::None,
    "learning: expected a model without scaling of its rotary embedding, found ",
    parameters.GetConfig().architecture, ".");
}

template<class Number>
GradientPass<Number>::~GradientPass() = default;

template<class Number>
std::unique_ptr<typename GradientPass<Number>::Worker> GradientPass<Number>::TakeWorker()
{
  const std::lock_guard<std::mutex> lock(this->Mutex);
  if (this->Idle.empty())
  {
    return std::make_unique<Worker>(this->Parameters, this->Tables);
  }
  std::unique_ptr<Worker> worker = std::move(this->Idle.back());
  this->Idle.pop_back();
  return worker;
}

template<class Number>
double GradientPass<Number>::Run(const TrainingBatch& batch, int threads, BatchEvaluation* results)
{
  const TransformerConfig& config = this->Parameters.GetConfig();
  CheckInput(config, batch.input);
  const std::vector<std::int64_t> lengths = SequenceLengths(config, batch.input);
  const std::int64_t targets = CountTargets(this->Parameters.GetUnembedding().outputs,
    std::accumulate(lengths.begin(), lengths.end(), std::int64_t{ 0 }), batch.targets);
  const std::vector<std::vector<BatchSlice>> shards = MakeShards(lengths);
  this->Tables.Prepare(this->Parameters, *std::max_element(lengths.begin(), lengths.end()));
  this->ShardGradients.resize(shards.size());
  std::vector<double> losses(shards.size());
  const SingleThreadedBlas single;
  ParallelFor(shards.size(), threads,
    [&](std::int64_t i)
    {
      std::unique_ptr<Worker> worker = this->TakeWorker();
      Number* gradient = nullptr;
      if (results == nullptr)
      {
        this->ShardGradients[i].assign(this->Parameters.Size(), 0);
        gradient = this->ShardGradients[i].data();
      }
      worker->Begin(batch, 1 / static_cast<Number>(targets), results, gradient);
      for (const BatchSlice& slice : shards[i])
      {
        losses[i] += worker->Run(slice);
      }
      worker->End();
      const std::lock_guard<std::mutex> lock(this->Mutex);
      this->Idle.push_back(std::move(worker));
    });
  return std::accumulate(losses.begin(), losses.end(), 0.) / static_cast<double>(targets);
}

template<class Number>
BatchEvaluation GradientPass<Number>::Evaluate(const TrainingBatch& batch, int threads)
{
  const std::size_t rows = batch.targets.size();
  BatchEvaluation result{ 0, 0, std::vector<double>(rows), std::vector<std::int64_t>(rows, -1) };
  result.loss = this->Run(batch, threads, &result);
  result.accuracy = ShareRight(batch, result.predicted, [](std::int64_t) { return true; });
  return result;
}

template<class Number>
double GradientPass<Number>::Gradient(const TrainingBatch& batch, int threads, Number* gradient)
{
  const double loss = this->Run(batch, threads, nullptr);
  constexpr std::int64_t block = 16384;
  const std::int64_t size = this->Parameters.Size();
  ParallelFor((size + block - 1) / block, threads,
    [&](std::int64_t b)
    {
      const std::int64_t first = b * block;
      const std::int64_t count = std::min(block, size - first);
      std::copy_n(this->ShardGradients[0].data() + first, count, gradient + first);
      for (std::size_t s = 1; s < this->ShardGradients.size(); ++s)
      {
        AddTo(count, this->ShardGradients[s].data() + first, gradient + first);
      }
    });
  return loss;
}

template class GradientPass<float>;
template class GradientPass<double>;

BatchEvaluation EvaluateBatch(const Transformer& model, const TrainingBatch& batch, int threads)
{
  const ParameterBlock<float> parameters(model.GetConfig(), model.GetFiles().GetTensors());
  return GradientPass<float>(parameters).Evaluate(batch, threads);
}

}
