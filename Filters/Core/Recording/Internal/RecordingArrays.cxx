#include "RecordingArrays.h"

#include "Error.h"
#include "Joined.h"
#include "JsonText.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace atlas
{
namespace
{

/// The name with its first number between dots replaced by {l}.
std::string Pattern(const std::string& name)
{
  for (std::size_t begin = 0; begin < name.size();)
  {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    if (ParseIndex(std::string_view(name).substr(begin, end - begin), MaximumLayers))
    {
      return name.substr(0, begin) + "{l}" + name.substr(end);
    }
    begin = end + 1;
  }
  return name;
}

bool Fits(const Shape& shape, const Shape& expected)
{
  bool fits = shape.size() == expected.size();
  for (std::size_t i = 0; fits && i < shape.size(); ++i)
  {
    fits = expected[i] < 0 || shape[i] == expected[i];
  }
  return fits;
}

/// "[2, ., 8]"
std::string Expected(const Shape& shape)
{
  const auto text = [](std::int64_t size)
  { return size < 0 ? std::string(".") : std::to_string(size); };
  return "[" + Joined(shape, text) + "]";
}

}

std::vector<double> ParseSlopes(const Metadata& metadata, const std::string& source)
{
  const auto found = metadata.find("alibi_slopes");
  if (found == metadata.end())
  {
    return {};
  }
  const nlohmann::json value = ParseJson(found->second, source, "the metadata 'alibi_slopes'");
  std::vector<double> slopes;
  for (const nlohmann::json& slope : value.is_array() ? value : nlohmann::json::array({ value }))
  {
    if (!slope.is_number())
    {
      throw FormatError(source + ": metadata 'alibi_slopes': expected an array of numbers, found " +
                        Describe(slope) + ".");
    }
    slopes.push_back(slope.get<double>());
  }
  return slopes;
}

std::optional<std::int64_t> ParseIndex(std::string_view text, std::int64_t maximum)
{
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0 || number > maximum ||
      text.front() == '-' || (text.size() > 1 && text.front() == '0'))
  {
    return std::nullopt;
  }
  return number;
}

std::optional<std::pair<std::int64_t, std::string>> ParseIndexed(
  std::string_view name, std::string_view prefix)
{
  if (name.substr(0, prefix.size()) != prefix)
  {
    return std::nullopt;
  }
  name.remove_prefix(prefix.size());
  const std::size_t dot = std::min(name.find('.'), name.size());
  const std::optional<std::int64_t> number = ParseIndex(name.substr(0, dot), MaximumHeads);
  if (!number)
  {
    return std::nullopt;
  }
  return std::pair(*number, std::string(name.substr(std::min(dot + 1, name.size()))));
}

void RecordingArrays::Fail(const std::string& name, const std::string& message) const
{
  throw ModelError(this->Source + ": array '" + this->Prefix + name + "': " + message);
}

const ArrayFile::Entry* RecordingArrays::Find(const std::string& name) const
{
  const auto found = this->GetEntries().find(this->Prefix + name);
  return found == this->GetEntries().end() ? nullptr : &found->second;
}

LoadedArray RecordingArrays::Load(const std::string& name, const Shape& shape)
{
  const ArrayFile::Entry* entry = this->Find(name);
  if (entry == nullptr)
  {
    this->Fail(name, "expected shape " + Expected(shape) + ", but it is missing.");
  }
  if (!Fits(entry->shape, shape))
  {
    this->Fail(
      name, "expected shape " + Expected(shape) + ", found " + ToString(entry->shape) + ".");
  }
  this->Used.insert(this->Prefix + name);
  return entry->load();
}

LoadedArray RecordingArrays::LoadFloating(const std::string& name, const Shape& shape)
{
  const ArrayFile::Entry* entry = this->Find(name);
  if (entry != nullptr && !IsFloating(entry->dtype))
  {
    this->Fail(
      name, "expected F64, F32, F16 or BF16, found " + std::string(Name(entry->dtype)) + ".");
  }
  return this->Load(name, shape);
}

std::vector<std::int64_t> RecordingArrays::LoadIntegers(const std::string& name, const Shape& shape)
{
  const ArrayFile::Entry* entry = this->Find(name);
  if (entry != nullptr && IsFloating(entry->dtype))
  {
    this->Fail(name, "expected integers, found " + std::string(Name(entry->dtype)) + ".");
  }
  return this->Load(name, shape).view.ToInteger();
}

SharedMatrix RecordingArrays::Gather(const std::string& name, const LoadedArray& array,
  std::int64_t rows, std::int64_t columns, const std::function<std::uint64_t(std::int64_t)>& offset,
  bool allowMinusInfinity) const
{
  const auto width = static_cast<std::uint64_t>(columns);
  const std::uint64_t first = rows > 0 ? offset(0) : 0;
  bool contiguous = true;
  for (std::int64_t i = 0; contiguous && i < rows; ++i)
  {
    contiguous = offset(i) == first + static_cast<std::uint64_t>(i) * width;
  }
  SharedMatrix matrix;
  const std::byte* data = array.view.data + first * sizeof(float);
  if (rows > 0 && contiguous && array.view.dtype == DType::F32 &&
      reinterpret_cast<std::uintptr_t>(data) % alignof(float) == 0)
  {
    auto* values = const_cast<float*>(reinterpret_cast<const float*>(data)); // never written to
    const std::shared_ptr<void> owner = std::const_pointer_cast<void>(array.owner);
    matrix = { rows, columns, std::shared_ptr<float>(owner, values) };
  }
  else
  {
    matrix = SharedMatrix::Zero(rows, columns);
    for (std::int64_t i = 0; i < rows; ++i)
    {
      const std::uint64_t begin = offset(i);
      array.view.ToFloat(begin, begin + width, matrix.Row(i));
    }
  }
  this->CheckFinite(name, matrix, allowMinusInfinity);
  return matrix;
}

void RecordingArrays::CheckFinite(
  const std::string& name, const SharedMatrix& matrix, bool allowMinusInfinity) const
{
  const float* values = matrix.values.get();
  for (std::size_t i = 0; i < matrix.Count(); ++i)
  {
    const float value = values[i];
    if (!std::isfinite(value) && !(allowMinusInfinity && std::isinf(value) && value < 0))
    {
      const std::size_t columns = matrix.columns;
      this->Fail(name, "expected finite numbers, found " + std::to_string(value) +
                         " for the token in row " + std::to_string(i / columns) + ", column " +
                         std::to_string(i % columns) + ".");
    }
  }
}

SharedMatrix RecordingArrays::LoadMatrix(
  const std::string& name, std::int64_t rows, std::int64_t columns, bool allowMinusInfinity)
{
  const LoadedArray array = this->LoadFloating(name, { rows, columns });
  const std::int64_t width = array.view.shape[1];
  return this->Gather(
    name, array, rows, width, [&](std::int64_t i) { return static_cast<std::uint64_t>(i * width); },
    allowMinusInfinity);
}

void RecordingArrays::Explain(const std::string& name, const std::string& reason)
{
  this->Reasons.emplace(this->Prefix + name, reason);
}

std::vector<std::string> RecordingArrays::Unused() const
{
  struct Group
  {
    std::string name;
    std::string reason;
    std::size_t count = 0;
  };
  std::map<std::pair<std::string, std::string>, Group> groups;
  for (const auto& [name, entry] : this->GetEntries())
  {
    if (this->Used.count(name) > 0)
    {
      continue;
    }
    const auto found = this->Reasons.find(name);
    const std::string reason =
      found == this->Reasons.end() ? "no quantity of a recording has this name" : found->second;
    Group& group = groups[{ Pattern(name), reason }];
    group.name = group.count == 0 ? name : Pattern(name);
    group.reason = reason;
    ++group.count;
  }
  std::vector<std::string> lines;
  for (const auto& [key, group] : groups)
  {
    const bool one = group.count == 1;
    lines.push_back(this->Source + ": array '" + group.name + "' " +
                    (one ? "" : "(" + std::to_string(group.count) + " of them) ") +
                    "is not used: " + group.reason + ".");
  }
  return lines;
}

}
