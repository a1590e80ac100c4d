#include "JsonSettings.h"

#include "Base/Error.h"
#include "JsonText.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace atlas
{

using nlohmann::json;

bool IsOff(const json& value)
{
  return value.is_null() || value == json(false) || (value.is_number() && value <= 0) ||
         ((value.is_structured() || value.is_string()) &&
           (value.empty() || value == json("") || value == json("none")));
}

std::int64_t Settings::Size(const Keys& keys, std::int64_t otherwise) const
{
  const Entry entry = this->Find(keys);
  return entry.second == nullptr ? otherwise : this->ToSize(entry);
}

std::uint64_t Settings::Integer(
  const Keys& keys, std::uint64_t otherwise, std::uint64_t least, std::uint64_t most) const
{
  const Entry entry = this->Find(keys);
  return entry.second == nullptr ? otherwise : this->ToInteger(entry, least, most);
}

double Settings::Number(const Keys& keys, double otherwise, bool zero) const
{
  const Entry entry = this->Find(keys);
  if (entry.second == nullptr)
  {
    return otherwise;
  }
  const double value = entry.second->is_number() ? entry.second->get<double>() : -1;
  if (!std::isfinite(value) || value < 0 || (value == 0 && !zero))
  {
    this->FailValue(
      entry, zero ? "a number that is not negative" : "a positive number", *entry.second);
  }
  return value;
}

std::vector<double> Settings::Numbers(const Keys& keys, std::size_t count, double otherwise) const
{
  const Entry entry = this->Find(keys);
  if (entry.second == nullptr)
  {
    return std::vector<double>(count, otherwise);
  }
  const json list = entry.second->is_array() ? *entry.second : json(count, *entry.second);
  std::vector<double> numbers;
  for (const json& item : list)
  {
    // Numbers beyond the range of double are rejected.
    if (item.is_number() && std::isfinite(item.get<double>()))
    {
      numbers.push_back(item.get<double>());
    }
  }
  if (numbers.size() != count || list.size() != count)
  {
    this->FailValue(entry, "a number or a list of " + std::to_string(count), *entry.second);
  }
  return numbers;
}

bool Settings::Flag(const Keys& keys, bool otherwise) const
{
  const Entry entry = this->Find(keys);
  this->RequireType(entry, &json::is_boolean, "true or false");
  return entry.second == nullptr ? otherwise : entry.second->get<bool>();
}

std::string Settings::Text(const Keys& keys, const std::string& otherwise) const
{
  const Entry entry = this->Find(keys);
  this->RequireType(entry, &json::is_string, "a string");
  return entry.second == nullptr ? otherwise : entry.second->get<std::string>();
}

std::vector<std::string> Settings::Texts(const Keys& keys, std::int64_t count) const
{
  const Entry entry = this->Find(keys);
  std::vector<std::string> texts;
  if (entry.second == nullptr)
  {
    return texts;
  }
  if (entry.second->is_array() && static_cast<std::int64_t>(entry.second->size()) == count)
  {
    for (const json& item : *entry.second)
    {
      texts.push_back(item.is_string() ? item.get<std::string>() : std::string());
    }
  }
  if (texts.empty() || std::find(texts.begin(), texts.end(), std::string()) != texts.end())
  {
    this->FailValue(entry, "a list of " + std::to_string(count) + " names", *entry.second);
  }
  return texts;
}

bool Settings::IsNull(const char* key) const
{
  this->Ignore({ key });
  const auto found = this->Object.find(key);
  return found != this->Object.end() && found->is_null();
}

std::pair<std::int64_t, std::int64_t> Settings::Extent(
  const Keys& keys, std::int64_t otherwise) const
{
  const Entry entry = this->Find(keys);
  if (entry.second == nullptr)
  {
    return { otherwise, otherwise };
  }
  if (!entry.second->is_array())
  {
    const std::int64_t size = this->ToSize(entry);
    return { size, size };
  }
  if (entry.second->size() != 2)
  {
    this->FailValue(entry, "an integer or two", *entry.second);
  }
  return { this->ToSize({ entry.first, &(*entry.second)[0] }),
    this->ToSize({ entry.first, &(*entry.second)[1] }) };
}

bool Settings::IsNested(const Keys& keys) const
{
  const Entry entry = this->Find(keys);
  return entry.second != nullptr && entry.second->is_object();
}

std::optional<Settings> Settings::Nested(const Keys& keys) const
{
  const Entry entry = this->Find(keys);
  this->RequireType(entry, &json::is_object, "an object");
  if (entry.second == nullptr)
  {
    return std::nullopt;
  }
  const std::string place = this->Place + entry.first + ".";
  this->Read->insert(place);
  return Settings(*entry.second, this->Source, place, this->Read);
}

Settings Settings::NestedOrEmpty(const Keys& keys) const
{
  static const json nothing = json::object();
  return this->Nested(keys).value_or(Settings(nothing, this->Source));
}

void Settings::RefuseVariants(const Keys& keys, const std::string& what) const
{
  this->Ignore(keys);
  for (const char* key : keys)
  {
    const auto found = this->Object.find(key);
    if (found != this->Object.end() && !IsOff(*found))
    {
      this->Fail("'", key, "' is ", Describe(*found), ", ", what,
        " that is not known; expected it to be off.");
    }
  }
}

void Settings::Ignore(const Keys& keys) const
{
  for (const char* key : keys)
  {
    this->Read->insert(this->Place + key);
  }
}

void Settings::IgnoreAll() const
{
  for (const auto& [key, value] : this->Object.items())
  {
    this->Read->insert(this->Place + key);
  }
}

std::vector<Settings::Unread> Settings::FindUnread() const
{
  std::vector<Unread> unread;
  for (const auto& [key, value] : this->Object.items())
  {
    const std::string name = this->Place + key;
    const std::string place = name + ".";
    if (this->Read->count(name) == 0)
    {
      unread.push_back({ this->Place, key, &value });
    }
    else if (this->Read->count(place) != 0)
    {
      for (Unread& inner : Settings(value, this->Source, place, this->Read).FindUnread())
      {
        unread.push_back(std::move(inner));
      }
    }
  }
  return unread;
}

Settings::Entry Settings::Find(const Keys& keys) const
{
  this->Ignore(keys);
  for (const char* key : keys)
  {
    const auto found = this->Object.find(key);
    if (found != this->Object.end() && !found->is_null())
    {
      return { key, &*found };
    }
  }
  return { *keys.begin(), nullptr };
}

Settings::Entry Settings::Require(const Keys& keys) const
{
  const Entry entry = this->Find(keys);
  this->FailIf(entry.second == nullptr, "'", entry.first, "' is missing.");
  return entry;
}

void Settings::RequireType(
  const Entry& entry, bool (json::*isOfType)() const, const char* expected) const
{
  if (entry.second != nullptr && !(entry.second->*isOfType)())
  {
    this->FailValue(entry, expected, *entry.second);
  }
}

void Settings::FailValue(const Entry& entry, const std::string& expected, const json& found) const
{
  this->Fail("expected '", entry.first, "' to be ", expected, ", found ", Describe(found), ".");
}

std::int64_t Settings::ToSize(const Entry& entry) const
{
  constexpr std::uint64_t most = std::numeric_limits<std::int32_t>::max();
  return static_cast<std::int64_t>(this->ToInteger(entry, 1, most));
}

std::uint64_t Settings::ToInteger(const Entry& entry, std::uint64_t least, std::uint64_t most) const
{
  const json& value = *entry.second;
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() < least ||
      value.get<std::uint64_t>() > most)
  {
    this->FailValue(
      entry, "an integer from " + std::to_string(least) + " to " + std::to_string(most), value);
  }
  return value.get<std::uint64_t>();
}

}
