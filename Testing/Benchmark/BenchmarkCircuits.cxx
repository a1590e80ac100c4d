// Circuits of a transformer of the size of GPT-2 small with random weights, over 50257 tokens: the
// 50 best skip-trigrams of a head, the circuits of a head on 16 tokens, and bigrams. The limit of
// the first is the machine's multiplications and additions in registers. Counters:
//   GFlop          of the products that were computed: the factors of both circuits and their
//                  entries that bounds did not rule out
//   GFlop_per_s    of them
//   share_of_peak  of the machine (Peak.h)
//   computed       share of the 2 x 50257^2 entries of both circuits that was computed
//   peak_MiB       largest resident memory of the process; before_MiB: before the search, the model
// spread: the standard deviation of the logarithm of the lengths of the embeddings, in percent. It
// is 0 for random weights, for which bounds of lengths rule out least; trained models have more.

#include "Bigrams.h"
#include "HeadCircuit.h"
#include "Peak.h"
#include "RandomGpt2.h"
#include "SkipTrigrams.h"

#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include <benchmark/benchmark.h>

namespace
{

using namespace atlas::benchmarks;

constexpr int ThreadCount = 2;

/// The model with embeddings of different lengths.
class SpreadModel
{
public:
  explicit SpreadModel(double spread)
    : Embedding(Weights().at("wte.weight"))
  {
    auto* values = reinterpret_cast<float*>(this->Embedding.bytes.data());
    std::mt19937 generator(3);
    std::normal_distribution<double> normal(0, spread);
    for (std::int64_t token = 0; token < Vocabulary; ++token)
    {
      const auto factor = static_cast<float>(std::exp(normal(generator)));
      std::transform(
        values, values + ModelDimension, values, [factor](float value) { return factor * value; });
      values += ModelDimension;
    }
    atlas::TensorViews views;
    for (const auto& [name, tensor] : Weights())
    {
      views.emplace(name, name == "wte.weight" ? this->Embedding.View() : tensor.View());
    }
    this->Model = std::make_unique<atlas::Transformer>(
      atlas::ParseTransformerConfig(Config, "config"), atlas::WeightFiles(views, "random"));
  }

  const atlas::Transformer& Get() const { return *this->Model; }

private:
  atlas::Tensor Embedding;
  std::unique_ptr<atlas::Transformer> Model;
};

void SkipTrigrams(benchmark::State& state)
{
  const SpreadModel model(static_cast<double>(state.range(0)) / 100);
  atlas::SkipTrigramOptions options;
  options.layer = 5;
  options.head = 3;
  options.threads = ThreadCount;
  double products = 0;
  ResetPeakMemory();
  const double before = PeakMemory();
  for (auto _ : state)
  {
    products = atlas::FindSkipTrigrams(model.Get(), options).products;
  }
  state.counters["peak_MiB"] = PeakMemory();
  state.counters["before_MiB"] = before;
  const double entries = static_cast<double>(Vocabulary) * static_cast<double>(Vocabulary);
  state.counters["computed"] = products / (2 * entries);
  const double factors = 4.0 * static_cast<double>(Vocabulary * ModelDimension * HeadDimension);
  const double operations = 2 * (static_cast<double>(HeadDimension) * products + factors);
  state.counters["GFlop"] = operations / 1e9;
  state.counters["GFlop_per_s"] =
    benchmark::Counter(operations / 1e9, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["share_of_peak"] = benchmark::Counter(
    operations / PeakOperations(ThreadCount), benchmark::Counter::kIsIterationInvariantRate);
}

void HeadCircuit(benchmark::State& state)
{
  atlas::HeadCircuitOptions options;
  options.circuit = static_cast<atlas::CircuitKind>(state.range(0));
  options.tokens.resize(16);
  std::iota(options.tokens.begin(), options.tokens.end(), 1000);
  options.largest.threads = ThreadCount;
  for (auto _ : state)
  {
    benchmark::DoNotOptimize(atlas::EvaluateHeadCircuit(Model(), options));
  }
}

void Bigrams(benchmark::State& state)
{
  atlas::LargestProductOptions options;
  options.threads = ThreadCount;
  std::vector<std::int32_t> tokens(16);
  std::iota(tokens.begin(), tokens.end(), 1000);
  for (auto _ : state)
  {
    benchmark::DoNotOptimize(atlas::FindBigrams(Model(), true, tokens, options));
  }
}

}

BENCHMARK(SkipTrigrams)
  ->ArgName("spread")
  ->Arg(0)
  ->Arg(30)
  ->MeasureProcessCPUTime()
  ->UseRealTime()
  ->Unit(benchmark::kMillisecond);
BENCHMARK(HeadCircuit)
  ->ArgName("circuit")
  ->DenseRange(0, 1)
  ->UseRealTime()
  ->Unit(benchmark::kMillisecond);
BENCHMARK(Bigrams)->UseRealTime()->Unit(benchmark::kMillisecond);
