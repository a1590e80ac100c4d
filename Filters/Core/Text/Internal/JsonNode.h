#pragma once

// Internal to Core: values of JSON files. Included by .cxx files only.

#include "Base/Error.h"
#include "Base/FailsIf.h"
#include "Files/JsonText.h"

#include <cstdint>
#include <string>
#include <vector>

namespace atlas
{

/// A JSON value and its place in the file, for messages. Functions throw FormatError where the
/// value is of another type.
class JsonNode : public FailsIf<JsonNode>
{
public:
  /// Keeps references to the value and to the source.
  JsonNode(const nlohmann::json& value, std::string name, const std::string& source);

  const nlohmann::json& Get() const { return *this->Value; }
  const std::string& GetSource() const { return *this->Source; }
  bool IsNull() const { return this->Value->is_null(); }

  template<class... Parts>
  [[noreturn]] void Fail(const Parts&... message) const
  {
    throw FormatError(*this->Source, ": ", this->Name, ": ", message...);
  }

  /// "expected ..., found" the value.
  template<class... Parts>
  [[noreturn]] void FailExpected(const Parts&... expected) const
  {
    this->Fail("expected ", expected..., ", found ", Describe(*this->Value), ".");
  }

  template<class... Parts>
  void FailExpectedIf(bool condition, const Parts&... expected) const
  {
    if (condition)
    {
      this->FailExpected(expected...);
    }
  }

  /// A member of an object; null if it is missing.
  JsonNode At(const std::string& key) const;

  std::vector<JsonNode> Items() const;
  std::vector<JsonNode> Pair(const char* expected) const; ///< two items, which are `expected`
  std::string String() const;
  bool Bool(bool otherwise) const; ///< `otherwise` if it is null
  std::int64_t Integer() const;
  std::string String(const std::string& otherwise) const; ///< likewise
  std::int64_t Integer(std::int64_t otherwise) const;     ///< likewise
  double Number() const;                                  ///< finite

private:
  const nlohmann::json* Value;
  std::string Name;
  const std::string* Source;
};

}
