// Long texts, with random numbers.
//
// - Pooled: one head of d_head 64, all pairs pooled to 1,024 x 1,024, from nothing; tokens, and 1
//   for a causal mask.
// - Zoomed: windows of such a head, of which the base is known: its lower left half, quarter, ...
// to
//   1,024 tokens; a full row and a full column of such windows; each at 1,024 x 1,024.
// - FirstPage, NextPage: a head of Attention Sentence, 200 tokens of a text with their sums over
//   all of it, which the next page has from the first; tokens.
// - Recorded: a rotary model of the size of GPT-2 small; tokens of its only sequence.
//
// Counters: cpu_s, the processor time of all threads, which other programs do not change;
// pairs_per_s, of those that the mask allows; peak_MiB, the largest resident memory of the process;
// for Zoomed slowest_ms, of the windows; for Recorded estimate_MiB, what is said beforehand,
// without weights.

#include "RandomGpt2.h"
#include "Recording/SentenceAttention.h"
#include "Recording/ZoomedAttention.h"
#include "Run/RecordTransformer.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace
{

using namespace atlas;
using namespace atlas::benchmarks;

constexpr double MiB = 1024.0 * 1024;
constexpr std::int64_t Size = 1024;

/// Seconds of all threads.
double ProcessorTime()
{
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

/// One head on one sequence of normal numbers.
Recording OneHead(std::int64_t tokens, bool isCausal)
{
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  Recording recording;
  recording.layerCount = 1;
  recording.mask = isCausal ? AttentionMask::Causal : AttentionMask::Bidirectional;
  recording.sequenceOffsets = { 0, tokens };
  recording.layers.push_back({ 0, 0.125, std::vector<RecordedHead>(1) });
  RecordedHead& head = recording.layers[0].heads[0];
  for (SharedMatrix* matrix : { &head.query, &head.key })
  {
    *matrix = SharedMatrix::Zero(tokens, HeadDimension);
    std::generate_n(matrix->Row(0), matrix->Count(), [&] { return normal(generator); });
  }
  return recording;
}

void Pooled(benchmark::State& state)
{
  const std::int64_t tokens = state.range(0);
  const bool isCausal = state.range(1) != 0;
  const Recording recording = OneHead(tokens, isCausal);
  std::vector<float> values(Size * Size);
  ResetPeakMemory();
  const double begin = ProcessorTime();
  for (auto _ : state)
  {
    PoolAttention(recording, 0, AttentionQuantity::Weights, { { 0, 0 } },
      { Size, AttentionPooling::Maximum }, values.data(), 0);
  }
  const auto all = static_cast<double>(tokens) * static_cast<double>(tokens);
  state.counters["cpu_s"] =
    benchmark::Counter(ProcessorTime() - begin, benchmark::Counter::kAvgIterations);
  state.counters["pairs_per_s"] =
    benchmark::Counter(isCausal ? all / 2 : all, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["peak_MiB"] = PeakMemory();
}

void Zoomed(benchmark::State& state)
{
  const std::int64_t tokens = state.range(0);
  const Recording recording = OneHead(tokens, true);
  const KeyRange all = { 0, tokens };
  ZoomedAttention zoomed({ 0, 0, 0, AttentionQuantity::Weights });
  const auto pool = [&](const MapWindow& window)
  {
    return zoomed.Pool(
      recording, ChooseCells(all, all, window, Size), AttentionPooling::Maximum, 0);
  };
  pool({});
  std::vector<MapWindow> windows = { { all, { 0, Size } }, { { tokens - Size, tokens }, all } };
  for (std::int64_t side = tokens; side >= Size; side /= 2)
  {
    windows.push_back({ { tokens - side, tokens }, { 0, side } });
  }
  double slowest = 0;
  const double begin = ProcessorTime();
  for (auto _ : state)
  {
    for (const MapWindow& window : windows)
    {
      const auto start = std::chrono::steady_clock::now();
      benchmark::DoNotOptimize(pool(window));
      const std::chrono::duration<double, std::milli> passed =
        std::chrono::steady_clock::now() - start;
      slowest = std::max(slowest, passed.count());
    }
  }
  state.counters["slowest_ms"] = slowest;
  state.counters["cpu_s"] =
    benchmark::Counter(ProcessorTime() - begin, benchmark::Counter::kAvgIterations);
}

SentenceOptions PageAt(std::int64_t begin)
{
  SentenceOptions options;
  options.threshold = 0.01;
  options.queries = options.keys = { begin, begin + 200 };
  return options;
}

void FirstPage(benchmark::State& state)
{
  const Recording recording = OneHead(state.range(0), true);
  SentenceAttention page;
  for (auto _ : state)
  {
    EvaluateSentence(recording, PageAt(state.range(0) / 2), page, 0);
  }
}

void NextPage(benchmark::State& state)
{
  const Recording recording = OneHead(state.range(0), true);
  SentenceAttention first;
  EvaluateSentence(recording, PageAt(0), first, 0);
  SentenceAttention page;
  for (auto _ : state)
  {
    EvaluateSentence(recording, PageAt(state.range(0) / 2), page, 0, {}, &first);
  }
}

/// A llama of GPT-2's width, heads and layers.
const Transformer& RotaryModel()
{
  static Tensors tensors;
  static const Transformer model = []
  {
    constexpr std::int64_t d = ModelDimension;
    constexpr std::int64_t hidden = 2048;
    constexpr std::int64_t words = 1000; // the vocabulary takes no part
    const auto add = [](const std::string& name, Shape shape)
    { AddTensor(tensors, name + ".weight", std::move(shape), 0, 0.04); };
    const auto norm = [](const std::string& name)
    { AddTensor(tensors, name + ".weight", { d }, 1, 0.1); };
    add("model.embed_tokens", { words, d });
    for (std::int64_t l = 0; l < LayerCount; ++l)
    {
      const std::string layer = "model.layers." + std::to_string(l) + ".";
      norm(layer + "input_layernorm");
      norm(layer + "post_attention_layernorm");
      for (const char* name : { "q_proj", "k_proj", "v_proj", "o_proj" })
      {
        add(layer + "self_attn." + name, { d, d });
      }
      add(layer + "mlp.gate_proj", { hidden, d });
      add(layer + "mlp.up_proj", { hidden, d });
      add(layer + "mlp.down_proj", { d, hidden });
    }
    norm("model.norm");
    TensorViews views;
    for (const auto& [name, tensor] : tensors)
    {
      views.emplace(name, tensor.View());
    }
    const std::string config = R"({"model_type": "llama", "hidden_size": 768,
      "num_hidden_layers": 12, "num_attention_heads": 12, "num_key_value_heads": 12,
      "intermediate_size": 2048, "vocab_size": 1000, "max_position_embeddings": 131072,
      "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": true})";
    return Transformer(ParseTransformerConfig(config, "config"), WeightFiles(views, "random"));
  }();
  return model;
}

void Recorded(benchmark::State& state)
{
  const std::int64_t tokens = state.range(0);
  TransformerInput input;
  input.tokens.resize(1);
  for (std::int64_t t = 0; t < tokens; ++t)
  {
    input.tokens[0].push_back(t * t % 997);
  }
  const RecordOptions options;
  const MemoryEstimate estimate = EstimateMemory(RotaryModel(), input, options);
  ResetPeakMemory();
  const double begin = ProcessorTime();
  for (auto _ : state)
  {
    benchmark::DoNotOptimize(RecordTransformer(RotaryModel(), input, options));
  }
  state.counters["cpu_s"] =
    benchmark::Counter(ProcessorTime() - begin, benchmark::Counter::kAvgIterations);
  state.counters["peak_MiB"] = PeakMemory();
  state.counters["estimate_MiB"] = static_cast<double>(estimate.recording + estimate.working) / MiB;
}

BENCHMARK(Pooled)
  ->Args({ 12500, 1 })
  ->Args({ 25000, 1 })
  ->Args({ 50000, 1 })
  ->Args({ 100000, 1 })
  ->Args({ 100000, 0 })
  ->Iterations(1)
  ->Unit(benchmark::kSecond)
  ->UseRealTime();
BENCHMARK(Zoomed)->Arg(100000)->Iterations(3)->Unit(benchmark::kSecond)->UseRealTime();
BENCHMARK(FirstPage)->Arg(1 << 12)->Arg(1 << 14)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(NextPage)->Arg(1 << 12)->Arg(1 << 14)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(Recorded)
  ->Arg(4096)
  ->Arg(8192)
  ->Arg(16384)
  ->Iterations(1)
  ->Unit(benchmark::kSecond)
  ->UseRealTime();

}
