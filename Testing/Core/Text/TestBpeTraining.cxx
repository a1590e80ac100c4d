#include "Text/BpeTraining.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "Text/TokenizerFile.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

using namespace atlas;
using atlas::test::MessageOf;
using testing::HasSubstr;

namespace
{

using Word = std::vector<std::int64_t>;
using Pair = std::pair<std::int64_t, std::int64_t>;

/// The words of a text of lower-case letters and single spaces: each letter sequence with the space
/// before it.
std::vector<std::string> WordsOf(const std::string& text)
{
  std::vector<std::string> words;
  for (const char c : text)
  {
    if (words.empty() || c == ' ')
    {
      words.emplace_back();
    }
    words.back() += c;
  }
  return words;
}

Word Merged(const Word& word, const Pair& pair, std::int64_t id)
{
  Word merged;
  for (std::size_t i = 0; i < word.size(); ++i)
  {
    const bool here = i + 1 < word.size() && Pair(word[i], word[i + 1]) == pair;
    merged.push_back(here ? id : word[i]);
    i += here ? 1 : 0;
  }
  return merged;
}

/// The definition: all pairs are counted again for every merge.
struct NaiveTraining
{
  std::vector<std::string> tokens;
  std::vector<std::pair<Pair, std::int64_t>> merges;

  /// The id of a byte: "!" is 0, and the space is the character U+0120 of GPT-2.
  static std::int64_t IdOf(char c) { return c == ' ' ? 188 + 32 : c - '!'; }

  static Word Bytes(const std::string& text)
  {
    Word word;
    for (const char c : text)
    {
      word.push_back(IdOf(c));
    }
    return word;
  }

  NaiveTraining(const std::string& text, std::int64_t size)
    : tokens(256)
  {
    for (char c = '!'; c <= '~'; ++c)
    {
      this->tokens[c - '!'] = c;
    }
    this->tokens[188 + 32] = " ";
    std::vector<Word> words;
    for (const std::string& word : WordsOf(text))
    {
      words.push_back(Bytes(word));
    }
    while (static_cast<std::int64_t>(this->tokens.size()) < size)
    {
      this->Merge(words);
    }
  }

  void Merge(std::vector<Word>& words)
  {
    std::map<Pair, std::int64_t> counts;
    for (const Word& word : words)
    {
      for (std::size_t i = 0; i + 1 < word.size(); ++i)
      {
        ++counts[{ word[i], word[i + 1] }];
      }
    }
    // The first of the largest, in order of the ids.
    const auto best = std::max_element(counts.begin(), counts.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
    ASSERT_GE(best->second, 2);
    const Pair pair = best->first;
    const std::string text = this->tokens[pair.first] + this->tokens[pair.second];
    const auto known = std::find(this->tokens.begin(), this->tokens.end(), text);
    const std::int64_t id = known - this->tokens.begin();
    if (known == this->tokens.end())
    {
      this->tokens.push_back(text);
    }
    this->merges.emplace_back(pair, id);
    for (Word& word : words)
    {
      word = Merged(word, pair, id);
    }
  }

  /// Applies the merges to a text in their order.
  std::vector<std::int64_t> Encode(const std::string& text) const
  {
    std::vector<std::int64_t> ids;
    for (const std::string& part : WordsOf(text))
    {
      Word word = Bytes(part);
      for (const auto& [pair, id] : this->merges)
      {
        word = Merged(word, pair, id);
      }
      ids.insert(ids.end(), word.begin(), word.end());
    }
    return ids;
  }
};

/// Words of three letters, so that ties, repeated letters and words in words abound.
std::string RandomText(std::uint64_t seed, int words)
{
  std::mt19937_64 generator(seed);
  std::string text;
  for (int word = 0; word < words; ++word)
  {
    text += word == 0 ? "" : " ";
    for (std::uint64_t length = 1 + generator() % 9; length > 0; --length)
    {
      text += "abc"[generator() % 3];
    }
  }
  return text;
}

TEST(BpeTraining, MergesAreThoseOfTheDefinition)
{
  for (std::uint64_t seed = 0; seed < 20; ++seed)
  {
    const std::string text = RandomText(seed, 300);
    const NaiveTraining naive(text, 330);
    const auto json = nlohmann::json::parse(TrainBpe(text, 330));
    const auto& merges = json["model"]["merges"];
    ASSERT_EQ(merges.size(), naive.merges.size());
    for (std::size_t i = 0; i < merges.size(); ++i)
    {
      std::string expected = naive.tokens[naive.merges[i].first.first] + "|" +
                             naive.tokens[naive.merges[i].first.second];
      std::string found = merges[i];
      found[found.find(' ')] = '|';
      while (found.find("\u0120") != std::string::npos)
      {
        found.replace(found.find("\u0120"), 2, " ");
      }
      ASSERT_EQ(found, expected) << "merge " << i << " of seed " << seed;
    }
  }
}

TEST(BpeTraining, TheTokenizerAppliesTheMergesInTheirOrder)
{
  for (std::uint64_t seed = 0; seed < 5; ++seed)
  {
    const std::string text = RandomText(seed, 400);
    const NaiveTraining naive(text, 340);
    const Tokenizer tokenizer = ParseTokenizer(TrainBpe(text, 340), "trained");
    EXPECT_EQ(tokenizer.VocabularySize(), 340);
    for (const std::string& other : { text, RandomText(seed + 100, 400) })
    {
      EXPECT_EQ(tokenizer.Encode(other, true).ids, naive.Encode(other));
    }
  }
}

TEST(BpeTraining, TextIsRestored)
{
  const std::string text =
    "In the beginning God created the heaven and the earth.\n\tIt's 3 o'clock, na\u00efve "
    "\u4e16\u754c \U0001f600!  In the end. \n";
  const Tokenizer tokenizer = ParseTokenizer(TrainBpe(text, 262), "trained");
  const Encoding encoding = tokenizer.Encode(text, true);
  EXPECT_EQ(tokenizer.Decode(encoding.ids), text);
  EXPECT_LT(encoding.ids.size(), text.size());
  EXPECT_EQ(tokenizer.Encode("", true).ids.size(), 0U);
  EXPECT_EQ(TrainBpe(text, 262), TrainBpe(text, 262));
}

/// By hand: "aaab" twice has the pair aa four times, ab twice. In "aaab" the first aa is merged,
/// so "aa a" and "a b" are left, two of each; "ab" has the smaller ids.
TEST(BpeTraining, OverlappingPairsAreMergedFromTheLeft)
{
  const auto json = nlohmann::json::parse(TrainBpe("aaab\naaab", 259));
  EXPECT_EQ(json["model"]["merges"], nlohmann::json({ "a a", "a b", "aa ab" }));
  EXPECT_EQ(json["model"]["vocab"]["aaab"], 258);
}

TEST(BpeTraining, ATextAllowsOnlySoManyTokens)
{
  EXPECT_THAT(MessageOf<OptionError>([] { TrainBpe("some text", 256); }),
    HasSubstr("expected at least 257 tokens, the bytes and one merge, found 256"));
  EXPECT_THAT(MessageOf<OptionError>([] { TrainBpe("aaab\naaab", 300); }),
    HasSubstr("the text has pairs that occur twice for 259 tokens, found 300"));
  EXPECT_THAT(MessageOf<OptionError>([] { TrainBpe("", 257); }), HasSubstr("for 256 tokens"));
  EXPECT_THAT(MessageOf<FormatError>([] { TrainBpe("\xff", 257); }), HasSubstr("the text"));
}

}
