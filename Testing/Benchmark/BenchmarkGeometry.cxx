// Attention on a mesh of random places. Counters:
//   GB_per_s       of all weights of slices, of which a new query reads those it needs
//   memory_GB_per_s  what adding the same bytes up alone reads

#include "Geometry/SpatialAttention.h"
#include "Parallel.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <Eigen/Core>
#include <benchmark/benchmark.h>

namespace
{

constexpr int Threads = 2;

/// Weights of all slices at each place, cheap to make and all of them different from 0.
std::vector<float> SlicesOf(std::int64_t places, std::int64_t width)
{
  std::vector<float> weights(places * width);
  for (std::int64_t i = 0; i < places * width; ++i)
  {
    weights[i] = static_cast<float>(i % 97 + 1) / 8192;
  }
  return weights;
}

/// The shortest time in which all numbers are read, on as many threads.
double SecondsToRead(const std::vector<float>& numbers)
{
  const std::int64_t part = static_cast<std::int64_t>(numbers.size()) / Threads;
  return atlas::benchmarks::ShortestTime(5, Threads,
    [&](int thread)
    {
      benchmark::DoNotOptimize(
        Eigen::Map<const Eigen::ArrayXf>(numbers.data() + thread * part, part).sum());
    });
}

/// A new query on places of slices: its attention to the first of them, or all, as values of
/// places.
void SpreadSlices(benchmark::State& state, std::int64_t attended)
{
  const std::int64_t places = state.range(0);
  const std::int64_t width = state.range(1);
  const std::vector<float> weights = SlicesOf(places, width);
  std::vector<float> attention(width, 0);
  std::fill_n(attention.begin(), attended, 1.0F / static_cast<float>(attended));
  std::vector<float> values(places);
  const atlas::BoundPlaces bound = { places, width, nullptr, weights.data(), 0 };
  for (auto _ : state)
  {
    atlas::SpreadOverPlaces(bound, attention, values.data(), Threads);
    benchmark::DoNotOptimize(values.data());
  }
  const auto bytes = static_cast<double>(weights.size() * sizeof(float));
  state.counters["GB_per_s"] =
    benchmark::Counter(bytes / 1e9, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["memory_GB_per_s"] = bytes / 1e9 / SecondsToRead(weights);
}

void QueryOfSlices(benchmark::State& state)
{
  SpreadSlices(state, state.range(1));
}
BENCHMARK(QueryOfSlices)
  ->Args({ 1'000'000, 64 })
  ->Args({ 10'000'000, 64 })
  ->Unit(benchmark::kMillisecond)
  ->UseRealTime();

/// What one slice holds.
void QueryOfOneSlice(benchmark::State& state)
{
  SpreadSlices(state, 1);
}
BENCHMARK(QueryOfOneSlice)->Args({ 10'000'000, 64 })->Unit(benchmark::kMillisecond)->UseRealTime();

/// The same with a token per place.
void QueryOfTokens(benchmark::State& state)
{
  const std::int64_t places = state.range(0);
  std::vector<std::int32_t> tokens(places);
  for (std::int64_t i = 0; i < places; ++i)
  {
    tokens[i] = static_cast<std::int32_t>(i % 10'000);
  }
  const std::vector<float> attention(10'000, 1e-4F);
  std::vector<float> values(places);
  const atlas::BoundPlaces bound = { places, 1, tokens.data(), nullptr, 0 };
  for (auto _ : state)
  {
    atlas::SpreadOverPlaces(bound, attention, values.data(), Threads);
    benchmark::DoNotOptimize(values.data());
  }
}
BENCHMARK(QueryOfTokens)->Arg(10'000'000)->Unit(benchmark::kMillisecond)->UseRealTime();

/// What is known of all places after they were bound: how many a token has, and their centers.
void SumsOfSlices(benchmark::State& state)
{
  const std::int64_t places = state.range(0);
  const std::int64_t width = state.range(1);
  const std::vector<float> weights = SlicesOf(places, width);
  const atlas::BoundPlaces bound = { places, width, nullptr, weights.data(), 0 };
  const auto positionOf = [](std::int64_t place, double* position)
  { std::fill_n(position, 3, static_cast<double>(place % 1000)); };
  for (auto _ : state)
  {
    atlas::PlaceSums sums(width, atlas::CheckPlaces(bound, positionOf, width, "places", Threads));
    sums.Add(bound, positionOf, nullptr, Threads);
    benchmark::DoNotOptimize(sums.Of(0));
  }
}
BENCHMARK(SumsOfSlices)->Args({ 10'000'000, 64 })->Unit(benchmark::kMillisecond)->UseRealTime();

}
