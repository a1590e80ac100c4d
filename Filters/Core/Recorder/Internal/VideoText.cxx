#include "VideoText.h"

#include <array>
#include <cmath>
#include <utility>

namespace atlas
{
namespace
{

constexpr std::int64_t Minute = 60;
constexpr std::int64_t Hour = 60 * Minute;
constexpr std::int64_t Day = 24 * Hour;

constexpr std::array<const char*, 20> Small = { "zero", "one", "two", "three", "four", "five",
  "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen",
  "sixteen", "seventeen", "eighteen", "nineteen" };
constexpr std::array<const char*, 10> Tens = { "", "", "twenty", "thirty", "forty", "fifty",
  "sixty", "seventy", "eighty", "ninety" };
constexpr std::array<std::pair<std::int64_t, const char*>, 4> Groups = {
  { { 1'000'000'000, "billion" }, { 1'000'000, "million" }, { 1000, "thousand" },
    { 100, "hundred" } }
};

std::string BelowHundred(std::int64_t number)
{
  if (number < static_cast<std::int64_t>(Small.size()))
  {
    return Small.at(number);
  }
  const std::string tens = Tens.at(number / 10);
  return number % 10 == 0 ? tens : tens + "-" + Small.at(number % 10);
}

/// At least two digits.
std::string TwoDigits(std::int64_t number)
{
  return (number < 10 ? "0" : "") + std::to_string(number);
}

}

std::string InWords(std::int64_t number)
{
  std::string words;
  for (const auto& [size, name] : Groups)
  {
    if (number >= size)
    {
      words += (words.empty() ? "" : ", ") + InWords(number / size) + " " + name;
      number %= size;
    }
  }
  if (number > 0 || words.empty())
  {
    words += (words.empty() ? "" : " and ") + BelowHundred(number);
  }
  return words;
}

std::string MinutesText(double seconds)
{
  const auto whole = static_cast<std::int64_t>(std::floor(seconds));
  return TwoDigits(whole / Minute) + ":" + TwoDigits(whole % Minute);
}

std::string DurationText(double seconds)
{
  const auto whole = static_cast<std::int64_t>(std::floor(seconds));
  const std::int64_t days = whole / Day;
  const std::string before =
    days == 0 ? "" : std::to_string(days) + (days == 1 ? " day, " : " days, ");
  return before + std::to_string(whole % Day / Hour) + ":" + TwoDigits(whole % Hour / Minute) +
         ":" + TwoDigits(whole % Minute);
}

}
