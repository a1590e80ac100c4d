#include "TokenLabel.h"

#include <array>
#include <cstdio>

namespace atlas
{
namespace
{

constexpr std::string_view MiddleDot = "\xC2\xB7";

std::string Escaped(char c)
{
  switch (c)
  {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      break;
  }
  std::array<char, 8> text;
  std::snprintf(text.data(), text.size(), "\\x%02X", static_cast<unsigned>(c) & 0xFFU);
  return text.data();
}

}

std::string TokenLabel(std::string_view token)
{
  if (token.empty())
  {
    return "''";
  }
  constexpr char lastControl = 31;
  constexpr char deletion = 127;
  std::string label;
  bool isLeading = true;
  for (const char c : token)
  {
    isLeading = isLeading && c == ' ';
    if (isLeading)
    {
      label += MiddleDot;
    }
    else if ((c >= 0 && c <= lastControl) || c == deletion)
    {
      label += Escaped(c);
    }
    else
    {
      label += c;
    }
  }
  return label;
}

std::string WithLeadingSpaces(std::string_view text)
{
  std::size_t dots = 0;
  while (text.substr(dots * MiddleDot.size(), MiddleDot.size()) == MiddleDot)
  {
    ++dots;
  }
  return std::string(dots, ' ') + std::string(text.substr(dots * MiddleDot.size()));
}

}
