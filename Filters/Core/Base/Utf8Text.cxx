#include "Utf8Text.h"

#include "Error.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <numeric>
#include <utility>

#include <utf8.h>

namespace atlas
{
namespace
{

constexpr char32_t AsciiEnd = 128;

}

void RequireUtf8(std::string_view text, const std::string& source)
{
  const auto invalid = utf8::find_invalid(text.begin(), text.end());
  if (invalid != text.end())
  {
    std::array<char, 8> byte = {};
    std::snprintf(byte.data(), byte.size(), "0x%02x",
      static_cast<unsigned>(static_cast<unsigned char>(*invalid)));
    throw FormatError(source, ": expected UTF-8, found the byte ", byte.data(), " at position ",
      invalid - text.begin(), ".");
  }
}

std::vector<std::string> SplitLines(std::string_view text)
{
  std::vector<std::string> lines;
  while (!text.empty())
  {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!line.empty() && line.back() == '\r')
    {
      line.remove_suffix(1);
    }
    lines.emplace_back(line);
  }
  return lines;
}

bool IsAscii(std::string_view text)
{
  return std::all_of(
    text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < AsciiEnd; });
}

char32_t NextCharacter(std::string_view text, std::size_t& position)
{
  const auto first = static_cast<unsigned char>(text[position]);
  if (first < AsciiEnd)
  {
    ++position;
    return first;
  }
  const char* next = text.data() + position;
  const char32_t c = utf8::unchecked::next(next);
  position = static_cast<std::size_t>(next - text.data());
  return c;
}

void Append(std::string& text, char32_t c)
{
  if (c < AsciiEnd)
  {
    text += static_cast<char>(c);
  }
  else
  {
    utf8::unchecked::append(c, std::back_inserter(text));
  }
}

std::size_t CharacterCount(std::string_view text)
{
  return std::count_if(text.begin(), text.end(),
    [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
}

std::size_t EditDistance(const std::u32string& a, const std::u32string& b)
{
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i)
  {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j)
    {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({ replaced, row[j] + 1, diagonal + 1 });
    }
  }
  return row.back();
}

}
