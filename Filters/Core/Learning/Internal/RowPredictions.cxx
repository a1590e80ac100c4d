#include "RowPredictions.h"

#include "Index.h"
#include "RecordTransformer.h"

#include <algorithm>
#include <cmath>

namespace atlas
{
namespace
{

RowPrediction Predict(const float* logits, std::int64_t count, std::int64_t target)
{
  RowPrediction row;
  row.hasTarget = target >= 0;
  if (row.hasTarget)
  {
    const float* largest = std::max_element(logits, logits + count);
    const auto top = static_cast<double>(*largest);
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i)
    {
      sum += std::exp(static_cast<double>(logits[i]) - top);
    }
    row.isRight = largest == logits + target;
    row.loss = std::log(sum) + top - static_cast<double>(logits[target]);
  }
  return row;
}

/// The mean of function(row) over rows that have a target.
template<class Function>
double MeanOf(const std::vector<RowPrediction>& rows, const Function& function)
{
  double sum = 0;
  std::int64_t count = 0;
  for (const RowPrediction& row : rows)
  {
    sum += row.hasTarget ? function(row) : 0;
    count += row.hasTarget ? 1 : 0;
  }
  return count > 0 ? sum / static_cast<double>(count) : 0;
}

}

std::vector<RowPrediction> PredictRows(
  const Recording& recording, const std::vector<std::int64_t>& targets)
{
  std::vector<RowPrediction> rows;
  rows.reserve(targets.size());
  for (const std::int64_t target : targets)
  {
    const auto row = static_cast<std::int64_t>(rows.size());
    rows.push_back(Predict(recording.logits.Row(row), recording.logits.columns, target));
  }
  return rows;
}

std::vector<RowPrediction> PredictRows(
  const Transformer& model, const TrainingBatch& batch, int threads)
{
  RecordOptions options;
  options.queriesAndKeys = options.values = false;
  options.logits = true;
  options.threads = threads;
  return PredictRows(RecordTransformer(model, batch.input, options).value(), batch.targets);
}

double MeanLoss(const std::vector<RowPrediction>& rows)
{
  return MeanOf(rows, [](const RowPrediction& row) { return row.loss; });
}

double ShareRight(const std::vector<RowPrediction>& rows)
{
  return MeanOf(rows, [](const RowPrediction& row) { return row.isRight ? 1. : 0.; });
}

}
