#pragma once

#include "Run/RecordTransformer.h"

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace atlas::test
{

/// Everything that a run of a language model can record.
inline RecordOptions AllQuantities(int threads = 0)
{
  RecordOptions options;
  options.headOutputs = true;
  options.residual = true;
  options.logits = true;
  options.threads = threads;
  return options;
}

/// A random GPT-2 whose sizes are all different, for tests that need no expected values.
struct TinyTransformer
{
  static constexpr std::int64_t Vocabulary = 13;
  static constexpr std::int64_t Positions = 320;
  static constexpr std::int64_t ModelDimension = 48;
  static constexpr std::int64_t HiddenDimension = 300;
  static constexpr std::int64_t Layers = 2;

  static std::string Config()
  {
    return R"({"model_type": "gpt2", "n_embd": 48, "n_head": 3, "n_layer": 2, "n_inner": 300,
      "n_positions": 320, "vocab_size": 13})";
  }

  Tensors tensors;

  TinyTransformer()
  {
    constexpr std::int64_t d = ModelDimension;
    this->Add("wte.weight", { Vocabulary, d });
    this->Add("wpe.weight", { Positions, d });
    for (const std::string layer : { "h.0.", "h.1." })
    {
      this->AddPair(layer + "ln_1", { d }, d);
      this->AddPair(layer + "attn.c_attn", { d, 3 * d }, 3 * d);
      this->AddPair(layer + "attn.c_proj", { d, d }, d);
      this->AddPair(layer + "ln_2", { d }, d);
      this->AddPair(layer + "mlp.c_fc", { d, HiddenDimension }, HiddenDimension);
      this->AddPair(layer + "mlp.c_proj", { HiddenDimension, d }, d);
    }
    this->AddPair("ln_f", { d }, d);
  }

  /// The model; it reads this object's tensors. `config` may be another than the tensors were made
  /// for.
  Transformer Make(const std::string& config = Config()) const
  {
    TensorViews views;
    for (const auto& [name, tensor] : this->tensors)
    {
      views.emplace(name, tensor.View());
    }
    return { ParseTransformerConfig(config, "config.json"), WeightFiles(views, "tiny") };
  }

  /// Sets one value of a tensor.
  void Set(const std::string& name, std::size_t i, float value)
  {
    std::memcpy(this->tensors.at(name).bytes.data() + i * sizeof(float), &value, sizeof(float));
  }

private:
  std::mt19937 Generator{ 7 };

  void Add(const std::string& name, const Shape& shape)
  {
    std::vector<double> values(ElementCount(shape).value());
    for (double& value : values)
    {
      value = static_cast<double>(this->Generator() % 2001) / 2000 - 0.5;
    }
    this->tensors[name] = Tensor::FromDouble(DType::F32, shape, values);
  }

  void AddPair(const std::string& name, const Shape& shape, std::int64_t outputs)
  {
    this->Add(name + ".weight", shape);
    this->Add(name + ".bias", { outputs });
  }
};

/// Tests of that model.
class OnTiny : public testing::Test
{
protected:
  TinyTransformer Tiny;
  Transformer Model = Tiny.Make();
};

/// Token ids of sequences of these lengths.
inline TransformerInput TinyInput(const std::vector<std::size_t>& lengths)
{
  std::mt19937 generator(11);
  TransformerInput input;
  for (const std::size_t length : lengths)
  {
    std::vector<std::int64_t> sequence(length);
    for (std::int64_t& id : sequence)
    {
      id = static_cast<std::int64_t>(generator() % TinyTransformer::Vocabulary);
    }
    input.tokens.push_back(sequence);
  }
  return input;
}

}
