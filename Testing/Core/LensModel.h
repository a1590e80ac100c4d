#pragma once

#include "LearningRecipe.h"
#include "Tensor.h"
#include "Transformer.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace atlas::test
{

/// An attention-only transformer for a task, without normalization, whose weights are 0 until they
/// are set: a model worked out by hand.
class LensModel
{
public:
  LensModel(const LearningTask& task, ArchitectureOptions architecture)
  {
    architecture.norm = NormKind::None;
    architecture.biases = false;
    this->Config = MakeConfig(architecture, task);
    const std::int64_t d = this->Config.modelDimension;
    const std::int64_t h = this->Config.heads;
    const std::int64_t dh = this->Config.headDimension;
    this->Add("embed.W_E", { this->Config.vocabulary, d });
    this->Add("pos_embed.W_pos", { this->Config.positions, d });
    for (std::int64_t l = 0; l < this->Config.layers; ++l)
    {
      const std::string prefix = "blocks." + std::to_string(l) + ".attn.";
      this->Add(prefix + "W_Q", { h, d, dh });
      this->Add(prefix + "W_K", { h, d, dh });
      this->Add(prefix + "W_V", { h, d, dh });
      this->Add(prefix + "W_O", { h, dh, d });
    }
    this->Add("unembed.W_U", { d, this->Config.outputVocabulary });
  }

  /// Sets one value of a matrix; of head 0, if it has one per head.
  void Set(const std::string& name, std::int64_t row, std::int64_t column, float value)
  {
    Tensor& tensor = this->Weights.at(name);
    const auto i = static_cast<std::size_t>(row * tensor.shape.back() + column);
    std::memcpy(tensor.bytes.data() + i * sizeof(float), &value, sizeof(float));
  }

  /// The model; it reads this object's tensors.
  Transformer Make() const
  {
    TensorViews views;
    for (const auto& [name, tensor] : this->Weights)
    {
      views.emplace(name, tensor.View());
    }
    return { this->Config, WeightFiles(views, "by hand") };
  }

private:
  TransformerConfig Config;
  Tensors Weights;

  void Add(const std::string& name, const Shape& shape)
  {
    const std::vector<double> values(ElementCount(shape).value());
    this->Weights[name] = Tensor::FromDouble(DType::F32, shape, values);
  }
};

/// The options of a task with its usual sizes.
inline TaskOptions OptionsOf(TaskKind kind, std::uint64_t seed = 0)
{
  TaskOptions options;
  options.kind = kind;
  options.seed = seed;
  return options;
}

}
