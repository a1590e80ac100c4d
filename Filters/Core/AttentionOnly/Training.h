#pragma once

#include "AttentionOnlyModel.h"
#include "Error.h"

#include <cstdint>
#include <random>

namespace atlas
{

/// What is trained when.
enum class TrainingMode
{
  Joint,             ///< all parameters, all the time
  Boosting,          ///< head after head: what the heads before have learned is frozen
  BoostingOutputOnly ///< the same with W_Q, W_K and W_V of all heads frozen as they began, as in
                     ///< the published experiment
};

enum class Optimizer
{
  Adam,
  GradientDescent
};

enum class Initialization
{
  Published, ///< of the published code: uniform of width 1/sqrt(fan in), Xavier for W_Q, W_K, W_V
  Gaussian   ///< normal with the same variances
};

/// A training of a model of embedding dimension 3 on a task that tells the next token of each pair.
struct TrainingOptions
{
  int vocabularySize = 5;     ///< N >= 1
  int heads = 3;              ///< H >= 1
  int headDimension = 3;      ///< d_h >= 1
  int steps = 3500;           ///< >= 0; in Boosting shared equally among the heads
  double learningRate = 0.01; ///< > 0
  int batchSize = 0;          ///< pairs a step, drawn by the prior; 0: all pairs, weighted by it
  TrainingMode mode = TrainingMode::Joint;
  Optimizer optimizer = Optimizer::Adam;
  Initialization initialization = Initialization::Published;
  double priorDecay = 1;     ///< alpha in (0, 1]: P(t1, t2) ~ alpha^t1 alpha^t2; 1 is uniform
  double specialization = 0; ///< lambda >= 0, see Trainer
  std::uint64_t seed = 0;

  bool operator==(const TrainingOptions& other) const;
};

/// A training whose parameters are not finite any more.
class DivergenceError : public OptionError
{
public:
  using OptionError::OptionError;
};

/// Throws OptionError naming the first option that makes no sense.
void CheckOptions(const TrainingOptions& options);

/// How well a model does.
struct TrainingState
{
  int step = 0;    ///< steps done
  double loss = 0; ///< cross entropy minus the entropy of the target, which is 0: the divergence
  double accuracy = 0; ///< share of pairs whose target is the argmax of the logits, by the prior
};

/// What a training begins with.
struct TrainingStart
{
  const AttentionOnlyModel* model = nullptr; ///< whose task is trained; null: a task from the seed
  bool continues = false; ///< whether to begin with its parameters, and not with random ones
};

/// Where each tensor lies in a vector of all parameters.
struct ParameterLayout
{
  Eigen::Index tokens = 0;    ///< N
  Eigen::Index heads = 0;     ///< H
  Eigen::Index dimension = 0; ///< d_h

  Eigen::Index Word() const { return 0; }
  Eigen::Index Position() const { return 3 * this->tokens; }
  Eigen::Index Unembedding() const { return this->Position() + 6; }
  /// Query, key, value and output of a head follow each other.
  Eigen::Index Head(Eigen::Index head) const
  {
    return this->Unembedding() + 3 * this->tokens + head * this->HeadSize();
  }
  Eigen::Index HeadSize() const { return 12 * this->dimension; }
  Eigen::Index Size() const { return this->Head(this->heads); }
};

/// Trains a model in double, step by step, by hand-written gradients.
///
/// The forward pass is the one of AttentionEvaluation.h with the residual EmbeddingPosition, so
/// that AttentionTorus draws what is trained. Loss of all pairs (t1, t2) with prior P and target y:
///
///     L = sum P [ -log softmax(W_U r)_y  -  lambda log( (1/H) sum_h softmax(W_U out_h)_y ) ]
///
/// The second term is the specialization: the probability of the target under a head drawn at
/// random. It is small as soon as one head alone predicts the pair. Its gradient reaches head h
/// with the share p_h / sum_k p_k, p_h = softmax(W_U out_h)_y, that the head has in that
/// probability: the head that is best at a pair already learns it, as in a mixture of experts, and
/// the others are left to other pairs.
///
/// Random numbers come from std::mt19937_64 and the generator's bits alone, so that a seed gives
/// the same bytes everywhere with the same floating point.
class Trainer
{
public:
  /// With a model its vocabulary, and if it is continued its heads, replace those of the options.
  /// Throws OptionError, also if the model has no targets.
  explicit Trainer(const TrainingOptions& options, const TrainingStart& start = {});

  /// One step. Tells in `before`, if given, how well the model did before it, over all pairs: what
  /// Measure would have told, which costs nothing more where the step takes all pairs. Throws
  /// DivergenceError naming the step and the rate if a parameter is not finite any more.
  void Step(TrainingState* before = nullptr);

  /// With the sizes that they have become.
  const TrainingOptions& GetOptions() const { return this->Options; }
  int GetStep() const { return this->StepsDone; }
  bool IsFinished() const { return this->StepsDone >= this->Options.steps; }

  /// The head that is being trained: 0 ... H - 1 in Boosting, where those behind it have weight 0;
  /// -1 in Joint.
  int GetPhase() const;

  /// Loss, with the penalty left out, and accuracy over all pairs.
  TrainingState Measure();

  /// The model as it is now. Heads that are not trained yet have an output matrix of 0.
  AttentionOnlyModel GetModel() const;

  /// The loss with its penalty, over all pairs, and its gradient by each parameter in the shape of
  /// a model, 0 for what is frozen; for tests.
  double Gradient(AttentionOnlyModel& gradient);

private:
  TrainingOptions Options;
  Eigen::Index Tokens;        ///< N
  TokenMatrix Targets;        ///< [N, N]
  Eigen::MatrixXd Prior;      ///< [N, N]
  Eigen::VectorXd Cumulative; ///< of the prior, in the order t1 N + t2
  ParameterLayout Layout;
  Eigen::VectorXd Parameters;
  Eigen::VectorXd FirstMoment;  ///< of Adam
  Eigen::VectorXd SecondMoment; ///< of Adam
  Eigen::VectorXd Slope;        ///< of the last step
  Metadata Origin;
  std::mt19937_64 Generator;
  int StepsDone = 0;
  int MomentPhase = -1; ///< that the moments belong to
  int MomentSteps = 0;

  void DrawTargets();
  void Prepare();
  void Initialize();
  void ReadParameters(const AttentionOnlyModel& model);
  double Uniform();
  double Normal();
  double Draw(double width);
  int ActiveHeads() const;
  double Accumulate(Eigen::VectorXd* gradient, bool sampled, TrainingState* state);
  void Freeze(Eigen::VectorXd& slopes) const;
  AttentionOnlyModel ToModel(const Eigen::VectorXd& values) const;
};

}
