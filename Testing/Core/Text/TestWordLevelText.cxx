#include "Text/WordLevelText.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "Text/TokenizerFile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

using namespace atlas;
using atlas::test::MessageOf;
using namespace testing;

namespace
{

Tokenizer Numbers()
{
  return ParseTokenizer(WordLevelText({ "0", "1", "12", "=" }), "numbers");
}

TEST(WordLevelText, EachWordIsAToken)
{
  const Tokenizer numbers = Numbers();
  const Encoding encoding = numbers.Encode(" 12  0 =\n1", true);
  EXPECT_THAT(encoding.ids, ElementsAre(2, 0, 3, 1));
  EXPECT_THAT(encoding.tokens, ElementsAre("12", "0", "=", "1"));
  EXPECT_EQ(numbers.Decode(encoding.ids), "12 0 = 1");
  EXPECT_EQ(numbers.Kind(), "WordLevel");
  EXPECT_EQ(numbers.VocabularySize(), 4);
  EXPECT_FALSE(numbers.HasSegments());
  EXPECT_THAT(numbers.Encode("", true).ids, ElementsAre());
}

TEST(WordLevelText, AnUnknownWordIsNamed)
{
  EXPECT_THAT(MessageOf<FormatError>([] { Numbers().Encode("1 121 =", true); }),
    AllOf(StartsWith("numbers: "), HasSubstr("no word '121'")));
}

TEST(WordLevelText, AnUnknownWordMayHaveAToken)
{
  auto json = nlohmann::json::parse(WordLevelText({ "0", "?", "=" }));
  json["model"]["unk_token"] = "?";
  EXPECT_THAT(
    ParseTokenizer(json.dump(), "numbers").Encode("0 x =", true).ids, ElementsAre(0, 1, 2));
}

TEST(WordLevelText, WordsAreWithoutWhiteSpaceAndDiffer)
{
  for (const char* word : { "", "a b", "\u00a0" })
  {
    EXPECT_THAT(MessageOf<OptionError>([&] { WordLevelText({ word }); }),
      HasSubstr("expected characters without white space"));
  }
  EXPECT_THAT(MessageOf<OptionError>([] { WordLevelText({ "a", "b", "a" }); }),
    HasSubstr("expected each once, found 'a' twice"));
}

}
