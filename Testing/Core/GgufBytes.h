#pragma once

#include "Files/Tensor.h"
#include "NumpyBytes.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace atlas::test
{

/// Writes GGUF files, by the description of the format.
class GgufBytes
{
public:
  static std::string Text(const std::string& text) { return LittleEndian(text.size(), 8) + text; }

  /// A value of the metadata as its type and bytes.
  void Add(const std::string& key, std::uint32_t type, const std::string& bytes)
  {
    this->Metadata += Text(key) + LittleEndian(type, 4) + bytes;
    ++this->Values;
  }
  void AddText(const std::string& key, const std::string& text) { this->Add(key, 8, Text(text)); }
  void AddInteger(const std::string& key, std::uint32_t number)
  {
    this->Add(key, 4, LittleEndian(number, 4));
  }
  void AddNumber(const std::string& key, float number)
  {
    this->Add(key, 6, FloatBytes({ number }));
  }
  void AddArray(
    const std::string& key, std::uint32_t type, std::uint64_t count, const std::string& bytes)
  {
    this->Add(key, 9, LittleEndian(type, 4) + LittleEndian(count, 8) + bytes);
  }
  void AddTexts(const std::string& key, const std::vector<std::string>& texts)
  {
    std::string bytes;
    for (const std::string& text : texts)
    {
      bytes += Text(text);
    }
    this->AddArray(key, 8, texts.size(), bytes);
  }

  /// A tensor with its axes in the usual order and the number of its type; placed behind the others
  /// at the next multiple of 32.
  void AddTensor(
    const std::string& name, const Shape& shape, std::uint32_t type, const std::string& bytes)
  {
    this->Data.resize((this->Data.size() + 31) / 32 * 32, '\0');
    this->AddTensorAt(name, shape, type, this->Data.size());
    this->Data += bytes;
  }

  /// The entry of a tensor whose data are elsewhere.
  void AddTensorAt(
    const std::string& name, const Shape& shape, std::uint32_t type, std::uint64_t offset)
  {
    this->Tensors += Text(name) + LittleEndian(shape.size(), 4);
    for (auto size = shape.rbegin(); size != shape.rend(); ++size)
    {
      this->Tensors += LittleEndian(static_cast<std::uint64_t>(*size), 8);
    }
    this->Tensors += LittleEndian(type, 4) + LittleEndian(offset, 8);
    ++this->Count;
  }

  /// A tensor of small floats, all different.
  void AddFloats(const std::string& name, const Shape& shape)
  {
    std::vector<float> values(ElementCount(shape).value());
    for (std::size_t i = 0; i < values.size(); ++i)
    {
      values[i] = (static_cast<float>(i % 7) - 3) / 8 + static_cast<float>(i) / 256;
    }
    this->AddTensor(name, shape, 0, FloatBytes(values));
  }

  std::string File(std::uint32_t version = 3) const
  {
    std::string bytes = "GGUF" + LittleEndian(version, 4) + LittleEndian(this->Count, 8) +
                        LittleEndian(this->Values, 8) + this->Metadata + this->Tensors;
    bytes.resize((bytes.size() + 31) / 32 * 32, '\0');
    return bytes + this->Data;
  }

private:
  std::string Metadata;
  std::string Tensors;
  std::string Data;
  std::uint64_t Values = 0;
  std::uint64_t Count = 0;
};

/// The settings of a llama of one layer, two heads of four components that share a key, 5 tokens
/// and a tokenizer of single characters. `architecture` may be another.
inline GgufBytes TinyGgufSettings(const std::string& architecture = "llama")
{
  GgufBytes file;
  file.AddText("general.architecture", architecture);
  const auto addInteger = [&](const char* key, std::uint32_t number)
  { file.AddInteger(architecture + "." + key, number); };
  addInteger("context_length", 32);
  addInteger("embedding_length", 8);
  addInteger("block_count", 1);
  addInteger("feed_forward_length", 6);
  addInteger("attention.head_count", 2);
  addInteger("attention.head_count_kv", 1);
  file.AddNumber(architecture + ".attention.layer_norm_rms_epsilon", 1e-5F);
  file.AddNumber(architecture + ".rope.freq_base", 1000);
  file.AddText("tokenizer.ggml.model", "gpt2");
  file.AddText("tokenizer.ggml.pre", "gpt-2");
  file.AddTexts("tokenizer.ggml.tokens", { "a", "b", "c", "ab", "<|endoftext|>" });
  file.AddArray("tokenizer.ggml.token_type", 5, 5,
    LittleEndian(1, 4) + LittleEndian(1, 4) + LittleEndian(1, 4) + LittleEndian(1, 4) +
      LittleEndian(3, 4));
  file.AddTexts("tokenizer.ggml.merges", { "a b" });
  return file;
}

/// The names and shapes of its tensors.
inline std::vector<std::pair<std::string, Shape>> TinyGgufTensors()
{
  return { { "token_embd.weight", { 5, 8 } }, { "blk.0.attn_norm.weight", { 8 } },
    { "blk.0.attn_q.weight", { 8, 8 } }, { "blk.0.attn_k.weight", { 4, 8 } },
    { "blk.0.attn_v.weight", { 4, 8 } }, { "blk.0.attn_output.weight", { 8, 8 } },
    { "blk.0.ffn_norm.weight", { 8 } }, { "blk.0.ffn_gate.weight", { 6, 8 } },
    { "blk.0.ffn_up.weight", { 6, 8 } }, { "blk.0.ffn_down.weight", { 8, 6 } },
    { "output_norm.weight", { 8 } } };
}

/// The whole model.
inline GgufBytes TinyGguf(const std::string& architecture = "llama")
{
  GgufBytes file = TinyGgufSettings(architecture);
  for (const auto& [name, shape] : TinyGgufTensors())
  {
    file.AddFloats(name, shape);
  }
  return file;
}

}
