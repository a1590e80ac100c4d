#pragma once

#include "Recording.h"
#include "TrainingBatch.h"
#include "Transformer.h"

#include <vector>

namespace atlas
{

/// What a model predicts from one row of a batch.
struct RowPrediction
{
  bool hasTarget = false;
  bool isRight = false; ///< the largest logit, the first one of equal ones, is that of the target
  double loss = 0;      ///< -log p(target), in nats
};

/// The predictions from each row of a recording with logits. `targets` are those of its rows.
std::vector<RowPrediction> PredictRows(
  const Recording& recording, const std::vector<std::int64_t>& targets);

/// The same for a model on a batch. Throws as RecordTransformer does.
std::vector<RowPrediction> PredictRows(
  const Transformer& model, const TrainingBatch& batch, int threads);

/// Means over the rows that have a target; 0 without such rows.
double MeanLoss(const std::vector<RowPrediction>& rows);
double ShareRight(const std::vector<RowPrediction>& rows);

}
