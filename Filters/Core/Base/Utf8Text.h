#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// Throws FormatError if `text` is not valid UTF-8 (surrogates and overlong forms are invalid). The
/// message starts with `source` and gives position and value of the first invalid byte.
void RequireUtf8(std::string_view text, const std::string& source);

/// The lines of a text, without line ends (\n or \r\n). A line end at the end of the text does not
/// begin another line. An empty text has no lines.
std::vector<std::string> SplitLines(std::string_view text);

/// True if every byte is below 128.
bool IsAscii(std::string_view text);

/// Returns the character at `position` of UTF-8 text and advances `position` past it.
char32_t NextCharacter(std::string_view text, std::size_t& position);

/// Appends a character as UTF-8.
void Append(std::string& text, char32_t c);

/// The number of characters to insert, delete or replace that makes one text of another
/// (Levenshtein 1966).
std::size_t EditDistance(const std::u32string& a, const std::u32string& b);

/// The number of characters of UTF-8 text.
std::size_t CharacterCount(std::string_view text);

}
