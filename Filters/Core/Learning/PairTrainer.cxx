#include "PairTrainer.h"

#include "AttentionOnly/TorusAngles.h"
#include "Base/Error.h"
#include "Base/Pi.h"
#include "Internal/AdamW.h"
#include "LearningRecipe.h"
#include "Numerics/AttentionKernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

namespace atlas
{
namespace
{

using Eigen::Index;
using Eigen::Map;
using Eigen::Matrix3d;
using Eigen::Vector3d;
using Eigen::VectorXd;

using ConstRows = Map<const Rows3>;
using ConstColumns = Map<const Columns3>;

/// The tensors of a head within the vector of all parameters.
struct HeadView
{
  ConstRows query;
  ConstRows key;
  ConstRows value;
  ConstColumns output;

  HeadView(const double* begin, Index d)
    : query(begin, d, 3)
    , key(begin + 3 * d, d, 3)
    , value(begin + 6 * d, d, 3)
    , output(begin + 9 * d, 3, d)
  {
  }
};

/// Calls function(tensor) for each tensor that is trained, in the order of ParameterLayout.
template<class Model, class Function>
void ForTensors(Model& model, const Function& function)
{
  function(model.wordEmbedding);
  function(model.positionEmbedding);
  function(model.unembedding);
  for (auto& head : model.heads)
  {
    function(head.query);
    function(head.key);
    function(head.value);
    function(head.output);
  }
}

/// A head: its two linear maps, the gradients of the loss with respect to them, and what it does
/// with the current pair.
struct HeadPass
{
  Matrix3d score;  ///< W_Q^T W_K / sqrt(d_h)
  Matrix3d output; ///< W_O W_V
  Matrix3d scoreSlope = Matrix3d::Zero();
  Matrix3d outputSlope = Matrix3d::Zero();

  double attention = 0; ///< to the first token
  Vector3d mix;         ///< the mixture of the tokens by attention
  Vector3d result;      ///< what the head adds to the residual
  VectorXd alone;       ///< the probabilities by this head alone, with specialization
  double share = 0;     ///< its part in the sum of all heads' probabilities of the target
};

/// A layer-normalized embedding, with the values needed for its gradient.
struct Normalized
{
  Vector3d embedding;
  double deviation = 0;
  Vector3d slope = Vector3d::Zero();
};

Normalized Normalize(const Vector3d& word)
{
  Normalized result;
  result.embedding = LayerNorm(word);
  result.deviation = std::sqrt((word.array() - word.mean()).square().mean());
  return result;
}

/// The gradient with respect to x of y = (x - mean) / deviation, given that with respect to y.
Vector3d ThroughNormalization(const Normalized& normalized)
{
  if (normalized.deviation == 0)
  {
    return Vector3d::Zero();
  }
  const Vector3d& slope = normalized.slope;
  const Vector3d& y = normalized.embedding;
  const Vector3d free =
    slope.array() - slope.mean() - y.array() * (slope.array() * y.array()).mean();
  return free / normalized.deviation;
}

/// A pair of tokens in the sum of the loss.
struct WeightedPair
{
  Index first = 0;
  Index second = 0;
  Index target = 0;
  double weight = 0;
};

/// The sum of loss and gradient over pairs, for parameters that stay as they are.
class PairSum
{
public:
  PairSum(const ParameterLayout& layout, const double* values, int activeHeads, double lambda)
    : Layout(layout)
    , Values(values)
    , Scale(1 / std::sqrt(static_cast<double>(layout.dimension)))
    , Lambda(lambda)
    , Unembedding(values + layout.Unembedding(), layout.tokens, 3)
    , UnembeddingSlope(Rows3::Zero(layout.tokens, 3))
    , Probabilities(layout.tokens)
    , Heads(activeHeads)
  {
    this->MultiplyHeads();
    this->Embed();
  }

  /// Adds the loss of a pair, and with `counts` whether its prediction is wrong.
  void AddLoss(const WeightedPair& pair, bool counts)
  {
    this->Predict(pair);
    if (counts)
    {
      Index predicted = 0;
      this->Probabilities.maxCoeff(&predicted);
      this->Wrong += predicted == pair.target ? 0 : pair.weight;
    }
    this->Loss -= pair.weight * Softmax(this->Probabilities, pair.target);
    if (this->Lambda > 0)
    {
      this->AddPenalty(pair);
    }
  }

  /// Adds the gradient of the pair whose loss was added last; once, as it overwrites what it needs.
  void AddGradient(const WeightedPair& pair)
  {
    this->Probabilities[pair.target] -= 1;
    this->Probabilities *= pair.weight;
    this->UnembeddingSlope.noalias() += this->Probabilities * this->Residual.transpose();
    const Vector3d slopeR = this->Unembedding.transpose() * this->Probabilities;
    Vector3d slopeX2 = slopeR;
    Vector3d slopeDifference = Vector3d::Zero();
    for (HeadPass& head : this->Heads)
    {
      this->AddHeadGradient(head, pair, slopeR, slopeX2, slopeDifference);
    }
    slopeX2 -= slopeDifference;
    this->Embeddings[pair.first].slope += slopeDifference;
    this->Embeddings[pair.second].slope += slopeX2;
    this->PositionSlopes[0] += slopeDifference;
    this->PositionSlopes[1] += slopeX2;
  }

  /// The loss without its penalty.
  double GetLoss() const { return this->Loss; }
  double LossWithPenalty() const { return this->Loss + this->Lambda * this->Penalty; }
  /// The weight of the pairs whose prediction is right.
  double Accuracy() const { return 1 - this->Wrong; }

  /// The gradient with respect to all parameters.
  void WriteGradient(VectorXd& gradient) const
  {
    gradient.setZero(this->Layout.Size());
    double* slopes = gradient.data();
    const Index n = this->Layout.tokens;
    for (Index t = 0; t < n; ++t)
    {
      Map<Vector3d>(slopes + this->Layout.Word() + 3 * t) =
        ThroughNormalization(this->Embeddings[t]);
    }
    Map<Vector3d>(slopes + this->Layout.Position()) = this->PositionSlopes[0];
    Map<Vector3d>(slopes + this->Layout.Position() + 3) = this->PositionSlopes[1];
    Map<Rows3>(slopes + this->Layout.Unembedding(), n, 3) = this->UnembeddingSlope;
    const Index d = this->Layout.dimension;
    for (std::size_t h = 0; h < this->Heads.size(); ++h)
    {
      const Index place = this->Layout.Head(static_cast<Index>(h));
      const HeadView view(this->Values + place, d);
      const HeadPass& head = this->Heads[h];
      double* begin = slopes + place;
      Map<Rows3>(begin, d, 3) = this->Scale * view.key * head.scoreSlope.transpose();
      Map<Rows3>(begin + 3 * d, d, 3) = this->Scale * view.query * head.scoreSlope;
      Map<Rows3>(begin + 6 * d, d, 3) = view.output.transpose() * head.outputSlope;
      Map<Columns3>(begin + 9 * d, 3, d) = head.outputSlope * view.value.transpose();
    }
  }

private:
  ParameterLayout Layout;
  const double* Values;
  double Scale;
  double Lambda;
  ConstRows Unembedding;
  std::array<Vector3d, 2> Positions;
  double Loss = 0;
  double Penalty = 0;
  double Wrong = 0; ///< not the right share, since this is exactly 0 if no pair is wrong
  std::vector<Normalized> Embeddings;
  std::array<Vector3d, 2> PositionSlopes = { Vector3d::Zero(), Vector3d::Zero() };
  Rows3 UnembeddingSlope;

  // Of the current pair.
  Vector3d X2;         ///< the second token with its position
  Vector3d Difference; ///< the first token with its position, less X2
  Vector3d Residual;
  VectorXd Probabilities;
  std::vector<HeadPass> Heads;

  /// The linear maps of the heads.
  void MultiplyHeads()
  {
    for (std::size_t h = 0; h < this->Heads.size(); ++h)
    {
      const HeadView view(
        this->Values + this->Layout.Head(static_cast<Index>(h)), this->Layout.dimension);
      this->Heads[h].score = this->Scale * view.query.transpose() * view.key;
      this->Heads[h].output = view.output * view.value;
      this->Heads[h].alone.resize(this->Layout.tokens);
    }
  }

  /// The embeddings of words and positions.
  void Embed()
  {
    const ConstRows words(this->Values + this->Layout.Word(), this->Layout.tokens, 3);
    for (Index t = 0; t < this->Layout.tokens; ++t)
    {
      this->Embeddings.push_back(Normalize(words.row(t)));
    }
    const ConstRows positions(this->Values + this->Layout.Position(), 2, 3);
    this->Positions = { positions.row(0), positions.row(1) };
  }

  /// The forward pass, up to the logits.
  void Predict(const WeightedPair& pair)
  {
    const Vector3d x1 = this->Embeddings[pair.first].embedding + this->Positions[0];
    this->X2 = this->Embeddings[pair.second].embedding + this->Positions[1];
    this->Difference = x1 - this->X2;
    this->Residual = this->X2;
    for (HeadPass& head : this->Heads)
    {
      const double score = this->X2.dot(head.score * this->Difference);
      head.attention = 1 / (1 + std::exp(-score));
      head.mix = this->X2 + head.attention * this->Difference;
      head.result = head.output * head.mix;
      this->Residual += head.result;
    }
    this->Probabilities.noalias() = this->Unembedding * this->Residual;
  }

  /// The specialization penalty, and the share of each head.
  void AddPenalty(const WeightedPair& pair)
  {
    double sum = 0;
    for (HeadPass& head : this->Heads)
    {
      head.alone.noalias() = this->Unembedding * head.result;
      head.share = std::exp(Softmax(head.alone, pair.target));
      sum += head.share;
    }
    sum = std::max(sum, 1e-300);
    this->Penalty -= pair.weight * std::log(sum / static_cast<double>(this->Heads.size()));
    for (HeadPass& head : this->Heads)
    {
      head.share /= sum;
    }
  }

  /// Goes back through a head, from the gradient with respect to the residual behind it.
  void AddHeadGradient(HeadPass& head, const WeightedPair& pair, const Vector3d& slopeR,
    Vector3d& slopeX2, Vector3d& slopeDifference)
  {
    Vector3d slopeOutput = slopeR;
    if (this->Lambda > 0)
    {
      head.alone[pair.target] -= 1;
      head.alone *= this->Lambda * pair.weight * head.share;
      this->UnembeddingSlope.noalias() += head.alone * head.result.transpose();
      slopeOutput.noalias() += this->Unembedding.transpose() * head.alone;
    }
    head.outputSlope.noalias() += slopeOutput * head.mix.transpose();
    const Vector3d slopeMix = head.output.transpose() * slopeOutput;
    const double a = head.attention;
    const double slopeScore = slopeMix.dot(this->Difference) * a * (1 - a);
    head.scoreSlope.noalias() += slopeScore * this->X2 * this->Difference.transpose();
    slopeX2 += slopeMix + slopeScore * (head.score * this->Difference);
    slopeDifference += a * slopeMix + slopeScore * (head.score.transpose() * this->X2);
  }
};

}

bool TrainingOptions::operator==(const TrainingOptions& other) const
{
  const auto tie = [](const TrainingOptions& o)
  {
    return std::tie(o.vocabularySize, o.heads, o.headDimension, o.steps, o.learningRate,
      o.batchSize, o.mode, o.optimizer, o.initialization, o.priorDecay, o.specialization, o.seed);
  };
  return tie(*this) == tie(other);
}

void CheckOptions(const TrainingOptions& options)
{
  const auto require = [](bool holds, const char* expected, double found)
  { ThrowIf<OptionError>(!holds, expected, ", found ", found, "."); };
  require(options.vocabularySize >= 1, "VocabularySize: expected at least 1 token",
    options.vocabularySize);
  require(options.heads >= 1, "Heads: expected at least 1", options.heads);
  require(options.headDimension >= 1, "HeadDimension: expected at least 1", options.headDimension);
  require(options.steps >= 0, "Steps: expected at least 0", options.steps);
  require(std::isfinite(options.learningRate) && options.learningRate > 0,
    "LearningRate: expected a positive number", options.learningRate);
  require(options.batchSize >= 0, "BatchSize: expected at least 0", options.batchSize);
  require(options.priorDecay > 0 && options.priorDecay <= 1,
    "PriorDecay: expected a number in (0, 1]", options.priorDecay);
  require(std::isfinite(options.specialization) && options.specialization >= 0,
    "Specialization: expected at least 0", options.specialization);
}

double PairTaskBytes(const TrainingOptions& options)
{
  constexpr double tables = 4; // the targets, the prior, its sums, and the model
  return tables * sizeof(double) * options.vocabularySize * options.vocabularySize;
}

double PairModelBytes(const TrainingOptions& options)
{
  const double n = options.vocabularySize;
  return sizeof(double) * (n * n + 6 * n + 6 + 12. * options.heads * options.headDimension);
}

PairTrainer::~PairTrainer() = default;

PairTrainer::PairTrainer(const TrainingOptions& options, const TrainingStart& start)
  : Options(options)
  , Generator(options.seed)
{
  CheckOptions(options);
  const AttentionOnlyModel* model = start.model;
  if (model == nullptr)
  {
    this->Tokens = options.vocabularySize;
    this->DrawTargets();
  }
  else
  {
    ThrowIf<OptionError>(!model->HasTargets(),
      "Model: expected the tensor 'next_token' with the next token of each pair, found none.");
    this->Tokens = model->VocabularySize();
    this->Options.vocabularySize = static_cast<int>(this->Tokens);
    this->Targets = model->nextToken;
  }
  const bool continues = model != nullptr && start.continues;
  if (continues)
  {
    this->Options.heads = static_cast<int>(model->HeadCount());
    this->Options.headDimension = static_cast<int>(model->HeadDimension());
    this->Origin = model->metadata;
  }
  this->Prepare();
  this->Initialize();
  if (continues)
  {
    this->ReadParameters(*model);
  }
}

/// Draws the task: a next token for each pair, uniformly.
void PairTrainer::DrawTargets()
{
  this->Targets.resize(this->Tokens, this->Tokens);
  for (Index i = 0; i < this->Targets.size(); ++i)
  {
    const auto target = static_cast<Index>(this->Uniform() * static_cast<double>(this->Tokens));
    this->Targets.data()[i] = std::min(target, this->Tokens - 1);
  }
}

/// Sets up everything that depends on the sizes.
void PairTrainer::Prepare()
{
  this->Layout = { this->Tokens, this->Options.heads, this->Options.headDimension };
  const Index size = this->Layout.Size();
  this->Parameters = this->Slope = VectorXd::Zero(size);

  VectorXd share(this->Tokens);
  for (Index t = 0; t < this->Tokens; ++t)
  {
    share[t] = std::pow(this->Options.priorDecay, static_cast<double>(t));
  }
  share /= share.sum();
  this->Prior = share * share.transpose();
  this->Cumulative.resize(this->Tokens * this->Tokens);
  double sum = 0;
  for (Index pair = 0; pair < this->Cumulative.size(); ++pair)
  {
    sum += this->Prior(pair / this->Tokens, pair % this->Tokens);
    this->Cumulative[pair] = sum;
  }
}

/// A number in [0, 1), computed from the bits of the generator.
double PairTrainer::Uniform()
{
  return std::ldexp(static_cast<double>(this->Generator() >> 11U), -53);
}

/// A standard normal number, by the Box-Muller transform.
double PairTrainer::Normal()
{
  const double radius = std::sqrt(-2 * std::log(1 - this->Uniform()));
  return radius * std::cos(2 * Pi * this->Uniform());
}

/// A number that is uniform in +-width, or normal with the same variance.
double PairTrainer::Draw(double width)
{
  return this->Options.initialization == Initialization::Published
           ? width * (2 * this->Uniform() - 1)
           : width / std::sqrt(3.0) * this->Normal();
}

void PairTrainer::Initialize()
{
  const auto fill = [this](Index begin, Index count, double width)
  {
    for (Index i = begin; i < begin + count; ++i)
    {
      this->Parameters[i] = this->Draw(width);
    }
  };
  const auto d = static_cast<double>(this->Layout.dimension);
  // As linear layers from N to 3 (words), from 3 positions to 3, and from 3 to N (unembedding);
  // Xavier (Glorot and Bengio 2010) between 3 and d_h for the heads.
  fill(this->Layout.Word(), 3 * this->Tokens, 1 / std::sqrt(static_cast<double>(this->Tokens)));
  fill(this->Layout.Position(), 6, 1 / std::sqrt(3.0));
  fill(this->Layout.Unembedding(), 3 * this->Tokens, 1 / std::sqrt(3.0));
  for (Index h = 0; h < this->Layout.heads; ++h)
  {
    const Index inputs = 9 * this->Layout.dimension;
    fill(this->Layout.Head(h), inputs, std::sqrt(6 / (3 + d)));
    fill(this->Layout.Head(h) + inputs, 3 * this->Layout.dimension, 1 / std::sqrt(3.0));
  }
}

void PairTrainer::ReadParameters(const AttentionOnlyModel& model)
{
  double* out = this->Parameters.data();
  ForTensors(
    model, [&out](const auto& tensor) { out = std::copy_n(tensor.data(), tensor.size(), out); });
}

AttentionOnlyModel PairTrainer::ToModel(const VectorXd& values) const
{
  const Index d = this->Layout.dimension;
  AttentionOnlyModel model;
  model.wordEmbedding.resize(this->Tokens, 3);
  model.positionEmbedding.resize(2, 3);
  model.unembedding.resize(this->Tokens, 3);
  model.heads.assign(this->Layout.heads, { Rows3(d, 3), Rows3(d, 3), Rows3(d, 3), Columns3(3, d) });
  const double* in = values.data();
  ForTensors(model,
    [&in](auto& tensor)
    {
      std::copy_n(in, tensor.size(), tensor.data());
      in += tensor.size();
    });
  model.nextToken = this->Targets;
  model.precision = DType::F64;
  model.metadata = this->Origin;
  return model;
}

int PairTrainer::GetPhase() const
{
  if (this->Options.mode == TrainingMode::Joint)
  {
    return -1;
  }
  const auto done = static_cast<std::int64_t>(this->StepsDone) * this->Options.heads;
  return static_cast<int>(
    std::min<std::int64_t>(done / std::max(this->Options.steps, 1), this->Options.heads - 1));
}

int PairTrainer::ActiveHeads() const
{
  const int phase = this->GetPhase();
  return phase < 0 ? this->Options.heads : phase + 1;
}

/// The index t1 N + t2 of a pair drawn from the prior.
Index PairTrainer::DrawPair()
{
  const double* begin = this->Cumulative.data();
  const double* end = begin + this->Cumulative.size();
  return std::min<Index>(std::upper_bound(begin, end, this->Uniform() * end[-1]) - begin,
    this->Tokens * this->Tokens - 1);
}

/// Sums loss and gradient over all pairs, or over a sampled batch. Returns the loss with its
/// penalty; `gradient` and `state` may be null.
double PairTrainer::Accumulate(VectorXd* gradient, bool sampled, TrainingState* state)
{
  const Index n = this->Tokens;
  PairSum sum(
    this->Layout, this->Parameters.data(), this->ActiveHeads(), this->Options.specialization);
  const auto add = [&](Index t1, Index t2, double weight)
  {
    const WeightedPair pair = { t1, t2, static_cast<Index>(this->Targets(t1, t2)), weight };
    sum.AddLoss(pair, state != nullptr);
    if (gradient != nullptr)
    {
      sum.AddGradient(pair);
    }
  };
  if (sampled)
  {
    for (int i = 0; i < this->Options.batchSize; ++i)
    {
      const Index pair = this->DrawPair();
      add(pair / n, pair % n, 1. / this->Options.batchSize);
    }
  }
  else
  {
    for (Index pair = 0; pair < n * n; ++pair)
    {
      add(pair / n, pair % n, this->Prior(pair / n, pair % n));
    }
  }
  if (state != nullptr)
  {
    *state = { this->StepsDone, sum.GetLoss(), sum.Accuracy() };
  }
  if (gradient != nullptr)
  {
    sum.WriteGradient(*gradient);
  }
  return sum.LossWithPenalty();
}

/// Sets the gradients of all parameters that are currently frozen to 0.
void PairTrainer::Freeze(VectorXd& slopes) const
{
  const int phase = this->GetPhase();
  if (phase < 0)
  {
    return;
  }
  const Index inputs = 9 * this->Layout.dimension;
  if (phase > 0)
  {
    slopes.head(this->Layout.Head(phase)).setZero();
  }
  slopes.tail(slopes.size() - this->Layout.Head(phase + 1)).setZero();
  if (this->Options.mode == TrainingMode::BoostingOutputOnly)
  {
    slopes.segment(this->Layout.Head(phase), inputs).setZero();
  }
}

void PairTrainer::Step(TrainingState* before)
{
  const bool sampled = this->Options.batchSize > 0;
  if (sampled && before != nullptr)
  {
    *before = this->Measure();
  }
  this->Accumulate(&this->Slope, sampled, sampled ? nullptr : before);
  this->Freeze(this->Slope);
  if (this->Options.optimizer == Optimizer::GradientDescent)
  {
    this->Parameters -= this->Options.learningRate * this->Slope;
  }
  else
  {
    // Frozen parameters must not move on by momentum: a new phase has moments of its own.
    if (this->Adam == nullptr || this->GetPhase() != this->AdamPhase)
    {
      OptimizerOptions options;
      options.rate = this->Options.learningRate;
      options.clip = 0;
      this->Adam =
        std::make_unique<AdamW<double>>(this->Parameters.size(), options, this->Options.steps);
      this->AdamPhase = this->GetPhase();
    }
    constexpr double anyNorm = 0; // is not clipped
    this->Adam->Update(this->Parameters.data(), this->Slope.data(), anyNorm, 1);
  }
  ++this->StepsDone;
  if (!this->Parameters.allFinite())
  {
    throw DivergenceError("the training diverged at step ", this->StepsDone, " with LearningRate ",
      this->Options.learningRate, ".");
  }
}

TrainingState PairTrainer::Measure()
{
  TrainingState state;
  this->Accumulate(nullptr, false, &state);
  return state;
}

AttentionOnlyModel PairTrainer::GetModel() const
{
  AttentionOnlyModel model = this->ToModel(this->Parameters);
  for (std::size_t h = this->ActiveHeads(); h < model.heads.size(); ++h)
  {
    model.heads[h].output.setZero();
  }
  model.metadata["step"] = std::to_string(this->StepsDone);
  return model;
}

double PairTrainer::Gradient(AttentionOnlyModel& gradient)
{
  VectorXd slopes;
  const double loss = this->Accumulate(&slopes, false, nullptr);
  this->Freeze(slopes);
  gradient = this->ToModel(slopes);
  return loss;
}

}
