#pragma once

#include "TokenTables.h"

#include <string>
#include <string_view>

namespace atlas
{

/// Parses a model file of SentencePiece (tokenizer.model, spiece.model, sentencepiece.bpe.model;
/// Kudo and Richardson 2018): pieces with scores and types, the kind of model, and how text is
/// normalized. textBegin, textEnd and addedTokens remain empty, since the file does not say what a
/// language model adds to texts. Throws FormatError if the file is not such a model, is cut off or
/// holds no pieces, or if its kind (words, characters) or an option (spaces behind words) is not
/// supported; the message starts with `source`. Takes time and memory in proportion to the size of
/// the file.
SentencePieceTable ParseSentencePieceModel(std::string_view bytes, const std::string& source);

}
