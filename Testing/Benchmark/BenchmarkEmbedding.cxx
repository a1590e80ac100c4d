// Speed and quality of t-SNE and what it consists of, on one thread.
//
// The points of a head are those of the .npy file that ATLAS_EMBEDDING_POINTS names, or generated
// ones. ATLAS_MANY_POINTS names one more number of generated points, such as 1000000, to place on
// all threads. Where scikit-learn and openTSNE are installed, they place some of them too.
// Counters:
//   divergence       Kullback-Leibler, exact, with the affinities of 50 as perplexity
//   trustworthiness  and kept: EmbeddingQuality.h with 15 neighbors

#include "Embedding/ApproximateNeighbors.h"
#include "Embedding/Neighbors.h"
#include "Embedding/Principal.h"
#include "Embedding/TSne.h"
#include "EmbeddingPoints.h"
#include "ExactTSne.h"

#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

using namespace atlas::benchmarks;

namespace
{

constexpr auto Metric = atlas::PointMetric::Cosine;

const atlas::NeighborLists& NeighborsOfHead()
{
  static const atlas::NeighborLists neighbors = atlas::FindNeighbors(
    Head().View(), Metric, atlas::TSneNeighborCount(atlas::TSneOptions().perplexity), 0);
  return neighbors;
}

void ReportTSne(benchmark::State& state, const std::vector<float>& layout, int dimensions)
{
  const atlas::Affinities affinities =
    atlas::TSneAffinities(NeighborsOfHead(), Metric, atlas::TSneOptions().perplexity, 0);
  state.counters["divergence"] = atlas::TSneDivergence(affinities, layout.data(), dimensions, 0);
  ReportQuality(state, Head().View(), layout, dimensions);
}

/// Arguments: dimensions of the layout, steps of the descent.
void TSneOfHead(benchmark::State& state)
{
  atlas::TSneOptions options;
  options.dimensions = static_cast<int>(state.range(0));
  options.iterations = static_cast<int>(state.range(1));
  atlas::Layout layout;
  for (auto _ : state)
  {
    layout = atlas::TSne(Head().View(), options);
  }
  ReportTSne(state, layout.points, options.dimensions);
}

/// The same head by another program: its CPU time.
void HeadByProgram(benchmark::State& state, const char* program)
{
  const std::vector<float> layout = PlaceByProgram(state, program, Head().View());
  if (!layout.empty())
  {
    ReportTSne(state, layout, 2);
  }
}

void NeighborSearchOfHead(benchmark::State& state)
{
  const atlas::TSneOptions options;
  for (auto _ : state)
  {
    benchmark::DoNotOptimize(
      atlas::FindNeighbors(Head().View(), Metric, atlas::TSneNeighborCount(options.perplexity), 1));
  }
}

void AffinitiesOfHead(benchmark::State& state)
{
  for (auto _ : state)
  {
    benchmark::DoNotOptimize(
      atlas::TSneAffinities(NeighborsOfHead(), Metric, atlas::TSneOptions().perplexity, 1));
  }
}

/// The principal components, and the matrix product that they need.
void PrincipalComponentsOfHead(benchmark::State& state)
{
  for (auto _ : state)
  {
    const atlas::PrincipalComponents found = atlas::FindPrincipalComponents(Head().View(), 3);
    benchmark::DoNotOptimize(atlas::Project(Head().View(), found, 3));
  }
}

/// t-SNE of generated points. Arguments: points, threads (0: all). The time has that of the
/// neighbors, which are approximate from ApproximateNeighborsFrom points on.
void TSneOfGenerated(benchmark::State& state)
{
  const EmbeddingPoints generated = GeneratePoints(state.range(0));
  atlas::TSneOptions options;
  options.threads = static_cast<int>(state.range(1));
  atlas::Layout layout;
  for (auto _ : state)
  {
    layout = atlas::TSne(generated.View(), options);
  }
  ReportPeak(state);
  state.counters["divergence"] = layout.divergence;
  ReportQuality(state, generated.View(), layout.points, 2);
}

/// Generated points by openTSNE. Arguments: points, threads (0: all).
void OpenTsneOfGenerated(benchmark::State& state)
{
  const EmbeddingPoints generated = GeneratePoints(state.range(0));
  const std::vector<float> layout =
    PlaceByProgram(state, "openTSNE", generated.View(), static_cast<int>(state.range(1)));
  if (!layout.empty())
  {
    ReportQuality(state, generated.View(), layout, 2);
  }
}

BENCHMARK(TSneOfHead)
  ->ArgNames({ "dimensions", "steps" })
  ->Args({ 2, 750 })
  ->Args({ 2, 250 })
  ->Args({ 3, 750 })
  ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(HeadByProgram, scikit_learn, "scikit-learn")
  ->UseManualTime()
  ->Iterations(1)
  ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(HeadByProgram, openTSNE, "openTSNE")
  ->UseManualTime()
  ->Iterations(1)
  ->Unit(benchmark::kMillisecond);
BENCHMARK(NeighborSearchOfHead)->Unit(benchmark::kMillisecond);
BENCHMARK(AffinitiesOfHead)->Unit(benchmark::kMillisecond);
BENCHMARK(PrincipalComponentsOfHead)->Unit(benchmark::kMillisecond);
BENCHMARK(TSneOfGenerated)->Apply(AllSizes)->MeasureProcessCPUTime();
BENCHMARK(OpenTsneOfGenerated)->Apply(PeerSizes)->UseManualTime();

}
