#pragma once

// Internal to Core: the components of a tokenizer. Tokenizer.h is the interface.

#include "CharacterMap.h"
#include "PieceTrie.h"
#include "RegularExpression.h"
#include "Text/UnicodeText.h"
#include "WordModel.h"

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <variant>

namespace atlas
{

/// The words of GPT-2 (Radford et al. 2019): English contractions; letters, digits or other
/// symbols, optionally after a space; and runs of white space.
inline constexpr const char* ByteLevelExpression =
  R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// BERT's normalization: removes control characters, replaces white space by spaces, puts spaces
/// around CJK ideographs, strips accents (after canonical decomposition) and converts to lower
/// case.
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

/// Removes marks of all kinds (StripAccents); usually applied after NFD.
struct RemoveMarks
{
};

/// Writes each byte as its character of byte-level vocabularies, or such characters as bytes.
struct ByteLevelText
{
  bool inverse = false;
};

/// Removes control characters and writes white space as spaces, as in machine translation (Nmt).
struct CleanControls
{
};

/// Puts a text before every text that is not empty.
struct PrependText
{
  std::string text;
};

/// Replaces the matches of an expression or, if there is none, of a text.
struct ReplaceText
{
  std::optional<RegularExpression> expression;
  std::string text;
  std::string replacement;
};

/// Removes the white space at the ends.
struct StripSpaces
{
  bool left = true;
  bool right = true;
};

/// SentencePiece's normalization (Kudo and Richardson 2018): replaces characters, strips and
/// reduces spaces, adds one before the text, and writes spaces as U+2581.
struct SentencePieceNormalization
{
  std::shared_ptr<const CharacterMap> characters; ///< none: characters stay
  std::shared_ptr<const PieceTrie> wholes;        ///< texts that stay; none if null
  bool addPrefixSpace = false;
  bool removeExtraSpaces = false;
  bool escapeSpaces = false;
};

/// Replaces characters as Hugging Face's tokenizers library does (Precompiled), which differs from
/// SentencePiece: a grapheme cluster of fewer than 6 bytes becomes the replacement of the shortest
/// entry that it begins with; of others, or without an entry, each character on its own does.
struct ReplaceClusters
{
  std::shared_ptr<const CharacterMap> characters;
};

using TextNormalization = std::variant<BertNormalization, LowerCase, RemoveMarks, NormalizationForm,
  ByteLevelText, CleanControls, PrependText, ReplaceText, StripSpaces, SentencePieceNormalization,
  ReplaceClusters>;

/// How long a text may become.
struct TextLimit
{
  std::size_t bytes;
  const std::string& source; ///< begins the message of the error
};

/// Throws FormatError if the text becomes longer than the limit.
std::string Apply(
  const TextNormalization& normalization, std::string_view text, const TextLimit& limit);

/// What becomes of the text that an expression matches.
enum class SplitBehavior
{
  Isolated,           ///< each match is a word
  Removed,            ///< matches are dropped
  MergedWithPrevious, ///< a match ends the word before it
  MergedWithNext,     ///< a match begins the word after it
  Contiguous          ///< matches in a row are one word
};

/// Splits text into words.
struct SplitByExpression
{
  RegularExpression expression;
  SplitBehavior behavior = SplitBehavior::Isolated;
  bool invert = false; ///< what does not match counts as the matches
};

/// Splits as BERT does: at white space, which is dropped, and around each punctuation character.
struct SplitLikeBert
{
};

/// Adds a space before every piece that does not begin with one.
struct PrefixSpace
{
};

/// Where U+2581 is added.
enum class PrefixMark
{
  Always, ///< before every piece that does not begin with one
  First,  ///< only where the text begins
  Never
};

/// Writes spaces as U+2581 and splits before each of them.
struct Metaspace
{
  PrefixMark prefix = PrefixMark::Always;
  bool split = true;
};

/// Splits before each U+2581 that follows another character, where this changes no token.
struct SplitWords
{
};

using PreTokenization =
  std::variant<SplitByExpression, SplitLikeBert, PrefixSpace, ByteLevelText, Metaspace, SplitWords>;

/// A token that is matched literally in the text.
struct AddedToken
{
  std::string content;
  std::int64_t id = 0;
  bool singleWord = false; ///< match only if no word character is next to it
  bool stripLeft = false;  ///< also consume the white space before it
  bool stripRight = false;
  bool normalized = false; ///< match in normalized text instead of the original text
};

/// Finds added tokens in a text, the longest of those that begin leftmost, as Hugging Face's
/// tokenizers library does. Text that spells a token of a single word beside a word character is
/// passed over as a whole: shorter tokens in it are not tried.
class AddedTokenFinder
{
public:
  /// A token of the same content takes the place of one added before.
  void Add(const AddedToken& token);

  struct Piece
  {
    std::string_view text;             ///< text before the token, free of added tokens
    std::optional<std::int64_t> token; ///< the added token that follows, if any
  };
  std::vector<Piece> Split(std::string_view text) const;

private:
  std::map<std::string, AddedToken, std::less<>> Tokens;    ///< by content
  std::array<std::vector<std::size_t>, 256> LengthsByFirst; ///< by first byte, longest first

  const AddedToken* LongestAt(std::string_view text, std::size_t position) const;
};

/// One element of the frame around a text or a pair of texts.
struct TemplatePart
{
  int sequence = -1;             ///< 0: the first text, 1: the second, -1: special tokens
  std::vector<std::int64_t> ids; ///< the special tokens
  std::int32_t type = 0;
};
using Template = std::vector<TemplatePart>;

/// A cache of encoded words, since words recur.
struct WordCache
{
  std::mutex mutex;
  std::unordered_map<std::string, std::vector<std::int64_t>> words;
};

struct TokenizerParts
{
  std::string source; ///< messages begin with it
  std::shared_ptr<const WordModel> model;
  bool hasSegments = false;            ///< WordPiece
  bool hasPrefixSpace = false;         ///< decoding drops the first space
  std::optional<std::int64_t> unknown; ///< the token that decoding writes as " \u2047 "
  std::vector<TextNormalization> normalizations;
  std::vector<PreTokenization> preTokenizations;
  AddedTokenFinder givenTokens;                             ///< matched in the original text
  AddedTokenFinder normalizedTokens;                        ///< matched in normalized text
  std::unordered_map<std::int64_t, std::string> addedTexts; ///< by id, whether in the vocabulary or
                                                            ///< not
  std::unordered_map<std::string, std::int64_t> addedIds;
  Template single = { { 0, {}, 0 } };
  Template pair = { { 0, {}, 0 }, { 1, {}, 1 } };
  mutable WordCache cache;

  explicit TokenizerParts(std::string name)
    : source(std::move(name))
  {
  }

  /// Adds special tokens around texts: begin text end. For pairs: begin first end second end, where
  /// the second has its own type (BERT), or begin first end end second end (RoBERTa).
  void Frame(std::int64_t begin, std::int64_t end, bool hasTypes);

  /// Adds special tokens around each text: begin text end. The second of a pair has its own type.
  void Enclose(const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& end);

  /// Adds a token to the finder that it belongs to, with normalized content if required. Set the
  /// model and the normalizations first. Throws FormatError if the token is empty, or if its id is
  /// out of range or contradicts the vocabulary or another added token.
  void Add(const AddedToken& token);

  /// The text of a token, added or in the vocabulary, or nullptr for an unknown id.
  const std::string* TokenOf(std::int64_t id) const;

  /// The id of a token, added or in the vocabulary.
  std::optional<std::int64_t> IdOf(std::string_view token) const;

  /// One more than the largest id.
  std::int64_t Size() const;

  std::string Normalize(std::string_view text) const;

  /// Appends the ids of `text`, which must be UTF-8.
  void Encode(std::string_view text, std::vector<std::int64_t>& ids) const;

private:
  std::int64_t AddedEnd = 0;

  /// Whether normalizing drops the first character of the text, if this matters: what follows does
  /// not begin the text then, as in the original.
  bool DropsFirst(std::string_view text) const;

  void EncodeNormalized(std::string_view text, bool isFirst, std::vector<std::int64_t>& ids,
    std::unordered_map<std::string, std::vector<std::int64_t>>& words) const;
};

}
