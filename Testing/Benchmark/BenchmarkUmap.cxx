// Speed and quality of UMAP, and of what it consists of.
//
// The points of a head are those of the .npy file that ATLAS_EMBEDDING_POINTS names, or generated
// ones. ATLAS_UMAP_POINTS names one more number of generated points, such as 1000000, to place.
// Where python3 has umap-learn, it places the points of the head too.

#include "ApproximateNeighbors.h"
#include "ArrayFile.h"
#include "EmbeddingQuality.h"
#include "Neighbors.h"
#include "PointView.h"
#include "Umap.h"

#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

namespace
{

namespace fs = std::filesystem;

struct Points
{
  std::vector<float> values;
  std::int64_t dimension = 64;

  atlas::PointView View() const
  {
    return { this->values.data(), static_cast<std::int64_t>(this->values.size()) / this->dimension,
      this->dimension };
  }
};

/// Points like the queries and keys of a head: of 4,000 words, of which few are frequent, with a
/// part that turns with the position, one of 8 dimensions for the context, and noise.
Points Generate(std::int64_t count)
{
  constexpr std::int64_t words = 4000;
  constexpr std::int64_t contexts = 8;
  constexpr std::int64_t turns = 6;
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  Points points;
  const std::int64_t d = points.dimension;
  std::vector<float> bases(static_cast<std::size_t>((words + contexts + turns) * d));
  for (std::size_t i = 0; i < bases.size(); ++i)
  {
    const auto column = static_cast<float>(static_cast<std::int64_t>(i) % d);
    const bool isWord = static_cast<std::int64_t>(i) < words * d;
    bases[i] = normal(generator) / (isWord ? std::sqrt(1 + column / 4) : 1);
  }
  std::uniform_real_distribution<float> uniform;
  points.values.resize(static_cast<std::size_t>(count * d));
  for (std::int64_t i = 0; i < count; ++i)
  {
    // Word number w has a share of about 1 / w.
    const auto word = static_cast<std::int64_t>(std::pow(words, uniform(generator))) % words;
    const float position = uniform(generator);
    float* row = points.values.data() + i * d;
    const auto add = [&](std::int64_t base, float factor)
    {
      for (std::int64_t c = 0; c < d; ++c)
      {
        row[c] += factor * bases[static_cast<std::size_t>(base * d + c)];
      }
    };
    add(word, 1);
    for (std::int64_t k = 0; k < contexts; ++k)
    {
      add(words + k, 0.25F * normal(generator));
    }
    for (std::int64_t k = 0; k < turns; ++k)
    {
      const float phase = k % 2 == 0 ? 0.F : 1.5708F;
      add(words + contexts + k,
        0.5F * std::sin(6.2831853F * position * static_cast<float>(k / 2 + 1) + phase));
    }
    for (std::int64_t c = 0; c < d; ++c)
    {
      row[c] += 0.1F * normal(generator);
    }
  }
  return points;
}

const char* HeadFile()
{
  return std::getenv("ATLAS_EMBEDDING_POINTS");
}

const Points& Head()
{
  static const Points head = []
  {
    if (!HeadFile())
    {
      return Generate(10'000);
    }
    const atlas::LoadedArray array = atlas::ArrayFile(HeadFile()).GetEntries().at("array").load();
    Points points;
    points.dimension = array.view.shape.at(1);
    for (const double value : array.view.ToDouble())
    {
      points.values.push_back(static_cast<float>(value));
    }
    return points;
  }();
  return head;
}

void ReportQuality(benchmark::State& state, const atlas::PointView& points,
  const std::vector<float>& layout, int dimensions)
{
  const std::int64_t sample = points.count > 20'000 ? 1000 : 0;
  const atlas::EmbeddingQuality quality = atlas::MeasureEmbedding(
    points, atlas::PointMetric::Cosine, layout.data(), dimensions, 15, 0, sample);
  state.counters["trustworthiness"] = quality.trustworthiness;
  state.counters["kept"] = quality.neighborsKept;
}

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
  const fs::path folder = fs::temp_directory_path();
  const fs::path layoutFile = folder / ("atlas-umap-learn-" + std::to_string(getpid()) + ".f32");
  if (!HeadFile())
  {
    state.SkipWithError("ATLAS_EMBEDDING_POINTS names no file");
    return;
  }
  const std::string command = "python3 '" ATLAS_UMAP_LEARN "' '" + std::string(HeadFile()) + "' '" +
                              layoutFile.string() + "' 2>/dev/null";
  for (auto _ : state)
  {
    const std::unique_ptr<FILE, int (*)(FILE*)> output(popen(command.c_str(), "r"), pclose);
    double seconds = 0;
    if (!output || std::fscanf(output.get(), "%lf", &seconds) != 1)
    {
      state.SkipWithError("python3 cannot run umap-learn");
      return;
    }
    state.SetIterationTime(seconds);
  }
  std::vector<float> layout(static_cast<std::size_t>(Head().View().count * 2));
  std::ifstream(layoutFile, std::ios::binary)
    .read(reinterpret_cast<char*>(layout.data()),
      static_cast<std::streamsize>(layout.size() * sizeof(float)));
  fs::remove(layoutFile);
  ReportQuality(state, Head().View(), layout, 2);
}

/// UMAP of generated points. Arguments: points, threads (0: all).
void UmapOfGenerated(benchmark::State& state)
{
  const Points generated = Generate(state.range(0));
  const atlas::PointView points = generated.View();
  atlas::UmapOptions options;
  options.threads = static_cast<int>(state.range(1));
  atlas::Layout layout;
  for (auto _ : state)
  {
    layout = atlas::Umap(points, options);
  }
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["peak_GiB"] = static_cast<double>(usage.ru_maxrss) / (1 << 20U);
  ReportQuality(state, points, layout.points, 2);
}

/// Approximate neighbors of generated points and their recall. Arguments: points, threads (0: all).
void ApproximateNeighborsOfGenerated(benchmark::State& state)
{
  const Points generated = Generate(state.range(0));
  atlas::NeighborLists lists;
  for (auto _ : state)
  {
    lists = atlas::FindNeighborsApproximately(
      generated.View(), atlas::PointMetric::Cosine, 14, 0, static_cast<int>(state.range(1)));
  }
  state.counters["recall"] =
    atlas::NeighborRecall(generated.View(), atlas::PointMetric::Cosine, lists, 500, 0);
}

/// Adds the arguments of generated points.
void GeneratedSizes(benchmark::internal::Benchmark* benchmark)
{
  for (const std::int64_t points : { 2000, 10'000, 50'000, 200'000 })
  {
    benchmark->Args({ points, 1 });
  }
  if (const char* points = std::getenv("ATLAS_UMAP_POINTS"))
  {
    benchmark->Args({ std::atoll(points), 0 });
  }
}

void LargeSizes(benchmark::internal::Benchmark* benchmark)
{
  benchmark->Args({ 200'000, 1 });
  if (const char* points = std::getenv("ATLAS_UMAP_POINTS"))
  {
    benchmark->Args({ std::atoll(points), 0 });
  }
}

BENCHMARK(UmapOfHead)->ArgName("dimensions")->Arg(2)->Arg(3)->Unit(benchmark::kMillisecond);
BENCHMARK(UmapOfHeadFromNeighbors)->Unit(benchmark::kMillisecond);
BENCHMARK(UmapLearnOfHead)->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(UmapOfGenerated)
  ->ArgNames({ "points", "threads" })
  ->Apply(GeneratedSizes)
  ->MeasureProcessCPUTime()
  ->Iterations(1)
  ->Unit(benchmark::kMillisecond);
BENCHMARK(ApproximateNeighborsOfGenerated)
  ->ArgNames({ "points", "threads" })
  ->Apply(LargeSizes)
  ->MeasureProcessCPUTime()
  ->Iterations(1)
  ->Unit(benchmark::kMillisecond);

}
