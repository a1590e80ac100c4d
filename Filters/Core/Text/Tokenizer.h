#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// A text as a language model reads it. All lists have the same length.
struct Encoding
{
  std::vector<std::int64_t> ids;
  std::vector<std::string> tokens; ///< readable, UTF-8; see Tokenizer::Label
  std::vector<std::int32_t> types; ///< segment of each token: 0, or 1 for the second of a pair
};

/// The special tokens around a text.
struct TextFrame
{
  std::vector<std::int64_t> before;
  std::vector<std::int64_t> after;
};

struct TokenizerParts;

/// Converts text to the token ids of a language model and back, exactly as the model's own
/// tokenizer does: byte-level byte pair encoding (Sennrich et al. 2016, Radford et al. 2019; GPT-2,
/// BLOOM, Llama 3, ...), WordPiece (Wu et al. 2016, Devlin et al. 2019; BERT, ...) or WordLevel,
/// whose tokens are whole words.
///
/// A special token written in the text, such as <|endoftext|> or [MASK], becomes that token. Copies
/// share their data. All functions are thread-safe.
class Tokenizer
{
public:
  /// Used by the functions of TokenizerFile.h, which read tokenizers.
  explicit Tokenizer(std::shared_ptr<const TokenizerParts> parts);

  /// Encodes a text. `addSpecialTokens` adds the special tokens that the model was trained with:
  /// [CLS] text [SEP] for BERT, none for GPT-2. An empty text gives only those. Throws FormatError
  /// if the text is not UTF-8 or is longer than 100 MiB.
  Encoding Encode(std::string_view text, bool addSpecialTokens) const;

  /// The largest text that is encoded at a time, in bytes.
  static constexpr std::size_t MaximumTextBytes = std::size_t{ 100 } << 20U;

  /// The ids alone, without special tokens and in less time. Throws as Encode does.
  std::vector<std::int64_t> EncodeIds(std::string_view text) const;

  /// What Encode adds to any text.
  TextFrame FrameOfTexts() const;

  /// Encodes a pair of texts: [CLS] first [SEP] second [SEP] for BERT.
  Encoding EncodePair(std::string_view first, std::string_view second, bool addSpecialTokens) const;

  /// Encodes a line as a user types it. For a model with segments (HasSegments) a tab separates the
  /// two texts of a pair, and a second tab throws FormatError. For any other model a tab is part of
  /// the text.
  Encoding EncodePrompt(std::string_view line, bool addSpecialTokens) const;

  /// Decodes ids to text, special tokens included. For byte pair encoding this restores the encoded
  /// text byte for byte; ids that end inside a character give U+FFFD. Otherwise words are
  /// separated by single spaces, and changes made by normalization remain. Throws OptionError for
  /// an id that is not in the vocabulary.
  std::string Decode(const std::vector<std::int64_t>& ids) const;

  /// The readable token of an id: the text it stands for (" users", with U+FFFD for parts of a
  /// character) or, otherwise, its entry in the vocabulary ("##ization"). Throws OptionError
  /// for an id that is not in the vocabulary.
  std::string Label(std::int64_t id) const;

  /// The id of a token, spelled as in the vocabulary, or std::nullopt if there is none.
  std::optional<std::int64_t> IdOf(std::string_view token) const;

  /// One more than the largest id.
  std::int64_t VocabularySize() const;

  /// True for tokenizers like BERT's, which mark the two texts of a pair by token types.
  bool HasSegments() const;

  /// "byte-level BPE", "WordPiece" or "WordLevel"
  std::string_view Kind() const;

private:
  std::shared_ptr<const TokenizerParts> Parts;

  void Append(Encoding& encoding, std::int64_t id, std::int32_t type) const;
  void Append(Encoding& encoding, std::string_view text, std::int32_t type) const;
  Encoding Assemble(const std::vector<std::string_view>& texts, bool addSpecialTokens) const;
};

}
