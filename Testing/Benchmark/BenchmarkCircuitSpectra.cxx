// Spectra and composition of all 144 heads of a transformer of the size of GPT-2 small with random
// weights, with the processing of weights: limits are 2 s for the composition and 30 s for the
// spectra of the full OV circuits, of 50257 tokens. Counters:
//   GFlop          of the large matrix products
//   GFlop_per_s    of them, over the whole time
//   share_of_peak  of the machine in single precision (Peak.h); of double precision half of it is
//                  the most
//   peak_MiB       largest resident memory of the process, of which weights_MiB are the model

#include "HeadComposition.h"
#include "HeadSpectra.h"
#include "Peak.h"
#include "QueryKeyContrast.h"
#include "RandomGpt2.h"
#include "RecordTransformer.h"
#include "VirtualWeights.h"

#include <benchmark/benchmark.h>

namespace
{

using namespace atlas::benchmarks;

constexpr double MiB = 1024.0 * 1024;
constexpr int ThreadCount = 2;
constexpr double Square = static_cast<double>(ModelDimension * ModelDimension);

void Count(benchmark::State& state, double operations)
{
  state.counters["peak_MiB"] = PeakMemory();
  state.counters["weights_MiB"] = WeightBytes() / MiB;
  if (operations > 0)
  {
    state.counters["GFlop"] = operations / 1e9;
    state.counters["GFlop_per_s"] =
      benchmark::Counter(operations / 1e9, benchmark::Counter::kIsIterationInvariantRate);
    state.counters["share_of_peak"] = benchmark::Counter(
      operations / PeakOperations(ThreadCount), benchmark::Counter::kIsIterationInvariantRate);
  }
}

/// One kind of composition: products of all pairs of layers.
void Composition(benchmark::State& state)
{
  atlas::HeadCompositionOptions options;
  options.kind = static_cast<atlas::CompositionKind>(state.range(0));
  options.threads = ThreadCount;
  Model();
  ResetPeakMemory();
  for (auto _ : state)
  {
    benchmark::DoNotOptimize(atlas::FindHeadComposition(Model(), options));
  }
  Count(state, LayerCount * (LayerCount - 1) * Square * ModelDimension);
}

void Spectra(benchmark::State& state)
{
  atlas::HeadSpectraOptions options;
  options.circuit = static_cast<atlas::SpectrumCircuit>(state.range(0));
  options.overVocabulary = state.range(1) != 0;
  options.threads = ThreadCount;
  Model();
  ResetPeakMemory();
  for (auto _ : state)
  {
    benchmark::DoNotOptimize(atlas::FindHeadSpectra(Model(), options));
  }
  // E^T E, and of OV U U^T, both symmetric, and U E.
  const bool ofTwo = options.circuit == atlas::SpectrumCircuit::OutputValue;
  Count(state, options.overVocabulary ? (ofTwo ? 4. : 1.) * Square * Vocabulary : 0);
}

/// One pair, as a slider asks for it.
void Virtual(benchmark::State& state)
{
  atlas::VirtualWeightsOptions options;
  options.from = { 2, 3 };
  options.to = { 7, 5 };
  options.space = static_cast<atlas::VirtualSpace>(state.range(0));
  options.threads = ThreadCount;
  Model();
  ResetPeakMemory();
  for (auto _ : state)
  {
    benchmark::DoNotOptimize(atlas::FindVirtualWeights(Model(), options));
  }
  Count(state, 0);
}

/// Equal tokens among 1024 of one sequence, in all heads.
void Contrast(benchmark::State& state)
{
  atlas::TransformerInput input = Input(1, 1024);
  for (std::int64_t& id : input.tokens[0])
  {
    id %= 200;
  }
  const atlas::Recording recording = atlas::RecordTransformer(Model(), input, {});
  atlas::QueryKeyContrastOptions options;
  options.group = recording.tokens.id;
  options.threads = ThreadCount;
  ResetPeakMemory();
  for (auto _ : state)
  {
    benchmark::DoNotOptimize(atlas::FindQueryKeyContrast(recording, options));
  }
  Count(state, 0);
}

BENCHMARK(Composition)->ArgName("kind")->DenseRange(0, 2)->Unit(benchmark::kSecond)->UseRealTime();
BENCHMARK(Spectra)
  ->ArgNames({ "qk", "full" })
  ->ArgsProduct({ { 0, 1 }, { 0, 1 } })
  ->Unit(benchmark::kSecond)
  ->UseRealTime();
BENCHMARK(Virtual)->ArgName("space")->DenseRange(0, 2)->Unit(benchmark::kSecond)->UseRealTime();
BENCHMARK(Contrast)->Unit(benchmark::kSecond)->UseRealTime();

}
