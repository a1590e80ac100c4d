// Speed and memory of a transformer of the size of GPT-2 small with random weights, beside the same
// matrix products by OpenBLAS alone on all threads. Both are timed in turn in each iteration, so
// that they meet the same machine. Counters:
//   tokens_per_s       tokens recorded per second
//   blas_tokens_per_s  tokens per second if the matrix products were all
//   share_of_blas      the first by the second
//   peak_MiB           largest resident memory of the process while recording
//   weights_MiB, recording_MiB, working_MiB  its components: known, and estimated beforehand

#include "MatrixProduct.h"
#include "RandomGpt2.h"
#include "RecordTransformer.h"

#include <algorithm>
#include <chrono>
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
  state.counters["weights_MiB"] = WeightBytes() / MiB;
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
