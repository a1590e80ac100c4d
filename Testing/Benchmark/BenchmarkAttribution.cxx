// Speed of logits and scores as sums of components, and of the logit lens, on a random transformer
// of the size of GPT-2 small and 15 tokens. Open: what is read of the model once. The others are
// what a slider costs after that. Argument 1: threads.

#include "LogitAttribution.h"
#include "LogitLens.h"
#include "RandomGpt2.h"
#include "RecordTransformer.h"
#include "ScoreAttribution.h"

#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

namespace
{

using namespace atlas;

constexpr std::int64_t Length = 15;

using benchmarks::Model;

const Recording& Recorded()
{
  static const Recording recording = []
  {
    RecordOptions options;
    options.headOutputs = true;
    options.residual = true;
    return RecordTransformer(Model(), benchmarks::Input(1, Length), options);
  }();
  return recording;
}

int Threads(const benchmark::State& state)
{
  return static_cast<int>(state.range(0));
}

/// What is kept between executions of the filters.
struct Opened
{
  ProcessedWeights processed{ Model(), WeightSteps::TransformerLens };
  ResidualWeights weights{ processed };
};

const Opened& Kept()
{
  static const Opened opened;
  return opened;
}

void Open(benchmark::State& state)
{
  for (auto step : state)
  {
    const ProcessedWeights processed(Model(), WeightSteps::TransformerLens, Threads(state));
    const ResidualWeights weights(processed, Threads(state));
    benchmark::DoNotOptimize(&weights);
  }
}

void AttributeAll(benchmark::State& state)
{
  std::vector<LogitTarget> targets;
  for (std::int64_t row = 0; row + 1 < Length; ++row)
  {
    targets.push_back({ row, static_cast<std::int32_t>(100 * row) });
  }
  LastMlps mlps;
  for (auto step : state)
  {
    benchmark::DoNotOptimize(
      AttributeLogits(Recorded(), Kept().weights, targets, mlps, Threads(state)));
  }
}

void LastMlp(benchmark::State& state)
{
  for (auto step : state)
  {
    LastMlps mlps;
    mlps.Find(Recorded(), Kept().weights, { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 },
      Threads(state));
    benchmark::DoNotOptimize(&mlps);
  }
}

void Lens(benchmark::State& state)
{
  LensOptions options;
  options.top = 5;
  options.threads = Threads(state);
  for (auto step : state)
  {
    benchmark::DoNotOptimize(ReadThroughLens(Recorded(), Model(), options));
  }
  state.counters["logits/s"] = benchmark::Counter(
    static_cast<double>((benchmarks::LayerCount + 1) * Length * benchmarks::Vocabulary),
    benchmark::Counter::kIsIterationInvariantRate);
}

void ReadHead(benchmark::State& state)
{
  for (auto step : state)
  {
    benchmark::DoNotOptimize(ReadScoreHead(Model(), 11, 5));
  }
}

void AttributeOne(benchmark::State& state)
{
  const ScoreHead head = ReadScoreHead(Model(), 11, 5);
  for (auto step : state)
  {
    benchmark::DoNotOptimize(
      AttributeScore(Recorded(), Kept().weights, head, { 0, 11, 5, Length - 1, -1 }));
  }
}

}

BENCHMARK(Open)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(LastMlp)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(AttributeAll)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(Lens)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(ReadHead)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(AttributeOne)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);
