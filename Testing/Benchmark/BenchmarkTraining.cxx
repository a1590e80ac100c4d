// Speed of training: steps of exact gradients over all pairs of tokens, on one thread, and sweeps
// over seeds on several.

#include "Learning/PairTrainingRuns.h"

#include <benchmark/benchmark.h>

namespace
{

void Step(benchmark::State& state)
{
  atlas::TrainingOptions options;
  options.vocabularySize = static_cast<int>(state.range(0));
  options.heads = static_cast<int>(state.range(1));
  options.specialization = static_cast<double>(state.range(2));
  options.learningRate = 1e-4;
  atlas::PairTrainer trainer(options);
  for (auto _ : state)
  {
    trainer.Step();
  }
  state.counters["steps"] =
    benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

/// A whole training of the published size.
void Train(benchmark::State& state)
{
  atlas::TrainingOptions options;
  for (auto _ : state)
  {
    atlas::PairTrainer trainer(options);
    while (!trainer.IsFinished())
    {
      trainer.Step();
    }
    ++options.seed;
  }
}

/// A sweep over seeds of the published size.
void Sweep(benchmark::State& state)
{
  const auto sweep = atlas::SweepOptions({}, 100, { atlas::TrainingMode::Joint });
  for (auto _ : state)
  {
    benchmark::DoNotOptimize(atlas::RunTrainings(sweep, {}, static_cast<int>(state.range(0))));
  }
  state.counters["trainings"] =
    benchmark::Counter(static_cast<double>(sweep.size()) * static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate);
}

}

BENCHMARK(Step)
  ->ArgNames({ "tokens", "heads", "specialization" })
  ->ArgsProduct({ { 5, 20, 100 }, { 1, 3, 16 }, { 0, 1 } })
  ->Unit(benchmark::kMicrosecond);
BENCHMARK(Train)->Unit(benchmark::kMillisecond);
BENCHMARK(Sweep)->ArgName("threads")->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();
