// Also tests: SentencePieceFile TokenTables UnigramModel CharacterPairModel TokenizerJson
// ByteLevelSplits

#include "TokenTables.h"

#include "ByteLevelSplits.h"
#include "Error.h"
#include "ErrorMessage.h"
#include "SentencePieceFile.h"
#include "TemporaryDirectory.h"
#include "TokenizerFile.h"

#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace atlas;
using atlas::test::MessageOf;
using atlas::test::ReadBytes;
using atlas::test::TemporaryDirectory;
using atlas::test::WriteBytes;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using Ids = std::vector<std::int64_t>;

namespace
{

const std::filesystem::path Folder = std::filesystem::path(ATLAS_ORACLE_DIR) / "models/tokenizers";

// ModelTokenizer: what the original libraries made of 60 texts each.

json Cases(const std::string& name)
{
  return json::parse(ReadBytes(Folder / name / "cases.json")).at("cases");
}

/// A token as it is written in the vocabulary, in readable form.
std::string Readable(std::string piece)
{
  for (std::size_t mark = piece.find("\u2581"); mark != std::string::npos;
    mark = piece.find("\u2581", mark))
  {
    piece.replace(mark, 3, " ");
  }
  return piece;
}

bool IsByte(const std::string& piece)
{
  return piece.size() == 6 && piece.compare(0, 3, "<0x") == 0;
}

void ExpectPieces(const Tokenizer& tokenizer, const Encoding& encoding, const json& pieces)
{
  ASSERT_EQ(encoding.tokens.size(), pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i)
  {
    const auto piece = pieces[i].get<std::string>();
    EXPECT_EQ(tokenizer.IdOf(piece), encoding.ids[i]) << piece;
    if (!IsByte(piece))
    {
      EXPECT_EQ(encoding.tokens[i], Readable(piece));
    }
  }
}

void ExpectCases(const Tokenizer& tokenizer, const std::string& name, bool isJson)
{
  const json cases = Cases(name);
  EXPECT_EQ(cases.size(), 60U);
  for (const json& item : cases)
  {
    const auto text = item.at("text").get<std::string>();
    SCOPED_TRACE(name + ": " + text);
    if (isJson && item.contains("ids_tokenizer_json"))
    {
      EXPECT_EQ(tokenizer.Encode(text, false).ids, item.at("ids_tokenizer_json").get<Ids>());
      continue;
    }
    const Encoding encoding = tokenizer.Encode(text, false);
    EXPECT_EQ(encoding.ids, item.at("ids").get<Ids>());
    EXPECT_EQ(tokenizer.Encode(text, true).ids, item.at("ids_with_special").get<Ids>());
    EXPECT_EQ(tokenizer.Decode(item.at("ids").get<Ids>()), item.at("decoded").get<std::string>());
    if (item.contains("pieces"))
    {
      ExpectPieces(tokenizer, encoding, item.at("pieces"));
    }
  }
}

/// The tokenizer of a folder that has these files of the named one.
Tokenizer ReadWith(const std::string& name, const std::vector<std::string>& files)
{
  const TemporaryDirectory folder;
  for (const std::string& file : files)
  {
    std::filesystem::copy(Folder / name / file, folder / file);
  }
  return ReadTokenizer(folder.Path());
}

class ModelTokenizer : public testing::TestWithParam<const char*>
{
};

TEST_P(ModelTokenizer, OfTokenizerJsonEqualsTheOriginal)
{
  ExpectCases(ReadTokenizer(Folder / GetParam()), GetParam(), true);
}

TEST_P(ModelTokenizer, OfModelFileEqualsTheOriginal)
{
  if (std::string(GetParam()).compare(0, 9, "bytelevel") != 0)
  {
    ExpectCases(
      ReadWith(GetParam(), { "tokenizer.model", "tokenizer_config.json" }), GetParam(), false);
  }
}

INSTANTIATE_TEST_SUITE_P(Oracle, ModelTokenizer,
  testing::Values("bytelevel-llama3", "bytelevel-qwen2", "gguf-spm", "spm-gemma", "spm-llama",
    "spm-t5", "spm-xlmr"),
  [](const auto& name)
  {
    std::string text = name.param;
    text.erase(text.find('-'), 1);
    return text;
  });

TEST(ModelTokenizer, OfVocabularyAndMergesEqualsTheOriginal)
{
  ExpectCases(ReadWith("bytelevel-qwen2", { "vocab.json", "merges.txt", "tokenizer_config.json" }),
    "bytelevel-qwen2", false);
}

TEST(ModelTokenizer, OfByteLevelTablesEqualsTheOriginal)
{
  for (const auto& [name, split] :
    { std::pair("bytelevel-qwen2", "qwen2"), std::pair("bytelevel-llama3", "llama-bpe") })
  {
    const json file = json::parse(ReadBytes(Folder / name / "tokenizer.json"));
    BytePairTable table;
    table.split = split;
    const json& vocabulary = file.at("model").at("vocab");
    table.tokens.resize(vocabulary.size() + file.at("added_tokens").size());
    table.types.assign(table.tokens.size(), 1);
    for (const auto& [token, id] : vocabulary.items())
    {
      table.tokens.at(id.get<std::size_t>()) = token;
    }
    for (const json& added : file.at("added_tokens"))
    {
      table.tokens.at(added.at("id").get<std::size_t>()) = added.at("content");
      table.types.at(added.at("id").get<std::size_t>()) = 3;
    }
    for (const json& merge : file.at("model").at("merges"))
    {
      table.merges.push_back(merge.is_string()
                               ? merge.get<std::string>()
                               : merge[0].get<std::string>() + " " + merge[1].get<std::string>());
    }
    if (table.split == "llama-bpe")
    {
      table.textBegin = { 962 };
    }
    ExpectCases(MakeBytePairTokenizer(table, "table"), name, false);
  }
}

TEST(ModelTokenizer, OfSentencePieceTablesEqualsTheOriginal)
{
  SentencePieceTable table =
    ParseSentencePieceModel(ReadBytes(Folder / "gguf-spm" / "tokenizer.model"), "model");
  EXPECT_EQ(table.kind, SentencePieceKind::BytePairs);
  EXPECT_FALSE(table.removeExtraSpaces);
  table.textBegin = { 1 };
  const Tokenizer tokenizer = MakeSentencePieceTokenizer(table, "table");
  EXPECT_EQ(tokenizer.Kind(), "SentencePiece BPE");
  ExpectCases(tokenizer, "gguf-spm", false);
}

}
