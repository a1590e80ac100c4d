// Speed of the partition of the sphere and of its tessellation at the default resolution.

#include "SphericalVoronoi.h"

#include <benchmark/benchmark.h>

#include <random>

namespace
{

/// Independent normal numbers, or of norm 1, where each row has a cell.
atlas::Rows3 MakeRows(benchmark::State& state)
{
  std::mt19937_64 generator(1);
  std::normal_distribution<double> normal;
  atlas::Rows3 rows(state.range(0), 3);
  for (Eigen::Index i = 0; i < rows.size(); ++i)
  {
    rows.data()[i] = normal(generator);
  }
  if (state.range(1) != 0)
  {
    rows.rowwise().normalize();
  }
  return rows;
}

void Partition(benchmark::State& state)
{
  const atlas::Rows3 rows = MakeRows(state);
  std::size_t cells = 0;
  for (auto _ : state)
  {
    cells = atlas::PartitionSphere(rows).cells.size();
  }
  state.counters["cells"] = static_cast<double>(cells);
}

void Tessellate(benchmark::State& state)
{
  const atlas::SphericalVoronoi partition = atlas::PartitionSphere(MakeRows(state));
  std::size_t polygons = 0;
  for (auto _ : state)
  {
    atlas::SphereTessellator tessellator(partition, 128);
    for (std::size_t cell = 0; cell < partition.cells.size(); ++cell)
    {
      tessellator.AddCell(cell);
    }
    polygons = tessellator.Get().owners.size();
  }
  state.counters["polygons"] = static_cast<double>(polygons);
}

void Sizes(benchmark::internal::Benchmark* benchmark)
{
  benchmark->ArgNames({ "rows", "sphere" })->Unit(benchmark::kMillisecond);
  for (const int rows : { 1000, 50000 })
  {
    benchmark->Args({ rows, 0 })->Args({ rows, 1 });
  }
}

BENCHMARK(Partition)->Apply(Sizes);
BENCHMARK(Tessellate)->Apply(Sizes);

}
