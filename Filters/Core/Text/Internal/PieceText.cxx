#include "PieceText.h"

#include "Base/Error.h"
#include "Base/Utf8Text.h"

#include <array>
#include <cstdio>

namespace atlas
{
namespace
{

/// The value of a hexadecimal digit, upper case, or -1.
int DigitValue(char digit)
{
  return digit >= '0' && digit <= '9'   ? digit - '0'
         : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
                                        : -1;
}

bool FollowsMark(std::string_view text, std::size_t position)
{
  return position >= SpaceMark.size() &&
         text.substr(position - SpaceMark.size(), SpaceMark.size()) == SpaceMark;
}

}

void RequirePiece(
  std::string_view token, std::optional<std::int64_t> known, const std::string& source)
{
  RequireUtf8(token, source + ": a token");
  const std::string found = "found '" + std::string(token.substr(0, 80)) + "'";
  ThrowIf<FormatError>(token.empty() || token.size() > LongestPiece, source,
    ": expected tokens of 1 to ", LongestPiece, " bytes, ", found, " of ", token.size(), ".");
  ThrowIf<FormatError>(
    known.has_value(), source, ": expected tokens that differ, ", found, " twice.");
}

std::string BytePiece(unsigned char byte)
{
  std::array<char, 8> text = {};
  std::snprintf(text.data(), text.size(), "<0x%02X>", static_cast<unsigned>(byte));
  return text.data();
}

std::string PieceText(std::string_view token)
{
  if (token.size() == 6 && token.substr(0, 3) == "<0x" && token[5] == '>' &&
      DigitValue(token[3]) >= 0 && DigitValue(token[4]) >= 0)
  {
    return { static_cast<char>(DigitValue(token[3]) * 16 + DigitValue(token[4])) };
  }
  std::string text;
  std::size_t begin = 0;
  for (std::size_t mark = token.find(SpaceMark); mark != std::string_view::npos;
    mark = token.find(SpaceMark, begin))
  {
    text += token.substr(begin, mark - begin);
    text += ' ';
    begin = mark + SpaceMark.size();
  }
  text += token.substr(begin);
  return text;
}

std::size_t NextWord(std::string_view text, std::size_t position)
{
  std::size_t next = position;
  do
  {
    next = text.find(SpaceMark, next + 1);
  } while (next != std::string_view::npos && FollowsMark(text, next));
  return next == std::string_view::npos ? text.size() : next;
}

}
