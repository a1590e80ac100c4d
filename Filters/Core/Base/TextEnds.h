#pragma once

#include <string_view>

namespace atlas
{

inline bool BeginsWith(std::string_view text, std::string_view begin)
{
  return text.substr(0, begin.size()) == begin;
}

inline bool EndsWith(std::string_view text, std::string_view end)
{
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

}
