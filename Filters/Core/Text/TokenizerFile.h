#pragma once

#include "Tokenizer.h"

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// Parses tokenizer.json, the format of Hugging Face's tokenizers library. Truncation and padding
/// settings are ignored. Kinds: byte-level BPE, BPE on characters as converted from SentencePiece,
/// Unigram, WordPiece and WordLevel. Throws FormatError if the file is invalid, if the tokenizer is
/// of another kind or if it has an unknown component; the message starts with `source`.
Tokenizer ParseTokenizer(std::string_view json, const std::string& source);

/// Makes a byte-level BPE tokenizer (Radford et al. 2019) from the two files of GPT-2: vocab.json,
/// {token: id}, and merges.txt, one merge "left right" per line after an optional first line
/// "#version: ...". <|endoftext|> is a special token if it is there. `addPrefixSpace`: before a
/// text that does not begin with a space. Throws FormatError, beginning with the source of the
/// file.
Tokenizer ParseBytePairTokenizer(std::string_view vocabulary, const std::string& vocabularySource,
  std::string_view merges, const std::string& mergesSource, bool addPrefixSpace = false);

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
inline constexpr std::array<const char*, 16> TokenizerFiles = { "tokenizer.json", "tokenizer.model",
  "spiece.model", "sentencepiece.bpe.model", "spm.model", "sentencepiece.model", "vocab.json",
  "merges.txt", "added_tokens.json", "vocab.txt", "meta.pkl", "tokenizer_config.json",
  "special_tokens_map.json", "source.spm", "target.spm", "target_vocab.json" };

/// Reads the tokenizer from a model directory: tokenizer.json; else a SentencePiece model,
/// tokenizer.model, spiece.model, sentencepiece.bpe.model, spm.model or sentencepiece.model, of
/// which the first may be tiktoken's ranks of Llama 3, and the third has vocab.json beside it
/// (M2M-100); else Marian's source.spm with vocab.json; else vocab.json with merges.txt;
/// else vocab.txt; else the meta.pkl of nanoGPT, whose tokens are characters.
///
/// All but the last add tokens that the files beside them name: added_tokens_decoder of
/// tokenizer_config.json, or else added_tokens.json and special_tokens_map.json; bos_token and the
/// other names of special tokens, and lists of further ones. Of tokenizer.json, ids of new tokens
/// must follow; by tokenizer_class, as in transformers, its BertNormalizer gets do_lower_case,
/// strip_accents and tokenize_chinese_chars (Bert or alike), and its ByteLevel add_prefix_space
/// (GPT2, Roberta or alike), and byte pairs of Llama on characters the steps of LlamaTokenizer of
/// transformers 5, by legacy and add_prefix_space. Otherwise tokenizer.json alone counts.
///
/// The others, but for tiktoken and Marian, take from tokenizer_config.json what they leave out:
/// tokenizer_class (else config.json's model_type) decides what is added to texts, how words are
/// split (GPT-2, RoBERTa, BART, DeBERTa, Qwen2, CLIP; ESM-2 into residues) and which ids pieces
/// have (XLM-R, CamemBERT, mBART, M2M-100); add_bos_token, add_eos_token, bos_token, eos_token,
/// extra_ids, add_prefix_space, src_lang, language_codes, tgt_lang (of the decoder's texts);
/// cls_token, sep_token, unk_token, pad_token and mask_token of BERT, ESM-2, ALBERT, DeBERTa-v2 and
/// RemBERT; do_lower_case, keep_accents, strip_accents, tokenize_chinese_chars. Throws FileError if
/// there is none of these files, and FormatError if one is invalid, needs tokenizer.json, or has
/// split_special_tokens or split_by_punct (DeBERTa-v2).
Tokenizer ReadTokenizer(const std::filesystem::path& directory);

/// The same for the texts of a decoder beside an encoder: of Marian the tokenizer of target.spm,
/// whose ids are of the same vocabulary, unless there is a target_vocab.json; of M2M-100 and mBART
/// with the language tgt_lang of tokenizer_config.json; otherwise that of ReadTokenizer.
Tokenizer ReadTargetTokenizer(const std::filesystem::path& directory);

/// Whether those two differ.
bool HasTargetTokenizer(const std::filesystem::path& directory);

/// How the class of transformers 5 makes other tokens of texts than the tokenizer.json of a folder,
/// which counts here: sentences that begin with the file. Empty if they are the same, or if there
/// is no such file. Throws FormatError if a file beside it is invalid.
std::vector<std::string> TokenizerWarnings(const std::filesystem::path& directory);

}
