// Speed of the evaluation over a chart with each instruction set, compared with its limits, which
// are measured in the same run: plain writes into the same arrays, and the machine's
// multiplications and additions in registers. The counters give the fraction of each limit that is
// reached, and of the limit that costs more time (of_limit): 1 is the optimum.

#include "AttentionOnly/FieldEvaluation.h"
#include "Numerics/InstructionSets.h"
#include "Parallel.h"
#include "Peak.h"
#include "SmoothModel.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace
{

/// The case that a chart is evaluated for.
struct Shape
{
  int side;
  int heads;
  int classes;

  explicit Shape(const benchmark::State& state)
    : side(static_cast<int>(state.range(0)))
    , heads(static_cast<int>(state.range(1)))
    , classes(static_cast<int>(state.range(2)))
  {
  }
  bool operator==(const Shape& other) const
  {
    return side == other.side && heads == other.heads && classes == other.classes;
  }

  /// Floating-point operations that the kernel does for a point (FieldKernel.cxx), where a
  /// multiplication with addition counts as two, and those on integers, selections and
  /// conversions not at all. An exponential has 17: two multiplications with addition and a
  /// subtraction to reduce its argument, five for its polynomial, and one that adds it to a sum. If
  /// there are few classes, that of the largest logit is left out.
  double OperationsPerPoint() const
  {
    constexpr int exponential = 17;
    constexpr int ofPoint = 2 + 1 + 8;                     // differences, 1 / sum, color
    constexpr int ofHead = 4 + (2 + exponential + 1) + 18; // score, attention, r
    constexpr int ofClass = 5;                             // logit
    constexpr int ofTerm = 2 + (2 + exponential);          // largest, its term of the sum
    const int terms = classes <= 8 ? classes - 1 : classes;
    return ofPoint + ofHead * heads + ofClass * classes + ofTerm * terms;
  }

  /// All rows of the chart, or as many as take about a second with slow instruction sets.
  std::size_t Rows() const
  {
    constexpr double most = 3e10;
    const double fit = most / OperationsPerPoint() / side;
    return static_cast<std::size_t>(std::min<double>(side, fit));
  }
};

/// Class, probability, color and one attention array per head, over the rows of a chart.
struct Chart
{
  explicit Chart(const Shape& forShape)
    : shape(forShape)
    , points(forShape.Rows() * static_cast<std::size_t>(forShape.side))
    , predicted(points)
    , probability(points)
    , color(3 * points)
    , attention(forShape.heads, std::vector<float>(points))
    , evaluator(SmoothModel(forShape.heads, forShape.classes), {})
  {
    arrays.predicted = predicted.data();
    arrays.probability = probability.data();
    arrays.classColor = color.data();
    for (std::vector<float>& head : attention)
    {
      arrays.attention.push_back(head.data());
    }
    for (int i = 0; i < shape.side; ++i)
    {
      angles.push_back(-3.14159265358979 + 6.28318530717959 * i / (shape.side - 1));
    }
  }

  std::size_t Bytes() const
  {
    return points * (sizeof(std::int32_t) + sizeof(float) + 3 + attention.size() * sizeof(float));
  }

  /// Evaluates a thread's share of the rows.
  void Evaluate(int thread, int threads) const
  {
    const std::size_t begin =
      shape.Rows() * static_cast<std::size_t>(thread) / static_cast<std::size_t>(threads);
    const std::size_t end =
      shape.Rows() * static_cast<std::size_t>(thread + 1) / static_cast<std::size_t>(threads);
    for (std::size_t row = begin; row < end; ++row)
    {
      evaluator.EvaluateRow(angles[row], arrays, row * angles.size());
    }
  }

  /// Fills one thread's part of the arrays.
  void Write(int thread, int threads, int value)
  {
    const auto fill = [&](auto& array)
    {
      const auto at = [&](int t)
      { return array.begin() + static_cast<long>(array.size()) * t / threads; };
      std::fill(at(thread), at(thread + 1), static_cast<decltype(+array[0])>(value));
    };
    fill(predicted);
    fill(probability);
    fill(color);
    for (std::vector<float>& head : attention)
    {
      fill(head);
    }
  }

  Shape shape;
  std::size_t points;
  std::vector<std::int32_t> predicted;
  std::vector<float> probability;
  std::vector<std::uint8_t> color;
  std::vector<std::vector<float>> attention;
  std::vector<double> angles;
  atlas::FieldArrays arrays;
  atlas::FieldEvaluator evaluator;
};

/// The chart of that shape: the threads of a benchmark, and its repetitions, share it.
std::unique_ptr<Chart> Shared;

void Share(const Shape& shape)
{
  if (!Shared || !(Shared->shape == shape))
  {
    Shared.reset(); // before the next one, for the memory
    Shared = std::make_unique<Chart>(shape);
  }
}

/// The first thread reports for all of them.
void Report(benchmark::State& state, double secondsOfWriting, double operations)
{
  if (state.thread_index() != 0)
  {
    return;
  }
  const auto rate = [&](double perIteration)
  {
    return benchmark::Counter(
      perIteration * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
  };
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(Shared->points));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(Shared->Bytes()));
  state.counters["rows"] = static_cast<double>(Shared->shape.Rows());
  if (operations > 0)
  {
    const double secondsOfPeak = operations / atlas::benchmarks::PeakOperations(state.threads());
    state.counters["of_write"] = rate(secondsOfWriting);
    state.counters["of_peak"] = rate(secondsOfPeak);
    state.counters["of_limit"] = rate(std::max(secondsOfWriting, secondsOfPeak));
  }
}

/// Arguments: side of the chart, heads, classes.
void EvaluateChart(benchmark::State& state, const std::string& target)
{
  double secondsOfWriting = 0;
  if (state.thread_index() == 0)
  {
    atlas::UseTarget(target);
    Share(Shape(state));
    Shared->evaluator.SetColumns(Shared->angles);
    secondsOfWriting = atlas::benchmarks::ShortestTime(
      5, state.threads(), [&](int thread) { Shared->Write(thread, state.threads(), 1); });
  }
  for (auto _ : state)
  {
    Shared->Evaluate(state.thread_index(), state.threads());
    benchmark::ClobberMemory();
  }
  Report(state, secondsOfWriting,
    Shared->shape.OperationsPerPoint() * static_cast<double>(Shared->points));
}

/// The same points one by one.
void EvaluatePoints(benchmark::State& state, const std::string& target)
{
  static std::vector<double> theta1;
  static std::vector<double> theta2;
  if (state.thread_index() == 0)
  {
    atlas::UseTarget(target);
    Share(Shape(state));
    theta1.resize(Shared->points);
    theta2.resize(Shared->points);
    for (std::size_t i = 0; i < Shared->points; ++i)
    {
      theta1[i] = Shared->angles[i % Shared->angles.size()];
      theta2[i] = Shared->angles[i / Shared->angles.size()];
    }
  }
  for (auto _ : state)
  {
    const std::size_t thread = state.thread_index();
    const std::size_t threads = state.threads();
    Shared->evaluator.EvaluatePoints(theta1.data(), theta2.data(),
      Shared->points * thread / threads, Shared->points * (thread + 1) / threads, Shared->arrays);
    benchmark::ClobberMemory();
  }
  Report(state, 0, 0);
}

/// The limit of memory: plain writes into the same arrays.
void WriteChart(benchmark::State& state)
{
  if (state.thread_index() == 0)
  {
    Share(Shape(state));
  }
  int value = 0;
  for (auto _ : state)
  {
    Shared->Write(state.thread_index(), state.threads(), ++value);
    benchmark::ClobberMemory();
  }
  Report(state, 0, 0);
}

/// The limit of arithmetic.
void Peak(benchmark::State& state, const std::string& target)
{
  atlas::UseTarget(target);
  for (auto _ : state)
  {
    benchmark::DoNotOptimize(atlas::benchmarks::PeakOperations(static_cast<int>(state.range(0))));
  }
  state.counters["operations_per_second"] =
    atlas::benchmarks::PeakOperations(static_cast<int>(state.range(0)));
}

void Configure(benchmark::internal::Benchmark* benchmark)
{
  benchmark->ArgNames({ "side", "heads", "classes" })
    ->Unit(benchmark::kMillisecond)
    ->MinTime(0.3)
    ->UseRealTime()
    ->ThreadRange(1, 2);
}

void AllShapes(benchmark::internal::Benchmark* benchmark)
{
  for (const int side : { 512, 2000, 4096 })
  {
    benchmark->Args({ side, 1, 2 })
      ->Args({ side, 3, 5 })
      ->Args({ side, 8, 50 })
      ->Args({ side, 16, 500 });
  }
  Configure(benchmark);
}

[[maybe_unused]] const bool Registered = []
{
  for (const std::string& target : atlas::SupportedTargets())
  {
    benchmark::RegisterBenchmark(("Peak/" + target).c_str(), Peak, target)
      ->ArgName("threads")
      ->Arg(1)
      ->Arg(2)
      ->Iterations(1);
    benchmark::RegisterBenchmark(("EvaluateChart/" + target).c_str(), EvaluateChart, target)
      ->Apply(AllShapes);
    benchmark::RegisterBenchmark(("EvaluatePoints/" + target).c_str(), EvaluatePoints, target)
      ->Args({ 2000, 3, 5 })
      ->Apply(Configure);
  }
  benchmark::RegisterBenchmark("WriteChart", WriteChart)->Apply(AllShapes);
  return true;
}();

}
