#include "FuzzParts.h"
#include "Text/TokenizerFile.h"

#include <optional>

using namespace atlas;

namespace
{

/// 'B', vocab.json, merges.txt; 'J', tokenizer.json; 'W', vocab.txt: separated by NUL. What remains
/// of the text is to be encoded.
Tokenizer MakeTokenizer(std::string_view& text)
{
  const char kind = text.front();
  text.remove_prefix(1);
  const std::string_view vocabulary = fuzz::NextPart(text);
  if (kind == 'B')
  {
    return ParseBytePairTokenizer(
      vocabulary, fuzz::Source, fuzz::NextPart(text), fuzz::Source, vocabulary.size() % 2 == 0);
  }
  if (kind == 'W')
  {
    WordPieceOptions options;
    options.lowerCase = vocabulary.size() % 2 == 0;
    return ParseWordPieceTokenizer(vocabulary, fuzz::Source, options);
  }
  return ParseTokenizer(vocabulary, fuzz::Source);
}

/// Exercises everything that a tokenizer does with a text.
void Encode(const Tokenizer& tokenizer, std::string_view text)
{
  fuzz::UseEncoding(tokenizer, tokenizer.Encode(text, true));
  fuzz::UseEncoding(tokenizer, tokenizer.EncodePair(text, text, true));
  fuzz::Use([&] { tokenizer.EncodePrompt(text, false); });
  fuzz::Use([&] { tokenizer.Label(tokenizer.VocabularySize() - 1); });
}

}

/// The readers of tokenizers, and encoding and decoding a text.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
  std::string_view text = fuzz::Text(data, size);
  if (text.empty() || (text[0] != 'B' && text[0] != 'J' && text[0] != 'W'))
  {
    return -1;
  }
  std::optional<Tokenizer> tokenizer;
  if (fuzz::Read([&] { tokenizer = MakeTokenizer(text); }))
  {
    fuzz::Use([&] { Encode(*tokenizer, text); });
  }
  return 0;
}
