#include "Tensor.h"

#include "Base/Error.h"
#include "Base/NamedValues.h"
#include "Dequantize.h"
#include "PackedNumbers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <limits>

#include <Eigen/Core>

namespace atlas
{
namespace
{

struct DTypeInfo
{
  DType dtype;
  std::string_view name;
  std::size_t bytes;
  std::size_t elements = 1; ///< that share these bytes
};

constexpr std::array<DTypeInfo, 28> DTypes = { {
  { DType::F64, "F64", 8 }, { DType::F32, "F32", 4 }, { DType::F16, "F16", 2 },
  { DType::BF16, "BF16", 2 }, { DType::I64, "I64", 8 }, { DType::I32, "I32", 4 },
  { DType::I16, "I16", 2 }, { DType::I8, "I8", 1 }, { DType::U8, "U8", 1 },
  { DType::BOOL, "BOOL", 1 }, { DType::U32, "U32", 4 }, { DType::F8_E4M3, "F8_E4M3", 1 },
  { DType::F8_E5M2, "F8_E5M2", 1 }, { DType::F8_E8M0, "F8_E8M0", 1 },
  { DType::Q4_0, "Q4_0", 18, 32 }, { DType::Q4_1, "Q4_1", 20, 32 }, { DType::Q5_0, "Q5_0", 22, 32 },
  { DType::Q5_1, "Q5_1", 24, 32 }, { DType::Q8_0, "Q8_0", 34, 32 },
  { DType::Q2_K, "Q2_K", 84, 256 }, { DType::Q3_K, "Q3_K", 110, 256 },
  { DType::Q4_K, "Q4_K", 144, 256 }, { DType::Q5_K, "Q5_K", 176, 256 },
  { DType::Q6_K, "Q6_K", 210, 256 }, { DType::IQ4_NL, "IQ4_NL", 18, 32 },
  { DType::IQ4_XS, "IQ4_XS", 136, 256 }, { DType::MXFP4, "MXFP4", 17, 32 },
  { DType::Packed, "packed", 1, 2 }, // what differs is in PackedNumbers
} };

const DTypeInfo& Info(DType dtype)
{
  return DTypes[static_cast<std::size_t>(dtype)];
}

/// Elements begin <= i < end of blocks, which need not begin or end with a block.
void WidenRange(
  DType dtype, const std::byte* data, std::uint64_t begin, std::uint64_t end, float* values)
{
  const DTypeInfo& info = Info(dtype);
  std::array<float, MaximumBlockElements> part; // of which what is written is read
  while (begin < end)
  {
    const std::byte* block = data + begin / info.elements * info.bytes;
    const std::size_t first = begin % info.elements;
    std::size_t count = end - begin;
    if (first == 0 && count >= info.elements)
    {
      count = count / info.elements * info.elements;
      WidenBlocks(dtype, block, count / info.elements, values);
    }
    else
    {
      count = std::min(count, info.elements - first);
      WidenBlocks(dtype, block, 1, part.data());
      std::copy_n(part.data() + first, count, values);
    }
    begin += count;
    values += count;
  }
}

/// Calls a function with element `i`, unless it is in a block.
template<class Call>
void CallWithElement(DType dtype, const std::byte* data, std::uint64_t i, const Call& call)
{
  switch (dtype)
  {
    case DType::F64:
      return call(LoadElement<double>(data, i));
    case DType::F32:
      return call(LoadElement<float>(data, i));
    case DType::F16:
      return call(static_cast<float>(LoadElement<Eigen::half>(data, i)));
    case DType::BF16:
      return call(static_cast<float>(LoadElement<Eigen::bfloat16>(data, i)));
    case DType::I64:
      return call(LoadElement<std::int64_t>(data, i));
    case DType::I32:
      return call(LoadElement<std::int32_t>(data, i));
    case DType::I16:
      return call(LoadElement<std::int16_t>(data, i));
    case DType::I8:
      return call(LoadElement<std::int8_t>(data, i));
    case DType::U8:
    case DType::BOOL:
      return call(LoadElement<std::uint8_t>(data, i));
    case DType::U32:
      return call(LoadElement<std::uint32_t>(data, i));
    case DType::F8_E4M3:
    case DType::F8_E5M2:
    case DType::F8_E8M0:
      return call(WidenByte(dtype, LoadElement<std::uint8_t>(data, i)));
    default:
      break;
  }
}

template<class To, class From>
std::vector<std::byte> Pack(const std::vector<From>& values)
{
  std::vector<std::byte> bytes(values.size() * sizeof(To));
  for (std::size_t i = 0; i < values.size(); ++i)
  {
    const To value = static_cast<To>(values[i]);
    std::memcpy(bytes.data() + i * sizeof(To), &value, sizeof(To));
  }
  return bytes;
}

}

bool IsFloating(DType dtype)
{
  return dtype == DType::F64 || dtype == DType::F32 || dtype == DType::F16 ||
         dtype == DType::BF16 || IsFloatOfByte(dtype) || IsBlock(dtype);
}

bool IsFloatOfByte(DType dtype)
{
  return dtype == DType::F8_E4M3 || dtype == DType::F8_E5M2 || dtype == DType::F8_E8M0;
}

bool IsBlock(DType dtype)
{
  return Info(dtype).elements > 1;
}

std::size_t BlockElements(DType dtype)
{
  return Info(dtype).elements;
}

std::size_t BlockBytes(DType dtype)
{
  return Info(dtype).bytes;
}

std::size_t ByteSize(DType dtype)
{
  if (IsBlock(dtype))
  {
    throw FormatError("expected elements with bytes of their own (", KnownDTypes(), "), found ",
      Name(dtype), ", which are stored in blocks.");
  }
  return Info(dtype).bytes;
}

std::string_view Name(DType dtype)
{
  return Info(dtype).name;
}

std::optional<DType> DTypeFromName(std::string_view name)
{
  const DTypeInfo* found = FindNamed(DTypes, name);
  return found == nullptr || found->elements > 1 ? std::nullopt : std::optional(found->dtype);
}

std::string KnownDTypes()
{
  std::vector<DTypeInfo> known;
  std::copy_if(DTypes.begin(), DTypes.end(), std::back_inserter(known),
    [](const DTypeInfo& info) { return info.elements == 1; });
  return NamesOf(known);
}

std::string ToString(const Shape& shape)
{
  return "[" + Joined(shape, [](std::int64_t size) { return std::to_string(size); }) + "]";
}

std::optional<std::uint64_t> ElementCount(const Shape& shape)
{
  std::uint64_t count = 1;
  for (const std::int64_t size : shape)
  {
    const auto factor = static_cast<std::uint64_t>(size);
    if (factor != 0 && count > std::numeric_limits<std::uint64_t>::max() / factor)
    {
      return std::nullopt;
    }
    count *= factor;
  }
  return count;
}

std::uint64_t TensorView::Bytes() const
{
  return this->packed != nullptr
           ? this->packed->BytesOf(this->Count())
           : this->Count() / BlockElements(this->dtype) * BlockBytes(this->dtype);
}

/// The number of elements of one row of the first axis.
std::uint64_t TensorView::Columns() const
{
  const auto rows = static_cast<std::uint64_t>(this->shape.front());
  return std::max<std::uint64_t>(this->Count() / std::max<std::uint64_t>(rows, 1), 1);
}

/// The place of a row of the first axis.
std::uint64_t TensorView::StoredRow(std::uint64_t row) const
{
  return InterleavedRow(static_cast<std::uint64_t>(this->interleavedRows), row);
}

double TensorView::At(std::uint64_t i) const
{
  if (this->interleavedRows == 0)
  {
    return this->StoredAt(i);
  }
  const std::uint64_t columns = this->Columns();
  return this->StoredAt(this->StoredRow(i / columns) * columns + i % columns);
}

double TensorView::StoredAt(std::uint64_t i) const
{
  if (IsBlock(this->dtype))
  {
    float value = 0;
    this->StoredToFloat(i, i + 1, &value);
    return static_cast<double>(value);
  }
  double value = 0;
  CallWithElement(
    this->dtype, this->data, i, [&value](auto element) { value = static_cast<double>(element); });
  return value;
}

std::vector<double> TensorView::ToDouble() const
{
  std::vector<double> values(this->Count());
  if (IsBlock(this->dtype))
  {
    std::vector<float> floats(values.size()); // each block is read once
    this->ToFloat(0, floats.size(), floats.data());
    std::copy(floats.begin(), floats.end(), values.begin());
    return values;
  }
  for (std::size_t i = 0; i < values.size(); ++i)
  {
    values[i] = this->At(i);
  }
  return values;
}

void TensorView::ToFloat(std::uint64_t begin, std::uint64_t end, float* values) const
{
  if (this->interleavedRows == 0)
  {
    this->StoredToFloat(begin, end, values);
    return;
  }
  const std::uint64_t columns = this->Columns();
  while (begin < end)
  {
    const std::uint64_t row = begin / columns;
    const std::uint64_t count = std::min(end, (row + 1) * columns) - begin;
    const std::uint64_t stored = this->StoredRow(row) * columns + begin % columns;
    this->StoredToFloat(stored, stored + count, values);
    begin += count;
    values += count;
  }
}

void TensorView::StoredToFloat(std::uint64_t begin, std::uint64_t end, float* values) const
{
  if (this->packed != nullptr)
  {
    this->packed->ToFloat(this->firstPacked + begin, this->firstPacked + end, values);
    return;
  }
  if (IsBlock(this->dtype))
  {
    WidenRange(this->dtype, this->data, begin, end, values);
    return;
  }
  if (begin == end && IsFloating(this->dtype))
  {
    return; // memcpy must not be called with a null pointer
  }
  switch (this->dtype)
  {
    case DType::F32:
      std::memcpy(values, this->data + begin * sizeof(float), (end - begin) * sizeof(float));
      break;
    case DType::F64:
      for (std::uint64_t i = begin; i < end; ++i)
      {
        values[i - begin] = static_cast<float>(LoadElement<double>(this->data, i));
      }
      break;
    case DType::F16:
      WidenHalves(this->data + begin * sizeof(Eigen::half), end - begin, values);
      break;
    case DType::BF16:
      WidenBrainFloats(this->data + begin * sizeof(Eigen::bfloat16), end - begin, values);
      break;
    case DType::F8_E4M3:
    case DType::F8_E5M2:
    case DType::F8_E8M0:
      std::transform(this->data + begin, this->data + end, values,
        [this](std::byte byte) { return WidenByte(this->dtype, static_cast<std::uint8_t>(byte)); });
      break;
    default:
      throw FormatError(
        "expected a floating type (F64, F32, F16, BF16), found ", Name(this->dtype), ".");
  }
}

std::vector<std::int64_t> TensorView::ToInteger() const
{
  std::vector<std::int64_t> values(this->Count());
  ThrowIf<FormatError>(!values.empty() && IsFloating(this->dtype),
    "expected an integer type (I64, I32, I16, I8, U8, U32, BOOL), found ", Name(this->dtype), ".");
  for (std::size_t i = 0; i < values.size(); ++i)
  {
    CallWithElement(this->dtype, this->data, i,
      [&value = values[i]](auto element) { value = static_cast<std::int64_t>(+element); });
  }
  return values;
}

Tensor Tensor::FromDouble(DType dtype, Shape shape, const std::vector<double>& values)
{
  ThrowIf<FormatError>(dtype != DType::F64 && dtype != DType::F32,
    "expected F64 or F32 to store numbers, found ", Name(dtype), ".");
  return { dtype, std::move(shape),
    dtype == DType::F64 ? Pack<double>(values) : Pack<float>(values) };
}

Tensor Tensor::FromInteger(Shape shape, const std::vector<std::int64_t>& values)
{
  return { DType::I64, std::move(shape), Pack<std::int64_t>(values) };
}

TensorViews ViewsOf(const Tensors& tensors)
{
  TensorViews views;
  for (const auto& [name, tensor] : tensors)
  {
    views.emplace(name, tensor.View());
  }
  return views;
}

}
