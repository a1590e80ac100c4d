#include "WordLevelText.h"

#include "Base/Error.h"
#include "Internal/TokenizerText.h"
#include "UnicodeText.h"

#include <set>

namespace atlas
{
namespace
{

void CheckWord(const std::string& word)
{
  RequireUtf8(word, "the words of a tokenizer");
  bool isWord = !word.empty();
  for (std::size_t i = 0; i < word.size();)
  {
    isWord = !IsWhitespace(NextCharacter(word, i)) && isWord;
  }
  ThrowIf<OptionError>(
    !isWord, "words of a tokenizer: expected characters without white space, found '", word, "'.");
}

}

std::string WordLevelText(const std::vector<std::string>& words)
{
  std::set<std::string> known;
  for (const std::string& word : words)
  {
    CheckWord(word);
    ThrowIf<OptionError>(!known.insert(word).second,
      "words of a tokenizer: expected each once, found '", word, "' twice.");
  }
  TokenizerText text;
  text.preTokenizer = { { "type", "WhitespaceSplit" } };
  text.model = { { "type", "WordLevel" }, { "vocab", TokenizerText::Vocabulary(words) },
    { "unk_token", "[UNK]" } };
  return text.Text();
}

}
