#pragma once

// Internal to Core: the parts of the tokenizers of TokenTables.h.

#include "Text/TokenTables.h"
#include "TokenizerParts.h"

namespace atlas
{

/// See MakeSentencePieceTokenizer.
std::shared_ptr<TokenizerParts> MakeSentencePieceParts(
  const SentencePieceTable& table, const std::string& source);

/// A tokenizer of WordPiece that splits words as BERT does, without special tokens. Throws
/// FormatError if the unknown token is not in the vocabulary.
std::shared_ptr<TokenizerParts> MakeWordPieceParts(std::shared_ptr<const Vocabulary> vocabulary,
  const BertNormalization& normalization, const std::string& unknown, const std::string& source);

}
