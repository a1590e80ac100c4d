#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// Throws FormatError if `text` is not UTF-8 (no surrogates, no overlong forms); the message starts
/// with `source` and gives the position and the value of the first byte that does not fit.
void RequireUtf8(std::string_view text, const std::string& source);

/// The text with U+FFFD for each longest part that is not UTF-8, as browsers and Python replace it.
std::string ReplaceInvalidUtf8(std::string_view bytes);

/// The lines of a text, without their ends (\n or \r\n). What ends the text ends its last line;
/// an empty text has none.
std::vector<std::string> SplitLines(std::string_view text);

/// True if every byte is below 128.
bool IsAscii(std::string_view text);

/// Unicode's normalization forms: canonical or compatibility (K), decomposed or composed.
enum class NormalizationForm
{
  NFC,
  NFD,
  NFKC,
  NFKD
};

/// `text`, which is UTF-8, in a normalization form.
std::string Normalize(NormalizationForm form, std::string_view text);

/// Lower case of each character by itself, in no particular language: without the final form of a
/// sigma. `text` is UTF-8.
std::string ToLower(std::string_view text);

/// What BERT's tokenizers ask about a character.
bool IsWhitespace(char32_t c);     ///< Unicode's White_Space
bool IsPunctuation(char32_t c);    ///< category P, and every ASCII sign, such as $ and +
bool IsNonspacingMark(char32_t c); ///< category Mn: an accent
bool IsOther(char32_t c);          ///< category C: control, format, private use, unassigned
bool IsNumeric(char32_t c);        ///< category N
bool IsWordCharacter(char32_t c);  ///< letter, mark, digit or connector, as \w of expressions
bool IsChinese(char32_t c);        ///< in a block of CJK ideographs, which BERT sets apart

/// Reads the character at `position` of UTF-8 text and moves `position` behind it.
char32_t NextCharacter(std::string_view text, std::size_t& position);

/// Appends a character as UTF-8.
void Append(std::string& text, char32_t c);

/// Number of characters of UTF-8 text.
std::size_t CharacterCount(std::string_view text);

}
