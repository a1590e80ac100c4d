#pragma once

#include "Tokenizer.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace atlas
{

/// Parses tokenizer.json, the format of Hugging Face's tokenizers. What it says about truncation
/// and padding is ignored. Throws FormatError, also for a kind that is neither of the two
/// (SentencePiece, Unigram, ...) or a part that is not known; the message starts with `source`.
Tokenizer ParseTokenizer(std::string_view json, const std::string& source);

/// What byte-level BPE leaves to settings.
struct BytePairOptions
{
  bool addPrefixSpace = false; ///< begin a text with a space if it does not
  /// Tokens beside the vocabulary, and their ids.
  std::vector<std::pair<std::string, std::int64_t>> addedTokens;
};

/// Byte-level BPE from GPT-2's two files: vocab.json, {token: id}, and merges.txt, a line "left
/// right" per merge behind an optional first line "#version: ...". <|endoftext|> is special if it
/// is in the vocabulary. Throws FormatError; messages start with the source of the file.
Tokenizer ParseBytePairTokenizer(std::string_view vocabulary, const std::string& vocabularySource,
  std::string_view merges, const std::string& mergesSource, const BytePairOptions& options = {});

/// How BERT's tokenizers prepare text.
struct WordPieceOptions
{
  bool lowerCase = true;
  std::optional<bool> stripAccents; ///< default: as lowerCase
  bool separateChinese = true;      ///< each CJK ideograph is a word
};

/// WordPiece from BERT's vocab.txt: a token per line, whose number from 0 is its id; of equal lines
/// the last one counts. [UNK], [CLS] and [SEP] must be there; they, [PAD] and [MASK] are special.
/// Throws FormatError; the message starts with `source`.
Tokenizer ParseWordPieceTokenizer(
  std::string_view vocabulary, const std::string& source, const WordPieceOptions& options = {});

/// The files of a model directory that ReadTokenizer looks for.
inline constexpr std::array<const char*, 6> TokenizerFiles = { "tokenizer.json", "vocab.json",
  "merges.txt", "added_tokens.json", "vocab.txt", "tokenizer_config.json" };

/// Reads the tokenizer of a model directory: tokenizer.json; or else vocab.json with merges.txt
/// and, if present, added_tokens.json; or else vocab.txt. The latter two heed tokenizer_config.json
/// (add_prefix_space; do_lower_case, strip_accents, tokenize_chinese_chars). Throws FileError if
/// there is none, and FormatError.
Tokenizer ReadTokenizer(const std::filesystem::path& directory);

}
