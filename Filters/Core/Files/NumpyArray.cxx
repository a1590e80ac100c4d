#include "NumpyArray.h"

#include "Base/Error.h"
#include "Base/FailsIf.h"
#include "Base/Joined.h"
#include "Base/NumberText.h"
#include "Internal/StridedCopy.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
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
class HeaderParser : public FailsIf<HeaderParser>
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
    std::set<std::string> left = { "descr", "fortran_order", "shape" };
    this->ParseList('{', '}',
      [&]
      {
        const std::string key = this->String();
        this->Expect(':');
        this->FailIf(left.erase(key) == 0,
          "expected each of the keys descr, fortran_order and shape once, found '", key, "'");
        if (key == "descr")
        {
          header.description = this->Description();
          header.dtype = TypeOf(header.description).loaded;
        }
        else if (key == "fortran_order")
        {
          header.fortranOrder = this->Bool();
        }
        else
        {
          header.shape = this->Sizes();
        }
      });
    this->SkipSpace();
    this->FailIf(this->Next != this->Text.size(), "expected nothing after the dictionary");
    this->FailIf(!left.empty(), "expected the keys descr, fortran_order and shape");
    return header;
  }

  template<class... Parts>
  [[noreturn]] void Fail(const Parts&... message) const
  {
    throw FormatError(this->Source, ": bad header of a .npy file: ", message..., ", at character ",
      this->Next, ".");
  }

private:
  std::string_view Text;
  const std::string& Source;
  std::size_t Next = 0;

  /// Parses items with commas between them, and perhaps one behind the last.
  template<class ParseItem>
  void ParseList(char begin, char end, const ParseItem& parseItem)
  {
    this->Expect(begin);
    while (!this->Accept(end))
    {
      parseItem();
      if (!this->Accept(','))
      {
        this->Expect(end);
        break;
      }
    }
  }

  void SkipSpace()
  {
    this->Next = std::min(this->Text.find_first_not_of(" \n", this->Next), this->Text.size());
  }

  bool Accept(std::string_view word)
  {
    this->SkipSpace();
    const bool found = this->Text.substr(this->Next, word.size()) == word;
    this->Next += found ? word.size() : 0;
    return found;
  }

  bool Accept(char c) { return this->Accept(std::string_view(&c, 1)); }

  void Expect(char c) { this->FailIf(!this->Accept(c), "expected '", c, "'"); }

  std::string String()
  {
    const char quote = this->Accept('"') ? '"' : '\'';
    if (quote == '\'')
    {
      this->Expect('\'');
    }
    const std::size_t end = this->Text.find(quote, this->Next);
    this->FailIf(end == std::string_view::npos, "expected the end of a string");
    std::string text(this->Text.substr(this->Next, end - this->Next));
    this->Next = end + 1;
    return text;
  }

  std::string Description()
  {
    this->SkipSpace();
    this->FailIf(this->Next < this->Text.size() && this->Text[this->Next] == '[',
      "expected numbers, found records of several fields");
    std::string text = this->String();
    ThrowIf<FormatError>(text.find('O') != std::string::npos, this->Source,
      ": the array holds Python objects (type '", text, "')", PickleAdvice);
    const bool isKnown =
      !text.empty() && std::string_view("<>|=").find(text[0]) != std::string_view::npos &&
      std::any_of(NumpyTypes.begin(), NumpyTypes.end(), [&](const NumpyType& type)
        { return type.name == text.substr(1) && (type.bytes == 1 || text[0] != '|'); });
    this->FailIf(
      !isKnown, "unknown type '", text.substr(0, 40), "', expected one of ", NamesOf(NumpyTypes));
    return text;
  }

  bool Bool()
  {
    const bool isTrue = this->Accept("True");
    this->FailIf(!isTrue && !this->Accept("False"), "expected True or False");
    return isTrue;
  }

  std::int64_t Size()
  {
    this->SkipSpace();
    const std::size_t end =
      std::min(this->Text.find_first_not_of("0123456789", this->Next), this->Text.size());
    const std::string_view digits = this->Text.substr(this->Next, end - this->Next);
    this->FailIf(digits.empty(), "expected a size");
    const auto size = ToNumber<std::int64_t>(digits);
    if (!size)
    {
      this->Fail("expected sizes up to 2^63 - 1");
    }
    this->Next = end;
    this->Accept("L"); // Python 2 wrote it after long integers
    return *size;
  }

  Shape Sizes()
  {
    Shape shape;
    this->ParseList('(', ')',
      [&]
      {
        shape.push_back(this->Size());
        this->FailIf(
          shape.size() > MaximumDimensions, "expected at most ", MaximumDimensions, " dimensions");
      });
    return shape;
  }
};

/// The elements in row-major order and little-endian.
std::shared_ptr<std::vector<std::byte>> ReorderedBytes(
  const std::byte* data, const NumpyHeader& header, std::size_t elementBytes)
{
  const std::size_t axes = header.shape.size();
  Shape stride(axes, 1);
  if (ElementCount(header.shape) != 0U)
  {
    for (std::size_t i = 1; i < axes; ++i)
    {
      const std::size_t axis = header.fortranOrder ? i : axes - 1 - i;
      const std::size_t faster = header.fortranOrder ? axis - 1 : axis + 1;
      stride[axis] = stride[faster] * header.shape[faster];
    }
  }
  auto bytes =
    std::make_shared<std::vector<std::byte>>(PackedCopy(data, header.shape, stride, elementBytes));
  if (header.description[0] == '>')
  {
    for (auto element = bytes->begin(); element != bytes->end(); element += elementBytes)
    {
      std::reverse(element, element + elementBytes);
    }
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
    const std::uint64_t value = LoadElement<From>(view.data, i);
    ThrowIf<FormatError>(value > std::uint64_t{ std::numeric_limits<To>::max() }, source,
      ": expected integers up to 2^63 - 1, found ", value, ".");
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
  ThrowIf<FormatError>(LooksLikePickle(data, available), source,
    ": expected an array, found Python objects", PickleAdvice);
  constexpr std::size_t versionEnd = 8;
  ThrowIf<FormatError>(!LooksLikeNumpy(data, available) || available < versionEnd + 4, source,
    ": expected a .npy file, which begins with \\x93NUMPY and the length of its header, found ",
    size, " other bytes.");
  const std::string_view text(reinterpret_cast<const char*>(data), available);
  const auto major = std::to_integer<unsigned>(data[6]);
  const auto minor = std::to_integer<unsigned>(data[7]);
  ThrowIf<FormatError>(major < 1 || major > 3 || minor != 0, source,
    ": expected version 1.0, 2.0 or 3.0 of the .npy format, found ", major, ".", minor, ".");
  const std::size_t begin = versionEnd + (major == 1 ? 2 : 4);
  const std::size_t length = LittleEndian(text.substr(versionEnd, begin - versionEnd));
  ThrowIf<FormatError>(length > MaximumNumpyHeader, source, ": expected a .npy header of at most ",
    MaximumNumpyHeader, " bytes, found a length of ", length, ".");
  ThrowIf<FormatError>(begin + length > available, source, ": the .npy header is ", length,
    " bytes long, but only ", available - begin, " bytes follow its length.");
  NumpyHeader header = HeaderParser(text.substr(begin, length), source).Parse();
  header.dataBegin = begin + length;
  const std::uint64_t elementBytes = TypeOf(header.description).bytes;
  const std::optional<std::uint64_t> count = ElementCount(header.shape);
  if (!count || *count > std::numeric_limits<std::uint64_t>::max() / elementBytes)
  {
    throw FormatError(source, ": shape ", ToString(header.shape), " overflows 64 bits.");
  }
  const std::uint64_t bytes = *count * elementBytes;
  ThrowIf<FormatError>(bytes != size - header.dataBegin, source, ": shape ", ToString(header.shape),
    " of type '", header.description, "' takes ", bytes, " bytes, found ", size - header.dataBegin,
    ".");
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
