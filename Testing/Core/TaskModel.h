#pragma once

#include "Files/Tensor.h"
#include "Learning/LearningRecipe.h"
#include "Learning/TransformerTrainer.h"
#include "Weights/Transformer.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace atlas::test
{

/// The transformer of a task, without biases and, for tokens, without normalization, whose weights
/// are 0 until they are set: a model worked out by hand.
class TaskModel
{
public:
  TaskModel(const LearningTask& task, ArchitectureOptions architecture)
  {
    architecture.norm = NormKind::None;
    architecture.biases = false;
    this->Config = MakeConfig(architecture, task);
    for (const auto& [name, shape] : ParameterShapes(this->Config))
    {
      const std::vector<double> values(ElementCount(shape).value());
      this->Weights[name] = Tensor::FromDouble(DType::F32, shape, values);
    }
  }

  /// Sets one value of a matrix; of head 0, if it has one per head.
  void Set(const std::string& name, std::int64_t row, std::int64_t column, float value)
  {
    Tensor& tensor = this->Weights.at(name);
    const std::size_t i = row * tensor.shape.back() + column;
    std::memcpy(tensor.bytes.data() + i * sizeof(float), &value, sizeof(float));
  }

  /// The model; it reads this object's tensors.
  Transformer Make() const
  {
    return { this->Config, WeightFiles(ViewsOf(this->Weights), "by hand") };
  }

private:
  TransformerConfig Config;
  Tensors Weights;
};

/// The sequences of a batch with the targets in place of what hides them.
inline std::vector<std::vector<std::int64_t>> Restored(const TrainingBatch& batch)
{
  std::vector<std::vector<std::int64_t>> sequences = batch.input.tokens;
  auto target = batch.targets.begin();
  for (std::vector<std::int64_t>& sequence : sequences)
  {
    for (std::int64_t& token : sequence)
    {
      token = *target < 0 ? token : *target;
      ++target;
    }
  }
  return sequences;
}

/// The options of a task with its usual sizes.
inline TaskOptions OptionsOf(TaskKind kind, std::uint64_t seed = 0)
{
  TaskOptions options;
  options.kind = kind;
  options.seed = seed;
  return options;
}

}
