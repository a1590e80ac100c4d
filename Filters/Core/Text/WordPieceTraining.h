#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace atlas
{

/// A WordPiece tokenizer in the two forms of Hugging Face, which mean the same.
struct WordPieceTexts
{
  std::string tokenizer;  ///< tokenizer.json; ParseTokenizer reads it
  std::string vocabulary; ///< vocab.txt; ParseWordPieceTokenizer reads it
};

/// Makes a vocabulary for BERT's tokenizer (Devlin et al. 2019) from a text: [PAD], [UNK], [CLS],
/// [SEP] and [MASK]; each character of the text and, after ##, each that continues a word, in order
/// of their code points; then the most frequent words, of equally frequent ones the first by their
/// bytes, until it has `vocabularySize` tokens. Words of one character are there already, and words
/// that occur only once are left out. Words are those of BERT, in lower case and without accents. A
/// word that is not in the vocabulary is spelled in characters.
///
/// Throws FormatError if the text is not UTF-8, and OptionError if `vocabularySize` does not hold
/// the special tokens and all characters, or is larger than the text allows; the message says how
/// large it may be.
WordPieceTexts TrainWordPiece(std::string_view text, std::int64_t vocabularySize);

}
