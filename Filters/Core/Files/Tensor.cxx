#include "Tensor.h"

#include "Dequantize.h"
#include "Error.h"
#include "Joined.h"

#include <algorithm>
#include <array>
#include <cstring>
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
};

struct BlockInfo
{
  DType dtype;
  std::string_view name;
  std::size_t elements;
  std::size_t bytes;
};

constexpr std::array<DTypeInfo, 10> DTypes = { {
  { DType::F64, "F64", 8 },
  { DType::F32, "F32", 4 },
  { DType::F16, "F16", 2 },
  { DType::BF16, "BF16", 2 },
  { DType::I64, "I64", 8 },
  { DType::I32, "I32", 4 },
  { DType::I16, "I16", 2 },
  { DType::I8, "I8", 1 },
  { DType::U8, "U8", 1 },
  { DType::BOOL, "BOOL", 1 },
} };

constexpr std::array<BlockInfo, 13> Blocks = { {
  { DType::Q4_0, "Q4_0", 32, 18 },
  { DType::Q4_1, "Q4_1", 32, 20 },
  { DType::Q5_0, "Q5_0", 32, 22 },
  { DType::Q5_1, "Q5_1", 32, 24 },
  { DType::Q8_0, "Q8_0", 32, 34 },
  { DType::Q2_K, "Q2_K", 256, 84 },
  { DType::Q3_K, "Q3_K", 256, 110 },
  { DType::Q4_K, "Q4_K", 256, 144 },
  { DType::Q5_K, "Q5_K", 256, 176 },
  { DType::Q6_K, "Q6_K", 256, 210 },
  { DType::IQ4_NL, "IQ4_NL", 32, 18 },
  { DType::IQ4_XS, "IQ4_XS", 256, 136 },
  { DType::MXFP4, "MXFP4", 32, 17 },
} };

const DTypeInfo& Info(DType dtype)
{
  return DTypes[static_cast<std::size_t>(dtype)];
}

const BlockInfo& InfoOfBlock(DType dtype)
{
  return Blocks[static_cast<std::size_t>(dtype) - DTypes.size()];
}

/// Elements begin <= i < end of blocks, which need not begin or end with a block.
void WidenRange(
  DType dtype, const std::byte* data, std::uint64_t begin, std::uint64_t end, float* values)
{
  const BlockInfo& info = InfoOfBlock(dtype);
  std::array<float, MaximumBlockElements> part{};
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

template<class From>
void Narrow(const std::byte* data, std::uint64_t begin, std::uint64_t end, float* values)
{
  for (std::uint64_t i = begin; i < end; ++i)
  {
    values[i - begin] = static_cast<float>(LoadElement<From>(data, i));
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
         dtype == DType::BF16 || IsBlock(dtype);
}

bool IsBlock(DType dtype)
{
  return static_cast<std::size_t>(dtype) >= DTypes.size();
}

std::size_t BlockElements(DType dtype)
{
  return IsBlock(dtype) ? InfoOfBlock(dtype).elements : 1;
}

std::size_t BlockBytes(DType dtype)
{
  return IsBlock(dtype) ? InfoOfBlock(dtype).bytes : Info(dtype).bytes;
}

std::size_t ByteSize(DType dtype)
{
  if (IsBlock(dtype))
  {
    throw FormatError("expected elements with bytes of their own (" + KnownDTypes() + "), found " +
                      std::string(Name(dtype)) + ", which are stored in blocks.");
  }
  return Info(dtype).bytes;
}

std::string_view Name(DType dtype)
{
  return IsBlock(dtype) ? InfoOfBlock(dtype).name : Info(dtype).name;
}

std::optional<DType> DTypeFromName(std::string_view name)
{
  for (const DTypeInfo& info : DTypes)
  {
    if (info.name == name)
    {
      return info.dtype;
    }
  }
  return std::nullopt;
}

std::string KnownDTypes()
{
  return NamesOf(DTypes);
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

/// The number of elements of one row of the first axis.
std::uint64_t TensorView::Columns() const
{
  const auto rows = static_cast<std::uint64_t>(this->shape.front());
  return std::max<std::uint64_t>(this->Count() / std::max<std::uint64_t>(rows, 1), 1);
}

/// The place of a row of the first axis.
std::uint64_t TensorView::StoredRow(std::uint64_t row) const
{
  const auto group = static_cast<std::uint64_t>(this->interleavedRows);
  const std::uint64_t i = row % group;
  return row - i + (i < group / 2 ? 2 * i : 2 * i - group + 1);
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
    WidenRange(this->dtype, this->data, i, i + 1, &value);
    return static_cast<double>(value);
  }
  switch (this->dtype)
  {
    case DType::F64:
      return LoadElement<double>(this->data, i);
    case DType::F32:
      return static_cast<double>(LoadElement<float>(this->data, i));
    case DType::F16:
      return static_cast<double>(static_cast<float>(LoadElement<Eigen::half>(this->data, i)));
    case DType::BF16:
      return static_cast<double>(static_cast<float>(LoadElement<Eigen::bfloat16>(this->data, i)));
    case DType::I64:
      return static_cast<double>(LoadElement<std::int64_t>(this->data, i));
    case DType::I32:
      return LoadElement<std::int32_t>(this->data, i);
    case DType::I16:
      return LoadElement<std::int16_t>(this->data, i);
    case DType::I8:
      return LoadElement<std::int8_t>(this->data, i);
    case DType::U8:
    case DType::BOOL:
      return LoadElement<std::uint8_t>(this->data, i);
    default: // blocks
      return std::numeric_limits<double>::quiet_NaN();
  }
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
      Narrow<double>(this->data, begin, end, values);
      break;
    case DType::F16:
      WidenHalves(this->data + begin * sizeof(Eigen::half), end - begin, values);
      break;
    case DType::BF16:
      WidenBrainFloats(this->data + begin * sizeof(Eigen::bfloat16), end - begin, values);
      break;
    default:
      throw FormatError("expected a floating type (F64, F32, F16, BF16), found " +
                        std::string(Name(this->dtype)) + ".");
  }
}

std::vector<std::int64_t> TensorView::ToInteger() const
{
  std::vector<std::int64_t> values(this->Count());
  for (std::size_t i = 0; i < values.size(); ++i)
  {
    switch (this->dtype)
    {
      case DType::I64:
        values[i] = LoadElement<std::int64_t>(this->data, i);
        break;
      case DType::I32:
        values[i] = LoadElement<std::int32_t>(this->data, i);
        break;
      case DType::I16:
        values[i] = LoadElement<std::int16_t>(this->data, i);
        break;
      case DType::I8:
        values[i] = std::int64_t{ LoadElement<std::int8_t>(this->data, i) };
        break;
      case DType::U8:
      case DType::BOOL:
        values[i] = LoadElement<std::uint8_t>(this->data, i);
        break;
      default:
        throw FormatError("expected an integer type (I64, I32, I16, I8, U8, BOOL), found " +
                          std::string(Name(this->dtype)) + ".");
    }
  }
  return values;
}

Tensor Tensor::FromDouble(DType dtype, Shape shape, const std::vector<double>& values)
{
  if (dtype != DType::F64 && dtype != DType::F32)
  {
    throw FormatError(
      "expected F64 or F32 to store numbers, found " + std::string(Name(dtype)) + ".");
  }
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
