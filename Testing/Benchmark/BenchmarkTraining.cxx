// Speed of training: steps of exact gradients over all pairs of tokens, on one thread.

#include "Training.h"

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
  atlas::Trainer trainer(options);
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
    atlas::Trainer trainer(options);
    while (!trainer.IsFinished())
    {
      trainer.Step();
    }
    ++options.seed;
  }
}

}

BENCHMARK(Step)
  ->ArgNames({ "tokens", "heads", "specialization" })
  ->ArgsProduct({ { 5, 20, 100 }, { 1, 3, 16 }, { 0, 1 } })
  ->Unit(benchmark::kMicrosecond);
BENCHMARK(Train)->Unit(benchmark::kMillisecond);
