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

/// Parses tokenizer.json, the format of Hugging Face's tokenizers library. Truncation and padding
/// settings are ignored. Throws FormatError if the file is invalid, if the tokenizer is of another
/// kind (SentencePiece, Unigram, ...) or if it has an unknown component; the message starts with
/// `source`.
Tokenizer ParseTokenizer(std::string_view json, const std::string& source);

/// Settings of a byte-level BPE tokenizer.
struct BytePairOptions
{
  bool addPrefixSpace = false; ///< add a space before a text that does not begin with one
  /// Tokens in addition to the vocabulary, with their ids.
  std::vector<std::pair<std::string, std::int64_t>> addedTokens;
};

/// Makes a byte-level BPE tokenizer (Radford et al. 2019) from the two files of GPT-2: vocab.json,
/// {token: id}, and merges.txt, one merge "left right" per line after an optional first line
/// "#version: ...". <|endoftext|> is a special token if it is in the vocabulary. Throws
/// FormatError; messages start with the source of the file.
Tokenizer ParseBytePairTokenizer(std::string_view vocabulary, const std::string& vocabularySource,
  std::string_view merges, const std::string& mergesSource, const BytePairOptions& options = {});

/// How a BERT tokenizer normalizes text.
struct WordPieceOptions
{
  bool lowerCase = true;
  std::optional<bool> stripAccents; ///< default: same as lowerCase
  bool separateChinese = true;      ///< treat each CJK ideograph as a word
};

/// Makes a WordPiece tokenizer (Devlin et al. 2019) from BERT's vocab.txt: one token per line; the
/// line number, from 0, is the id. If a token is repeated, its last line counts. [UNK], [CLS] and
/// [SEP] are required; they, [PAD] and [MASK] are special tokens. Throws FormatError; the message
/// starts with `source`.
Tokenizer ParseWordPieceTokenizer(
  std::string_view vocabulary, const std::string& source, const WordPieceOptions& options = {});

/// The files in a model directory that ReadTokenizer looks for.
inline constexpr std::array<const char*, 6> TokenizerFiles = { "tokenizer.json", "vocab.json",
  "merges.txt", "added_tokens.json", "vocab.txt", "tokenizer_config.json" };

/// Reads the tokenizer from a model directory. It looks for tokenizer.json, then for vocab.json
/// with merges.txt and, if present, added_tokens.json, then for vocab.txt. The last two forms also
/// use tokenizer_config.json (add_prefix_space; do_lower_case, strip_accents,
/// tokenize_chinese_chars). Throws FileError if none of these files exists, and FormatError if one
/// is invalid.
Tokenizer ReadTokenizer(const std::filesystem::path& directory);

}
