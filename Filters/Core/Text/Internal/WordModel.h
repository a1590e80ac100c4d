#pragma once

// Internal to Core: splits words into tokens. Tokenizer.h is the interface.

#include "MergeRules.h"
#include "Vocabulary.h"

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace atlas
{

/// Splits one word, as found by a pre-tokenizer, into tokens.
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

  /// Appends the text of a token of the vocabulary to the text decoded so far.
  virtual void Decode(std::string_view token, std::string& text) const
  {
    text += this->BytesOf(token);
  }

  /// The token in readable form, with U+FFFD for incomplete characters.
  std::string Label(std::string_view token) const;

  /// See Tokenizer::Kind.
  virtual std::string_view Kind() const = 0;

  const Vocabulary& GetVocabulary() const { return *this->Tokens; }

protected:
  /// The bytes that a token stands for.
  virtual std::string BytesOf(std::string_view token) const { return std::string(token); }

private:
  std::shared_ptr<const Vocabulary> Tokens;
};

/// The characters that represent the 256 bytes in byte-level vocabularies (Radford et al. 2019). A
/// printable byte is its own character; the others are mapped to U+0100 and up.
const std::array<char32_t, 256>& ByteLevelCharacters();

/// The bytes that a byte-level token represents. A token with other characters represents itself.
std::string ByteLevelBytes(std::string_view token);

/// The byte-level token that represents bytes.
std::string ByteLevelToken(std::string_view bytes);

/// What becomes of a part of a word that has no token.
struct UnknownParts
{
  std::optional<std::int64_t> token; ///< the unknown token; none: an error
  bool fuse = false;                 ///< unknown parts in a row are one token
};

/// What becomes of characters that have no token in the models of SentencePiece: the tokens of
/// their bytes, if those are wanted and there, or the unknown token.
class UnknownCharacters
{
public:
  /// Messages start with `source`.
  UnknownCharacters(const Vocabulary& vocabulary, bool byteFallback,
    const std::optional<std::int64_t>& unknown, std::string source);

  /// Throws FormatError if there is no token for `text`.
  void Add(std::string_view text, std::vector<std::int64_t>& ids) const;

private:
  std::array<std::int32_t, 256> ByteIds = {}; ///< -1: no token
  std::optional<std::int64_t> Unknown;
  std::string Source;
};

/// Byte-level byte pair encoding (Sennrich et al. 2016; on bytes: Radford et al. 2019). A word
/// starts as its bytes. Of all adjacent pairs, the one that is earliest in the list of merges,
/// leftmost first, is merged into one token; this repeats until no pair can be merged.
class BytePairModel : public WordModel
{
public:
  using Merge = atlas::Merge;

  /// With `wholeWordsFirst` a word that is itself a token is not split. `wordEnd` is appended to
  /// the last byte of each word ("</w>" of CLIP). Throws FormatError if a merge uses or produces a
  /// token that is not in the vocabulary, or is listed twice; the message starts with `source`.
  BytePairModel(std::shared_ptr<const Vocabulary> vocabulary, const std::vector<Merge>& merges,
    bool wholeWordsFirst, const std::string& source, std::string wordEnd = {},
    UnknownParts unknown = {});

  /// Throws FormatError for a byte that has no token if there is no unknown token.
  void Encode(std::string_view word, std::vector<std::int64_t>& ids) const override;
  std::string_view Kind() const override { return "byte-level BPE"; }

private:
  std::array<std::int32_t, 256> ByteIds = {};
  std::array<std::int32_t, 256> LastByteIds = {}; ///< of a byte that ends its word
  MergeRules Merges;
  bool WholeWordsFirst;
  std::string WordEnd;
  UnknownParts Unknown;
  std::string Source;

  void AddUnknown(unsigned char byte, std::vector<std::int32_t>& symbols) const;
  std::string BytesOf(std::string_view token) const override;
};

/// WordPiece (Wu et al. 2016, Devlin et al. 2019): takes the longest token that the word begins
/// with, then the longest that continues it, and so on. A word for which this fails, or that is too
/// long, becomes the unknown token.
class WordPieceModel : public WordModel
{
public:
  struct Options
  {
    std::string unknown = "[UNK]";
    std::string continuation = "##";     ///< prefix of tokens that continue a word
    std::size_t maximumCharacters = 100; ///< longest word that is split
  };

  /// The unknown token may be missing in the vocabulary.
  WordPieceModel(std::shared_ptr<const Vocabulary> vocabulary, Options options, std::string source);

  /// Throws FormatError for an unknown word if there is no unknown token; the message starts with
  /// `source`.
  void Encode(std::string_view word, std::vector<std::int64_t>& ids) const override;

  /// Separates words by single spaces, as tokens do not record the original white space.
  void Decode(std::string_view token, std::string& text) const override;
  std::string_view Kind() const override { return "WordPiece"; }

private:
  Options Settings;
  std::string Source;
};

/// Each word is a token (WordLevel of Hugging Face's tokenizers library). An unknown word becomes
/// the unknown token.
class WordLevelModel : public WordModel
{
public:
  /// The unknown token may be missing in the vocabulary. `separator`: between words of a decoded
  /// text; a space, as tokens do not record the original white space, unless words are characters.
  WordLevelModel(std::shared_ptr<const Vocabulary> vocabulary, std::string unknown,
    std::string separator, std::string source);

  /// Throws FormatError for an unknown word if there is no unknown token.
  void Encode(std::string_view word, std::vector<std::int64_t>& ids) const override;

  void Decode(std::string_view token, std::string& text) const override;
  std::string_view Kind() const override { return "WordLevel"; }

private:
  std::string Unknown;
  std::string Separator;
  std::string Source;
};

}
