#pragma once

#include "GgufFile.h"
#include "Tokenizer.h"

#include <filesystem>

namespace atlas
{

/// Makes the tokenizer in the metadata of a GGUF file. tokenizer.ggml.model says its kind: `llama`
/// is BPE of SentencePiece (tokens, scores, token_type), `gpt2` is byte-level BPE (tokens, merges,
/// token_type; tokenizer.ggml.pre says how texts are split into words). add_bos_token and
/// add_eos_token say whether bos_token_id and eos_token_id are added to texts; as in llama.cpp, the
/// first is added without them by SentencePiece and llama-bpe. Throws FormatError if a list is
/// missing or the kind is another, and as MakeSentencePieceTokenizer and MakeBytePairTokenizer do.
Tokenizer MakeGgufTokenizer(const GgufMetadata& metadata);

/// Reads the tokenizer in a GGUF file. Throws likewise, and FileError.
Tokenizer ReadGgufTokenizer(const std::filesystem::path& path);

}
