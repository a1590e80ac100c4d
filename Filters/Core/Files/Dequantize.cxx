#include "Dequantize.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include <Eigen/Core>

// The loops below are plain. They are compiled for each instruction set; the numbers are the same
// with all of them.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "Files/Dequantize.cxx"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace atlas::HWY_NAMESPACE
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

/// Blocks of 32: `value` makes the numbers of q, whose element i a byte of `q` holds in its low and
/// whose element i + 16 in its high half.
template<class Value>
void WidenHalfBytes(const std::uint8_t* q, float* values, const Value& value)
{
  for (std::size_t i = 0; i < HalfBlock; ++i)
  {
    values[i] = value(LowHalf(q[i]), i);
    values[i + HalfBlock] = value(HighHalf(q[i]), i + HalfBlock);
  }
}

void WidenQ4_0(const std::uint8_t* block, float* values)
{
  const float d = LoadHalf(block);
  WidenHalfBytes(
    block + 2, values, [d](int q, std::size_t) { return d * static_cast<float>(q - 8); });
}

void WidenQ4_1(const std::uint8_t* block, float* values)
{
  const float d = LoadHalf(block);
  const float m = LoadHalf(block + 2);
  WidenHalfBytes(
    block + 4, values, [d, m](int q, std::size_t) { return d * static_cast<float>(q) + m; });
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
  WidenHalfBytes(block + 6, values, [d, bits](int q, std::size_t i)
    { return d * static_cast<float>((q | FifthBit(bits, i)) - 16); });
}

void WidenQ5_1(const std::uint8_t* block, float* values)
{
  const float d = LoadHalf(block);
  const float m = LoadHalf(block + 2);
  const std::uint32_t bits = LoadBits(block + 4);
  WidenHalfBytes(block + 8, values, [d, m, bits](int q, std::size_t i)
    { return d * static_cast<float>(q | FifthBit(bits, i)) + m; });
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

/// Q4_K and Q5_K: `fifth` gives the fifth bit of element i of a group, in its place.
template<class Fifth>
void WidenGroups(
  const std::uint8_t* block, const std::uint8_t* q, float* values, const Fifth& fifth)
{
  constexpr std::size_t size = 32;
  const float d = LoadHalf(block);
  const float m = LoadHalf(block + 2);
  const std::uint8_t* scales = block + 4;
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
      const int lowQ = LowHalf(q[i]) | fifth(group, i);
      const int highQ = HighHalf(q[i]) | fifth(group + 1, i);
      values[i] = lowFactor * static_cast<float>(lowQ) - lowOffset;
      values[i + size] = highFactor * static_cast<float>(highQ) - highOffset;
    }
    q += size;
    values += 2 * size;
  }
}

void WidenQ4_K(const std::uint8_t* block, float* values)
{
  WidenGroups(block, block + 16, values, [](std::size_t, std::size_t) { return 0; });
}

void WidenQ5_K(const std::uint8_t* block, float* values)
{
  const std::uint8_t* bits = block + 16;
  WidenGroups(block, block + 48, values,
    [bits](std::size_t group, std::size_t i) { return FifthBit(bits[i], group); });
}

/// Two bits of element i of a group of 32 in 64 bytes.
int TwoBits(const std::uint8_t* q, std::size_t group, std::size_t i)
{
  return q[group / 4 * 32 + i] >> group % 4 * 2 & 3;
}

void WidenQ2_K(const std::uint8_t* block, float* values)
{
  constexpr std::size_t size = 16;
  const std::uint8_t* q = block + 16;
  const float d = LoadHalf(block + 80);
  const float m = LoadHalf(block + 82);
  for (std::size_t group = 0; group < 16; ++group)
  {
    const float factor = d * static_cast<float>(LowHalf(block[group]));
    const float offset = m * static_cast<float>(HighHalf(block[group]));
    const std::size_t first = group % 2 * size;
    for (std::size_t i = 0; i < size; ++i)
    {
      const int bits = TwoBits(q, group / 2, first + i);
      values[group * size + i] = factor * static_cast<float>(bits) - offset;
    }
  }
}

/// The 16 numbers of 6 bits in 12 bytes: bytes 0 to 7 have the lower four bits of the first eight
/// in their low and of the others in their high halves, and bytes 8 to 11 the upper two, four by
/// four.
int SixBits(const std::uint8_t* bytes, std::size_t i)
{
  const int lower = i < 8 ? LowHalf(bytes[i]) : HighHalf(bytes[i - 8]);
  return lower | (bytes[8 + i % 4] >> i / 4 * 2 & 3) << 4;
}

void WidenQ3_K(const std::uint8_t* block, float* values)
{
  constexpr std::size_t size = 16;
  const std::uint8_t* q = block + 32;
  const float d = LoadHalf(block + 108);
  for (std::size_t group = 0; group < 16; ++group)
  {
    const float factor = d * static_cast<float>(SixBits(block + 96, group) - 32);
    const std::size_t first = group % 2 * size;
    for (std::size_t i = first; i < first + size; ++i)
    {
      const int bits = TwoBits(q, group / 2, i) | (block[i] >> group / 2 & 1) << 2;
      values[group / 2 * 2 * size + i] = factor * static_cast<float>(bits - 4);
    }
  }
}

/// The numbers that four bits stand for.
using FourBitValues = std::array<std::int8_t, 16>;
constexpr FourBitValues UnevenValues = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38,
  53, 69, 89, 113 };
constexpr FourBitValues SmallFloats = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };

void WidenByTable(const FourBitValues& table, float factor, const std::uint8_t* q, float* values)
{
  WidenHalfBytes(q, values,
    [&table, factor](int bits, std::size_t) { return factor * static_cast<float>(table[bits]); });
}

void WidenIQ4_NL(const std::uint8_t* block, float* values)
{
  WidenByTable(UnevenValues, LoadHalf(block), block + 2, values);
}

void WidenIQ4_XS(const std::uint8_t* block, float* values)
{
  const float d = LoadHalf(block);
  for (std::size_t group = 0; group < 8; ++group)
  {
    const std::uint8_t lower = block[4 + group / 2];
    const int upper = block[2 + group / 4] >> group % 4 * 2 & 3;
    const int scale = (group % 2 == 0 ? LowHalf(lower) : HighHalf(lower)) | upper << 4;
    WidenByTable(UnevenValues, d * static_cast<float>(scale - 32), block + 8 + group * HalfBlock,
      values + group * 2 * HalfBlock);
  }
}

/// 2^(e - 128), of which the two smallest are subnormal.
float HalfPower(std::uint8_t e)
{
  const std::uint32_t bits = e < 2 ? 0x00200000U << e : (e - 1U) << 23U;
  float power = 0;
  std::memcpy(&power, &bits, sizeof(power));
  return power;
}

void WidenMXFP4(const std::uint8_t* block, float* values)
{
  WidenByTable(SmallFloats, HalfPower(block[0]), block + 1, values);
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

using WidenMany = void (*)(const std::uint8_t* blocks, std::size_t count, float* values);

template<DType Type, void (*WidenBlock)(const std::uint8_t* block, float* values)>
void ForBlocks(const std::uint8_t* blocks, std::size_t count, float* values)
{
  const std::size_t bytes = BlockBytes(Type);
  const std::size_t elements = BlockElements(Type);
  for (std::size_t b = 0; b < count; ++b)
  {
    WidenBlock(blocks + b * bytes, values + b * elements);
  }
}

void WidenBlocksOf(DType dtype, const std::byte* blocks, std::size_t count, float* values)
{
  // In the order of DType.
  constexpr std::array<WidenMany, 13> all = { ForBlocks<DType::Q4_0, WidenQ4_0>,
    ForBlocks<DType::Q4_1, WidenQ4_1>, ForBlocks<DType::Q5_0, WidenQ5_0>,
    ForBlocks<DType::Q5_1, WidenQ5_1>, ForBlocks<DType::Q8_0, WidenQ8_0>,
    ForBlocks<DType::Q2_K, WidenQ2_K>, ForBlocks<DType::Q3_K, WidenQ3_K>,
    ForBlocks<DType::Q4_K, WidenQ4_K>, ForBlocks<DType::Q5_K, WidenQ5_K>,
    ForBlocks<DType::Q6_K, WidenQ6_K>, ForBlocks<DType::IQ4_NL, WidenIQ4_NL>,
    ForBlocks<DType::IQ4_XS, WidenIQ4_XS>, ForBlocks<DType::MXFP4, WidenMXFP4> };
  all[static_cast<std::size_t>(dtype) - static_cast<std::size_t>(DType::Q4_0)](
    reinterpret_cast<const std::uint8_t*>(blocks), count, values);
}

void WidenHalvesOf(const std::byte* halves, std::size_t count, float* values)
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

void WidenBrainFloatsOf(const std::byte* numbers, std::size_t count, float* values)
{
  for (std::size_t i = 0; i < count; ++i)
  {
    std::uint16_t upper = 0;
    std::memcpy(&upper, numbers + i * sizeof(upper), sizeof(upper));
    const std::uint32_t bits = std::uint32_t{ upper } << 16U;
    std::memcpy(values + i, &bits, sizeof(bits));
  }
}

}
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace atlas
{

HWY_EXPORT(WidenBlocksOf);
HWY_EXPORT(WidenHalvesOf);
HWY_EXPORT(WidenBrainFloatsOf);

void WidenBlocks(DType dtype, const std::byte* blocks, std::size_t count, float* values)
{
  HWY_DYNAMIC_DISPATCH(WidenBlocksOf)(dtype, blocks, count, values);
}

void WidenHalves(const std::byte* halves, std::size_t count, float* values)
{
  HWY_DYNAMIC_DISPATCH(WidenHalvesOf)(halves, count, values);
}

void WidenBrainFloats(const std::byte* numbers, std::size_t count, float* values)
{
  HWY_DYNAMIC_DISPATCH(WidenBrainFloatsOf)(numbers, count, values);
}

namespace
{

using FloatsOfBytes = std::array<float, 256>;

FloatsOfBytes AllFloats(DType dtype)
{
  FloatsOfBytes all{};
  for (unsigned byte = 0; byte < all.size(); ++byte)
  {
    const int magnitude = static_cast<int>(byte & 0x7FU);
    const float sign = byte < 0x80U ? 1.F : -1.F;
    const int exponent = magnitude >> 3;
    const auto mantissa = static_cast<float>(magnitude & 7);
    if (dtype == DType::F8_E5M2)
    {
      all.at(byte) = static_cast<float>(
        Eigen::numext::bit_cast<Eigen::half>(static_cast<std::uint16_t>(byte << 8U)));
    }
    else if (dtype == DType::F8_E4M3)
    {
      all.at(byte) = magnitude == 0x7F ? std::numeric_limits<float>::quiet_NaN()
                     : exponent == 0   ? sign * std::ldexp(mantissa, -9)
                                       : sign * std::ldexp(8 + mantissa, exponent - 10);
    }
    else
    {
      all.at(byte) = byte == 0xFFU ? std::numeric_limits<float>::quiet_NaN()
                                   : std::ldexp(1.F, static_cast<int>(byte) - 127);
    }
  }
  return all;
}

}

float WidenByte(DType dtype, std::uint8_t byte)
{
  static const std::array<FloatsOfBytes, 3> all = { AllFloats(DType::F8_E4M3),
    AllFloats(DType::F8_E5M2), AllFloats(DType::F8_E8M0) };
  return all.at(static_cast<std::size_t>(dtype) - static_cast<std::size_t>(DType::F8_E4M3))[byte];
}

}

#endif
