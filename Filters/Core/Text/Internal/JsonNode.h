#pragma once

// Internal to Core: values of JSON files. Included by .cxx files only.

#include "JsonText.h"

#include <cstdint>
#include <string>
#include <vector>

namespace atlas
{

/// A JSON value and its place in the file, for messages. Functions throw FormatError where the
/// value is of another type.
class JsonNode
{
public:
  /// Keeps references to the value and to the source.
  JsonNode(const nlohmann::json& value, std::string name, const std::string& source);

  const nlohmann::json& Get() const { return *this->Value; }
  const std::string& GetSource() const { return *this->Source; }
  bool IsNull() const { return this->Value->is_null(); }

  [[noreturn]] void Fail(const std::string& message) const;

  /// "expected ..., found" the value.
  [[noreturn]] void FailExpected(const std::string& expected) const;

  /// A member of an object; null if it is missing.
  JsonNode At(const std::string& key) const;

  std::vector<JsonNode> Items() const;
  std::string String() const;
  bool Bool(bool otherwise) const; ///< `otherwise` if it is null
  std::int64_t Integer() const;
  double Number() const; ///< finite

private:
  const nlohmann::json* Value;
  std::string Name;
  const std::string* Source;
};

}
