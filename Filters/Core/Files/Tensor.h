#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// Element types that Core reads; all little-endian.
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
  BOOL ///< a byte: 0 or 1
};

/// True for F64, F32, F16 and BF16.
bool IsFloating(DType dtype);

/// Size of one element, in bytes.
std::size_t ByteSize(DType dtype);

/// The name that safetensors headers use, such as "F32".
std::string_view Name(DType dtype);

/// The type of that name, or nothing if Core does not know it.
std::optional<DType> DTypeFromName(std::string_view name);

/// Every known name, separated by ", "; for error messages.
std::string KnownDTypes();

using Shape = std::vector<std::int64_t>;

/// "[5, 3]"
std::string ToString(const Shape& shape);

/// Number of elements of a shape whose sizes are not negative, or nothing if it overflows 64 bits.
std::optional<std::uint64_t> ElementCount(const Shape& shape);

/// A tensor in memory that somebody else owns: row-major, packed, at any alignment.
struct TensorView
{
  DType dtype = DType::F32;
  Shape shape;
  const std::byte* data = nullptr;

  std::uint64_t Count() const { return ElementCount(this->shape).value_or(0); }

  /// Element `i` in row-major order, widened to double. 64-bit integers beyond 2^53 are rounded.
  double At(std::uint64_t i) const;

  /// All elements in row-major order, widened to double.
  std::vector<double> ToDouble() const;

  /// Elements begin <= i < end of a tensor of floating type, rounded to float where they are
  /// double. Throws FormatError for an integer type.
  void ToFloat(std::uint64_t begin, std::uint64_t end, float* values) const;

  /// All elements of an integer or truth tensor. Throws FormatError for a floating type.
  std::vector<std::int64_t> ToInteger() const;
};

/// A tensor that owns its bytes.
struct Tensor
{
  DType dtype = DType::F32;
  Shape shape;
  std::vector<std::byte> bytes;

  TensorView View() const { return { this->dtype, this->shape, this->bytes.data() }; }

  /// Stores `values` (row-major) as F64 or F32. Throws FormatError for another dtype.
  static Tensor FromDouble(DType dtype, Shape shape, const std::vector<double>& values);

  /// Stores `values` (row-major) as I64.
  static Tensor FromInteger(Shape shape, const std::vector<std::int64_t>& values);
};

/// Named tensors, as a file or a data object holds them.
using TensorViews = std::map<std::string, TensorView, std::less<>>;
using Tensors = std::map<std::string, Tensor, std::less<>>;

/// Free text beside the tensors: safetensors' `__metadata__`.
using Metadata = std::map<std::string, std::string, std::less<>>;

}
