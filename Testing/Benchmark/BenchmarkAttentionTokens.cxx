// Attention tokens of a prompt on a transformer of the size of GPT-2 small with random weights:
// queries, keys, values and all cells of q * k of 144 heads over 50257 tokens. The limit is the
// machine's multiplications and additions in registers. Counters:
//   GFlop          of the matrix products: W_O W_U of all heads, and the vectors with them
//   GFlop_per_s    of them
//   share_of_peak  of the machine (Peak.h)
//   blas_share_of_peak  what products of these sizes by OpenBLAS alone reach of it
//   peak_MiB       largest resident memory of the process, of which weights_MiB are the model

#include "Analysis/AttentionTokens.h"
#include "Numerics/MatrixProduct.h"
#include "Parallel.h"
#include "Peak.h"
#include "RandomGpt2.h"
#include "Run/RecordTransformer.h"

#include <vector>

#include <benchmark/benchmark.h>

namespace
{

using namespace atlas::benchmarks;

constexpr double MiB = 1024.0 * 1024;
constexpr int ThreadCount = 2;
constexpr std::int64_t BlockTokens = 384;
constexpr std::int64_t BlockVectors = 192;

/// Operations of the products of one layer with a part of the vocabulary.
double OperationsOf(std::int64_t tokens, std::int64_t vectors)
{
  return 2.0 * static_cast<double>(tokens * ModelDimension) *
         static_cast<double>(ModelDimension + vectors);
}

/// Operations per second of these products alone, without a search.
double ProductSpeed(std::int64_t vectors)
{
  const atlas::SingleThreadedBlas blas;
  const double seconds = ShortestTime(3, ThreadCount,
    [vectors](int)
    {
      const std::vector<float> columns(BlockTokens * ModelDimension, 0.5F);
      const std::vector<float> before(ModelDimension * ModelDimension, 0.5F);
      const std::vector<float> rows(BlockVectors * HeadDimension, 0.5F);
      std::vector<float> projection(ModelDimension * BlockTokens);
      std::vector<float> logits(BlockVectors * BlockTokens);
      atlas::MultiplyMatrices(ModelDimension, BlockTokens, ModelDimension, 1,
        { before.data(), ModelDimension }, { columns.data(), ModelDimension, true },
        projection.data(), BlockTokens);
      for (std::int64_t head = 0; head < HeadCount; ++head)
      {
        for (std::int64_t first = 0; first < vectors; first += BlockVectors)
        {
          atlas::MultiplyMatrices(std::min(BlockVectors, vectors - first), BlockTokens,
            HeadDimension, 1, { rows.data(), HeadDimension },
            { projection.data() + head * HeadDimension * BlockTokens, BlockTokens }, logits.data(),
            BlockTokens);
        }
      }
      benchmark::DoNotOptimize(logits.data());
    });
  return ThreadCount * OperationsOf(BlockTokens, vectors) / seconds;
}

void Find(benchmark::State& state)
{
  const std::int64_t length = state.range(0);
  const atlas::Recording recording = atlas::RecordTransformer(Model(), Input(1, length), {});
  atlas::AttentionTokenOptions options;
  options.vectors = { atlas::HeadVector::Query, atlas::HeadVector::Key, atlas::HeadVector::Value,
    atlas::HeadVector::QueryKey };
  options.reading = static_cast<atlas::TokenReading>(state.range(1));
  options.threads = ThreadCount;
  ResetPeakMemory();
  for (auto _ : state)
  {
    benchmark::DoNotOptimize(atlas::FindAttentionTokens(recording, Model(), options));
  }
  state.counters["peak_MiB"] = PeakMemory();
  state.counters["weights_MiB"] = WeightBytes() / MiB;
  const std::int64_t vectors = 3 * length + length * (length + 1) / 2;
  const double operations = LayerCount * OperationsOf(Vocabulary, vectors);
  const double peak = PeakOperations(ThreadCount);
  state.counters["GFlop"] = operations / 1e9;
  state.counters["GFlop_per_s"] =
    benchmark::Counter(operations / 1e9, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["share_of_peak"] =
    benchmark::Counter(operations / peak, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["blas_share_of_peak"] = ProductSpeed(vectors) / peak;
}

}

BENCHMARK(Find)
  ->ArgNames({ "tokens", "reading" })
  ->Args({ 16, 0 })
  ->Args({ 32, 0 })
  ->Args({ 32, 2 })
  ->MeasureProcessCPUTime()
  ->UseRealTime()
  ->Unit(benchmark::kMillisecond);
