#include "Text/Prompts.h"

#include "Base/Error.h"
#include "Refusals.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace
{

std::vector<std::string> Parse(const std::string& text, PromptFormat format)
{
  std::vector<std::string> warnings;
  std::vector<std::string> prompts = ParsePrompts(text, format, "Prompts", warnings);
  EXPECT_THAT(warnings, IsEmpty());
  return prompts;
}

TEST(Prompts, AreLinesOrOneText)
{
  const std::string text = "Q: 1 + 1?\nA:\r\n\n 2\n";
  EXPECT_THAT(Parse(text, PromptFormat::Lines), ElementsAre("Q: 1 + 1?", "A:", "", " 2"));
  EXPECT_THAT(Parse(text, PromptFormat::OneText), ElementsAre("Q: 1 + 1?\nA:\n\n 2"));
  EXPECT_THAT(Parse("a\n\n", PromptFormat::OneText), ElementsAre("a\n"));
  // A prompt that is written like JSON stays what it is.
  EXPECT_THAT(Parse("\"a\"\n{}", PromptFormat::Lines), ElementsAre("\"a\"", "{}"));
  for (const PromptFormat format :
    { PromptFormat::Lines, PromptFormat::OneText, PromptFormat::JsonLines })
  {
    EXPECT_THAT(Parse("", format), IsEmpty());
  }
}

TEST(Prompts, JsonLinesHaveLineBreaks)
{
  EXPECT_THAT(Parse("\"a\\nb\"\r\n \n{\"text\": \"c\\td\"}\n{\"prompt\": \"\\u00e9\\n\"}\n\"\"",
                PromptFormat::JsonLines),
    ElementsAre("a\nb", "c\td", "\u00e9\n", ""));
}

TEST(Prompts, KeysThatAreNotReadAreNamed)
{
  std::vector<std::string> warnings;
  EXPECT_THAT(
    ParsePrompts("{\"text\": \"a\", \"id\": 3}\n{\"answer\": [1], \"prompt\": \"b\", \"id\": 4}",
      PromptFormat::JsonLines, "p.jsonl", warnings),
    ElementsAre("a", "b"));
  EXPECT_THAT(warnings,
    ElementsAre("p.jsonl: only the text of each line is read, and not its \"answer\", \"id\"."));
}

TEST(Prompts, OtherJsonIsRefused)
{
  const std::vector<Refused> bad = { { "b", "the line is not JSON" },
    { "5", "a JSON string or object, found 5" }, { "[\"b\"]", "string or object, found array" },
    { "{\"messages\": []}", "\"text\" or \"prompt\", found neither" },
    { "{\"text\": \"b\", \"prompt\": \"c\"}", "\"text\" or \"prompt\", found both" },
    { "{\"text\": 5}", "a string as \"text\", found 5" } };
  ExpectRefusals<FormatError>(
    bad, [](const std::string& line) { Parse("\"a\"\n\n" + line, PromptFormat::JsonLines); },
    "Prompts, line 3: ");
}

TEST(Prompts, AreWrittenWithEveryCharacter)
{
  const std::vector<std::string> prompts = { "a\nb\r\n", "", "\"\\", " \t\u00e9\u2028", "\n" };
  EXPECT_EQ(Parse(WritePrompts(prompts, "prompt"), PromptFormat::JsonLines), prompts);
  EXPECT_THAT(WritePrompts({}, "prompt"), IsEmpty());
  EXPECT_THAT(MessageOf<FormatError>([] { WritePrompts({ "a", "\xff" }, "prompt"); }),
    HasSubstr("prompt 2: "));
}

TEST(Prompts, IntegersAreReadLineByLine)
{
  EXPECT_THAT(ParseIntegerLines("1 2,3\t-4\r\n\n 9223372036854775807 ,\n", "TokenIds"),
    ElementsAre(ElementsAre(1, 2, 3, -4), IsEmpty(), ElementsAre(9223372036854775807LL)));
  EXPECT_THAT(ParseIntegerLines("", "TokenIds"), IsEmpty());
}

TEST(Prompts, WhatIsNoIntegerIsNamed)
{
  const std::vector<Refused> bad = { { "1\n2 x3\n", "line 2: expected integers" },
    { "1\n2 x3\n", "found 'x3'" }, { "9223372036854775808", "line 1" }, { "1.5", "line 1" },
    { "0x10", "line 1" }, { "+1", "line 1" }, { "1;2", "line 1" }, { "--1", "line 1" } };
  ExpectRefusals<OptionError>(
    bad, [](const std::string& text) { ParseIntegerLines(text, "TokenIds"); }, "TokenIds: ");
}

TEST(Prompts, RandomIdsFollowTheStandardGenerator)
{
  RandomPromptOptions options;
  options.seed = 5489;
  options.length = 10000;
  options.lastId = 999'999;
  const auto prompts = MakeRandomPrompts(options);
  ASSERT_EQ(prompts.size(), 1U);
  // The C++ standard gives the 10,000th number of mt19937_64 by this seed: 9981545732273789042.
  EXPECT_EQ(prompts[0].size(), 10000U);
  EXPECT_EQ(prompts[0].back(), 789042);
}

TEST(Prompts, EveryIdOfTheRangeComesUp)
{
  RandomPromptOptions options;
  options.length = 200;
  options.firstId = 7;
  options.lastId = 11;
  const std::vector<std::int64_t> ids = MakeRandomPrompts(options)[0];
  EXPECT_THAT((std::set<std::int64_t>{ ids.begin(), ids.end() }), ElementsAre(7, 8, 9, 10, 11));
  options.lastId = 7;
  EXPECT_THAT(MakeRandomPrompts(options)[0], testing::Each(7));
}

TEST(Prompts, AreRepeatedAsSaid)
{
  RandomPromptOptions options;
  options.length = 23;
  options.count = 3;
  options.block = 5;
  options.kind = RandomPromptKind::RepeatedBlock;
  for (const std::vector<std::int64_t>& ids : MakeRandomPrompts(options))
  {
    ASSERT_EQ(ids.size(), 23U);
    EXPECT_GT((std::set<std::int64_t>{ ids.begin(), ids.begin() + 5 }).size(), 1U);
    for (std::size_t i = 5; i < ids.size(); ++i)
    {
      EXPECT_EQ(ids[i], ids[i - 5]);
    }
  }
  options.kind = RandomPromptKind::OneToken;
  for (const std::vector<std::int64_t>& ids : MakeRandomPrompts(options))
  {
    EXPECT_THAT(ids, testing::Each(ids.front()));
  }
  options.block = 100; // longer than the sequence: cut off
  options.kind = RandomPromptKind::RepeatedBlock;
  EXPECT_EQ(MakeRandomPrompts(options)[0].size(), 23U);
}

TEST(Prompts, FirstSequencesDoNotDependOnTheirCount)
{
  for (const RandomPromptKind kind :
    { RandomPromptKind::OneToken, RandomPromptKind::Random, RandomPromptKind::RepeatedBlock })
  {
    RandomPromptOptions options;
    options.kind = kind;
    options.count = 4;
    auto many = MakeRandomPrompts(options);
    EXPECT_NE(many[0], many[1]);
    options.count = 2;
    many.resize(2);
    EXPECT_EQ(MakeRandomPrompts(options), many);
    options.seed = 1;
    EXPECT_NE(MakeRandomPrompts(options), many);
  }
}

TEST(Prompts, SenselessOptionsAreRefused)
{
  const auto refusal = [](auto change)
  {
    RandomPromptOptions options;
    change(options);
    return MessageOf<OptionError>([&] { MakeRandomPrompts(options); });
  };
  using Options = RandomPromptOptions;
  EXPECT_THAT(refusal([](Options& o) { o.length = 0; }), HasSubstr("Length: expected at least 1"));
  EXPECT_THAT(refusal([](Options& o) { o.count = -1; }), HasSubstr("Count: expected at least 1"));
  EXPECT_THAT(refusal([](Options& o) { o.block = 0; }), HasSubstr("Block: expected at least 1"));
  EXPECT_THAT(refusal([](Options& o) { o.firstId = -1; }), HasSubstr("expected at least 0"));
  EXPECT_THAT(refusal([](Options& o) { o.firstId = o.lastId + 1; }),
    HasSubstr("the last id: expected at least 1000, found 999"));
}

TEST(Prompts, ProteinsAreLetters)
{
  EXPECT_THAT(Parse(">a\nMKV\nLA\n>b\nWW\n", PromptFormat::Fasta), ElementsAre("MKVLA", "WW"));
  EXPECT_THAT(Parse(">a\nMK-V\n>b\nMaKLV\n", PromptFormat::A3m), ElementsAre("MK-V", "MKLV"));
  for (const auto& [name, format] :
    { std::pair("a.jsonl", PromptFormat::JsonLines), std::pair("a.fasta", PromptFormat::Fasta),
      std::pair("a.fa", PromptFormat::Fasta), std::pair("A.FASTA", PromptFormat::Fasta),
      std::pair("a.A3M", PromptFormat::A3m), std::pair("a.a3m", PromptFormat::A3m),
      std::pair("a.txt", PromptFormat::Lines), std::pair("fasta", PromptFormat::Lines) })
  {
    EXPECT_EQ(FormatOfFile(name), format) << name;
  }
}

}
