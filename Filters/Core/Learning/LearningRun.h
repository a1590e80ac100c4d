#pragma once

#include "AttentionOnly/AttentionOnlyModel.h"
#include "Files/Tensor.h"
#include "LearningRecipe.h"
#include "Weights/Transformer.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace atlas
{

/// A model at one step of its training, with weights of its own.
struct LearningCheckpoint
{
  std::int64_t step = 0;
  std::shared_ptr<const Tensors> weights; ///< F32
  std::shared_ptr<const Transformer> model;
  std::shared_ptr<const AttentionOnlyModel> pairs; ///< TokenPairs, in place of these
};

/// What is measured during a training, one row per measured step.
struct LearningCurves
{
  std::vector<std::string>
    names; ///< Step, Loss, Accuracy, Held-out Loss, then the measures of the task; TokenPairs:
           ///< Step, Loss, Accuracy, Phase, Accuracy Head 0, ...
  std::vector<std::vector<double>> rows; ///< Loss: of the step's batch, NaN after the last step;
                                         ///< Accuracy, Held-out Loss: of the held-out batch;
                                         ///< TokenPairs: of all pairs
};

struct LearningOptions
{
  std::int64_t checkpointEvery = 0; ///< steps between checkpoints; 0: about 30 checkpoints, on a
                                    ///< logarithmic scale (LogarithmicSteps)
  std::int64_t measureEvery = 0;    ///< steps between rows of the curves; 0: about 100 rows, and at
                                    ///< every checkpoint in any case
  int threads = 0;

  /// Called after each step with the fraction done and the loss. Returns false to stop.
  std::function<bool(double, double)> progress;

  /// Called with each checkpoint when it is reached, and with the state to continue from.
  std::function<void(const LearningCheckpoint&, const Tensors& state)> checkpoint;
};

struct LearningResult
{
  std::vector<LearningCheckpoint> checkpoints; ///< at step 0, ..., the last step done
  std::shared_ptr<const Tensors> state; ///< TransformerTrainer::State at the last checkpoint, to
                                        ///< continue from; empty for TokenPairs
  LearningCurves curves;
  std::map<std::string, std::string> files; ///< FilesOf the task
  std::string divergence;                   ///< a message if the training diverged, with the step
  bool stopped = false;                     ///< progress returned false
};

/// 0, 1, 2, 3, ..., steps: about `count` steps whose distances grow by a constant factor.
std::vector<std::int64_t> LogarithmicSteps(std::int64_t steps, std::int64_t count);

/// The steps with a checkpoint of a training that begins at step `first` and ends at `steps`: both,
/// and in between the multiples of `every`, or about 30 on a logarithmic scale if that is 0. Throws
/// OptionError if there are more than 100,000.
std::vector<std::int64_t> CheckpointSteps(
  std::int64_t first, std::int64_t steps, std::int64_t every);

/// Estimates the memory, in bytes, of a training that keeps this many checkpoints: the weights, and
/// what a step stores for each token. It is a double, so that no size overflows.
double TrainingBytes(const LearningRecipe& recipe, std::int64_t checkpoints);

/// Trains the model of a recipe. What was reached is kept if it diverges or is stopped.
/// Continues from `state` (TransformerTrainer::State) unless that is empty: the bytes are those of
/// an uninterrupted training. Throws OptionError for an invalid recipe, and as MakeTask does.
LearningResult Learn(
  const LearningRecipe& recipe, const LearningOptions& options, const TensorViews& state = {});

}
