#pragma once

#include "Joined.h"

#include <string>
#include <string_view>

namespace atlas
{

/// A value and its name in files. A list of them, such as a std::array, is the one place where the
/// names of an enumeration stand. Where a value has several names, the first one is written.
template<class Value>
struct Named
{
  std::string_view name;
  Value value;
};

/// The item of that name, or nullptr.
template<class List>
const typename List::value_type* FindNamed(const List& list, std::string_view name)
{
  for (const auto& item : list)
  {
    if (item.name == name)
    {
      return &item;
    }
  }
  return nullptr;
}

/// The name of a value that the list has.
template<class List, class Value>
std::string NameOf(const List& list, Value value)
{
  const auto* item = list.data();
  while (item->value != value)
  {
    ++item;
  }
  return std::string(item->name);
}

/// The value of that name. Throws ErrorType if there is none. The message begins with `what`, the
/// origin of the name, and lists the names. An empty name is an error like any other.
template<class ErrorType, class List>
auto ParseNamed(const List& list, std::string_view name, const std::string& what)
{
  if (const auto* found = FindNamed(list, name))
  {
    return found->value;
  }
  throw ErrorType(what + ": expected one of " + NamesOf(list) + ", found '" +
                  std::string(name.substr(0, 80)) + "'.");
}

}
