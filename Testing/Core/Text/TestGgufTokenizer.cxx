#include "GgufTokenizer.h"

#include "Error.h"
#include "ErrorMessage.h"
#include "GgufBytes.h"
#include "JsonText.h"
#include "ModelsOracle.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::FloatBytes;
using atlas::test::GgufBytes;
using atlas::test::LittleEndian;
using atlas::test::MessageOf;
using atlas::test::ModelsOracle;
using atlas::test::TinyGguf;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

namespace
{

GgufContent Parse(const std::string& file)
{
  return ParseGguf(reinterpret_cast<const std::byte*>(file.data()), file.size(), "some.gguf");
}

Tokenizer Make(const GgufBytes& bytes)
{
  const std::string file = bytes.File();
  return MakeGgufTokenizer(Parse(file).metadata);
}

/// A file and the folder of the same tokenizer with what independent programs made of texts
/// (Testing/Oracle/models/README.md).
using Case = std::pair<const char*, const char*>;

class GgufTokenizerOracle : public testing::TestWithParam<Case>
{
};

INSTANTIATE_TEST_SUITE_P(, GgufTokenizerOracle,
  testing::Values(Case("llama-q8_0", "gguf-spm"), Case("qwen2-q8_0", "bytelevel-qwen2")),
  [](const auto& one) { return std::string(one.index == 0 ? "SentencePiece" : "BytePairs"); });

TEST_P(GgufTokenizerOracle, Ids)
{
  const auto& [name, folder] = GetParam();
  const std::filesystem::path path = ModelsOracle("files/gguf/" + std::string(name) + ".gguf");
  const std::filesystem::path cases =
    ModelsOracle("tokenizers/" + std::string(folder) + "/cases.json");
  if (path.empty() || cases.empty())
  {
    GTEST_SKIP() << "its files are not there";
  }
  const Tokenizer tokenizer = ReadGgufTokenizer(path);
  const nlohmann::json texts = ParseJson(ReadFile(cases), cases.string())["cases"];
  EXPECT_GE(texts.size(), 50U);
  for (const nlohmann::json& item : texts)
  {
    const auto text = item["text"].get<std::string>();
    EXPECT_EQ(tokenizer.Encode(text, false).ids, item["ids"].get<std::vector<std::int64_t>>())
      << text;
    EXPECT_EQ(
      tokenizer.Encode(text, true).ids, item["ids_with_special"].get<std::vector<std::int64_t>>())
      << text;
  }
}

TEST(GgufTokenizer, SpecialTokensAreAddedAsTheFileSays)
{
  EXPECT_THAT(Make(TinyGguf()).Encode("abc<|endoftext|>", true).ids, ElementsAre(3, 2, 4));
  GgufBytes framed = TinyGguf();
  framed.Add("tokenizer.ggml.add_bos_token", 7, "\1");
  framed.Add("tokenizer.ggml.add_eos_token", 7, "\1");
  framed.AddInteger("tokenizer.ggml.bos_token_id", 4);
  framed.AddInteger("tokenizer.ggml.eos_token_id", 4);
  EXPECT_THAT(Make(framed).Encode("c", true).ids, ElementsAre(4, 2, 4));
  EXPECT_THAT(Make(framed).Encode("c", false).ids, ElementsAre(2));
}

TEST(GgufTokenizer, PiecesMayDoWithoutThePrefixSpace)
{
  GgufBytes bytes;
  bytes.AddText("tokenizer.ggml.model", "llama");
  bytes.AddTexts("tokenizer.ggml.tokens", { "<unk>", "<s>", "</s>", "a", "b", "ab" });
  std::string types;
  for (const std::uint64_t type : { 2U, 3U, 3U, 1U, 1U, 1U })
  {
    types += LittleEndian(type, 4);
  }
  bytes.AddArray("tokenizer.ggml.token_type", 5, 6, types);
  bytes.AddArray("tokenizer.ggml.scores", 6, 6, FloatBytes({ 0, 0, 0, -2, -3, -1 }));
  EXPECT_THAT(Make(bytes).Encode("ab", true).ids, ElementsAre(1, 0, 5));
  bytes.Add("tokenizer.ggml.add_space_prefix", 7, std::string(1, '\0'));
  EXPECT_THAT(Make(bytes).Encode("ab", true).ids, ElementsAre(1, 5));
}

TEST(GgufTokenizer, OtherKindsAreRefusedByName)
{
  const auto refusal = [](const GgufBytes& bytes)
  { return MessageOf<FormatError>([&] { Make(bytes); }); };
  GgufBytes bytes;
  EXPECT_EQ(
    refusal(bytes), "some.gguf: the metadata 'tokenizer.ggml.model': expected a text, found none.");
  bytes.AddText("tokenizer.ggml.model", "bert");
  EXPECT_THAT(
    refusal(bytes), AllOf(StartsWith("some.gguf: the metadata 'tokenizer.ggml.model': "),
                      HasSubstr("expected a tokenizer of the kind llama or gpt2, found 'bert'")));
  GgufBytes split;
  split.AddText("tokenizer.ggml.model", "gpt2");
  split.AddText("tokenizer.ggml.pre", "nothing-like-it");
  split.AddTexts("tokenizer.ggml.tokens", { "a" });
  EXPECT_THAT(refusal(split), HasSubstr("'tokenizer.ggml.merges'"));
  split.AddTexts("tokenizer.ggml.merges", {});
  EXPECT_THAT(refusal(split), HasSubstr("'nothing-like-it'"));
  GgufBytes begin = TinyGguf();
  begin.Add("tokenizer.ggml.add_bos_token", 7, "\1");
  EXPECT_THAT(refusal(begin), HasSubstr("'tokenizer.ggml.bos_token_id'"));
}

}
