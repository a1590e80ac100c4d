#pragma once

#include "AttentionOnly/AttentionOnlyModel.h"
#include "Base/Error.h"
#include "Base/NamedValues.h"

#include <array>
#include <cstdint>
#include <memory>
#include <random>

namespace atlas
{

template<class Number>
class AdamW;

/// Which parameters are trained at which time.
enum class TrainingMode
{
  Joint,             ///< all parameters, all the time
  Boosting,          ///< one head after another; the heads before it are frozen
  BoostingOutputOnly ///< as Boosting, with W_Q, W_K and W_V of all heads frozen at their initial
                     ///< values, as in the published experiment
};

/// Their names: Joint, Boosting, BoostingOutputOnly.
inline constexpr std::array<Named<TrainingMode>, 3> TrainingModes = { {
  { "Joint", TrainingMode::Joint },
  { "Boosting", TrainingMode::Boosting },
  { "BoostingOutputOnly", TrainingMode::BoostingOutputOnly },
} };

enum class Optimizer
{
  Adam,
  GradientDescent
};

enum class Initialization
{
  Published, ///< as in the published code: uniform of width 1/sqrt(fan in); Xavier (Glorot and
             ///< Bengio 2010) for W_Q, W_K, W_V
  Gaussian   ///< normal distributions with the same variances
};

/// The settings of a training of a model with embedding dimension 3. The task is to predict the
/// next token of each pair.
struct TrainingOptions
{
  int vocabularySize = 5;     ///< N >= 1
  int heads = 3;              ///< H >= 1
  int headDimension = 3;      ///< d_h >= 1
  int steps = 3500;           ///< >= 0; in Boosting divided equally among the heads
  double learningRate = 0.01; ///< > 0
  int batchSize = 0;          ///< pairs per step, drawn from the prior; 0: all pairs, weighted by
                              ///< the prior
  TrainingMode mode = TrainingMode::Joint;
  Optimizer optimizer = Optimizer::Adam;
  Initialization initialization = Initialization::Published;
  double priorDecay = 1;     ///< alpha in (0, 1]: P(t1, t2) ~ alpha^t1 alpha^t2; 1 is uniform
  double specialization = 0; ///< lambda >= 0; see PairTrainer
  std::uint64_t seed = 0;

  bool operator==(const TrainingOptions& other) const;
};

/// Throws OptionError with the name of the first invalid option.
void CheckOptions(const TrainingOptions& options);

/// The memory, in bytes, of a task of N^2 pairs, and of a model that is kept; as doubles, so that
/// no size overflows.
double PairTaskBytes(const TrainingOptions& options);
double PairModelBytes(const TrainingOptions& options);

/// The progress of a training.
struct TrainingState
{
  int step = 0;        ///< number of steps done
  double loss = 0;     ///< mean cross entropy in nats; also the KL divergence, as a target has no
                       ///< entropy
  double accuracy = 0; ///< fraction of pairs whose target is the argmax of the logits, weighted by
                       ///< the prior
};

/// What a training starts from.
struct TrainingStart
{
  const AttentionOnlyModel* model = nullptr; ///< the model whose task is trained; null: draw a task
                                             ///< from the seed
  bool continues = false; ///< whether to start from its parameters instead of random ones
};

/// The offset of each tensor in the vector of all parameters.
struct ParameterLayout
{
  Eigen::Index tokens = 0;    ///< N
  Eigen::Index heads = 0;     ///< H
  Eigen::Index dimension = 0; ///< d_h

  Eigen::Index Word() const { return 0; }
  Eigen::Index Position() const { return 3 * this->tokens; }
  Eigen::Index Unembedding() const { return this->Position() + 6; }
  /// Query, key, value and output of a head are stored one after another.
  Eigen::Index Head(Eigen::Index head) const
  {
    return this->Unembedding() + 3 * this->tokens + head * this->HeadSize();
  }
  Eigen::Index HeadSize() const { return 12 * this->dimension; }
  Eigen::Index Size() const { return this->Head(this->heads); }
};

/// Trains a model in double precision, step by step, with analytic gradients.
///
/// The forward pass is that of AttentionEvaluation.h with the residual EmbeddingPosition, so
/// AttentionTorus shows exactly the function that is trained. The loss over all pairs (t1, t2) with
/// prior P and target y is
///
///     L = sum P [ -log softmax(W_U r)_y  -  lambda log( (1/H) sum_h softmax(W_U out_h)_y ) ]
///
/// The second term is the specialization penalty, the negative log probability of the target under
/// a head drawn at random. It is small as soon as a single head predicts the pair. Its gradient
/// reaches head h with the weight p_h / sum_k p_k, where p_h = softmax(W_U out_h)_y. The head that
/// is already best at a pair therefore learns it, and the other heads are left to other pairs, as
/// in a mixture of experts (Jacobs et al. 1991).
///
/// Steps are gradient descent or Adam (Kingma and Ba 2015) by AdamW, the optimizer of all
/// trainings. Random numbers are computed from the bits of std::mt19937_64, without the standard
/// distributions, so a seed gives the same bytes on all machines with the same floating-point
/// arithmetic.
class PairTrainer
{
public:
  /// If a model is given, its vocabulary size replaces that of the options; if it is continued, so
  /// do the number and dimension of its heads. Throws OptionError if an option is invalid or the
  /// model has no targets.
  explicit PairTrainer(const TrainingOptions& options, const TrainingStart& start = {});
  ~PairTrainer();
  PairTrainer(const PairTrainer&) = delete;
  PairTrainer& operator=(const PairTrainer&) = delete;

  /// Does one step. Sets `before`, if given, to the state of the model before the step, over all
  /// pairs, as Measure would return it; this is free if the step uses all pairs. Throws
  /// DivergenceError with the step and the learning rate if a parameter is no longer finite.
  void Step(TrainingState* before = nullptr);

  /// The options, with the sizes of the model in place of those passed in.
  const TrainingOptions& GetOptions() const { return this->Options; }
  int GetStep() const { return this->StepsDone; }
  bool IsFinished() const { return this->StepsDone >= this->Options.steps; }

  /// The head being trained: 0 ... H - 1 in Boosting, where later heads have weight 0; -1 in Joint.
  int GetPhase() const;

  /// Returns the loss, without the penalty, and the accuracy over all pairs.
  TrainingState Measure();

  /// The current model. Heads that are not trained yet have an output matrix of 0.
  AttentionOnlyModel GetModel() const;

  /// For tests: returns the loss over all pairs, with its penalty, and stores its gradient in the
  /// shape of a model. The gradient of a frozen parameter is 0.
  double Gradient(AttentionOnlyModel& gradient);

private:
  TrainingOptions Options;
  Eigen::Index Tokens;        ///< N
  TokenMatrix Targets;        ///< [N, N]
  Eigen::MatrixXd Prior;      ///< [N, N]
  Eigen::VectorXd Cumulative; ///< cumulative prior, in the order t1 N + t2
  ParameterLayout Layout;
  Eigen::VectorXd Parameters;
  Eigen::VectorXd Slope; ///< gradient of the last step
  Metadata Origin;
  std::mt19937_64 Generator;
  int StepsDone = 0;
  std::unique_ptr<AdamW<double>> Adam;
  int AdamPhase = -1; ///< the phase that its moments belong to

  void DrawTargets();
  void Prepare();
  void Initialize();
  void ReadParameters(const AttentionOnlyModel& model);
  double Uniform();
  double Normal();
  double Draw(double width);
  int ActiveHeads() const;
  Eigen::Index DrawPair();
  double Accumulate(Eigen::VectorXd* gradient, bool sampled, TrainingState* state);
  void Freeze(Eigen::VectorXd& slopes) const;
  AttentionOnlyModel ToModel(const Eigen::VectorXd& values) const;
};

}
