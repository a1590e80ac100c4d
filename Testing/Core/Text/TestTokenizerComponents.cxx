#include "Text/UnicodeText.h"
#include "TokenizerOracle.h"

#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
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

/// The expected texts are those of Hugging Face's library, release 0.23.3: clusters of characters
/// are replaced by the shortest entry that they begin with.
TEST(TokenizerComponents, PrecompiledReplacesClusters)
{
  const Tokenizer tokenizer =
    ParseTokenizer(TokenizerOracle("spm-xlmr/tokenizer.json").dump(), "tokenizer.json");
  for (const auto& [text, ids] :
    std::vector<std::pair<std::string, Ids>>{ { "e\u0302\u0301", { 4, 632 } }, // becomes U+00EA
      { "\u1ebf", { 4, 701 } },                                                // stays
      { "\uff76\uff9e", { 4, 561, 3 } },                                       // U+30AB U+3099
      { "\u1100\u1161", { 4, 3 } },                                            // stays
      { "\ufb01\u0301", { 66, 13 } }, // fi, without the accent
      { "a\r\nb", { 31, 103 } },      // one space
      { "\u2460\u20dd", { 163, 3 } }, // six bytes: each character on its own
      { "\u1112\u1161\u11ab", { 4, 3 } }, { "\u0915\u094d\u0937", { 4, 538, 540, 3 } },
      { "\U0001f468\u200d\U0001f469", { 4, 3, 773, 770 } } })
  {
    EXPECT_EQ(tokenizer.Encode(text, false).ids, ids) << text;
  }
}

/// The expected tokens are those of Hugging Face's library, release 0.23.3: U+2581 is added where
/// the first character of the text is that of what is left of it.
TEST(TokenizerComponents, TheMarkIsWhereTheOriginalTextBegins)
{
  const std::vector<std::string> tokens = { "\u2581", "w", "o", "r", "l", "d", "wor", "ld", "or",
    "\u2581wor" };
  const auto ids = [&](const json& normalizer, const std::string& text)
  {
    const json file = { { "normalizer", normalizer },
      { "pre_tokenizer", { { "type", "Metaspace" }, { "replacement", "\u2581" },
                           { "prepend_scheme", "first" }, { "split", true } } },
      { "model", { { "type", "BPE" }, { "vocab", VocabularyOf(tokens) },
                   { "merges", { "o r", "w or", "l d", "\u2581 wor" } } } } };
    return ParseTokenizer(file.dump(), "tokenizer.json").Encode(text, false).ids;
  };
  const auto sequence = [](const json& first, const json& second)
  { return json{ { "type", "Sequence" }, { "normalizers", { first, second } } }; };
  const auto strip = [](bool left, bool right)
  { return json{ { "type", "Strip" }, { "strip_left", left }, { "strip_right", right } }; };
  const auto replace = [](const char* with)
  {
    return json{ { "type", "Replace" }, { "pattern", { { "String", "x" } } }, { "content", with } };
  };
  const json marks = sequence({ { "type", "NFD" } }, { { "type", "StripAccents" } });
  const Ids marked = { 9, 7 };
  const Ids plain = { 6, 7 };
  EXPECT_EQ(ids(strip(true, true), " world"), plain);
  EXPECT_EQ(ids(strip(true, true), "world"), marked);
  EXPECT_EQ(ids(strip(true, true), "  wor ld "), (Ids{ 6, 0, 7 }));
  EXPECT_EQ(ids(strip(false, true), " world "), marked);
  EXPECT_EQ(ids(strip(false, true), "world "), marked);
  EXPECT_EQ(ids(marks, "\u0301world"), plain);
  EXPECT_EQ(ids(marks, "wor\u0301ld"), marked);
  EXPECT_EQ(ids(replace(""), "xworld"), plain);
  EXPECT_EQ(ids(replace(""), "worxld"), marked);
  EXPECT_EQ(ids({ { "type", "Prepend" }, { "prepend", "w" } }, "orld"), marked);
  EXPECT_EQ(ids({ { "type", "Lowercase" } }, "World"), marked);
  EXPECT_EQ(ids({ { "type", "Nmt" } }, "\u0001world"), plain);
  EXPECT_EQ(ids(sequence(replace(" "), strip(true, false)), "xworld"), plain);
  EXPECT_EQ(ids(sequence(replace(" "), strip(true, false)), "world"), marked);
}

/// Two frames would be one in the other, which is not read.
TEST(TokenizerComponents, OneFrameIsEnough)
{
  const auto read = [](const std::vector<json>& processors)
  {
    const json file = { { "model",
                          { { "type", "BPE" }, { "vocab", VocabularyOf({ "a", "<s>", "</s>" }) },
                            { "merges", json::array() } } },
      { "post_processor", { { "type", "Sequence" }, { "processors", processors } } } };
    return ParseTokenizer(file.dump(), "tokenizer.json").Encode("a", true).ids;
  };
  const json bert = { { "type", "BertProcessing" }, { "cls", { "<s>", 1 } },
    { "sep", { "</s>", 2 } } };
  const json bytes = { { "type", "ByteLevel" }, { "add_prefix_space", true },
    { "trim_offsets", true }, { "use_regex", true } };
  const json text = { { { "Sequence", { { "id", "A" }, { "type_id", 0 } } } } };
  const json plain = { { "type", "TemplateProcessing" }, { "single", text }, { "pair", text },
    { "special_tokens", json::object() } };
  EXPECT_EQ(read({ bytes, bert }), (Ids{ 1, 0, 2 }));
  EXPECT_THAT(MessageOf<FormatError>([&] { read({ bert, plain }); }),
    HasSubstr("post_processor.processors[1]: expected a single post-processor that adds tokens, "
              "found a second one of the type TemplateProcessing."));
}
