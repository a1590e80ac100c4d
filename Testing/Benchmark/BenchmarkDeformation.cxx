// Speed of the shapes and colors of the vectors of a chart of 512 x 512 points, beside a plain
// copy of them.

#include "Deformation.h"
#include "SummableColors.h"

#include <benchmark/benchmark.h>

#include <random>
#include <vector>

namespace
{

constexpr Eigen::Index Count = 512 * 512;

atlas::Rows3 MakeVectors()
{
  std::mt19937_64 generator(1);
  std::normal_distribution<double> normal;
  atlas::Rows3 vectors(Count, 3);
  for (Eigen::Index i = 0; i < vectors.size(); ++i)
  {
    vectors.data()[i] = normal(generator);
  }
  return vectors;
}

void Copy(benchmark::State& state)
{
  const atlas::Rows3 vectors = MakeVectors();
  for (auto _ : state)
  {
    atlas::Rows3 copy = vectors;
    benchmark::DoNotOptimize(copy.data());
  }
}

void Normalize(benchmark::State& state)
{
  const atlas::Rows3 vectors = MakeVectors();
  const auto normalization = static_cast<atlas::Normalization>(state.range(0));
  for (auto _ : state)
  {
    atlas::Rows3 normalized = atlas::Normalize(vectors, vectors, normalization);
    benchmark::DoNotOptimize(normalized.data());
  }
}

void Color(benchmark::State& state)
{
  const atlas::Rows3 vectors = MakeVectors();
  std::vector<atlas::Rgb> colors(Count);
  for (auto _ : state)
  {
    atlas::ComponentRange range;
    for (Eigen::Index i = 0; i < vectors.size(); ++i)
    {
      range.Add(vectors.data()[i]);
    }
    const atlas::ColorScale scale = atlas::SharedRangeScale(range);
    for (Eigen::Index i = 0; i < Count; ++i)
    {
      colors[i] = scale.Color(vectors.row(i).data());
    }
    benchmark::DoNotOptimize(colors.data());
  }
}

}

BENCHMARK(Copy)->Unit(benchmark::kMillisecond);
BENCHMARK(Normalize)->ArgName("normalization")->DenseRange(0, 3)->Unit(benchmark::kMillisecond);
BENCHMARK(Color)->Unit(benchmark::kMillisecond);
