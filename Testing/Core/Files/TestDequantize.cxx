#include "Files/Dequantize.h"

#include "Files/GgufFile.h"
#include "Files/Safetensors.h"
#include "ModelsOracle.h"
#include "Numerics/InstructionSets.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <Eigen/Core>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::ModelsOracle;
using testing::Each;
using testing::ElementsAreArray;

namespace
{

std::vector<float> Floats(const TensorView& view, std::uint64_t begin, std::uint64_t end)
{
  std::vector<float> values(end - begin);
  view.ToFloat(begin, end, values.data());
  return values;
}

/// The first rows of each tensor of all types, as gguf-py of llama.cpp reads them
/// (Testing/Oracle/models/README.md).
TEST(Dequantize, RowsAreThoseOfLlamaCpp)
{
  for (const std::string name : { "llama-q8_0", "llama-q4_k_m", "types" })
  {
    const GgufFile file(ModelsOracle("files/gguf/" + name + ".gguf"));
    const SafetensorsFile expected(ModelsOracle("files/gguf/" + name + ".tensors.safetensors"));
    for (const auto& [tensor, rows] : expected.GetTensors())
    {
      const TensorView& view = file.GetTensors().at(tensor);
      EXPECT_EQ(view.shape.back(), rows.shape.size() == 1 ? view.shape.back() : rows.shape.back());
      EXPECT_EQ(Floats(view, 0, rows.Count()), Floats(rows, 0, rows.Count()))
        << name << ": " << tensor << " " << Name(view.dtype);
    }
  }
}

TEST(Dequantize, PartsAreThoseOfTheWhole)
{
  const GgufFile file(ModelsOracle("files/gguf/types.gguf"));
  for (const auto& [name, view] : file.GetTensors())
  {
    SCOPED_TRACE(name);
    const std::vector<float> whole = Floats(view, 0, view.Count());
    for (const std::uint64_t begin : { 0U, 1U, 31U, 32U, 33U, 255U, 256U, 300U })
    {
      for (const std::uint64_t count : { 0U, 1U, 31U, 32U, 65U, 256U, 600U })
      {
        const std::uint64_t first = std::min(begin, view.Count());
        const std::uint64_t end = std::min(first + count, view.Count());
        EXPECT_THAT(Floats(view, first, end),
          ElementsAreArray(whole.begin() + static_cast<std::ptrdiff_t>(first),
            whole.begin() + static_cast<std::ptrdiff_t>(end)))
          << begin << " " << count;
      }
      if (begin < view.Count())
      {
        EXPECT_EQ(view.At(begin), static_cast<double>(whole[begin]));
      }
    }
    EXPECT_EQ(view.ToDouble(), std::vector<double>(whole.begin(), whole.end()));
  }
}

/// A block of bytes that are all the same, but for halves of 1, 2 or 0.5 at these places.
std::vector<float> Block(
  DType type, unsigned char byte, const std::vector<std::pair<std::size_t, float>>& halves)
{
  std::vector<unsigned char> bytes(BlockBytes(type), byte);
  for (const auto& [place, value] : halves)
  {
    const std::uint16_t bits = value == 1 ? 0x3C00 : value == 2 ? 0x4000 : 0x3800;
    std::memcpy(bytes.data() + place, &bits, sizeof(bits));
  }
  std::vector<float> values(BlockElements(type));
  WidenBlocks(type, reinterpret_cast<const std::byte*>(bytes.data()), 1, values.data());
  return values;
}

/// `size` times `even` and `odd` by turns, until there are twice `count` numbers.
std::vector<float> ByTurns(std::size_t count, std::size_t size, float even, float odd)
{
  std::vector<float> values(2 * count);
  for (std::size_t i = 0; i < values.size(); ++i)
  {
    values[i] = i / size % 2 == 0 ? even : odd;
  }
  return values;
}

TEST(Dequantize, BlocksByHand)
{
  EXPECT_THAT(Block(DType::Q8_0, 0xFF, { { 0, 2 } }), Each(-2));
  EXPECT_THAT(Block(DType::Q4_0, 0x33, { { 0, 2 } }), Each(2 * (3 - 8)));
  EXPECT_THAT(Block(DType::Q4_1, 0x33, { { 0, 2 }, { 2, 0.5 } }), Each(2 * 3 + 0.5));
  EXPECT_THAT(Block(DType::Q5_0, 0xFF, { { 0, 2 } }), Each(2 * (31 - 16)));
  EXPECT_THAT(Block(DType::Q5_0, 0x00, { { 0, 2 } }), Each(2 * (0 - 16)));
  EXPECT_THAT(Block(DType::Q5_1, 0xFF, { { 0, 2 }, { 2, 0.5 } }), Each(2 * 31 + 0.5));
  EXPECT_THAT(Block(DType::IQ4_NL, 0x33, { { 0, 2 } }), Each(2 * -65));
  // 2^(127 - 128) w(15), then w(7).
  EXPECT_EQ(Block(DType::MXFP4, 0x7F, {}), ByTurns(16, 16, -6, 6));
  // 0x55: scales and offsets of the first four groups are 0x15, of the others 0x15 too.
  EXPECT_THAT(Block(DType::Q4_K, 0x55, { { 0, 2 }, { 2, 0.5 } }), Each(2 * 21 * 5 - 0.5 * 21));
  // Scales and offsets are 5, and all q are 1.
  EXPECT_THAT(Block(DType::Q2_K, 0x55, { { 80, 2 }, { 82, 0.5 } }), Each(2 * 5 * 1 - 0.5 * 5));
  // Scales are 0x15; the bits of 0x55 are 1 and 0 by turns, each for 32 elements.
  EXPECT_EQ(
    Block(DType::Q3_K, 0x55, { { 108, 2 } }), ByTurns(128, 32, 2 * (21 - 32) * 1, 2 * -11 * -3));
  EXPECT_EQ(Block(DType::Q5_K, 0x55, { { 0, 2 }, { 2, 0.5 } }),
    ByTurns(128, 32, 2 * 21 * (5 + 16) - 0.5F * 21, 2 * 21 * 5 - 0.5F * 21));
  EXPECT_THAT(Block(DType::IQ4_XS, 0x55, { { 0, 2 } }), Each(2 * (21 - 32) * -35));
  // Lower bits 5, upper bits 1, scales 0x55.
  EXPECT_THAT(Block(DType::Q6_K, 0x55, { { 208, 2 } }), Each(2 * 85 * (5 + 16 - 32)));
}

TEST(Dequantize, LowHalvesComeBeforeHighOnes)
{
  const std::vector<float> values = Block(DType::Q4_0, 0x91, { { 0, 1 } });
  EXPECT_THAT(std::vector<float>(values.begin(), values.begin() + 16), Each(-7));
  EXPECT_THAT(std::vector<float>(values.begin() + 16, values.end()), Each(1));
}

TEST(Dequantize, BytesDoNotDependOnTheInstructionSet)
{
  for (const DType dtype : { DType::F16, DType::BF16, DType::Q4_0, DType::Q4_1, DType::Q5_0,
         DType::Q5_1, DType::Q8_0, DType::Q2_K, DType::Q3_K, DType::Q4_K, DType::Q5_K, DType::Q6_K,
         DType::IQ4_NL, DType::IQ4_XS, DType::MXFP4 })
  {
    SCOPED_TRACE(Name(dtype));
    constexpr std::int64_t count = 5 * 256 + 32; // or only the former
    const TensorView view = { dtype, { BlockElements(dtype) == 256 ? 5 * 256 : count }, nullptr };
    std::vector<std::byte> bytes(view.Bytes());
    std::mt19937 generator(1);
    std::generate(bytes.begin(), bytes.end(), [&] { return std::byte(generator() & 0xBBU); });
    TensorView random = view;
    random.data = bytes.data();
    UseTarget(SupportedTargets().back());
    const std::vector<float> expected = Floats(random, 0, random.Count());
    EXPECT_TRUE(std::all_of(
      expected.begin(), expected.end(), [](float value) { return std::isfinite(value); }));
    for (const std::string& target : SupportedTargets())
    {
      UseTarget(target);
      EXPECT_EQ(Floats(random, 0, random.Count()), expected) << target;
    }
    UseTarget("");
  }
}

/// As Eigen converts each of them, but for the bits of what is no number.
TEST(Dequantize, AllNumbersOf16Bits)
{
  std::vector<std::uint16_t> numbers(65536);
  std::iota(numbers.begin(), numbers.end(), std::uint16_t{ 0 });
  const auto* bytes = reinterpret_cast<const std::byte*>(numbers.data());
  std::vector<float> halves(numbers.size());
  WidenHalves(bytes, numbers.size(), halves.data());
  std::vector<float> brainFloats(numbers.size());
  WidenBrainFloats(bytes, numbers.size(), brainFloats.data());
  for (std::size_t i = 0; i < numbers.size(); ++i)
  {
    const auto half = static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(numbers[i]));
    const bool isSame = std::memcmp(&halves[i], &half, sizeof(half)) == 0;
    EXPECT_TRUE(isSame || (std::isnan(halves[i]) && std::isnan(half))) << i;
    const auto brain = static_cast<float>(Eigen::numext::bit_cast<Eigen::bfloat16>(numbers[i]));
    EXPECT_EQ(std::memcmp(&brainFloats[i], &brain, sizeof(brain)), 0) << i;
  }
}

}
