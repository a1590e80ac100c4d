#include "Text/UnicodeText.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;

namespace
{

TEST(UnicodeText, InvalidPartsAreReplacedAsTheStandardDoes)
{
  // Tables 3-8 and 3-11 of the Unicode standard, "U+FFFD substitution of maximal subparts".
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(ReplaceInvalidUtf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
    bad + bad + bad + bad + bad + bad + bad + bad + "A");
  EXPECT_EQ(
    ReplaceInvalidUtf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), bad + bad + bad + bad + "A");
  EXPECT_EQ(ReplaceInvalidUtf8("a\xC3\xA9"), "a\xC3\xA9");
  EXPECT_EQ(ReplaceInvalidUtf8(""), "");
}

TEST(UnicodeText, NormalizationForms)
{
  // Figures 3 to 6 of Unicode Standard Annex 15.
  const std::string composed = "\u1E69"; // s with a dot below and a dot above
  const std::string decomposed = "s\u0323\u0307";
  EXPECT_EQ(Normalize(NormalizationForm::NFD, composed), decomposed);
  EXPECT_EQ(Normalize(NormalizationForm::NFC, "\u1E0B\u0323"), "\u1E0D\u0307");
  EXPECT_EQ(Normalize(NormalizationForm::NFC, decomposed), composed);
  const std::string ligature = "\uFB01"; // fi
  EXPECT_EQ(Normalize(NormalizationForm::NFC, ligature), ligature);
  EXPECT_EQ(Normalize(NormalizationForm::NFKC, ligature), "fi");
  EXPECT_EQ(Normalize(NormalizationForm::NFKD, "2\u2075"), "25");
  EXPECT_EQ(Normalize(NormalizationForm::NFKD, "\u1E9B\u0323"), decomposed);
  EXPECT_EQ(Normalize(NormalizationForm::NFC, "\u212B"), "\u00C5"); // the sign of Angstrom
}

TEST(UnicodeText, CapitalsBecomeSmallOneByOne)
{
  EXPECT_EQ(ToLower("ABC xyz 1"), "abc xyz 1");
  EXPECT_EQ(ToLower("\u00C4\u0416\u0394"), "\u00E4\u0436\u03B4");
  EXPECT_EQ(ToLower("\u03A3\u03A3"), "\u03C3\u03C3"); // no final sigma
}

/// Full folding of CaseFolding.txt, then NFC.
TEST(UnicodeText, FoldingMakesCasesEqual)
{
  EXPECT_EQ(FoldCase("ABC xyz 1"), "abc xyz 1");
  EXPECT_EQ(FoldCase("Stra\u00DFe"), "strasse");
  EXPECT_EQ(FoldCase("\u03A3\u03C2"), "\u03C3\u03C3"); // the final sigma as any
  EXPECT_EQ(FoldCase("E\u0301"), "\u00E9");
  EXPECT_EQ(FoldCase("\uFB01"), "fi");
}

TEST(UnicodeText, CharactersHaveCategories)
{
  EXPECT_TRUE(IsWhitespace(U' ') && IsWhitespace(U'\u00A0') && IsWhitespace(U'\u3000'));
  EXPECT_FALSE(IsWhitespace(U'\u200B')); // a zero-width space is a format character
  EXPECT_TRUE(IsPunctuation(U'$') && IsPunctuation(U'~') && IsPunctuation(U'\u00BF'));
  EXPECT_FALSE(IsPunctuation(U'a') || IsPunctuation(U'\u20AC')); // a currency sign is a symbol
  EXPECT_TRUE(IsNonspacingMark(U'\u0301'));
  EXPECT_FALSE(IsNonspacingMark(U'\u0903')); // a spacing mark
  EXPECT_TRUE(IsOther(U'\u0007') && IsOther(U'\u200B') && IsOther(U'\uE000'));
  EXPECT_FALSE(IsOther(U'\uFFFF')); // not assigned
  EXPECT_FALSE(IsOther(U' '));
  EXPECT_TRUE(IsWordCharacter(U'_') && IsWordCharacter(U'\u00E9') && IsWordCharacter(U'7'));
  EXPECT_FALSE(IsWordCharacter(U'-') || IsWordCharacter(U' '));
  EXPECT_TRUE(IsChinese(U'\u4E00') && IsChinese(U'\U00020000'));
  EXPECT_FALSE(IsChinese(U'\u3042') || IsChinese(U'\uAC00')); // Hiragana and Hangul
}

}

/// The clusters of Unicode's annex 29.
TEST(UnicodeText, ClustersAreWhatReadersSee)
{
  const auto ends = [](const char* text) { return ClusterEnds(text); };
  using testing::ElementsAre;
  EXPECT_THAT(ends(""), ElementsAre());
  EXPECT_THAT(ends("a\r\nb\r"), ElementsAre(1, 3, 4, 5));
  EXPECT_THAT(ends("e\u0301\r\n"), ElementsAre(3, 5));
  EXPECT_THAT(ends("\u1112\u1161\u11abx"), ElementsAre(9, 10));
}
