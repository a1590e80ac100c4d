#pragma once

#include <string>
#include <string_view>

namespace atlas
{

/// Joins the texts of a list of items for messages, for example "F32, F16". `textOf` returns the
/// text of an item.
template<class List, class TextOf>
std::string Joined(const List& list, const TextOf& textOf, std::string_view separator = ", ")
{
  std::string joined;
  bool isFirst = true;
  for (const auto& item : list)
  {
    joined += isFirst ? std::string_view() : separator;
    joined += textOf(item);
    isFirst = false;
  }
  return joined;
}

/// Joins the names of a list of items with a member `name`.
template<class List>
std::string NamesOf(const List& list)
{
  return Joined(list, [](const auto& item) { return std::string_view(item.name); });
}

}
