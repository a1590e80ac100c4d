#include "GradientRun.h"

#include "Base/Error.h"
#include "Base/Parallel.h"
#include "Internal/PositionEncoding.h"
#include "Internal/SublayerFinish.h"
#include "Internal/TransformerEmbedding.h"
#include "Internal/WideMath.h"
#include "Numerics/AttentionKernels.h"
#include "Numerics/MatrixProduct.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace atlas
{
namespace
{

using Vector = Eigen::RowVectorXd;

/// The columns of a head in a matrix of all heads.
auto HeadColumns(const DoubleMatrix& all, std::int64_t head, std::int64_t dimension)
{
  return all.middleCols(head * dimension, dimension);
}

}

/// The parts of a model by layer.
struct GradientRun::Impl
{
  const Transformer& Model;
  const TransformerConfig& Config;
  const TransformerWeights& Weights;
  PositionEncoding Positions;
  int Threads;

  Impl(const Transformer& model, std::int64_t length, int threads)
    : Model(model)
    , Config(model.GetConfig())
    , Weights(model.GetWeights())
    , Positions(this->Config, this->Weights, length)
    , Threads(threads)
  {
  }

  /// Normalizations before the sublayers of a layer; nothing where they come after them.
  WideNorm NormBefore(const NormTensors& tensors, bool exists) const
  {
    const bool is = exists && this->Config.normPlace != NormPlace::AfterOutput;
    return { this->Config, is ? tensors : NormTensors(), is ? this->Config.norm : NormKind::None,
      this->Config.modelDimension };
  }
  WideNorm AttentionNorm(std::int64_t l) const
  {
    return this->NormBefore(
      this->Weights.layers[l].attentionNorm, l > 0 || this->Config.firstAttentionIsNormed);
  }
  WideNorm MlpNorm(std::int64_t l) const
  {
    return this->Config.order == SublayerOrder::ParallelOfOneNorm
             ? this->AttentionNorm(l)
             : this->NormBefore(this->Weights.layers[l].mlpNorm, true);
  }
  WideNorm FinalNorm() const
  {
    return { this->Config, this->Config.finalNorm ? this->Weights.finalNorm : NormTensors(),
      this->Config.finalNorm ? this->Config.norm : NormKind::None, this->Config.modelDimension };
  }
  SublayerFinish AttentionFinish(std::int64_t l) const
  {
    const LayerTensors& tensors = this->Weights.layers[l];
    return { this->Config, tensors.attentionAfter, tensors.attentionScale };
  }
  SublayerFinish MlpFinish(std::int64_t l) const
  {
    const LayerTensors& tensors = this->Weights.layers[l];
    return { this->Config, tensors.mlpAfter, tensors.mlpScale };
  }

  std::int64_t KeyHead(std::int64_t head) const
  {
    return head / (this->Config.heads / this->Config.keyHeads);
  }

  // Queries and keys: from what their matrices give to what is multiplied.

  /// The normalization of the queries or keys of a head, if there is one.
  std::optional<WideNorm> HeadNorm(const std::vector<NormTensors>& norms, std::int64_t head) const
  {
    if (norms.empty())
    {
      return std::nullopt;
    }
    return WideNorm(this->Config, norms.size() == 1 ? norms.front() : norms[head],
      this->Config.norm, this->Config.headDimension);
  }

  void Rotate(std::int64_t l, double direction, DoubleMatrix& rows) const
  {
    const RotationTable* rotation = this->Positions.Rotation(l, rows.rows());
    if (rotation == nullptr)
    {
      return;
    }
    const std::int64_t first =
      this->Config.rotatesLast ? this->Config.headDimension - this->Config.RotatedDimension() : 0;
    for (std::int64_t t = 0; t < rows.rows(); ++t)
    {
      rotation->Apply(t, rows.row(t).data() + first, direction);
    }
  }

  DoubleMatrix Turned(std::int64_t l, const std::vector<NormTensors>& norms, std::int64_t head,
    DoubleMatrix rows) const
  {
    const std::optional<WideNorm> norm = this->HeadNorm(norms, head);
    if (this->Config.normsQueriesLast)
    {
      this->Rotate(l, 1, rows);
    }
    if (norm)
    {
      rows = norm->Apply(rows);
    }
    if (!this->Config.normsQueriesLast)
    {
      this->Rotate(l, 1, rows);
    }
    return rows;
  }

  /// The gradient of `rows` from that of what they were turned into.
  DoubleMatrix TurnedBack(std::int64_t l, const std::vector<NormTensors>& norms, std::int64_t head,
    DoubleMatrix rows, DoubleMatrix gradient) const
  {
    const std::optional<WideNorm> norm = this->HeadNorm(norms, head);
    if (!this->Config.normsQueriesLast)
    {
      this->Rotate(l, -1, gradient);
    }
    else
    {
      this->Rotate(l, 1, rows);
    }
    if (norm)
    {
      gradient = norm->Backward(rows, gradient);
    }
    if (this->Config.normsQueriesLast)
    {
      this->Rotate(l, -1, gradient);
    }
    return gradient;
  }

  /// What a head of a layer computes with.
  struct Head
  {
    DoubleMatrix query; ///< [T, d_head], turned
    DoubleMatrix key;
    DoubleMatrix value;
    DoubleMatrix scores;  ///< [T, T], scaled and capped, without biases
    DoubleMatrix weights; ///< [T, T], the attention
  };

  /// From what the matrices give for it [T, d_head].
  Head MakeHead(std::int64_t l, std::int64_t head, const DoubleMatrix& query,
    const DoubleMatrix& key, DoubleMatrix value) const
  {
    const LayerTensors& tensors = this->Weights.layers[l];
    Head found;
    found.query = this->Turned(l, tensors.queryNorm, head, query);
    found.key = this->Turned(l, tensors.keyNorm, this->KeyHead(head), key);
    found.value = std::move(value);
    found.scores =
      this->Config.ScoreScale(l) * Product(found.query, found.key, true, this->Threads);
    if (const double cap = this->Config.scoreCap; cap > 0)
    {
      found.scores = cap * (found.scores / cap).array().tanh().matrix();
    }
    this->FindWeights(l, head, found);
    return found;
  }

  Head HeadOf(const RunLayer& layer, std::int64_t l, std::int64_t head) const
  {
    const std::int64_t dimension = this->Config.headDimension;
    const std::int64_t keyHead = this->KeyHead(head);
    return this->MakeHead(l, head, HeadColumns(layer.query, head, dimension),
      HeadColumns(layer.key, keyHead, dimension), HeadColumns(layer.value, keyHead, dimension));
  }

  void FindWeights(std::int64_t l, std::int64_t head, Head& found) const
  {
    const auto slope = static_cast<double>(this->Positions.Slope(head));
    const double unit = this->Config.SlopeUnit();
    HeadScores mask;
    mask.window = this->Config.Window(l);
    mask.chunk = this->Config.Chunk(l);
    found.weights = found.scores;
    for (std::int64_t i = 0; i < found.weights.rows(); ++i)
    {
      double* row = found.weights.row(i).data();
      const std::int64_t first = mask.FirstKey(i);
      for (std::int64_t j = first; j <= i; ++j)
      {
        row[j] += AlibiBias(slope, unit, j);
      }
      std::fill_n(row, first, 0);
      SoftmaxOf(i + 1 - first, row + first);
      std::fill(row + i + 1, row + found.weights.cols(), 0);
    }
  }

  /// What queries and keys read of the normalized stream.
  DoubleMatrix WithPositions(DoubleMatrix normed) const
  {
    for (std::int64_t t = 0; t < normed.rows() && this->Positions.Vector(t) != nullptr; ++t)
    {
      normed.row(t) +=
        Eigen::Map<const Eigen::RowVectorXf>(this->Positions.Vector(t), normed.cols())
          .cast<double>();
    }
    return normed;
  }

  /// x W + b for all heads.
  DoubleMatrix Project(
    const LinearTensors& tensors, std::int64_t heads, const DoubleMatrix& x) const
  {
    const std::int64_t dimension = this->Config.headDimension;
    DoubleMatrix y = TimesHeads(x, tensors, heads, dimension, false, this->Threads);
    const std::vector<double> bias = WideRow(tensors.bias);
    for (std::int64_t head = 0; head < heads && !bias.empty(); ++head)
    {
      y.middleCols(head * dimension, dimension).rowwise() +=
        Eigen::Map<const Vector>(bias.data() + tensors.FirstOutput(head), dimension);
    }
    return y;
  }

  /// x W + b for one head.
  DoubleMatrix ProjectHead(
    const LinearTensors& tensors, std::int64_t head, const DoubleMatrix& x) const
  {
    const std::int64_t dimension = this->Config.headDimension;
    DoubleMatrix y = Product(x, WidenedHead(tensors, head, dimension), false, this->Threads);
    const std::vector<double> bias = WideRow(tensors.bias);
    if (!bias.empty())
    {
      y.rowwise() += Eigen::Map<const Vector>(bias.data() + tensors.FirstOutput(head), dimension);
    }
    return y;
  }

  // Forward.

  /// Adds the attention of a layer to x, what the layer read.
  void Attend(
    std::int64_t l, const PatchedNodes& patched, TracedLayer& layer, DoubleMatrix& x) const
  {
    const TransformerConfig& config = this->Config;
    const LayerTensors& tensors = this->Weights.layers[l];
    const DoubleMatrix normed = this->AttentionNorm(l).Apply(x);
    const DoubleMatrix shifted = this->WithPositions(normed);
    layer.query = this->Project(tensors.query, config.heads, shifted);
    layer.key = this->Project(tensors.key, config.keyHeads, shifted);
    layer.value = this->Project(tensors.value, config.keyHeads, normed);
    const std::int64_t dimension = config.headDimension;
    layer.heads.resize(x.rows(), config.heads * dimension);
    ParallelFor(config.heads, this->Threads,
      [&](std::int64_t h)
      {
        if (!patched.heads.empty() && patched.heads[l * config.heads + h])
        {
          layer.heads.middleCols(h * dimension, dimension) =
            HeadColumns(patched.from->layers[l].heads, h, dimension);
          return;
        }
        const Head head = this->HeadOf(layer, l, h);
        layer.heads.middleCols(h * dimension, dimension) =
          Product(head.weights, head.value, false, 1);
      });
    DoubleMatrix attended = ApplyWide(tensors.output, layer.heads, this->Threads);
    const SublayerFinish finish = this->AttentionFinish(l);
    x += finish.Apply(attended);
    if (finish.HasNorm())
    {
      layer.attended = std::move(attended);
    }
  }

  /// What activation and gate make of what a traced layer has.
  DoubleMatrix Hidden(const TracedLayer& layer) const
  {
    const DoubleMatrix& activated = this->Config.gated ? layer.gate : layer.up;
    DoubleMatrix hidden(activated.rows(), activated.cols());
    ActivateRows(this->Config.activation, activated.size(), activated.data(), hidden.data());
    return this->Config.gated ? DoubleMatrix(hidden.array() * layer.up.array()) : hidden;
  }

  /// Computes what the MLP of a layer gives.
  void ApplyMlp(std::int64_t l, TracedLayer& layer) const
  {
    const LayerTensors& tensors = this->Weights.layers[l];
    const DoubleMatrix input = this->MlpNorm(l).Apply(layer.middle);
    layer.up = ApplyWide(tensors.up, input, this->Threads);
    if (this->Config.gated)
    {
      layer.gate = ApplyWide(tensors.gate, input, this->Threads);
    }
    layer.mlp = ApplyWide(tensors.down, this->Hidden(layer), this->Threads);
  }

  void RunLayer(
    std::int64_t l, const PatchedNodes& patched, TracedLayer& layer, DoubleMatrix& x) const
  {
    ThrowIf<ModelError>(
      !x.allFinite(), "an activation before layer ", l, " is not finite; expected finite numbers.");
    layer.residual = x;
    this->Attend(l, patched, layer, x);
    if (this->Config.mlpDimension > 0)
    {
      layer.middle = this->Config.order == SublayerOrder::Sequential ? x : layer.residual;
      this->ApplyMlp(l, layer);
      if (!patched.mlps.empty() && patched.mlps[l])
      {
        layer.mlp = patched.from->layers[l].mlp;
      }
      x += this->MlpFinish(l).Apply(layer.mlp);
    }
  }

  // Logits.

  /// A logit before the cap.
  double Logit(const Vector& normed, std::int64_t token) const
  {
    const LinearTensors& unembedding = this->Weights.unembedding;
    const double bias = unembedding.bias.data == nullptr ? 0 : unembedding.bias.At(token);
    return this->Config.logitScale * normed.dot(UnembeddingColumn(unembedding, token)) + bias;
  }

  double Capped(double logit) const
  {
    const double cap = this->Config.logitCap;
    return cap > 0 ? cap * std::tanh(logit / cap) : logit;
  }

  /// The logits at all positions [T, V].
  DoubleMatrix AllLogits(const TracedRun& run) const
  {
    DoubleMatrix logits =
      ApplyWide(this->Weights.unembedding, this->Config.logitScale * run.normed, this->Threads);
    if (const double cap = this->Config.logitCap; cap > 0)
    {
      logits = cap * (logits / cap).array().tanh().matrix();
    }
    return logits;
  }

  /// The gradient of a logit [d_model] with respect to the normalized stream.
  Vector LogitGradient(const Vector& normed, std::int64_t token) const
  {
    double factor = this->Config.logitScale;
    if (const double cap = this->Config.logitCap; cap > 0)
    {
      const double part = this->Capped(this->Logit(normed, token)) / cap;
      factor *= 1 - part * part;
    }
    return factor * UnembeddingColumn(this->Weights.unembedding, token);
  }

  // Backward.

  /// The gradients inside an MLP from that of what it gives.
  void MlpBackward(std::int64_t l, const TracedLayer& layer, LayerGradients& gradients) const
  {
    const LayerTensors& tensors = this->Weights.layers[l];
    const Activation activation = this->Config.activation;
    DoubleMatrix hidden = TimesWeights(gradients.mlp, tensors.down, true, this->Threads);
    DoubleMatrix input;
    if (this->Config.gated)
    {
      DoubleMatrix gate = hidden.array() * layer.up.array();
      ActivateBackward(activation, gate.size(), layer.gate.data(), gate.data(), gate.data());
      input = TimesWeights(gate, tensors.gate, true, this->Threads);
      ActivateRows(activation, gate.size(), layer.gate.data(), gate.data());
      hidden.array() *= gate.array();
    }
    else
    {
      ActivateBackward(activation, hidden.size(), layer.up.data(), hidden.data(), hidden.data());
    }
    const DoubleMatrix byUp = TimesWeights(hidden, tensors.up, true, this->Threads);
    input = this->Config.gated ? DoubleMatrix(input + byUp) : byUp;
    gradients.byMlp = this->MlpNorm(l).Backward(layer.middle, input);
  }

  /// The gradients of queries, keys, values and attention of a head from that of its z.
  void HeadBackward(std::int64_t l, std::int64_t h, const TracedLayer& layer, bool attention,
    LayerGradients& gradients) const
  {
    const std::int64_t dimension = this->Config.headDimension;
    const std::int64_t keyHead = this->KeyHead(h);
    const LayerTensors& tensors = this->Weights.layers[l];
    const Head head = this->HeadOf(layer, l, h);
    const DoubleMatrix dz = HeadColumns(gradients.heads, h, dimension);
    DoubleMatrix scores = Product(dz, head.value, true, 1);
    if (attention)
    {
      gradients.attention[h] = scores;
    }
    const std::int64_t length = scores.rows();
    SoftmaxBackward(length, length, this->Config.ScoreScale(l), head.weights.data(), scores.data());
    if (const double cap = this->Config.scoreCap; cap > 0)
    {
      scores.array() *= 1 - (head.scores / cap).array().square();
    }
    const auto columns = [&](DoubleMatrix& all)
    { return all.middleCols(h * dimension, dimension); };
    columns(gradients.value) = Product(head.weights.transpose(), dz, false, 1);
    columns(gradients.query) = this->TurnedBack(l, tensors.queryNorm, h,
      HeadColumns(layer.query, h, dimension), Product(scores, head.key, false, 1));
    columns(gradients.key) =
      this->TurnedBack(l, tensors.keyNorm, keyHead, HeadColumns(layer.key, keyHead, dimension),
        Product(scores.transpose(), head.query, false, 1));
  }

  /// The sum of the gradients of heads that share a key.
  DoubleMatrix SumOfGroups(const DoubleMatrix& byHead) const
  {
    const std::int64_t dimension = this->Config.headDimension;
    DoubleMatrix sums = DoubleMatrix::Zero(byHead.rows(), this->Config.keyHeads * dimension);
    for (std::int64_t h = 0; h < this->Config.heads; ++h)
    {
      sums.middleCols(this->KeyHead(h) * dimension, dimension) += HeadColumns(byHead, h, dimension);
    }
    return sums;
  }

  /// The gradients inside the attention of a layer from that of what W_O gives; returns that of the
  /// residual stream by way of them.
  DoubleMatrix AttentionBackward(
    std::int64_t l, const TracedLayer& layer, bool attention, LayerGradients& gradients) const
  {
    const TransformerConfig& config = this->Config;
    const LayerTensors& tensors = this->Weights.layers[l];
    gradients.heads = TimesWeights(gradients.attended, tensors.output, true, this->Threads);
    for (DoubleMatrix* matrix : { &gradients.query, &gradients.key, &gradients.value })
    {
      matrix->resize(layer.heads.rows(), config.heads * config.headDimension);
    }
    gradients.attention.resize(attention ? config.heads : 0);
    ParallelFor(config.heads, this->Threads,
      [&](std::int64_t h) { this->HeadBackward(l, h, layer, attention, gradients); });
    const auto through =
      [&](const LinearTensors& linear, std::int64_t heads, const DoubleMatrix& from)
    { return TimesHeads(from, linear, heads, config.headDimension, true, this->Threads); };
    DoubleMatrix input = through(tensors.query, config.heads, gradients.query);
    input += through(tensors.key, config.keyHeads, this->SumOfGroups(gradients.key));
    input += through(tensors.value, config.keyHeads, this->SumOfGroups(gradients.value));
    return this->AttentionNorm(l).Backward(layer.residual, input);
  }

  /// dx is the gradient of the residual stream after a layer, then that before it.
  void LayerBackward(std::int64_t l, const TracedLayer& layer, bool attention,
    LayerGradients& gradients, DoubleMatrix& dx) const
  {
    const DoubleMatrix after = dx;
    if (this->Config.mlpDimension > 0)
    {
      gradients.mlp = this->MlpFinish(l).Backward(layer.mlp, after);
      this->MlpBackward(l, layer, gradients);
      dx += gradients.byMlp;
    }
    const bool isSequential = this->Config.order == SublayerOrder::Sequential;
    gradients.attended =
      this->AttentionFinish(l).Backward(layer.attended, isSequential ? dx : after);
    dx += this->AttentionBackward(l, layer, attention, gradients);
    gradients.residual = dx;
  }
};

GradientRun::GradientRun(const Transformer& model, std::int64_t length, int threads)
{
  CheckGradients(model);
  this->Data = std::make_unique<Impl>(model, length, threads);
}

GradientRun::~GradientRun() = default;

DoubleMatrix GradientRun::Embed(const TransformerInput& input) const
{
  const TransformerConfig& config = this->Data->Config;
  CheckInput(config, input);
  const PackedSequences sequences(SequenceLengths(config, input), std::nullopt);
  std::vector<float> x(sequences.Rows() * config.modelDimension);
  EmbedInput(config, this->Data->Weights, input, sequences, x.data(), this->Data->Threads);
  return Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
    x.data(), sequences.Rows(), config.modelDimension)
    .cast<double>();
}

TracedRun GradientRun::Run(
  const DoubleMatrix& embedding, const PatchedNodes& patched, const Progress& progress) const
{
  return this->RunFrom(0, embedding, patched, progress);
}

TracedRun GradientRun::RunFrom(std::int64_t layer, const DoubleMatrix& residual,
  const PatchedNodes& patched, const Progress& progress) const
{
  const SingleThreadedBlas blas;
  const std::int64_t layers = this->Data->Config.layers;
  TracedRun run;
  run.layers.resize(layers);
  run.residual = residual;
  for (std::int64_t l = layer; l < layers; ++l)
  {
    this->Data->RunLayer(l, patched, run.layers[l], run.residual);
    progress(l + 1 - layer, layers - layer);
  }
  ThrowIf<ModelError>(!run.residual.allFinite(),
    "an activation after the last layer is not finite; expected finite numbers.");
  run.normed = this->Data->FinalNorm().Apply(run.residual);
  return run;
}

std::vector<float> GradientRun::Logits(const TracedRun& run, std::int64_t position) const
{
  const Impl& data = *this->Data;
  const Eigen::RowVectorXf read = (data.Config.logitScale * run.normed.row(position)).cast<float>();
  LinearTensors unembedding = data.Weights.unembedding;
  unembedding.products = ProductPrecision::Single;
  std::vector<float> logits(unembedding.outputs);
  ApplyLinear(Linear(unembedding), 1, read.data(), logits.data(), {}, data.Threads);
  for (float& logit : logits)
  {
    logit = static_cast<float>(data.Capped(static_cast<double>(logit)));
  }
  return logits;
}

double GradientRun::Difference(const TracedRun& run, const LogitPair& logits) const
{
  const Vector normed = run.normed.row(logits.position);
  const double found = this->Data->Capped(this->Data->Logit(normed, logits.target)) -
                       this->Data->Capped(this->Data->Logit(normed, logits.against));
  ThrowIf<ModelError>(
    !std::isfinite(found), "the logits of a run are not finite; expected finite numbers.");
  return found;
}

RunGradients GradientRun::Differentiate(
  const TracedRun& run, const LogitPair& logits, bool attention, const Progress& progress) const
{
  const SingleThreadedBlas blas;
  const Impl& data = *this->Data;
  const Vector normed = run.normed.row(logits.position);
  DoubleMatrix gradient = DoubleMatrix::Zero(run.normed.rows(), run.normed.cols());
  gradient.row(logits.position) =
    data.LogitGradient(normed, logits.target) - data.LogitGradient(normed, logits.against);
  return this->Backward(run, std::move(gradient), attention, progress);
}

double GradientRun::Loss(const TracedRun& run, const std::vector<std::int64_t>& tokens) const
{
  const SingleThreadedBlas blas;
  const DoubleMatrix logits = this->Data->AllLogits(run);
  double sum = 0;
  for (std::int64_t t = 0; t + 1 < logits.rows(); ++t)
  {
    const double largest = logits.row(t).maxCoeff();
    sum +=
      largest + std::log((logits.row(t).array() - largest).exp().sum()) - logits(t, tokens[t + 1]);
  }
  const double loss = sum / static_cast<double>(logits.rows() - 1);
  ThrowIf<ModelError>(
    !std::isfinite(loss), "the loss of a run is not finite; expected a finite number.");
  return loss;
}

RunGradients GradientRun::DifferentiateLoss(
  const TracedRun& run, const std::vector<std::int64_t>& tokens, const Progress& progress) const
{
  const SingleThreadedBlas blas;
  const Impl& data = *this->Data;
  DoubleMatrix gradients = data.AllLogits(run);
  const std::int64_t last = gradients.rows() - 1;
  const double cap = data.Config.logitCap;
  for (std::int64_t t = 0; t < last; ++t)
  {
    const Vector capped = gradients.row(t);
    SoftmaxOf(gradients.cols(), gradients.row(t).data());
    gradients(t, tokens[t + 1]) -= 1;
    if (cap > 0)
    {
      gradients.row(t).array() *= 1 - (capped.array() / cap).square();
    }
  }
  gradients.row(last).setZero();
  gradients *= data.Config.logitScale / static_cast<double>(last);
  return this->Backward(
    run, TimesWeights(gradients, data.Weights.unembedding, true, data.Threads), false, progress);
}

/// The gradients inside from that of the normalized stream.
RunGradients GradientRun::Backward(
  const TracedRun& run, DoubleMatrix normed, bool attention, const Progress& progress) const
{
  const SingleThreadedBlas blas;
  const Impl& data = *this->Data;
  const std::int64_t layers = data.Config.layers;
  RunGradients gradients;
  gradients.layers.resize(layers);
  gradients.normed = std::move(normed);
  gradients.residual = data.FinalNorm().Backward(run.residual, gradients.normed);
  DoubleMatrix dx = gradients.residual;
  for (std::int64_t l = layers; l-- > 0;)
  {
    data.LayerBackward(l, run.layers[l], attention, gradients.layers[l], dx);
    progress(layers - l, layers);
  }
  return gradients;
}

DoubleMatrix GradientRun::ByHead(const TracedRun& run, const RunGradients& gradients,
  std::int64_t layer, std::int64_t head, HeadInput input) const
{
  const Impl& data = *this->Data;
  const LayerTensors& tensors = data.Weights.layers[layer];
  const std::int64_t dimension = data.Config.headDimension;
  const LayerGradients& of = gradients.layers[layer];
  const bool isQuery = input == HeadInput::Query;
  const LinearTensors& linear = isQuery                   ? tensors.query
                                : input == HeadInput::Key ? tensors.key
                                                          : tensors.value;
  const DoubleMatrix& all = isQuery ? of.query : input == HeadInput::Key ? of.key : of.value;
  const DoubleMatrix weight = WidenedHead(linear, isQuery ? head : data.KeyHead(head), dimension);
  return data.AttentionNorm(layer).Backward(run.layers[layer].residual,
    Product(HeadColumns(all, head, dimension), weight, true, data.Threads));
}

DoubleMatrix GradientRun::HeadOutput(
  std::int64_t layer, std::int64_t head, const HeadStreams& streams) const
{
  const Impl& data = *this->Data;
  const LayerTensors& tensors = data.Weights.layers[layer];
  const WideNorm norm = data.AttentionNorm(layer);
  const std::int64_t keyHead = data.KeyHead(head);
  const Impl::Head found = data.MakeHead(layer, head,
    data.ProjectHead(tensors.query, head, data.WithPositions(norm.Apply(streams.query))),
    data.ProjectHead(tensors.key, keyHead, data.WithPositions(norm.Apply(streams.key))),
    data.ProjectHead(tensors.value, keyHead, norm.Apply(streams.value)));
  return Product(found.weights, found.value, false, data.Threads);
}

DoubleMatrix GradientRun::MlpOutput(std::int64_t layer, const DoubleMatrix& stream) const
{
  TracedLayer found;
  found.middle = stream;
  this->Data->ApplyMlp(layer, found);
  return found.mlp;
}

DoubleMatrix GradientRun::OutputOfHead(
  std::int64_t layer, std::int64_t head, const DoubleMatrix& change) const
{
  const Impl& data = *this->Data;
  const std::int64_t dimension = data.Config.headDimension;
  DoubleMatrix weight(dimension, data.Config.modelDimension);
  WidenRows(data.Weights.layers[layer].output, head * dimension, weight);
  return Product(change, weight, false, data.Threads);
}

DoubleMatrix GradientRun::AddedByAttention(
  const TracedRun& run, std::int64_t layer, const DoubleMatrix& change) const
{
  return this->Data->AttentionFinish(layer).Change(run.layers[layer].attended, change);
}

DoubleMatrix GradientRun::AddedByMlp(
  const TracedRun& run, std::int64_t layer, const DoubleMatrix& change) const
{
  return this->Data->MlpFinish(layer).Change(run.layers[layer].mlp, change);
}

DoubleMatrix GradientRun::WrittenByHead(
  const TracedRun& run, std::int64_t layer, std::int64_t head, const DoubleMatrix& change) const
{
  return this->Data->AttentionFinish(layer).Forward(
    run.layers[layer].attended, this->OutputOfHead(layer, head, change));
}

DoubleMatrix GradientRun::WrittenByMlp(
  const TracedRun& run, std::int64_t layer, const DoubleMatrix& change) const
{
  return this->Data->MlpFinish(layer).Forward(run.layers[layer].mlp, change);
}

}
