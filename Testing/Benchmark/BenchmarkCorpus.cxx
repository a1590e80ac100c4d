// Statistics of heads over a text, beside recording the same batches without statistics. Both are
// timed in turn in each iteration, so that they meet the same machine. Counters:
//   tokens_per_s          tokens measured per second
//   recorder_tokens_per_s tokens recorded per second, queries, keys and values
//   share_of_recorder     the first by the second
//   statistics_MiB        the estimate of EstimateCorpusMemory
//   peak_MiB              largest resident memory of the process so far, with weights

#include "Corpus/CorpusRun.h"
#include "RandomGpt2.h"
#include "Run/RecordTransformer.h"
#include "TokenIds.h"

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include <benchmark/benchmark.h>
#include <sys/resource.h>

namespace
{

using namespace atlas::benchmarks;
using Clock = std::chrono::steady_clock;

constexpr double MiB = 1024.0 * 1024;

double Seconds(Clock::time_point begin, Clock::time_point end)
{
  return std::chrono::duration<double>(end - begin).count();
}

double PeakBytes()
{
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

/// A model of the size of GPT-2 small with random weights: 4 batches of 1,024 tokens in windows of
/// `window`.
void Gpt2(benchmark::State& state)
{
  const std::int64_t window = state.range(0);
  const bool agreement = state.range(1) != 0;
  static const auto opened = []
  {
    atlas::ModelInMemory model;
    model.config = atlas::ParseTransformerConfig(Config, "config.json");
    model.weights = std::make_shared<const atlas::Tensors>(Weights());
    model.files = std::make_shared<const std::map<std::string, std::string>>();
    return atlas::OpenTransformer::Keep("training:benchmark-corpus", model);
  }();
  const std::string file = WriteIds(4 * 1024 / window, window, Vocabulary);
  atlas::CorpusOptions options;
  options.window = window;
  options.agreement = agreement;
  atlas::CorpusRunOptions run;
  run.files = { file };
  double measuring = 0;
  double recording = 0;
  for (auto _ : state)
  {
    atlas::CorpusStatistics statistics = atlas::BeginCorpus(*opened, "", options);
    const auto begin = Clock::now();
    atlas::MeasureCorpus(*opened, run, statistics);
    const auto middle = Clock::now();
    atlas::CorpusText text(*opened, run.files, options);
    for (int batch = 0; batch < 4; ++batch)
    {
      atlas::TransformerInput input;
      for (std::int64_t w = 0; w < 1024 / window; ++w)
      {
        input.tokens.push_back(text.Next()->tokens);
      }
      benchmark::DoNotOptimize(atlas::RecordTransformer(opened->GetModel(), input, {}));
    }
    const auto end = Clock::now();
    measuring += Seconds(begin, middle);
    recording += Seconds(middle, end);
    state.SetIterationTime(Seconds(begin, middle));
  }
  std::filesystem::remove(file);
  const double tokens = 4096. * static_cast<double>(state.iterations());
  state.counters["tokens_per_s"] = tokens / measuring;
  state.counters["recorder_tokens_per_s"] = tokens / recording;
  state.counters["share_of_recorder"] = recording / measuring;
  state.counters["statistics_MiB"] =
    static_cast<double>(atlas::EstimateCorpusMemory(*opened, options, Vocabulary).Total()) / MiB;
  state.counters["peak_MiB"] = PeakBytes() / MiB;
}
BENCHMARK(Gpt2)
  ->ArgNames({ "window", "agreement" })
  ->Args({ 128, 1 })
  ->Args({ 256, 1 })
  ->Args({ 256, 0 })
  ->Args({ 1024, 0 })
  ->Iterations(2)
  ->UseManualTime()
  ->Unit(benchmark::kSecond);

/// The shipped model language-2 on this many tokens.
void Language2(benchmark::State& state)
{
  const std::int64_t tokens = state.range(0);
  const auto opened =
    atlas::OpenTransformer::Open(std::filesystem::path(ATLAS_DATA_DIR) / "models/language-2", "");
  const std::string file = WriteIds(tokens / 128, 128, 1000);
  atlas::CorpusRunOptions run;
  run.files = { file };
  for (auto _ : state)
  {
    atlas::CorpusStatistics statistics = atlas::BeginCorpus(*opened, "", {});
    atlas::MeasureCorpus(*opened, run, statistics);
    benchmark::DoNotOptimize(statistics.tokens);
  }
  std::filesystem::remove(file);
  state.counters["tokens_per_s"] = benchmark::Counter(
    static_cast<double>(tokens * state.iterations()), benchmark::Counter::kIsRate);
  state.counters["peak_MiB"] = PeakBytes() / MiB;
}
BENCHMARK(Language2)
  ->RangeMultiplier(10)
  ->Range(10'000, 1'000'000)
  ->Iterations(1)
  ->UseRealTime()
  ->Unit(benchmark::kSecond);

}
