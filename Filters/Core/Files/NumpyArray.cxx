#include "NumpyArray.h"

#include "Error.h"
#include "Joined.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

namespace atlas
{
namespace
{

constexpr std::string_view NumpyMagic = "\x93NUMPY";

/// Characters after magic, version and length. NumPy itself rejects headers longer than 10,000
/// characters and more than 32 dimensions.
constexpr std::size_t MaximumNumpyHeader = NumpyHeaderBytes - 12;
constexpr std::size_t MaximumDimensions = 32;

/// A type in a file, and the type it is loaded as.
struct NumpyType
{
  std::string_view name; ///< without byte order
  std::size_t bytes;
  DType loaded;
};

constexpr std::array<NumpyType, 12> NumpyTypes = { {
  { "f2", 2, DType::F16 },
  { "f4", 4, DType::F32 },
  { "f8", 8, DType::F64 },
  { "i1", 1, DType::I8 },
  { "i2", 2, DType::I16 },
  { "i4", 4, DType::I32 },
  { "i8", 8, DType::I64 },
  { "u1", 1, DType::U8 },
  { "u2", 2, DType::I32 },
  { "u4", 4, DType::I64 },
  { "u8", 8, DType::I64 },
  { "b1", 1, DType::BOOL },
} };

const NumpyType& TypeOf(std::string_view description)
{
  return *std::find_if(NumpyTypes.begin(), NumpyTypes.end(),
    [&](const NumpyType& type) { return type.name == description.substr(1); });
}

/// Reads the dictionary of a .npy header: a Python literal with three known keys.
class HeaderParser
{
public:
  HeaderParser(std::string_view text, const std::string& source)
    : Text(text)
    , Source(source)
  {
  }

  NumpyHeader Parse()
  {
    NumpyHeader header;
    bool hasType = false;
    bool hasOrder = false;
    bool hasShape = false;
    this->Expect('{');
    while (!this->Accept('}'))
    {
      const std::string key = this->String();
      this->Expect(':');
      if (key == "descr" && !hasType)
      {
        hasType = true;
        header.description = this->Description();
        header.dtype = TypeOf(header.description).loaded;
      }
      else if (key == "fortran_order" && !hasOrder)
      {
        hasOrder = true;
        header.fortranOrder = this->Bool();
      }
      else if (key == "shape" && !hasShape)
      {
        hasShape = true;
        header.shape = this->Sizes();
      }
      else
      {
        this->Fail(
          "expected each of the keys descr, fortran_order and shape once, found '" + key + "'");
      }
      if (!this->Accept(','))
      {
        this->Expect('}');
        break;
      }
    }
    this->SkipSpace();
    if (this->Next != this->Text.size())
    {
      this->Fail("expected nothing after the dictionary");
    }
    if (!hasType || !hasOrder || !hasShape)
    {
      this->Fail("expected the keys descr, fortran_order and shape");
    }
    return header;
  }

private:
  std::string_view Text;
  const std::string& Source;
  std::size_t Next = 0;

  [[noreturn]] void Fail(const std::string& message) const
  {
    throw FormatError(this->Source + ": bad header of a .npy file: " + message + ", at character " +
                      std::to_string(this->Next) + ".");
  }

  void SkipSpace()
  {
    while (this->Next < this->Text.size() &&
           (this->Text[this->Next] == ' ' || this->Text[this->Next] == '\n'))
    {
      ++this->Next;
    }
  }

  bool Accept(char c)
  {
    this->SkipSpace();
    const bool found = this->Next < this->Text.size() && this->Text[this->Next] == c;
    this->Next += found ? 1 : 0;
    return found;
  }

  void Expect(char c)
  {
    if (!this->Accept(c))
    {
      this->Fail(std::string("expected '") + c + "'");
    }
  }

  bool AcceptWord(std::string_view word)
  {
    this->SkipSpace();
    const bool found = this->Text.substr(this->Next, word.size()) == word;
    this->Next += found ? word.size() : 0;
    return found;
  }

  std::string String()
  {
    const char quote = this->Accept('"') ? '"' : '\'';
    if (quote == '\'')
    {
      this->Expect('\'');
    }
    const std::size_t end = this->Text.find(quote, this->Next);
    if (end == std::string_view::npos)
    {
      this->Fail("expected the end of a string");
    }
    std::string text(this->Text.substr(this->Next, end - this->Next));
    this->Next = end + 1;
    return text;
  }

  std::string Description()
  {
    this->SkipSpace();
    if (this->Next < this->Text.size() && this->Text[this->Next] == '[')
    {
      this->Fail("expected numbers, found records of several fields");
    }
    std::string text = this->String();
    if (text.find('O') != std::string::npos)
    {
      throw FormatError(
        this->Source + ": the array holds Python objects (type '" + text + "')" + PickleAdvice);
    }
    const bool known =
      !text.empty() && std::string_view("<>|=").find(text[0]) != std::string_view::npos &&
      std::any_of(NumpyTypes.begin(), NumpyTypes.end(), [&](const NumpyType& type)
        { return type.name == text.substr(1) && (type.bytes == 1 || text[0] != '|'); });
    if (!known)
    {
      this->Fail(
        "unknown type '" + text.substr(0, 40) + "', expected one of " + NamesOf(NumpyTypes));
    }
    return text;
  }

  bool Bool()
  {
    if (this->AcceptWord("True"))
    {
      return true;
    }
    if (!this->AcceptWord("False"))
    {
      this->Fail("expected True or False");
    }
    return false;
  }

  std::int64_t Size()
  {
    this->SkipSpace();
    std::int64_t size = 0;
    const std::size_t begin = this->Next;
    for (; this->Next < this->Text.size(); ++this->Next)
    {
      const int digit = this->Text[this->Next] - '0';
      if (digit < 0 || digit > 9)
      {
        break;
      }
      if (size > (std::numeric_limits<std::int64_t>::max() - digit) / 10)
      {
        this->Fail("expected sizes up to 2^63 - 1");
      }
      size = 10 * size + digit;
    }
    if (this->Next == begin)
    {
      this->Fail("expected a size");
    }
    this->AcceptWord("L"); // Python 2 wrote it after long integers
    return size;
  }

  Shape Sizes()
  {
    Shape shape;
    this->Expect('(');
    while (!this->Accept(')'))
    {
      shape.push_back(this->Size());
      if (shape.size() > MaximumDimensions)
      {
        this->Fail("expected at most " + std::to_string(MaximumDimensions) + " dimensions");
      }
      if (!this->Accept(','))
      {
        this->Expect(')');
        break;
      }
    }
    return shape;
  }
};

/// Copies elements of `Bytes` bytes to row-major order, with their bytes reversed if requested.
template<std::size_t Bytes>
void Reorder(const std::byte* from, std::byte* to, const Shape& shape, bool fortran, bool reverse)
{
  const std::size_t count = ElementCount(shape).value_or(0);
  std::array<std::int64_t, MaximumDimensions> index{};
  std::array<std::size_t, MaximumDimensions> strides; // in the file, in elements
  strides[0] = 1;
  for (std::size_t i = 1; i < shape.size(); ++i)
  {
    strides[i] = strides[i - 1] * static_cast<std::size_t>(shape[i - 1]);
  }
  std::size_t source = 0;
  for (std::size_t i = 0; i < count; ++i)
  {
    std::array<std::byte, Bytes> element;
    std::memcpy(element.data(), from + (fortran ? source : i) * Bytes, Bytes);
    if (reverse)
    {
      std::reverse(element.begin(), element.end());
    }
    std::memcpy(to + i * Bytes, element.data(), Bytes);
    for (std::size_t d = fortran ? shape.size() : 0; d-- > 0;)
    {
      source += strides[d];
      if (++index[d] < shape[d])
      {
        break;
      }
      source -= strides[d] * static_cast<std::size_t>(shape[d]);
      index[d] = 0;
    }
  }
}

std::shared_ptr<std::vector<std::byte>> ReorderedBytes(
  const std::byte* data, const NumpyHeader& header, std::size_t elementBytes)
{
  auto bytes =
    std::make_shared<std::vector<std::byte>>(ElementCount(header.shape).value_or(0) * elementBytes);
  const bool reverse = header.description[0] == '>';
  const auto reorder = [&](auto size)
  {
    Reorder<decltype(size)::value>(data, bytes->data(), header.shape, header.fortranOrder, reverse);
  };
  switch (elementBytes)
  {
    case 1:
      reorder(std::integral_constant<std::size_t, 1>());
      break;
    case 2:
      reorder(std::integral_constant<std::size_t, 2>());
      break;
    case 4:
      reorder(std::integral_constant<std::size_t, 4>());
      break;
    default:
      reorder(std::integral_constant<std::size_t, 8>());
      break;
  }
  return bytes;
}

/// Converts unsigned integers to signed ones.
template<class From, class To>
LoadedArray MakeSigned(const TensorView& view, const std::string& source)
{
  const std::size_t count = view.Count();
  auto bytes = std::make_shared<std::vector<std::byte>>(count * sizeof(To));
  for (std::size_t i = 0; i < count; ++i)
  {
    From value;
    std::memcpy(&value, view.data + i * sizeof(From), sizeof(From));
    if (static_cast<std::uint64_t>(value) >
        static_cast<std::uint64_t>(std::numeric_limits<To>::max()))
    {
      throw FormatError(source + ": expected integers up to 2^63 - 1, found " +
                        std::to_string(static_cast<std::uint64_t>(value)) + ".");
    }
    const To converted = static_cast<To>(value);
    std::memcpy(bytes->data() + i * sizeof(To), &converted, sizeof(To));
  }
  return { { view.dtype, view.shape, bytes->data() }, bytes };
}

}

bool LooksLikeNumpy(const std::byte* data, std::size_t size)
{
  return size >= NumpyMagic.size() && std::memcmp(data, NumpyMagic.data(), NumpyMagic.size()) == 0;
}

bool LooksLikePickle(const std::byte* data, std::size_t size)
{
  return size > 0 && data[0] == std::byte{ 0x80 };
}

NumpyHeader ParseNumpyHeader(
  const std::byte* data, std::size_t available, std::uint64_t size, const std::string& source)
{
  const auto error = [&](const std::string& message)
  { return FormatError(source + ": " + message); };
  if (LooksLikePickle(data, available))
  {
    throw error(std::string("expected an array, found Python objects") + PickleAdvice);
  }
  constexpr std::size_t versionEnd = 8;
  if (!LooksLikeNumpy(data, available) || available < versionEnd + 4)
  {
    throw error(
      "expected a .npy file, which begins with \\x93NUMPY and the length of its header, found " +
      std::to_string(size) + " other bytes.");
  }
  const auto major = std::to_integer<unsigned>(data[6]);
  const auto minor = std::to_integer<unsigned>(data[7]);
  if (major < 1 || major > 3 || minor != 0)
  {
    throw error("expected version 1.0, 2.0 or 3.0 of the .npy format, found " +
                std::to_string(major) + "." + std::to_string(minor) + ".");
  }
  const std::size_t begin = versionEnd + (major == 1 ? 2 : 4);
  std::size_t length = 0;
  for (std::size_t i = begin; i-- > versionEnd;)
  {
    length = length << 8U | std::to_integer<std::size_t>(data[i]);
  }
  if (length > MaximumNumpyHeader)
  {
    throw error("expected a .npy header of at most " + std::to_string(MaximumNumpyHeader) +
                " bytes, found a length of " + std::to_string(length) + ".");
  }
  if (begin + length > available)
  {
    throw error("the .npy header is " + std::to_string(length) + " bytes long, but only " +
                std::to_string(available - begin) + " bytes follow its length.");
  }
  NumpyHeader header =
    HeaderParser({ reinterpret_cast<const char*>(data + begin), length }, source).Parse();
  header.dataBegin = begin + length;
  const std::uint64_t elementBytes = TypeOf(header.description).bytes;
  const std::optional<std::uint64_t> count = ElementCount(header.shape);
  if (!count || *count > std::numeric_limits<std::uint64_t>::max() / elementBytes)
  {
    throw error("shape " + ToString(header.shape) + " overflows 64 bits.");
  }
  if (*count * elementBytes != size - header.dataBegin)
  {
    throw error("shape " + ToString(header.shape) + " of type '" + header.description + "' takes " +
                std::to_string(*count * elementBytes) + " bytes, found " +
                std::to_string(size - header.dataBegin) + ".");
  }
  return header;
}

LoadedArray ParseNumpy(const std::byte* data, std::size_t size, std::shared_ptr<const void> owner,
  const std::string& source)
{
  const NumpyHeader header = ParseNumpyHeader(data, size, size, source);
  const NumpyType& type = TypeOf(header.description);
  LoadedArray array = { { header.dtype, header.shape, data + header.dataBegin }, std::move(owner) };
  const bool reverse = header.description[0] == '>' && type.bytes > 1;
  if (reverse || (header.fortranOrder && header.shape.size() > 1))
  {
    const auto bytes = ReorderedBytes(array.view.data, header, type.bytes);
    array = { { header.dtype, header.shape, bytes->data() }, bytes };
  }
  if (type.name == "u2")
  {
    return MakeSigned<std::uint16_t, std::int32_t>(array.view, source);
  }
  if (type.name == "u4")
  {
    return MakeSigned<std::uint32_t, std::int64_t>(array.view, source);
  }
  if (type.name == "u8")
  {
    return MakeSigned<std::uint64_t, std::int64_t>(array.view, source);
  }
  return array;
}

}
