// Speed of harmonic charts and of the accuracy simplex on one thread.

#include "Harmonics.h"
#include "MixtureRegions.h"

#include <benchmark/benchmark.h>

#include <cmath>
#include <vector>

namespace
{

/// Score and attention over a square chart. Argument: its side.
void EvaluateHarmonicChart(benchmark::State& state)
{
  const std::size_t side = state.range(0);
  std::vector<double> angles;
  for (std::size_t i = 0; i < side; ++i)
  {
    angles.push_back(-3.14159265358979 +
                     6.28318530717959 * static_cast<double>(i) / static_cast<double>(side - 1));
  }
  const atlas::HarmonicCoefficients coefficients = atlas::ProductHarmonics({});
  std::vector<float> score(side * side);
  std::vector<float> attention(side * side);
  for (auto _ : state)
  {
    const atlas::HarmonicField field(coefficients, atlas::Pattern::Softmax, angles);
    for (std::size_t row = 0; row < side; ++row)
    {
      field.EvaluateRow(angles[row], score.data() + row * side, attention.data() + row * side);
    }
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(side * side));
  state.SetBytesProcessed(
    state.iterations() * static_cast<std::int64_t>(side * side * 2 * sizeof(float)));
}

/// A model with smooth, deterministic weights that has all its targets right without a residual.
atlas::AttentionOnlyModel MakeModel(Eigen::Index classes, std::size_t heads)
{
  double phase = 0;
  const auto fill = [&](auto& matrix, Eigen::Index rows)
  {
    matrix.resize(rows, 3);
    for (Eigen::Index i = 0; i < matrix.size(); ++i)
    {
      matrix.data()[i] = std::sin(phase += 1.7);
    }
  };
  atlas::AttentionOnlyModel model;
  fill(model.wordEmbedding, classes);
  fill(model.positionEmbedding, 2);
  fill(model.unembedding, classes);
  model.heads.resize(heads);
  for (atlas::AttentionHead& head : model.heads)
  {
    fill(head.query, 3);
    fill(head.key, 3);
    fill(head.value, 3);
    fill(head.output, 3);
  }
  atlas::EvaluationOptions options;
  options.residual = atlas::Residual::None;
  const atlas::ReferenceEvaluator evaluator(model, options);
  model.nextToken.resize(classes, classes);
  for (Eigen::Index i = 0; i < model.nextToken.size(); ++i)
  {
    model.nextToken.data()[i] = evaluator.AtTokens(i / classes, i % classes).predicted;
  }
  return model;
}

/// Accuracies over the triangle, all that a change of the heads computes again. Arguments: segments
/// along its edge, vocabulary, heads.
void EvaluateSimplex(benchmark::State& state)
{
  const auto segments = static_cast<int>(state.range(0));
  const atlas::AttentionOnlyModel model = MakeModel(state.range(1), state.range(2));
  atlas::MixtureRow counts;
  for (auto _ : state)
  {
    const atlas::HeadMixture mixture(model, { 0, 1, 2 }, atlas::Residual::None);
    const atlas::MixtureRegions regions(mixture);
    for (int row = 0; row <= segments; ++row)
    {
      regions.EvaluateRow(segments, row, counts);
      benchmark::DoNotOptimize(counts.correctByTarget.data());
      benchmark::ClobberMemory();
    }
  }
  const std::int64_t points =
    static_cast<std::int64_t>(segments + 1) * static_cast<std::int64_t>(segments + 2) / 2;
  state.SetItemsProcessed(state.iterations() * points);
}

/// The same accuracies point by point, of some of the points: compare the points per second.
void EvaluateSimplexDirectly(benchmark::State& state)
{
  const std::vector<Eigen::Vector3d> points = atlas::SimplexGrid(static_cast<int>(state.range(0)));
  const atlas::AttentionOnlyModel model = MakeModel(state.range(1), state.range(2));
  const atlas::HeadMixture mixture(model, { 0, 1, 2 }, atlas::Residual::None);
  std::size_t point = 0;
  for (auto _ : state)
  {
    benchmark::DoNotOptimize(mixture.Evaluate(points[point]));
    point = (point + 997) % points.size();
  }
  state.SetItemsProcessed(state.iterations());
}

/// Reading the model into a mixture alone, which is part of EvaluateSimplex.
void MakeMixture(benchmark::State& state)
{
  const atlas::AttentionOnlyModel model = MakeModel(state.range(0), state.range(1));
  for (auto _ : state)
  {
    const atlas::HeadMixture mixture(model, { 0, 1, 2 }, atlas::Residual::None);
    benchmark::DoNotOptimize(mixture.PairCount());
  }
}

BENCHMARK(EvaluateHarmonicChart)
  ->ArgName("side")
  ->Arg(512)
  ->Arg(2000)
  ->Unit(benchmark::kMillisecond);
BENCHMARK(EvaluateSimplex)
  ->ArgNames({ "segments", "classes", "heads" })
  ->ArgsProduct({ { 128, 512 }, { 5, 40, 100 }, { 3, 64 } })
  ->Unit(benchmark::kMillisecond);
BENCHMARK(EvaluateSimplexDirectly)
  ->ArgNames({ "segments", "classes", "heads" })
  ->ArgsProduct({ { 128, 512 }, { 5, 40, 100 }, { 3, 64 } })
  ->Unit(benchmark::kMicrosecond);
BENCHMARK(MakeMixture)
  ->ArgNames({ "classes", "heads" })
  ->ArgsProduct({ { 100 }, { 3, 64 } })
  ->Unit(benchmark::kMillisecond);

}
