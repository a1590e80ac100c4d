// Quantized weights: how fast they are widened, how fast a transformer with them runs beside the
// same one in BF16, and how much memory a model of 1.1 billion weights takes. Counters:
//   weights_per_s    numbers that are widened per second
//   read_per_s       bytes of weights that are read per second
//   written_per_s    bytes of floats that are written per second
//   tokens_per_s     tokens recorded per second
//   peak_MiB         largest resident memory of the process while recording, mapped weights and all
//   weights_MiB      of these, the weights in the file
//   beyond_MiB       the difference

#include "Dequantize.h"
#include "GgufModel.h"
#include "RandomGpt2.h"
#include "RecordTransformer.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace
{

using namespace atlas::benchmarks;
using atlas::DType;
using atlas::Shape;

constexpr double MiB = 1024.0 * 1024;

/// Random bytes; every half among them is made a small one.
std::vector<std::byte> RandomBytes(DType dtype, std::size_t count)
{
  std::mt19937 generator(1);
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i + 1 < count; i += 2)
  {
    const auto number = static_cast<std::uint32_t>(generator());
    bytes[i] = static_cast<std::byte>(number & 0xFFU);
    bytes[i + 1] = static_cast<std::byte>(number >> 8U & 0xFFU);
  }
  // BF16 from -0.03 to 0.03; halves of blocks: 2^-13.
  const auto set = [&](std::size_t place, std::uint16_t bits)
  { std::memcpy(bytes.data() + place, &bits, sizeof(bits)); };
  for (std::size_t i = 0; i + 1 < count && dtype == DType::BF16; i += 2)
  {
    set(i, static_cast<std::uint16_t>((generator() & 0x807FU) | 0x3C80U));
  }
  const std::size_t size = atlas::BlockBytes(dtype);
  for (std::size_t block = 0; block + size <= count && atlas::IsBlock(dtype); block += size)
  {
    if (dtype == DType::Q6_K)
    {
      set(block + size - 2, 0x0200);
      continue;
    }
    set(block, 0x0800);
    set(block + 2, dtype == DType::Q4_K ? 0x0800 : 0x0101);
  }
  return bytes;
}

void Widen(benchmark::State& state, DType dtype)
{
  constexpr std::int64_t rows = 512;
  constexpr std::int64_t columns = 2048;
  atlas::TensorView view{ dtype, { rows, columns }, nullptr };
  const std::vector<std::byte> bytes = RandomBytes(dtype, view.Bytes());
  view.data = bytes.data();
  std::vector<float> values(view.Count());
  for (auto _ : state)
  {
    view.ToFloat(0, values.size(), values.data());
    benchmark::ClobberMemory();
  }
  const auto runs = static_cast<double>(state.iterations());
  using benchmark::Counter;
  state.counters["weights_per_s"] =
    Counter(runs * static_cast<double>(values.size()), Counter::kIsRate);
  state.counters["read_per_s"] =
    Counter(runs * static_cast<double>(view.Bytes()), Counter::kIsRate);
  state.counters["written_per_s"] =
    Counter(runs * static_cast<double>(values.size() * sizeof(float)), Counter::kIsRate);
}

/// The sizes of a llama.
struct Sizes
{
  std::int64_t layers;
  std::int64_t heads;
  std::int64_t keyHeads;
  std::int64_t dimension;
  std::int64_t hidden;
  std::int64_t vocabulary;
};
constexpr Sizes Small = { 12, 12, 12, 768, 2048, 32000 };
constexpr Sizes Billion = { 22, 32, 4, 2048, 5632, 32000 }; ///< as TinyLlama: 1.1 10^9 weights

/// The tensors of a llama with random weights of a type, which all lie in the same memory.
class RandomLlama
{
public:
  RandomLlama(const Sizes& sizes, DType dtype)
    : Size(sizes)
    , Type(dtype)
  {
    const std::int64_t d = sizes.dimension;
    const std::int64_t keys = d / sizes.heads * sizes.keyHeads;
    this->Add("model.embed_tokens", { sizes.vocabulary, d });
    this->Add("lm_head", { sizes.vocabulary, d });
    this->AddNorm("model.norm");
    for (std::int64_t l = 0; l < sizes.layers; ++l)
    {
      const std::string layer = "model.layers." + std::to_string(l) + ".";
      this->AddNorm(layer + "input_layernorm");
      this->AddNorm(layer + "post_attention_layernorm");
      this->Add(layer + "self_attn.q_proj", { d, d });
      this->Add(layer + "self_attn.k_proj", { keys, d });
      this->Add(layer + "self_attn.v_proj", { keys, d });
      this->Add(layer + "self_attn.o_proj", { d, d });
      this->Add(layer + "mlp.gate_proj", { sizes.hidden, d });
      this->Add(layer + "mlp.up_proj", { sizes.hidden, d });
      this->Add(layer + "mlp.down_proj", { d, sizes.hidden });
    }
  }

  std::string Config() const
  {
    const auto setting = [](const char* name, std::int64_t value)
    { return ", \"" + std::string(name) + "\": " + std::to_string(value); };
    return R"({"model_type": "llama")" + setting("num_hidden_layers", this->Size.layers) +
           setting("num_attention_heads", this->Size.heads) +
           setting("num_key_value_heads", this->Size.keyHeads) +
           setting("hidden_size", this->Size.dimension) +
           setting("intermediate_size", this->Size.hidden) +
           setting("vocab_size", this->Size.vocabulary) + "}";
  }

  std::uint64_t Bytes() const { return this->End; }

  /// The model, whose bytes are those of a file or of memory.
  atlas::TensorViews Views(const std::byte* data) const
  {
    atlas::TensorViews views = this->Tensors;
    for (auto& [name, view] : views)
    {
      view.data = data + this->Offsets.at(name);
    }
    return views;
  }

  /// All bytes in the order of their offsets, in parts: `write(bytes, count)`.
  template<class Write>
  void ForBytes(const Write& write) const
  {
    constexpr std::size_t part = std::size_t{ 17 } * 18 * 210 * 64; // whole blocks of every type
    const std::vector<std::byte> weights = RandomBytes(this->Type, part);
    const std::vector<float> gains(this->Size.dimension, 1);
    std::map<std::uint64_t, const atlas::TensorView*> order;
    for (const auto& [name, view] : this->Tensors)
    {
      order.emplace(this->Offsets.at(name), &view);
    }
    for (const auto& [offset, view] : order)
    {
      const bool isGain = view->dtype == DType::F32;
      const auto* bytes =
        isGain ? reinterpret_cast<const std::byte*>(gains.data()) : weights.data();
      for (std::uint64_t left = view->Bytes(); left > 0;)
      {
        const std::uint64_t count = std::min<std::uint64_t>(left, part);
        write(bytes, count);
        left -= count;
      }
    }
  }

private:
  Sizes Size;
  DType Type;
  atlas::TensorViews Tensors;
  std::map<std::string, std::uint64_t> Offsets;
  std::uint64_t End = 0;

  void Add(const std::string& name, Shape shape, std::optional<DType> dtype = {})
  {
    const atlas::TensorView view{ dtype.value_or(this->Type), std::move(shape), nullptr };
    this->Offsets[name + ".weight"] = this->End;
    this->End += view.Bytes();
    this->Tensors.emplace(name + ".weight", view);
  }
  void AddNorm(const std::string& name) { this->Add(name, { this->Size.dimension }, DType::F32); }
};

atlas::TransformerInput LlamaInput(std::int64_t length)
{
  std::mt19937 generator(2);
  atlas::TransformerInput input;
  input.tokens.resize(1);
  for (std::int64_t i = 0; i < length; ++i)
  {
    input.tokens[0].push_back(static_cast<std::int64_t>(generator() % Small.vocabulary));
  }
  return input;
}

/// A prefill of 512 tokens of a model of the size of GPT-2 small, recorded.
void Prefill(benchmark::State& state, DType dtype)
{
  constexpr std::int64_t length = 512;
  const RandomLlama random(Small, dtype);
  std::vector<std::byte> bytes;
  bytes.reserve(random.Bytes());
  random.ForBytes([&](const std::byte* data, std::uint64_t count)
    { bytes.insert(bytes.end(), data, data + count); });
  const atlas::Transformer model(atlas::ParseTransformerConfig(random.Config(), "config"),
    atlas::WeightFiles(random.Views(bytes.data()), "random"));
  const atlas::TransformerInput input = LlamaInput(length);
  for (auto _ : state)
  {
    benchmark::DoNotOptimize(atlas::RecordTransformer(model, input, {}));
  }
  state.counters["tokens_per_s"] = benchmark::Counter(
    static_cast<double>(state.iterations()) * length, benchmark::Counter::kIsRate);
}

/// A model of 1.1 billion weights in a mapped file, 512 tokens, recorded.
void Memory(benchmark::State& state, DType dtype)
{
  constexpr std::int64_t length = 512;
  const RandomLlama random(Billion, dtype);
  const std::filesystem::path path =
    std::filesystem::temp_directory_path() / "attention-atlas-benchmark-weights";
  {
    std::ofstream stream(path, std::ios::binary);
    random.ForBytes([&](const std::byte* data, std::uint64_t count)
      { stream.write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(count)); });
  }
  {
    const atlas::MappedFile file(path);
    const atlas::Transformer model(atlas::ParseTransformerConfig(random.Config(), "config"),
      atlas::WeightFiles(random.Views(file.Data()), path.string()));
    const atlas::TransformerInput input = LlamaInput(length);
    ResetPeakMemory();
    for (auto _ : state)
    {
      benchmark::DoNotOptimize(atlas::RecordTransformer(model, input, {}));
    }
    state.counters["tokens_per_s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * length, benchmark::Counter::kIsRate);
    state.counters["peak_MiB"] = PeakMemory();
    state.counters["weights_MiB"] = static_cast<double>(random.Bytes()) / MiB;
    state.counters["beyond_MiB"] = PeakMemory() - static_cast<double>(random.Bytes()) / MiB;
  }
  std::filesystem::remove(path);
}

}

BENCHMARK_CAPTURE(Widen, BF16, DType::BF16);
BENCHMARK_CAPTURE(Widen, F16, DType::F16);
BENCHMARK_CAPTURE(Widen, Q8_0, DType::Q8_0);
BENCHMARK_CAPTURE(Widen, Q4_0, DType::Q4_0);
BENCHMARK_CAPTURE(Widen, Q4_1, DType::Q4_1);
BENCHMARK_CAPTURE(Widen, Q5_0, DType::Q5_0);
BENCHMARK_CAPTURE(Widen, Q5_1, DType::Q5_1);
BENCHMARK_CAPTURE(Widen, Q4_K, DType::Q4_K);
BENCHMARK_CAPTURE(Widen, Q6_K, DType::Q6_K);
BENCHMARK_CAPTURE(Prefill, BF16, DType::BF16)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(Prefill, Q8_0, DType::Q8_0)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(Prefill, Q4_K, DType::Q4_K)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(Memory, BF16, DType::BF16)
  ->Iterations(1)
  ->Unit(benchmark::kMillisecond)
  ->UseRealTime();
BENCHMARK_CAPTURE(Memory, Q8_0, DType::Q8_0)
  ->Iterations(1)
  ->Unit(benchmark::kMillisecond)
  ->UseRealTime();
