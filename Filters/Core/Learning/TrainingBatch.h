#pragma once

#include "Preprocessing/TransformerInput.h"
#include "Weights/Transformer.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// What a model is trained on in one step.
struct TrainingBatch
{
  TransformerInput input; ///< sequences, whose lengths may differ, or images

  /// What is to be predicted from each row: one number per token of each sequence or, for images,
  /// per class token and patch of each image. A token id or class; -1: no loss. The loss is the
  /// mean of -log p(target), in nats, over the rows that have a target.
  std::vector<std::int64_t> targets;
};

/// What a model predicts for a batch.
struct BatchEvaluation
{
  double loss = 0;             ///< mean of -log p(target) over the rows that have a target, in nats
  double accuracy = 0;         ///< share of these rows whose most likely class is the target
  std::vector<double> rowLoss; ///< [rows]; 0 without a target
  std::vector<std::int64_t> predicted; ///< [rows], the most likely class; -1 without a target
};

/// Runs a model of MakeConfig, whose weights may be of any type, on a batch, as the training does.
/// Throws OptionError if the batch does not fit the model; ModelError if its weights are not those
/// of ParameterShapes.
BatchEvaluation EvaluateBatch(
  const Transformer& model, const TrainingBatch& batch, int threads = 0);

/// The share of the rows with a target, among those for which isCounted(target) holds, that are
/// predicted right; 0 without such rows.
template<class Function>
double ShareRight(
  const TrainingBatch& batch, const std::vector<std::int64_t>& predicted, const Function& isCounted)
{
  std::int64_t right = 0;
  std::int64_t count = 0;
  for (std::size_t row = 0; row < batch.targets.size(); ++row)
  {
    if (batch.targets[row] >= 0 && isCounted(batch.targets[row]))
    {
      right += predicted[row] == batch.targets[row] ? 1 : 0;
      ++count;
    }
  }
  return count > 0 ? static_cast<double>(right) / static_cast<double>(count) : 0;
}

}
