// Speed of joint vectors and layouts of heads of generated recordings: sentences of 30 tokens,
// heads of dimension 64. The queries and keys of a head are points near 200 centers.

#include "HeadCorrelation.h"
#include "HeadLayouts.h"
#include "MatrixProduct.h"
#include "Principal.h"

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace
{

constexpr std::int64_t Dimension = 64;
constexpr std::int64_t Sentence = 30;

atlas::SharedMatrix Clustered(std::int64_t rows, std::mt19937& random)
{
  constexpr std::size_t centers = 200;
  std::normal_distribution<float> normal;
  std::vector<float> center(centers * Dimension);
  for (float& value : center)
  {
    value = normal(random);
  }
  atlas::SharedMatrix matrix = atlas::SharedMatrix::Zero(rows, Dimension);
  for (std::int64_t row = 0; row < rows; ++row)
  {
    const float* near = center.data() + random() % centers * Dimension;
    for (std::int64_t c = 0; c < Dimension; ++c)
    {
      matrix.Row(row)[c] = near[c] + 0.7F * normal(random);
    }
  }
  return matrix;
}

/// A layer of `heads` different heads on this many tokens.
atlas::Recording Generated(std::int64_t tokens, int heads)
{
  std::mt19937 random(1);
  atlas::Recording recording;
  recording.layerCount = 1;
  for (std::int64_t i = 0; i < tokens; ++i)
  {
    recording.tokens.sequence.push_back(static_cast<std::int32_t>(i / Sentence));
    recording.tokens.position.push_back(static_cast<std::int32_t>(i % Sentence));
    if (i % Sentence == 0)
    {
      recording.sequenceOffsets.push_back(i);
    }
  }
  recording.sequenceOffsets.push_back(tokens);
  recording.layers.push_back({ 0, 0.125, {} });
  for (int h = 0; h < heads; ++h)
  {
    atlas::RecordedHead head;
    head.query = Clustered(tokens, random);
    head.key = Clustered(tokens, random);
    recording.layers.front().heads.push_back(head);
  }
  return recording;
}

/// Layouts of state.range(0) heads with state.range(1) points each on state.range(2) threads.
void LayOut(benchmark::State& state, atlas::LayoutMethod method)
{
  const auto heads = static_cast<int>(state.range(0));
  const std::int64_t tokens = state.range(1) / 2;
  const atlas::Recording recording = Generated(tokens, heads);
  const std::vector<std::int64_t> rows = atlas::ChooseTokens(recording, {});
  std::vector<atlas::LayoutTask> tasks;
  for (std::int32_t h = 0; h < heads; ++h)
  {
    tasks.push_back({ { 0, h }, nullptr, nullptr });
  }
  atlas::LayoutOptions options;
  options.method = method;
  double kept = 0;
  double divergence = 0;
  for (auto _ : state)
  {
    const std::vector<atlas::HeadLayout> layouts = atlas::LayOutHeads(
      recording, rows, tasks, options, static_cast<int>(state.range(2)), nullptr);
    kept = layouts.front().neighborsKept;
    divergence = layouts.front().divergence;
  }
  state.counters["neighbors kept"] = kept;
  if (method == atlas::LayoutMethod::TSne)
  {
    state.counters["divergence"] = divergence;
  }
  state.counters["s/head"] =
    benchmark::Counter(static_cast<double>(heads) * static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

/// The correlations of one head, as HeadLayouts computes them.
void Correlate(benchmark::State& state)
{
  const atlas::Recording recording = Generated(state.range(0) / 2, 1);
  const std::vector<std::int64_t> rows = atlas::ChooseTokens(recording, {});
  const atlas::JointVectors joint = atlas::JoinQueriesAndKeys(recording, 0, 0, rows, true);
  for (auto _ : state)
  {
    const atlas::HeadCorrelation correlation(recording, rows, joint);
    benchmark::DoNotOptimize(correlation.LowestPearson({}));
    benchmark::DoNotOptimize(correlation.Spearman(true));
  }
}

/// Principal components, and the product of all points with themselves that they need.
void Principal(benchmark::State& state)
{
  const atlas::Recording recording = Generated(state.range(0) / 2, 1);
  const std::vector<std::int64_t> rows = atlas::ChooseTokens(recording, {});
  const atlas::JointVectors joint = atlas::JoinQueriesAndKeys(recording, 0, 0, rows, true);
  for (auto _ : state)
  {
    const atlas::PrincipalComponents found = atlas::FindPrincipalComponents(joint.View(), 2);
    benchmark::DoNotOptimize(atlas::Project(joint.View(), found, 2));
  }
}

void ItsProduct(benchmark::State& state)
{
  const atlas::Recording recording = Generated(state.range(0) / 2, 1);
  const std::vector<std::int64_t> rows = atlas::ChooseTokens(recording, {});
  const atlas::JointVectors joint = atlas::JoinQueriesAndKeys(recording, 0, 0, rows, true);
  const atlas::SingleThreadedBlas blas;
  std::vector<float> product(Dimension * Dimension);
  for (auto _ : state)
  {
    atlas::MultiplyMatrices(Dimension, Dimension, state.range(0), 1,
      { joint.values.data(), Dimension, true }, { joint.values.data(), Dimension }, product.data(),
      Dimension);
    benchmark::DoNotOptimize(product.data());
  }
}

BENCHMARK(ItsProduct)->Arg(10000)->Arg(60000)->Unit(benchmark::kMillisecond);
BENCHMARK(Principal)->Arg(10000)->Arg(60000)->Unit(benchmark::kMillisecond);
BENCHMARK(Correlate)->Arg(10000)->Arg(60000)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(LayOut, PCA, atlas::LayoutMethod::Principal)
  ->Args({ 144, 10000, 2 })
  ->Unit(benchmark::kSecond)
  ->MeasureProcessCPUTime()
  ->UseRealTime();
BENCHMARK_CAPTURE(LayOut, TSNE, atlas::LayoutMethod::TSne)
  ->Args({ 8, 10000, 2 })
  ->Args({ 144, 10000, 2 })
  ->Unit(benchmark::kSecond)
  ->MeasureProcessCPUTime()
  ->UseRealTime();
BENCHMARK_CAPTURE(LayOut, UMAP, atlas::LayoutMethod::Umap)
  ->Args({ 8, 10000, 2 })
  ->Unit(benchmark::kSecond)
  ->MeasureProcessCPUTime()
  ->UseRealTime();

}
