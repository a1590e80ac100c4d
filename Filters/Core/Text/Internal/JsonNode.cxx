#include "JsonNode.h"

#include "Error.h"

#include <cmath>
#include <limits>

namespace atlas
{

JsonNode::JsonNode(const nlohmann::json& value, std::string name, const std::string& source)
  : Value(&value)
  , Name(std::move(name))
  , Source(&source)
{
}

void JsonNode::Fail(const std::string& message) const
{
  throw FormatError(*this->Source + ": " + this->Name + ": " + message);
}
void JsonNode::FailExpected(const std::string& expected) const
{
  this->Fail("expected " + expected + ", found " + Describe(*this->Value) + ".");
}

JsonNode JsonNode::At(const std::string& key) const
{
  static const nlohmann::json null;
  if (!this->Value->is_object())
  {
    this->FailExpected("an object");
  }
  const auto found = this->Value->find(key);
  return { found == this->Value->end() ? null : *found,
    this->Name.empty() ? key : this->Name + "." + key, *this->Source };
}

std::vector<JsonNode> JsonNode::Items() const
{
  if (!this->Value->is_array())
  {
    this->FailExpected("an array");
  }
  std::vector<JsonNode> items;
  items.reserve(this->Value->size());
  for (const nlohmann::json& item : *this->Value)
  {
    items.emplace_back(item, this->Name + "[" + std::to_string(items.size()) + "]", *this->Source);
  }
  return items;
}

std::string JsonNode::String() const
{
  if (!this->Value->is_string())
  {
    this->FailExpected("a string");
  }
  return this->Value->get<std::string>();
}

bool JsonNode::Bool(bool otherwise) const
{
  if (this->IsNull())
  {
    return otherwise;
  }
  if (!this->Value->is_boolean())
  {
    this->FailExpected("true or false");
  }
  return this->Value->get<bool>();
}

std::int64_t JsonNode::Integer() const
{
  const bool fits = this->Value->is_number_integer() &&
                    (!this->Value->is_number_unsigned() ||
                      this->Value->get<std::uint64_t>() <=
                        std::uint64_t{ std::numeric_limits<std::int64_t>::max() });
  if (!fits)
  {
    this->FailExpected("an integer");
  }
  return this->Value->get<std::int64_t>();
}

double JsonNode::Number() const
{
  const double number =
    this->Value->is_number() ? this->Value->get<double>() : std::numeric_limits<double>::infinity();
  if (!std::isfinite(number))
  {
    this->FailExpected("a finite number");
  }
  return number;
}

}
