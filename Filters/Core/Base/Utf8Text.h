#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// Throws FormatError if `text` is not UTF-8 (no surrogates, no overlong forms); the message starts
/// with `source` and gives the position and the value of the first byte that does not fit.
void RequireUtf8(std::string_view text, const std::string& source);

/// The lines of a text, without their ends (\n or \r\n). What ends the text ends its last line;
/// an empty text has none.
std::vector<std::string> SplitLines(std::string_view text);

/// True if every byte is below 128.
bool IsAscii(std::string_view text);

/// Reads the character at `position` of UTF-8 text and moves `position` behind it.
char32_t NextCharacter(std::string_view text, std::size_t& position);

/// Appends a character as UTF-8.
void Append(std::string& text, char32_t c);

/// Number of characters of UTF-8 text.
std::size_t CharacterCount(std::string_view text);

}
