#include "Text/TextMatcher.h"

#include "Base/Error.h"
#include "ErrorMessage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::MessageOf;
using testing::HasSubstr;
using testing::StartsWith;

namespace
{

bool Finds(
  const std::string& text, TextMatch match, const std::string& token, bool caseSensitive = false)
{
  return TextMatcher(text, match, caseSensitive, "Text").Finds(token);
}

TEST(TextMatcher, FindsParts)
{
  EXPECT_TRUE(Finds("at", TextMatch::Contains, " attention"));
  EXPECT_TRUE(Finds("ATT", TextMatch::Contains, " attention"));
  EXPECT_FALSE(Finds("ATT", TextMatch::Contains, " attention", true));
  EXPECT_TRUE(Finds(" a", TextMatch::Contains, " attention"));
  EXPECT_TRUE(Finds("\u00B7a", TextMatch::Contains, " attention")); // as views show it
  EXPECT_TRUE(Finds("a", TextMatch::Contains, "\u00B7attention"));
  EXPECT_FALSE(Finds("ax", TextMatch::Contains, " attention"));
  EXPECT_FALSE(Finds("", TextMatch::Contains, " attention"));
}

TEST(TextMatcher, WholeTokensMayHaveASpace)
{
  for (const char* token : { "the", " the", "The", "\u00B7the", "the\n" })
  {
    EXPECT_TRUE(Finds("the", TextMatch::Whole, token)) << token;
  }
  EXPECT_FALSE(Finds("the", TextMatch::Whole, "then"));
  EXPECT_FALSE(Finds("the", TextMatch::Whole, "The", true));
  EXPECT_TRUE(Finds(" the", TextMatch::Whole, " the"));
  EXPECT_TRUE(Finds(" the", TextMatch::Whole, "\u00B7the"));
  EXPECT_FALSE(Finds(" the", TextMatch::Whole, "the"));
  EXPECT_TRUE(Finds(" ", TextMatch::Whole, " "));
  EXPECT_FALSE(Finds("", TextMatch::Whole, ""));
}

/// Letters whose other case is longer or encoded in another way.
TEST(TextMatcher, CaseIsThatOfUnicode)
{
  EXPECT_TRUE(Finds("STRASSE", TextMatch::Whole, "stra\u00DFe"));
  EXPECT_TRUE(Finds("\u03A3", TextMatch::Contains, "\u03BF\u03C2")); // a final sigma
  EXPECT_TRUE(Finds("\u00E9", TextMatch::Whole, "E\u0301"));
  EXPECT_TRUE(Finds("\u0416", TextMatch::RegularExpression, "\u0436"));
  EXPECT_FALSE(Finds("\u0416", TextMatch::RegularExpression, "\u0436", true));
}

TEST(TextMatcher, FindsByExpression)
{
  EXPECT_TRUE(Finds("^ ?th.s?$", TextMatch::RegularExpression, " the"));
  EXPECT_TRUE(Finds(R"(\d{2})", TextMatch::RegularExpression, "x12"));
  EXPECT_FALSE(Finds(R"(\d{3})", TextMatch::RegularExpression, "x12"));
  EXPECT_TRUE(Finds(R"(\p{Han})", TextMatch::RegularExpression, "\u4E2D"));
  EXPECT_FALSE(Finds("x*", TextMatch::RegularExpression, "abc")); // only the empty text matches
}

TEST(TextMatcher, BytesThatAreNoTextAreReplaced)
{
  EXPECT_TRUE(Finds("a", TextMatch::Contains,
    "\xFF"
    "a"));
  EXPECT_TRUE(Finds("\uFFFD", TextMatch::RegularExpression, "\xE4\xB8"));
}

TEST(TextMatcher, NamesBadExpressions)
{
  const auto message = [](const std::string& text, const std::string& token)
  { return MessageOf<OptionError>([&] { Finds(text, TextMatch::RegularExpression, token); }); };
  EXPECT_THAT(message("a(b", "ab"),
    testing::AllOf(StartsWith("Text: cannot understand the regular expression 'a(b': "),
      HasSubstr("parenthesis")));
  EXPECT_THAT(message("(a+)+$(?<=b)|((a?)*)*c", std::string(40, 'a') + "!"),
    HasSubstr("Text: cannot apply the regular expression"));
}

}
