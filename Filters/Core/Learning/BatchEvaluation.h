#pragma once

#include "TrainingBatch.h"
#include "Transformer.h"

#include <cstdint>
#include <vector>

namespace atlas
{

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

}
