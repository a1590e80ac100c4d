// Speed of the maps of all heads: AttentionMatrix on a recording of random queries and keys, of 12
// layers and 12 heads of 64 dimensions as in GPT-2, and rollout. Argument: tokens. The peak memory
// is that of the process, with the recording.

#include "RandomMatrix.h"
#include "RecordedAttention.h"
#include "RecordingConversion.h"
#include "vtkAttentionMatrix.h"

#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include <sys/resource.h>

#include <vtkMultiBlockDataSet.h>
#include <vtkNew.h>
#include <vtkTrivialProducer.h>

#include <benchmark/benchmark.h>

namespace
{

constexpr std::int64_t Layers = 12;
constexpr std::int64_t Heads = 12;
constexpr std::int64_t Dimension = 64;

atlas::Recording MakeRecording(std::int64_t tokens)
{
  std::mt19937 generator(1);
  atlas::Recording recording;
  recording.layerCount = Layers;
  recording.sequenceOffsets = { 0, tokens };
  recording.tokens.sequence.assign(tokens, 0);
  recording.tokens.position.resize(tokens);
  std::iota(recording.tokens.position.begin(), recording.tokens.position.end(), 0);
  for (std::int32_t layer = 0; layer < Layers; ++layer)
  {
    recording.layers.push_back({ layer, 0.125, {} });
    for (std::int64_t head = 0; head < Heads; ++head)
    {
      recording.layers.back().heads.emplace_back();
      recording.layers.back().heads.back().query = RandomMatrix(tokens, Dimension, generator);
      recording.layers.back().heads.back().key = RandomMatrix(tokens, Dimension, generator);
    }
  }
  return recording;
}

double PeakMebibytes()
{
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void Matrix(benchmark::State& state)
{
  vtkNew<vtkMultiBlockDataSet> recording;
  AttentionAtlas::ToDataSet(MakeRecording(state.range(0)), recording);
  vtkNew<vtkTrivialProducer> producer;
  producer->SetOutput(recording);
  vtkNew<vtkAttentionMatrix> matrix;
  matrix->SetInputConnection(producer->GetOutputPort());
  for (auto step : state)
  {
    recording->Modified(); // or what is known would be shown again
    matrix->Update();
  }
  state.counters["weights/s"] =
    benchmark::Counter(static_cast<double>(Layers * Heads * state.range(0) * state.range(0)),
      benchmark::Counter::kIsIterationInvariantRate);
  state.counters["peak MiB"] = PeakMebibytes();
}

/// All rows of the last layer.
void Rollout(benchmark::State& state)
{
  const atlas::Recording recording = MakeRecording(state.range(0));
  std::vector<float> values(state.range(0) * state.range(0));
  for (auto step : state)
  {
    atlas::EvaluateAttentionRows(recording,
      { 0, Layers - 1, 0, atlas::AttentionQuantity::Rollout, 0, state.range(0) }, values.data(), 0);
  }
  state.counters["peak MiB"] = PeakMebibytes();
}

BENCHMARK(Matrix)
  ->Arg(64)
  ->Arg(1024)
  ->Arg(4096)
  ->Unit(benchmark::kMillisecond)
  ->UseRealTime()
  ->MeasureProcessCPUTime();
BENCHMARK(Rollout)
  ->Arg(64)
  ->Arg(256)
  ->Arg(1024)
  ->Unit(benchmark::kMillisecond)
  ->UseRealTime()
  ->MeasureProcessCPUTime();

}
