// Speed of a training step of a two-layer attention-only transformer (d 256, 8 heads, context 256,
// batch 32, vocabulary 1,000), beside its matrix products by OpenBLAS alone and the same step by
// torch, both on the same number of threads. The fastest of a few steps counts, and all are timed
// in turn in each iteration, so that they meet the same machine. Argument: threads. Counters:
//   tokens_per_s       training tokens per second
//   gflops             rate of the products within the step
//   share_of_products  time of the products alone by that of the step
//   torch_to_step      time of a step of torch by that of ours; absent without python3-torch, which
//   the label says then

#include "Base/Parallel.h"
#include "Learning/LearningRecipe.h"
#include "Learning/TransformerTrainer.h"
#include "Numerics/MatrixProduct.h"
#include "Peer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace
{

constexpr std::int64_t Layers = 2;
constexpr std::int64_t Heads = 8;
constexpr std::int64_t Dimension = 256;
constexpr std::int64_t HeadDimension = Dimension / Heads;
constexpr std::int64_t Vocabulary = 1000;
constexpr std::int64_t Context = 256;
constexpr std::int64_t Batch = 32;
constexpr int Steps = 3;

template<class Function>
double FastestOf(int count, const Function& function)
{
  double fastest = std::numeric_limits<double>::max();
  for (int i = 0; i < count; ++i)
  {
    const auto begin = std::chrono::steady_clock::now();
    function();
    fastest = std::min(
      fastest, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return fastest;
}

atlas::TransformerConfig Config()
{
  atlas::TransformerConfig config;
  config.architecture = "transformer_lens";
  config.layers = Layers;
  config.heads = config.keyHeads = Heads;
  config.modelDimension = Dimension;
  config.headDimension = HeadDimension;
  config.vocabulary = config.outputVocabulary = Vocabulary;
  config.positions = Context;
  config.tiedUnembedding = false;
  config.attentionScale = std::sqrt(static_cast<double>(HeadDimension));
  return config;
}

atlas::TrainingBatch RandomBatch()
{
  std::mt19937 generator(1);
  std::uniform_int_distribution<std::int64_t> token(0, Vocabulary - 1);
  atlas::TrainingBatch batch;
  for (std::int64_t s = 0; s < Batch; ++s)
  {
    batch.input.tokens.emplace_back();
    for (std::int64_t i = 0; i < Context; ++i)
    {
      batch.input.tokens.back().push_back(token(generator));
      batch.targets.push_back(token(generator));
    }
  }
  return batch;
}

/// The matrix products of a step of a few sequences at a time, one thread each.
class Products
{
public:
  /// Runs all of them on this number of threads.
  void Run(int threads)
  {
    const atlas::SingleThreadedBlas single;
    atlas::ParallelFor(Batch * Context / Rows, threads, [](std::int64_t) { RunSlice(); });
  }

  /// Multiplications and additions.
  static double Flops()
  {
    const double rows = Batch * Context;
    const double linear = 4.0 * Dimension * Dimension;
    // Causal attention in blocks of queries: the keys up to the end of the block.
    const double keys = (Context + Block) / 2.0;
    const double attention = 2.0 * keys * Dimension;
    const double unembedding = static_cast<double>(Dimension) * Vocabulary;
    return 2 * 3 * rows * (Layers * (linear + attention) + unembedding);
  }

private:
  static constexpr std::int64_t Rows = 1024;
  static constexpr std::int64_t Block = 64;

  static void Multiply(std::int64_t rows, std::int64_t columns, std::int64_t inner, const float* a,
    bool transposeA, const float* b, bool transposeB, float* c)
  {
    atlas::MultiplyMatrices(rows, columns, inner, 1.0F,
      { a, transposeA ? rows : inner, transposeA }, { b, transposeB ? inner : columns, transposeB },
      c, columns);
  }

  /// y = x W, dW = x^T dy, dx = dy W^T.
  static void RunLinear(std::int64_t inputs, std::int64_t outputs, std::vector<float>& memory)
  {
    float* x = memory.data();
    float* y = x + Rows * inputs;
    float* weight = y + Rows * outputs;
    Multiply(Rows, outputs, inputs, x, false, weight, false, y);
    Multiply(inputs, outputs, Rows, x, true, y, false, weight);
    Multiply(Rows, inputs, outputs, y, false, weight, true, x);
  }

  /// Scores and mixed values, and the gradients of weights, values, queries and keys.
  static void RunHead(std::vector<float>& memory)
  {
    float* rows = memory.data();
    float* scores = rows + 3 * Context * HeadDimension;
    for (std::int64_t end = Block; end <= Context; end += Block)
    {
      Multiply(Block, end, HeadDimension, rows, false, rows, true, scores);
      Multiply(
        Block, HeadDimension, end, scores, false, rows, false, rows + Context * HeadDimension);
      Multiply(
        end, HeadDimension, Block, scores, true, rows, false, rows + Context * HeadDimension);
      Multiply(Block, end, HeadDimension, rows, false, rows, true, scores);
      Multiply(
        Block, HeadDimension, end, scores, false, rows, false, rows + Context * HeadDimension);
      Multiply(
        end, HeadDimension, Block, scores, true, rows, false, rows + Context * HeadDimension);
    }
  }

  static void RunSlice()
  {
    thread_local std::vector<float> memory(
      Rows * (Dimension + Vocabulary) + Dimension * Vocabulary, 1e-3F);
    std::fill(memory.begin(), memory.end(), 0.0F);
    for (std::int64_t l = 0; l < Layers; ++l)
    {
      RunLinear(Dimension, 3 * Dimension, memory);
      RunLinear(Dimension, Dimension, memory);
      for (std::int64_t i = 0; i < Rows / Context * Heads; ++i)
      {
        RunHead(memory);
      }
    }
    RunLinear(Dimension, Vocabulary, memory);
  }
};

/// The fastest step of torch.
atlas::benchmarks::PeerTime TorchTime(int threads)
{
  std::string arguments;
  for (const std::int64_t argument : { Layers, Heads, Dimension, Vocabulary, Context, Batch,
         std::int64_t{ Steps }, std::int64_t{ threads } })
  {
    arguments += std::to_string(argument) + ' ';
  }
  return atlas::benchmarks::RunPeer("torch_training_step.py", arguments);
}

void Step(benchmark::State& state)
{
  const auto threads = static_cast<int>(state.range(0));
  const atlas::TransformerConfig config = Config();
  atlas::TransformerTrainer trainer(
    config, atlas::InitialWeights(config, 0.8, 0), atlas::OptimizerOptions(), 100, threads);
  const atlas::TrainingBatch batch = RandomBatch();
  Products products;
  trainer.Step(batch);
  products.Run(threads);
  double step = std::numeric_limits<double>::max();
  double alone = step;
  double torch = step;
  std::string problem;
  for (auto _ : state)
  {
    const double fastest = FastestOf(Steps, [&] { trainer.Step(batch); });
    alone = std::min(alone, FastestOf(Steps, [&] { products.Run(threads); }));
    const atlas::benchmarks::PeerTime peer = TorchTime(threads);
    torch = std::min(torch, peer.seconds);
    problem = peer.problem;
    step = std::min(step, fastest);
    state.SetIterationTime(fastest);
  }
  state.counters["tokens_per_s"] = Batch * Context / step;
  state.counters["gflops"] = 1e-9 * Products::Flops() / step;
  state.counters["share_of_products"] = alone / step;
  state.SetLabel(problem);
  if (problem.empty())
  {
    state.counters["torch_to_step"] = torch / step;
  }
}
BENCHMARK(Step)->Arg(1)->Arg(2)->Iterations(3)->UseManualTime()->Unit(benchmark::kMillisecond);

}
