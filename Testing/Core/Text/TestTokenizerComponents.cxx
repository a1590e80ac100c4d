#include "Text/UnicodeText.h"
#include "TokenizerOracle.h"

#include <functional>
#include <set>
#include <sstream>
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

/// Encodes each text; null stands for a text that the original refuses.
void ExpectIds(const Tokenizer& tokenizer, const json& texts, const json& ids)
{
  ASSERT_EQ(texts.size(), ids.size());
  for (std::size_t i = 0; i < texts.size(); ++i)
  {
    const auto text = texts[i].get<std::string>();
    if (ids[i].is_null())
    {
      EXPECT_THAT(MessageOf<FormatError>([&] { tokenizer.Encode(text, false); }),
        AllOf(HasSubstr("and no token"), HasSubstr("for unknown words.")))
        << text;
      continue;
    }
    EXPECT_EQ(tokenizer.Encode(text, false).ids, ids[i].get<Ids>()) << text;
  }
}

/// "41-5A 61" in hexadecimal.
std::set<char32_t> CodePoints(const json& ranges)
{
  std::set<char32_t> result;
  std::istringstream text(ranges.get<std::string>());
  for (std::string range; text >> range;)
  {
    const std::size_t dash = range.find('-');
    const unsigned long first = std::stoul(range.substr(0, dash), nullptr, 16);
    const unsigned long last =
      dash == std::string::npos ? first : std::stoul(range.substr(dash + 1), nullptr, 16);
    for (unsigned long c = first; c <= last; ++c)
    {
      result.insert(static_cast<char32_t>(c));
    }
  }
  return result;
}

/// The characters of all Unicode for which a function differs from a list.
std::vector<std::string> Differences(const std::function<bool(char32_t)>& isOfClass,
  const json& listed, const std::set<char32_t>& leftOut = {})
{
  constexpr char32_t end = 0x110000;
  const std::set<char32_t> expected = CodePoints(listed);
  EXPECT_GT(expected.size(), 100U);
  std::vector<std::string> different;
  for (char32_t c = 1; c < end; ++c)
  {
    const bool isCharacter = c < 0xD800 || c > 0xDFFF;
    if (isCharacter && leftOut.count(c) == 0 && isOfClass(c) != (expected.count(c) > 0))
    {
      std::ostringstream name;
      name << std::hex << static_cast<std::uint32_t>(c);
      different.push_back(name.str());
    }
  }
  return different;
}

}

TEST(TokenizerComponents, IdsAreThoseOfTheOriginal)
{
  const json oracle = TokenizerOracle("components/cases.json");
  ASSERT_EQ(oracle["components"].size(), 20U);
  for (const json& component : oracle["components"])
  {
    SCOPED_TRACE(component["name"]);
    const json file = { { "model", oracle["model"] }, { "normalizer", component["normalizer"] },
      { "pre_tokenizer", component["pre_tokenizer"] } };
    ExpectIds(ParseTokenizer(file.dump(), "tokenizer.json"), oracle["texts"], component["ids"]);
  }
}

TEST(TokenizerComponents, FilesAreReadAsByTheOriginal)
{
  const json oracle = TokenizerOracle("components/cases.json");
  ASSERT_EQ(oracle["tokenizers"].size(), 16U);
  for (const json& file : oracle["tokenizers"])
  {
    SCOPED_TRACE(file["name"]);
    ExpectIds(
      ParseTokenizer(file["tokenizer"].dump(), "tokenizer.json"), file["texts"], file["ids"]);
  }
}

TEST(TokenizerComponents, ClassesOfCharactersAreThoseOfTheOriginal)
{
  const json oracle = TokenizerOracle("components/characters.json");
  EXPECT_THAT(Differences(IsMark, oracle["StripAccents"]), testing::IsEmpty());
  EXPECT_THAT(
    Differences(IsNonspacingMark, oracle["BertNormalizer.strip_accents"]), testing::IsEmpty());
  EXPECT_THAT(
    Differences(IsChinese, oracle["BertNormalizer.handle_chinese_chars"]), testing::IsEmpty());
  EXPECT_THAT(Differences(IsPunctuation, oracle["Punctuation"]), testing::IsEmpty());
}

TEST(TokenizerComponents, WordsHaveTheCharactersOfTheOriginal)
{
  const json oracle = TokenizerOracle("components/characters.json");
  const std::set<char32_t> later = CodePoints(oracle["later"]);
  EXPECT_THAT(Differences(IsWordCharacter, oracle["Whitespace"], later), testing::IsEmpty());
}
