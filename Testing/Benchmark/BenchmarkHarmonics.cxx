// Speed of harmonic charts and of the accuracy simplex on one thread.

#include "Harmonics.h"
#include "HeadAccuracy.h"

#include <benchmark/benchmark.h>

#include <cmath>
#include <vector>

namespace
{

/// Score and attention over a square chart. Argument: its side.
void EvaluateHarmonicChart(benchmark::State& state)
{
  const auto side = static_cast<std::size_t>(state.range(0));
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

/// A model of three heads with smooth, deterministic weights and targets.
atlas::AttentionOnlyModel MakeModel(Eigen::Index classes)
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
  model.heads.resize(3);
  for (atlas::AttentionHead& head : model.heads)
  {
    fill(head.query, 3);
    fill(head.key, 3);
    fill(head.value, 3);
    fill(head.output, 3);
  }
  model.nextToken.resize(classes, classes);
  for (Eigen::Index i = 0; i < model.nextToken.size(); ++i)
  {
    model.nextToken.data()[i] = (i * 7 + i / classes) % classes;
  }
  return model;
}

/// Accuracies over the triangle. Arguments: segments along its edge, vocabulary.
void EvaluateSimplex(benchmark::State& state)
{
  const atlas::AttentionOnlyModel model = MakeModel(state.range(1));
  const std::vector<Eigen::Vector3d> points = atlas::SimplexGrid(static_cast<int>(state.range(0)));
  for (auto _ : state)
  {
    const atlas::HeadMixture mixture(model, { 0, 1, 2 }, atlas::Residual::None);
    for (const Eigen::Vector3d& point : points)
    {
      benchmark::DoNotOptimize(mixture.Evaluate(point));
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(points.size()));
}

BENCHMARK(EvaluateHarmonicChart)
  ->ArgName("side")
  ->Arg(512)
  ->Arg(2000)
  ->Unit(benchmark::kMillisecond);
BENCHMARK(EvaluateSimplex)
  ->ArgNames({ "segments", "classes" })
  ->Args({ 128, 5 })
  ->Args({ 128, 40 })
  ->Unit(benchmark::kMillisecond);

}
