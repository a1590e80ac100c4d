#pragma once

#include "Tensor.h"

#include <cstddef>
#include <cstdint>

namespace atlas
{

/// The most elements of a block.
constexpr std::size_t MaximumBlockElements = 256;

/// Computes the numbers of `count` consecutive blocks, BlockElements(dtype) floats each. The type
/// must be a block.
///
/// The layouts are those of ggml, as its GGUF files have them; numbers are little-endian and
/// products are rounded to single precision in this order. d and m are halves; q are integers.
/// v(q) is -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113 for q = 0
/// to 15.
///
/// Blocks of 32, where a byte of q holds element i in its low and element i + 16 in its high half:
/// * Q8_0, 34 bytes: d, 32 signed bytes q; d q.
/// * Q4_0, 18 bytes: d, 16 bytes q; d (q - 8). Q4_1, 20 bytes: d, m, q; d q + m.
/// * Q5_0, 22 bytes: d, 32 bits with the fifth bit of each q, 16 bytes q; d (q - 16).
/// * Q5_1, 24 bytes: d, m, and the same; d q + m.
/// * IQ4_NL, 18 bytes: d, 16 bytes q; d v(q).
/// * MXFP4, 17 bytes: a byte e, 16 bytes q; 2^(e - 128) w(q), where w(q) is 0, 1, 2, 3, 4, 6, 8, 12
///   for q = 0 to 7 and -w(q - 8) beyond (OCP Microscaling Formats 1.0, doubled).
///
/// Blocks of 256, with a scale s and an offset o for each group:
/// * Q2_K, 84 bytes: 16 groups, a byte with s in its lower and o in its upper half each; 64 bytes
/// q,
///   d, m; (d s) q - m o. Each 32 bytes of q hold four times 32 elements, the lowest bits first.
/// * Q3_K, 110 bytes: 32 bytes with the third bit of q, of eight times 32 elements; 64 bytes with
///   the others, as in Q2_K; 12 bytes with s of 6 bits of 16 groups; d; (d (s - 32)) (q - 4).
/// * Q4_K, 144 bytes: d, m, 12 bytes with s and o of 6 bits of 8 groups, 128 bytes q; (d s) q - m
/// o.
///   Each 32 bytes of q hold one group in their low and the next in their high halves.
/// * Q5_K, 176 bytes: as Q4_K, with 32 bytes before q that have its fifth bits.
/// * Q6_K, 210 bytes: 128 bytes with the lower four and 64 with the upper two bits of q, 16 signed
///   bytes s, d; (d s) (q - 32).
/// * IQ4_XS, 136 bytes: d; the upper two bits of s of 8 groups, 2 bytes, and the lower four, 4
///   bytes; 128 bytes q, each 16 of them as in IQ4_NL; (d (s - 32)) v(q).
void WidenBlocks(DType dtype, const std::byte* blocks, std::size_t count, float* values);

/// The elements of a block that share a scale, and an offset.
constexpr std::size_t ScaleGroup = 16;

/// Blocks as integers: element i is scale * integers[i] + offset of group i / ScaleGroup, in single
/// precision and this order.
struct ScaledIntegers
{
  std::int8_t* integers = nullptr;
  float* scales = nullptr;
  float* offsets = nullptr; ///< of the types of HasOffsets
  std::size_t stride = 1;   ///< between the scales of a group and of the next one

  void SetScale(std::size_t group, float scale) const
  {
    this->scales[group * this->stride] = scale;
  }
  void SetScale(std::size_t group, float scale, float offset) const
  {
    this->SetScale(group, scale);
    this->offsets[group * this->stride] = offset;
  }
};

/// Writes `count` consecutive blocks as integers. The numbers of WidenBlocks are equal to those of
/// the integers.
void UnpackBlocks(
  DType dtype, const std::byte* blocks, std::size_t count, const ScaledIntegers& to);

/// Whether the blocks of a type have offsets other than 0.
bool HasOffsets(DType dtype);

/// Where a row of a tensor is stored whose rows are interleaved in groups (see TensorView).
constexpr std::uint64_t InterleavedRow(std::uint64_t group, std::uint64_t row)
{
  const std::uint64_t i = row % group;
  return row - i + (i < group / 2 ? 2 * i : 2 * i - group + 1);
}

/// Computes the floats that are equal to `count` halves (IEEE 754: 1 sign bit, 5 of the exponent,
/// 10 of the mantissa).
void WidenHalves(const std::byte* halves, std::size_t count, float* values);

/// Computes the floats whose upper halves are `count` numbers of BF16; the lower ones are 0.
void WidenBrainFloats(const std::byte* numbers, std::size_t count, float* values);

/// The float that is equal to a float of 8 bits, of one of the types of IsFloatOfByte.
float WidenByte(DType dtype, std::uint8_t byte);

}
