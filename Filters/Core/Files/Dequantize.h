#pragma once

#include "Tensor.h"

#include <cstddef>

namespace atlas
{

/// The most elements of a block.
constexpr std::size_t MaximumBlockElements = 256;

/// Computes the numbers of `count` consecutive blocks, BlockElements(dtype) floats each.
///
/// The layouts are those of ggml, as its GGUF files have them; all numbers are little-endian and
/// products are rounded to single precision in this order. d and m are halves; q are integers.
///
/// Blocks of 32, where a byte of q holds element i in its low and element i + 16 in its high half:
/// * Q8_0, 34 bytes: d, 32 signed bytes q; d q.
/// * Q4_0, 18 bytes: d, 16 bytes q; d (q - 8).
/// * Q4_1, 20 bytes: d, m, 16 bytes q; d q + m.
/// * Q5_0, 22 bytes: d, 32 bits with the fifth bit of each q, 16 bytes q; d (q - 16).
/// * Q5_1, 24 bytes: d, m, 32 bits with the fifth bit of each q, 16 bytes q; d q + m.
///
/// Blocks of 256:
/// * Q4_K, 144 bytes: d, m, 12 bytes with a scale s and an offset o of 6 bits for each of 8 groups
///   of 32, 128 bytes q; (d s) q - m o. Each 32 bytes of q hold one group in their low and the next
///   in their high halves.
/// * Q6_K, 210 bytes: 128 bytes with the lower four and 64 with the upper two bits of q, 16 signed
///   bytes with a scale s for each group of 16, d; (d s) (q - 32).
///
/// The type must be a block.
void WidenBlocks(DType dtype, const std::byte* blocks, std::size_t count, float* values);

/// Computes the floats that are equal to `count` halves (IEEE 754: 1 sign bit, 5 of the exponent,
/// 10 of the mantissa).
void WidenHalves(const std::byte* halves, std::size_t count, float* values);

}
