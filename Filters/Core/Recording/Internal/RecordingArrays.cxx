#include "RecordingArrays.h"

#include "Base/Joined.h"
#include "Files/JsonText.h"

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

/// "[2, ., 8]"
std::string Expected(const Shape& shape)
{
  const auto text = [](std::int64_t size)
  { return size < 0 ? std::string(".") : std::to_string(size); };
  return "[" + Joined(shape, text) + "]";
}

}

void KeepResidual(std::vector<SharedMatrix> residual, Recording& recording)
{
  if (std::any_of(residual.begin(), residual.end(),
        [](const SharedMatrix& matrix) { return matrix.IsRecorded(); }))
  {
    recording.residual = std::move(residual);
  }
}

std::vector<double> ParseSlopes(const Metadata& metadata, const std::string& source)
{
  const auto found = metadata.find("alibi_slopes");
  std::vector<double> slopes;
  if (found == metadata.end())
  {
    return slopes;
  }
  const nlohmann::json value = ParseJson(found->second, source, "the metadata 'alibi_slopes'");
  for (const nlohmann::json& slope : value.is_array() ? value : nlohmann::json::array({ value }))
  {
    if (!slope.is_number())
    {
      throw FormatError(source, ": metadata 'alibi_slopes': expected an array of numbers, found ",
        Describe(slope), ".");
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
    this->Fail(name, "expected shape ", Expected(shape), ", but it is missing.");
  }
  const bool fits = std::equal(entry->shape.begin(), entry->shape.end(), shape.begin(), shape.end(),
    [](std::int64_t size, std::int64_t wanted) { return wanted < 0 || size == wanted; });
  this->FailIf(
    !fits, name, "expected shape ", Expected(shape), ", found ", ToString(entry->shape), ".");
  this->Used.insert(this->Prefix + name);
  return entry->load();
}

LoadedArray RecordingArrays::LoadFloating(const std::string& name, const Shape& shape)
{
  const ArrayFile::Entry* entry = this->Find(name);
  if (entry != nullptr && !IsFloating(entry->dtype))
  {
    this->Fail(name, "expected F64, F32, F16 or BF16, found ", Name(entry->dtype), ".");
  }
  return this->Load(name, shape);
}

std::vector<std::int32_t> RecordingArrays::Narrowed(
  const std::string& name, const std::vector<std::int64_t>& numbers, std::int32_t least) const
{
  std::vector<std::int32_t> narrowed;
  for (const std::int64_t number : numbers)
  {
    this->FailIf(number < least || number > std::numeric_limits<std::int32_t>::max(), name,
      "expected integers of 32 bits from ", least, " on, found ", number, ".");
    narrowed.push_back(static_cast<std::int32_t>(number));
  }
  return narrowed;
}

std::vector<std::int64_t> RecordingArrays::LoadIntegers(const std::string& name, const Shape& shape)
{
  const ArrayFile::Entry* entry = this->Find(name);
  if (entry != nullptr && IsFloating(entry->dtype))
  {
    this->Fail(name, "expected integers, found ", Name(entry->dtype), ".");
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
  const float* values = matrix.values.get();
  const float* end = values + matrix.Count();
  const float* wrong = std::find_if(values, end,
    [&](float value) { return !std::isfinite(value) && !(allowMinusInfinity && value < 0); });
  if (wrong != end)
  {
    const std::int64_t place = wrong - values;
    this->Fail(name, "expected finite numbers, found ", *wrong, " for the token in row ",
      place / columns, ", column ", place % columns, ".");
  }
  return matrix;
}

SharedMatrix RecordingArrays::LoadMatrix(
  const std::string& name, std::int64_t rows, std::int64_t columns, bool allowMinusInfinity)
{
  if (!this->Has(name))
  {
    return {};
  }
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
  // Their names, by pattern and reason.
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> groups;
  for (const auto& [name, entry] : this->GetEntries())
  {
    if (this->Used.count(name) == 0)
    {
      const auto found = this->Reasons.find(name);
      groups[{ Pattern(name), found == this->Reasons.end()
                                ? "no quantity of a recording has this name"
                                : found->second }]
        .push_back(name);
    }
  }
  std::vector<std::string> lines;
  for (const auto& [key, names] : groups)
  {
    const bool isOne = names.size() == 1;
    lines.push_back(Concat(this->Source, ": array '", isOne ? names.front() : key.first, "' ",
      isOne ? "" : Concat("(", names.size(), " of them) "), "is not used: ", key.second, "."));
  }
  return lines;
}

}
