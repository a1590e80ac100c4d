#include "Text/Internal/WordModel.h"

#include "Base/Error.h"
#include "Base/Utf8Text.h"
#include "ErrorMessage.h"

#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::MessageOf;
using testing::ElementsAre;

namespace
{

using Merges = std::vector<BytePairModel::Merge>;

std::shared_ptr<const Vocabulary> Words(const std::vector<std::string>& tokens)
{
  auto vocabulary = std::make_shared<Vocabulary>();
  for (const std::string& token : tokens)
  {
    vocabulary->Add(token, vocabulary->Size(), "vocabulary");
  }
  return vocabulary;
}

std::vector<std::int64_t> Encode(const WordModel& model, std::string_view word)
{
  std::vector<std::int64_t> ids;
  model.Encode(word, ids);
  return ids;
}

TEST(ByteLevel, CharactersStandForBytes)
{
  const auto& characters = ByteLevelCharacters();
  EXPECT_EQ((std::set<char32_t>{ characters.begin(), characters.end() }).size(), 256U);
  // As everybody knows them from the vocabulary of GPT-2.
  EXPECT_EQ(characters['A'], U'A');
  EXPECT_EQ(characters[' '], U'\u0120');
  EXPECT_EQ(characters['\n'], U'\u010A');
  EXPECT_EQ(characters[0], U'\u0100');
  EXPECT_EQ(characters[0xC3], U'\u00C3');
  EXPECT_EQ(characters[0xAD], U'\u0143'); // a soft hyphen is not printable
  for (unsigned byte = 0; byte < 256; ++byte)
  {
    std::string token;
    Append(token, characters[byte]);
    EXPECT_EQ(ByteLevelBytes(token), std::string(1, static_cast<char>(byte)));
  }
  EXPECT_EQ(ByteLevelBytes("\u0120caf\u00C3\u00A9"), " caf\xC3\xA9");
  EXPECT_EQ(ByteLevelBytes("<\u4E2D>"), "<\u4E2D>"); // no byte-level token
}

TEST(BytePairModel, MergesByRank)
{
  // The example of Sennrich et al.: the merge that was learned first comes first.
  const auto vocabulary =
    Words({ "l", "o", "w", "e", "r", "n", "lo", "low", "er", "ne", "new", "wer" });
  const BytePairModel model(vocabulary,
    { { "e", "r" }, { "l", "o" }, { "lo", "w" }, { "n", "e" }, { "ne", "w" }, { "w", "er" } },
    false, "merges");
  EXPECT_THAT(Encode(model, "lower"), ElementsAre(7, 8));  // low er
  EXPECT_THAT(Encode(model, "newer"), ElementsAre(10, 8)); // new er
  EXPECT_THAT(Encode(model, "wer"), ElementsAre(11));
  EXPECT_THAT(Encode(model, "wlo"), ElementsAre(2, 6));
  EXPECT_THAT(Encode(model, ""), testing::IsEmpty());
}

TEST(BytePairModel, TheLeftmostOfEqualMergesComesFirst)
{
  const BytePairModel model(Words({ "a", "aa" }), Merges{ { "a", "a" } }, false, "merges");
  EXPECT_THAT(Encode(model, "aaa"), ElementsAre(1, 0));
  EXPECT_THAT(Encode(model, "aaaaa"), ElementsAre(1, 1, 0));
}

/// Byte pair encoding word for word as its paper says, on texts of tokens.
std::vector<std::string> MergeByHand(std::vector<std::string> symbols, const Merges& merges)
{
  for (;;)
  {
    std::size_t bestRank = merges.size();
    std::size_t best = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i)
    {
      for (std::size_t rank = 0; rank < bestRank; ++rank)
      {
        if (merges[rank].first == symbols[i] && merges[rank].second == symbols[i + 1])
        {
          bestRank = rank;
          best = i;
        }
      }
    }
    if (bestRank == merges.size())
    {
      return symbols;
    }
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(BytePairModel, WordsOfAnyLengthAreMergedByThePaper)
{
  const Merges merges = { { "a", "b" }, { "b", "a" }, { "ab", "a" }, { "a", "a" }, { "c", "ab" },
    { "ab", "ab" }, { "aa", "c" } };
  const auto vocabulary = Words({ "a", "b", "c", "ab", "ba", "aba", "aa", "cab", "abab", "aac" });
  const BytePairModel model(vocabulary, merges, false, "merges");
  std::mt19937 generator(1);
  for (std::size_t length = 1; length < 130; ++length) // short and long words have their own code
  {
    std::string word;
    std::vector<std::string> symbols;
    for (std::size_t i = 0; i < length; ++i)
    {
      word += "abc"[generator() % 3];
      symbols.emplace_back(1, word.back());
    }
    std::vector<std::string> found;
    for (const std::int64_t id : Encode(model, word))
    {
      found.push_back(*vocabulary->TokenOf(id));
    }
    EXPECT_EQ(found, MergeByHand(symbols, merges)) << word;
  }
}

TEST(BytePairModel, WholeWordsFirstIfAsked)
{
  const auto vocabulary = Words({ "a", "b", "c", "ab", "abc" });
  const Merges merges = { { "a", "b" } };
  EXPECT_THAT(Encode(BytePairModel(vocabulary, merges, false, "merges"), "abc"), ElementsAre(3, 2));
  EXPECT_THAT(Encode(BytePairModel(vocabulary, merges, true, "merges"), "abc"), ElementsAre(4));
}

TEST(BytePairModel, BadMergesAreRefused)
{
  const auto vocabulary = Words({ "a", "b", "ab" });
  const auto refusal = [&](const Merges& merges)
  { return MessageOf<FormatError>([&] { BytePairModel(vocabulary, merges, false, "merges"); }); };
  EXPECT_EQ(refusal({ { "a", "b" }, { "a", "x" } }),
    "merges: merge 1 'a x': the vocabulary has no token 'ax'.");
  EXPECT_EQ(refusal({ { "a", "b" }, { "a", "b" } }), "merges: merge 1 'a b' is listed twice.");
  const BytePairModel model(vocabulary, {}, false, "merges");
  EXPECT_EQ(MessageOf<FormatError>([&] { Encode(model, "a\xFF"); }),
    "merges: the vocabulary has no token for the byte 0xff, which the text contains.");
}

TEST(BytePairModel, TokensAreTheirBytes)
{
  const BytePairModel model(Words({ "\u0120a" }), {}, false, "merges");
  std::string text = "x";
  model.Decode("\u0120a", text);
  EXPECT_EQ(text, "x a");
  EXPECT_EQ(model.Label("\u00C3"), "\uFFFD"); // half a character
}

TEST(WordPieceModel, TakesTheLongestToken)
{
  // The example of Wu et al. and of BERT's own code.
  const WordPieceModel model(
    Words({ "[UNK]", "un", "##aff", "##able", "##a", "una", "want", "##ed" }), {}, "vocab.txt");
  EXPECT_THAT(Encode(model, "unaffable"), ElementsAre(0)) << "una, and nothing begins with ff";
  EXPECT_THAT(Encode(model, "unable"), ElementsAre(0));
  EXPECT_THAT(Encode(model, "wanted"), ElementsAre(6, 7));
  EXPECT_THAT(Encode(model, "unwanted"), ElementsAre(0));
  EXPECT_THAT(Encode(model, "unaa"), ElementsAre(5, 4));
}

TEST(WordPieceModel, LongWordsAreUnknown)
{
  WordPieceModel::Options options;
  options.maximumCharacters = 3;
  const WordPieceModel model(Words({ "[UNK]", "\u00E9", "##\u00E9" }), options, "vocab.txt");
  EXPECT_THAT(Encode(model, "\u00E9\u00E9\u00E9"), ElementsAre(1, 2, 2)); // characters, not bytes
  EXPECT_THAT(Encode(model, "\u00E9\u00E9\u00E9\u00E9"), ElementsAre(0));
}

TEST(WordPieceModel, UnknownWordsNeedTheUnknownToken)
{
  const WordPieceModel model(Words({ "a" }), {}, "vocab.txt");
  std::vector<std::int64_t> ids;
  model.Encode("a", ids);
  EXPECT_THAT(ids, ElementsAre(0));
  EXPECT_EQ(MessageOf<FormatError>([&] { model.Encode("b", ids); }),
    "vocab.txt: the vocabulary has no word 'b', which the text contains, and no token "
    "'[UNK]' for unknown words.");
}

TEST(WordPieceModel, WordsAreReadWithSpaces)
{
  const WordPieceModel model(Words({ "[UNK]" }), {}, "vocab.txt");
  std::string text;
  for (const char* token : { "want", "##ed", "it" })
  {
    model.Decode(token, text);
  }
  EXPECT_EQ(text, "wanted it");
}

}
