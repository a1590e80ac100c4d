#pragma once

#include "MatrixProduct.h"

#include <cstdint>

namespace atlas
{

/// The most rows of AddRowProducts. For more of them packing the matrix first is faster.
constexpr std::int64_t FewRows = 4;

/// Computes product += from b for at most FewRows rows, without a copy of b: `from` is
/// [rows, inner], b [inner, columns] and `product` [rows, columns], the first and the last with
/// these strides. Every number is added in the order of the inner index, as PackedColumns does:
/// from zeros, in any parts of the inner index, the bytes are those of its products in single
/// precision with the same instruction set.
void AddRowProducts(std::int64_t rows, std::int64_t inner, const float* from, std::int64_t stride,
  const MatrixBlock& b, std::int64_t columns, float* product, std::int64_t productStride);

/// The columns of IntegerColumns.
constexpr std::int64_t IntegerColumnCount = 32;

/// Columns of numbers scale * integer + offset, in single precision and this order, where 16
/// integers of a column share both.
struct IntegerColumns
{
  const std::int8_t* integers = nullptr; ///< of the columns, one behind the other
  std::int64_t stride = 0;               ///< between two of them; a multiple of 16
  const float* scales = nullptr;         ///< [inner / 16, columns]
  const float* offsets = nullptr;        ///< likewise; nullptr: 0
};

/// AddRowProducts with these columns: `inner` is a multiple of 16.
void AddRowProducts(std::int64_t rows, std::int64_t inner, const float* from, std::int64_t stride,
  const IntegerColumns& columns, float* product, std::int64_t productStride);

}
