// Speed and memory of llamas of 110, 1,240 and 3,210 million random weights (RandomLlama.h), stored
// in different types. The files, of up to 4.9 GB, are written to the system's folder for temporary
// files, and removed; ATLAS_MODEL_FOLDER names a folder where they stay for the next run. Counters:
//   tokens_per_s  tokens recorded, or generated, per second
//   cpu_tokens_per_s  the same by processor time of all threads
//   file_MiB      size of the file
//   peak_MiB      largest resident memory of the process, which contains the pages of the file
//   beside_MiB    the difference: what a model needs beside its file
//   working_MiB, recording_MiB  parts of it, estimated beforehand

#include "RandomGpt2.h"
#include "RandomLlama.h"
#include "Run/GenerateTokens.h"
#include "Run/RecordTransformer.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include <benchmark/benchmark.h>
#include <unistd.h>

namespace
{

using namespace atlas::benchmarks;

constexpr double MiB = 1024.0 * 1024;
constexpr std::array<atlas::DType, 9> Types = { atlas::DType::F32, atlas::DType::BF16,
  atlas::DType::F16, atlas::DType::Q8_0, atlas::DType::Q6_K, atlas::DType::Q4_K, atlas::DType::Q4_0,
  atlas::DType::Q5_K, atlas::DType::MXFP4 };

const LlamaSizes& SizesOf(std::int64_t millions)
{
  return millions == 110 ? SmallLlama : millions == 1240 ? OneBillion : ThreeBillion;
}

/// A file of the model, which is removed with this object unless it is to stay.
class ModelFile
{
public:
  ModelFile(atlas::DType dtype, std::int64_t millions)
  {
    const char* folder = std::getenv("ATLAS_MODEL_FOLDER");
    this->Stays = folder != nullptr;
    const std::string name = std::to_string(millions) + "M-" + std::string(atlas::Name(dtype));
    this->Path = this->Stays
                   ? std::filesystem::path(folder) / ("random-llama-" + name + ".gguf")
                   : std::filesystem::temp_directory_path() /
                       ("atlas-benchmark-" + std::to_string(getpid()) + "-" + name + ".gguf");
    if (!std::filesystem::exists(this->Path))
    {
      RandomLlama::Write(this->Path, dtype, SizesOf(millions));
    }
  }
  ~ModelFile()
  {
    if (!this->Stays)
    {
      std::filesystem::remove(this->Path);
    }
  }
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  const std::filesystem::path& GetPath() const { return this->Path; }

private:
  std::filesystem::path Path;
  bool Stays = false;
};

/// The file of a type and size, which stays until another one is asked for.
const std::filesystem::path& FileOf(std::size_t type, std::int64_t millions)
{
  static std::unique_ptr<ModelFile> file;
  static std::pair<std::size_t, std::int64_t> current;
  if (file == nullptr || current != std::pair(type, millions))
  {
    file.reset(); // before there is another
    file = std::make_unique<ModelFile>(Types.at(type), millions);
    current = { type, millions };
  }
  return file->GetPath();
}

double ProcessorSeconds()
{
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

atlas::TransformerInput Tokens(std::int64_t length, std::int64_t millions)
{
  atlas::TransformerInput input;
  input.tokens.resize(1);
  for (std::int64_t i = 0; i < length; ++i)
  {
    input.tokens.front().push_back(i * 7919 % SizesOf(millions).vocabulary);
  }
  return input;
}

/// Times run(model), which handles `tokens` tokens.
template<class Run>
void Measure(benchmark::State& state, std::int64_t tokens, const Run& run)
{
  const auto type = static_cast<std::size_t>(state.range(0));
  state.SetLabel(std::string(atlas::Name(Types.at(type))));
  const std::filesystem::path& path = FileOf(type, state.range(1));
  const atlas::Transformer model = atlas::Transformer::Read(path);
  ResetPeakMemory();
  run(model); // the file is read
  const double before = ProcessorSeconds();
  for (auto _ : state)
  {
    run(model);
  }
  const double processor = ProcessorSeconds() - before;
  const auto all = static_cast<double>(static_cast<std::int64_t>(state.iterations()) * tokens);
  const double size = static_cast<double>(std::filesystem::file_size(path)) / MiB;
  state.counters["tokens_per_s"] = benchmark::Counter(all, benchmark::Counter::kIsRate);
  state.counters["cpu_tokens_per_s"] = all / processor;
  state.counters["file_MiB"] = size;
  state.counters["peak_MiB"] = PeakMemory();
  state.counters["beside_MiB"] = PeakMemory() - size;
}

void Record(benchmark::State& state)
{
  const std::int64_t length = state.range(2);
  const atlas::TransformerInput input = Tokens(length, state.range(1));
  atlas::RecordOptions options;
  options.logits = true;
  Measure(state, length,
    [&](const atlas::Transformer& model)
    {
      const atlas::MemoryEstimate estimate = atlas::EstimateMemory(model, input, options);
      state.counters["recording_MiB"] = static_cast<double>(estimate.recording) / MiB;
      state.counters["working_MiB"] = static_cast<double>(estimate.working) / MiB;
      benchmark::DoNotOptimize(atlas::RecordTransformer(model, input, options));
    });
}

/// Generates tokens one by one after a prompt of one token.
void Generate(benchmark::State& state)
{
  const atlas::TransformerInput input = Tokens(1, state.range(1));
  atlas::GenerationOptions options;
  options.count = state.range(2);
  Measure(state, options.count, [&](const atlas::Transformer& model)
    { benchmark::DoNotOptimize(atlas::GenerateTokens(model, input, options)); });
}

}

BENCHMARK(Record)
  ->ArgNames({ "type", "millions", "length" })
  ->ArgsProduct({ { 0, 1, 2, 3, 4, 5 }, { 1240 }, { 16, 128 } })
  ->Args({ 5, 3210, 128 })
  ->UseRealTime()
  ->Unit(benchmark::kMillisecond);

BENCHMARK(Generate)
  ->ArgNames({ "type", "millions", "count" })
  ->ArgsProduct({ { 0, 1, 2, 3, 4, 5, 6, 7, 8 }, { 110 }, { 64 } })
  ->ArgsProduct({ { 0, 1, 2, 3, 4, 5 }, { 1240 }, { 4 } })
  ->Args({ 5, 3210, 4 })
  ->UseRealTime()
  ->Unit(benchmark::kMillisecond);
