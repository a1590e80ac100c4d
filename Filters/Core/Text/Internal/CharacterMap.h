#pragma once

// Internal to Core: replacements of characters. Tokenizer.h is the interface.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// SentencePiece's compiled table of replacements ("precompiled_charsmap"), which holds a form of
/// normalization such as nmt_nfkc: 32 bits size of a trie, the trie in the units of the library
/// darts-clone, then replacements that end with NUL; the value of a text in the trie is where its
/// replacement begins.
class CharacterMap
{
public:
  /// Throws FormatError if the sizes do not fit, or a replacement is not UTF-8; the message starts
  /// with `source`.
  CharacterMap(std::string_view bytes, const std::string& source);

  struct Match
  {
    std::size_t length = 0; ///< bytes to be replaced; 0: none
    std::string_view replacement;
  };

  /// The longest entry that `text` begins with. An entry that ends within a character, or whose
  /// replacement is outside the table, is none.
  Match Longest(std::string_view text) const { return this->Find(text, false); }

  /// Likewise the shortest one.
  Match Shortest(std::string_view text) const { return this->Find(text, true); }

private:
  Match Find(std::string_view text, bool takesFirst) const;

  std::vector<std::uint32_t> Units;
  std::string Replacements;
};

/// The bytes of a text in Base64 (RFC 4648), or std::nullopt if it is not.
std::optional<std::string> DecodeBase64(std::string_view text);

}
