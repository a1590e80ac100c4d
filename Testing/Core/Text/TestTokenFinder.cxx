#include "Text/TokenFinder.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "TemporaryDirectory.h"
#include "Text/TokenizerFile.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

constexpr std::int64_t Gpt2Vocabulary = 50257;

/// The tokens of GPT-2, whose ids are those of its published vocabulary.
class OfGpt2 : public testing::Test
{
protected:
  static Tokenizer Read()
  {
    const std::filesystem::path folder =
      std::filesystem::path(ATLAS_ORACLE_DIR) / "transformers/tokenizers";
    return ParseBytePairTokenizer(ReadBytes(folder / "gpt2-vocab.json"), "vocab.json",
      ReadBytes(folder / "gpt2-merges.txt"), "merges.txt");
  }

  Tokenizer Words = Read();
  TokenFinder Finder{ &this->Words, Gpt2Vocabulary };

  std::int32_t Find(const std::string& entry) const { return this->Finder.Find(entry, "Tokens"); }
};

TEST_F(OfGpt2, FindsTexts)
{
  EXPECT_EQ(this->Find("the"), 1169);
  EXPECT_EQ(this->Find(" the"), 262);
  EXPECT_EQ(this->Find("\u00B7the"), 262); // as views show it
  EXPECT_EQ(this->Find("!"), 0);
  EXPECT_EQ(this->Find("<|endoftext|>"), 50256);
}

TEST_F(OfGpt2, AddsALeadingSpaceWhereNeeded)
{
  ASSERT_FALSE(this->Words.IdOf("Zimbabwe"));
  EXPECT_EQ(this->Find("Zimbabwe"), this->Words.IdOf("\u0120Zimbabwe"));
}

TEST_F(OfGpt2, FindsWhatIsDisplayedOrSpelled)
{
  EXPECT_EQ(this->Find("\\n"), 198);
  EXPECT_EQ(this->Find("\n"), 198);
  EXPECT_EQ(this->Find("\u0120the"), 262); // as vocab.json has it
  EXPECT_EQ(this->Find("\u00B7"), 220);    // a space alone
}

TEST_F(OfGpt2, FindsIds)
{
  EXPECT_EQ(this->Find("#262"), 262);
  EXPECT_EQ(this->Find("#0"), 0);
  EXPECT_EQ(this->Find("7"), 22);        // a token that is a digit
  EXPECT_EQ(this->Find("50256"), 50256); // no token has this text
  EXPECT_EQ(this->Find("#"), 2);
}

TEST_F(OfGpt2, FindsSeveral)
{
  EXPECT_THAT(this->Finder.FindAll({ "the", "", " the\n\n#5", "#262, #0", "\n" }, "Tokens"),
    ElementsAre(1169, 262, 5, 262, 0, 198));
  EXPECT_THAT(this->Finder.FindAll({}, "Tokens"), IsEmpty());
}

TEST_F(OfGpt2, NamesTheNearest)
{
  EXPECT_THAT(MessageOf<OptionError>([&] { this->Find("Zimbabve"); }),
    StartsWith("Tokens: expected a token of the vocabulary or #id, found 'Zimbabve'; the nearest "
               "tokens are '\u00B7Zimbabwe' (#"));
  EXPECT_EQ(
    this->Finder.Nearest("\u00B7theirr", 1), (std::vector<std::int32_t>{ 511 })); // " their"
  // Case and leading spaces count less than letters.
  EXPECT_THAT(this->Finder.Nearest("ZIMBABVE", 1), ElementsAre(this->Find("Zimbabwe")));
}

TEST_F(OfGpt2, RefusesIdsBeyondTheVocabulary)
{
  for (const char* entry : { "#50257", "#-1", "#99999999999", "50257" })
  {
    EXPECT_THAT(MessageOf<OptionError>([&] { this->Find(entry); }),
      StartsWith("Tokens: expected an id from 0 to 50256, found "))
      << entry;
  }
}

TEST_F(OfGpt2, RefusesTextsOfSeveralTokens)
{
  EXPECT_THAT(MessageOf<OptionError>([&] { this->Find("\uFFFD"); }),
    AllOf(HasSubstr("expected a text of one token"), HasSubstr("and others; give the id.")));
}

TEST(TokenFinder, WithoutATokenizerFindsIds)
{
  const TokenFinder finder(nullptr, 100);
  EXPECT_EQ(finder.Find("17", "Tokens"), 17);
  EXPECT_EQ(finder.Find("#17", "Tokens"), 17);
  EXPECT_THAT(finder.FindAll({ "3 5,7", "9" }, "Tokens"), ElementsAre(3, 5, 7, 9));
  EXPECT_EQ(MessageOf<OptionError>([&] { finder.Find("the", "Target"); }),
    "Target: expected an id from 0 to 99, as the model has no tokenizer, found 'the'.");
  EXPECT_EQ(MessageOf<OptionError>([&] { finder.Find("100", "Target"); }),
    "Target: expected an id from 0 to 99, found 100.");
}

}
