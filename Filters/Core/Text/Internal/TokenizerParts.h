#pragma once

// Internal to Core: what a tokenizer consists of. Tokenizer.h is the interface.

#include "RegularExpression.h"
#include "UnicodeText.h"
#include "WordModel.h"

#include <deque>
#include <mutex>
#include <variant>

namespace atlas
{

/// BERT's normalization: control characters go, white space becomes spaces, CJK ideographs get
/// spaces around them, accents go (after canonical decomposition), capitals become small.
struct BertNormalization
{
  bool cleanText = true;
  bool separateChinese = true;
  bool stripAccents = true;
  bool lowerCase = true;
};

struct LowerCase
{
};

/// Removes nonspacing marks; usually behind NFD.
struct RemoveMarks
{
};

using Normalization = std::variant<BertNormalization, LowerCase, RemoveMarks, NormalizationForm>;

std::string Apply(const Normalization& normalization, std::string_view text);

/// Cuts text into words.
struct SplitByExpression
{
  RegularExpression expression;
  bool keepMatches = true;
  bool keepGaps = true;
};

/// BERT's words: at white space, which goes, and around each punctuation character.
struct SplitLikeBert
{
};

/// A space before every piece that does not begin with one.
struct PrefixSpace
{
};

using PreTokenization = std::variant<SplitByExpression, SplitLikeBert, PrefixSpace>;

/// A token that stands in the text as it is.
struct AddedToken
{
  std::string content;
  std::int64_t id = 0;
  bool singleWord = false; ///< only where no word character is beside it
  bool stripLeft = false;  ///< takes the white space before it along
  bool stripRight = false;
  bool normalized = false; ///< looked for in normalized text, not in the text as it is given
};

/// Finds added tokens in a text: the leftmost first, of several the longest.
class AddedTokenFinder
{
public:
  void Add(const AddedToken& token);

  struct Piece
  {
    std::string_view text;             ///< without added tokens
    std::optional<std::int64_t> token; ///< the added token that follows, if any
  };
  std::vector<Piece> Split(std::string_view text) const;

private:
  std::array<std::vector<AddedToken>, 256> ByFirstByte; ///< longest first

  const AddedToken* MatchAt(std::string_view text, std::size_t position) const;
};

/// One element of the frame around a text or a pair of texts.
struct TemplatePart
{
  int sequence = -1;               ///< 0: the first text, 1: the second, -1: special tokens
  std::vector<std::int64_t> ids{}; ///< the special tokens
  std::int32_t type = 0;
};
using Template = std::vector<TemplatePart>;

/// Words that were encoded before, as texts repeat themselves.
struct WordCache
{
  std::mutex mutex;
  std::unordered_map<std::string, std::vector<std::int64_t>> words;
};

struct TokenizerParts
{
  std::string source;
  std::shared_ptr<const WordModel> model;
  bool hasSegments = false; ///< WordPiece
  std::vector<Normalization> normalizations;
  std::vector<PreTokenization> preTokenizations;
  AddedTokenFinder givenTokens;      ///< looked for in the text as it is given
  AddedTokenFinder normalizedTokens; ///< looked for in normalized text
  std::unordered_map<std::int64_t, std::string> addedTexts; ///< by id, in the vocabulary or not
  std::unordered_map<std::string, std::int64_t> addedIds;
  Template single = { { 0, {}, 0 } };
  Template pair = { { 0, {}, 0 }, { 1, {}, 1 } };
  mutable WordCache cache;

  /// Adds a token to the right finder, with its content normalized if it must be; to be called when
  /// model and normalizations are there. Throws FormatError if it is empty, or its id is out of
  /// range or disagrees with the vocabulary or another added token.
  void Add(const AddedToken& token);

  /// The text of a token, added or in the vocabulary, or nullptr for an unknown id.
  const std::string* TokenOf(std::int64_t id) const;

  /// The id of a token, added or in the vocabulary.
  std::optional<std::int64_t> IdOf(std::string_view token) const;

  /// One more than the largest id.
  std::int64_t Size() const;

  std::string Normalize(std::string_view text) const;

  /// Appends the ids of UTF-8 text.
  void Encode(std::string_view text, std::vector<std::int64_t>& ids) const;

private:
  std::int64_t AddedEnd = 0;

  void EncodeNormalized(std::string_view text, std::vector<std::int64_t>& ids,
    std::unordered_map<std::string, std::vector<std::int64_t>>& words) const;
};

}
