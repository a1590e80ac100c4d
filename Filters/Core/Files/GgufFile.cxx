#include "GgufFile.h"

#include "Error.h"
#include "FileContent.h"
#include "NamedValues.h"
#include "Utf8Text.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

namespace atlas
{
namespace
{

constexpr std::string_view Magic = "GGUF";
constexpr std::uint64_t MaximumAxes = 4;
constexpr std::int64_t DefaultAlignment = 32;
constexpr std::string_view AlignmentKey = "general.alignment";

/// The types of tensors in the file.
struct TensorType
{
  std::string_view name;
  std::uint32_t number;
  std::optional<DType> dtype; ///< none: known, but not supported
};
constexpr std::array<TensorType, 38> TensorTypes = { {
  { "F32", 0, DType::F32 },
  { "F16", 1, DType::F16 },
  { "Q4_0", 2, DType::Q4_0 },
  { "Q4_1", 3, DType::Q4_1 },
  { "Q5_0", 6, DType::Q5_0 },
  { "Q5_1", 7, DType::Q5_1 },
  { "Q8_0", 8, DType::Q8_0 },
  { "Q8_1", 9, {} },
  { "Q2_K", 10, DType::Q2_K },
  { "Q3_K", 11, DType::Q3_K },
  { "Q4_K", 12, DType::Q4_K },
  { "Q5_K", 13, DType::Q5_K },
  { "Q6_K", 14, DType::Q6_K },
  { "Q8_K", 15, {} },
  { "IQ2_XXS", 16, {} },
  { "IQ2_XS", 17, {} },
  { "IQ3_XXS", 18, {} },
  { "IQ1_S", 19, {} },
  { "IQ4_NL", 20, DType::IQ4_NL },
  { "IQ3_S", 21, {} },
  { "IQ2_S", 22, {} },
  { "IQ4_XS", 23, DType::IQ4_XS },
  { "I8", 24, DType::I8 },
  { "I16", 25, DType::I16 },
  { "I32", 26, DType::I32 },
  { "I64", 27, DType::I64 },
  { "F64", 28, DType::F64 },
  { "IQ1_M", 29, {} },
  { "BF16", 30, DType::BF16 },
  { "Q4_0_4_4", 31, {} },
  { "Q4_0_4_8", 32, {} },
  { "Q4_0_8_8", 33, {} },
  { "TQ1_0", 34, {} },
  { "TQ2_0", 35, {} },
  { "MXFP4", 39, DType::MXFP4 },
  { "NVFP4", 40, {} },
  { "Q1_0", 41, {} },
  { "Q2_0", 42, {} },
} };

std::string SupportedTypes()
{
  std::string names;
  for (const TensorType& type : TensorTypes)
  {
    if (type.dtype)
    {
      names += (names.empty() ? "" : ", ") + std::string(type.name);
    }
  }
  return names;
}

/// Bytes of a value; 0 for strings and arrays, which vary.
std::size_t SizeOf(GgufType type)
{
  switch (type)
  {
    case GgufType::U8:
    case GgufType::I8:
    case GgufType::Bool:
      return 1;
    case GgufType::U16:
    case GgufType::I16:
      return 2;
    case GgufType::U32:
    case GgufType::I32:
    case GgufType::F32:
      return 4;
    case GgufType::U64:
    case GgufType::I64:
    case GgufType::F64:
      return 8;
    case GgufType::String:
    case GgufType::Array:
      break;
  }
  return 0;
}

std::string_view NameOf(GgufType type)
{
  constexpr std::array<std::string_view, 13> names = { "U8", "I8", "U16", "I16", "U32", "I32",
    "F32", "Bool", "String", "Array", "U64", "I64", "F64" };
  return names[static_cast<std::size_t>(type)];
}

/// The text at a place of the file, which was checked.
std::string_view LoadText(const std::byte* data)
{
  return { reinterpret_cast<const char*>(data + sizeof(std::uint64_t)),
    LoadElement<std::uint64_t>(data, 0) };
}

std::uint64_t NextMultiple(std::uint64_t offset, std::uint64_t alignment)
{
  return offset + (alignment - offset % alignment) % alignment;
}

/// Reads the header, front to back.
class GgufParser
{
public:
  GgufParser(const std::byte* data, std::size_t size, const std::string& source)
    : Data(data)
    , Size(size)
    , Source(source)
  {
  }

  GgufContent Parse()
  {
    this->ParseMagic();
    const auto tensors = this->Take<std::uint64_t>("the number of tensors");
    const auto values = this->Take<std::uint64_t>("the number of metadata");
    this->RequireRoom(tensors, MinimumTensorBytes, "tensors");
    this->RequireRoom(values, MinimumValueBytes, "metadata");
    GgufMetadata::Values metadata;
    for (std::uint64_t i = 0; i < values; ++i)
    {
      this->ParseMetadata(metadata);
    }
    GgufContent content;
    content.metadata = GgufMetadata(std::move(metadata), this->Source);
    this->ParseAlignment(content.metadata);
    for (std::uint64_t i = 0; i < tensors; ++i)
    {
      this->ParseTensor(content.tensors);
    }
    this->PlaceTensors(content.tensors);
    return content;
  }

private:
  /// A tensor without axes and name: lengths of the name and of the axes, type, offset.
  static constexpr std::uint64_t MinimumTensorBytes = 8 + 4 + 4 + 8;
  /// A value of one byte: length of the key, type, value.
  static constexpr std::uint64_t MinimumValueBytes = 8 + 4 + 1;

  const std::byte* Data;
  std::size_t Size;
  const std::string& Source;
  std::size_t Place = 0;
  std::uint64_t Alignment = 0;
  std::map<std::string_view, std::uint64_t> Offsets; ///< by name, which the content holds

  [[noreturn]] void Fail(const std::string& message) const
  {
    throw FormatError(this->Source + ": " + message);
  }

  std::uint64_t Left() const { return this->Size - this->Place; }

  void RequireBytes(std::uint64_t count, const std::string& what) const
  {
    if (count > this->Left())
    {
      this->Fail("the file ends within " + what + ": expected " + std::to_string(count) +
                 " more bytes, found " + std::to_string(this->Left()) + ".");
    }
  }

  /// Counts beyond what the file can hold are refused before anything is read.
  void RequireRoom(std::uint64_t count, std::uint64_t least, const std::string& what) const
  {
    if (count > this->Left() / least)
    {
      this->Fail("expected at most " + std::to_string(this->Left() / least) + " " + what +
                 " in the " + std::to_string(this->Left()) + " bytes left, found " +
                 std::to_string(count) + "; the file may be incomplete.");
    }
  }

  template<class T>
  T Take(const std::string& what)
  {
    this->RequireBytes(sizeof(T), what);
    const T value = LoadElement<T>(this->Data + this->Place, 0);
    this->Place += sizeof(T);
    return value;
  }

  std::string_view TakeText(const std::string& what)
  {
    const auto length = this->Take<std::uint64_t>(what);
    this->RequireBytes(length, what);
    const std::string_view text(reinterpret_cast<const char*>(this->Data + this->Place), length);
    this->Place += length;
    return text;
  }

  std::string TakeName(const std::string& what)
  {
    std::string name(this->TakeText(what));
    RequireUtf8(name, this->Source + ": " + what);
    return name;
  }

  void ParseMagic()
  {
    const std::string_view start(
      reinterpret_cast<const char*>(this->Data), std::min(this->Size, Magic.size()));
    if (start != Magic)
    {
      const std::string content =
        DescribeContent({ reinterpret_cast<const char*>(this->Data), this->Size });
      this->Fail("expected a GGUF file, which begins with the bytes GGUF, found " +
                 (content.empty() ? "others." : content + "."));
    }
    this->Place = Magic.size();
    const auto version = this->Take<std::uint32_t>("the version");
    if (version == 1)
    {
      this->Fail("expected version 2 or 3 of GGUF, found version 1, which has counts of 32 bits; "
                 "convert it with a current llama.cpp.");
    }
    if (version != 2 && version != 3)
    {
      const bool isBig = (version & 0xFFFFU) == 0;
      this->Fail("expected version 2 or 3 of GGUF, found " +
                 (isBig ? "a big-endian file" : std::to_string(version)) + ".");
    }
  }

  GgufType TakeType(const std::string& what)
  {
    const auto type = this->Take<std::uint32_t>(what);
    if (type > static_cast<std::uint32_t>(GgufType::F64))
    {
      this->Fail(what + ": expected a type from 0 to 12, found " + std::to_string(type) + ".");
    }
    return static_cast<GgufType>(type);
  }

  void ParseMetadata(GgufMetadata::Values& values)
  {
    std::string key = this->TakeName("a key of the metadata");
    const std::string what = "the metadata '" + key.substr(0, 80) + "'";
    GgufValue value;
    value.type = this->TakeType(what);
    if (value.type == GgufType::Array)
    {
      value.isArray = true;
      value.type = this->TakeType(what);
      value.count = this->Take<std::uint64_t>(what);
      if (value.type == GgufType::Array)
      {
        this->Fail(what + ": expected an array of numbers or texts, found an array of arrays.");
      }
    }
    value.data = this->Data + this->Place;
    this->Skip(value, what);
    if (!values.emplace(std::move(key), value).second)
    {
      this->Fail(what + ": expected it once, found it twice.");
    }
  }

  void Skip(const GgufValue& value, const std::string& what)
  {
    const std::size_t size = SizeOf(value.type);
    this->RequireRoom(value.count, size == 0 ? sizeof(std::uint64_t) : size, "elements of " + what);
    if (size != 0)
    {
      this->Place += value.count * size;
      return;
    }
    for (std::uint64_t i = 0; i < value.count; ++i)
    {
      this->TakeText(what);
    }
  }

  void ParseAlignment(const GgufMetadata& metadata)
  {
    const std::int64_t alignment = metadata.Integer(AlignmentKey, DefaultAlignment);
    constexpr std::int64_t most = std::int64_t{ 1 } << 31;
    if (alignment <= 0 || alignment > most || (alignment & (alignment - 1)) != 0)
    {
      this->Fail("the metadata '" + std::string(AlignmentKey) +
                 "': expected a power of two from 1 to 2^31, found " + std::to_string(alignment) +
                 ".");
    }
    this->Alignment = static_cast<std::uint64_t>(alignment);
  }

  void ParseTensor(TensorViews& tensors)
  {
    std::string name = this->TakeName("the name of a tensor");
    const std::string what = "tensor '" + name.substr(0, 80) + "'";
    TensorView view;
    view.shape = this->ParseShape(what);
    view.dtype = this->ParseType(what);
    const std::uint64_t elements = BlockElements(view.dtype);
    const auto columns =
      view.shape.empty() ? std::uint64_t{ 1 } : static_cast<std::uint64_t>(view.shape.back());
    if (columns % elements != 0)
    {
      this->Fail(what + ": expected rows of a multiple of " + std::to_string(elements) +
                 " elements, as " + std::string(Name(view.dtype)) +
                 " has blocks of so many, found " + std::to_string(columns) + ".");
    }
    const auto offset = this->Take<std::uint64_t>(what);
    if (offset % this->Alignment != 0)
    {
      this->Fail(what + ": expected its offset to be a multiple of the alignment, " +
                 std::to_string(this->Alignment) + ", found " + std::to_string(offset) + ".");
    }
    const auto [entry, isNew] = tensors.emplace(std::move(name), std::move(view));
    if (!isNew)
    {
      this->Fail(what + ": expected it once, found it twice.");
    }
    this->Offsets.emplace(entry->first, offset);
  }

  /// Sizes, the fastest axis first. Together with the largest element they must not overflow.
  Shape ParseShape(const std::string& what)
  {
    const auto axes = this->Take<std::uint32_t>(what);
    if (axes > MaximumAxes)
    {
      this->Fail(what + ": expected at most " + std::to_string(MaximumAxes) + " axes, found " +
                 std::to_string(axes) + ".");
    }
    Shape shape(axes);
    for (auto size = shape.rbegin(); size != shape.rend(); ++size)
    {
      const auto stored = this->Take<std::uint64_t>(what);
      if (stored > std::uint64_t{ std::numeric_limits<std::int64_t>::max() })
      {
        this->Fail(what + ": expected sizes below 2^63, found " + std::to_string(stored) + ".");
      }
      *size = static_cast<std::int64_t>(stored);
    }
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max() / sizeof(double);
    const std::optional<std::uint64_t> count = ElementCount(shape);
    if (!count || *count > most)
    {
      this->Fail(
        what + ": expected fewer than 2^61 elements, found the shape " + ToString(shape) + ".");
    }
    return shape;
  }

  DType ParseType(const std::string& what)
  {
    const auto number = this->Take<std::uint32_t>(what);
    const auto* const found = std::find_if(TensorTypes.begin(), TensorTypes.end(),
      [number](const TensorType& type) { return type.number == number; });
    if (found == TensorTypes.end() || !found->dtype)
    {
      this->Fail(what + ": expected one of the types " + SupportedTypes() + ", found " +
                 (found == TensorTypes.end() ? "the unknown type " + std::to_string(number)
                                             : std::string(found->name)) +
                 ".");
    }
    return *found->dtype;
  }

  /// Sets the data of all tensors, which must lie in the file and not overlap.
  void PlaceTensors(TensorViews& tensors)
  {
    const std::uint64_t start = NextMultiple(this->Place, this->Alignment);
    const std::uint64_t size = start > this->Size ? 0 : this->Size - start;
    std::vector<std::pair<std::uint64_t, const TensorViews::value_type*>> order;
    for (auto& entry : tensors)
    {
      const std::uint64_t offset = this->Offsets.at(entry.first);
      const std::uint64_t bytes = entry.second.Bytes();
      if (offset > size || bytes > size - offset)
      {
        this->Fail("tensor '" + entry.first + "': expected " + std::to_string(bytes) +
                   " bytes at offset " + std::to_string(offset) + " of the data, found " +
                   std::to_string(size) + " bytes of data; the file may be incomplete.");
      }
      entry.second.data = this->Data + start + offset;
      if (bytes > 0)
      {
        order.emplace_back(offset, &entry);
      }
    }
    std::sort(order.begin(), order.end());
    for (std::size_t i = 1; i < order.size(); ++i)
    {
      const auto& [offset, before] = order[i - 1];
      if (offset + before->second.Bytes() > order[i].first)
      {
        this->Fail("tensor '" + order[i].second->first + "': expected it behind tensor '" +
                   before->first + "', found that they overlap.");
      }
    }
  }
};

}

void GgufMetadata::Fail(
  std::string_view key, const std::string& expected, const std::string& found) const
{
  throw FormatError(this->Source + ": the metadata '" + std::string(key) + "': expected " +
                    expected + ", found " + found + ".");
}

const GgufValue& GgufMetadata::Get(std::string_view key, bool isArray, const char* expected) const
{
  const auto found = this->All.find(key);
  if (found == this->All.end())
  {
    this->Fail(key, expected, "none");
  }
  if (found->second.isArray != isArray)
  {
    this->Fail(key, expected, isArray ? "a single value" : "an array");
  }
  return found->second;
}

std::int64_t GgufMetadata::ToInteger(
  std::string_view key, const GgufValue& value, std::uint64_t i) const
{
  switch (value.type)
  {
    case GgufType::U8:
    case GgufType::Bool:
      return LoadElement<std::uint8_t>(value.data, i);
    case GgufType::I8:
      return std::int64_t{ LoadElement<std::int8_t>(value.data, i) };
    case GgufType::U16:
      return LoadElement<std::uint16_t>(value.data, i);
    case GgufType::I16:
      return LoadElement<std::int16_t>(value.data, i);
    case GgufType::U32:
      return LoadElement<std::uint32_t>(value.data, i);
    case GgufType::I32:
      return LoadElement<std::int32_t>(value.data, i);
    case GgufType::I64:
      return LoadElement<std::int64_t>(value.data, i);
    case GgufType::U64:
    {
      const auto number = LoadElement<std::uint64_t>(value.data, i);
      if (number > std::uint64_t{ std::numeric_limits<std::int64_t>::max() })
      {
        this->Fail(key, "an integer below 2^63", std::to_string(number));
      }
      return static_cast<std::int64_t>(number);
    }
    default:
      this->Fail(key, "an integer", std::string(NameOf(value.type)));
  }
}

double GgufMetadata::ToNumber(std::string_view key, const GgufValue& value, std::uint64_t i) const
{
  if (value.type == GgufType::F32)
  {
    return static_cast<double>(LoadElement<float>(value.data, i));
  }
  if (value.type == GgufType::F64)
  {
    return LoadElement<double>(value.data, i);
  }
  if (value.type == GgufType::String || value.type == GgufType::Bool)
  {
    this->Fail(key, "a number", std::string(NameOf(value.type)));
  }
  return static_cast<double>(this->ToInteger(key, value, i));
}

std::string GgufMetadata::Text(std::string_view key) const
{
  const GgufValue& value = this->Get(key, false, "a text");
  if (value.type != GgufType::String)
  {
    this->Fail(key, "a text", std::string(NameOf(value.type)));
  }
  std::string text(LoadText(value.data));
  RequireUtf8(text, this->Source + ": the metadata '" + std::string(key) + "'");
  return text;
}

std::string GgufMetadata::Text(std::string_view key, const std::string& otherwise) const
{
  return this->Has(key) ? this->Text(key) : otherwise;
}

std::int64_t GgufMetadata::Integer(std::string_view key) const
{
  return this->ToInteger(key, this->Get(key, false, "an integer"), 0);
}

std::int64_t GgufMetadata::Integer(std::string_view key, std::int64_t otherwise) const
{
  return this->Has(key) ? this->Integer(key) : otherwise;
}

double GgufMetadata::Number(std::string_view key) const
{
  return this->ToNumber(key, this->Get(key, false, "a number"), 0);
}

double GgufMetadata::Number(std::string_view key, double otherwise) const
{
  return this->Has(key) ? this->Number(key) : otherwise;
}

bool GgufMetadata::Flag(std::string_view key, bool otherwise) const
{
  if (!this->Has(key))
  {
    return otherwise;
  }
  const GgufValue& value = this->Get(key, false, "true or false");
  if (value.type != GgufType::Bool)
  {
    this->Fail(key, "true or false", std::string(NameOf(value.type)));
  }
  return LoadElement<std::uint8_t>(value.data, 0) != 0;
}

std::vector<std::string_view> GgufMetadata::Texts(std::string_view key) const
{
  const GgufValue& value = this->Get(key, true, "an array of texts");
  if (value.type != GgufType::String)
  {
    this->Fail(key, "an array of texts", "one of " + std::string(NameOf(value.type)));
  }
  std::vector<std::string_view> texts;
  texts.reserve(value.count);
  const std::byte* place = value.data;
  for (std::uint64_t i = 0; i < value.count; ++i)
  {
    texts.push_back(LoadText(place));
    place += sizeof(std::uint64_t) + texts.back().size();
  }
  return texts;
}

std::vector<std::int64_t> GgufMetadata::Integers(std::string_view key) const
{
  const GgufValue& value = this->Get(key, true, "an array of integers");
  std::vector<std::int64_t> numbers;
  numbers.reserve(value.count);
  for (std::uint64_t i = 0; i < value.count; ++i)
  {
    numbers.push_back(this->ToInteger(key, value, i));
  }
  return numbers;
}

std::vector<double> GgufMetadata::Numbers(std::string_view key) const
{
  const GgufValue& value = this->Get(key, true, "an array of numbers");
  std::vector<double> numbers;
  numbers.reserve(value.count);
  for (std::uint64_t i = 0; i < value.count; ++i)
  {
    numbers.push_back(this->ToNumber(key, value, i));
  }
  return numbers;
}

GgufContent ParseGguf(const std::byte* data, std::size_t size, const std::string& source)
{
  return GgufParser(data, size, source).Parse();
}

bool IsGgufName(const std::filesystem::path& path)
{
  return path.extension() == ".gguf";
}

namespace
{

constexpr const char* ShardKey = "split.no";
constexpr const char* ShardCountKey = "split.count";
constexpr const char* ShardTensorsKey = "split.tensors.count";

/// The end of the name of a shard, which is numbered from 0.
std::string ShardEnding(std::int64_t shard, std::int64_t count)
{
  const auto padded = [](std::int64_t number)
  {
    constexpr std::size_t digits = 5;
    const std::string text = std::to_string(number);
    return std::string(digits - std::min(digits, text.size()), '0') + text;
  };
  return "-" + padded(shard + 1) + "-of-" + padded(count) + ".gguf";
}

/// The path without the end of a shard's name; empty if it has none.
std::string ShardBegin(const std::string& path)
{
  constexpr std::string_view form = "-00000-of-00000.gguf";
  std::string end = path.substr(path.size() - std::min(path.size(), form.size()));
  std::replace_if(end.begin(), end.end(), [](char c) { return '0' <= c && c <= '9'; }, '0');
  return end == form ? path.substr(0, path.size() - form.size()) : std::string();
}

}

std::filesystem::path FirstGgufShard(const std::filesystem::path& path)
{
  const std::string text = path.string();
  const std::string begin = ShardBegin(text);
  constexpr std::size_t number = 6; // "-00001"
  return begin.empty() ? text : begin + "-00001" + text.substr(begin.size() + number);
}

GgufFile::GgufFile(const std::filesystem::path& path)
  : Content(this->Read(path))
{
  if (this->Content.metadata.Integer(ShardCountKey, 1) > 1)
  {
    this->ReadShards(path);
    return;
  }
  for (const auto& [name, view] : this->Content.tensors)
  {
    this->Origins.emplace(name, path.string());
  }
}

/// Maps a file and reads its header.
GgufContent GgufFile::Read(const std::filesystem::path& path)
{
  const auto file = std::make_shared<const MappedFile>(path);
  this->Files.push_back(file);
  return ReadIntact(*file, [&] { return ParseGguf(file->Data(), file->Size(), path.string()); });
}

/// Reads all shards, of which `path`, whose content is known, is one.
void GgufFile::ReadShards(const std::filesystem::path& path)
{
  const std::int64_t count = this->Content.metadata.Integer(ShardCountKey);
  const std::int64_t own = this->Content.metadata.Integer(ShardKey);
  const std::string begin = ShardBegin(path.string());
  if (own < 0 || own >= count || begin.empty() || begin + ShardEnding(own, count) != path.string())
  {
    throw FormatError(path.string() + ": expected a name that ends with '" +
                      ShardEnding(own, count) + "', as the metadata '" + ShardKey + "' and '" +
                      ShardCountKey + "' say, found another; shards are found by their names.");
  }
  this->Files.clear();
  GgufContent all;
  for (std::int64_t i = 0; i < count; ++i)
  {
    const std::filesystem::path shard = begin + ShardEnding(i, count);
    std::error_code ignored;
    if (!std::filesystem::exists(shard, ignored))
    {
      throw FileError(path.string() + ": the shard '" + shard.filename().string() +
                      "' is missing; expected all " + std::to_string(count) + " in one folder.");
    }
    GgufContent content = this->Read(shard);
    for (const auto& [key, expected] : { std::pair(ShardKey, i), std::pair(ShardCountKey, count) })
    {
      const std::int64_t found = content.metadata.Integer(key, 0);
      if (found != expected)
      {
        throw FormatError(shard.string() + ": the metadata '" + key + "': expected " +
                          std::to_string(expected) + " by the name of the file, found " +
                          std::to_string(found) + ".");
      }
    }
    for (auto& [name, view] : content.tensors)
    {
      if (!this->Origins.emplace(name, shard.string()).second)
      {
        throw FormatError(shard.string() + ": tensor '" + name + "' is in " +
                          this->Origins.at(name) + " too, expected it once.");
      }
    }
    all.tensors.merge(content.tensors);
    if (i == 0)
    {
      all.metadata = std::move(content.metadata);
    }
  }
  const auto tensors = static_cast<std::int64_t>(all.tensors.size());
  const std::int64_t expected = all.metadata.Integer(ShardTensorsKey, tensors);
  if (tensors != expected)
  {
    throw FormatError(all.metadata.GetSource() + ": the metadata '" + ShardTensorsKey +
                      "': expected " + std::to_string(expected) + " tensors in all shards, found " +
                      std::to_string(tensors) + ".");
  }
  this->Content = std::move(all);
}

void GgufFile::RequireIntact() const
{
  for (const auto& file : this->Files)
  {
    file->RequireIntact();
  }
}

}
