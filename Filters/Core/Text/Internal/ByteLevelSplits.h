#pragma once

// Internal to Core: the splits of byte-level BPE. TokenTables.h is the interface.

#include "TokenizerParts.h"

namespace atlas
{

/// How the tokenizers of some language models treat text before byte pair encoding.
struct ByteLevelSplit
{
  std::vector<SplitByExpression> splits; ///< applied one after the other
  std::vector<TextNormalization> normalizations;
  bool addPrefixSpace = false;  ///< add a space before a text that does not begin with one
  bool wholeWordsFirst = false; ///< a word that is itself a token is not split
  std::string wordEnd;          ///< part of the last byte of each word
};

/// The split of a name. Throws FormatError if there is none; messages start with `source`.
ByteLevelSplit MakeByteLevelSplit(const std::string& name, const std::string& source);

/// A tokenizer of byte-level BPE, without special tokens. Throws FormatError.
std::shared_ptr<TokenizerParts> MakeByteLevelParts(std::shared_ptr<const Vocabulary> vocabulary,
  const std::vector<Merge>& merges, const ByteLevelSplit& split, const std::string& source);

}
