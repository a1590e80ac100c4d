#include "TokenLabel.h"

#include <gtest/gtest.h>

using namespace atlas;

namespace
{

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
