#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// A text as a language model reads it: lists of one length.
struct Encoding
{
  std::vector<std::int64_t> ids;
  std::vector<std::string> tokens; ///< as people read them, UTF-8; see Tokenizer::Label
  std::vector<std::int32_t> types; ///< segment of each token: 0, or 1 for the second of a pair
};

struct TokenizerParts;

/// Turns text into the token ids of a language model and back, as the model's own tokenizer does:
/// byte-level byte pair encoding (GPT-2, BLOOM, Llama 3, ...) or WordPiece (BERT, ...).
///
/// Special tokens that stand in the text, such as <|endoftext|> or [MASK], become themselves.
/// Copies share everything. All functions may be called by several threads at the same time.
class Tokenizer
{
public:
  /// Made by the functions below.
  explicit Tokenizer(std::shared_ptr<const TokenizerParts> parts);

  /// The ids of a text. `addSpecialTokens` puts those around it that the model was trained with:
  /// BERT [CLS] text [SEP]; GPT-2 none. An empty text has no tokens but those. Throws FormatError
  /// for text that is not UTF-8, or longer than 100 MiB.
  Encoding Encode(std::string_view text, bool addSpecialTokens) const;

  /// The ids of a pair of texts: BERT [CLS] first [SEP] second [SEP].
  Encoding EncodePair(std::string_view first, std::string_view second, bool addSpecialTokens) const;

  /// A line as users type it: where the model knows segments (HasSegments), a tab separates the two
  /// segments of a pair, and two tabs are a FormatError; elsewhere a tab is part of the text.
  Encoding EncodePrompt(std::string_view line, bool addSpecialTokens) const;

  /// The text of these ids, special tokens included. For byte pair encoding it is the text that was
  /// encoded, to the byte; ids that end within a character give U+FFFD there. For WordPiece words
  /// are separated by single spaces, and what normalization changed stays so. Throws OptionError
  /// for an id that is not in the vocabulary.
  std::string Decode(const std::vector<std::int64_t>& ids) const;

  /// The token of an id as people read it: the text that it stands for (" users", with U+FFFD for
  /// parts of a character), or for WordPiece the vocabulary's entry ("##ization"). Throws
  /// OptionError for an id that is not in the vocabulary.
  std::string Label(std::int64_t id) const;

  /// The id of a token as the vocabulary writes it, or nothing.
  std::optional<std::int64_t> IdOf(std::string_view token) const;

  /// One more than the largest id.
  std::int64_t VocabularySize() const;

  /// True for BERT's kind: pairs of segments that differ by token type.
  bool HasSegments() const;

  /// "byte-level BPE" or "WordPiece"
  std::string_view Kind() const;

private:
  std::shared_ptr<const TokenizerParts> Parts;

  void Append(Encoding& encoding, std::int64_t id, std::int32_t type) const;
  void Append(Encoding& encoding, std::string_view text, std::int32_t type) const;
  Encoding Assemble(const std::vector<std::string_view>& texts, bool addSpecialTokens) const;
};

}
