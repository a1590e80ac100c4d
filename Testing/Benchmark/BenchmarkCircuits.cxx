// What the filters of circuits take longest for, on a transformer of the size of GPT-2 small with
// random weights: skip-trigrams of a head, whose bounds rule out little among random weights, and
// activation and attribution patching of 15 tokens, the length of the default prompt. Attribution's
// parts, beside what recording takes: a run, a backward pass, all 32 491 edges by one gradient, and
// an exact edge and a circuit of edges.

#include "Circuits/AttributionPatching.h"
#include "Circuits/SkipTrigrams.h"
#include "RandomGpt2.h"
#include "Run/ActivationPatching.h"
#include "Run/GradientRun.h"
#include "Run/RecordTransformer.h"

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

/// One of two inputs of this many tokens.
atlas::TransformerInput One(std::size_t which, std::int64_t tokens)
{
  atlas::TransformerInput input;
  input.tokens = { Input(2, tokens).tokens[which] };
  return input;
}

void Recording(benchmark::State& state)
{
  const atlas::TransformerInput input = One(0, state.range(0));
  Model();
  for (auto _ : state)
  {
    benchmark::DoNotOptimize(atlas::RecordTransformer(Model(), input, {}));
  }
}

void Run(benchmark::State& state)
{
  const atlas::GradientRun run(Model(), state.range(0));
  const atlas::DoubleMatrix embedding = run.Embed(One(0, state.range(0)));
  for (auto _ : state)
  {
    benchmark::DoNotOptimize(run.Run(embedding));
  }
}

void Backward(benchmark::State& state)
{
  const atlas::GradientRun run(Model(), state.range(0));
  const atlas::TracedRun traced = run.Run(run.Embed(One(0, state.range(0))));
  for (auto _ : state)
  {
    benchmark::DoNotOptimize(run.Differentiate(traced, { 1, 2, state.range(0) - 1 }));
  }
}

atlas::AttributionPatching Pair(std::int64_t tokens)
{
  atlas::AttributionOptions options;
  options.target = 1;
  options.against = 2;
  return { Model(), One(0, tokens), One(1, tokens), options };
}

void Edges(benchmark::State& state)
{
  const atlas::AttributionPatching patching = Pair(state.range(0));
  for (auto _ : state)
  {
    atlas::Attribution found = patching.Attribute(true);
    atlas::SortByMagnitude(found.edges);
    benchmark::DoNotOptimize(found);
  }
}

void ExactEdge(benchmark::State& state)
{
  const atlas::AttributionPatching patching = Pair(state.range(0));
  for (auto _ : state)
  {
    benchmark::DoNotOptimize(patching.WithPatchedEdge({ 0, 3, atlas::EdgeInput::Key }));
  }
}

void CircuitOfEdges(benchmark::State& state)
{
  const atlas::AttributionPatching patching = Pair(state.range(0));
  const std::vector<atlas::CircuitEdge> edges = atlas::CircuitEdges(Model().GetConfig());
  for (auto _ : state)
  {
    benchmark::DoNotOptimize(patching.WithEdges(edges));
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
BENCHMARK(Recording)->ArgName("tokens")->Arg(15)->MeasureProcessCPUTime()->UseRealTime()->Unit(
  benchmark::kMillisecond);
BENCHMARK(Run)->ArgName("tokens")->Arg(15)->MeasureProcessCPUTime()->UseRealTime()->Unit(
  benchmark::kMillisecond);
BENCHMARK(Backward)->ArgName("tokens")->Arg(15)->MeasureProcessCPUTime()->UseRealTime()->Unit(
  benchmark::kMillisecond);
BENCHMARK(Edges)->ArgName("tokens")->Arg(15)->MeasureProcessCPUTime()->UseRealTime()->Unit(
  benchmark::kMillisecond);
BENCHMARK(ExactEdge)->ArgName("tokens")->Arg(15)->MeasureProcessCPUTime()->UseRealTime()->Unit(
  benchmark::kMillisecond);
BENCHMARK(CircuitOfEdges)
  ->ArgName("tokens")
  ->Arg(15)
  ->MeasureProcessCPUTime()
  ->UseRealTime()
  ->Unit(benchmark::kMillisecond);
