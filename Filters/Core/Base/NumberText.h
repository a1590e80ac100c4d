#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace atlas
{

/// The number that a whole text is in decimal form; none for anything else, as spaces or a plus.
template<class Number>
std::optional<Number> ToNumber(std::string_view text)
{
  Number number = 0;
  const char* begin = text.data();
  const char* end = begin + text.size();
  const auto [last, error] = std::from_chars(begin, end, number);
  return error == std::errc() && last == end ? std::optional(number) : std::nullopt;
}

/// The number whose bytes, at most eight, are these: the highest first, or the lowest.
inline std::uint64_t BigEndian(std::string_view bytes)
{
  std::uint64_t number = 0;
  for (const char byte : bytes)
  {
    number = number << 8U | static_cast<unsigned char>(byte);
  }
  return number;
}
inline std::uint64_t LittleEndian(std::string_view bytes)
{
  std::uint64_t number = 0;
  for (auto byte = bytes.rbegin(); byte != bytes.rend(); ++byte)
  {
    number = number << 8U | static_cast<unsigned char>(*byte);
  }
  return number;
}

}
