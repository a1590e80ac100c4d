#include "Training.h"

#include "Error.h"
#include "Pi.h"
#include "TorusAngles.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

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

void Require(bool holds, const std::string& message)
{
  if (!holds)
  {
    throw OptionError(message);
  }
}

std::string Found(double value)
{
  return ", found " + std::to_string(value) + ".";
}

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

/// The two linear maps of a head, and the gradients of the loss with respect to them.
struct HeadMaps
{
  Matrix3d score;  ///< W_Q^T W_K / sqrt(d_h)
  Matrix3d output; ///< W_O W_V
  Matrix3d scoreSlope = Matrix3d::Zero();
  Matrix3d outputSlope = Matrix3d::Zero();
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

/// Softmax in place; returns the log probability of `target`.
double Softmax(VectorXd& logits, Index target)
{
  logits.array() -= logits.maxCoeff();
  const double own = logits[target];
  logits = logits.array().exp();
  const double sum = logits.sum();
  logits /= sum;
  return own - std::log(sum);
}

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
  Require(options.vocabularySize >= 1,
    "VocabularySize: expected at least 1 token" + Found(options.vocabularySize));
  Require(options.heads >= 1, "Heads: expected at least 1" + Found(options.heads));
  Require(options.headDimension >= 1,
    "HeadDimension: expected at least 1" + Found(options.headDimension));
  Require(options.steps >= 0, "Steps: expected at least 0" + Found(options.steps));
  Require(std::isfinite(options.learningRate) && options.learningRate > 0,
    "LearningRate: expected a positive number" + Found(options.learningRate));
  Require(options.batchSize >= 0, "BatchSize: expected at least 0" + Found(options.batchSize));
  Require(options.priorDecay > 0 && options.priorDecay <= 1,
    "PriorDecay: expected a number in (0, 1]" + Found(options.priorDecay));
  Require(std::isfinite(options.specialization) && options.specialization >= 0,
    "Specialization: expected at least 0" + Found(options.specialization));
}

Trainer::Trainer(const TrainingOptions& options, const TrainingStart& start)
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
    Require(model->HasTargets(),
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
void Trainer::DrawTargets()
{
  this->Targets.resize(this->Tokens, this->Tokens);
  for (Index i = 0; i < this->Targets.size(); ++i)
  {
    const auto target = static_cast<Index>(this->Uniform() * static_cast<double>(this->Tokens));
    this->Targets.data()[i] = std::min(target, this->Tokens - 1);
  }
}

/// Sets up everything that depends on the sizes.
void Trainer::Prepare()
{
  this->Layout = { this->Tokens, this->Options.heads, this->Options.headDimension };
  const Index size = this->Layout.Size();
  this->Parameters = this->FirstMoment = this->SecondMoment = this->Slope = VectorXd::Zero(size);

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
double Trainer::Uniform()
{
  return std::ldexp(static_cast<double>(this->Generator() >> 11U), -53);
}

/// A standard normal number, by the Box-Muller transform.
double Trainer::Normal()
{
  const double radius = std::sqrt(-2 * std::log(1 - this->Uniform()));
  return radius * std::cos(2 * Pi * this->Uniform());
}

/// A number that is uniform in +-width, or normal with the same variance.
double Trainer::Draw(double width)
{
  return this->Options.initialization == Initialization::Published
           ? width * (2 * this->Uniform() - 1)
           : width / std::sqrt(3.0) * this->Normal();
}

void Trainer::Initialize()
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

void Trainer::ReadParameters(const AttentionOnlyModel& model)
{
  double* out = this->Parameters.data();
  const auto add = [&out](const auto& tensor)
  { out = std::copy_n(tensor.data(), tensor.size(), out); };
  add(model.wordEmbedding);
  add(model.positionEmbedding);
  add(model.unembedding);
  for (const AttentionHead& head : model.heads)
  {
    add(head.query);
    add(head.key);
    add(head.value);
    add(head.output);
  }
}

AttentionOnlyModel Trainer::ToModel(const VectorXd& values) const
{
  AttentionOnlyModel model;
  const double* in = values.data();
  const auto take = [&in](auto& tensor, Index rows, Index columns)
  {
    tensor.resize(rows, columns);
    std::copy_n(in, rows * columns, tensor.data());
    in += rows * columns;
  };
  const Index d = this->Layout.dimension;
  take(model.wordEmbedding, this->Tokens, 3);
  take(model.positionEmbedding, 2, 3);
  take(model.unembedding, this->Tokens, 3);
  model.heads.resize(static_cast<std::size_t>(this->Layout.heads));
  for (AttentionHead& head : model.heads)
  {
    take(head.query, d, 3);
    take(head.key, d, 3);
    take(head.value, d, 3);
    take(head.output, 3, d);
  }
  model.nextToken = this->Targets;
  model.precision = DType::F64;
  model.metadata = this->Origin;
  return model;
}

int Trainer::GetPhase() const
{
  if (this->Options.mode == TrainingMode::Joint)
  {
    return -1;
  }
  const auto done = static_cast<std::int64_t>(this->StepsDone) * this->Options.heads;
  return static_cast<int>(
    std::min<std::int64_t>(done / std::max(this->Options.steps, 1), this->Options.heads - 1));
}

int Trainer::ActiveHeads() const
{
  const int phase = this->GetPhase();
  return phase < 0 ? this->Options.heads : phase + 1;
}

/// Sums loss and gradient over all pairs, or over a sampled batch. Returns the loss with its
/// penalty; `gradient` and `state` may be null.
double Trainer::Accumulate(VectorXd* gradient, bool sampled, TrainingState* state)
{
  const Index n = this->Tokens;
  const Index d = this->Layout.dimension;
  const int active = this->ActiveHeads();
  const double* values = this->Parameters.data();
  const double scale = 1 / std::sqrt(static_cast<double>(d));
  const double lambda = this->Options.specialization;

  std::vector<HeadMaps> heads(static_cast<std::size_t>(active));
  for (int h = 0; h < active; ++h)
  {
    const HeadView view(values + this->Layout.Head(h), d);
    heads[static_cast<std::size_t>(h)].score = scale * view.query.transpose() * view.key;
    heads[static_cast<std::size_t>(h)].output = view.output * view.value;
  }
  const ConstRows words(values + this->Layout.Word(), n, 3);
  const ConstRows positions(values + this->Layout.Position(), 2, 3);
  const ConstRows unembedding(values + this->Layout.Unembedding(), n, 3);
  std::vector<Normalized> embeddings;
  for (Index t = 0; t < n; ++t)
  {
    embeddings.push_back(Normalize(words.row(t)));
  }
  const Vector3d p1 = positions.row(0);
  const Vector3d p2 = positions.row(1);

  Rows3 unembeddingSlope = Rows3::Zero(n, 3);
  Vector3d slope1 = Vector3d::Zero(); // for the position embeddings
  Vector3d slope2 = Vector3d::Zero();
  VectorXd probabilities(n);
  std::vector<VectorXd> alone(static_cast<std::size_t>(active), VectorXd(n));
  std::vector<Vector3d> mixes(static_cast<std::size_t>(active));
  std::vector<Vector3d> outputs(static_cast<std::size_t>(active));
  std::vector<double> attentions(static_cast<std::size_t>(active));
  std::vector<double> shares(static_cast<std::size_t>(active));
  double loss = 0;
  double penalty = 0;
  double wrong = 0; // not the correct share, since this is exactly 0 if no pair is wrong

  const auto addPair = [&](Index t1, Index t2, double weight)
  {
    const Vector3d x1 = embeddings[static_cast<std::size_t>(t1)].embedding + p1;
    const Vector3d x2 = embeddings[static_cast<std::size_t>(t2)].embedding + p2;
    const Vector3d difference = x1 - x2;
    const auto target = static_cast<Index>(this->Targets(t1, t2));

    // Forward.
    Vector3d r = x2;
    for (std::size_t h = 0; h < heads.size(); ++h)
    {
      const double score = x2.dot(heads[h].score * difference);
      attentions[h] = 1 / (1 + std::exp(-score));
      mixes[h] = x2 + attentions[h] * difference;
      outputs[h] = heads[h].output * mixes[h];
      r += outputs[h];
    }
    probabilities.noalias() = unembedding * r;
    if (state != nullptr)
    {
      Index predicted = 0;
      probabilities.maxCoeff(&predicted);
      wrong += predicted == target ? 0 : weight;
    }
    loss -= weight * Softmax(probabilities, target);
    if (lambda > 0)
    {
      double sum = 0;
      for (std::size_t h = 0; h < heads.size(); ++h)
      {
        alone[h].noalias() = unembedding * outputs[h];
        shares[h] = std::exp(Softmax(alone[h], target));
        sum += shares[h];
      }
      sum = std::max(sum, 1e-300);
      penalty -= weight * std::log(sum / static_cast<double>(heads.size()));
      for (double& share : shares)
      {
        share /= sum;
      }
    }
    if (gradient == nullptr)
    {
      return;
    }

    // Backward.
    probabilities[target] -= 1;
    probabilities *= weight;
    unembeddingSlope.noalias() += probabilities * r.transpose();
    const Vector3d slopeR = unembedding.transpose() * probabilities;
    Vector3d slopeX2 = slopeR;
    Vector3d slopeDifference = Vector3d::Zero();
    for (std::size_t h = 0; h < heads.size(); ++h)
    {
      Vector3d slopeOutput = slopeR;
      if (lambda > 0)
      {
        alone[h][target] -= 1;
        alone[h] *= lambda * weight * shares[h];
        unembeddingSlope.noalias() += alone[h] * outputs[h].transpose();
        slopeOutput.noalias() += unembedding.transpose() * alone[h];
      }
      heads[h].outputSlope.noalias() += slopeOutput * mixes[h].transpose();
      const Vector3d slopeMix = heads[h].output.transpose() * slopeOutput;
      const double a = attentions[h];
      const double slopeScore = slopeMix.dot(difference) * a * (1 - a);
      heads[h].scoreSlope.noalias() += slopeScore * x2 * difference.transpose();
      slopeX2 += slopeMix + slopeScore * (heads[h].score * difference);
      slopeDifference += a * slopeMix + slopeScore * (heads[h].score.transpose() * x2);
    }
    slopeX2 -= slopeDifference;
    embeddings[static_cast<std::size_t>(t1)].slope += slopeDifference;
    embeddings[static_cast<std::size_t>(t2)].slope += slopeX2;
    slope1 += slopeDifference;
    slope2 += slopeX2;
  };

  if (sampled)
  {
    for (int i = 0; i < this->Options.batchSize; ++i)
    {
      const double* begin = this->Cumulative.data();
      const double* end = begin + this->Cumulative.size();
      const Index pair =
        std::min<Index>(std::upper_bound(begin, end, this->Uniform() * end[-1]) - begin, n * n - 1);
      addPair(pair / n, pair % n, 1. / this->Options.batchSize);
    }
  }
  else
  {
    for (Index pair = 0; pair < n * n; ++pair)
    {
      addPair(pair / n, pair % n, this->Prior(pair / n, pair % n));
    }
  }
  if (state != nullptr)
  {
    *state = { this->StepsDone, loss, 1 - wrong };
  }
  if (gradient == nullptr)
  {
    return loss + lambda * penalty;
  }

  // From the gradients of the maps to those of the parameters.
  gradient->setZero(this->Layout.Size());
  double* slopes = gradient->data();
  for (Index t = 0; t < n; ++t)
  {
    Map<Vector3d>(slopes + this->Layout.Word() + 3 * t) =
      ThroughNormalization(embeddings[static_cast<std::size_t>(t)]);
  }
  Map<Vector3d>(slopes + this->Layout.Position()) = slope1;
  Map<Vector3d>(slopes + this->Layout.Position() + 3) = slope2;
  Map<Rows3>(slopes + this->Layout.Unembedding(), n, 3) = unembeddingSlope;
  for (int h = 0; h < active; ++h)
  {
    const HeadView view(values + this->Layout.Head(h), d);
    const HeadMaps& maps = heads[static_cast<std::size_t>(h)];
    double* begin = slopes + this->Layout.Head(h);
    Map<Rows3>(begin, d, 3) = scale * view.key * maps.scoreSlope.transpose();
    Map<Rows3>(begin + 3 * d, d, 3) = scale * view.query * maps.scoreSlope;
    Map<Rows3>(begin + 6 * d, d, 3) = view.output.transpose() * maps.outputSlope;
    Map<Columns3>(begin + 9 * d, 3, d) = maps.outputSlope * view.value.transpose();
  }
  return loss + lambda * penalty;
}

/// Sets the gradients of all parameters that are currently frozen to 0.
void Trainer::Freeze(VectorXd& slopes) const
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

void Trainer::Step(TrainingState* before)
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
    constexpr double decay1 = 0.9;
    constexpr double decay2 = 0.999;
    constexpr double epsilon = 1e-8;
    this->FirstMoment = decay1 * this->FirstMoment + (1 - decay1) * this->Slope;
    this->SecondMoment =
      decay2 * this->SecondMoment + (1 - decay2) * this->Slope.cwiseProduct(this->Slope);
    // Frozen parameters must not move on by momentum, and a new phase counts its own steps.
    this->Freeze(this->FirstMoment);
    this->Freeze(this->SecondMoment);
    if (this->GetPhase() != this->MomentPhase)
    {
      this->MomentPhase = this->GetPhase();
      this->MomentSteps = 0;
    }
    ++this->MomentSteps;
    const double bias1 = 1 - std::pow(decay1, this->MomentSteps);
    const double bias2 = 1 - std::pow(decay2, this->MomentSteps);
    this->Parameters.array() -= this->Options.learningRate / bias1 * this->FirstMoment.array() /
                                ((this->SecondMoment.array() / bias2).sqrt() + epsilon);
  }
  ++this->StepsDone;
  if (!this->Parameters.allFinite())
  {
    throw DivergenceError("the training diverged at step " + std::to_string(this->StepsDone) +
                          " with LearningRate " + std::to_string(this->Options.learningRate) + ".");
  }
}

TrainingState Trainer::Measure()
{
  TrainingState state;
  this->Accumulate(nullptr, false, &state);
  return state;
}

AttentionOnlyModel Trainer::GetModel() const
{
  AttentionOnlyModel model = this->ToModel(this->Parameters);
  for (auto h = static_cast<std::size_t>(this->ActiveHeads()); h < model.heads.size(); ++h)
  {
    model.heads[h].output.setZero();
  }
  model.metadata["step"] = std::to_string(this->StepsDone);
  return model;
}

double Trainer::Gradient(AttentionOnlyModel& gradient)
{
  VectorXd slopes;
  const double loss = this->Accumulate(&slopes, false, nullptr);
  this->Freeze(slopes);
  gradient = this->ToModel(slopes);
  return loss;
}

}
