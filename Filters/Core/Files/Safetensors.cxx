#include "Safetensors.h"

#include "AtomicFile.h"
#include "Base/Error.h"
#include "Base/FailsIf.h"
#include "FileContent.h"
#include "JsonText.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace atlas
{
namespace
{

using nlohmann::json;

constexpr std::uint64_t LengthBytes = 8;
constexpr std::uint64_t MaximumHeaderLength = 100'000'000;
constexpr const char* MetadataKey = "__metadata__";
/// The number of bytes between two reports of progress.
constexpr std::uint64_t BytesPerStep = std::uint64_t{ 1 } << 24;

/// Types that only quantized weights have, in files that are not run.
bool IsOfQuantized(const std::string& dtype)
{
  constexpr std::array<std::string_view, 5> names = { "F4", "F6_E2M3", "F6_E3M2", "F8_E4M3FNUZ",
    "F8_E5M2FNUZ" };
  return std::find(names.begin(), names.end(), dtype) != names.end();
}

class Parser : public FailsIf<Parser>
{
public:
  Parser(const std::byte* data, std::size_t size, const std::string& source)
    : Data(data)
    , Size(size)
    , Source(source)
  {
  }

  SafetensorsContent Parse()
  {
    const std::uint64_t headerLength = this->ReadHeaderLength();
    const char* begin = reinterpret_cast<const char*>(this->Data + LengthBytes);
    const json header =
      ParseJsonObject({ begin, headerLength }, this->Source, "the safetensors header");
    this->DataBegin = this->Data + LengthBytes + headerLength;
    this->DataSize = this->Size - LengthBytes - headerLength;

    SafetensorsContent content;
    for (const auto& [name, value] : header.items())
    {
      if (name == MetadataKey)
      {
        content.metadata = this->ParseMetadata(value);
      }
      else
      {
        content.tensors.emplace(name, this->ParseTensor(name, value));
      }
    }
    this->CheckCoverage();
    return content;
  }

  template<class... Parts>
  [[noreturn]] void Fail(const Parts&... message) const
  {
    throw FormatError(this->Source, ": ", message...);
  }

private:
  struct Span
  {
    std::uint64_t begin;
    std::uint64_t end;
    std::string name;
  };

  const std::byte* Data;
  std::uint64_t Size;
  const std::string& Source;
  const std::byte* DataBegin = nullptr;
  std::uint64_t DataSize = 0;
  std::vector<Span> Spans;

  std::uint64_t ReadHeaderLength() const
  {
    this->FailIf(this->Size < LengthBytes,
      "expected a safetensors file, which begins with an 8-byte header length, found ", this->Size,
      " bytes.");
    const std::string content =
      DescribeContent({ reinterpret_cast<const char*>(this->Data), this->Size });
    this->FailIf(!LooksLikeSafetensors(this->Data, this->Size) && !content.empty(),
      "expected a safetensors file, found ", content, ".");
    const auto length = LoadElement<std::uint64_t>(this->Data, 0);
    this->FailIf(length > MaximumHeaderLength, "expected a safetensors header of at most ",
      MaximumHeaderLength, " bytes, found a length of ", length, ".");
    this->FailIf(length > this->Size - LengthBytes, "the safetensors header is ", length,
      " bytes long, but only ", this->Size - LengthBytes, " bytes follow its length.");
    return length;
  }

  Metadata ParseMetadata(const json& value) const
  {
    Metadata metadata;
    this->FailIf(!value.is_object(), "expected __metadata__ to be a JSON object, found ",
      value.type_name(), ".");
    for (const auto& [key, text] : value.items())
    {
      this->FailIf(!text.is_string(), "expected the metadata '", key, "' to be a string, found ",
        text.type_name(), ".");
      metadata.emplace(key, text.get<std::string>());
    }
    return metadata;
  }

  TensorView ParseTensor(const std::string& name, const json& value)
  {
    const std::string tensor = "tensor '" + name + "'";
    this->FailIf(!value.is_object(), tensor,
      ": expected a JSON object with dtype, shape and data_offsets, found ", value.type_name(),
      ".");
    TensorView view;
    view.dtype = this->ParseDType(tensor, value);
    view.shape = this->ParseUnsigned(tensor, value, "shape");
    const Shape offsets = this->ParseUnsigned(tensor, value, "data_offsets");
    this->FailIf(
      offsets.size() != 2, tensor, ": expected 2 data_offsets, found ", offsets.size(), ".");
    const auto begin = static_cast<std::uint64_t>(offsets[0]);
    const auto end = static_cast<std::uint64_t>(offsets[1]);
    this->FailIf(begin > end || end > this->DataSize, tensor, ": data_offsets ", ToString(offsets),
      " are not a range within the ", this->DataSize, " bytes of data in the file.");
    const std::optional<std::uint64_t> count = ElementCount(view.shape);
    if (!count || *count > std::numeric_limits<std::uint64_t>::max() / ByteSize(view.dtype))
    {
      this->Fail(tensor, ": shape ", ToString(view.shape), " overflows 64 bits.");
    }
    const std::uint64_t bytes = view.Bytes();
    this->FailIf(bytes != end - begin, tensor, ": shape ", ToString(view.shape), " of ",
      Name(view.dtype), " takes ", bytes, " bytes, but data_offsets ", ToString(offsets), " hold ",
      end - begin, ".");
    view.data = this->DataBegin + begin;
    this->Spans.push_back({ begin, end, name });
    return view;
  }

  DType ParseDType(const std::string& tensor, const json& value) const
  {
    const auto found = value.find("dtype");
    this->FailIf(
      found == value.end() || !found->is_string(), tensor, ": expected a string 'dtype'.");
    const auto name = found->get<std::string>();
    const std::optional<DType> dtype = DTypeFromName(name);
    this->FailIf(!dtype && IsOfQuantized(name), tensor, ": expected one of ", KnownDTypes(),
      ", found ", name, ", a type of quantized weights, which are not run.");
    if (!dtype)
    {
      this->Fail(tensor, ": unknown dtype '", name, "', expected one of ", KnownDTypes(), ".");
    }
    return *dtype;
  }

  Shape ParseUnsigned(const std::string& tensor, const json& value, const char* key) const
  {
    const auto found = value.find(key);
    this->FailIf(
      found == value.end() || !found->is_array(), tensor, ": expected an array '", key, "'.");
    Shape numbers;
    for (const json& number : *found)
    {
      if (!number.is_number_unsigned() ||
          number.get<std::uint64_t>() > std::uint64_t{ std::numeric_limits<std::int64_t>::max() })
      {
        this->Fail(tensor, ": expected '", key, "' to hold integers from 0 to 2^63 - 1, found ",
          Describe(number), ".");
      }
      numbers.push_back(number.get<std::int64_t>());
    }
    return numbers;
  }

  /// The tensors must fill the data: overlaps or gaps mean that offsets are wrong.
  void CheckCoverage()
  {
    std::sort(this->Spans.begin(), this->Spans.end(), [](const Span& a, const Span& b)
      { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
    std::uint64_t end = 0;
    std::string previous;
    for (const Span& span : this->Spans)
    {
      this->FailIf(
        span.begin < end, "the data of tensors '", previous, "' and '", span.name, "' overlap.");
      this->FailIf(span.begin > end, "no tensor holds the ", span.begin - end,
        " bytes of data before tensor '", span.name, "'.");
      end = span.end;
      previous = span.name;
    }
    this->FailIf(end != this->DataSize, "no tensor holds the last ", this->DataSize - end,
      " bytes of the file.");
  }
};

/// Tensors as they follow each other in a file: wide elements first, which keeps packed tensors
/// aligned; then by name, as in the map.
std::vector<const TensorViews::value_type*> FileOrder(const TensorViews& tensors)
{
  std::vector<const TensorViews::value_type*> order;
  for (const auto& entry : tensors)
  {
    if (!entry.second.IsPlain())
    {
      throw FormatError("tensor '", entry.first, "': expected elements in their order, of one of ",
        KnownDTypes(), ", found ", Name(entry.second.dtype), " as a GGUF file has it.");
    }
    order.push_back(&entry);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b)
    { return ByteSize(a->second.dtype) > ByteSize(b->second.dtype); });
  return order;
}

}

bool LooksLikeSafetensors(const std::byte* data, std::size_t size)
{
  return size > LengthBytes && static_cast<char>(data[LengthBytes]) == '{' &&
         std::all_of(
           data + 4, data + LengthBytes, [](std::byte byte) { return byte == std::byte{ 0 }; });
}

SafetensorsContent ParseSafetensors(
  const std::byte* data, std::size_t size, const std::string& source)
{
  return Parser(data, size, source).Parse();
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
  : File(std::make_shared<const MappedFile>(path))
  , Content(ReadIntact(*this->File,
      [&] { return ParseSafetensors(this->File->Data(), this->File->Size(), path.string()); }))
{
}

SafetensorsLayout LayOutSafetensors(const TensorViews& tensors, const Metadata& metadata)
{
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  for (const auto& [key, text] : metadata)
  {
    header[MetadataKey][key] = text;
  }
  SafetensorsLayout layout;
  std::uint64_t offset = 0;
  for (const auto* entry : FileOrder(tensors))
  {
    const TensorView& tensor = entry->second;
    const std::uint64_t end = offset + tensor.Bytes();
    header[entry->first] = { { "dtype", Name(tensor.dtype) }, { "shape", tensor.shape },
      { "data_offsets", { offset, end } } };
    layout.offsets[entry->first] = offset;
    offset = end;
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.resize((text.size() + LengthBytes - 1) / LengthBytes * LengthBytes, ' ');
  for (unsigned i = 0; i < LengthBytes; ++i)
  {
    layout.header += static_cast<char>(text.size() >> (8 * i) & 0xff);
  }
  layout.header += text;
  layout.dataEnd = layout.header.size() + offset;
  for (auto& [name, begin] : layout.offsets)
  {
    begin += layout.header.size();
  }
  return layout;
}

void WriteSafetensorViews(std::ostream& stream, const TensorViews& tensors,
  const Metadata& metadata, const Progress& progress)
{
  const SafetensorsLayout layout = LayOutSafetensors(tensors, metadata);
  stream.write(layout.header.data(), static_cast<std::streamsize>(layout.header.size()));
  const std::uint64_t all = layout.dataEnd - layout.header.size();
  std::uint64_t written = 0;
  for (const auto* entry : FileOrder(tensors))
  {
    const auto* bytes = reinterpret_cast<const char*>(entry->second.data);
    const std::uint64_t count = entry->second.Bytes();
    for (std::uint64_t begin = 0; begin < count; begin += BytesPerStep)
    {
      const std::uint64_t step = std::min(BytesPerStep, count - begin);
      stream.write(bytes + begin, static_cast<std::streamsize>(step));
      written += step;
      progress(written, all);
    }
  }
}

void WriteSafetensorViews(const std::filesystem::path& path, const TensorViews& tensors,
  const Metadata& metadata, const Progress& progress)
{
  AtomicFile file(path);
  WriteSafetensorViews(file.GetStream(), tensors, metadata, progress);
  for (const auto& [name, tensor] : tensors)
  {
    RequireIntact(tensor.data); // it may be mapped
  }
  file.Commit();
}

void WriteSafetensors(
  const std::filesystem::path& path, const Tensors& tensors, const Metadata& metadata)
{
  WriteSafetensorViews(path, ViewsOf(tensors), metadata);
}

}
