// Speed of the evaluation over a chart on one thread, beside the machine's rate of plain writes
// into arrays of the same size in the same run: what writing alone would cost is the limit.

#include "FieldEvaluation.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace
{

/// A model of that many heads and classes with smooth, deterministic weights.
atlas::AttentionOnlyModel MakeModel(int heads, int classes)
{
  double phase = 0;
  const auto fill = [&](auto& matrix, Eigen::Index rows, Eigen::Index columns)
  {
    matrix.resize(rows, columns);
    for (Eigen::Index i = 0; i < matrix.size(); ++i)
    {
      matrix.data()[i] = std::sin(phase += 1.7);
    }
  };
  atlas::AttentionOnlyModel model;
  fill(model.wordEmbedding, classes, 3);
  fill(model.positionEmbedding, 2, 3);
  fill(model.unembedding, classes, 3);
  model.heads.resize(static_cast<std::size_t>(heads));
  for (atlas::AttentionHead& head : model.heads)
  {
    fill(head.query, 3, 3);
    fill(head.key, 3, 3);
    fill(head.value, 3, 3);
    fill(head.output, 3, 3);
  }
  return model;
}

/// Class, probability, colour and one attention array per head, over a square chart.
struct Chart
{
  Chart(int side, int heads)
    : points(static_cast<std::size_t>(side) * static_cast<std::size_t>(side))
    , predicted(points)
    , probability(points)
    , color(3 * points)
    , attention(static_cast<std::size_t>(heads), std::vector<float>(points))
  {
    arrays.predicted = predicted.data();
    arrays.probability = probability.data();
    arrays.classColor = color.data();
    for (std::vector<float>& head : attention)
    {
      arrays.attention.push_back(head.data());
    }
  }

  std::size_t Bytes() const
  {
    return points * (sizeof(std::int32_t) + sizeof(float) + 3 + attention.size() * sizeof(float));
  }

  std::size_t points;
  std::vector<std::int32_t> predicted;
  std::vector<float> probability;
  std::vector<std::uint8_t> color;
  std::vector<std::vector<float>> attention;
  atlas::FieldArrays arrays;
};

void Report(benchmark::State& state, const Chart& chart)
{
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(chart.points));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(chart.Bytes()));
}

/// Arguments: side of the chart, heads, classes.
void EvaluateChart(benchmark::State& state)
{
  const int side = static_cast<int>(state.range(0));
  const int heads = static_cast<int>(state.range(1));
  Chart chart(side, heads);
  atlas::FieldEvaluator evaluator(MakeModel(heads, static_cast<int>(state.range(2))), {});
  std::vector<double> angles;
  for (int i = 0; i < side; ++i)
  {
    angles.push_back(-3.14159265358979 + 6.28318530717959 * i / (side - 1));
  }
  evaluator.SetColumns(angles);
  for (auto _ : state)
  {
    for (int row = 0; row < side; ++row)
    {
      evaluator.EvaluateRow(angles[static_cast<std::size_t>(row)], chart.arrays,
        static_cast<std::size_t>(row) * static_cast<std::size_t>(side));
    }
    benchmark::ClobberMemory();
  }
  Report(state, chart);
}

/// The limit: plain writes into the same arrays.
void WriteChart(benchmark::State& state)
{
  const int side = static_cast<int>(state.range(0));
  Chart chart(side, static_cast<int>(state.range(1)));
  int value = 0;
  for (auto _ : state)
  {
    ++value;
    std::fill(chart.predicted.begin(), chart.predicted.end(), value);
    std::fill(chart.probability.begin(), chart.probability.end(), static_cast<float>(value));
    std::fill(chart.color.begin(), chart.color.end(), static_cast<std::uint8_t>(value));
    for (std::vector<float>& head : chart.attention)
    {
      std::fill(head.begin(), head.end(), static_cast<float>(value));
    }
    benchmark::ClobberMemory();
  }
  Report(state, chart);
}

void Sizes(benchmark::internal::Benchmark* benchmark)
{
  benchmark->ArgNames({ "side", "heads", "classes" })->Unit(benchmark::kMillisecond);
  for (const int side : { 512, 2000 })
  {
    benchmark->Args({ side, 1, 2 })->Args({ side, 3, 5 })->Args({ side, 8, 50 });
  }
}

BENCHMARK(EvaluateChart)->Apply(Sizes);
BENCHMARK(WriteChart)->Apply(Sizes);

}
