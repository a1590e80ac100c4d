#include "Tensor.h"

#include "Error.h"
#include "Joined.h"

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

const DTypeInfo& Info(DType dtype)
{
  return DTypes[static_cast<std::size_t>(dtype)];
}

/// Element `i` of a packed array, which may be unaligned.
template<class T>
T Load(const std::byte* data, std::uint64_t i)
{
  T value;
  std::memcpy(&value, data + i * sizeof(T), sizeof(T));
  return value;
}

template<class From>
void Narrow(const std::byte* data, std::uint64_t begin, std::uint64_t end, float* values)
{
  for (std::uint64_t i = begin; i < end; ++i)
  {
    values[i - begin] = static_cast<float>(Load<From>(data, i));
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
  return dtype == DType::F64 || dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16;
}

std::size_t ByteSize(DType dtype)
{
  return Info(dtype).bytes;
}

std::string_view Name(DType dtype)
{
  return Info(dtype).name;
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

double TensorView::At(std::uint64_t i) const
{
  switch (this->dtype)
  {
    case DType::F64:
      return Load<double>(this->data, i);
    case DType::F32:
      return static_cast<double>(Load<float>(this->data, i));
    case DType::F16:
      return static_cast<double>(static_cast<float>(Load<Eigen::half>(this->data, i)));
    case DType::BF16:
      return static_cast<double>(static_cast<float>(Load<Eigen::bfloat16>(this->data, i)));
    case DType::I64:
      return static_cast<double>(Load<std::int64_t>(this->data, i));
    case DType::I32:
      return Load<std::int32_t>(this->data, i);
    case DType::I16:
      return Load<std::int16_t>(this->data, i);
    case DType::I8:
      return Load<std::int8_t>(this->data, i);
    case DType::U8:
    case DType::BOOL:
      return Load<std::uint8_t>(this->data, i);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

std::vector<double> TensorView::ToDouble() const
{
  std::vector<double> values(this->Count());
  for (std::size_t i = 0; i < values.size(); ++i)
  {
    values[i] = this->At(i);
  }
  return values;
}

void TensorView::ToFloat(std::uint64_t begin, std::uint64_t end, float* values) const
{
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
      Narrow<Eigen::half>(this->data, begin, end, values);
      break;
    case DType::BF16:
      Narrow<Eigen::bfloat16>(this->data, begin, end, values);
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
        values[i] = Load<std::int64_t>(this->data, i);
        break;
      case DType::I32:
        values[i] = Load<std::int32_t>(this->data, i);
        break;
      case DType::I16:
        values[i] = Load<std::int16_t>(this->data, i);
        break;
      case DType::I8:
        values[i] = std::int64_t{ Load<std::int8_t>(this->data, i) };
        break;
      case DType::U8:
      case DType::BOOL:
        values[i] = Load<std::uint8_t>(this->data, i);
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

}
