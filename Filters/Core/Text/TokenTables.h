#pragma once

#include "Tokenizer.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace atlas
{

/// What a token is. The numbers are those of SentencePiece's model files and of GGUF files.
enum class TokenType : std::int32_t
{
  Normal = 1,
  Unknown = 2,     ///< stands for text that has no token
  Control = 3,     ///< added to texts, such as <s>; text never becomes it
  UserDefined = 4, ///< always matched as a whole
  Unused = 5,
  Byte = 6 ///< <0x00> to <0xFF>: a byte of a character that has no token
};

/// The tokens of a model, as SentencePiece's model files and GGUF files list them.
struct TokenTable
{
  std::vector<std::string> tokens;     ///< in order of their ids, from 0; UTF-8
  std::vector<std::int32_t> types;     ///< TokenType of each token; none: all are normal
  std::vector<std::int64_t> textBegin; ///< ids added before each text, such as that of <s>
  std::vector<std::int64_t> textEnd;   ///< ids added behind each text
  /// Tokens in addition to the vocabulary, with their ids. They are matched in texts.
  std::vector<std::pair<std::string, std::int64_t>> addedTokens;
};

/// How SentencePiece chooses among the tokens that a text can be split into.
enum class SentencePieceKind
{
  BytePairs, ///< merges the adjacent pair of the highest score, again and again
  Unigram    ///< takes the tokens with the largest sum of scores
};

/// What else a vocabulary of SentencePiece needs.
struct SentencePieceTable : TokenTable
{
  SentencePieceKind kind = SentencePieceKind::BytePairs;
  std::vector<float> scores; ///< of each token
  /// Unigram: further pieces, with their scores, that texts are split into. They have no id of
  /// their own: each becomes the unknown token, and without one they are left out.
  std::vector<std::pair<std::string, float>> unnumbered;
  /// Unigram: sums of scores are rounded to float, as in SentencePiece's library; else they are
  /// double, as in Hugging Face's. This decides between equal sums.
  bool singlePrecision = true;
  /// The replacements of characters in SentencePiece's format, "precompiled_charsmap"; empty: none.
  std::string characterMap;
  bool addPrefixSpace = true;    ///< add a space before each text
  bool removeExtraSpaces = true; ///< strip texts, and reduce runs of spaces to one
  bool escapeSpaces = true;      ///< write spaces as U+2581
  bool spellsControls = false;   ///< control and unknown tokens are matched in texts
  /// Texts before all else: white space becomes single spaces, `` and '' become ", accents are
  /// removed, letters are lower case (ALBERT).
  bool plainQuotes = false;
  bool stripAccents = false;
  bool lowerCase = false;
};

/// Makes the tokenizer of a SentencePiece model (Kudo and Richardson 2018): byte pairs on
/// characters (Llama 2, Mistral, Gemma) or Unigram (Kudo 2018; T5, XLM-R, ALBERT). `source` names
/// the file in messages. Throws FormatError if the lists are of different lengths, a score is not
/// finite, a token is empty, not UTF-8, longer than 1024 bytes or listed twice, or the character
/// map is invalid.
///
/// Text that spells a control token does not become that token, as in SentencePiece itself, unless
/// the table says so.
Tokenizer MakeSentencePieceTokenizer(const SentencePieceTable& table, const std::string& source);

/// What else a vocabulary of byte pairs needs.
struct BytePairTable : TokenTable
{
  std::vector<std::string> merges; ///< "left right", the first to be merged first
  /// How texts are split into words, by the names that GGUF files use in tokenizer.ggml.pre: gpt-2,
  /// llama-bpe, qwen2, ...
  std::string split = "gpt-2";
};

/// Makes a byte-level BPE tokenizer (Radford et al. 2019). Control and user-defined tokens become
/// tokens where a text spells them. Throws FormatError for a split that is not known, or a table as
/// ParseTokenizer does.
Tokenizer MakeBytePairTokenizer(const BytePairTable& table, const std::string& source);

/// Makes a tokenizer of byte pairs on characters (Gemma 4): spaces are U+2581, texts are not split
/// into words, and a character that has no token becomes the tokens of its bytes. The table's split
/// is not used. Control and user-defined tokens become tokens where a text spells them. Throws
/// FormatError as MakeBytePairTokenizer.
Tokenizer MakeCharacterPairTokenizer(const BytePairTable& table, const std::string& source);

/// What else a vocabulary of WordPiece needs: how text is normalized.
struct WordPieceTable : TokenTable
{
  std::int64_t unknown = 0; ///< id of the unknown token
  bool lowerCase = true;
  bool stripAccents = true;
};

/// Makes a WordPiece tokenizer (Devlin et al. 2019) of tokens with ## before continuations of
/// words. Control and user-defined tokens become tokens where a text spells them. Throws
/// FormatError if the unknown token is missing, and as MakeBytePairTokenizer.
Tokenizer MakeWordPieceTokenizer(const WordPieceTable& table, const std::string& source);

/// The names of splits that MakeBytePairTokenizer knows, sorted.
std::vector<std::string> BytePairSplits();

}
