#pragma once

// Internal to Core.

#include "Tokenizer.h"

#include <filesystem>

namespace atlas
{

/// The files of a tokenizer of Marian: SentencePiece models of both languages, whose pieces have
/// the ids of one vocabulary.
inline constexpr const char* MarianSourceFile = "source.spm";
inline constexpr const char* MarianTargetFile = "target.spm";
inline constexpr const char* MarianVocabularyFile = "vocab.json";

/// Makes the tokenizer of one of the two models in a folder. Texts end with </s>. A code of the
/// target's language, such as >>fra<<, is a token. Throws FileError if a file is missing, and
/// FormatError if one is invalid, or if <unk> or </s> is not in the vocabulary.
Tokenizer ReadMarianTokenizer(const std::filesystem::path& folder, const char* model);

}
