#include "CharacterMap.h"

#include "Base/Error.h"
#include "Base/NumberText.h"
#include "Base/Utf8Text.h"

#include <algorithm>

namespace atlas
{
namespace
{

/// Longer entries and replacements, in bytes, are none. The longest of Unicode's forms has 33.
constexpr std::size_t LongestEntry = 256;

// The bits of darts-clone's units.
bool HasLeaf(std::uint32_t unit)
{
  return (unit >> 8U & 1U) == 1;
}

std::uint32_t Value(std::uint32_t unit)
{
  return unit & 0x7FFFFFFFU;
}

std::uint32_t Label(std::uint32_t unit)
{
  return unit & 0x800000FFU;
}

std::uint32_t Offset(std::uint32_t unit)
{
  return (unit >> 10U) << ((unit & 0x200U) >> 6U);
}

bool BeginsCharacter(std::string_view text, std::size_t position)
{
  return position == text.size() || (static_cast<unsigned char>(text[position]) & 0xC0U) != 0x80U;
}

}

CharacterMap::CharacterMap(std::string_view bytes, const std::string& source)
{
  const std::size_t size = bytes.size() < 4 ? 0 : LittleEndian(bytes.substr(0, 4));
  ThrowIf<FormatError>(bytes.size() < 4 || size % 4 != 0 || size == 0 || size > bytes.size() - 4,
    source, ": the character map: expected the size of a trie within its ", bytes.size(),
    " bytes, found ", size, ".");
  this->Units.reserve(size / 4);
  for (std::size_t i = 0; i < size; i += 4)
  {
    this->Units.push_back(static_cast<std::uint32_t>(LittleEndian(bytes.substr(4 + i, 4))));
  }
  this->Replacements = bytes.substr(4 + size);
  RequireUtf8(this->Replacements, source + ": the replacements of the character map");
}

CharacterMap::Match CharacterMap::Find(std::string_view text, bool takesFirst) const
{
  const std::string_view replacements = this->Replacements;
  Match found;
  std::size_t node = Offset(this->Units[0]);
  text = text.substr(0, LongestEntry + 1);
  for (std::size_t i = 0; i < text.size(); ++i)
  {
    const auto byte = static_cast<unsigned char>(text[i]);
    node ^= byte;
    if (byte == 0 || node >= this->Units.size() || Label(this->Units[node]) != byte)
    {
      break;
    }
    const std::uint32_t unit = this->Units[node];
    node ^= Offset(unit);
    if (!HasLeaf(unit) || node >= this->Units.size() || !BeginsCharacter(text, i + 1))
    {
      continue;
    }
    const std::size_t begin = std::min<std::size_t>(Value(this->Units[node]), replacements.size());
    const std::string_view replacement = replacements.substr(begin, LongestEntry);
    const std::size_t end = replacement.find('\0');
    if (end != std::string_view::npos && BeginsCharacter(replacements, begin))
    {
      found = { i + 1, replacement.substr(0, end) };
      if (takesFirst)
      {
        break;
      }
    }
  }
  return found;
}

std::optional<std::string> DecodeBase64(std::string_view text)
{
  constexpr std::string_view digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::size_t padding = 0;
  while (!text.empty() && text.back() == '=' && padding < 2)
  {
    text.remove_suffix(1);
    ++padding;
  }
  if ((text.size() + padding) % 4 != 0)
  {
    return std::nullopt;
  }
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text)
  {
    const std::size_t digit = digits.find(c);
    if (digit == std::string_view::npos)
    {
      return std::nullopt;
    }
    bits = bits << 6U | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count >= 8)
    {
      count -= 8;
      bytes += static_cast<char>(static_cast<unsigned char>(bits >> static_cast<unsigned>(count)));
    }
  }
  return bytes;
}

}
