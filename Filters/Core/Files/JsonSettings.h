#pragma once

// Internal to Core, like JsonText.h.

#include "Base/Error.h"
#include "Base/FailsIf.h"
#include "Base/NamedValues.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace atlas
{

/// null, false, numbers up to 0, empty values, and "none".
bool IsOff(const nlohmann::json& value);

/// Fetches and checks settings. Every error is a ModelError that names the source and the setting.
/// If several keys are given, the first one that is present and not null is used, because older
/// files have other names. Remembers which settings were read.
class Settings : public FailsIf<Settings>
{
public:
  using Keys = std::vector<const char*>;

  /// Both arguments must outlive this object.
  Settings(const nlohmann::json& object, const std::string& source)
    : Settings(object, source, {}, std::make_shared<Names>())
  {
  }

  template<class... Parts>
  [[noreturn]] void Fail(const Parts&... message) const
  {
    throw ModelError(this->Source, ": ", message...);
  }

  /// The number of settings.
  std::int64_t Count() const { return this->Object.size(); }

  bool Has(const Keys& keys) const { return this->Find(keys).second != nullptr; }

  std::int64_t Size(const Keys& keys) const { return this->ToSize(this->Require(keys)); }
  std::int64_t Size(const Keys& keys, std::int64_t otherwise) const;

  /// An integer from `least` to `most`.
  std::uint64_t Integer(
    const Keys& keys, std::uint64_t otherwise, std::uint64_t least, std::uint64_t most) const;

  /// Likewise where a signed one holds them.
  std::int64_t Signed(const Keys& keys, std::int64_t otherwise, std::int64_t least = 0,
    std::int64_t most = std::numeric_limits<std::int32_t>::max()) const
  {
    return static_cast<std::int64_t>(this->Integer(keys, static_cast<std::uint64_t>(otherwise),
      static_cast<std::uint64_t>(least), static_cast<std::uint64_t>(most)));
  }

  /// A positive number, or 0 if `zero` is true.
  double Number(const Keys& keys, double otherwise, bool zero = false) const;

  /// A list of `count` finite numbers; a single number stands for a list of equal ones.
  std::vector<double> Numbers(const Keys& keys, std::size_t count, double otherwise) const;

  bool Flag(const Keys& keys, bool otherwise) const;

  std::string Text(const Keys& keys, const std::string& otherwise) const;

  /// A list of `count` strings; empty if there is none.
  std::vector<std::string> Texts(const Keys& keys, std::int64_t count) const;

  /// Whether a setting is present but null, which some formats distinguish from a missing one.
  bool IsNull(const char* key) const;

  /// A setting of any kind, or nullptr if there is none.
  const nlohmann::json* Value(const Keys& keys) const { return this->Find(keys).second; }

  /// A setting with named values.
  template<class List>
  auto Choice(const Keys& keys, const std::string& otherwise, const List& list) const
  {
    const std::string name = this->Text(keys, otherwise);
    if (const auto* found = FindNamed(list, name))
    {
      return found->value;
    }
    this->Fail("unknown ", *keys.begin(), " '", name.substr(0, 80), "', expected one of ",
      NamesOf(list), ".");
  }

  /// An extent [height, width]; a single number stands for both.
  std::pair<std::int64_t, std::int64_t> Extent(const Keys& keys, std::int64_t otherwise) const;

  bool IsNested(const Keys& keys) const;

  /// A nested object, or std::nullopt if it is missing.
  std::optional<Settings> Nested(const Keys& keys) const;

  /// Likewise, but one without settings if it is missing.
  Settings NestedOrEmpty(const Keys& keys) const;

  /// Throws ModelError if any of `keys` is switched on; `what` describes it, for example "a variant
  /// of attention".
  void RefuseVariants(const Keys& keys, const std::string& what = "a variant of attention") const;

  /// Counts settings as read that files have and the original code does not use.
  void Ignore(const Keys& keys) const;

  /// Likewise all of this object, but not what nested objects hold that were read.
  void IgnoreAll() const;

  /// A setting and its place in the file, such as "text_config.".
  struct Unread
  {
    std::string place;
    std::string key;
    const nlohmann::json* value;
  };

  /// The settings that were not read, here and in the nested objects that were. A setting that was
  /// asked for counts as read, also under a name that did not count.
  std::vector<Unread> FindUnread() const;

private:
  using Names = std::set<std::string>;
  using Entry = std::pair<const char*, const nlohmann::json*>;

  const nlohmann::json& Object;
  const std::string& Source;
  std::string Place;
  std::shared_ptr<Names> Read; ///< with their places; nested objects that were read end with a dot

  Settings(const nlohmann::json& object, const std::string& source, std::string place,
    std::shared_ptr<Names> read)
    : Object(object)
    , Source(source)
    , Place(std::move(place))
    , Read(std::move(read))
  {
  }

  Entry Find(const Keys& keys) const;
  Entry Require(const Keys& keys) const;

  /// A setting that is there must be of a type.
  void RequireType(
    const Entry& entry, bool (nlohmann::json::*isOfType)() const, const char* expected) const;
  [[noreturn]] void FailValue(
    const Entry& entry, const std::string& expected, const nlohmann::json& found) const;
  std::int64_t ToSize(const Entry& entry) const;
  std::uint64_t ToInteger(const Entry& entry, std::uint64_t least, std::uint64_t most) const;
};

}
