#include "WordPieceTraining.h"

#include "Base/Error.h"
#include "Internal/TokenizerParts.h"
#include "Internal/TokenizerText.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace atlas
{
namespace
{

constexpr std::array<const char*, 5> SpecialTokens = { "[PAD]", "[UNK]", "[CLS]", "[SEP]",
  "[MASK]" };
constexpr const char* Continuation = "##";

/// A word that occurs less often is left out.
constexpr std::int64_t LeastWordCount = 2;

/// The words of BERT in normalized text: signs of punctuation and symbols of ASCII one by one, and
/// what is between them and white space.
constexpr const char* WordExpression = R"([\p{P}$+<=>^`|~]|[^\s\p{P}$+<=>^`|~]+)";

using Counts = std::map<std::string_view, std::int64_t>;

Counts CountWords(std::string_view text)
{
  Counts counts;
  for (const TextSpan& span : RegularExpression(WordExpression, "the words of BERT").Matches(text))
  {
    ++counts[text.substr(span.begin, span.end - span.begin)];
  }
  return counts;
}

/// The characters that begin words, then those that continue them.
std::vector<std::string> CharacterTokens(const Counts& words)
{
  std::set<char32_t> all;
  std::set<char32_t> continuing;
  for (const auto& [word, count] : words)
  {
    for (std::size_t i = 0; i < word.size();)
    {
      const bool isFirst = i == 0;
      const char32_t character = NextCharacter(word, i);
      all.insert(character);
      if (!isFirst)
      {
        continuing.insert(character);
      }
    }
  }
  std::vector<std::string> tokens;
  for (const char32_t character : all)
  {
    Append(tokens.emplace_back(), character);
  }
  for (const char32_t character : continuing)
  {
    Append(tokens.emplace_back(Continuation), character);
  }
  return tokens;
}

/// The frequent words of several characters, the most frequent first.
std::vector<std::string> FrequentWords(const Counts& words)
{
  std::vector<std::pair<std::int64_t, std::string_view>> frequent;
  for (const auto& [word, count] : words)
  {
    if (count >= LeastWordCount && CharacterCount(word) > 1)
    {
      frequent.emplace_back(-count, word);
    }
  }
  std::sort(frequent.begin(), frequent.end());
  std::vector<std::string> tokens;
  tokens.reserve(frequent.size());
  for (const auto& [count, word] : frequent)
  {
    tokens.emplace_back(word);
  }
  return tokens;
}

std::vector<std::string> MakeVocabulary(const Counts& words, std::int64_t size)
{
  std::vector<std::string> tokens(SpecialTokens.begin(), SpecialTokens.end());
  for (const std::vector<std::string>& more : { CharacterTokens(words), FrequentWords(words) })
  {
    const std::size_t before = tokens.size();
    tokens.insert(tokens.end(), more.begin(), more.end());
    ThrowIf<OptionError>(
      before == SpecialTokens.size() && size < static_cast<std::int64_t>(tokens.size()),
      "Vocabulary: expected at least ", tokens.size(),
      " tokens, the special ones and the characters of the text, found ", size, ".");
  }
  ThrowIf<OptionError>(size > static_cast<std::int64_t>(tokens.size()),
    "Vocabulary: the text has words that occur twice for ", tokens.size(), " tokens, found ", size,
    "; expected a smaller vocabulary or a longer text.");
  tokens.resize(size);
  return tokens;
}

using Json = TokenizerText::Json;

Json AddedTokens()
{
  Json added = Json::array();
  for (const char* token : SpecialTokens)
  {
    added.push_back({ { "id", added.size() }, { "content", token }, { "single_word", false },
      { "lstrip", false }, { "rstrip", false }, { "normalized", false }, { "special", true } });
  }
  return added;
}

std::string ToTokenizerText(const std::vector<std::string>& tokens)
{
  TokenizerText text;
  text.addedTokens = AddedTokens();
  text.normalizer = { { "type", "BertNormalizer" }, { "clean_text", true },
    { "handle_chinese_chars", true }, { "strip_accents", nullptr }, { "lowercase", true } };
  text.preTokenizer = { { "type", "BertPreTokenizer" } };
  text.postProcessor["type"] = "BertProcessing";
  text.postProcessor["sep"] = Json::array({ "[SEP]", 3 });
  text.postProcessor["cls"] = Json::array({ "[CLS]", 2 });
  text.decoder = { { "type", "WordPiece" }, { "prefix", Continuation }, { "cleanup", true } };
  text.model = { { "type", "WordPiece" }, { "unk_token", "[UNK]" },
    { "continuing_subword_prefix", Continuation }, { "max_input_chars_per_word", 100 } };
  text.model["vocab"] = TokenizerText::Vocabulary(tokens);
  return text.Text();
}

}

WordPieceTexts TrainWordPiece(std::string_view text, std::int64_t vocabularySize)
{
  RequireUtf8(text, "the text");
  const std::string source = "the text";
  const TextLimit limit = { std::numeric_limits<std::size_t>::max(), source };
  const std::string normalized = Apply(BertNormalization(), text, limit);
  const std::vector<std::string> tokens = MakeVocabulary(CountWords(normalized), vocabularySize);
  WordPieceTexts texts;
  texts.tokenizer = ToTokenizerText(tokens);
  for (const std::string& token : tokens)
  {
    texts.vocabulary += token + "\n";
  }
  return texts;
}

}
