#pragma once

#include "Tensor.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace atlas
{

/// A matrix of unsigned integers of up to 8 bits each, which follow each other without gaps in
/// little-endian words, along the rows or along the columns of the matrix.
struct PackedCodes
{
  enum class Order
  {
    LowFirst,  ///< integer p along that axis has the bits from bit p * bits on
    HighFirst, ///< of 4 bits in bytes: the first one has the upper half
    Awq        ///< of 4 bits in 4 bytes: 0, 2, 4, 6, 1, 3, 5, 7, from the lowest bits on
  };

  const std::byte* data = nullptr;
  std::int64_t bits = 4;
  std::int64_t wordBytes = 1; ///< 1 or 4
  bool alongRows = true;
  std::int64_t step = 1;   ///< words between a word and the next one along that axis
  std::int64_t stride = 0; ///< words between the first words of two rows; or of two columns
  Order order = Order::LowFirst;

  /// The integer with these indices along that axis and along the other one.
  std::uint8_t At(std::int64_t along, std::int64_t across) const;
};

/// A matrix whose numbers are stored as codes of a few bits, with factors for blocks of them in
/// other tensors, as published models have them: MXFP4, FP8, GPTQ, AWQ, compressed-tensors,
/// bitsandbytes, MLX. With the scale s, zero z and bias b of its block, a code c stands for
/// s (v(c) - z) + b, in single precision and this order. A tensor with more than two axes counts
/// all but the last one as rows.
struct PackedNumbers
{
  std::string name; ///< of the format, such as "GPTQ, 4 bits"
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  PackedCodes codes;
  std::vector<float> values; ///< v of each code; empty: v(c) = c + base
  float base = 0;
  std::int64_t blockRows = 1; ///< rows and columns that share a scale
  std::int64_t blockColumns = 1;
  std::int64_t blocks = 1;         ///< of a row
  TensorView scales;               ///< [rows / blockRows, blocks]; none: 1
  bool scalesAreByColumn = false;  ///< [blocks, rows] instead
  TensorView zeros;                ///< [rows, blocks], or one for all; none: 0
  TensorView biases;               ///< likewise
  std::vector<std::int32_t> group; ///< the block of each column, unless they follow each other
  float divisor = 1;               ///< of all scales
  float bias = 0;                  ///< added to all numbers

  /// Numbers begin <= i < end, row by row.
  void ToFloat(std::uint64_t begin, std::uint64_t end, float* values) const;

  /// So many numbers of each of some rows, of the first one from number `begin` on.
  void LinesToFloat(
    std::uint64_t begin, std::uint64_t lines, std::uint64_t width, float* values) const;

  /// The number of bytes that the codes of `count` numbers take.
  std::uint64_t BytesOf(std::uint64_t count) const
  {
    return count * static_cast<std::uint64_t>(this->codes.bits) / 8;
  }
};

/// A tensor of these numbers, of as many elements.
TensorView ViewOf(PackedNumbers numbers, Shape shape);

/// Elements from `first` on of a packed tensor, with another shape.
TensorView PartOf(const TensorView& packed, std::uint64_t first, Shape shape);

/// Widens a rectangle of a tensor's numbers, line by line: `width` numbers of each line, of the
/// first one from number `begin` on. Lines begin `stride` numbers apart.
void LinesToFloat(const TensorView& view, std::uint64_t begin, std::uint64_t stride,
  std::uint64_t lines, std::uint64_t width, float* values);

/// The type of a tensor for readers: its name or, of packed numbers, that of their format.
std::string TypeOf(const TensorView& view);

/// Calls `visit` with a tensor and, if its numbers are packed, the tensors of their factors.
void VisitStored(const TensorView& view, const std::function<void(const TensorView&)>& visit);

}
