#pragma once

#include "Tokenizer.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// Finds the tokens of a model by what users write. An entry is, in this order:
///
/// - "#17": the token of this id
/// - a token's text. Middle dots (U+00B7) at its beginning are the leading spaces that views show
///   as such
/// - a text without its leading space: "the" is the token "the" if there is one, else " the"
/// - a token as it is displayed (ScreenLabel), such as "\n" for a line feed, or as the vocabulary
///   spells it
/// - "17", if no token has this text: the token of this id
///
/// A model without a tokenizer has ids only.
class TokenFinder
{
public:
  /// Uses the tokenizer as long as this object exists; nullptr: there is none. Ids are below
  /// `vocabulary`. Reads the texts of all tokens.
  TokenFinder(const atlas::Tokenizer* tokenizer, std::int64_t vocabulary);

  /// The token of an entry. `source` names the entry in messages. Throws OptionError if there is no
  /// such token, naming the nearest ones, or if several have this text.
  std::int32_t Find(std::string_view entry, const std::string& source) const;

  /// The tokens of several entries. An entry that is no token may be several, one on each line, or
  /// ids separated by spaces or commas. Empty entries and lines are left out. Throws likewise.
  std::vector<std::int32_t> FindAll(
    const std::vector<std::string>& entries, const std::string& source) const;

  /// The token with exactly this text, if there is one and no other has it.
  std::optional<std::int32_t> FindExactly(const std::string& text) const;

  /// One more than the largest id.
  std::int64_t VocabularySize() const { return this->Vocabulary; }

  /// The `count` tokens whose texts are nearest to a text: by the number of characters to insert,
  /// delete or replace (Levenshtein 1966) without leading spaces and case, then with them, then by
  /// id.
  std::vector<std::int32_t> Nearest(std::string_view text, std::size_t count) const;

private:
  const atlas::Tokenizer* Tokenizer;
  std::int64_t Vocabulary;
  std::multimap<std::string, std::int32_t, std::less<>> Ids; ///< by text

  std::optional<std::int32_t> FindId(std::string_view digits, const std::string& source) const;
  std::optional<std::int32_t> FindText(const std::string& text, const std::string& source) const;
  std::optional<std::int32_t> FindDisplayed(std::string_view text) const;
  std::optional<std::int32_t> TryFind(std::string_view entry, const std::string& source) const;
  std::string Described(std::int32_t id) const;
  [[noreturn]] void FailUnknown(std::string_view entry, const std::string& source) const;
};

}
