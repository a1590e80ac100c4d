#include "BatchEvaluation.h"

#include "GradientPass.h"
#include "Index.h"

#include <utility>

namespace atlas
{

BatchEvaluation EvaluateBatch(const Transformer& model, const TrainingBatch& batch, int threads)
{
  const ParameterBlock<float> parameters(model.GetConfig(), model.GetFiles().GetTensors());
  GradientPass<float> pass(parameters);
  RowResults rows;
  BatchEvaluation result;
  result.loss = pass.Loss(batch, threads, rows);
  std::int64_t right = 0;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < batch.targets.size(); ++i)
  {
    count += batch.targets[i] >= 0 ? 1 : 0;
    right += batch.targets[i] >= 0 && batch.targets[i] == rows.predicted[i] ? 1 : 0;
  }
  result.accuracy = static_cast<double>(right) / static_cast<double>(count);
  result.rowLoss = std::move(rows.loss);
  result.predicted = std::move(rows.predicted);
  return result;
}

}
