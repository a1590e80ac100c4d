#pragma once

// Internal to Core: splits words into tokens. Tokenizer.h is the interface.

#include "MergeRules.h"
#include "PieceTrie.h"
#include "WordModel.h"

namespace atlas
{

/// Byte pair encoding on characters, as SentencePiece does it (Sennrich et al. 2016, Kudo and
/// Richardson 2018). A word starts as its characters, and pairs are merged. A character that has no
/// token becomes the tokens of its bytes or the unknown token.
class CharacterPairModel : public WordModel
{
public:
  struct Options
  {
    std::optional<std::int64_t> unknown; ///< the unknown token
    bool fuseUnknown = true;             ///< unknown characters in a row are one token
    bool byteFallback = false;           ///< write unknown characters as bytes, if these are tokens
    bool wholeWordsFirst = false;        ///< a word that is itself a token is not split
    std::string continuation; ///< begins the tokens that do not begin a word, such as "##"
    std::string wordEnd;      ///< ends the tokens that end a word, such as "</w>"
  };

  /// With merges as tokenizer.json lists them. Throws FormatError if a merge uses or produces a
  /// token that is not in the vocabulary, or is listed twice; messages start with `source`.
  CharacterPairModel(std::shared_ptr<const Vocabulary> vocabulary, const std::vector<Merge>& merges,
    const Options& options, const std::string& source);

  /// A token that merges may produce.
  struct Piece
  {
    std::string_view text;
    std::int32_t id = 0;
    float score = 0;
    bool whole = false; ///< always matched as a whole, longest first
  };

  /// With the merges that scores imply: any two neighbors whose joined text is a piece, the highest
  /// score first. Throws FormatError if there are more symbols than numbers for them.
  CharacterPairModel(std::shared_ptr<const Vocabulary> vocabulary, const std::vector<Piece>& pieces,
    const Options& options, const std::string& source);

  /// True if the words that NextWord separates can be encoded one by one: no token joins two.
  bool WordsAreSeparate() const { return this->Separate; }

  /// Throws FormatError for a character that has no token if there is no unknown token.
  void Encode(std::string_view word, std::vector<std::int64_t>& ids) const override;
  std::string_view Kind() const override { return "SentencePiece BPE"; }

private:
  Options Settings;
  std::unordered_map<char32_t, std::int32_t> Characters; ///< symbols
  std::vector<std::string> Extras; ///< characters that are no tokens, but begin merges; their
                                   ///< symbols follow the ids
  UnknownCharacters Unknown;
  PieceTrie Wholes;
  MergeRules Rules;
  bool Separate = false;

  std::optional<std::int32_t> SymbolOf(
    std::string_view character, bool beginsWord, bool endsWord) const;
  std::string BytesOf(std::string_view token) const override;
  void AddSymbols(std::string_view word, std::vector<std::int32_t>& symbols) const;
};

}
