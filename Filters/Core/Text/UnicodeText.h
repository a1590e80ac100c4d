#pragma once

#include "Utf8Text.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// The text with U+FFFD for each longest part that is not UTF-8, as browsers and Python replace it.
std::string ReplaceInvalidUtf8(std::string_view bytes);

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

}
