// Speed and memory of a transformer of the size of GPT-2 small with random weights, beside the same
// matrix products by OpenBLAS alone on all threads. Both are timed in turn in each iteration, so
// that they meet the same machine. Counters:
//   tokens_per_s       tokens recorded per second
//   blas_tokens_per_s  tokens per second if the matrix products were all
//   share_of_blas      the first by the second
//   peak_MiB           largest resident memory of the process while recording
//   weights_MiB, recording_MiB, working_MiB  its components: known, and estimated beforehand

#include "MatrixProduct.h"
#include "RecordTransformer.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <random>
#include <string>

#include <benchmark/benchmark.h>

namespace
{

constexpr std::int64_t LayerCount = 12;
constexpr std::int64_t HeadCount = 12;
constexpr std::int64_t ModelDimension = 768;
constexpr std::int64_t HeadDimension = ModelDimension / HeadCount;
constexpr std::int64_t HiddenDimension = 4 * ModelDimension;
constexpr std::int64_t Vocabulary = 50257;
constexpr std::int64_t QueryBlock = 128;
constexpr double MiB = 1024.0 * 1024;

const char* const Config = R"({"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12,
  "n_positions": 4096, "vocab_size": 50257, "activation_function": "gelu_new"})";

void AddTensor(
  atlas::Tensors& tensors, const std::string& name, atlas::Shape shape, double mean, double width)
{
  static std::mt19937 generator(1);
  atlas::Tensor tensor;
  tensor.shape = std::move(shape);
  const std::uint64_t count = atlas::ElementCount(tensor.shape).value();
  tensor.bytes.resize(count * sizeof(float));
  auto* values = reinterpret_cast<float*>(tensor.bytes.data());
  std::uniform_real_distribution<float> uniform(
    static_cast<float>(mean - width), static_cast<float>(mean + width));
  std::generate_n(values, count, [&] { return uniform(generator); });
  tensors.emplace(name, std::move(tensor));
}

const atlas::Tensors& Weights()
{
  static const atlas::Tensors weights = []
  {
    constexpr std::int64_t d = ModelDimension;
    atlas::Tensors tensors;
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

const atlas::Transformer& Model()
{
  static const atlas::Transformer model = []
  {
    atlas::TensorViews views;
    for (const auto& [name, tensor] : Weights())
    {
      views.emplace(name, tensor.View());
    }
    return atlas::Transformer(
      atlas::ParseTransformerConfig(Config, "config"), atlas::WeightFiles(views, "random"));
  }();
  return model;
}

atlas::TransformerInput Input(std::int64_t sequences, std::int64_t length)
{
  std::mt19937 generator(2);
  std::uniform_int_distribution<std::int64_t> uniform(0, Vocabulary - 1);
  atlas::TransformerInput input;
  input.tokens.resize(static_cast<std::size_t>(sequences));
  for (auto& sequence : input.tokens)
  {
    sequence.resize(static_cast<std::size_t>(length));
    std::generate(sequence.begin(), sequence.end(), [&] { return uniform(generator); });
  }
  return input;
}

/// The matrix products of a run, by OpenBLAS with its own threads.
class Products
{
public:
  Products(std::int64_t sequences, std::int64_t length)
    : Sequences(sequences)
    , Length(length)
    , From(static_cast<std::size_t>(sequences * length * HiddenDimension), 0.5F)
    , Weight(static_cast<std::size_t>(ModelDimension * HiddenDimension), 0.5F)
    , To(this->From.size())
    , Scores(static_cast<std::size_t>(QueryBlock * length), 0.5F)
  {
  }

  void Run()
  {
    for (std::int64_t l = 0; l < LayerCount; ++l)
    {
      this->Linear(ModelDimension, 3 * ModelDimension);
      this->Attention();
      this->Linear(ModelDimension, ModelDimension);
      this->Linear(ModelDimension, HiddenDimension);
      this->Linear(HiddenDimension, ModelDimension);
    }
  }

private:
  std::int64_t Sequences;
  std::int64_t Length;
  std::vector<float> From;
  std::vector<float> Weight;
  std::vector<float> To;
  std::vector<float> Scores;

  void Linear(std::int64_t inputs, std::int64_t outputs)
  {
    atlas::MultiplyMatrices(this->Sequences * this->Length, outputs, inputs, 1,
      { this->From.data(), inputs }, { this->Weight.data(), outputs }, this->To.data(), outputs);
  }

  /// Only the keys that the causal mask allows for a block of queries.
  void Attention()
  {
    for (std::int64_t i = 0; i < this->Sequences * HeadCount; ++i)
    {
      const std::int64_t first = i * this->Length * HeadDimension;
      const atlas::MatrixBlock key = { this->From.data() + first, HeadDimension, true };
      const atlas::MatrixBlock value = { this->From.data() + first, HeadDimension };
      for (std::int64_t begin = 0; begin < this->Length; begin += QueryBlock)
      {
        const std::int64_t end = std::min(this->Length, begin + QueryBlock);
        atlas::MultiplyMatrices(end - begin, end, HeadDimension, 1,
          { this->From.data() + first, HeadDimension }, key, this->Scores.data(), end);
        atlas::MultiplyMatrices(end - begin, HeadDimension, end, 1, { this->Scores.data(), end },
          value, this->To.data() + first, HeadDimension);
      }
    }
  }
};

template<class Function>
double Seconds(const Function& function)
{
  const auto begin = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Largest resident memory since it was last reset, in MiB; 0 if the system does not report it.
double PeakMemory()
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

void ResetPeakMemory()
{
  std::ofstream("/proc/self/clear_refs") << "5";
}

void Record(benchmark::State& state)
{
  const std::int64_t sequences = state.range(0);
  const std::int64_t length = state.range(1);
  const atlas::TransformerInput input = Input(sequences, length);
  const atlas::RecordOptions options;
  const atlas::MemoryEstimate estimate = atlas::EstimateMemory(Model(), input, options);
  ResetPeakMemory();
  atlas::RecordTransformer(Model(), input, options);
  state.counters["peak_MiB"] = PeakMemory();
  double weights = 0;
  for (const auto& [name, tensor] : Weights())
  {
    weights += static_cast<double>(tensor.bytes.size());
  }
  state.counters["weights_MiB"] = weights / MiB;
  state.counters["recording_MiB"] = static_cast<double>(estimate.recording) / MiB;
  state.counters["working_MiB"] = static_cast<double>(estimate.working) / MiB;

  Products products(sequences, length);
  products.Run();
  double recorded = 0;
  double multiplied = 0;
  for (auto _ : state)
  {
    const double seconds =
      Seconds([&] { benchmark::DoNotOptimize(atlas::RecordTransformer(Model(), input, options)); });
    recorded += seconds;
    multiplied += Seconds([&] { products.Run(); });
    state.SetIterationTime(seconds);
  }
  const auto tokens =
    static_cast<double>(static_cast<std::int64_t>(state.iterations()) * sequences * length);
  state.counters["tokens_per_s"] = tokens / recorded;
  state.counters["blas_tokens_per_s"] = tokens / multiplied;
  state.counters["share_of_blas"] = multiplied / recorded;
}

}

BENCHMARK(Record)
  ->ArgNames({ "sequences", "length" })
  ->Args({ 1, 512 })
  ->Args({ 32, 32 })
  ->Args({ 1, 1024 })
  ->Args({ 1, 16 })
  ->Args({ 1, 4096 })
  ->UseManualTime()
  ->MinTime(3)
  ->Unit(benchmark::kMillisecond);
