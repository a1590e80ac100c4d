#pragma once

#include "Files/Tensor.h"
#include "LearningRecipe.h"
#include "TrainingBatch.h"
#include "Weights/Transformer.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace atlas
{

/// The names and shapes of the parameters of a model: TransformerLens' names or, for bert and vit,
/// those of Hugging Face. Biases follow config.inputBias, outputBias (with that of an untied
/// unembedding) and mlpBias.
std::map<std::string, Shape> ParameterShapes(const TransformerConfig& config);

/// Random first weights, F32: normal distributions; gains 1, shifts and biases 0. They depend on
/// the configuration and the seed alone.
Tensors InitialWeights(const TransformerConfig& config, double scale, std::uint64_t seed);

/// One step of a training.
struct TrainingStep
{
  double loss = 0;         ///< before the update, in nats
  double gradientNorm = 0; ///< before clipping
  double rate = 0;         ///< learning rate
};

/// Trains a transformer: gradients by hand, in blocks of matrix products.
///
/// Results are equal to the byte for any number of threads.
class TransformerTrainer
{
public:
  /// Begins with `weights`, the tensors of ParameterShapes. `steps` is the length of the Cosine
  /// schedule. Throws OptionError and ModelError.
  TransformerTrainer(const TransformerConfig& config, const Tensors& weights,
    const OptimizerOptions& optimizer, std::int64_t steps, int threads = 0);
  ~TransformerTrainer();

  /// Computes the gradient of a batch and updates the weights. Throws DivergenceError with the step
  /// if the loss or the gradient is not finite; the weights are those before the step then.
  TrainingStep Step(const TrainingBatch& batch);

  /// The model with the current weights, in place: later steps change them.
  const Transformer& GetModel() const;

  /// A copy of the current weights, F32.
  Tensors Weights() const;

  /// The number of steps done.
  std::int64_t StepCount() const;

  /// The weights, the moments of Adam and the step, with which another trainer goes on. Tensors
  /// "weights.NAME", "first.NAME", "second.NAME", and "step".
  Tensors State() const;

  /// Continues from the State of a trainer of the same model. Throws ModelError if a tensor is
  /// missing or of another shape.
  void SetState(const TensorViews& state);

private:
  struct Impl;
  std::unique_ptr<Impl> Data;
};

}
