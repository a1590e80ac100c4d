#pragma once

#include "Files/Dequantize.h"
#include "Files/Tensor.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>

/// GGUF files of llamas with random weights.
namespace atlas::benchmarks
{

/// The sizes of a llama.
struct LlamaSizes
{
  std::int64_t layers;
  std::int64_t dimension;
  std::int64_t heads;
  std::int64_t keyHeads;
  std::int64_t hidden;
  std::int64_t vocabulary;
};

/// 110 million weights: those of stories110M (Karpathy, llama2.c).
inline constexpr LlamaSizes SmallLlama = { 12, 768, 12, 12, 2048, 32000 };

/// 1.24 billion weights: those of Llama 3.2 1B.
inline constexpr LlamaSizes OneBillion = { 16, 2048, 32, 8, 8192, 128256 };

/// 3.21 billion weights: those of Llama 3.2 3B.
inline constexpr LlamaSizes ThreeBillion = { 28, 3072, 24, 8, 8192, 128256 };

class RandomLlama
{
public:
  /// Writes a file whose matrices are of a type: F32, F16, BF16, Q4_0, Q8_0, Q4_K, Q5_K,
  /// Q6_K or MXFP4.
  static void Write(const std::filesystem::path& path, DType dtype, const LlamaSizes& sizes)
  {
    RandomLlama(path, dtype, sizes).Write();
  }

private:
  struct Entry
  {
    std::string name;
    Shape shape;
    DType dtype;

    TensorView View() const { return { this->dtype, this->shape, nullptr }; }
  };

  std::ofstream File;
  LlamaSizes Sizes;
  std::vector<Entry> Entries;
  std::uint64_t State = 0x9E3779B97F4A7C15U;

  RandomLlama(const std::filesystem::path& path, DType dtype, const LlamaSizes& sizes)
    : File(path, std::ios::binary)
    , Sizes(sizes)
  {
    const std::int64_t d = sizes.dimension;
    const std::int64_t keys = d / sizes.heads * sizes.keyHeads;
    const std::int64_t hidden = sizes.hidden;
    this->Entries.push_back({ "token_embd.weight", { sizes.vocabulary, d }, dtype });
    for (std::int64_t l = 0; l < sizes.layers; ++l)
    {
      const std::string layer = "blk." + std::to_string(l) + ".";
      this->Entries.push_back({ layer + "attn_norm.weight", { d }, DType::F32 });
      this->Entries.push_back({ layer + "attn_q.weight", { d, d }, dtype });
      this->Entries.push_back({ layer + "attn_k.weight", { keys, d }, dtype });
      this->Entries.push_back({ layer + "attn_v.weight", { keys, d }, dtype });
      this->Entries.push_back({ layer + "attn_output.weight", { d, d }, dtype });
      this->Entries.push_back({ layer + "ffn_norm.weight", { d }, DType::F32 });
      this->Entries.push_back({ layer + "ffn_gate.weight", { hidden, d }, dtype });
      this->Entries.push_back({ layer + "ffn_up.weight", { hidden, d }, dtype });
      this->Entries.push_back({ layer + "ffn_down.weight", { d, hidden }, dtype });
    }
    this->Entries.push_back({ "output_norm.weight", { d }, DType::F32 });
  }

  void Write()
  {
    const std::array<std::pair<const char*, std::int64_t>, 6> numbers = { {
      { "context_length", 4096 },
      { "embedding_length", this->Sizes.dimension },
      { "block_count", this->Sizes.layers },
      { "feed_forward_length", this->Sizes.hidden },
      { "attention.head_count", this->Sizes.heads },
      { "attention.head_count_kv", this->Sizes.keyHeads },
    } };
    this->File << "GGUF";
    this->Put<std::uint32_t>(3);
    this->Put<std::uint64_t>(this->Entries.size());
    this->Put<std::uint64_t>(numbers.size() + 3);
    this->PutText("general.architecture");
    this->Put<std::uint32_t>(8);
    this->PutText("llama");
    for (const auto& [key, value] : numbers)
    {
      this->PutText(std::string("llama.") + key);
      this->Put<std::uint32_t>(4);
      this->Put(static_cast<std::uint32_t>(value));
    }
    for (const auto& [key, value] : { std::pair{ "llama.attention.layer_norm_rms_epsilon", 1e-5F },
           { "llama.rope.freq_base", 5e5F } })
    {
      this->PutText(key);
      this->Put<std::uint32_t>(6);
      this->Put(value);
    }
    std::uint64_t offset = 0;
    for (const Entry& entry : this->Entries)
    {
      this->PutText(entry.name);
      this->Put(static_cast<std::uint32_t>(entry.shape.size()));
      for (auto size = entry.shape.rbegin(); size != entry.shape.rend(); ++size)
      {
        this->Put(static_cast<std::uint64_t>(*size));
      }
      this->Put(NumberOf(entry.dtype));
      this->Put(offset);
      offset += entry.View().Bytes(); // all are multiples of the alignment
    }
    while (this->File.tellp() % 32 != 0)
    {
      this->File.put('\0');
    }
    for (const Entry& entry : this->Entries)
    {
      this->PutTensor(entry);
    }
    this->File.close();
    if (!this->File)
    {
      throw std::runtime_error("the file of the model cannot be written");
    }
  }

  /// The number of a type in the file.
  static std::uint32_t NumberOf(DType dtype)
  {
    switch (dtype)
    {
      case DType::F16:
        return 1;
      case DType::Q4_0:
        return 2;
      case DType::Q8_0:
        return 8;
      case DType::Q4_K:
        return 12;
      case DType::Q5_K:
        return 13;
      case DType::Q6_K:
        return 14;
      case DType::BF16:
        return 30;
      case DType::MXFP4:
        return 39;
      default: // F32
        return 0;
    }
  }

  template<class Number>
  void Put(Number number)
  {
    this->File.write(reinterpret_cast<const char*>(&number), sizeof(number));
  }

  void PutText(const std::string& text)
  {
    this->Put<std::uint64_t>(text.size());
    this->File << text;
  }

  /// Xorshift (Marsaglia 2003).
  std::uint64_t Random()
  {
    this->State ^= this->State << 13U;
    this->State ^= this->State >> 7U;
    this->State ^= this->State << 17U;
    return this->State;
  }

  /// A number between -0.035 and 0.035.
  float RandomWeight()
  {
    return static_cast<float>(static_cast<std::int64_t>(this->Random()) >> 40U) * 0x1p-23F * 0.035F;
  }

  void PutTensor(const Entry& entry)
  {
    constexpr std::uint64_t piece = 4096;
    const std::uint64_t count = entry.View().Count();
    const std::size_t elements = BlockElements(entry.dtype);
    std::vector<std::byte> bytes(piece / elements * BlockBytes(entry.dtype));
    for (std::uint64_t done = 0; done < count; done += piece)
    {
      const std::size_t blocks = std::min(piece, count - done) / elements;
      for (std::size_t b = 0; b < blocks; ++b)
      {
        this->Fill(entry, bytes.data() + b * BlockBytes(entry.dtype));
      }
      this->File.write(reinterpret_cast<const char*>(bytes.data()),
        static_cast<std::streamsize>(blocks * BlockBytes(entry.dtype)));
    }
  }

  template<class Number>
  static void Store(Number number, std::byte* to)
  {
    std::memcpy(to, &number, sizeof(number));
  }

  /// Fills a block, or a number. Gains of normalizations are 1.
  void Fill(const Entry& entry, std::byte* to)
  {
    switch (entry.dtype)
    {
      case DType::F32:
        Store(entry.shape.size() == 1 ? 1.F : this->RandomWeight(), to);
        return;
      case DType::F16:
        Store(Eigen::half(this->RandomWeight()), to);
        return;
      case DType::BF16:
        Store(Eigen::bfloat16(this->RandomWeight()), to);
        return;
      default:
        this->FillBlock(entry.dtype, to);
    }
  }

  /// Random bits, with scales of about the same weights: half precision, and m of Q4_K and Q5_K
  /// such that the mean is 0.
  void FillBlock(DType dtype, std::byte* to)
  {
    const std::size_t size = BlockBytes(dtype);
    for (std::size_t i = 0; i < size; i += sizeof(std::uint64_t))
    {
      const std::uint64_t bits = this->Random();
      std::memcpy(to + i, &bits, std::min(sizeof(bits), size - i));
    }
    switch (dtype)
    {
      case DType::Q8_0:
        Store(Eigen::half(0.035F / 127), to);
        break;
      case DType::Q4_0:
        Store(Eigen::half(0.035F / 8), to);
        break;
      case DType::MXFP4:
        *to = std::byte{ 120 }; // up to 12 / 256
        break;
      case DType::Q6_K:
        Store(Eigen::half(1.5e-5F), to + size - 2);
        break;
      default:
        const float d = dtype == DType::Q4_K ? 1.2e-4F : 0.6e-4F;
        Store(Eigen::half(d), to);
        Store(Eigen::half(d * (dtype == DType::Q4_K ? 7.5F : 15.5F)), to + 2);
    }
  }
};

}
