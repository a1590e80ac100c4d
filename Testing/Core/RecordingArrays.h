#pragma once

#include "ErrorMessage.h"
#include "Files/Safetensors.h"
#include "Recording/RecordingFile.h"
#include "SameRecording.h"
#include "TemporaryDirectory.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

/// Files of recordings: arrays as other programs write them, and what is read from files.
namespace atlas::test
{

/// Sizes of the arrays: sequences, tokens, heads, dimensions of a head, and layers.
inline constexpr std::int64_t B = 2;
inline constexpr std::int64_t T = 3;
inline constexpr std::int64_t H = 4;
inline constexpr std::int64_t D = 2;
inline constexpr std::int64_t L = 2;

/// The value of a quantity, different for each place in it; exact in half precision.
inline float ValueAt(
  int quantity, std::int64_t l, std::int64_t b, std::int64_t t, std::int64_t h, std::int64_t i)
{
  return static_cast<float>(
    quantity + 4 * (static_cast<int>(i) + 2 * static_cast<int>(h + 4 * (t + 3 * (b + 2 * l)))) -
    300);
}

/// [B,T,heads,width] of layer l.
inline std::vector<double> TokenFirst(
  int quantity, std::int64_t l, std::int64_t heads, std::int64_t width)
{
  std::vector<double> values(B * T * heads * width);
  for (std::int64_t i = 0; i < B * T * heads * width; ++i)
  {
    const std::int64_t head = i / width;
    const std::int64_t token = head / heads;
    values[i] = ValueAt(quantity, l, token / T, token % T, head % heads, i % width);
  }
  return values;
}

inline Tensor Floats(Shape shape, const std::vector<double>& values, DType dtype = DType::F32)
{
  return Tensor::FromDouble(dtype, std::move(shape), values);
}

inline std::string Block(std::int64_t l, const std::string& rest)
{
  return "blocks." + std::to_string(l) + "." + rest;
}

/// Queries, keys of two groups, and values in old TransformerLens names.
inline Tensors OldNames()
{
  Tensors tensors;
  for (std::int64_t l = 0; l < L; ++l)
  {
    tensors[Block(l, "attn.hook_q")] = Floats({ B, T, H, D }, TokenFirst(0, l, H, D));
    tensors[Block(l, "attn.hook_k")] = Floats({ B, T, 2, D }, TokenFirst(1, l, 2, D));
    tensors[Block(l, "attn.hook_v")] = Floats({ B, T, 2, D }, TokenFirst(2, l, 2, D));
  }
  return tensors;
}

/// Arrays, written to a file and read.
inline RecordingContent Read(
  const Tensors& tensors, const Metadata& metadata = {}, const RecordingReadOptions& options = {})
{
  const TemporaryDirectory folder;
  WriteSafetensors(folder / "r.safetensors", tensors, metadata);
  return ReadRecording(folder / "r.safetensors", options);
}

/// What reading them says is wrong, with the name of the file, which is checked.
inline std::string Refusal(const Tensors& tensors, const Metadata& metadata = {})
{
  const TemporaryDirectory folder;
  WriteSafetensors(folder / "r.safetensors", tensors, metadata);
  std::string message = MessageOf<ModelError>([&] { ReadRecording(folder / "r.safetensors"); });
  EXPECT_THAT(message, testing::StartsWith((folder / "r.safetensors").string() + ": "));
  return message;
}

inline std::vector<float> ValuesOf(const SharedMatrix& matrix)
{
  return { matrix.values.get(), matrix.values.get() + matrix.Count() };
}

/// Softmax of rows of 3 in which the first i + 1 (causal) or all scores take part.
inline std::vector<double> SoftmaxRows(const std::vector<double>& scores, bool causal)
{
  std::vector<double> weights;
  for (std::size_t row = 0; row < scores.size() / 3; ++row)
  {
    const std::size_t allowed = causal ? row % 3 + 1 : 3;
    double sum = 0;
    for (std::size_t j = 0; j < allowed; ++j)
    {
      sum += std::exp(scores[3 * row + j]);
    }
    for (std::size_t j = 0; j < 3; ++j)
    {
      weights.push_back(j < allowed ? std::exp(scores[3 * row + j]) / sum : 0);
    }
  }
  return weights;
}

/// Queries and keys small enough that attention is not all on one token.
inline Tensors WithAttention(bool biased)
{
  Tensors tensors;
  const std::vector<double> queries = { 1, 0, 0.5, 1, -1, 2 };
  const std::vector<double> keys = { 0, 1, 1, 1, 0.5, -1 };
  std::vector<double> scores;
  for (std::size_t i = 0; i < 3; ++i)
  {
    for (std::size_t j = 0; j < 3; ++j)
    {
      const double product = queries[2 * i] * keys[2 * j] + queries[2 * i + 1] * keys[2 * j + 1];
      scores.push_back(product / std::sqrt(2.0) + (biased ? 0.5 * static_cast<double>(j) : 0));
    }
  }
  tensors["blocks.0.attn.hook_q"] = Floats({ 1, 3, 1, 2 }, queries);
  tensors["blocks.0.attn.hook_k"] = Floats({ 1, 3, 1, 2 }, keys);
  tensors["blocks.0.attn.hook_pattern"] = Floats({ 1, 1, 3, 3 }, SoftmaxRows(scores, true));
  return tensors;
}

/// Writes, reads, writes again: the same recording and the same bytes.
inline Recording ExpectRoundTrip(const Recording& recording)
{
  const TemporaryDirectory folder;
  WriteRecording(folder / "a.safetensors", recording);
  const RecordingContent content = ReadRecording(folder / "a.safetensors");
  EXPECT_THAT(content.warnings, testing::IsEmpty());
  ExpectEqual(content.recording, recording);
  WriteRecording(folder / "b.safetensors", content.recording);
  EXPECT_EQ(ReadBytes(folder / "a.safetensors"), ReadBytes(folder / "b.safetensors"));
  WriteRecording(
    folder / "a.safetensors", content.recording); // over the file that it is mapped from
  ExpectEqual(content.recording, recording);
  return content.recording;
}

}
