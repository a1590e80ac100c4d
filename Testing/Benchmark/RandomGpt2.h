#pragma once

#include "Preprocessing/TransformerInput.h"
#include "Weights/Transformer.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <random>
#include <string>
#include <utility>

/// A transformer of the size of GPT-2 small with random weights, and the memory of the process.
namespace atlas::benchmarks
{

inline constexpr std::int64_t LayerCount = 12;
inline constexpr std::int64_t HeadCount = 12;
inline constexpr std::int64_t ModelDimension = 768;
inline constexpr std::int64_t HeadDimension = ModelDimension / HeadCount;
inline constexpr std::int64_t HiddenDimension = 4 * ModelDimension;
inline constexpr std::int64_t Vocabulary = 50257;

inline constexpr const char* Config =
  R"({"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12,
  "n_positions": 4096, "vocab_size": 50257, "activation_function": "gelu_new"})";

inline void AddTensor(
  Tensors& tensors, const std::string& name, Shape shape, double mean, double width)
{
  static std::mt19937 generator(1);
  Tensor tensor;
  tensor.shape = std::move(shape);
  const std::uint64_t count = ElementCount(tensor.shape).value();
  tensor.bytes.resize(count * sizeof(float));
  auto* values = reinterpret_cast<float*>(tensor.bytes.data());
  std::uniform_real_distribution<float> uniform(
    static_cast<float>(mean - width), static_cast<float>(mean + width));
  std::generate_n(values, count, [&] { return uniform(generator); });
  tensors.emplace(name, std::move(tensor));
}

inline const Tensors& Weights()
{
  static const Tensors weights = []
  {
    constexpr std::int64_t d = ModelDimension;
    Tensors tensors;
    const auto linear = [&](const std::string& name, std::int64_t inputs, std::int64_t outputs)
    {
      AddTensor(tensors, name + ".weight", { inputs, outputs }, 0, 0.04);
      AddTensor(tensors, name + ".bias", { outputs }, 0, 0.04);
    };
    const auto norm = [&](const std::string& name)
    {
      AddTensor(tensors, name + ".weight", { d }, 1, 0.1);
      AddTensor(tensors, name + ".bias", { d }, 0, 0.1);
    };
    AddTensor(tensors, "wte.weight", { Vocabulary, d }, 0, 0.1);
    AddTensor(tensors, "wpe.weight", { 4096, d }, 0, 0.1);
    for (std::int64_t l = 0; l < LayerCount; ++l)
    {
      const std::string layer = "h." + std::to_string(l) + ".";
      norm(layer + "ln_1");
      linear(layer + "attn.c_attn", d, 3 * d);
      linear(layer + "attn.c_proj", d, d);
      norm(layer + "ln_2");
      linear(layer + "mlp.c_fc", d, HiddenDimension);
      linear(layer + "mlp.c_proj", HiddenDimension, d);
    }
    norm("ln_f");
    return tensors;
  }();
  return weights;
}

inline const Transformer& Model()
{
  static const Transformer model = []
  {
    TensorViews views;
    for (const auto& [name, tensor] : Weights())
    {
      views.emplace(name, tensor.View());
    }
    return Transformer(ParseTransformerConfig(Config, "config"), WeightFiles(views, "random"));
  }();
  return model;
}

/// Sequences of random tokens.
inline TransformerInput Input(std::int64_t sequences, std::int64_t length)
{
  std::mt19937 generator(2);
  std::uniform_int_distribution<std::int64_t> uniform(0, Vocabulary - 1);
  TransformerInput input;
  input.tokens.resize(sequences);
  for (auto& sequence : input.tokens)
  {
    sequence.resize(length);
    std::generate(sequence.begin(), sequence.end(), [&] { return uniform(generator); });
  }
  return input;
}

/// The size of the weights, in bytes.
inline double WeightBytes()
{
  double bytes = 0;
  for (const auto& [name, tensor] : Weights())
  {
    bytes += static_cast<double>(tensor.bytes.size());
  }
  return bytes;
}

/// Largest resident memory since it was last reset, in MiB; 0 if the system does not report it.
inline double PeakMemory()
{
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
  {
    if (line.rfind("VmHWM:", 0) == 0)
    {
      return std::stod(line.substr(6)) / 1024;
    }
  }
  return 0;
}

inline void ResetPeakMemory()
{
  std::ofstream("/proc/self/clear_refs") << "5";
}

}
