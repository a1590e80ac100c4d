#pragma once

// Internal to Core: how SentencePiece writes text. Tokenizer.h is the interface.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace atlas
{

/// U+2581, which stands for a space in the tokens of SentencePiece.
inline constexpr std::string_view SpaceMark = "\xE2\x96\x81";

/// Longer tokens, in bytes, are refused, so that the time for a text depends on its length only.
inline constexpr std::size_t LongestPiece = 1024;

/// Throws FormatError if a token is empty, not UTF-8, longer than LongestPiece, or known already.
void RequirePiece(
  std::string_view token, std::optional<std::int64_t> known, const std::string& source);

/// The token of a byte: <0x00> to <0xFF>.
std::string BytePiece(unsigned char byte);

/// The text that a token of SentencePiece stands for: U+2581 is a space, and <0x41> the byte 65.
std::string PieceText(std::string_view token);

/// Where the next word begins, as SentencePiece separates them: at a U+2581 that follows another
/// character. `position` is where a word begins; the end of the text if it is the last.
std::size_t NextWord(std::string_view text, std::size_t position);

}
