// Speed and memory of a transformer of the size of GPT-2 small with random weights, on a number of
// threads, beside the same matrix products by OpenBLAS alone. Both are timed in turn in each
// iteration, so that they meet the same machine. Counters:
//   tokens_per_s       tokens recorded per second
//   blas_tokens_per_s  tokens per second if the matrix products were all; with all threads only
//   share_of_blas      the first by the second
//   torch_to_record    time of torch, keeping queries, keys and values, by ours, the fastest of
//                      each; absent without python3-torch, which the label says then
//   spinning_torch_to_record  the same where torch's threads use the processor while they wait, as
//                      they do unless they are told not to; with several threads only
//   peak_MiB           largest resident memory of the process while recording
//   weights_MiB, recording_MiB, working_MiB  its components: known, and estimated beforehand
// RecordBfloat16: the same with products of BF16, in turn with those of floats. Counters:
//   tokens_per_s, torch_to_record  as above
//   floats_to_bfloat16  time with products of floats by that with products of BF16
// RecordPictures: a model of pictures among words, of Qwen2.5-VL's kind and as many layers of the
// same width in its encoder. Counter: patches_per_s, with their part of the text

#include "Numerics/MatrixProduct.h"
#include "Numerics/PackedProduct.h"
#include "Peer.h"
#include "RandomGpt2.h"
#include "Run/RecordTransformer.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

namespace
{

using namespace atlas::benchmarks;

constexpr std::int64_t QueryBlock = 128;
constexpr double MiB = 1024.0 * 1024;

/// The matrix products of a run, by OpenBLAS with its own threads.
class Products
{
public:
  Products(std::int64_t sequences, std::int64_t length)
    : Sequences(sequences)
    , Length(length)
    , From(sequences * length * HiddenDimension, 0.5F)
    , Weight(ModelDimension * HiddenDimension, 0.5F)
    , To(this->From.size())
    , Scores(QueryBlock * length, 0.5F)
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

std::int64_t AllThreads()
{
  return std::thread::hardware_concurrency();
}

/// The fastest of a few runs of torch. It is asked once for each size, since Google Benchmark finds
/// the number of iterations by trial.
PeerTime TorchTime(
  std::int64_t sequences, std::int64_t length, std::int64_t threads, const std::string& waiting)
{
  static std::map<std::string, PeerTime> known;
  const std::string arguments = std::to_string(sequences) + ' ' + std::to_string(length) + " 4 " +
                                std::to_string(threads) + ' ' + waiting;
  const auto [found, isNew] = known.try_emplace(arguments);
  if (isNew)
  {
    found->second = RunPeer("torch_recording.py", arguments);
  }
  return found->second;
}

/// Beside the fastest of our runs.
void CompareWithTorch(benchmark::State& state, std::int64_t threads, double fastest)
{
  const auto time = [&](const std::string& waiting)
  { return TorchTime(state.range(0), state.range(1), threads, waiting); };
  const PeerTime torch = time("sleep");
  state.SetLabel(torch.problem);
  if (!torch.problem.empty())
  {
    return;
  }
  state.counters["torch_to_record"] = torch.seconds / fastest;
  if (threads > 1)
  {
    state.counters["spinning_torch_to_record"] = time("spin").seconds / fastest;
  }
}

void Record(benchmark::State& state)
{
  const std::int64_t sequences = state.range(0);
  const std::int64_t length = state.range(1);
  const std::int64_t threads = state.range(2) == 0 ? AllThreads() : state.range(2);
  const atlas::TransformerInput input = Input(sequences, length);
  atlas::RecordOptions options;
  options.threads = static_cast<int>(threads);
  const atlas::MemoryEstimate estimate = atlas::EstimateMemory(Model(), input, options);
  ResetPeakMemory();
  atlas::RecordTransformer(Model(), input, options);
  state.counters["peak_MiB"] = PeakMemory();
  state.counters["weights_MiB"] = WeightBytes() / MiB;
  state.counters["recording_MiB"] = static_cast<double>(estimate.recording) / MiB;
  state.counters["working_MiB"] = static_cast<double>(estimate.working) / MiB;

  Products products(sequences, length);
  products.Run();
  double recorded = 0;
  double multiplied = 0;
  double fastest = std::numeric_limits<double>::max();
  for (auto _ : state)
  {
    const double seconds =
      Seconds([&] { benchmark::DoNotOptimize(atlas::RecordTransformer(Model(), input, options)); });
    recorded += seconds;
    fastest = std::min(fastest, seconds);
    if (threads == AllThreads())
    {
      multiplied += Seconds([&] { products.Run(); });
    }
    state.SetIterationTime(seconds);
  }
  const auto tokens =
    static_cast<double>(static_cast<std::int64_t>(state.iterations()) * sequences * length);
  state.counters["tokens_per_s"] = tokens / recorded;
  if (threads == AllThreads())
  {
    state.counters["blas_tokens_per_s"] = tokens / multiplied;
    state.counters["share_of_blas"] = multiplied / recorded;
  }
  CompareWithTorch(state, threads, fastest);
}

void RecordBfloat16(benchmark::State& state)
{
  if (!atlas::HasBfloat16Products())
  {
    state.SkipWithError("the processor has no AVX512-BF16");
    return;
  }
  const std::int64_t sequences = state.range(0);
  const std::int64_t length = state.range(1);
  const atlas::TransformerInput input = Input(sequences, length);
  const atlas::RecordOptions options;
  atlas::Transformer rounded = Model();
  rounded.SetProducts(atlas::ProductPrecision::Bfloat16);
  const auto time = [&](const atlas::Transformer& model)
  {
    return Seconds(
      [&] { benchmark::DoNotOptimize(atlas::RecordTransformer(model, input, options)); });
  };
  double recorded = 0;
  double withFloats = 0;
  double fastest = std::numeric_limits<double>::max();
  for (auto _ : state)
  {
    const double seconds = time(rounded);
    recorded += seconds;
    fastest = std::min(fastest, seconds);
    withFloats += time(Model());
    state.SetIterationTime(seconds);
  }
  state.counters["tokens_per_s"] =
    static_cast<double>(static_cast<std::int64_t>(state.iterations()) * sequences * length) /
    recorded;
  state.counters["floats_to_bfloat16"] = withFloats / recorded;
  CompareWithTorch(state, AllThreads(), fastest);
}

constexpr std::int64_t PatchSide = 14;
constexpr std::int64_t Merged = 4; ///< patches of a token
constexpr std::int64_t ImageToken = 50256;

/// Qwen2.5-VL with random weights, of a text and an encoder of GPT-2's width.
const atlas::Transformer& PictureModel()
{
  static atlas::Tensors tensors;
  static const atlas::Transformer model = []
  {
    constexpr std::int64_t d = ModelDimension;
    constexpr std::int64_t hidden = 2048;
    const auto linear =
      [](const std::string& name, std::int64_t inputs, std::int64_t outputs, bool bias)
    {
      AddTensor(tensors, name + ".weight", { outputs, inputs }, 0, 0.04);
      if (bias)
      {
        AddTensor(tensors, name + ".bias", { outputs }, 0, 0.04);
      }
    };
    const auto norm = [](const std::string& name)
    { AddTensor(tensors, name + ".weight", { d }, 1, 0.1); };
    AddTensor(tensors, "model.embed_tokens.weight", { Vocabulary, d }, 0, 0.1);
    AddTensor(
      tensors, "visual.patch_embed.proj.weight", { d, 3, 2, PatchSide, PatchSide }, 0, 0.04);
    for (std::int64_t l = 0; l < LayerCount; ++l)
    {
      const std::string layer = "model.layers." + std::to_string(l) + ".";
      const std::string block = "visual.blocks." + std::to_string(l) + ".";
      for (const char* name : { "q_proj", "k_proj", "v_proj" })
      {
        linear(layer + "self_attn." + name, d, d, true);
      }
      linear(layer + "self_attn.o_proj", d, d, false);
      linear(block + "attn.qkv", d, 3 * d, true);
      linear(block + "attn.proj", d, d, true);
      for (const bool isText : { true, false })
      {
        const std::string mlp = (isText ? layer : block) + "mlp.";
        linear(mlp + "gate_proj", d, hidden, !isText);
        linear(mlp + "up_proj", d, hidden, !isText);
        linear(mlp + "down_proj", hidden, d, !isText);
      }
      norm(layer + "input_layernorm");
      norm(layer + "post_attention_layernorm");
      norm(block + "norm1");
      norm(block + "norm2");
    }
    norm("model.norm");
    norm("visual.merger.ln_q");
    linear("visual.merger.mlp.0", Merged * d, Merged * d, true);
    linear("visual.merger.mlp.2", Merged * d, d, true);
    atlas::TensorViews views;
    for (const auto& [name, tensor] : tensors)
    {
      views.emplace(name, tensor.View());
    }
    const char* config = R"({"model_type": "qwen2_5_vl", "hidden_size": 768,
      "num_attention_heads": 12, "num_key_value_heads": 12, "num_hidden_layers": 12,
      "intermediate_size": 2048, "vocab_size": 50257, "max_position_embeddings": 4096,
      "image_token_id": 50256, "video_token_id": 50255, "tie_word_embeddings": true,
      "rope_scaling": {"type": "mrope", "mrope_section": [8, 12, 12]},
      "vision_config": {"depth": 12, "hidden_size": 768, "num_heads": 12,
        "intermediate_size": 2048, "out_hidden_size": 768, "patch_size": 14, "window_size": 112,
        "fullatt_block_indexes": [5, 11]}})";
    return atlas::Transformer(
      atlas::ParseTransformerConfig(config, "config"), atlas::WeightFiles(views, "random"));
  }();
  return model;
}

void RecordPictures(benchmark::State& state)
{
  const std::int64_t side = state.range(0);
  atlas::TransformerInput input = Input(1, 64);
  std::vector<std::int64_t>& text = input.tokens[0];
  for (std::int64_t& token : text)
  {
    token = token >= ImageToken - 1 ? 0 : token;
  }
  text.insert(text.begin() + 1, side * side / Merged, ImageToken);
  input.extents = { { 1, side, side, false, 1 } };
  input.pixels.assign(side * side * 3 * 2 * PatchSide * PatchSide, 0.5F);
  const atlas::RecordOptions options;
  ResetPeakMemory();
  atlas::RecordTransformer(PictureModel(), input, options);
  state.counters["peak_MiB"] = PeakMemory();
  for (auto _ : state)
  {
    benchmark::DoNotOptimize(atlas::RecordTransformer(PictureModel(), input, options));
  }
  state.counters["patches_per_s"] = benchmark::Counter(
    static_cast<double>(static_cast<std::int64_t>(state.iterations()) * side * side),
    benchmark::Counter::kIsRate);
}

}

BENCHMARK(Record)
  ->ArgNames({ "sequences", "length", "threads" }) // 0: all
  ->Args({ 1, 512, 0 })
  ->Args({ 32, 32, 0 })
  ->Args({ 1, 1024, 0 })
  ->Args({ 1, 16, 0 })
  ->Args({ 1, 4096, 0 })
  ->Args({ 1, 512, 1 })
  ->Args({ 32, 32, 1 })
  ->Args({ 1, 1024, 1 })
  ->UseManualTime()
  ->MinTime(3)
  ->Unit(benchmark::kMillisecond);
BENCHMARK(RecordBfloat16)
  ->ArgNames({ "sequences", "length" })
  ->Args({ 1, 512 })
  ->Args({ 32, 32 })
  ->Args({ 1, 1024 })
  ->Args({ 1, 16 })
  ->UseManualTime()
  ->MinTime(3)
  ->Unit(benchmark::kMillisecond);
BENCHMARK(RecordPictures)
  ->ArgNames({ "side" })
  ->Arg(16)
  ->Arg(32)
  ->UseRealTime()
  ->MinTime(3)
  ->Unit(benchmark::kMillisecond);
