#include "Dequantize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include <Eigen/Core>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "Files/Dequantize.cxx"
#include <hwy/foreach_target.h>
// foreach_target.h must come before this header, which is read once per target.
#include <hwy/highway.h>

// Blocks become integers in plain loops, over bytes. The numbers are the same with each
// instruction set.
HWY_BEFORE_NAMESPACE();
namespace atlas::HWY_NAMESPACE
{

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t HalfBlock = 16; ///< of 32 elements
constexpr std::size_t MaximumGroups = MaximumBlockElements / ScaleGroup;

/// The float that is equal to a half. Subnormal numbers take no longer than others.
float LoadHalf(const std::uint8_t* bytes)
{
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 // which has an instruction for it
  std::uint16_t stored = 0;
  std::memcpy(&stored, bytes, sizeof(stored));
  const auto number = hn::Set(hn::CappedTag<std::uint16_t, 1>(), stored);
  return hn::GetLane(hn::PromoteTo(
    hn::CappedTag<float, 1>(), hn::BitCast(hn::CappedTag<hwy::float16_t, 1>(), number)));
#else
  constexpr std::uint32_t normal = 0x400U; // the least ones
  constexpr std::uint32_t infinite = 0x7C00U;
  std::uint16_t half = 0;
  std::memcpy(&half, bytes, sizeof(half));
  const std::uint32_t magnitude = half & 0x7FFFU;
  const float small = static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24F;
  std::uint32_t bits = 0;
  std::memcpy(&bits, &small, sizeof(bits));
  const std::uint32_t bias = magnitude >= infinite ? 2 * 112U : 112U; // of the exponent
  bits = magnitude >= normal ? (magnitude << 13U) + (bias << 23U) : bits;
  bits |= (half & 0x8000U) << 16U;
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
#endif
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

std::int8_t Integer(int value)
{
  return static_cast<std::int8_t>(value);
}

/// Sets the scale, and the offset if there is one, of elements from pair * 32 on.
template<class... Numbers>
void SetScales(const ScaledIntegers& to, std::size_t pair, Numbers... numbers)
{
  to.SetScale(2 * pair, numbers...);
  to.SetScale(2 * pair + 1, numbers...);
}

void UnpackQ8_0(const std::uint8_t* block, const ScaledIntegers& to)
{
  std::memcpy(to.integers, block + 2, 2 * HalfBlock);
  SetScales(to, 0, LoadHalf(block));
}

/// Sets 32 elements: `value` makes the integers of q, whose element i a byte of `q` holds in its
/// low and whose element i + 16 in its high half.
template<class Value>
void UnpackHalfBytes(
  const std::uint8_t* HWY_RESTRICT q, std::int8_t* HWY_RESTRICT integers, const Value& value)
{
  for (std::size_t i = 0; i < HalfBlock; ++i)
  {
    integers[i] = Integer(value(LowHalf(q[i]), i));
    integers[i + HalfBlock] = Integer(value(HighHalf(q[i]), i + HalfBlock));
  }
}

/// The numbers that four bits stand for.
using FourBitValues = std::array<std::int8_t, 16>;
constexpr FourBitValues Unsigned = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
constexpr FourBitValues LessEight = { -8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7 };
constexpr FourBitValues UnevenValues = { -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38,
  53, 69, 89, 113 };
constexpr FourBitValues SmallFloats = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };

void UnpackByTable(const FourBitValues& table, const std::uint8_t* q, std::int8_t* integers)
{
#if HWY_TARGET == HWY_SCALAR
  UnpackHalfBytes(q, integers, [&table](int bits, std::size_t) { return table[bits]; });
#else
  const hn::FixedTag<std::int8_t, HalfBlock> d;
  const hn::FixedTag<std::uint8_t, HalfBlock> ofBytes;
  const auto values = hn::LoadU(d, table.data());
  const auto bytes = hn::LoadU(ofBytes, q);
  const auto low = hn::And(bytes, hn::Set(ofBytes, 15));
  const auto high = hn::And(
    hn::BitCast(ofBytes, hn::ShiftRight<4>(hn::BitCast(hn::FixedTag<std::uint16_t, 8>(), bytes))),
    hn::Set(ofBytes, 15));
  hn::StoreU(hn::TableLookupBytes(values, hn::BitCast(d, low)), d, integers);
  hn::StoreU(hn::TableLookupBytes(values, hn::BitCast(d, high)), d, integers + HalfBlock);
#endif
}

void UnpackQ4_0(const std::uint8_t* block, const ScaledIntegers& to)
{
  UnpackByTable(LessEight, block + 2, to.integers);
  SetScales(to, 0, LoadHalf(block));
}

void UnpackQ4_1(const std::uint8_t* block, const ScaledIntegers& to)
{
  UnpackByTable(Unsigned, block + 4, to.integers);
  SetScales(to, 0, LoadHalf(block), LoadHalf(block + 2));
}

/// The fifth bit of element i, in its place.
int FifthBit(std::uint32_t bits, std::size_t i)
{
  return static_cast<int>(bits >> i & 1U) << 4;
}

void UnpackQ5_0(const std::uint8_t* block, const ScaledIntegers& to)
{
  const std::uint32_t bits = LoadBits(block + 2);
  UnpackHalfBytes(
    block + 6, to.integers, [bits](int q, std::size_t i) { return (q | FifthBit(bits, i)) - 16; });
  SetScales(to, 0, LoadHalf(block));
}

void UnpackQ5_1(const std::uint8_t* block, const ScaledIntegers& to)
{
  const std::uint32_t bits = LoadBits(block + 4);
  UnpackHalfBytes(
    block + 8, to.integers, [bits](int q, std::size_t i) { return q | FifthBit(bits, i); });
  SetScales(to, 0, LoadHalf(block), LoadHalf(block + 2));
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

/// The scales of Q4_K and Q5_K.
void SetGroupScales(const std::uint8_t* block, const ScaledIntegers& to)
{
  const float d = LoadHalf(block);
  const float m = LoadHalf(block + 2);
  for (std::size_t group = 0; group < 8; ++group)
  {
    const GroupScale found = ScaleOf(block + 4, group);
    SetScales(
      to, group, d * static_cast<float>(found.scale), -(m * static_cast<float>(found.offset)));
  }
}

/// Q4_K and Q5_K: `fifth` gives the fifth bit of element i of a group, in its place.
template<class Fifth>
void UnpackGroups(
  const std::uint8_t* HWY_RESTRICT q, std::int8_t* HWY_RESTRICT integers, const Fifth& fifth)
{
  constexpr std::size_t size = 32;
  for (std::size_t group = 0; group < 8; group += 2)
  {
    for (std::size_t i = 0; i < size; ++i)
    {
      integers[i] = Integer(LowHalf(q[i]) | fifth(group, i));
      integers[i + size] = Integer(HighHalf(q[i]) | fifth(group + 1, i));
    }
    q += size;
    integers += 2 * size;
  }
}

void UnpackQ4_K(const std::uint8_t* block, const ScaledIntegers& to)
{
  UnpackGroups(block + 16, to.integers, [](std::size_t, std::size_t) { return 0; });
  SetGroupScales(block, to);
}

void UnpackQ5_K(const std::uint8_t* block, const ScaledIntegers& to)
{
  const std::uint8_t* bits = block + 16;
  UnpackGroups(block + 48, to.integers,
    [bits](std::size_t group, std::size_t i) { return (bits[i] >> group & 1) << 4; });
  SetGroupScales(block, to);
}

/// Sets the groups of 32 elements of which 64 bytes have two bits each: `value` makes the integers.
template<class Value>
void UnpackTwoBits(
  const std::uint8_t* HWY_RESTRICT q, std::int8_t* HWY_RESTRICT integers, const Value& value)
{
  constexpr std::size_t size = 32;
  for (std::size_t group = 0; group < 8; ++group)
  {
    for (std::size_t i = 0; i < size; ++i)
    {
      const int bits = q[group / 4 * size + i] >> group % 4 * 2 & 3;
      integers[group * size + i] = Integer(value(bits, group, i));
    }
  }
}

void UnpackQ2_K(const std::uint8_t* block, const ScaledIntegers& to)
{
  UnpackTwoBits(block + 16, to.integers, [](int bits, std::size_t, std::size_t) { return bits; });
  const float d = LoadHalf(block + 80);
  const float m = LoadHalf(block + 82);
  for (std::size_t group = 0; group < MaximumGroups; ++group)
  {
    to.SetScale(group, d * static_cast<float>(LowHalf(block[group])),
      -(m * static_cast<float>(HighHalf(block[group]))));
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

void UnpackQ3_K(const std::uint8_t* block, const ScaledIntegers& to)
{
  UnpackTwoBits(block + 32, to.integers, [block](int bits, std::size_t group, std::size_t i)
    { return (bits | (block[i] >> group & 1) << 2) - 4; });
  const float d = LoadHalf(block + 108);
  for (std::size_t group = 0; group < MaximumGroups; ++group)
  {
    to.SetScale(group, d * static_cast<float>(SixBits(block + 96, group) - 32));
  }
}

void UnpackIQ4_NL(const std::uint8_t* block, const ScaledIntegers& to)
{
  UnpackByTable(UnevenValues, block + 2, to.integers);
  SetScales(to, 0, LoadHalf(block));
}

void UnpackIQ4_XS(const std::uint8_t* block, const ScaledIntegers& to)
{
  const float d = LoadHalf(block);
  for (std::size_t group = 0; group < 8; ++group)
  {
    const std::uint8_t lower = block[4 + group / 2];
    const int upper = block[2 + group / 4] >> group % 4 * 2 & 3;
    const int scale = (group % 2 == 0 ? LowHalf(lower) : HighHalf(lower)) | upper << 4;
    UnpackByTable(UnevenValues, block + 8 + group * HalfBlock, to.integers + group * 2 * HalfBlock);
    SetScales(to, group, d * static_cast<float>(scale - 32));
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

void UnpackMXFP4(const std::uint8_t* block, const ScaledIntegers& to)
{
  UnpackByTable(SmallFloats, block + 1, to.integers);
  SetScales(to, 0, HalfPower(block[0]));
}

/// Half a block of Q6_K, 128 elements: 64 bytes of lower bits, 32 of upper bits.
void UnpackHalfOfQ6_K(const std::uint8_t* HWY_RESTRICT lower,
  const std::uint8_t* HWY_RESTRICT upper, std::int8_t* HWY_RESTRICT integers)
{
  constexpr std::size_t size = 32;
  for (std::size_t i = 0; i < size; ++i)
  {
    const int bits = upper[i];
    integers[i] = Integer((LowHalf(lower[i]) | (bits & 3) << 4) - 32);
    integers[i + size] = Integer((LowHalf(lower[i + size]) | (bits >> 2 & 3) << 4) - 32);
    integers[i + 2 * size] = Integer((HighHalf(lower[i]) | (bits >> 4 & 3) << 4) - 32);
    integers[i + 3 * size] = Integer((HighHalf(lower[i + size]) | (bits >> 6) << 4) - 32);
  }
}

void UnpackQ6_K(const std::uint8_t* block, const ScaledIntegers& to)
{
  UnpackHalfOfQ6_K(block, block + 128, to.integers);
  UnpackHalfOfQ6_K(block + 64, block + 160, to.integers + MaximumBlockElements / 2);
  const float d = LoadHalf(block + 208);
  for (std::size_t group = 0; group < MaximumGroups; ++group)
  {
    to.SetScale(group, d * static_cast<float>(static_cast<std::int8_t>(block[192 + group])));
  }
}

/// The numbers of a block.
template<std::size_t Elements, bool HasOffsets>
HWY_INLINE void ScaleIntegers(const ScaledIntegers& block, float* HWY_RESTRICT values)
{
  const hn::CappedTag<float, ScaleGroup> d;
  using V = hn::Vec<decltype(d)>;
  const hn::RebindToSigned<decltype(d)> ofIntegers;
  const hn::Rebind<std::int8_t, decltype(d)> ofBytes;
  for (std::size_t i = 0; i < Elements; i += ScaleGroup)
  {
    const V scale = hn::Set(d, block.scales[i / ScaleGroup]);
    for (std::size_t j = i; j < i + ScaleGroup; j += hn::Lanes(d))
    {
      const auto integers = hn::PromoteTo(ofIntegers, hn::LoadU(ofBytes, block.integers + j));
      V numbers = hn::Mul(scale, hn::ConvertTo(d, integers));
      if constexpr (HasOffsets)
      {
        numbers = hn::Add(numbers, hn::Set(d, block.offsets[i / ScaleGroup]));
      }
      hn::StoreU(numbers, d, values + j);
    }
  }
}

/// What is done with `count` blocks of a type.
struct BlockFunctions
{
  void (*unpack)(const std::uint8_t* blocks, std::size_t count, ScaledIntegers to);
  void (*widen)(const std::uint8_t* blocks, std::size_t count, float* values);
};

template<DType Type, std::size_t Elements, bool HasOffsets,
  void (*Unpack)(const std::uint8_t* block, const ScaledIntegers& to)>
void UnpackAll(const std::uint8_t* blocks, std::size_t count, ScaledIntegers to)
{
  const std::size_t bytes = BlockBytes(Type);
  for (std::size_t b = 0; b < count; ++b)
  {
    Unpack(blocks + b * bytes, to);
    to.integers += Elements;
    to.scales += Elements / ScaleGroup * to.stride;
    if constexpr (HasOffsets)
    {
      to.offsets += Elements / ScaleGroup * to.stride;
    }
  }
}

template<DType Type, std::size_t Elements, bool HasOffsets,
  void (*Unpack)(const std::uint8_t* block, const ScaledIntegers& to)>
void WidenAll(const std::uint8_t* blocks, std::size_t count, float* values)
{
  const std::size_t bytes = BlockBytes(Type);
  std::array<std::int8_t, Elements> integers; // each of which is set before it is read
  std::array<float, Elements / ScaleGroup> scales;
  std::array<float, Elements / ScaleGroup> offsets;
  const ScaledIntegers block = { integers.data(), scales.data(), offsets.data(), 1 };
  for (std::size_t b = 0; b < count; ++b)
  {
    Unpack(blocks + b * bytes, block);
    ScaleIntegers<Elements, HasOffsets>(block, values + b * Elements);
  }
}

template<DType Type, std::size_t Elements, bool HasOffsets,
  void (*Unpack)(const std::uint8_t* block, const ScaledIntegers& to)>
constexpr BlockFunctions Functions = { UnpackAll<Type, Elements, HasOffsets, Unpack>,
  WidenAll<Type, Elements, HasOffsets, Unpack> };

const BlockFunctions& FunctionsOf(DType dtype)
{
  // In the order of DType.
  static constexpr std::array<BlockFunctions, 13> all = {
    Functions<DType::Q4_0, 32, false, UnpackQ4_0>, Functions<DType::Q4_1, 32, true, UnpackQ4_1>,
    Functions<DType::Q5_0, 32, false, UnpackQ5_0>, Functions<DType::Q5_1, 32, true, UnpackQ5_1>,
    Functions<DType::Q8_0, 32, false, UnpackQ8_0>, Functions<DType::Q2_K, 256, true, UnpackQ2_K>,
    Functions<DType::Q3_K, 256, false, UnpackQ3_K>, Functions<DType::Q4_K, 256, true, UnpackQ4_K>,
    Functions<DType::Q5_K, 256, true, UnpackQ5_K>, Functions<DType::Q6_K, 256, false, UnpackQ6_K>,
    Functions<DType::IQ4_NL, 32, false, UnpackIQ4_NL>,
    Functions<DType::IQ4_XS, 256, false, UnpackIQ4_XS>,
    Functions<DType::MXFP4, 32, false, UnpackMXFP4>
  };
  return all[static_cast<std::size_t>(dtype) - static_cast<std::size_t>(DType::Q4_0)];
}

void WidenBlocksOf(DType dtype, const std::byte* blocks, std::size_t count, float* values)
{
  FunctionsOf(dtype).widen(reinterpret_cast<const std::uint8_t*>(blocks), count, values);
}

void UnpackBlocksOf(
  DType dtype, const std::byte* blocks, std::size_t count, const ScaledIntegers& to)
{
  FunctionsOf(dtype).unpack(reinterpret_cast<const std::uint8_t*>(blocks), count, to);
}

void WidenHalvesOf(const std::byte* halves, std::size_t count, float* values)
{
  std::size_t i = 0;
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 // which has an instruction for it
  const hn::CappedTag<float, 16> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> ofHalves;
  const auto* from = reinterpret_cast<const hwy::float16_t*>(halves);
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d))
  {
    hn::StoreU(hn::PromoteTo(d, hn::LoadU(ofHalves, from + i)), d, values + i);
  }
#endif
  for (; i < count; ++i)
  {
    values[i] = LoadHalf(reinterpret_cast<const std::uint8_t*>(halves) + 2 * i);
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

HWY_EXPORT(UnpackBlocksOf);
HWY_EXPORT(WidenBlocksOf);
HWY_EXPORT(WidenHalvesOf);
HWY_EXPORT(WidenBrainFloatsOf);

void WidenBlocks(DType dtype, const std::byte* blocks, std::size_t count, float* values)
{
  HWY_DYNAMIC_DISPATCH(WidenBlocksOf)(dtype, blocks, count, values);
}

void UnpackBlocks(DType dtype, const std::byte* blocks, std::size_t count, const ScaledIntegers& to)
{
  HWY_DYNAMIC_DISPATCH(UnpackBlocksOf)(dtype, blocks, count, to);
}

bool HasOffsets(DType dtype)
{
  switch (dtype)
  {
    case DType::Q4_1:
    case DType::Q5_1:
    case DType::Q2_K:
    case DType::Q4_K:
    case DType::Q5_K:
      return true;
    default:
      return false;
  }
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
