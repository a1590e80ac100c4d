#pragma once

// Internal to Core: see MakeSentencePieceTokenizer, which makes a tokenizer of them.

#include "TokenTables.h"
#include "TokenizerParts.h"

namespace atlas
{

std::shared_ptr<TokenizerParts> MakeSentencePieceParts(
  const SentencePieceTable& table, const std::string& source);

}
