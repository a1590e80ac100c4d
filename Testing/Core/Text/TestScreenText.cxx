#include "Text/ScreenText.h"

#include "Text/TokenLabel.h"

#include <gtest/gtest.h>

using namespace atlas;

namespace
{

TEST(ScreenText, FromLeftToRightIsUnchanged)
{
  for (const char* text : { "", "the [CLS]", "\u00B7caf\u00E9", "\u4F60\u597D", "\u0928\u092E" })
  {
    EXPECT_EQ(ScreenText(text), text);
  }
}

/// Hebrew: shalom, and a word in brackets. Letters in memory are in the order of reading.
TEST(ScreenText, FromRightToLeftIsReversed)
{
  EXPECT_EQ(ScreenText("\u05E9\u05DC\u05D5\u05DD"), "\u05DD\u05D5\u05DC\u05E9");
  EXPECT_EQ(ScreenText("\u00B7\u05D0\u05D1"), "\u05D1\u05D0\u00B7"); // the space is before it
  EXPECT_EQ(ScreenText("(\u05D0\u05D1)"), "(\u05D1\u05D0)");
  EXPECT_EQ(ScreenText("\u05D0 12"), "12 \u05D0"); // numbers run from left to right
}

/// Arabic: lam-alef is one letter, and others have the forms of their place (Unicode's chart FE70).
TEST(ScreenText, ArabicLettersJoin)
{
  // beh beh beh: final, medial, initial form from left to right
  EXPECT_EQ(ScreenText("\u0628\u0628\u0628"), "\uFE90\uFE92\uFE91");
  EXPECT_EQ(ScreenText("\u0628"), "\uFE8F");
  EXPECT_EQ(ScreenText("\u0644\u0627"), "\uFEFB");
}

TEST(ScreenText, LabelsAreNeverNothing)
{
  EXPECT_EQ(ScreenLabel(""), "''");
  EXPECT_EQ(ScreenLabel(" the\n"), "\u00B7the\\n");
  EXPECT_EQ(ScreenLabel("a\xFF"), "a\uFFFD");
  EXPECT_EQ(ScreenLabel(" \u05D0\u05D1"), "\u05D1\u05D0\u00B7");
}

TEST(TokenLabelText, TokensAreNeverNothing)
{
  EXPECT_EQ(TokenLabel("the"), "the");
  EXPECT_EQ(TokenLabel(" the end "), "\u00B7the end ");
  EXPECT_EQ(TokenLabel("  "), "\u00B7\u00B7");
  EXPECT_EQ(TokenLabel("\n\t\r\x01\x7F"), "\\n\\t\\r\\x01\\x7F");
  EXPECT_EQ(TokenLabel("caf\u00E9"), "caf\u00E9");
  EXPECT_EQ(TokenLabel(""), "''");
}

TEST(TokenLabelText, LeadingDotsAreSpaces)
{
  EXPECT_EQ(WithLeadingSpaces("\u00B7\u00B7the\u00B7end"), "  the\u00B7end");
  EXPECT_EQ(WithLeadingSpaces("\u00B7"), " ");
  EXPECT_EQ(WithLeadingSpaces("\xC2"), "\xC2");
  EXPECT_EQ(WithLeadingSpaces(""), "");
}

}
