#include "JsonNode.h"

#include "Base/Error.h"

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

JsonNode JsonNode::At(const std::string& key) const
{
  static const nlohmann::json null;
  this->FailExpectedIf(!this->Value->is_object(), "an object");
  const auto found = this->Value->find(key);
  return { found == this->Value->end() ? null : *found,
    this->Name.empty() ? key : this->Name + "." + key, *this->Source };
}

std::vector<JsonNode> JsonNode::Items() const
{
  this->FailExpectedIf(!this->Value->is_array(), "an array");
  std::vector<JsonNode> items;
  items.reserve(this->Value->size());
  for (const nlohmann::json& item : *this->Value)
  {
    items.emplace_back(item, this->Name + "[" + std::to_string(items.size()) + "]", *this->Source);
  }
  return items;
}

std::vector<JsonNode> JsonNode::Pair(const char* expected) const
{
  std::vector<JsonNode> both = this->Items();
  this->FailExpectedIf(both.size() != 2, expected);
  return both;
}

std::string JsonNode::String() const
{
  this->FailExpectedIf(!this->Value->is_string(), "a string");
  return this->Value->get<std::string>();
}

bool JsonNode::Bool(bool otherwise) const
{
  if (this->IsNull())
  {
    return otherwise;
  }
  this->FailExpectedIf(!this->Value->is_boolean(), "true or false");
  return this->Value->get<bool>();
}

std::int64_t JsonNode::Integer() const
{
  const bool fits = this->Value->is_number_integer() &&
                    (!this->Value->is_number_unsigned() ||
                      this->Value->get<std::uint64_t>() <=
                        std::uint64_t{ std::numeric_limits<std::int64_t>::max() });
  this->FailExpectedIf(!fits, "an integer");
  return this->Value->get<std::int64_t>();
}

std::string JsonNode::String(const std::string& otherwise) const
{
  return this->IsNull() ? otherwise : this->String();
}

std::int64_t JsonNode::Integer(std::int64_t otherwise) const
{
  return this->IsNull() ? otherwise : this->Integer();
}

double JsonNode::Number() const
{
  const double number =
    this->Value->is_number() ? this->Value->get<double>() : std::numeric_limits<double>::infinity();
  this->FailExpectedIf(!std::isfinite(number), "a finite number");
  return number;
}

}
