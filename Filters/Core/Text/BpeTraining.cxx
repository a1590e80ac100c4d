#include "BpeTraining.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Internal/MergeRules.h"
#include "Internal/TokenizerParts.h"
#include "Internal/TokenizerText.h"

#include <algorithm>
#include <map>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

namespace atlas
{
namespace
{

/// A pair that occurs less often is not merged, as in Hugging Face's ByteLevelBPETokenizer.
constexpr std::int64_t LeastPairCount = 2;

std::int32_t LeftOf(PairKey key)
{
  return static_cast<std::int32_t>(key >> 32U);
}

std::int32_t RightOf(PairKey key)
{
  return static_cast<std::int32_t>(key & 0xFFFFFFFFU);
}

/// A word of the text as tokens, and how often it occurs.
struct CountedWord
{
  std::vector<std::int32_t> tokens;
  std::int64_t count = 0;
};

/// Merges pairs. The counts of pairs are those of the words as they are now; only words with the
/// merged pair are counted again.
class BpeTrainer
{
public:
  explicit BpeTrainer(std::string_view text)
  {
    this->AddBytes();
    this->AddWords(text);
    for (std::size_t word = 0; word < this->Words.size(); ++word)
    {
      this->CountPairs(word, 1);
    }
    this->OfferRisen();
  }

  /// Whether there was a pair to merge.
  bool Merge()
  {
    while (!this->Candidates.empty())
    {
      const auto [count, complement] = this->Candidates.top();
      const PairKey key = ~complement;
      this->Candidates.pop();
      const std::int64_t current = this->Pairs[key].count;
      if (current != count)
      {
        this->Offer(key, current);
        continue;
      }
      this->MergePair(key);
      return true;
    }
    return false;
  }

  std::int64_t Size() const { return this->Texts.size(); }

  const std::vector<std::string>& GetTokens() const { return this->Texts; }

  /// "left right"
  const std::vector<std::string>& GetMerges() const { return this->Merges; }

private:
  struct Pair
  {
    std::int64_t count = 0;
    std::vector<std::size_t> words; ///< where it is or was
  };

  std::vector<std::string> Texts; ///< of tokens, by id
  std::unordered_map<std::string, std::int32_t> Ids;
  std::vector<std::string> Merges;
  std::vector<CountedWord> Words;
  std::unordered_map<PairKey, Pair> Pairs;
  /// Counts, which may be out of date, but are never too small, and the complements of pairs: more
  /// frequent ones come first, then those of smaller ids.
  std::priority_queue<std::pair<std::int64_t, PairKey>> Candidates;
  std::vector<PairKey> Risen; ///< pairs whose count may have risen

  std::int32_t AddToken(const std::string& text)
  {
    const auto [place, isNew] =
      this->Ids.emplace(text, static_cast<std::int32_t>(this->Texts.size()));
    if (isNew)
    {
      this->Texts.push_back(text);
    }
    return place->second;
  }

  /// GPT-2's order is that of the characters that stand for the bytes.
  void AddBytes()
  {
    std::array<char32_t, 256> characters = ByteLevelCharacters();
    std::sort(characters.begin(), characters.end());
    for (const char32_t character : characters)
    {
      std::string token;
      Append(token, character);
      this->AddToken(token);
    }
  }

  void AddWords(std::string_view text)
  {
    std::map<std::string_view, std::int64_t> counts;
    for (const TextSpan& span :
      RegularExpression(ByteLevelExpression, "the words of GPT-2").Matches(text))
    {
      ++counts[text.substr(span.begin, span.end - span.begin)];
    }
    for (const auto& [word, count] : counts)
    {
      CountedWord counted{ {}, count };
      for (const char byte : word)
      {
        counted.tokens.push_back(this->Ids.at(ByteLevelToken({ &byte, 1 })));
      }
      this->Words.push_back(std::move(counted));
    }
  }

  /// Adds (`sign` 1) or takes away (-1) the pairs of a word.
  void CountPairs(std::size_t word, std::int64_t sign)
  {
    const CountedWord& counted = this->Words[word];
    for (std::size_t i = 0; i + 1 < counted.tokens.size(); ++i)
    {
      const PairKey key = KeyOf(counted.tokens[i], counted.tokens[i + 1]);
      Pair& pair = this->Pairs[key];
      pair.count += sign * counted.count;
      if (sign > 0)
      {
        this->Risen.push_back(key);
        if (pair.words.empty() || pair.words.back() != word)
        {
          pair.words.push_back(word);
        }
      }
    }
  }

  void Offer(PairKey key, std::int64_t count)
  {
    if (count >= LeastPairCount)
    {
      this->Candidates.emplace(count, ~key);
    }
  }

  void OfferRisen()
  {
    std::sort(this->Risen.begin(), this->Risen.end());
    this->Risen.erase(std::unique(this->Risen.begin(), this->Risen.end()), this->Risen.end());
    for (const PairKey key : this->Risen)
    {
      this->Offer(key, this->Pairs[key].count);
    }
    this->Risen.clear();
  }

  void MergePair(PairKey key)
  {
    const std::string left = this->Texts[LeftOf(key)];
    const std::string right = this->Texts[RightOf(key)];
    const std::int32_t merged = this->AddToken(left + right);
    this->Merges.push_back(left + " " + right);
    std::vector<std::size_t> words = std::move(this->Pairs[key].words);
    this->Pairs[key].words.clear();
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    for (const std::size_t word : words)
    {
      this->CountPairs(word, -1);
      MergeIn(this->Words[word].tokens, key, merged);
      this->CountPairs(word, 1);
    }
    this->OfferRisen();
  }

  /// Merges a pair from left to right.
  static void MergeIn(std::vector<std::int32_t>& tokens, PairKey key, std::int32_t merged)
  {
    std::size_t end = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i)
    {
      if (i + 1 < tokens.size() && KeyOf(tokens[i], tokens[i + 1]) == key)
      {
        tokens[end++] = merged;
        ++i;
      }
      else
      {
        tokens[end++] = tokens[i];
      }
    }
    tokens.resize(end);
  }
};

using Json = TokenizerText::Json;

/// A component of byte-level BPE.
Json ByteLevel()
{
  return { { "type", "ByteLevel" }, { "add_prefix_space", false }, { "trim_offsets", true },
    { "use_regex", true } };
}

std::string ToTokenizerText(const BpeTrainer& trainer)
{
  TokenizerText text;
  text.preTokenizer = text.decoder = ByteLevel();
  text.model["type"] = "BPE";
  for (const char* none :
    { "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix" })
  {
    text.model[none] = nullptr;
  }
  for (const char* flag : { "fuse_unk", "byte_fallback", "ignore_merges" })
  {
    text.model[flag] = false;
  }
  text.model["vocab"] = TokenizerText::Vocabulary(trainer.GetTokens());
  text.model["merges"] = trainer.GetMerges();
  return text.Text();
}

}

std::string TrainBpe(std::string_view text, std::int64_t vocabularySize)
{
  ThrowIf<OptionError>(vocabularySize < SmallestBpeVocabulary, "Vocabulary: expected at least ",
    SmallestBpeVocabulary, " tokens, the bytes and one merge, found ", vocabularySize, ".");
  RequireUtf8(text, "the text");
  BpeTrainer trainer(text);
  while (trainer.Size() < vocabularySize)
  {
    if (!trainer.Merge())
    {
      throw OptionError("Vocabulary: the text has pairs that occur twice for ", trainer.Size(),
        " tokens, found ", vocabularySize, "; expected a smaller vocabulary or a longer text.");
    }
  }
  return ToTokenizerText(trainer);
}

}
