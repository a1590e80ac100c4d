#pragma once

#include <string>
#include <type_traits>
#include <vector>

/// Properties of filters that are lists.
namespace AttentionAtlas
{

template<class Filter, class Item>
void Append(Filter* filter, std::vector<Item>& list, const std::common_type_t<Item>& item)
{
  list.push_back(item);
  filter->Modified();
}

/// The same of a text; null and empty ones are ignored.
template<class Filter>
void AppendText(Filter* filter, std::vector<std::string>& list, const char* text)
{
  if (text != nullptr && *text != '\0')
  {
    Append(filter, list, text);
  }
}

template<class Filter, class Item>
void Clear(Filter* filter, std::vector<Item>& list)
{
  list.clear();
  filter->Modified();
}

}
