// Speed of focus statistics, beside that of the attention that they are of. The recording has
// random queries and keys, which all heads share to save memory. Argument 1: heads, 2: tokens of
// the one sequence, 3: threads.

#include "AttentionFocus.h"
#include "RandomMatrix.h"
#include "RecordedAttention.h"

#include <Parallel.h> // of Core, not the one of this folder

#include <cstdint>
#include <random>
#include <vector>

#include <benchmark/benchmark.h>

namespace
{

constexpr std::int64_t Dimension = 64;
constexpr std::int64_t BlockRows = 64; ///< queries at a time, as in vtkAttentionFocus

atlas::Recording MakeRecording(std::int64_t heads, std::int64_t length)
{
  std::mt19937 generator(1);
  atlas::Recording recording;
  recording.layerCount = 1;
  recording.sequenceOffsets = { 0, length };
  for (std::int64_t i = 0; i < length; ++i)
  {
    recording.tokens.sequence.push_back(0);
    recording.tokens.position.push_back(static_cast<std::int32_t>(i));
  }
  atlas::RecordedHead head;
  head.query = RandomMatrix(length, Dimension, generator);
  head.key = RandomMatrix(length, Dimension, generator);
  atlas::RecordedLayer layer;
  layer.scoreScale = 0.125;
  layer.heads.assign(heads, head);
  recording.layers.push_back(layer);
  return recording;
}

/// Calls evaluate(recording, head, first query) for all blocks of all heads.
template<class Evaluate>
void RunBlocks(benchmark::State& state, const Evaluate& evaluate)
{
  const std::int64_t heads = state.range(0);
  const std::int64_t length = state.range(1);
  const atlas::Recording recording = MakeRecording(heads, length);
  const std::int64_t blocks = length / BlockRows;
  for (auto step : state)
  {
    atlas::ParallelFor(heads * blocks, static_cast<int>(state.range(2)),
      [&](std::int64_t i) { evaluate(recording, i / blocks, i % blocks * BlockRows); });
  }
  state.counters["weights/s"] = benchmark::Counter(
    static_cast<double>(heads * length * length), benchmark::Counter::kIsIterationInvariantRate);
}

void Attention(benchmark::State& state)
{
  RunBlocks(state,
    [](const atlas::Recording& recording, std::int64_t head, std::int64_t begin)
    {
      static thread_local std::vector<float> values;
      values.resize(BlockRows * recording.SequenceLength(0));
      atlas::EvaluateAttention(recording, 0, 0, head, atlas::AttentionQuantity::Weights, begin,
        begin + BlockRows, values.data());
      benchmark::DoNotOptimize(values.data());
    });
}

void Focus(benchmark::State& state)
{
  RunBlocks(state,
    [](const atlas::Recording& recording, std::int64_t head, std::int64_t begin)
    {
      static thread_local std::vector<float> work;
      std::vector<atlas::QueryFocus> focus(BlockRows);
      atlas::MeasureFocus(recording, 0, 0, head, atlas::AttentionQuantity::Weights, begin,
        begin + BlockRows, work, focus.data());
      benchmark::DoNotOptimize(focus.data());
    });
}

void Sizes(benchmark::internal::Benchmark* benchmark)
{
  for (const std::int64_t threads : { 1, 2 })
  {
    benchmark->Args({ 12, 4096, threads })->Args({ 144, 4096, threads });
  }
  benchmark->Unit(benchmark::kMillisecond)->UseRealTime()->MeasureProcessCPUTime();
}

BENCHMARK(Attention)->Apply(Sizes);
BENCHMARK(Focus)->Apply(Sizes);

}
