#pragma once

// Internal to Core.

#include "Text/TokenTables.h"

#include <filesystem>

namespace atlas
{

/// The files of a tokenizer of Marian: SentencePiece models of both languages, whose pieces have
/// the ids of one vocabulary or, with the last file, of one for each language.
inline constexpr const char* MarianSourceFile = "source.spm";
inline constexpr const char* MarianTargetFile = "target.spm";
inline constexpr const char* MarianVocabularyFile = "vocab.json";
inline constexpr const char* MarianTargetVocabularyFile = "target_vocab.json";

/// A model whose pieces have the ids of a vocabulary, a file {token: id}. Tokens of the vocabulary
/// that are no pieces are there, but texts are not split into them; pieces that are not in it
/// become <unk>. Throws FileError if the file is missing, and FormatError if it is invalid or has
/// no <unk> or </s>, or if a piece of a model of byte pairs is not in it.
SentencePieceTable WithIdsOf(
  const std::filesystem::path& vocabulary, const SentencePieceTable& model);

/// Makes the tokenizer of one of the two models in a folder, with the ids of a vocabulary there.
/// Texts end with </s>. A code of the target's language, such as >>fra<<, is a token. Throws
/// FileError if a file is missing, and FormatError if one is invalid; for the vocabulary see
/// WithIdsOf.
Tokenizer ReadMarianTokenizer(
  const std::filesystem::path& folder, const char* model, const char* vocabulary);

}
