#pragma once

#include <algorithm>
#include <cctype>
#include <string>

namespace atlas::test
{

/// A text as the name of a test with a parameter, in which only letters, digits and _ may occur.
inline std::string TestName(std::string text)
{
  std::replace_if(
    text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return text;
}

}
