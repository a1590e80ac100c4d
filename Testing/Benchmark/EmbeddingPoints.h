#pragma once

#include "Base/Parallel.h"
#include "Embedding/EmbeddingQuality.h"
#include "Embedding/PointView.h"
#include "Files/ArrayFile.h"
#include "Peer.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <system_error>
#include <vector>

#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <unistd.h>

namespace atlas::benchmarks
{

/// Points in memory of their own.
struct EmbeddingPoints
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
inline EmbeddingPoints GeneratePoints(std::int64_t count)
{
  constexpr std::int64_t words = 4000;
  constexpr std::int64_t contexts = 8;
  constexpr std::int64_t turns = 6;
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  EmbeddingPoints points;
  const std::int64_t d = points.dimension;
  std::vector<float> bases((words + contexts + turns) * d);
  for (std::size_t i = 0; i < bases.size(); ++i)
  {
    const auto column = static_cast<float>(static_cast<std::int64_t>(i) % d);
    const bool isWord = static_cast<std::int64_t>(i) < words * d;
    bases[i] = normal(generator) / (isWord ? std::sqrt(1 + column / 4) : 1);
  }
  std::uniform_real_distribution<float> uniform;
  points.values.resize(count * d);
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
        row[c] += factor * bases[base * d + c];
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

/// The file of points of a head, or nullptr.
inline const char* HeadFile()
{
  return std::getenv("ATLAS_EMBEDDING_POINTS");
}

/// The points of a head: those of the file, else generated ones.
inline const EmbeddingPoints& Head()
{
  static const EmbeddingPoints head = []
  {
    if (!HeadFile())
    {
      return GeneratePoints(10'000);
    }
    const atlas::LoadedArray array = atlas::ArrayFile(HeadFile()).GetEntries().at("array").load();
    EmbeddingPoints points;
    points.dimension = array.view.shape.at(1);
    for (const double value : array.view.ToDouble())
    {
      points.values.push_back(static_cast<float>(value));
    }
    return points;
  }();
  return head;
}

/// Adds the quality of a layout to the counters, of a sample if there are many points.
inline void ReportQuality(benchmark::State& state, const atlas::PointView& points,
  const std::vector<float>& layout, int dimensions)
{
  const std::int64_t sample = points.count > 20'000 ? 1000 : 0;
  const atlas::EmbeddingQuality quality = atlas::MeasureEmbedding(
    points, atlas::PointMetric::Cosine, layout.data(), dimensions, 15, 0, sample);
  state.counters["trustworthiness"] = quality.trustworthiness;
  state.counters["kept"] = quality.neighborsKept;
}

/// Removes a file at its end.
struct TemporaryFile
{
  std::filesystem::path path;

  explicit TemporaryFile(const std::string& suffix)
    : path(std::filesystem::temp_directory_path() /
           ("atlas-embedding-" + std::to_string(getpid()) + suffix))
  {
  }
  ~TemporaryFile()
  {
    std::error_code ignored;
    std::filesystem::remove(this->path, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
};

/// Writes points as a .npy file.
inline void WritePoints(const atlas::PointView& points, const std::filesystem::path& path)
{
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                       std::to_string(points.count) + ", " + std::to_string(points.dimension) +
                       "), }";
  header.resize(117, ' ');
  header += '\n';
  std::ofstream stream(path, std::ios::binary);
  stream.write("\x93NUMPY\x01\x00\x76\x00", 10);
  stream << header;
  stream.write(reinterpret_cast<const char*>(points.values),
    static_cast<std::streamsize>(sizeof(float)) * points.count * points.dimension);
}

/// The number of points that ATLAS_MANY_POINTS names, such as 1000000, to place on all threads; 0
/// if there is none.
inline std::int64_t ManyPoints()
{
  const char* points = std::getenv("ATLAS_MANY_POINTS");
  return points != nullptr ? std::atoll(points) : 0;
}

/// Adds generated points to a benchmark: their numbers and threads (0: all).
inline void AddSizes(
  benchmark::internal::Benchmark* benchmark, const std::vector<std::int64_t>& sizes)
{
  benchmark->ArgNames({ "points", "threads" })->Iterations(1)->Unit(benchmark::kMillisecond);
  for (const std::int64_t points : sizes)
  {
    benchmark->Args({ points, 1 });
  }
  if (ManyPoints() > 0)
  {
    benchmark->Args({ ManyPoints(), 0 });
  }
}

/// What all our layouts are measured at.
inline void AllSizes(benchmark::internal::Benchmark* benchmark)
{
  AddSizes(benchmark, { 2000, 10'000, 50'000, 200'000 });
}

/// What other programs place, too.
inline void PeerSizes(benchmark::internal::Benchmark* benchmark)
{
  AddSizes(benchmark, { 50'000 });
}

/// The most memory that this program used so far.
inline void ReportPeak(benchmark::State& state)
{
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["peak_GiB"] = static_cast<double>(usage.ru_maxrss) / (1 << 20U);
}

/// Places points [points, 2] by another program (layout_peer.py) of build/peers (install-deps.sh
/// --peers). Empty, and the benchmark skipped,
/// if that does not work. threads: 0 for all.
inline std::vector<float> PlaceByProgram(
  benchmark::State& state, const std::string& program, const PointView& view, int threads = 1)
{
  const TemporaryFile points(".npy");
  const TemporaryFile file(".f32");
  WritePoints(view, points.path);
  for (auto _ : state)
  {
    const PeerTime time = RunPeer("layout_peer.py",
      program + " '" + points.path.string() + "' '" + file.path.string() + "' " +
        std::to_string(ThreadCount(threads)),
      ATLAS_PEERS_PYTHON);
    if (!time.problem.empty())
    {
      state.SkipWithError(time.problem.c_str());
      return {};
    }
    state.SetIterationTime(time.seconds);
  }
  std::vector<float> layout(view.count * 2);
  std::ifstream(file.path, std::ios::binary)
    .read(reinterpret_cast<char*>(layout.data()),
      static_cast<std::streamsize>(layout.size() * sizeof(float)));
  return layout;
}

}
