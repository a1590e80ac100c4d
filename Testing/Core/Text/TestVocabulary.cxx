#include "Text/Internal/Vocabulary.h"

#include "Base/Error.h"
#include "ErrorMessage.h"

#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::MessageOf;

namespace
{

TEST(Vocabulary, KnowsTokensAndIds)
{
  Vocabulary vocabulary;
  EXPECT_EQ(vocabulary.Size(), 0);
  vocabulary.Add("a", 5, "file");
  vocabulary.Add("long token", 0, "file");
  vocabulary.Add("", 2, "file");
  EXPECT_EQ(vocabulary.IdOf("a"), 5);
  EXPECT_EQ(vocabulary.IdOf(""), 2);
  EXPECT_EQ(vocabulary.IdOf("b"), std::nullopt);
  ASSERT_NE(vocabulary.TokenOf(0), nullptr);
  EXPECT_EQ(*vocabulary.TokenOf(0), "long token");
  EXPECT_EQ(vocabulary.TokenOf(1), nullptr);
  EXPECT_EQ(vocabulary.TokenOf(-1), nullptr);
  EXPECT_EQ(vocabulary.Size(), 6) << "ids may have gaps";
  EXPECT_EQ(vocabulary.LongestToken(), 10U);
}

TEST(Vocabulary, TheSameTokenMayComeAgain)
{
  Vocabulary vocabulary;
  vocabulary.Add("a", 5, "file");
  vocabulary.Add("a", 5, "file");
  EXPECT_EQ(vocabulary.Size(), 6);
}

TEST(Vocabulary, ContradictionsAreRefused)
{
  Vocabulary vocabulary;
  vocabulary.Add("a", 5, "file");
  const auto refusal = [&](const char* token, std::int64_t id)
  { return MessageOf<FormatError>([&] { vocabulary.Add(token, id, "file"); }); };
  EXPECT_EQ(refusal("a", 6), "file: token 'a': expected one id, found 5 and 6.");
  EXPECT_EQ(refusal("b", 5), "file: token 'b': the id 5 belongs to token 'a' already.");
  EXPECT_EQ(refusal("b", -1), "file: token 'b': expected an id from 0 to 2147483647, found -1.");
  EXPECT_EQ(refusal("b", 2147483648LL),
    "file: token 'b': expected an id from 0 to 2147483647, found 2147483648.");
  EXPECT_EQ(vocabulary.IdOf("b"), std::nullopt);
  EXPECT_NO_THROW(vocabulary.Add("b", 2147483647, "file"));
}

}
