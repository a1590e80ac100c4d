#include "Text/Internal/TiktokenFile.h"

#include "TokenizerOracle.h"

#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

namespace
{

void ExpectIds(const Tokenizer& tokenizer, const json& cases, bool addSpecialTokens)
{
  for (std::size_t i = 0; i < cases["texts"].size(); ++i)
  {
    const auto text = cases["texts"][i].get<std::string>();
    const auto ids = cases["ids"][i].get<Ids>();
    EXPECT_EQ(tokenizer.Encode(text, addSpecialTokens).ids, ids) << text;
    EXPECT_EQ(tokenizer.Decode(tokenizer.Encode(text, false).ids), text);
  }
}

std::vector<std::string> OracleRanks()
{
  return ParseTiktokenRanks(ReadFile(ModelsOracle("tokenizers/tiktoken/ranks.tiktoken")), "ranks");
}

}

TEST(TiktokenFile, IdsAreThoseOfAnIndependentComputation)
{
  const json cases = TokenizerOracle("tiktoken/cases.json");
  ASSERT_EQ(cases["ids"].size(), 12U);
  ExpectIds(MakeTiktokenTokenizer(OracleRanks(), {}, "ranks"), cases, false);
}

TEST(TiktokenFile, SpecialTokensFollowTheRanks)
{
  const Tokenizer tokenizer = MakeTiktokenTokenizer(OracleRanks(), { "<|a|>", "<|b|>" }, "ranks");
  EXPECT_THAT(tokenizer.Encode("<|b|>", true).ids, testing::ElementsAre(1000, 1001));
}

TEST(TiktokenFile, OtherNumbersOfRanksAreRefused)
{
  EXPECT_THAT(TokenizerFolder({ { "tokenizer.model", "IQ== 0\nIg== 1\n" } }).Refusal(),
    AllOf(HasSubstr("tokenizer.model: expected the 128000 ranks of Llama 3"),
      HasSubstr("a file of tiktoken with 2")));
}

TEST(TiktokenFile, BadLinesAreRefused)
{
  for (const char* text : { "IQ== 0\nIg== 2\n", "IQ== 0\nIg==\n", "IQ== 0\n\n", "IQ== 0\n!? 1",
         "IQ== 0\n 1\n", "IQ== 0\nIg== 1 x\n", "IQ== 0\nIg== -1\n" })
  {
    EXPECT_THAT(MessageOf<FormatError>([&] { ParseTiktokenRanks(text, "a"); }),
      HasSubstr("a: line 2: expected a token in Base64, a space and its rank, 1"))
      << text;
  }
  EXPECT_FALSE(LooksLikeTiktoken(""));
  EXPECT_FALSE(LooksLikeTiktoken("\x0a\x0e\x0a\x05<unk>"));
  EXPECT_THAT(
    MessageOf<FormatError>([] { MakeTiktokenTokenizer({ "a", "a" }, {}, "b"); }), HasSubstr("b"));
}

/// Meta's own file, which may not be passed on: with ATLAS_LLAMA3, a folder with tokenizer.model
/// and cases.json.
TEST(TiktokenFile, IdsOfLlama3)
{
  const char* folder = std::getenv("ATLAS_LLAMA3");
  if (folder == nullptr)
  {
    GTEST_SKIP() << "its files are not there";
  }
  const std::filesystem::path path = folder;
  ExpectIds(ReadTokenizer(path), ParseJson(ReadFile(path / "cases.json"), "cases.json"), true);
}
