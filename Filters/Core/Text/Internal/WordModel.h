#pragma once

// Internal to Core: how the words of a text become tokens. Tokenizer.h is the interface.

#include "Vocabulary.h"

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace atlas
{

/// Splits one word, which a pre-tokenizer found, into tokens.
class WordModel
{
public:
  explicit WordModel(std::shared_ptr<const Vocabulary> vocabulary)
    : Tokens(std::move(vocabulary))
  {
  }
  virtual ~WordModel() = default;
  WordModel(const WordModel&) = delete;
  WordModel& operator=(const WordModel&) = delete;

  /// Appends the ids of the tokens of `word`.
  virtual void Encode(std::string_view word, std::vector<std::int64_t>& ids) const = 0;

  /// Appends the text of a token of the vocabulary to the text before it.
  virtual void Decode(std::string_view token, std::string& text) const = 0;

  /// A token as people read it.
  virtual std::string Label(std::string_view token) const = 0;

  const Vocabulary& GetVocabulary() const { return *this->Tokens; }

private:
  std::shared_ptr<const Vocabulary> Tokens;
};

/// The characters that stand for the 256 bytes in byte-level vocabularies: printable ones for
/// themselves, the others from U+0100 on.
const std::array<char32_t, 256>& ByteLevelCharacters();

/// What a byte-level token stands for; a token with other characters stands for itself.
std::string ByteLevelBytes(std::string_view token);

/// Byte-level byte pair encoding: a word begins as its bytes; the neighbours whose merge comes
/// first in the list of merges become one token, the leftmost of equal ones first, until no merge
/// is left. (Sennrich et al. 2016; bytes: Radford et al. 2019.)
class BytePairModel : public WordModel
{
public:
  using Merge = std::pair<std::string, std::string>;

  /// With `wholeWordsFirst` a word that is a token is not taken apart. Throws FormatError, which
  /// starts with `source`, if a merge joins or makes a token that the vocabulary lacks, or comes
  /// twice.
  BytePairModel(std::shared_ptr<const Vocabulary> vocabulary, const std::vector<Merge>& merges,
    bool wholeWordsFirst, const std::string& source);

  /// Throws FormatError for a byte that has no token.
  void Encode(std::string_view word, std::vector<std::int64_t>& ids) const override;
  void Decode(std::string_view token, std::string& text) const override;

  /// The token's bytes, with U+FFFD for what is not a whole character.
  std::string Label(std::string_view token) const override;

private:
  struct Result
  {
    std::uint32_t rank;
    std::int32_t id;
  };
  static constexpr std::uint32_t NoRank = ~0U;

  std::array<std::int32_t, 256> ByteIds = {};
  std::unordered_map<std::uint64_t, Result> Merges; ///< by the ids of both, the left one above
  bool WholeWordsFirst;
  std::string Source;

  Result Find(std::int32_t left, std::int32_t right) const;
  void MergeShort(std::vector<std::int32_t>& symbols) const;
  void MergeLong(std::vector<std::int32_t>& symbols) const;
};

/// WordPiece: the longest token that begins the word, then the longest continuation of it, and so
/// on; a word for which that fails, or that is too long, is the unknown token. (Wu et al. 2016.)
class WordPieceModel : public WordModel
{
public:
  struct Options
  {
    std::string unknown = "[UNK]";
    std::string continuation = "##";     ///< begins tokens that continue a word
    std::size_t maximumCharacters = 100; ///< of a word
  };

  /// Throws FormatError, which starts with `source`, if the unknown token is not in the vocabulary.
  WordPieceModel(
    std::shared_ptr<const Vocabulary> vocabulary, Options options, const std::string& source);

  void Encode(std::string_view word, std::vector<std::int64_t>& ids) const override;

  /// Words are separated by single spaces, as their original distance is not in the tokens.
  void Decode(std::string_view token, std::string& text) const override;
  std::string Label(std::string_view token) const override;

private:
  Options Settings;
  std::int64_t UnknownId;
};

}
