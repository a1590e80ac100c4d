#pragma once

#include "Files/GgufFile.h"
#include "Tokenizer.h"

#include <filesystem>

namespace atlas
{

/// Makes the tokenizer in the metadata of a GGUF file. tokenizer.ggml.model says its kind:
/// * `llama`: BPE of SentencePiece (tokens, scores, token_type).
/// * `t5`: Unigram of SentencePiece (the same; T5, XLM-R).
/// * `gpt2`: byte-level BPE (tokens, merges, token_type). tokenizer.ggml.pre is one of
///   BytePairSplits, by which texts are split into words; `default` without it.
/// * `gemma4`, and `gpt2` with the splits gemma4, granite-embed-multi-311m and sarvam-moe: BPE on
///   characters.
/// * `bert`: WordPiece, whose tokens have U+2581 where words begin.
///
/// add_bos_token and add_eos_token say whether bos_token_id and eos_token_id are added to texts. As
/// in llama.cpp, the first is added without them by `llama`, `gemma4`, and `gpt2` with the splits
/// of Llama 3, Tekken and Chameleon, and the second by `t5`; WordPiece always adds cls_token_id and
/// seperator_token_id (sic). Throws FormatError if a list is missing or the kind is another, and as
/// the functions of TokenTables.h do.
Tokenizer MakeGgufTokenizer(const GgufMetadata& metadata);

/// Reads the tokenizer in a GGUF file. Throws likewise, and FileError.
Tokenizer ReadGgufTokenizer(const std::filesystem::path& path);

}
