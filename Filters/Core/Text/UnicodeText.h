#pragma once

#include "Base/Utf8Text.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// Replaces each maximal invalid part of UTF-8 by U+FFFD, as browsers and Python do.
std::string ReplaceInvalidUtf8(std::string_view bytes);

/// The normalization forms of Unicode: canonical or compatibility (K), decomposed or composed.
enum class NormalizationForm
{
  NFC,
  NFD,
  NFKC,
  NFKD
};

/// Returns `text`, which must be UTF-8, in a normalization form.
std::string Normalize(NormalizationForm form, std::string_view text);

/// Converts each character to lower case on its own, without rules of any language or context, such
/// as the final sigma. `text` must be UTF-8.
std::string ToLower(std::string_view text);

/// Removes the differences of case by Unicode's full case folding, then composes characters (NFC):
/// texts that differ only in case, or in how accents are encoded, become equal. `text` must be
/// UTF-8.
std::string FoldCase(std::string_view text);

/// Where each grapheme cluster ends, in bytes: what a reader sees as one character, such as a
/// letter with its accents. `text` must be UTF-8.
std::vector<std::size_t> ClusterEnds(std::string_view text);

/// The text without the white space at its ends. `text` must be UTF-8.
std::string_view Stripped(std::string_view text, bool left = true, bool right = true);

/// The character classes of Hugging Face's tokenizers library. Those of a version of Unicode keep
/// it: a later character is in none of them.
bool IsWhitespace(char32_t c);     ///< Unicode's White_Space
bool IsPunctuation(char32_t c);    ///< category P of Unicode 8, and all ASCII symbols, such as $
bool IsNonspacingMark(char32_t c); ///< category Mn of Unicode 8: an accent, for BERT
bool IsMark(char32_t c);           ///< category M of Unicode 9: an accent, for StripAccents
bool IsOther(char32_t c);          ///< control, format or private use of Unicode 8
bool IsWordCharacter(char32_t c);  ///< \w in regular expressions: letter, mark, digit, connector,
                                   ///< zero-width joiner or non-joiner
bool IsChinese(char32_t c); ///< in a block of CJK ideographs, which BERT separates; extension
                            ///< E counts from U+2B920 on, as in the library

}
