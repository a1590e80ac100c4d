// Speed of a map of activation patching of a transformer of the size of GPT-2 small with random
// weights, beside its runs alone: as many runs of as many layers of the same prompt by the
// recorder, which records nothing, together per layer or one by one. All are timed in turn in each
// iteration, so that they meet the same machine. Counters:
//   runs               runs of the map
//   layers_per_s       layers of one prompt per second
//   map_to_runs        time of the map by that of its runs, those of a layer together
//   map_to_single_runs the same, one by one

#include "ActivationPatching.h"
#include "RandomGpt2.h"
#include "RecordTransformer.h"

#include <chrono>
#include <vector>

#include <benchmark/benchmark.h>

namespace
{

using namespace atlas::benchmarks;

template<class Function>
double Seconds(const Function& function)
{
  const auto begin = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Runs copies of a prompt through this many layers.
void RunLayers(const std::vector<std::int64_t>& prompt, std::int64_t copies, std::int64_t layers)
{
  atlas::TransformerInput input;
  input.tokens.assign(copies, prompt);
  atlas::RecordOptions options;
  options.queriesAndKeys = false;
  options.values = false;
  options.layers = { layers - 1 };
  benchmark::DoNotOptimize(atlas::RecordTransformer(Model(), input, options));
}

void Map(benchmark::State& state)
{
  const std::int64_t length = state.range(0);
  const auto kind = static_cast<atlas::ActivationKind>(state.range(1));
  const atlas::TransformerInput both = Input(2, length);
  atlas::TransformerInput prompt;
  prompt.tokens = { both.tokens[0] };
  atlas::TransformerInput source;
  source.tokens = { both.tokens[1] };
  atlas::PatchingOptions options;
  options.kind = kind;
  options.target = 1;
  options.against = 2;
  const auto sites = atlas::PatchingSites(Model().GetConfig(), length, options);
  const auto columns = static_cast<std::int64_t>(sites.size()) / LayerCount;
  atlas::MapPatching(Model(), prompt, source, options);
  double map = 0;
  double runs = 0;
  double singleRuns = 0;
  for (auto _ : state)
  {
    const double seconds = Seconds(
      [&] { benchmark::DoNotOptimize(atlas::MapPatching(Model(), prompt, source, options)); });
    map += seconds;
    runs += Seconds(
      [&]
      {
        for (std::int64_t layers = 1; layers <= LayerCount; ++layers)
        {
          RunLayers(both.tokens[0], columns, layers);
        }
      });
    singleRuns += Seconds(
      [&]
      {
        for (std::int64_t run = 0; run < columns * LayerCount; ++run)
        {
          RunLayers(both.tokens[0], 1, 1 + run / columns);
        }
      });
    state.SetIterationTime(seconds);
  }
  const auto iterations = static_cast<double>(state.iterations());
  const std::int64_t layers = columns * LayerCount * (LayerCount + 1) / 2;
  state.counters["runs"] = static_cast<double>(sites.size());
  state.counters["layers_per_s"] = iterations * static_cast<double>(layers) / map;
  state.counters["map_to_runs"] = map / runs;
  state.counters["map_to_single_runs"] = map / singleRuns;
}

}

BENCHMARK(Map)
  ->ArgNames({ "length", "site" })
  ->Args({ 15, static_cast<int>(atlas::ActivationKind::Residual) })
  ->Args({ 15, static_cast<int>(atlas::ActivationKind::HeadOutput) })
  ->UseManualTime()
  ->Iterations(3)
  ->Unit(benchmark::kMillisecond);
