#include "GgufFile.h"

#include "Base/Error.h"
#include "Base/FailsIf.h"
#include "Base/Joined.h"
#include "Base/TextEnds.h"
#include "Base/Utf8Text.h"
#include "FileContent.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
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
  std::vector<TensorType> supported;
  std::copy_if(TensorTypes.begin(), TensorTypes.end(), std::back_inserter(supported),
    [](const TensorType& type) { return type.dtype.has_value(); });
  return NamesOf(supported);
}

using LoadInteger = std::int64_t (*)(const std::byte* data, std::uint64_t i);

/// The types of metadata by their numbers.
struct ValueType
{
  std::string_view name;
  std::size_t bytes; ///< 0: they vary
  LoadInteger load;  ///< element i; numbers from 2^63 on are below 0. nullptr: it is no integer
};

template<class Integer>
constexpr ValueType IntegerType(std::string_view name)
{
  return { name, sizeof(Integer), [](const std::byte* data, std::uint64_t i)
    { return static_cast<std::int64_t>(LoadElement<Integer>(data, i)); } };
}

constexpr std::array<ValueType, 13> ValueTypes = { IntegerType<std::uint8_t>("U8"),
  IntegerType<std::int8_t>("I8"), IntegerType<std::uint16_t>("U16"),
  IntegerType<std::int16_t>("I16"), IntegerType<std::uint32_t>("U32"),
  IntegerType<std::int32_t>("I32"), ValueType{ "F32", 4, nullptr },
  IntegerType<std::uint8_t>("Bool"), ValueType{ "String", 0, nullptr },
  ValueType{ "Array", 0, nullptr }, IntegerType<std::uint64_t>("U64"),
  IntegerType<std::int64_t>("I64"), ValueType{ "F64", 8, nullptr } };

const ValueType& TypeOf(GgufType type)
{
  return ValueTypes[static_cast<std::size_t>(type)];
}

/// The text at a place of the file, which was checked.
std::string_view LoadText(const std::byte* data)
{
  return { reinterpret_cast<const char*>(data + sizeof(std::uint64_t)),
    LoadElement<std::uint64_t>(data, 0) };
}

/// The elements of an array, each of which `at` gives.
template<class At>
auto Elements(const GgufValue& value, At at)
{
  std::vector<decltype(at(0))> elements;
  elements.reserve(value.count);
  for (std::uint64_t i = 0; i < value.count; ++i)
  {
    elements.push_back(at(i));
  }
  return elements;
}

std::uint64_t NextMultiple(std::uint64_t offset, std::uint64_t alignment)
{
  return offset + (alignment - offset % alignment) % alignment;
}

/// Reads the header, front to back.
class GgufParser : public FailsIf<GgufParser>
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

  template<class... Parts>
  [[noreturn]] void Fail(const Parts&... message) const
  {
    throw FormatError(this->Source, ": ", message...);
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

  std::uint64_t Left() const { return this->Size - this->Place; }

  /// Counts beyond what the file can hold are refused before anything is read.
  void RequireRoom(std::uint64_t count, std::uint64_t least, const std::string& what) const
  {
    this->FailIf(count > this->Left() / least, "expected at most ", this->Left() / least, " ", what,
      " in the ", this->Left(), " bytes left, found ", count, "; the file may be incomplete.");
  }

  /// Where the next `count` bytes are.
  const std::byte* TakeBytes(std::uint64_t count, const std::string& what)
  {
    this->FailIf(count > this->Left(), "the file ends within ", what, ": expected ", count,
      " more bytes, found ", this->Left(), ".");
    const std::byte* bytes = this->Data + this->Place;
    this->Place += count;
    return bytes;
  }

  template<class T>
  T Take(const std::string& what)
  {
    return LoadElement<T>(this->TakeBytes(sizeof(T), what), 0);
  }

  std::string_view TakeText(const std::string& what)
  {
    const auto length = this->Take<std::uint64_t>(what);
    return { reinterpret_cast<const char*>(this->TakeBytes(length, what)), length };
  }

  std::string TakeName(const std::string& what)
  {
    std::string name(this->TakeText(what));
    RequireUtf8(name, this->Source + ": " + what);
    return name;
  }

  void ParseMagic()
  {
    const std::string_view text(reinterpret_cast<const char*>(this->Data), this->Size);
    if (!BeginsWith(text, Magic))
    {
      const std::string content = DescribeContent(text);
      this->Fail("expected a GGUF file, which begins with the bytes GGUF, found ",
        content.empty() ? "others." : content + ".");
    }
    this->Place = Magic.size();
    const auto version = this->Take<std::uint32_t>("the version");
    this->FailIf(version == 1,
      "expected version 2 or 3 of GGUF, found version 1, which has counts of 32 bits; "
      "convert it with a current llama.cpp.");
    this->FailIf(version != 2 && version != 3, "expected version 2 or 3 of GGUF, found ",
      (version & 0xFFFFU) == 0 ? "a big-endian file" : std::to_string(version), ".");
  }

  GgufType TakeType(const std::string& what)
  {
    const auto type = this->Take<std::uint32_t>(what);
    this->FailIf(type > static_cast<std::uint32_t>(GgufType::F64), what,
      ": expected a type from 0 to 12, found ", type, ".");
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
      this->FailIf(value.type == GgufType::Array, what,
        ": expected an array of numbers or texts, found an array of arrays.");
    }
    value.data = this->Data + this->Place;
    this->Skip(value, what);
    this->FailIf(
      !values.emplace(std::move(key), value).second, what, ": expected it once, found it twice.");
  }

  void Skip(const GgufValue& value, const std::string& what)
  {
    const std::size_t size = TypeOf(value.type).bytes;
    this->RequireRoom(value.count, size == 0 ? sizeof(std::uint64_t) : size, "elements of " + what);
    this->Place += value.count * size;
    for (std::uint64_t i = 0; size == 0 && i < value.count; ++i)
    {
      this->TakeText(what);
    }
  }

  void ParseAlignment(const GgufMetadata& metadata)
  {
    const std::int64_t alignment = metadata.Integer(AlignmentKey, DefaultAlignment);
    constexpr std::int64_t most = std::int64_t{ 1 } << 31;
    this->FailIf(alignment <= 0 || alignment > most || (alignment & (alignment - 1)) != 0,
      "the metadata '", AlignmentKey, "': expected a power of two from 1 to 2^31, found ",
      alignment, ".");
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
    this->FailIf(columns % elements != 0, what, ": expected rows of a multiple of ", elements,
      " elements, as ", Name(view.dtype), " has blocks of so many, found ", columns, ".");
    const auto offset = this->Take<std::uint64_t>(what);
    this->FailIf(offset % this->Alignment != 0, what,
      ": expected its offset to be a multiple of the alignment, ", this->Alignment, ", found ",
      offset, ".");
    const auto [entry, isNew] = tensors.emplace(std::move(name), std::move(view));
    this->FailIf(!isNew, what, ": expected it once, found it twice.");
    this->Offsets.emplace(entry->first, offset);
  }

  /// Sizes, the fastest axis first. Together with the largest element they must not overflow.
  Shape ParseShape(const std::string& what)
  {
    const auto axes = this->Take<std::uint32_t>(what);
    this->FailIf(
      axes > MaximumAxes, what, ": expected at most ", MaximumAxes, " axes, found ", axes, ".");
    Shape shape(axes);
    for (auto size = shape.rbegin(); size != shape.rend(); ++size)
    {
      const auto stored = this->Take<std::uint64_t>(what);
      this->FailIf(stored > std::uint64_t{ std::numeric_limits<std::int64_t>::max() }, what,
        ": expected sizes below 2^63, found ", stored, ".");
      *size = static_cast<std::int64_t>(stored);
    }
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max() / sizeof(double);
    const std::optional<std::uint64_t> count = ElementCount(shape);
    if (!count || *count > most)
    {
      this->Fail(
        what, ": expected fewer than 2^61 elements, found the shape ", ToString(shape), ".");
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
      this->Fail(what, ": expected one of the types ", SupportedTypes(), ", found ",
        found == TensorTypes.end() ? "the unknown type " + std::to_string(number)
                                   : std::string(found->name),
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
      this->FailIf(offset > size || bytes > size - offset, "tensor '", entry.first, "': expected ",
        bytes, " bytes at offset ", offset, " of the data, found ", size,
        " bytes of data; the file may be incomplete.");
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
      this->FailIf(offset + before->second.Bytes() > order[i].first, "tensor '",
        order[i].second->first, "': expected it behind tensor '", before->first,
        "', found that they overlap.");
    }
  }
};

}

void GgufMetadata::Fail(
  std::string_view key, const std::string& expected, const std::string& found) const
{
  throw FormatError(
    this->Source, ": the metadata '", key, "': expected ", expected, ", found ", found, ".");
}

const GgufValue& GgufMetadata::Get(
  std::string_view key, bool isArray, const char* expected, std::optional<GgufType> type) const
{
  const auto found = this->All.find(key);
  if (found == this->All.end())
  {
    this->Fail(key, expected, "none");
  }
  const GgufValue& value = found->second;
  if (value.isArray != isArray)
  {
    this->Fail(key, expected, isArray ? "a single value" : "an array");
  }
  if (type && value.type != *type)
  {
    const std::string name(TypeOf(value.type).name);
    this->Fail(key, expected, isArray ? "one of " + name : name);
  }
  return value;
}

std::int64_t GgufMetadata::ToInteger(
  std::string_view key, const GgufValue& value, std::uint64_t i) const
{
  const ValueType& type = TypeOf(value.type);
  if (type.load == nullptr)
  {
    this->Fail(key, "an integer", std::string(type.name));
  }
  const std::int64_t number = type.load(value.data, i);
  if (value.type == GgufType::U64 && number < 0)
  {
    this->Fail(key, "an integer below 2^63", std::to_string(static_cast<std::uint64_t>(number)));
  }
  return number;
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
    this->Fail(key, "a number", std::string(TypeOf(value.type).name));
  }
  return static_cast<double>(this->ToInteger(key, value, i));
}

std::string GgufMetadata::Text(std::string_view key) const
{
  std::string text(LoadText(this->Get(key, false, "a text", GgufType::String).data));
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
  return this->Has(key)
           ? *this->Get(key, false, "true or false", GgufType::Bool).data != std::byte{ 0 }
           : otherwise;
}

std::vector<std::string_view> GgufMetadata::Texts(std::string_view key) const
{
  const GgufValue& value = this->Get(key, true, "an array of texts", GgufType::String);
  return Elements(value,
    [place = value.data](std::uint64_t) mutable
    {
      const std::string_view text = LoadText(place);
      place += sizeof(std::uint64_t) + text.size();
      return text;
    });
}

std::vector<std::int64_t> GgufMetadata::Integers(std::string_view key) const
{
  const GgufValue& value = this->Get(key, true, "an array of integers");
  return Elements(value, [&](std::uint64_t i) { return this->ToInteger(key, value, i); });
}

std::vector<double> GgufMetadata::Numbers(std::string_view key) const
{
  const GgufValue& value = this->Get(key, true, "an array of numbers");
  return Elements(value, [&](std::uint64_t i) { return this->ToNumber(key, value, i); });
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
    throw FormatError(path.string(), ": expected a name that ends with '", ShardEnding(own, count),
      "', as the metadata '", ShardKey, "' and '", ShardCountKey,
      "' say, found another; shards are found by their names.");
  }
  this->Files.clear();
  GgufContent all;
  for (std::int64_t i = 0; i < count; ++i)
  {
    const std::filesystem::path shard = begin + ShardEnding(i, count);
    ThrowIf<FileError>(!FileExists(shard), path.string(), ": the shard '",
      shard.filename().string(), "' is missing; expected all ", count, " in one folder.");
    GgufContent content = this->Read(shard);
    for (const auto& [key, expected] : { std::pair(ShardKey, i), std::pair(ShardCountKey, count) })
    {
      const std::int64_t found = content.metadata.Integer(key, 0);
      ThrowIf<FormatError>(found != expected, shard.string(), ": the metadata '", key,
        "': expected ", expected, " by the name of the file, found ", found, ".");
    }
    for (auto& [name, view] : content.tensors)
    {
      if (!this->Origins.emplace(name, shard.string()).second)
      {
        throw FormatError(shard.string(), ": tensor '", name, "' is in ", this->Origins.at(name),
          " too, expected it once.");
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
  ThrowIf<FormatError>(tensors != expected, all.metadata.GetSource(), ": the metadata '",
    ShardTensorsKey, "': expected ", expected, " tensors in all shards, found ", tensors, ".");
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
