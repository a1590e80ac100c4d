// Speed of reading and writing recordings of 12 layers and 12 heads of dimension 64 (GPT-2's size):
// TransformerLens' layout, which is copied once, and our own, which is mapped and only checked for
// numbers that are not finite. The counter `peak` is the largest memory of the process so far, in
// MiB, of which the file's mapped pages are a part.

#include "RecordingFile.h"
#include "Safetensors.h"

#include <random>

#include <sys/resource.h>
#include <unistd.h>

#include <benchmark/benchmark.h>

namespace
{

constexpr std::int64_t Layers = 12;
constexpr std::int64_t Heads = 12;
constexpr std::int64_t Width = 64;

/// A file of the process's own, removed at the end of its scope.
class TemporaryFile
{
public:
  explicit TemporaryFile(const std::string& name)
    : Path(std::filesystem::temp_directory_path() /
           (name + "-" + std::to_string(::getpid()) + ".safetensors"))
  {
  }
  ~TemporaryFile()
  {
    std::error_code ignored;
    std::filesystem::remove(this->Path, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::filesystem::path Path;
};

void WriteCache(const std::filesystem::path& path, std::int64_t tokens)
{
  std::vector<float> values(tokens * Heads * Width);
  std::mt19937 random(1);
  for (float& value : values)
  {
    value = static_cast<float>(random() % 1024) / 512 - 1;
  }
  // All layers share the values in memory, but not in the file.
  const atlas::TensorView view = { atlas::DType::F32, { 1, tokens, Heads, Width },
    reinterpret_cast<const std::byte*>(values.data()) };
  atlas::TensorViews views;
  for (std::int64_t l = 0; l < Layers; ++l)
  {
    const std::string layer = "blocks." + std::to_string(l) + ".attn.hook_";
    views.emplace(layer + "q", view);
    views.emplace(layer + "k", view);
  }
  atlas::WriteSafetensorViews(path, views, {});
}

double PeakMebibytes()
{
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void Read(benchmark::State& state, const std::filesystem::path& path)
{
  for (auto _ : state)
  {
    benchmark::DoNotOptimize(atlas::ReadRecording(path).recording.layers.data());
  }
  state.SetBytesProcessed(
    state.iterations() * static_cast<std::int64_t>(std::filesystem::file_size(path)));
  state.counters["peak"] = PeakMebibytes();
}

void ReadNative(benchmark::State& state)
{
  const TemporaryFile native("atlas-native");
  {
    const TemporaryFile cache("atlas-cache");
    WriteCache(cache.Path, state.range(0));
    atlas::WriteRecording(native.Path, atlas::ReadRecording(cache.Path).recording);
  }
  Read(state, native.Path);
}

void ReadTransformerLens(benchmark::State& state)
{
  const TemporaryFile cache("atlas-cache");
  WriteCache(cache.Path, state.range(0));
  Read(state, cache.Path);
}

void WriteNative(benchmark::State& state)
{
  const TemporaryFile cache("atlas-cache");
  const TemporaryFile native("atlas-native");
  WriteCache(cache.Path, state.range(0));
  const atlas::Recording recording = atlas::ReadRecording(cache.Path).recording;
  for (auto _ : state)
  {
    atlas::WriteRecording(native.Path, recording);
  }
  state.SetBytesProcessed(
    state.iterations() * static_cast<std::int64_t>(std::filesystem::file_size(native.Path)));
}

}

BENCHMARK(ReadTransformerLens)
  ->ArgName("tokens")
  ->Arg(512)
  ->Arg(4096)
  ->Unit(benchmark::kMillisecond);
BENCHMARK(ReadNative)->ArgName("tokens")->Arg(512)->Arg(4096)->Unit(benchmark::kMillisecond);
BENCHMARK(WriteNative)->ArgName("tokens")->Arg(4096)->Unit(benchmark::kMillisecond);
