// Speed and quality of UMAP, and of what it consists of.
//
// The points of a head are those of the .npy file that ATLAS_EMBEDDING_POINTS names, or generated
// ones. ATLAS_MANY_POINTS names one more number of generated points, such as 1000000, to place.
// Where umap-learn is installed, it places some of them too.

#include "Embedding/ApproximateNeighbors.h"
#include "Embedding/Neighbors.h"
#include "Embedding/PointView.h"
#include "Embedding/Umap.h"
#include "EmbeddingPoints.h"

#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

using namespace atlas::benchmarks;

namespace
{

/// UMAP of the head on one thread. Argument: dimensions of the layout.
void UmapOfHead(benchmark::State& state)
{
  const atlas::PointView points = Head().View();
  atlas::UmapOptions options;
  options.dimensions = static_cast<int>(state.range(0));
  atlas::Layout layout;
  for (auto _ : state)
  {
    layout = atlas::Umap(points, options);
  }
  ReportQuality(state, points, layout.points, options.dimensions);
}

/// The part of it that is not the search of neighbors.
void UmapOfHeadFromNeighbors(benchmark::State& state)
{
  const atlas::PointView points = Head().View();
  const atlas::NeighborLists neighbors =
    atlas::FindNeighbors(points, atlas::PointMetric::Cosine, 14, 1);
  for (auto _ : state)
  {
    benchmark::DoNotOptimize(atlas::Umap(points, neighbors, atlas::UmapOptions()));
  }
}

/// The same head by umap-learn: its CPU time.
void UmapLearnOfHead(benchmark::State& state)
{
  const std::vector<float> layout = PlaceByProgram(state, "umap-learn", Head().View());
  if (!layout.empty())
  {
    ReportQuality(state, Head().View(), layout, 2);
  }
}

/// Generated points by umap-learn. Arguments: points, threads (0: all).
void UmapLearnOfGenerated(benchmark::State& state)
{
  const EmbeddingPoints generated = GeneratePoints(state.range(0));
  const std::vector<float> layout =
    PlaceByProgram(state, "umap-learn", generated.View(), static_cast<int>(state.range(1)));
  if (!layout.empty())
  {
    ReportQuality(state, generated.View(), layout, 2);
  }
}

/// UMAP of generated points. Arguments: points, threads (0: all).
void UmapOfGenerated(benchmark::State& state)
{
  const EmbeddingPoints generated = GeneratePoints(state.range(0));
  const atlas::PointView points = generated.View();
  atlas::UmapOptions options;
  options.threads = static_cast<int>(state.range(1));
  atlas::Layout layout;
  for (auto _ : state)
  {
    layout = atlas::Umap(points, options);
  }
  ReportPeak(state);
  ReportQuality(state, points, layout.points, 2);
}

/// Approximate neighbors of generated points and their recall. Arguments: points, threads (0: all).
void ApproximateNeighborsOfGenerated(benchmark::State& state)
{
  const EmbeddingPoints generated = GeneratePoints(state.range(0));
  atlas::NeighborLists lists;
  for (auto _ : state)
  {
    lists = atlas::FindNeighborsApproximately(
      generated.View(), atlas::PointMetric::Cosine, 14, 0, static_cast<int>(state.range(1)));
  }
  state.counters["recall"] =
    atlas::NeighborRecall(generated.View(), atlas::PointMetric::Cosine, lists, 500, 0);
}

void LargeSizes(benchmark::internal::Benchmark* benchmark)
{
  AddSizes(benchmark, { 200'000 });
}

BENCHMARK(UmapOfHead)->ArgName("dimensions")->Arg(2)->Arg(3)->Unit(benchmark::kMillisecond);
BENCHMARK(UmapOfHeadFromNeighbors)->Unit(benchmark::kMillisecond);
BENCHMARK(UmapLearnOfHead)->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(UmapOfGenerated)->Apply(AllSizes)->MeasureProcessCPUTime();
BENCHMARK(UmapLearnOfGenerated)->Apply(PeerSizes)->UseManualTime();
BENCHMARK(ApproximateNeighborsOfGenerated)->Apply(LargeSizes)->MeasureProcessCPUTime();

}
