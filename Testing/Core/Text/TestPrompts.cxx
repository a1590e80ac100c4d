#include "Prompts.h"

#include "Error.h"
#include "ErrorMessage.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::MessageOf;
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
  const auto refusal = [](const std::string& line)
  { return MessageOf<FormatError>([&] { Parse("\"a\"\n\n" + line, PromptFormat::JsonLines); }); };
  EXPECT_THAT(refusal("b"), HasSubstr("Prompts, line 3: the line is not JSON: "));
  EXPECT_EQ(refusal("5"), "Prompts, line 3: expected a JSON string or object, found 5.");
  EXPECT_EQ(refusal("[\"b\"]"), "Prompts, line 3: expected a JSON string or object, found array.");
  EXPECT_EQ(refusal("{\"messages\": []}"),
    "Prompts, line 3: expected a prompt as \"text\" or \"prompt\", found neither.");
  EXPECT_EQ(refusal("{\"text\": \"b\", \"prompt\": \"c\"}"),
    "Prompts, line 3: expected a prompt as \"text\" or \"prompt\", found both.");
  EXPECT_EQ(refusal("{\"text\": 5}"), "Prompts, line 3: expected a string as \"text\", found 5.");
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
  const auto refusal = [](const char* text)
  { return MessageOf<OptionError>([&] { ParseIntegerLines(text, "TokenIds"); }); };
  EXPECT_EQ(
    refusal("1\n2 x3\n"), "TokenIds: line 2: expected integers separated by spaces, found 'x3'.");
  for (const char* text : { "9223372036854775808", "1.5", "0x10", "+1", "1;2", "--1" })
  {
    EXPECT_NE(refusal(text), "") << text;
  }
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
  EXPECT_EQ(refusal([](Options& o) { o.length = 0; }), "Length: expected at least 1, found 0.");
  EXPECT_EQ(refusal([](Options& o) { o.count = -1; }), "Count: expected at least 1, found -1.");
  EXPECT_EQ(refusal([](Options& o) { o.block = 0; }), "Block: expected at least 1, found 0.");
  EXPECT_EQ(refusal([](Options& o) { o.firstId = -1; }),
    "IdRange: the first id: expected at least 0, found -1.");
  EXPECT_EQ(refusal(
              [](Options& o)
              {
                o.firstId = 9;
                o.lastId = 3;
              }),
    "IdRange: the last id: expected at least 9, found 3.");
}

}
