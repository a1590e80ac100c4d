// What the filters of circuits take longest for, on a transformer of the size of GPT-2 small with
// random weights: skip-trigrams of a head, whose bounds rule out little among random weights, and
// activation patching of 15 tokens, the length of the default prompt.

#include "Circuits/SkipTrigrams.h"
#include "RandomGpt2.h"
#include "Run/ActivationPatching.h"

#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

namespace
{

using namespace atlas::benchmarks;

void SkipTrigrams(benchmark::State& state)
{
  atlas::SkipTrigramOptions options;
  options.most = state.range(0);
  Model();
  for (auto _ : state)
  {
    benchmark::DoNotOptimize(atlas::FindSkipTrigrams(Model(), options));
  }
}

void Patching(benchmark::State& state)
{
  const std::vector<std::vector<std::int64_t>> tokens = Input(2, state.range(1)).tokens;
  atlas::TransformerInput prompt;
  atlas::TransformerInput source;
  prompt.tokens = { tokens[0] };
  source.tokens = { tokens[1] };
  atlas::PatchingOptions options;
  options.kind = static_cast<atlas::ActivationKind>(state.range(0));
  Model();
  for (auto _ : state)
  {
    benchmark::DoNotOptimize(atlas::MapPatching(Model(), prompt, source, options));
  }
}

}

BENCHMARK(SkipTrigrams)
  ->ArgName("sources")
  ->Arg(2048)
  ->Arg(0)
  ->MeasureProcessCPUTime()
  ->UseRealTime()
  ->Unit(benchmark::kMillisecond);
BENCHMARK(Patching)
  ->ArgNames({ "kind", "tokens" })
  ->Args({ 0, 15 })
  ->Args({ 1, 15 })
  ->MeasureProcessCPUTime()
  ->UseRealTime()
  ->Unit(benchmark::kMillisecond);
