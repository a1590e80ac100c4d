#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// The supported element types; all are little-endian.
enum class DType
{
  F64,
  F32,
  F16,
  BF16,
  I64,
  I32,
  I16,
  I8,
  U8,
  BOOL, ///< one byte, 0 or 1
  U32,
  F8_E4M3, ///< floats of 8 bits: 4 of the exponent, 3 of the mantissa (OCP 8-bit Floating Point)
  F8_E5M2, ///< likewise: 5 and 2, the upper half of F16
  F8_E8M0, ///< 2^(e - 127) for a byte e, of which 255 is no number
  Q4_0,    ///< this and those below: blocks of numbers of a few bits each, as in GGUF files; see
           ///< Dequantize.h
  Q4_1,
  Q5_0,
  Q5_1,
  Q8_0,
  Q2_K,
  Q3_K,
  Q4_K,
  Q5_K,
  Q6_K,
  IQ4_NL,
  IQ4_XS,
  MXFP4,
  Packed ///< numbers of a few bits whose scales are in other tensors; see PackedNumbers.h
};

/// True for F64, F32, F16, BF16, floats of 8 bits, and numbers of a few bits.
bool IsFloating(DType dtype);

/// True for floats of 8 bits.
bool IsFloatOfByte(DType dtype);

/// True for a type whose elements have no bytes of their own, but share those of a block.
bool IsBlock(DType dtype);

/// The number of consecutive elements that share a block; 1 for all other types.
std::size_t BlockElements(DType dtype);

/// Size of a block in bytes; that of one element for all other types.
std::size_t BlockBytes(DType dtype);

/// Size of one element, in bytes. Throws FormatError for blocks; see TensorView::Bytes.
std::size_t ByteSize(DType dtype);

/// The name used in safetensors headers, such as "F32", or that of a block, such as "Q8_0".
std::string_view Name(DType dtype);

/// The type with that name, or std::nullopt if it is not supported. Blocks are not: no safetensors
/// file holds them.
std::optional<DType> DTypeFromName(std::string_view name);

/// The names of the types that DTypeFromName knows, separated by ", ", for error messages.
std::string KnownDTypes();

using Shape = std::vector<std::int64_t>;

/// "[5, 3]"
std::string ToString(const Shape& shape);

/// The number of elements of a shape with non-negative sizes, or std::nullopt if it overflows 64
/// bits.
std::optional<std::uint64_t> ElementCount(const Shape& shape);

struct PackedNumbers;

/// A tensor in memory that is owned elsewhere: row-major, packed, not necessarily aligned. A block
/// lies within a row of the last axis.
struct TensorView
{
  DType dtype = DType::F32;
  Shape shape;
  const std::byte* data = nullptr;
  /// Unless 0, the rows (of the first axis) of each group of this even number n are stored in
  /// another order: row i < n/2 as row 2i of the group, and row i + n/2 as row 2i + 1. GGUF files
  /// have the queries and keys of llama so. The functions below that return numbers undo it.
  std::int64_t interleavedRows = 0;
  /// Of DType::Packed: the numbers, of which element 0 is that of this index. `data` is where the
  /// bits of it are, or near.
  std::shared_ptr<const PackedNumbers> packed = nullptr;
  std::uint64_t firstPacked = 0;

  std::uint64_t Count() const { return ElementCount(this->shape).value_or(0); }

  /// The size of the stored tensor in bytes, without its scales if they are in other tensors.
  std::uint64_t Bytes() const;

  /// Whether the bytes are those of the elements in their order: no blocks, no interleaved rows.
  bool IsPlain() const { return !IsBlock(this->dtype) && this->interleavedRows == 0; }

  /// Element `i` in row-major order as double. 64-bit integers beyond 2^53 are rounded.
  double At(std::uint64_t i) const;

  /// All elements in row-major order as double.
  std::vector<double> ToDouble() const;

  /// Copies elements begin <= i < end of a floating-point tensor; F64 is rounded to float. Throws
  /// FormatError for an integer type.
  void ToFloat(std::uint64_t begin, std::uint64_t end, float* values) const;

  /// All elements of an integer or Boolean tensor, as they are stored. Throws FormatError for a
  /// floating-point type.
  std::vector<std::int64_t> ToInteger() const;

private:
  std::uint64_t Columns() const;
  std::uint64_t StoredRow(std::uint64_t row) const;
  double StoredAt(std::uint64_t i) const;
  void StoredToFloat(std::uint64_t begin, std::uint64_t end, float* values) const;
};

/// Element `i` of a packed array, which may be unaligned.
template<class T>
T LoadElement(const std::byte* data, std::uint64_t i)
{
  T value;
  std::memcpy(&value, data + i * sizeof(T), sizeof(T));
  return value;
}

/// A tensor that owns its bytes, which are those of its elements in their order.
struct Tensor
{
  DType dtype = DType::F32;
  Shape shape;
  std::vector<std::byte> bytes;

  TensorView View() const { return { this->dtype, this->shape, this->bytes.data() }; }

  /// Stores `values` (row-major) as F64 or F32. Throws FormatError for any other type.
  static Tensor FromDouble(DType dtype, Shape shape, const std::vector<double>& values);

  /// Stores `values` (row-major) as I64.
  static Tensor FromInteger(Shape shape, const std::vector<std::int64_t>& values);
};

/// Tensors by name, as in a file or a data object.
using TensorViews = std::map<std::string, TensorView, std::less<>>;
using Tensors = std::map<std::string, Tensor, std::less<>>;

/// Views of these tensors, which must outlive the views.
TensorViews ViewsOf(const Tensors& tensors);

/// Free text stored with the tensors: `__metadata__` of safetensors.
using Metadata = std::map<std::string, std::string, std::less<>>;

}
