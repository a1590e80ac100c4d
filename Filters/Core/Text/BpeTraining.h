#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace atlas
{

/// The smallest vocabulary that TrainBpe makes: the bytes and one merge.
inline constexpr std::int64_t SmallestBpeVocabulary = 257;

/// Trains a tokenizer of byte-level byte pair encoding (Sennrich et al. 2016, Radford et al. 2019)
/// and returns it as the text of a tokenizer.json of Hugging Face's tokenizers library, which
/// ParseTokenizer reads.
///
/// The text is split into words by GPT-2's regular expression. The vocabulary begins with the 256
/// bytes, in GPT-2's order. Then the most frequent pair of adjacent tokens within words is merged
/// into a new token, of equally frequent pairs the one with the smaller ids, until the vocabulary
/// has `vocabularySize` tokens. Pairs that occur only once are not merged. There are no special
/// tokens. The same text gives the same bytes.
///
/// Throws FormatError if the text is not UTF-8, and OptionError if `vocabularySize` is below
/// SmallestBpeVocabulary or larger than the text allows; the message says how large it may be.
std::string TrainBpe(std::string_view text, std::int64_t vocabularySize);

}
