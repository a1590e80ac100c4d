#pragma once

// Internal to Core: the loss of a batch and its gradient, by hand.

#include "AttentionGradient.h"
#include "Learning/TrainingBatch.h"
#include "ParameterBlock.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace atlas
{

/// Computes the loss of a batch, the mean of -log p over its targets, and its gradient.
///
/// The batch is divided into a number of shards that depends on the batch alone. Each is run
/// forward and backward by one thread, a few sequences at a time, and adds to its own gradient; the
/// gradients of the shards are then added in their order. Results are thus equal to the byte for
/// any number of threads.
template<class Number>
class GradientPass
{
public:
  /// `parameters` must outlive this object.
  explicit GradientPass(const ParameterBlock<Number>& parameters);
  ~GradientPass();

  /// Throws OptionError if the batch has no target, or one is not a class of the model, and as
  /// CheckInput does.
  BatchEvaluation Evaluate(const TrainingBatch& batch, int threads);

  /// Returns the loss, and writes the gradient, in the layout of the parameters.
  double Gradient(const TrainingBatch& batch, int threads, Number* gradient);

private:
  class Worker;

  const ParameterBlock<Number>& Parameters;
  AttentionTables<Number> Tables;
  std::vector<std::unique_ptr<Worker>> Idle; ///< with their memory
  std::mutex Mutex;                          ///< guards Idle
  std::vector<std::vector<Number>> ShardGradients;

  /// Returns the loss. Without `results` it computes the gradients of shards, else these.
  double Run(const TrainingBatch& batch, int threads, BatchEvaluation* results);
  std::unique_ptr<Worker> TakeWorker();
};

extern template class GradientPass<float>;
extern template class GradientPass<double>;

}
