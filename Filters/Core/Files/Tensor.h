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
  BOOL ///< one byte, 0 or 1
};

/// True for F64, F32, F16 and BF16.
bool IsFloating(DType dtype);

/// Size of one element, in bytes.
std::size_t ByteSize(DType dtype);

/// The name used in safetensors headers, such as "F32".
std::string_view Name(DType dtype);

/// The type with that name, or std::nullopt if it is not supported.
std::optional<DType> DTypeFromName(std::string_view name);

/// The names of all supported types, separated by ", ", for error messages.
std::string KnownDTypes();

using Shape = std::vector<std::int64_t>;

/// "[5, 3]"
std::string ToString(const Shape& shape);

/// The number of elements of a shape with non-negative sizes, or std::nullopt if it overflows 64
/// bits.
std::optional<std::uint64_t> ElementCount(const Shape& shape);

/// A tensor in memory that is owned elsewhere: row-major, packed, not necessarily aligned.
struct TensorView
{
  DType dtype = DType::F32;
  Shape shape;
  const std::byte* data = nullptr;

  std::uint64_t Count() const { return ElementCount(this->shape).value_or(0); }

  /// Element `i` in row-major order as double. 64-bit integers beyond 2^53 are rounded.
  double At(std::uint64_t i) const;

  /// All elements in row-major order as double.
  std::vector<double> ToDouble() const;

  /// Copies elements begin <= i < end of a floating-point tensor; F64 is rounded to float. Throws
  /// FormatError for an integer type.
  void ToFloat(std::uint64_t begin, std::uint64_t end, float* values) const;

  /// All elements of an integer or Boolean tensor. Throws FormatError for a floating-point type.
  std::vector<std::int64_t> ToInteger() const;
};

/// A tensor that owns its bytes.
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

/// Free text stored with the tensors: `__metadata__` of safetensors.
using Metadata = std::map<std::string, std::string, std::less<>>;

}
