#pragma once

// Internal to Core: the parts of tokenizers of WordPiece. TokenTables.h is the interface.

#include "TokenizerParts.h"

namespace atlas
{

/// A tokenizer of WordPiece that splits words as BERT does, without special tokens. Throws
/// FormatError if the unknown token is not in the vocabulary.
std::shared_ptr<TokenizerParts> MakeWordPieceParts(std::shared_ptr<const Vocabulary> vocabulary,
  const BertNormalization& normalization, const std::string& unknown, const std::string& source);

}
