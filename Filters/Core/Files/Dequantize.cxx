#include "Dequantize.h"

#include <array>
#include <cstdint>
#include <cstring>

#include <Eigen/Core>

namespace atlas
{
namespace
{

constexpr std::size_t HalfBlock = 16; ///< of 32 elements

float LoadHalf(const std::uint8_t* bytes)
{
  Eigen::half value;
  std::memcpy(&value, bytes, sizeof(value));
  return static_cast<float>(value);
}

std::uint32_t LoadBits(const std::uint8_t* bytes)
{
  std::uint32_t bits = 0;
  std::memcpy(&bits, bytes, sizeof(bits));
  return bits;
}

int LowHalf(std::uint8_t byte)
{
  return byte & 15;
}

int HighHalf(std::uint8_t byte)
{
  return byte >> 4;
}

void WidenQ8_0(const std::uint8_t* block, float* values)
{
  const float d = LoadHalf(block);
  for (std::size_t i = 0; i < 2 * HalfBlock; ++i)
  {
    values[i] = d * static_cast<float>(static_cast<std::int8_t>(block[2 + i]));
  }
}

void WidenQ4_0(const std::uint8_t* block, float* values)
{
  const float d = LoadHalf(block);
  for (std::size_t i = 0; i < HalfBlock; ++i)
  {
    values[i] = d * static_cast<float>(LowHalf(block[2 + i]) - 8);
    values[i + HalfBlock] = d * static_cast<float>(HighHalf(block[2 + i]) - 8);
  }
}

void WidenQ4_1(const std::uint8_t* block, float* values)
{
  const float d = LoadHalf(block);
  const float m = LoadHalf(block + 2);
  for (std::size_t i = 0; i < HalfBlock; ++i)
  {
    values[i] = d * static_cast<float>(LowHalf(block[4 + i])) + m;
    values[i + HalfBlock] = d * static_cast<float>(HighHalf(block[4 + i])) + m;
  }
}

/// The fifth bit of element i, in its place.
int FifthBit(std::uint32_t bits, std::size_t i)
{
  return static_cast<int>(bits >> i & 1U) << 4;
}

void WidenQ5_0(const std::uint8_t* block, float* values)
{
  const float d = LoadHalf(block);
  const std::uint32_t bits = LoadBits(block + 2);
  for (std::size_t i = 0; i < HalfBlock; ++i)
  {
    const std::uint8_t q = block[6 + i];
    values[i] = d * static_cast<float>((LowHalf(q) | FifthBit(bits, i)) - 16);
    values[i + HalfBlock] =
      d * static_cast<float>((HighHalf(q) | FifthBit(bits, i + HalfBlock)) - 16);
  }
}

void WidenQ5_1(const std::uint8_t* block, float* values)
{
  const float d = LoadHalf(block);
  const float m = LoadHalf(block + 2);
  const std::uint32_t bits = LoadBits(block + 4);
  for (std::size_t i = 0; i < HalfBlock; ++i)
  {
    const std::uint8_t q = block[8 + i];
    values[i] = d * static_cast<float>(LowHalf(q) | FifthBit(bits, i)) + m;
    values[i + HalfBlock] = d * static_cast<float>(HighHalf(q) | FifthBit(bits, i + HalfBlock)) + m;
  }
}

/// The 8 pairs of numbers of 6 bits in 12 bytes: the first four are the lower bits of bytes 0 to 3
/// and of 4 to 7; of the others, bytes 8 to 11 have the lower four bits, and the upper two bits of
/// bytes 0 to 7 the rest.
struct GroupScale
{
  int scale;
  int offset;
};
GroupScale ScaleOf(const std::uint8_t* bytes, std::size_t group)
{
  constexpr std::size_t half = 4;
  if (group < half)
  {
    return { bytes[group] & 63, bytes[group + half] & 63 };
  }
  return { LowHalf(bytes[group + half]) | (bytes[group - half] >> 6) << 4,
    HighHalf(bytes[group + half]) | (bytes[group] >> 6) << 4 };
}

void WidenQ4_K(const std::uint8_t* block, float* values)
{
  constexpr std::size_t size = 32;
  const float d = LoadHalf(block);
  const float m = LoadHalf(block + 2);
  const std::uint8_t* scales = block + 4;
  const std::uint8_t* q = block + 16;
  for (std::size_t group = 0; group < 8; group += 2)
  {
    const GroupScale low = ScaleOf(scales, group);
    const GroupScale high = ScaleOf(scales, group + 1);
    const float lowFactor = d * static_cast<float>(low.scale);
    const float lowOffset = m * static_cast<float>(low.offset);
    const float highFactor = d * static_cast<float>(high.scale);
    const float highOffset = m * static_cast<float>(high.offset);
    for (std::size_t i = 0; i < size; ++i)
    {
      values[i] = lowFactor * static_cast<float>(LowHalf(q[i])) - lowOffset;
      values[i + size] = highFactor * static_cast<float>(HighHalf(q[i])) - highOffset;
    }
    q += size;
    values += 2 * size;
  }
}

void WidenQ6_K(const std::uint8_t* block, float* values)
{
  constexpr std::size_t size = 32;
  const float d = LoadHalf(block + 208);
  // Halves of 128 elements: 64 bytes of lower bits, 32 of upper bits, 8 scales.
  for (std::size_t half = 0; half < 2; ++half)
  {
    const std::uint8_t* lower = block + half * 2 * size;
    const std::uint8_t* upper = block + 128 + half * size;
    const std::uint8_t* scales = block + 192 + half * 8;
    for (std::size_t part = 0; part < 2; ++part) // of 16 in each group of 32
    {
      std::array<float, 4> factors{};
      for (std::size_t group = 0; group < factors.size(); ++group)
      {
        factors[group] = d * static_cast<float>(static_cast<std::int8_t>(scales[2 * group + part]));
      }
      for (std::size_t i = part * size / 2; i < (part + 1) * size / 2; ++i)
      {
        const int bits = upper[i];
        const int q0 = LowHalf(lower[i]) | (bits & 3) << 4;
        const int q1 = LowHalf(lower[i + size]) | (bits >> 2 & 3) << 4;
        const int q2 = HighHalf(lower[i]) | (bits >> 4 & 3) << 4;
        const int q3 = HighHalf(lower[i + size]) | (bits >> 6) << 4;
        values[i] = factors[0] * static_cast<float>(q0 - 32);
        values[i + size] = factors[1] * static_cast<float>(q1 - 32);
        values[i + 2 * size] = factors[2] * static_cast<float>(q2 - 32);
        values[i + 3 * size] = factors[3] * static_cast<float>(q3 - 32);
      }
    }
    values += 4 * size;
  }
}

template<class WidenBlock>
void ForBlocks(
  DType dtype, const std::byte* blocks, std::size_t count, float* values, const WidenBlock& widen)
{
  const std::size_t bytes = BlockBytes(dtype);
  const std::size_t elements = BlockElements(dtype);
  const auto* block = reinterpret_cast<const std::uint8_t*>(blocks);
  for (std::size_t b = 0; b < count; ++b)
  {
    widen(block + b * bytes, values + b * elements);
  }
}

}

void WidenBlocks(DType dtype, const std::byte* blocks, std::size_t count, float* values)
{
  const auto widen = [&](const auto& widenBlock)
  { ForBlocks(dtype, blocks, count, values, widenBlock); };
  switch (dtype)
  {
    case DType::Q4_0:
      widen(WidenQ4_0);
      break;
    case DType::Q4_1:
      widen(WidenQ4_1);
      break;
    case DType::Q5_0:
      widen(WidenQ5_0);
      break;
    case DType::Q5_1:
      widen(WidenQ5_1);
      break;
    case DType::Q8_0:
      widen(WidenQ8_0);
      break;
    case DType::Q4_K:
      widen(WidenQ4_K);
      break;
    case DType::Q6_K:
      widen(WidenQ6_K);
      break;
    default: // not a block
      break;
  }
}

void WidenHalves(const std::byte* halves, std::size_t count, float* values)
{
  constexpr float scale = 0x1p112F; // between the biases of the exponents, 127 and 15
  constexpr std::uint32_t infinite = 0x7C00U << 13U;
  for (std::size_t i = 0; i < count; ++i)
  {
    std::uint16_t half = 0;
    std::memcpy(&half, halves + i * sizeof(half), sizeof(half));
    const std::uint32_t magnitude = (half & 0x7FFFU) << 13U;
    float value = 0;
    std::memcpy(&value, &magnitude, sizeof(value));
    value *= scale; // exact; makes normal numbers of subnormal halves
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    bits |= magnitude >= infinite ? 0x7F800000U : 0U; // infinity and NaN
    bits |= (half & 0x8000U) << 16U;
    std::memcpy(values + i, &bits, sizeof(bits));
  }
}

}
