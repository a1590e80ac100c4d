#include "ProcessedWeights.h"

#include "ArchitectureLimits.h"
#include "Base/Error.h"
#include "Base/Index.h"
#include "Base/Parallel.h"
#include "ThinSvd.h"
#include "VectorNorm.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include <Eigen/QR>

namespace atlas
{
namespace
{

using FloatMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using StoredMatrix = Eigen::Map<const FloatMatrix>;
using Vector = Eigen::RowVectorXd;

/// Tokens whose columns of the unembedding are read at a time.
constexpr std::int64_t BlockColumns = 1024;

/// The biases of `count` outputs, 0 where there are none.
Vector BiasOf(const LinearTensors& linear, std::int64_t first, std::int64_t count)
{
  return linear.bias.data == nullptr ? Vector(Vector::Zero(count))
                                     : Vector(ToVector(linear.bias).segment(first, count));
}

/// The matrix [inputs, outputs] of a linear map whose outputs are not divided by heads.
DoubleMatrix WholeMatrix(const LinearTensors& linear)
{
  const FloatValues values(linear.weight);
  if (linear.layout == WeightLayout::OutputInput)
  {
    return StoredMatrix(values.Data(), linear.outputs, linear.inputs).transpose().cast<double>();
  }
  return StoredMatrix(values.Data(), linear.inputs, linear.outputs).cast<double>();
}

/// The matrices [d_model, d_head] of the queries, keys or values of heads.
class HeadMatrices
{
public:
  HeadMatrices(const LinearTensors& linear, std::int64_t dimension)
    : Linear(linear)
    , Dimension(dimension)
    , Values(linear.weight)
  {
  }

  DoubleMatrix Weight(std::int64_t head) const
  {
    const std::int64_t inputs = this->Linear.inputs;
    const std::int64_t d = this->Dimension;
    const float* values = this->Values.Data();
    if (this->Linear.layout == WeightLayout::HeadInputOutput)
    {
      return StoredMatrix(values + head * inputs * d, inputs, d).cast<double>();
    }
    const std::int64_t first = this->First(head);
    if (this->Linear.layout == WeightLayout::OutputInput)
    {
      return StoredMatrix(values + first * inputs, d, inputs).transpose().cast<double>();
    }
    return StoredMatrix(values, inputs, this->Linear.weight.shape[1])
      .middleCols(first, d)
      .cast<double>();
  }

  Vector Bias(std::int64_t head) const
  {
    return BiasOf(this->Linear, this->First(head), this->Dimension);
  }

private:
  const LinearTensors& Linear;
  std::int64_t Dimension;
  FloatValues Values;

  std::int64_t First(std::int64_t head) const { return this->Linear.FirstOutput(head); }
};

/// a b^T = u diag(s) v^T for tall matrices of equally many columns, with as many singular values.
struct Factors
{
  DoubleMatrix u;
  Vector s;
  DoubleMatrix v;
};

/// The decomposition of a b^T, which is not formed: that of the small matrix between the
/// orthonormal bases of both. Its signs are such that in each column of u the entry of largest
/// magnitude, the first of equal ones, is positive.
Factors Decompose(const DoubleMatrix& a, const DoubleMatrix& b)
{
  const Eigen::Index count = a.cols();
  const auto basis = [count](const DoubleMatrix& matrix)
  {
    const Eigen::HouseholderQR<Eigen::MatrixXd> qr(matrix);
    Eigen::MatrixXd q =
      qr.householderQ() * Eigen::MatrixXd::Identity(matrix.rows(), std::min(count, matrix.rows()));
    Eigen::MatrixXd r = q.transpose() * matrix;
    return std::pair(std::move(q), std::move(r));
  };
  const auto [qa, ra] = basis(a);
  const auto [qb, rb] = basis(b);
  const ThinSvd svd = DecomposeThin(ra * rb.transpose());
  Factors factors = { DoubleMatrix::Zero(a.rows(), count), Vector::Zero(count),
    DoubleMatrix::Zero(b.rows(), count) };
  const Eigen::Index rank = svd.values.size();
  factors.u.leftCols(rank) = qa * svd.u;
  factors.s.head(rank) = svd.values.transpose();
  factors.v.leftCols(rank) = qb * svd.v;
  for (Eigen::Index c = 0; c < rank; ++c)
  {
    Eigen::Index largest = 0;
    factors.u.col(c).cwiseAbs().maxCoeff(&largest);
    if (factors.u(largest, c) < 0)
    {
      factors.u.col(c) *= -1;
      factors.v.col(c) *= -1;
    }
  }
  return factors;
}

/// A matrix with its bias as the last row.
DoubleMatrix WithBias(const DoubleMatrix& weight, const Vector& bias)
{
  DoubleMatrix both(weight.rows() + 1, weight.cols());
  both << weight, bias;
  return both;
}

/// Throws ModelError unless the model can be processed.
void RequireProcessable(const TransformerConfig& config, WeightSteps steps)
{
  ThrowIf<ModelError>(steps != WeightSteps::Stored && config.encoder == nullptr &&
                        config.normPlace == NormPlace::AfterSublayer,
    "weight processing: expected a model whose normalizations come before "
    "attention and MLP, as in gpt2, found ",
    config.architecture, ", whose normalizations come after them.");
  if (steps != WeightSteps::Stored)
  {
    using Switch = ArchitectureSwitch;
    RefuseSwitches(config, "weight processing",
      { Switch::Encoder, Switch::NormsAfterToo, Switch::LayerScales, Switch::GainOffset,
        Switch::LogitCap, Switch::Sinks, Switch::ProjectionClip, Switch::Experts,
        Switch::EmbeddingScale, Switch::EmbeddingProjection, Switch::NormsInside,
        Switch::FirstUnnormed, Switch::LogitScale, Switch::XieluActivation, Switch::LayerSides,
        Switch::OutputGate });
  }
  if (steps == WeightSteps::Refactored)
  {
    RequireRefactorable(config);
  }
}

}

bool IsProcessable(const TransformerConfig& config)
{
  try
  {
    RequireProcessable(config, WeightSteps::TransformerLens);
    return true;
  }
  catch (const ModelError&)
  {
    return false;
  }
}

ProcessedWeights::ProcessedWeights(const Transformer& model, WeightSteps steps, int threads)
  : Model(model)
  , Steps(steps)
  , Threads(threads)
{
  const TransformerConfig& config = model.GetConfig();
  RequireProcessable(config, steps);
  const bool processes =
    steps != WeightSteps::Stored && config.position != PositionKind::Shortformer;
  this->FoldsNorms = processes && config.norm != NormKind::None;
  this->CentersWriting = processes && config.norm == NormKind::LayerNorm;
  this->CentersUnembedding = processes;
}

void ProcessedWeights::RequireUnembedding() const
{
  RefuseSwitches(this->Model.GetConfig(), "the unembedding of the residual stream",
    { ArchitectureSwitch::Encoder, ArchitectureSwitch::EmbeddingProjection });
  if (this->Model.HasLogits())
  {
    std::call_once(this->IsRead, [this] { this->ReadUnembedding(); });
  }
}

/// Finds the gain, the mean column and the bias.
void ProcessedWeights::ReadUnembedding() const
{
  const TransformerWeights& weights = this->Model.GetWeights();
  const std::int64_t count = weights.unembedding.outputs;
  const std::int64_t d = weights.unembedding.inputs;
  this->BiasOfLogits = BiasOf(weights.unembedding, 0, count);
  Vector shift;
  if (this->FoldsNorms)
  {
    this->FinalGain = ToVector(weights.finalNorm.gain);
    shift = ToVector(weights.finalNorm.shift);
  }
  if (!this->CentersUnembedding && shift.size() == 0)
  {
    return;
  }
  const std::int64_t blocks = (count + BlockColumns - 1) / BlockColumns;
  DoubleMatrix sums(blocks, d);
  ParallelFor(blocks, this->Threads,
    [&](std::int64_t block)
    {
      const std::int64_t begin = block * BlockColumns;
      const std::int64_t end = std::min(begin + BlockColumns, count);
      DoubleMatrix columns = this->StoredColumns(begin, end);
      if (shift.size() > 0)
      {
        this->BiasOfLogits.segment(begin, end - begin) += shift * columns.transpose();
      }
      this->ScaleAndCenter(columns);
      sums.row(block) = columns.colwise().sum();
    });
  this->Model.GetFiles().RequireIntact();
  if (this->CentersUnembedding)
  {
    this->MeanOfLogits = sums.colwise().sum() / static_cast<double>(count);
    this->BiasOfLogits.array() -= this->BiasOfLogits.mean();
  }
}

DoubleMatrix ProcessedWeights::StoredColumns(std::int64_t begin, std::int64_t end) const
{
  const LinearTensors& linear = this->Model.GetWeights().unembedding;
  const std::int64_t count = end - begin;
  const std::int64_t inputs = linear.inputs;
  const double scale = this->Model.GetConfig().logitScale;
  if (linear.layout == WeightLayout::OutputInput)
  {
    FloatMatrix rows(count, inputs);
    linear.weight.ToFloat(static_cast<std::uint64_t>(begin * inputs),
      static_cast<std::uint64_t>(end * inputs), rows.data());
    return rows.cast<double>() * scale;
  }
  FloatMatrix columns(inputs, count);
  for (std::int64_t m = 0; m < inputs; ++m)
  {
    linear.weight.ToFloat(static_cast<std::uint64_t>(m * linear.outputs + begin),
      static_cast<std::uint64_t>(m * linear.outputs + end), columns.data() + m * count);
  }
  return columns.transpose().cast<double>() * scale;
}

/// Folds the final gain into columns of W_U, the rows of a matrix, and centers each.
void ProcessedWeights::ScaleAndCenter(DoubleMatrix& columns) const
{
  if (this->FinalGain.size() > 0)
  {
    columns.array().rowwise() *= this->FinalGain.array();
  }
  this->CenterRows(columns);
}

void ProcessedWeights::CenterRows(DoubleMatrix& weight) const
{
  if (this->CentersWriting && weight.size() > 0)
  {
    weight.colwise() -= weight.rowwise().mean().eval();
  }
}

DoubleMatrix ProcessedWeights::UnembeddingColumns(std::int64_t begin, std::int64_t end) const
{
  this->RequireUnembedding();
  DoubleMatrix columns = this->StoredColumns(begin, end);
  this->ScaleAndCenter(columns);
  if (this->MeanOfLogits.size() > 0)
  {
    columns.rowwise() -= this->MeanOfLogits;
  }
  this->Model.GetFiles().RequireIntact();
  return columns;
}

/// TransformerLens centers all matrices that read, but not that of a gate.
void ProcessedWeights::FoldNorm(
  const NormTensors& norm, DoubleMatrix& weight, Vector& bias, bool isGate) const
{
  if (!this->FoldsNorms)
  {
    return;
  }
  if (norm.shift.data != nullptr)
  {
    bias += ToVector(norm.shift) * weight;
  }
  if (norm.gain.data != nullptr)
  {
    weight.array().colwise() *= ToVector(norm.gain).transpose().array();
  }
  if (this->CentersWriting && !isGate)
  {
    weight.rowwise() -= weight.colwise().mean().eval();
  }
}

ProcessedAttention ProcessedWeights::Attention(std::int64_t layer) const
{
  const TransformerConfig& config = this->Model.GetConfig();
  const LayerTensors& tensors = this->Model.GetWeights().layers[layer];
  RefuseSwitches(config, "weights of heads",
    { ArchitectureSwitch::LatentAttention, ArchitectureSwitch::ValueNorms,
      ArchitectureSwitch::LayerSides, ArchitectureSwitch::OutputGate });
  ThrowIf<ModelError>(!config.HasAttention(layer), "weights of heads: layer ", layer, " of ",
    config.architecture, " has no attention; choose another layer.");
  const std::int64_t dimension = config.headDimension;
  const HeadMatrices queries(tensors.query, dimension);
  const HeadMatrices keys(tensors.key, dimension);
  const HeadMatrices values(tensors.value, dimension);
  DoubleMatrix output = WholeMatrix(tensors.output);
  ProcessedAttention attention;
  attention.outputBias = BiasOf(tensors.output, 0, config.modelDimension);
  if (this->CentersWriting)
  {
    this->CenterRows(output);
    attention.outputBias.array() -= attention.outputBias.mean();
  }
  for (std::int64_t h = 0; h < config.heads; ++h)
  {
    const std::int64_t group = h / (config.heads / config.keyHeads);
    ProcessedHead head = { queries.Weight(h), keys.Weight(group), values.Weight(group),
      output.middleRows(h * dimension, dimension), queries.Bias(h), keys.Bias(group),
      values.Bias(group), Vector::Zero(dimension) };
    this->FoldNorm(tensors.attentionNorm, head.query, head.queryBias);
    this->FoldNorm(tensors.attentionNorm, head.key, head.keyBias);
    this->FoldNorm(tensors.attentionNorm, head.value, head.valueBias);
    if (this->Steps != WeightSteps::Stored)
    {
      attention.outputBias += head.valueBias * head.output;
      head.foldedBias.swap(head.valueBias);
    }
    if (this->Steps == WeightSteps::Refactored)
    {
      head = Refactored(std::move(head));
    }
    attention.heads.push_back(std::move(head));
  }
  this->Model.GetFiles().RequireIntact();
  return attention;
}

ProcessedMlp ProcessedWeights::Mlp(std::int64_t layer) const
{
  const TransformerConfig& config = this->Model.GetConfig();
  const LayerTensors& tensors = this->Model.GetWeights().layers[layer];
  ProcessedMlp mlp;
  if (config.mlpDimension == 0)
  {
    return mlp;
  }
  RefuseSwitches(
    config, "weights of MLPs", { ArchitectureSwitch::Experts, ArchitectureSwitch::LayerSides });
  mlp.up = WholeMatrix(tensors.up);
  mlp.upBias = BiasOf(tensors.up, 0, config.mlpDimension);
  this->FoldNorm(tensors.mlpNorm, mlp.up, mlp.upBias);
  if (config.gated)
  {
    mlp.gate = WholeMatrix(tensors.gate);
    mlp.gateBias = BiasOf(tensors.gate, 0, config.mlpDimension);
    this->FoldNorm(tensors.mlpNorm, mlp.gate, mlp.gateBias, true);
  }
  mlp.down = WholeMatrix(tensors.down);
  mlp.downBias = BiasOf(tensors.down, 0, config.modelDimension);
  if (this->CentersWriting)
  {
    this->CenterRows(mlp.down);
    mlp.downBias.array() -= mlp.downBias.mean();
  }
  this->Model.GetFiles().RequireIntact();
  return mlp;
}

DoubleMatrix ProcessedWeights::TokenEmbedding(std::int64_t begin, std::int64_t end) const
{
  const TransformerConfig& config = this->Model.GetConfig();
  RefuseSwitches(config, "the embedding of tokens", { ArchitectureSwitch::EmbeddingProjection });
  const std::int64_t d = config.modelDimension;
  FloatMatrix rows(end - begin, d);
  this->Model.GetWeights().tokenEmbedding.ToFloat(
    static_cast<std::uint64_t>(begin * d), static_cast<std::uint64_t>(end * d), rows.data());
  constexpr double withoutMasks = 0.88; // of ESM-2
  const double scale = config.embeddingScale * (config.maskToken >= 0 ? withoutMasks : 1);
  if (config.maskToken >= begin && config.maskToken < end)
  {
    rows.row(config.maskToken - begin).setZero();
  }
  DoubleMatrix embedding = rows.cast<double>() * scale;
  this->CenterRows(embedding);
  this->Model.GetFiles().RequireIntact();
  return embedding;
}

DoubleMatrix ProcessedWeights::PositionEmbedding() const
{
  const TensorView& view = this->Model.GetWeights().positionEmbedding;
  if (view.data == nullptr)
  {
    return {};
  }
  const FloatValues values(view);
  const std::int64_t d = this->Model.GetConfig().modelDimension;
  DoubleMatrix embedding =
    StoredMatrix(values.Data(), static_cast<std::int64_t>(view.Count()) / d, d).cast<double>();
  this->CenterRows(embedding);
  this->Model.GetFiles().RequireIntact();
  return embedding;
}

void RequireRefactorable(const TransformerConfig& config)
{
  RefuseSwitches(config, "refactored weights",
    { ArchitectureSwitch::PatchRotation, ArchitectureSwitch::PositionScores });
  ThrowIf<ModelError>(config.position == PositionKind::Rotary,
    "refactored weights: expected queries and keys that are not rotated, found ",
    config.architecture, " with a rotary position embedding, which depends on their components.");
  ThrowIf<ModelError>(config.keyHeads != config.heads,
    "refactored weights: expected keys and values for each head, found ", config.keyHeads, " for ",
    config.heads, " heads.");
}

ProcessedHead Refactored(ProcessedHead head)
{
  const Eigen::Index d = head.query.rows();
  const Factors scores =
    Decompose(WithBias(head.query, head.queryBias), WithBias(head.key, head.keyBias));
  const Vector root = scores.s.cwiseSqrt();
  head.query = scores.u.topRows(d) * root.asDiagonal();
  head.queryBias = scores.u.row(d).cwiseProduct(root);
  head.key = scores.v.topRows(d) * root.asDiagonal();
  head.keyBias = scores.v.row(d).cwiseProduct(root);
  const Factors writing = Decompose(head.value, head.output.transpose());
  head.value = writing.u * writing.s.asDiagonal();
  head.output = writing.v.transpose();
  return head;
}

RefactoredBasis BasisOf(const ProcessedHead& head, const ProcessedHead& refactored)
{
  // With W_Q' = U sqrt(S) and W_K' = V sqrt(S), U = W_Q W_K^T V / S, so that
  // W_Q' = W_Q (W_K^T W_K' / S), and S are the squared lengths of the columns of W_K'.
  const auto change = [](const DoubleMatrix& other, const DoubleMatrix& refactoredOther)
  {
    const Vector squares = refactoredOther.colwise().squaredNorm();
    const double least = squares.maxCoeff() * std::numeric_limits<double>::epsilon();
    const Vector inverse = (squares.array() > least).select(squares.cwiseInverse(), 0.0);
    return DoubleMatrix(other.transpose() * refactoredOther * inverse.asDiagonal());
  };
  return { change(WithBias(head.key, head.keyBias), WithBias(refactored.key, refactored.keyBias)),
    change(WithBias(head.query, head.queryBias), WithBias(refactored.query, refactored.queryBias)),
    head.output * refactored.output.transpose() };
}

namespace
{

/// Adds a tensor, or appends to the one of this name.
template<class Matrix>
Tensor& Append(Tensors& tensors, const std::string& name, const Matrix& matrix, const Shape& shape)
{
  Tensor& tensor = tensors.emplace(name, Tensor{ DType::F32, shape, {} }).first->second;
  const FloatMatrix values = matrix.template cast<float>();
  const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
  tensor.bytes.insert(tensor.bytes.end(), bytes, bytes + ToIndex(values.size()) * sizeof(float));
  return tensor;
}

/// Adds a matrix or vector to those of earlier heads.
template<class Matrix>
void AppendHead(Tensors& tensors, const std::string& name, const Matrix& matrix)
{
  const bool isVector = matrix.rows() == 1;
  const Shape shape =
    isVector ? Shape{ 0, matrix.cols() } : Shape{ 0, matrix.rows(), matrix.cols() };
  ++Append(tensors, name, matrix, shape).shape[0];
}

void AddLayer(const ProcessedWeights& weights, std::int64_t l, Tensors& tensors)
{
  const TransformerConfig& config = weights.GetModel().GetConfig();
  const std::string block = "blocks." + std::to_string(l) + ".";
  const ProcessedAttention attention = weights.Attention(l);
  const std::int64_t group = config.heads / config.keyHeads;
  const std::string shared = block + "attn." + (group > 1 ? "_" : "");
  for (std::int64_t h = 0; h < config.heads; ++h)
  {
    const ProcessedHead& head = attention.heads[h];
    AppendHead(tensors, block + "attn.W_Q", head.query);
    AppendHead(tensors, block + "attn.b_Q", head.queryBias);
    AppendHead(tensors, block + "attn.W_O", head.output);
    if (h % group == 0)
    {
      AppendHead(tensors, shared + "W_K", head.key);
      AppendHead(tensors, shared + "b_K", head.keyBias);
      AppendHead(tensors, shared + "W_V", head.value);
      AppendHead(tensors, shared + "b_V", head.valueBias);
    }
  }
  Append(tensors, block + "attn.b_O", attention.outputBias, { config.modelDimension });
  const ProcessedMlp mlp = weights.Mlp(l);
  if (mlp.gate.size() > 0 && !mlp.upBias.isZero(0))
  {
    // There, b_in is added behind the gate.
    throw ModelError("processed weights in TransformerLens' names: expected a gated MLP without "
                     "biases, and without a shift of the normalization before it, found ",
      config.architecture, ".");
  }
  for (const auto& [name, matrix] :
    { std::pair("W_gate", &mlp.gate), std::pair("W_in", &mlp.up), std::pair("W_out", &mlp.down) })
  {
    if (matrix->size() > 0)
    {
      Append(tensors, block + "mlp." + name, *matrix, { matrix->rows(), matrix->cols() });
    }
  }
  // Shifts of a normalization become biases, also where the model has none.
  const auto addBias = [&](const char* name, const Eigen::VectorXd& bias)
  {
    if (bias.size() > 0 && (config.mlpBias || !bias.isZero(0)))
    {
      Append(tensors, block + "mlp." + name, bias, { bias.size() });
    }
  };
  addBias("b_gate", mlp.gateBias);
  addBias("b_in", mlp.upBias);
  addBias("b_out", mlp.downBias);
}

}

Tensors ProcessedTensors(const Transformer& model)
{
  const TransformerConfig& config = model.GetConfig();
  ThrowIf<ModelError>(config.input != InputKind::Tokens,
    "weight processing: expected a model of text, found ", config.architecture, ".");
  RefuseSwitches(config, "processed weights in TransformerLens' names",
    { ArchitectureSwitch::QueryKeyNorms, ArchitectureSwitch::Mixers });
  const ProcessedWeights weights(model, WeightSteps::TransformerLens);
  const std::int64_t d = config.modelDimension;
  Tensors tensors;
  Append(
    tensors, "embed.W_E", weights.TokenEmbedding(0, config.vocabulary), { config.vocabulary, d });
  const DoubleMatrix positions = weights.PositionEmbedding();
  if (positions.size() > 0)
  {
    Append(tensors, "pos_embed.W_pos", positions, { positions.rows(), d });
  }
  const NormTensors& norm = model.GetWeights().embeddingNorm;
  if (norm.gain.data != nullptr)
  {
    Append(tensors, "embed.ln.w", ToVector(norm.gain), { d });
    Append(tensors, "embed.ln.b", ToVector(norm.shift), { d });
  }
  for (std::int64_t l = 0; l < config.layers; ++l)
  {
    AddLayer(weights, l, tensors);
  }
  if (const std::int64_t count = weights.OutputVocabulary())
  {
    Append(tensors, "unembed.W_U", weights.UnembeddingColumns(0, count).transpose().eval(),
      { d, count });
    Append(tensors, "unembed.b_U", weights.UnembeddingBias(), { count });
  }
  return tensors;
}

}
