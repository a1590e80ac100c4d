#pragma once

#include <string>
#include <string_view>

namespace atlas
{

/// The texts of a list of items, such as "F32, F16", for messages. `textOf` returns the text of an
/// item.
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

/// The names of a list of items with a member `name`.
template<class List>
std::string NamesOf(const List& list)
{
  return Joined(list, [](const auto& item) { return std::string_view(item.name); });
}

}
