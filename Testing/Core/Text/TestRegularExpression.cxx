#include "Text/Internal/RegularExpression.h"

#include "Base/Error.h"
#include "ErrorMessage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::MessageOf;
using namespace testing;

namespace
{

std::vector<std::string> Words(const std::string& pattern, const std::string& text)
{
  std::vector<std::string> words;
  for (const TextSpan& span : RegularExpression(pattern, "tokenizer.json").Matches(text))
  {
    words.push_back(text.substr(span.begin, span.end - span.begin));
  }
  return words;
}

TEST(RegularExpression, FindsMatchesInOrder)
{
  EXPECT_THAT(
    Words(R"(\p{L}+|\p{N}{1,3})", "ab 12345\u00E9!"), ElementsAre("ab", "123", "45", "\u00E9"));
  EXPECT_THAT(Words("a*", "baab"), ElementsAre("aa")); // not the empty ones
  EXPECT_THAT(Words("x", "abc"), IsEmpty());
  EXPECT_THAT(Words(R"(\s+(?!\S)|\s+)", "a   b "), ElementsAre("  ", " ", " "));
}

TEST(RegularExpression, MayIgnoreCase)
{
  const RegularExpression expression("[a-c]+\u00E9", "Text", LetterCase::Ignored);
  EXPECT_EQ(expression.Matches("xAbC\u00C9").size(), 1U);
  EXPECT_THAT(RegularExpression("abc", "Text").Matches("ABC"), IsEmpty());
}

TEST(RegularExpression, WhiteSpaceIsUnicodes)
{
  EXPECT_THAT(Words(R"(\S+)", "a\u00A0b\u3000c\u0085d"), ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(Words(R"([\s])", "\u2028"), ElementsAre("\u2028"));
}

TEST(RegularExpression, ClassesMayHoldClasses)
{
  EXPECT_THAT(Words("[a[bc][d[e]]]+", "abcdefa"), ElementsAre("abcde", "a"));
  EXPECT_THAT(Words("[^a[bc]]+", "xaybzc"), ElementsAre("x", "y", "z"));
  EXPECT_THAT(Words("[]a]+", "a]b"), ElementsAre("a]"));
  EXPECT_THAT(Words("[[:digit:]x]+", "1x2y"), ElementsAre("1x2"));
  EXPECT_THAT(Words(R"([\]\[]+)", "a[]"), ElementsAre("[]"));
}

TEST(RegularExpression, WhatHasNoTranslationIsRefused)
{
  for (const char* pattern : { R"(\h)", R"(\H+)", R"([a\h])" })
  {
    EXPECT_THAT(MessageOf<FormatError>([&] { RegularExpression(pattern, "tokenizer.json"); }),
      testing::AllOf(StartsWith("tokenizer.json: the regular expression '"),
        HasSubstr("which is not supported")))
      << pattern;
  }
}

TEST(RegularExpression, WhatIsNotUnderstoodIsRefused)
{
  for (const char* pattern : { "(", "[a", "a{2,1}", R"(\p{Nonsense})", "*", R"(\C)" })
  {
    EXPECT_THAT(MessageOf<FormatError>([&] { RegularExpression(pattern, "tokenizer.json"); }),
      StartsWith(
        "tokenizer.json: cannot understand the regular expression '" + std::string(pattern) + "'"))
      << pattern;
  }
}

TEST(RegularExpression, EndlessSearchesEnd)
{
  const RegularExpression slow("(a+)+$", "tokenizer.json");
  EXPECT_THAT(MessageOf<FormatError>([&] { slow.Matches(std::string(40, 'a') + "b"); }),
    StartsWith("tokenizer.json: cannot apply the regular expression '(a+)+$' to a text of 41"));
}

TEST(RegularExpression, MatchesMayNotMoveTheirBegin)
{
  EXPECT_THAT(
    MessageOf<FormatError>([] { Words(R"((?=(b\K))a|b)", "ab"); }), StartsWith("tokenizer.json"));
}

}
