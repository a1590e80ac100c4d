#include "LearningRun.h"

#include "AttentionOnly/HeadAccuracy.h"
#include "Base/Error.h"
#include "CheckpointFiles.h"
#include "PairTrainer.h"
#include "TransformerTrainer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace atlas
{
namespace
{

constexpr std::int64_t DefaultCheckpoints = 30;
constexpr std::int64_t DefaultRows = 100;

/// Throws OptionError if something happens too often; more make lists of time steps and charts
/// slow.
void RequireCount(const char* name, const char* what, std::int64_t steps, std::int64_t every)
{
  constexpr std::int64_t most = 100000;
  const std::int64_t count = every > 0 ? steps / every : 0;
  ThrowIf<OptionError>(
    count > most, name, ": expected at most ", most, " ", what, ", found ", count, "; raise it.");
}

/// `first`, the multiples of `every` behind it, and `steps`.
std::vector<std::int64_t> EverySteps(std::int64_t first, std::int64_t steps, std::int64_t every)
{
  std::vector<std::int64_t> all;
  for (std::int64_t step = first; step < steps; step = (step / every + 1) * every)
  {
    all.push_back(step);
  }
  all.push_back(steps);
  return all;
}

void CheckRecipe(const LearningRecipe& recipe, const LearningOptions& options)
{
  const auto requireCount = [](const char* name, std::int64_t found)
  { ThrowIf<OptionError>(found < 0, name, ": expected 0 or more, found ", found, "."); };
  requireCount("Steps", recipe.steps);
  const bool takesAll =
    recipe.task.kind == TaskKind::ModularAddition || recipe.task.kind == TaskKind::TokenPairs;
  constexpr std::int64_t most = 1000000;
  ThrowIf<OptionError>(recipe.batchSize < (takesAll ? 0 : 1) || recipe.batchSize > most,
    "BatchSize: expected 1 to ", most, ", or 0 for ModularAddition and TokenPairs, found ",
    recipe.batchSize, ".");
  requireCount("CheckpointEvery", options.checkpointEvery);
  requireCount("MeasureEvery", options.measureEvery);
  RequireCount("CheckpointEvery", "checkpoints", recipe.steps, options.checkpointEvery);
  RequireCount("MeasureEvery", "rows", recipe.steps, options.measureEvery);
  ThrowIf<OptionError>(!(recipe.initialization >= 0) || !std::isfinite(recipe.initialization),
    "Initialization: expected 0 or more, found ", recipe.initialization, ".");
}

/// A transformer that is trained on batches of its task.
class TransformerCourse
{
public:
  TransformerCourse(
    const LearningRecipe& recipe, const LearningOptions& options, const TensorViews& state)
    : BatchSize(recipe.batchSize)
    , Threads(options.threads)
    , Task(MakeTask(recipe.task))
    , Config(MakeConfig(recipe.architecture, *Task))
    , Trainer(Config, InitialWeights(Config, recipe.initialization, recipe.seed), recipe.optimizer,
        recipe.steps, options.threads)
    , HeldOut(Task->MakeHeldOut())
  {
    if (!state.empty())
    {
      this->Trainer.SetState(state);
      ThrowIf<OptionError>(this->StepCount() > recipe.steps,
        "Steps: the training to continue has already done ", this->StepCount(),
        " steps; expected at least as many, found ", recipe.steps, ".");
    }
  }

  std::vector<std::string> MeasureNames() const
  {
    std::vector<std::string> names = this->Task->MeasureNames();
    names.insert(names.begin(), { "Step", "Loss", "Accuracy", "Held-out Loss" });
    return names;
  }

  std::map<std::string, std::string> Files() const { return FilesOf(*this->Task); }

  std::int64_t StepCount() const { return this->Trainer.StepCount(); }

  /// Returns the loss of the batch.
  double Step()
  {
    return this->Trainer.Step(this->Task->MakeBatch(this->StepCount(), this->BatchSize)).loss;
  }

  /// The values of MeasureNames; only a step measures the loss.
  std::vector<double> Measure()
  {
    const Transformer& model = this->Trainer.GetModel();
    const BatchEvaluation heldOut = EvaluateBatch(model, this->HeldOut, this->Threads);
    std::vector<double> values = this->Task->Measure(model, this->Threads);
    values.insert(
      values.begin(), { static_cast<double>(this->StepCount()),
                        std::numeric_limits<double>::quiet_NaN(), heldOut.accuracy, heldOut.loss });
    return values;
  }

  /// A checkpoint with weights of its own.
  LearningCheckpoint Checkpoint() const
  {
    LearningCheckpoint checkpoint;
    checkpoint.step = this->StepCount();
    checkpoint.weights = std::make_shared<const Tensors>(this->Trainer.Weights());
    checkpoint.model = std::make_shared<const Transformer>(
      this->Config, WeightFiles(ViewsOf(*checkpoint.weights),
                      "the model after step " + std::to_string(checkpoint.step)));
    return checkpoint;
  }

  Tensors State() const { return this->Trainer.State(); }

private:
  std::int64_t BatchSize;
  int Threads;
  std::unique_ptr<LearningTask> Task;
  TransformerConfig Config;
  TransformerTrainer Trainer;
  TrainingBatch HeldOut;
};

/// An attention-only model that is trained on all pairs.
class PairCourse
{
public:
  PairCourse(const LearningRecipe& recipe, const TensorViews& state)
    : PairCourse(ToPairTraining(recipe),
        recipe.pairs.model.empty() ? std::nullopt
                                   : std::optional(ReadAttentionOnlyModel(recipe.pairs.model)),
        recipe.pairs.keepsWeights)
  {
    ThrowIf<OptionError>(
      !state.empty(), "Task: expected one of a transformer to continue, found TokenPairs.");
  }

  std::vector<std::string> MeasureNames() const
  {
    std::vector<std::string> names = { "Step", "Loss", "Accuracy", "Phase" };
    for (int head = 0; head < this->Trainer.GetOptions().heads; ++head)
    {
      names.push_back("Accuracy Head " + std::to_string(head));
    }
    return names;
  }

  std::map<std::string, std::string> Files() const { return {}; }

  std::int64_t StepCount() const { return this->Trainer.GetStep(); }

  /// Returns the loss over all pairs, if the step uses them, or else when it was last measured.
  double Step()
  {
    const bool isSampled = this->Trainer.GetOptions().batchSize > 0;
    this->Trainer.Step(isSampled ? nullptr : &this->Last);
    return this->Last.loss;
  }

  std::vector<double> Measure()
  {
    this->Last = this->Trainer.Measure();
    std::vector<double> values = { static_cast<double>(this->Last.step), this->Last.loss,
      this->Last.accuracy, static_cast<double>(this->Trainer.GetPhase()) };
    const HeadAccuracies heads =
      CountCorrect(this->Trainer.GetModel(), Residual::EmbeddingPosition);
    for (const Eigen::Index correct : heads.alone)
    {
      values.push_back(heads.Share(correct));
    }
    return values;
  }

  LearningCheckpoint Checkpoint() const
  {
    LearningCheckpoint checkpoint;
    checkpoint.step = this->StepCount();
    checkpoint.pairs = std::make_shared<const AttentionOnlyModel>(this->Trainer.GetModel());
    return checkpoint;
  }

  Tensors State() const { return {}; }

private:
  PairTrainer Trainer;
  TrainingState Last;

  PairCourse(const TrainingOptions& options, const std::optional<AttentionOnlyModel>& model,
    bool keepsWeights)
    : Trainer(options, { model ? &*model : nullptr, keepsWeights })
  {
  }
};

/// A training in progress: what is the same for all models.
template<class Model>
class Course
{
public:
  /// Both must outlive it.
  Course(Model& model, std::int64_t steps, const LearningOptions& options)
    : Trained(model)
    , Steps(steps)
    , Options(options)
  {
    const std::vector<std::int64_t> kept = CheckpointSteps(0, steps, options.checkpointEvery);
    this->Kept.insert(kept.begin(), kept.end());
    const std::int64_t every = options.measureEvery > 0
                                 ? options.measureEvery
                                 : std::max<std::int64_t>(1, steps / DefaultRows);
    const std::vector<std::int64_t> measured = EverySteps(0, steps, every);
    this->Measured = this->Kept;
    this->Measured.insert(measured.begin(), measured.end());
    this->Result.files = model.Files();
    this->Result.curves.names = model.MeasureNames();
  }

  LearningResult Train()
  {
    this->Reach(true);
    while (this->Trained.StepCount() < this->Steps && this->Step() && this->TryReach())
    {
    }
    // Weights with which a training diverges are no checkpoint; those at which it stops are one.
    if (this->Result.divergence.empty() &&
        this->Result.checkpoints.back().step != this->Trained.StepCount())
    {
      this->TryReach();
    }
    return std::move(this->Result);
  }

private:
  Model& Trained;
  std::int64_t Steps;
  const LearningOptions& Options;
  std::set<std::int64_t> Kept;     ///< the steps after which there is a checkpoint
  std::set<std::int64_t> Measured; ///< those with a row of the curves
  LearningResult Result;

  /// One step; false if that was the last one.
  bool Step()
  {
    const std::int64_t step = this->Trained.StepCount();
    try
    {
      const double loss = this->Trained.Step();
      std::vector<std::vector<double>>& rows = this->Result.curves.rows;
      if (!rows.empty() && rows.back()[0] == static_cast<double>(step) &&
          std::isnan(rows.back()[1]))
      {
        rows.back()[1] = loss; // of the weights that were measured
      }
      const double done = static_cast<double>(step + 1) / static_cast<double>(this->Steps);
      this->Result.stopped = this->Options.progress && !this->Options.progress(done, loss);
      return !this->Result.stopped;
    }
    catch (const DivergenceError& e)
    {
      this->Result.divergence = e.what();
      return false;
    }
  }

  /// Reach after a step; false if the model gives numbers that are not finite.
  bool TryReach()
  {
    try
    {
      this->Reach(this->Result.stopped || this->Trained.StepCount() == this->Steps);
      return true;
    }
    catch (const ModelError& e)
    {
      this->Result.divergence = "the training diverged in step " +
                                std::to_string(this->Trained.StepCount() - 1) + ": " + e.what();
      return false;
    }
  }

  /// Measures and keeps the model if it is time.
  void Reach(bool isEnd)
  {
    const std::int64_t step = this->Trained.StepCount();
    if (isEnd || this->Measured.count(step) != 0)
    {
      this->Result.curves.rows.push_back(this->Trained.Measure());
    }
    if (isEnd || this->Kept.count(step) != 0)
    {
      this->Result.checkpoints.push_back(this->Trained.Checkpoint());
      this->Result.state = std::make_shared<const Tensors>(this->Trained.State());
      if (this->Options.checkpoint)
      {
        this->Options.checkpoint(this->Result.checkpoints.back(), *this->Result.state);
      }
    }
  }
};

}

std::vector<std::int64_t> LogarithmicSteps(std::int64_t steps, std::int64_t count)
{
  std::set<std::int64_t> result = { 0, steps };
  for (std::int64_t i = 0; i < count && steps > 0; ++i)
  {
    const double part = static_cast<double>(i) / static_cast<double>(count);
    result.insert(std::llround(std::pow(static_cast<double>(steps), part)));
  }
  return { result.begin(), result.end() };
}

std::vector<std::int64_t> CheckpointSteps(
  std::int64_t first, std::int64_t steps, std::int64_t every)
{
  if (every > 0)
  {
    RequireCount("CheckpointEvery", "checkpoints", steps - first, every);
    return EverySteps(first, steps, every);
  }
  std::vector<std::int64_t> all = { first };
  for (const std::int64_t step : LogarithmicSteps(steps, DefaultCheckpoints))
  {
    if (step > first)
    {
      all.push_back(step);
    }
  }
  return all;
}

double TrainingBytes(const LearningRecipe& recipe, std::int64_t checkpoints)
{
  const auto real = [](std::int64_t number) { return static_cast<double>(number); };
  if (recipe.task.kind == TaskKind::TokenPairs)
  {
    const TrainingOptions options = ToPairTraining(recipe);
    return PairTaskBytes(options) + real(checkpoints) * PairModelBytes(options);
  }
  const ArchitectureOptions& model = recipe.architecture;
  const double d = real(model.modelDimension);
  const double heads = real(model.heads);
  const double inner = model.headDimension > 0 ? heads * real(model.headDimension) : d;
  const double vocabulary = real(recipe.task.vocabulary);
  const double context = real(recipe.task.context);
  const double layer = d * (4 * inner + 3 * real(model.mlpDimension));
  const double weights = real(model.layers) * layer + d * (2 * vocabulary + context);
  // As in GradientPass and AttentionGradient: a few sequences at a time in each of up to 8 shards,
  // attention in blocks of 64 queries.
  constexpr double shards = 8;
  constexpr double slice = 1024;
  constexpr double block = 64;
  const double tokens =
    std::min(real(recipe.batchSize) * context, shards * std::max(slice, context));
  const double kept = real(model.layers) * (8 * d + 4 * inner + 3 * real(model.mlpDimension));
  const double scores = shards * 2 * block * context;
  // The checkpoints; the gradients of the shards, moments and copies for measuring; the state.
  const double models = real(checkpoints) + 3 * shards + 3;
  return sizeof(float) * (models * weights + tokens * (kept + 2 * vocabulary) + scores);
}

LearningResult Learn(
  const LearningRecipe& recipe, const LearningOptions& options, const TensorViews& state)
{
  CheckRecipe(recipe, options);
  if (recipe.task.kind == TaskKind::TokenPairs)
  {
    PairCourse model(recipe, state);
    return Course(model, recipe.steps, options).Train();
  }
  TransformerCourse model(recipe, options, state);
  return Course(model, recipe.steps, options).Train();
}

}
