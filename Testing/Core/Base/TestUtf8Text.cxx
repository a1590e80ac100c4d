#include "Base/Utf8Text.h"

#include "Base/Error.h"
#include "ErrorMessage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::MessageOf;
using testing::ElementsAre;
using testing::IsEmpty;

namespace
{

// A character of each length, by the table of the Unicode standard (3-6).
constexpr const char* FourLengths = "$\xC2\xA3\xE2\x82\xAC\xF0\x90\x8D\x88";

TEST(Utf8Text, CharactersAreRead)
{
  const std::string text = FourLengths;
  std::size_t position = 0;
  std::vector<char32_t> characters;
  std::vector<std::size_t> positions;
  while (position < text.size())
  {
    characters.push_back(NextCharacter(text, position));
    positions.push_back(position);
  }
  EXPECT_THAT(characters, ElementsAre(U'$', U'\u00A3', U'\u20AC', U'\U00010348'));
  EXPECT_THAT(positions, ElementsAre(1U, 3U, 6U, 10U));
  EXPECT_EQ(CharacterCount(text), 4U);
}

TEST(Utf8Text, CharactersAreAppended)
{
  std::string text;
  for (const char32_t c : { U'$', U'\u00A3', U'\u20AC', U'\U00010348' })
  {
    Append(text, c);
  }
  EXPECT_EQ(text, FourLengths);
  text.clear();
  for (const char32_t c : { U'\u007F', U'\u0080', U'\u07FF', U'\u0800' }) // where lengths change
  {
    Append(text, c);
  }
  EXPECT_EQ(text, "\x7F\xC2\x80\xDF\xBF\xE0\xA0\x80");
}

TEST(Utf8Text, EndsOfLinesAreOfBothKinds)
{
  EXPECT_THAT(SplitLines(""), IsEmpty());
  EXPECT_THAT(SplitLines("a"), ElementsAre("a"));
  EXPECT_THAT(SplitLines("a\n"), ElementsAre("a"));
  EXPECT_THAT(SplitLines("\n"), ElementsAre(""));
  EXPECT_THAT(SplitLines("a\r\n\r\nb\n\n c"), ElementsAre("a", "", "b", "", " c"));
  EXPECT_THAT(SplitLines("a\rb"), ElementsAre("a\rb"));
}

TEST(Utf8Text, AsciiIsBelow128)
{
  EXPECT_TRUE(IsAscii(""));
  EXPECT_TRUE(IsAscii(std::string("\0\x7F", 2)));
  EXPECT_FALSE(IsAscii("a\xC2\x80"));
}

TEST(Utf8Text, EditDistanceCountsCharacters)
{
  EXPECT_EQ(EditDistance(U"", U""), 0U);
  EXPECT_EQ(EditDistance(U"", U"abc"), 3U);
  EXPECT_EQ(EditDistance(U"kitten", U"sitting"), 3U); // s for k, i for e, g at the end
  EXPECT_EQ(EditDistance(U"flaw", U"lawn"), 2U);
  EXPECT_EQ(EditDistance(U"\u00e9t\u00e9", U"et\u00e9"), 1U);
}

TEST(Utf8Text, TheFirstBadByteIsNamed)
{
  EXPECT_NO_THROW(RequireUtf8(FourLengths, "file"));
  EXPECT_NO_THROW(RequireUtf8("", "file"));
  const auto refusal = [](const std::string& text)
  { return MessageOf<FormatError>([&] { RequireUtf8(text, "file"); }); };
  EXPECT_EQ(refusal("ab\xFF"), "file: expected UTF-8, found the byte 0xff at position 2.");
  EXPECT_EQ(refusal("\x80"), "file: expected UTF-8, found the byte 0x80 at position 0.");
  for (const char* bad : { "\xC0\x80", "\xE0\x80\x80", // overlong forms of U+0000
         "\xED\xA0\x80",                               // a surrogate
         "\xF4\x90\x80\x80",                           // beyond U+10FFFF
         "\xE2\x82", "\xF0\x9F\x98" })                 // cut off
  {
    EXPECT_THROW(RequireUtf8(bad, "file"), FormatError);
  }
}

}
