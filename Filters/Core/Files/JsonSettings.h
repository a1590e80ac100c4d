#pragma once

// Internal to Core, as JsonText.h is.

#include "Joined.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace atlas
{

/// A value of a setting that texts name.
template<class Value>
struct Named
{
  std::string_view name;
  Value value;
};

/// Fetches and checks settings; every error is a ModelError that names the source and the setting.
/// Of several keys the first that is there and not null counts: older files have other names.
class Settings
{
public:
  using Keys = std::initializer_list<const char*>;

  /// Both must outlive the settings.
  Settings(const nlohmann::json& object, const std::string& source)
    : Object(object)
    , Source(source)
  {
  }

  [[noreturn]] void Fail(const std::string& message) const;

  bool Has(Keys keys) const { return this->Find(keys).second != nullptr; }

  std::int64_t Size(Keys keys) const { return this->ToSize(this->Require(keys)); }
  std::int64_t Size(Keys keys, std::int64_t otherwise) const;

  /// A positive number, or 0 where `zero` says that it is allowed.
  double Number(Keys keys, double otherwise, bool zero = false) const;

  /// So many finite numbers, given as one if all are equal.
  std::vector<double> Numbers(Keys keys, std::size_t count, double otherwise) const;

  bool Flag(Keys keys, bool otherwise) const;

  std::string Text(Keys keys, const std::string& otherwise) const;

  /// A setting whose values have names.
  template<class List>
  auto Choice(Keys keys, const std::string& otherwise, const List& list) const
  {
    const std::string name = this->Text(keys, otherwise);
    for (const auto& item : list)
    {
      if (item.name == name)
      {
        return item.value;
      }
    }
    this->Fail("unknown " + std::string(*keys.begin()) + " '" + name.substr(0, 80) +
               "', expected one of " + NamesOf(list) + ".");
  }

  /// An extent [height, width], given as one number if both are equal.
  std::pair<std::int64_t, std::int64_t> Extent(Keys keys, std::int64_t otherwise) const;

  bool IsNested(Keys keys) const;

  /// A nested object, or nothing.
  std::optional<Settings> Nested(Keys keys) const;

  /// Refuses what is switched on by any of `keys`; `what` calls it, such as "a variant of
  /// attention".
  void RefuseVariants(Keys keys, const std::string& what = "a variant of attention") const;

private:
  using Entry = std::pair<const char*, const nlohmann::json*>;

  const nlohmann::json& Object;
  const std::string& Source;

  Entry Find(Keys keys) const;
  Entry Require(Keys keys) const;
  [[noreturn]] void FailValue(
    const Entry& entry, const std::string& expected, const nlohmann::json& found) const;
  std::int64_t ToSize(const Entry& entry) const;
};

}
