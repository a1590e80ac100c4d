#include "Text/GgufTokenizer.h"

#include "Base/Error.h"
#include "GgufBytes.h"
#include "Refusals.h"
#include "Text/SentencePieceFile.h"
#include "Text/TokenTables.h"
#include "TokenizerOracle.h"

#include <cstdint>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

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

/// Integers of 32 bits.
template<class Numbers>
void AddIntegers(GgufBytes& bytes, const std::string& key, const Numbers& numbers)
{
  std::string packed;
  for (const auto number : numbers)
  {
    packed += LittleEndian(static_cast<std::uint64_t>(number), 4);
  }
  bytes.AddArray(key, 5, numbers.size(), packed);
}

/// The ids of a case by SentencePiece or, where the text spells control tokens, by Hugging Face's
/// library.
const nlohmann::json& ExpectedIds(const nlohmann::json& item, const char* ids)
{
  return item.contains("ids_gguf") ? item["ids_gguf"] : item[ids];
}

TEST(GgufTokenizer, IdsAreThoseOfTheOriginal)
{
  for (const auto& [name, folder] :
    { Case("llama-q8_0", "gguf-spm"), Case("qwen2-q8_0", "bytelevel-qwen2") })
  {
    const std::filesystem::path path = ModelsOracle("files/gguf/" + std::string(name) + ".gguf");
    if (path.empty() && std::string(name) == "qwen2-q8_0")
    {
      continue; // a file beside the project
    }
    const Tokenizer tokenizer = ReadGgufTokenizer(path);
    for (const nlohmann::json& item : CasesOf(folder))
    {
      const auto text = item["text"].get<std::string>();
      const nlohmann::json& plain = ExpectedIds(item, "ids");
      EXPECT_EQ(tokenizer.Encode(text, false).ids, plain.get<Ids>()) << text;
      if (plain == item["ids"])
      {
        EXPECT_EQ(tokenizer.Encode(text, true).ids, item["ids_with_special"].get<Ids>()) << text;
      }
    }
  }
}

/// A model of SentencePiece as a GGUF file of this kind.
GgufBytes PiecesAs(const std::string& kind, const std::string& name)
{
  const std::filesystem::path path = ModelsOracle("tokenizers/" + name + "/tokenizer.model");
  const SentencePieceTable table = ParseSentencePieceModel(ReadFile(path), path.string());
  GgufBytes bytes;
  bytes.AddText("tokenizer.ggml.model", kind);
  bytes.AddTexts("tokenizer.ggml.tokens", table.tokens);
  bytes.AddArray("tokenizer.ggml.scores", 6, table.scores.size(), FloatBytes(table.scores));
  AddIntegers(bytes, "tokenizer.ggml.token_type", table.types);
  const auto addFlag = [&](const char* key, bool flag)
  { bytes.Add(std::string("tokenizer.ggml.") + key, 7, std::string(1, flag ? '\1' : '\0')); };
  addFlag("add_space_prefix", table.addPrefixSpace);
  addFlag("remove_extra_whitespaces", table.removeExtraSpaces);
  bytes.AddArray(
    "tokenizer.ggml.precompiled_charsmap", 0, table.characterMap.size(), table.characterMap);
  return bytes;
}

TEST(GgufTokenizer, UnigramIsThatOfSentencePiece)
{
  for (const auto& [name, ids] : { Case("spm-t5", "ids"), Case("spm-xlmr", "spm_ids") })
  {
    const Tokenizer tokenizer = Make(PiecesAs("t5", name));
    for (const nlohmann::json& item : CasesOf(name))
    {
      const auto text = item["text"].get<std::string>();
      EXPECT_EQ(tokenizer.Encode(text, false).ids, ExpectedIds(item, ids).get<Ids>())
        << name << ": " << text;
    }
  }
  // The end of T5's texts has the id 1.
  EXPECT_THAT(Make(PiecesAs("t5", "spm-t5")).Encode("", true).ids, ElementsAre(1));
}

/// Control and unknown tokens are tokens where a text spells them, as in the tokenizer.json of the
/// same models, which Hugging Face's library read.
TEST(GgufTokenizer, PiecesSpellControlTokens)
{
  const auto ids = [](const char* kind, const char* name, const char* text)
  { return Make(PiecesAs(kind, name)).Encode(text, false).ids; };
  const char* text = "<s>The text</s>a";
  EXPECT_THAT(ids("llama", "spm-gemma", text), ElementsAre(2, 400, 320, 760, 802, 761, 1, 763));
  EXPECT_THAT(ids("llama", "spm-llama", text), ElementsAre(1, 403, 319, 711, 753, 712, 2, 261));
  EXPECT_THAT(ids("t5", "spm-t5", "The</s>text"), ElementsAre(65, 1, 3, 143, 130, 10));
  EXPECT_THAT(ids("llama", "spm-gemma", "a<unk>b"), ElementsAre(763, 3, 778));
  EXPECT_THAT(ids("llama", "spm-llama", "a<unk>b"), ElementsAre(261, 0, 273));
}

/// Gemma's tokenizer with the merges of its tokenizer.json, as files of Gemma 4 have it.
TEST(GgufTokenizer, PairsOfCharactersAreThoseOfTheOriginal)
{
  const nlohmann::json original = TokenizerOracle("spm-gemma/tokenizer.json");
  const nlohmann::json& model = original["model"];
  std::vector<std::string> tokens(model["vocab"].size());
  for (const auto& [token, id] : model["vocab"].items())
  {
    tokens[id.get<std::size_t>()] = token;
  }
  std::vector<int> types(tokens.size(), 1);
  for (const nlohmann::json& added : original["added_tokens"])
  {
    types[added["id"].get<std::size_t>()] = added["special"].get<bool>() ? 3 : 4;
  }
  std::vector<std::string> merges;
  for (const nlohmann::json& merge : model["merges"])
  {
    merges.push_back(merge.is_array()
                       ? merge[0].get<std::string>() + " " + merge[1].get<std::string>()
                       : merge.get<std::string>());
  }
  const auto makeWith = [&](const char* kind, const char* split)
  {
    GgufBytes bytes;
    bytes.AddText("tokenizer.ggml.model", kind);
    bytes.AddText("tokenizer.ggml.pre", split);
    bytes.AddTexts("tokenizer.ggml.tokens", tokens);
    bytes.AddTexts("tokenizer.ggml.merges", merges);
    AddIntegers(bytes, "tokenizer.ggml.token_type", types);
    bytes.AddInteger("tokenizer.ggml.bos_token_id", 2);
    return Make(bytes);
  };
  for (const Tokenizer& tokenizer : { makeWith("gemma4", "default"), makeWith("gpt2", "gemma4") })
  {
    for (const nlohmann::json& item : CasesOf("spm-gemma"))
    {
      const auto text = item["text"].get<std::string>();
      const bool differs = item.contains("ids_tokenizer_json");
      const auto ids = item[differs ? "ids_tokenizer_json" : "ids"].get<Ids>();
      EXPECT_EQ(tokenizer.Encode(text, false).ids, ids) << text;
      EXPECT_EQ(tokenizer.Encode(text, true).ids.front(), 2);
      EXPECT_EQ(tokenizer.Decode(item["ids"].get<Ids>()), item["decoded"].get<std::string>());
    }
  }
}

/// BERT's vocabulary as GGUF files have it.
GgufBytes WordPieces(bool hasTypes)
{
  const std::filesystem::path folder =
    std::filesystem::path(ATLAS_ORACLE_DIR) / "transformers" / "tokenizers";
  std::istringstream lines(ReadFile(folder / "bert-vocab.txt"));
  std::vector<std::string> tokens;
  std::vector<int> types;
  for (std::string line; std::getline(lines, line);)
  {
    const bool isSpecial =
      testing::Matches(testing::AnyOf("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"))(line);
    types.push_back(isSpecial ? 3 : 1);
    tokens.push_back(isSpecial                       ? line
                     : line.compare(0, 2, "##") == 0 ? line.substr(2)
                                                     : "\xE2\x96\x81" + line);
  }
  GgufBytes bytes;
  bytes.AddText("tokenizer.ggml.model", "bert");
  bytes.AddTexts("tokenizer.ggml.tokens", tokens);
  if (hasTypes)
  {
    AddIntegers(bytes, "tokenizer.ggml.token_type", types);
    bytes.AddInteger("tokenizer.ggml.cls_token_id", 101);
    bytes.AddInteger("tokenizer.ggml.seperator_token_id", 102);
    bytes.AddInteger("tokenizer.ggml.unknown_token_id", 100);
  }
  return bytes;
}

TEST(GgufTokenizer, WordPiecesAreThoseOfTheOriginal)
{
  const std::filesystem::path path =
    std::filesystem::path(ATLAS_ORACLE_DIR) / "transformers" / "tokenizers" / "cases.json";
  const nlohmann::json cases = ParseJson(ReadFile(path), path.string());
  EXPECT_GE(cases.size(), 20U);
  for (const bool hasTypes : { true, false })
  {
    const Tokenizer tokenizer = Make(WordPieces(hasTypes));
    EXPECT_TRUE(tokenizer.HasSegments());
    for (const nlohmann::json& item : cases)
    {
      const Encoding found = tokenizer.Encode(item["text"].get<std::string>(), true);
      EXPECT_EQ(found.ids, item["bert"].get<Ids>()) << item["text"];
      EXPECT_EQ(std::vector<std::string>(found.tokens.begin() + 1, found.tokens.end() - 1),
        item["bert_tokens"].get<std::vector<std::string>>());
    }
    const Encoding pair = tokenizer.EncodePair("a", "b [MASK]", true);
    EXPECT_THAT(pair.ids, ElementsAre(101, 1037, 102, 1038, 103, 102));
    EXPECT_THAT(pair.types, ElementsAre(0, 0, 0, 1, 1, 1));
  }
}

TEST(GgufTokenizer, WordPiecesMayKeepCaseAndAccents)
{
  const auto flag = [](bool value) { return std::string(1, value ? '\1' : '\0'); };
  const auto idsWith = [&](bool lowerCase, bool stripsAccents)
  {
    GgufBytes bytes;
    bytes.AddText("tokenizer.ggml.model", "bert");
    bytes.AddTexts("tokenizer.ggml.tokens",
      { "[UNK]", "[CLS]", "[SEP]", "\xE2\x96\x81\xC3\x89", "\xE2\x96\x81\xC3\xA9",
        "\xE2\x96\x81"
        "E",
        "\xE2\x96\x81"
        "e" });
    bytes.AddInteger("tokenizer.ggml.unknown_token_id", 0);
    bytes.AddInteger("tokenizer.ggml.bos_token_id", 1);
    bytes.AddInteger("tokenizer.ggml.eos_token_id", 2);
    bytes.Add("tokenizer.ggml.normalizer.lowercase", 7, flag(lowerCase));
    if (stripsAccents != lowerCase)
    {
      bytes.Add("tokenizer.ggml.normalizer.strip_accents", 7, flag(stripsAccents));
    }
    return Make(bytes).Encode("\xC3\x89", true).ids;
  };
  EXPECT_THAT(idsWith(false, false), ElementsAre(1, 3, 2));
  EXPECT_THAT(idsWith(true, false), ElementsAre(1, 4, 2));
  EXPECT_THAT(idsWith(false, true), ElementsAre(1, 5, 2));
  EXPECT_THAT(idsWith(true, true), ElementsAre(1, 6, 2));
}

/// What became of texts by the expressions of each name of tokenizer.ggml.pre, run by another
/// library (Testing/Oracle/README.md). The merges join all that words do not separate.
TEST(GgufTokenizer, WordsAreThoseOfTheModels)
{
  const nlohmann::json all = TokenizerOracle("bytelevel-splits/cases.json");
  const auto texts = all["texts"].get<std::vector<std::string>>();
  BytePairTable table;
  all["tokens"].get_to(table.tokens);
  all["merges"].get_to(table.merges);
  std::set<std::string> names = { "clip" }; // no name of GGUF files
  for (const nlohmann::json& family : all["families"])
  {
    const auto ids = family["ids"].get<std::vector<Ids>>();
    for (const auto& name : family["names"].get<std::vector<std::string>>())
    {
      names.insert(name);
      table.split = name;
      const Tokenizer tokenizer = MakeBytePairTokenizer(table, "some.gguf");
      for (std::size_t i = 0; i < texts.size(); ++i)
      {
        EXPECT_EQ(tokenizer.Encode(texts[i], false).ids, ids[i]) << name << ": " << texts[i];
      }
    }
  }
  const std::vector<std::string> known = BytePairSplits();
  EXPECT_EQ(names, std::set<std::string>(known.begin(), known.end()));
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
  AddIntegers(bytes, "tokenizer.ggml.token_type", std::vector<int>{ 2, 3, 3, 1, 1, 1 });
  bytes.AddArray("tokenizer.ggml.scores", 6, 6, FloatBytes({ 0, 0, 0, -2, -3, -1 }));
  EXPECT_THAT(Make(bytes).Encode("ab", true).ids, ElementsAre(1, 0, 5));
  bytes.Add("tokenizer.ggml.add_space_prefix", 7, std::string(1, '\0'));
  EXPECT_THAT(Make(bytes).Encode("ab", true).ids, ElementsAre(1, 5));
}

TEST(GgufTokenizer, OtherKindsAreRefusedByName)
{
  GgufBytes other;
  other.AddText("tokenizer.ggml.model", "rwkv");
  GgufBytes noMerges;
  noMerges.AddText("tokenizer.ggml.model", "gpt2");
  noMerges.AddText("tokenizer.ggml.pre", "nothing-like-it");
  noMerges.AddTexts("tokenizer.ggml.tokens", { "a" });
  GgufBytes split = noMerges;
  split.AddTexts("tokenizer.ggml.merges", {});
  GgufBytes begin = TinyGguf();
  begin.Add("tokenizer.ggml.add_bos_token", 7, "\1");
  GgufBytes unknown;
  unknown.AddText("tokenizer.ggml.model", "bert");
  unknown.AddTexts("tokenizer.ggml.tokens", { "[UNK]", "[CLS]", "[SEP]" });
  GgufBytes types = unknown;
  AddIntegers(types, "tokenizer.ggml.token_type", std::vector<int>{ 3, 3 });
  const std::vector<Refused> bad = { { GgufBytes().File(),
                                       "'tokenizer.ggml.model': expected a text, found none" },
    { other.File(), "llama, t5, gpt2, gemma4 or bert, found 'rwkv'" },
    { noMerges.File(), "'tokenizer.ggml.merges'" }, { split.File(), "'nothing-like-it'" },
    { begin.File(), "'tokenizer.ggml.bos_token_id'" },
    { unknown.File(), "unknown_token_id': expected the id of one of 3 tokens, found none" },
    { types.File(), "token_type': expected the types of 3 tokens, found 2" } };
  ExpectRefusals<FormatError>(
    bad, [](const std::string& file) { MakeGgufTokenizer(Parse(file).metadata); }, "some.gguf: ");
}

}
