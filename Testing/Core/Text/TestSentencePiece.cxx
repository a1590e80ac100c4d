#include "Text/TokenTables.h"

#include "Base/Error.h"
#include "Refusals.h"
#include "SentencePieceBytes.h"
#include "Text/Internal/ByteLevelSplits.h"
#include "Text/Internal/CharacterMap.h"
#include "Text/Internal/PieceText.h"
#include "Text/Internal/PieceTrie.h"
#include "Text/SentencePieceFile.h"
#include "TokenizerOracle.h"

#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace atlas;
using namespace atlas::test;
using nlohmann::json;
using namespace testing;

namespace
{

const std::filesystem::path Folder = std::filesystem::path(ATLAS_ORACLE_DIR) / "models/tokenizers";

// ModelTokenizer: what the original libraries made of 60 texts each.

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
  for (const json& item : CasesOf(name))
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
  const TokenizerFolder folder;
  for (const std::string& file : files)
  {
    std::filesystem::copy(Folder / name / file, folder / file);
  }
  return folder.Read();
}

/// The tokenizer.json of the named folder alone, without the steps of a class beside it.
Tokenizer OfFile(const std::string& name)
{
  return ParseTokenizer(ReadFile(Folder / name / "tokenizer.json"), name);
}

using ModelTokenizer = testing::TestWithParam<const char*>;

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

TEST(ModelTokenizer, MegabytesMayBeInOneLine)
{
  for (const char* name : { "bytelevel-llama3", "spm-llama", "spm-xlmr" })
  {
    const Tokenizer first = OfFile(name);
    const bool hasModel = std::filesystem::exists(Folder / name / "tokenizer.model");
    const Tokenizer second =
      hasModel ? ReadWith(name, { "tokenizer.model", "tokenizer_config.json" }) : first;
    for (const char* part : { "a", "the ", " ", "\u2581", "1", "\u00e9", "\U0001F642", "\ufb01" })
    {
      std::string text;
      while (text.size() < 1'000'000)
      {
        text += part;
      }
      const Ids ids = first.Encode(text, false).ids;
      EXPECT_LE(ids.size(), text.size() + 1);
      EXPECT_EQ(ids, second.Encode(text, false).ids) << name << ": " << part;
    }
  }
}

/// Texts of parts that SentencePiece treats in a special way.
std::string RandomText(std::mt19937_64& random)
{
  static const std::vector<std::string> parts = { "a", "the", " the", " ", "  ", "\n\n", "ing", "1",
    "23", "\u00e9", "e\u0301", "\u3000", "\u65e5", "\U0001F642", "\u200d", "\u2581", "\ufb01",
    "<start_of_turn>", "\x7f", "\uff21" };
  std::string text;
  for (std::size_t i = random() % 40; i > 0; --i)
  {
    text += parts[random() % parts.size()];
  }
  return text;
}

TEST(ModelTokenizer, BothFilesAgreeOnRandomTexts)
{
  std::mt19937_64 random(5);
  for (const char* name : { "gguf-spm", "spm-gemma", "spm-llama", "spm-t5", "spm-xlmr" })
  {
    const Tokenizer first = OfFile(name);
    const Tokenizer second = ReadWith(name, { "tokenizer.model", "tokenizer_config.json" });
    for (int i = 0; i < 1000; ++i)
    {
      const std::string text = RandomText(random);
      if (text.find("\u200d") != std::string::npos && first.Kind() == "Unigram")
      {
        continue; // both replace characters, but not in the same clusters with it
      }
      const Ids ids = first.Encode(text, true).ids;
      ASSERT_EQ(ids, second.Encode(text, true).ids) << name << ": " << text;
      ASSERT_EQ(first.Decode(ids), second.Decode(ids)) << name << ": " << text;
    }
  }
}

TEST(ModelTokenizer, OfBytesGivesTheTextBack)
{
  std::mt19937_64 random(6);
  const Tokenizer tokenizer = OfFile("spm-llama");
  for (int i = 0; i < 1000; ++i)
  {
    std::string text = RandomText(random);
    const std::string decoded = tokenizer.Decode(tokenizer.Encode(text, false).ids);
    ASSERT_EQ(decoded, Readable(text));
  }
}

TEST(ModelTokenizer, LabelsAreTheTextOfTokens)
{
  const Tokenizer llama = OfFile("spm-llama");
  EXPECT_EQ(llama.Kind(), "SentencePiece BPE");
  EXPECT_THAT(llama.Encode(" \u65e5\n", true).tokens,
    ElementsAre("<s>", " ", " ", testing::_, testing::_, testing::_, "\n"));
  EXPECT_EQ(llama.Label(*llama.IdOf("<0xE6>")), "\ufffd");
  EXPECT_EQ(llama.Label(*llama.IdOf("<0x41>")), "A");
  EXPECT_EQ(llama.Label(0), "<unk>");
  EXPECT_EQ(llama.Decode({ 1, *llama.IdOf("\u2581the"), 2 }), "<s> the</s>");
}

TEST(ModelTokenizer, TextThatIsNotUtf8IsRefused)
{
  for (const char* name : { "spm-llama", "spm-t5" })
  {
    const Tokenizer tokenizer = ReadWith(name, { "tokenizer.model", "tokenizer_config.json" });
    EXPECT_THAT(MessageOf<FormatError>([&] { tokenizer.Encode("ab\xff", true); }),
      StartsWith("the text: expected UTF-8, found the byte 0xff at position 2"));
  }
}

TEST(ModelTokenizer, AddedTokensOfModelsAreMatched)
{
  const Tokenizer t5 = ReadWith("spm-t5", { "tokenizer.model", "tokenizer_config.json" });
  EXPECT_EQ(t5.VocabularySize(), 702);
  EXPECT_THAT(t5.Encode("<extra_id_0><extra_id_1>", true).ids, ElementsAre(701, 700, 1));
  const Tokenizer xlmr = ReadWith("spm-xlmr", { "tokenizer.model", "tokenizer_config.json" });
  EXPECT_THAT(xlmr.Encode("the <mask>", true).ids, ElementsAre(0, *xlmr.IdOf("\u2581the"), 801, 2));
  EXPECT_THAT(xlmr.EncodePair("the", "of", true).ids,
    ElementsAre(0, *xlmr.IdOf("\u2581the"), 2, 2, *xlmr.IdOf("\u2581of"), 2));
}

TEST(ModelTokenizer, ModelFilesTellTheirKindByTheirName)
{
  const TokenizerFolder folder;
  std::filesystem::copy(Folder / "spm-t5" / "tokenizer.model", folder / "spiece.model");
  EXPECT_EQ(folder.Read().VocabularySize(), 800);
  std::filesystem::remove(folder / "spiece.model");
  std::filesystem::copy(
    Folder / "spm-xlmr" / "tokenizer.model", folder / "sentencepiece.bpe.model");
  ExpectCases(folder.Read(), "spm-xlmr", false);
  folder.Write({ { "tokenizer_config.json", R"({"tokenizer_class":"XLNetTokenizer"})" } });
  EXPECT_THAT(folder.Refusal(), HasSubstr("or a file tokenizer.json that says"));
  std::filesystem::remove(folder / "tokenizer_config.json");
  // Pegasus has ids of its own for these pieces.
  folder.Write({ { "config.json", R"({"model_type": "pegasus"})" } });
  EXPECT_THAT(folder.Refusal(), HasSubstr("or a file tokenizer.json that says"));
}

// The tests below need no oracle.

Tokenizer Make(const std::string& bytes)
{
  return MakeSentencePieceTokenizer(ParseSentencePieceModel(bytes, "m"), "m");
}

const PieceBytes Unknown = { "<unk>", 0, 2 };

TEST(SentencePiece, OfEqualScoresTheLeftmostPairIsMerged)
{
  const ModelBytes pairs = { 2, "", false, false };
  const Tokenizer tokenizer = Make(SentencePieceFile(
    { Unknown, { "a", -9 }, { "b", -9 }, { "ab", -1 }, { "ba", -1 }, { "aba", -2 } }, pairs));
  EXPECT_THAT(tokenizer.Encode("aba", false).tokens, ElementsAre("aba"));
  EXPECT_THAT(tokenizer.Encode("baba", false).tokens, ElementsAre("ba", "ba"));
  EXPECT_THAT(tokenizer.Encode("abba", false).tokens, ElementsAre("ab", "ba"));
}

TEST(SentencePiece, CharactersThatAreNoPiecesMayBeMerged)
{
  const ModelBytes pairs = { 2, "", false, false };
  const Tokenizer tokenizer =
    Make(SentencePieceFile({ Unknown, { "a", -9 }, { "xa", -1 }, { "yx", -5 } }, pairs));
  EXPECT_THAT(tokenizer.Encode("xa", false).tokens, ElementsAre("xa"));
  EXPECT_THAT(tokenizer.Encode("yxazz", false).tokens, ElementsAre("<unk>", "xa", "<unk>"));
  EXPECT_EQ(tokenizer.Decode({ 0, 2 }), " \u2047 xa");
}

TEST(SentencePiece, UserDefinedPiecesAreWhole)
{
  for (const std::uint64_t kind : { 1U, 2U })
  {
    const Tokenizer tokenizer = Make(SentencePieceFile(
      { Unknown, { "a", -3 }, { "b", -3 }, { "aa", -2.5F }, { "ab", 0, 4 }, { "\u2581", -1 } },
      { kind, "", false, true }));
    EXPECT_THAT(tokenizer.Encode("aab ab", false).tokens, ElementsAre("a", "ab", " ", "ab"));
  }
}

TEST(SentencePiece, SpacesAreKeptOrReduced)
{
  const auto tokens = [](bool prefix, bool remove)
  {
    return Make(
      SentencePieceFile({ Unknown, { "a", -1 }, { "\u2581", -2 } }, { 1, "", prefix, remove }))
      .Encode("  a  a ", false)
      .tokens;
  };
  EXPECT_THAT(tokens(true, true), ElementsAre(" ", "a", " ", "a"));
  EXPECT_THAT(tokens(false, true), ElementsAre("a", " ", "a"));
  EXPECT_THAT(tokens(true, false), ElementsAre(" ", " ", " ", "a", " ", " ", "a", " "));
  EXPECT_THAT(tokens(false, false), ElementsAre(" ", " ", "a", " ", " ", "a", " "));
}

TEST(SentencePiece, UnknownCharactersAreOneTokenOrBytes)
{
  const ModelBytes plain = { 1, "", false, false };
  EXPECT_THAT(Make(SentencePieceFile({ Unknown, { "a", -1 } }, plain)).Encode("axya", false).ids,
    ElementsAre(1, 0, 1));
  EXPECT_THAT(
    Make(SentencePieceFile({ Unknown, { "a", -1 }, { "<0x78>", 0, 6 }, { "<0x79>", 0, 6 } }, plain))
      .Encode("axya<0x78>", false)
      .ids,
    ElementsAre(1, 2, 3, 1, 0));
  EXPECT_THAT(MessageOf<FormatError>(
                [&] { Make(SentencePieceFile({ { "a", -1 } }, plain)).Encode("ab", false); }),
    HasSubstr("m: the vocabulary has no token for 'b', which the text contains, and no token for "
              "unknown characters"));
}

TEST(SentencePiece, HostileModelsAreRefused)
{
  const std::string good = SentencePieceFile({ Unknown, { "a", -1 } });
  const std::vector<Refused> bad = { { "", "found no pieces" },
    { "version https://git-lfs.github.com/spec/v1\noid sha256:dadf\nsize 493443\n",
      "found the pointer of Git LFS" },
    { "\x0a\x7f", "byte 2: expected 127 more bytes, found 0" },
    { std::string(12, '\xff'), "a number of at most 10 bytes" },
    { "\x0b", "type 0, 1, 2 or 5, found type 3" },
    { NumberField(1, 5), "field 1 of type 2, found type 0" },
    { "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "more bytes, found 0" },
    { good + BytesField(2, NumberField(3, 3)),
      "kind 1 (Unigram) or 2 (byte pairs), found 3 (words)" },
    { good + BytesField(2, NumberField(24, 1)), "spaces behind words" },
    { good + BytesField(3, BytesField(2, "\x7f")), "the character map" },
    { SentencePieceFile({ { "a" }, { "a" } }), "found 'a' twice" },
    { SentencePieceFile({ { "" } }), "tokens of 1 to 1024 bytes" },
    { SentencePieceFile({ { std::string(1025, 'a') } }), "of 1025" },
    { SentencePieceFile({ { "\xff" } }), "expected UTF-8" },
    { SentencePieceFile({ { "a", 0, 7 } }), "a type from 1 to 6" },
    { SentencePieceFile({ { "a", std::numeric_limits<float>::quiet_NaN() } }),
      "token 0: expected a finite score" } };
  ExpectRefusals<FormatError>(bad, [](const std::string& bytes) { Make(bytes); }, "m: ");
}

TEST(SentencePiece, LongPiecesTakeBoundedTime)
{
  SentencePieceTable table;
  for (std::size_t length = 1; length <= LongestPiece; ++length)
  {
    table.tokens.emplace_back(length, 'a');
    table.scores.push_back(-static_cast<float>(length));
  }
  table.addPrefixSpace = false;
  const std::string text(20'000, 'a');
  for (const SentencePieceKind kind : { SentencePieceKind::BytePairs, SentencePieceKind::Unigram })
  {
    table.kind = kind;
    EXPECT_THAT(MakeSentencePieceTokenizer(table, "t")
                  .Decode(MakeSentencePieceTokenizer(table, "t").Encode(text, false).ids),
      text);
  }
}

TEST(SentencePiece, TablesThatDisagreeAreRefused)
{
  SentencePieceTable pieces;
  pieces.tokens = { "a", "b" };
  pieces.scores = { 0 };
  const auto refusal = [&]
  { return MessageOf<FormatError>([&] { MakeSentencePieceTokenizer(pieces, "t"); }); };
  EXPECT_EQ(refusal(), "t: expected scores of 2 tokens, found 1.");
  pieces.scores = { 0, 0 };
  pieces.types = { 1 };
  EXPECT_EQ(refusal(), "t: expected types of 2 tokens, found 1.");
  pieces.types = {};
  pieces.textBegin = { 2 };
  EXPECT_EQ(refusal(), "t: expected special tokens of the vocabulary, found id 2.");
  BytePairTable pairs;
  pairs.split = "other";
  EXPECT_THAT(MessageOf<FormatError>([&] { MakeBytePairTokenizer(pairs, "t"); }),
    StartsWith("t: unknown split of words 'other', expected one of a.x-4.0, afmoe, "));
  pairs.split = "gpt-2";
  pairs.tokens = { "a", "b" };
  pairs.merges = { "a b" };
  EXPECT_THAT(MessageOf<FormatError>([&] { MakeBytePairTokenizer(pairs, "t"); }),
    HasSubstr("merge 0 'a b': the vocabulary has no token 'ab'"));
}

TEST(SentencePiece, EverySplitIsUnderstood)
{
  for (const std::string& name : BytePairSplits())
  {
    BytePairTable table;
    table.split = name;
    table.tokens = ByteTokens({ "a</w>" });
    const Tokenizer tokenizer = MakeBytePairTokenizer(table, "t");
    EXPECT_EQ(
      tokenizer.Decode(tokenizer.Encode("xyza", false).ids), name == "clip" ? "xyza " : "xyza");
  }
}

TEST(SentencePiece, NormalizedTextMayNotGrowWithoutEnd)
{
  json file = { { "model",
                  { { "type", "BPE" }, { "vocab", { { "a", 0 } } }, { "merges", json::array() } } },
    { "normalizer", { { "type", "Sequence" }, { "normalizers", json::array() } } } };
  for (int i = 0; i < 60; ++i)
  {
    file["normalizer"]["normalizers"].push_back(
      { { "type", "Replace" }, { "pattern", { { "String", "a" } } }, { "content", "aa" } });
  }
  const Tokenizer tokenizer = ParseTokenizer(file.dump(), "t.json");
  EXPECT_THAT(MessageOf<FormatError>([&] { tokenizer.Encode("a", false); }),
    HasSubstr("t.json: expected a normalized text of at most 4160 bytes, found more"));
}

/// A trie in darts-clone's units that replaces "a" and "ab": only "ab" has a second step.
std::string SmallMap()
{
  std::vector<std::uint32_t> units(1024, 0);
  const auto unit = [](std::uint32_t label, std::uint32_t offset, bool leaf)
  { return label | offset << 10U | (leaf ? 1U << 8U : 0U); };
  units[0] = unit(0, 256, false);                        // children at 256 ^ byte
  units[256 ^ 'a'] = unit('a', (256 ^ 'a') ^ 512, true); // leaf at 512, children at 512 ^ byte
  units[512] = 1U << 31U | 0U;                           // -> "x"
  units[512 ^ 'b'] = unit('b', (512 ^ 'b') ^ 768, true);
  units[768] = 1U << 31U | 2U; // -> ""
  units.insert(units.begin(), static_cast<std::uint32_t>(units.size() * 4));
  std::string bytes;
  for (const std::uint32_t value : units)
  {
    for (unsigned i = 0; i < 4; ++i)
    {
      bytes += static_cast<char>(static_cast<unsigned char>(value >> 8U * i));
    }
  }
  return bytes + std::string("x\0\0", 3);
}

TEST(CharacterMap, TheLongestEntryCounts)
{
  const CharacterMap map(SmallMap(), "m");
  EXPECT_EQ(map.Longest("ac").length, 1U);
  EXPECT_EQ(map.Longest("ac").replacement, "x");
  EXPECT_EQ(map.Longest("abc").length, 2U);
  EXPECT_EQ(map.Longest("abc").replacement, "");
  EXPECT_EQ(map.Shortest("abc").length, 1U);
  EXPECT_EQ(map.Shortest("abc").replacement, "x");
  EXPECT_EQ(map.Shortest("b").length, 0U);
  EXPECT_EQ(map.Longest("b").length, 0U);
  EXPECT_EQ(map.Longest("").length, 0U);
}

TEST(CharacterMap, BadOnesAreRefusedOrHarmless)
{
  const auto refusal = [](const std::string& bytes)
  { return MessageOf<FormatError>([&] { CharacterMap(bytes, "m"); }); };
  EXPECT_THAT(refusal(""), HasSubstr("expected the size of a trie within its 0 bytes, found 0"));
  EXPECT_THAT(refusal(SmallMap().substr(0, 4000)), HasSubstr("found 4096"));
  EXPECT_THAT(refusal(SmallMap() + "\xff"), HasSubstr("expected UTF-8"));
  std::mt19937_64 random(2);
  const std::string map = SmallMap();
  for (int i = 0; i < 2000; ++i)
  {
    std::string changed = map;
    changed[4 + random() % 4096] = static_cast<char>(random() % 256);
    changed[4 + random() % 4096] = static_cast<char>(random() % 256);
    EXPECT_LE(CharacterMap(changed, "m").Longest("abababab").length, 8U);
  }
}

TEST(CharacterMap, DecodesBase64)
{
  EXPECT_EQ(DecodeBase64("TWFu"), "Man");
  EXPECT_EQ(DecodeBase64("TWE="), "Ma");
  EXPECT_EQ(DecodeBase64("TQ=="), "M");
  EXPECT_EQ(DecodeBase64(""), "");
  EXPECT_EQ(DecodeBase64("TQ"), std::nullopt);
  EXPECT_EQ(DecodeBase64("T*=="), std::nullopt);
}

TEST(PieceTrie, FindsTheLongest)
{
  const PieceTrie trie({ { "a", 3 }, { "abc", 5 }, { "\u00e9", 7 } });
  EXPECT_EQ(trie.Longest("abd").number, 3);
  EXPECT_EQ(trie.Longest("abcd").number, 5);
  EXPECT_EQ(trie.Longest("abcd").length, 3U);
  EXPECT_EQ(trie.Longest("\u00e9").number, 7);
  EXPECT_EQ(trie.Longest("b").length, 0U);
  EXPECT_EQ(PieceTrie({}).Longest("b").length, 0U);
}

TEST(PieceText, SeparatesWords)
{
  const std::string text = "\u2581\u2581a\u2581b\u2581";
  EXPECT_EQ(NextWord(text, 0), 7U);
  EXPECT_EQ(NextWord(text, 7), 11U);
  EXPECT_EQ(NextWord(text, 11), 14U);
  EXPECT_EQ(NextWord("a", 0), 1U);
  EXPECT_EQ(NextWord("a\u2581", 0), 1U);
  EXPECT_EQ(PieceText("<0x0A>"), "\n");
  EXPECT_EQ(PieceText("<0x0a>"), "<0x0a>");
  EXPECT_EQ(PieceText("\u2581a\u2581"), " a ");
  EXPECT_EQ(BytePiece(0xAB), "<0xAB>");
}

/// A vocab.json of all bytes, then more.
std::string ByteVocabulary(const std::vector<std::string>& more)
{
  return VocabularyOf(ByteTokens(more)).dump();
}

TEST(VocabularyFolder, OfRobertaHasItsFrame)
{
  const TokenizerFolder folder(
    { { "vocab.json", ByteVocabulary({ "<s>", "<pad>", "</s>", "<unk>", "<mask>" }) },
      { "merges.txt", "#version: 0.2\n" }, { "config.json", R"({"model_type":"roberta"})" } });
  const Tokenizer tokenizer = folder.Read();
  EXPECT_THAT(tokenizer.Encode("a <mask>", true).ids, ElementsAre(256, 'a', 260, 258));
  EXPECT_THAT(tokenizer.EncodePair("a", "b", true).ids, ElementsAre(256, 'a', 258, 258, 'b', 258));
  folder.Write({ { "vocab.json", ByteVocabulary({ "<s>" }) } });
  EXPECT_THAT(folder.Refusal(),
    HasSubstr("vocab.json: the vocabulary has no token '</s>', which the model adds to texts"));
}

TEST(VocabularyFolder, OfOptBeginsWithItsToken)
{
  const TokenizerFolder folder({ { "vocab.json", ByteVocabulary({ "<pad>", "</s>" }) },
    { "merges.txt", "" },
    { "tokenizer_config.json",
      R"({"tokenizer_class":"GPT2Tokenizer","add_bos_token":true,"bos_token":{"content":"</s>"}})" } });
  EXPECT_THAT(folder.Read().Encode("a</s>", true).ids, ElementsAre(257, 'a', 257));
}

TEST(VocabularyFolder, OfClipMarksTheEndsOfWords)
{
  const TokenizerFolder folder({ { "vocab.json", ByteVocabulary({ "t</w>", "at</w>", "cat</w>",
                                                   "!</w>", "<|startoftext|>", "<|endoftext|>" }) },
    { "merges.txt", "#version: 0.2\na t</w>\nc at</w>\n" },
    { "tokenizer_config.json", R"({"tokenizer_class":"CLIPTokenizer"})" } });
  const Tokenizer tokenizer = folder.Read();
  EXPECT_THAT(MessageOf<FormatError>([&] { tokenizer.Encode("b", false); }), HasSubstr("0x62"));
  EXPECT_THAT(tokenizer.Encode("Cat! cat", true).ids, ElementsAre(260, 258, 259, 258, 261));
  EXPECT_EQ(tokenizer.Decode({ 258, 259 }), "cat ! ");
}

/// The texts of T5's model, whose pieces have other ids here: those from the end.
TEST(MarianTokenizer, PiecesHaveTheIdsOfTheVocabulary)
{
  const std::string model = ReadBytes(Folder / "spm-t5" / "tokenizer.model");
  std::vector<std::string> tokens = ParseSentencePieceModel(model, "model").tokens;
  const auto last = static_cast<std::int64_t>(tokens.size()) - 1;
  std::reverse(tokens.begin(), tokens.end());
  const Tokenizer tokenizer =
    TokenizerFolder({ { "source.spm", model }, { "vocab.json", VocabularyOf(tokens).dump() } })
      .Read();
  EXPECT_EQ(tokenizer.VocabularySize(), last + 1);
  std::size_t compared = 0;
  for (const json& item : CasesOf("spm-t5"))
  {
    Ids ids = item.at("ids_with_special").get<Ids>();
    if (*std::max_element(ids.begin(), ids.end()) > last)
    {
      continue; // <extra_id_0> of T5
    }
    for (std::int64_t& id : ids)
    {
      id = last - id;
    }
    const auto text = item.at("text").get<std::string>();
    EXPECT_EQ(tokenizer.Encode(text, true).ids, ids) << text;
    ids.pop_back();
    EXPECT_EQ(tokenizer.Decode(ids), item.at("decoded").get<std::string>()) << text;
    ++compared;
  }
  EXPECT_GE(compared, 50U);
}

/// A piece without an id is split off and unknown, as in the original code; here each seventh.
TEST(MarianTokenizer, PiecesThatTheVocabularyLacksAreUnknown)
{
  const std::string model = ReadBytes(Folder / "spm-t5" / "tokenizer.model");
  const std::vector<std::string> pieces = ParseSentencePieceModel(model, "model").tokens;
  std::vector<std::string> kept;
  Ids numbers; // by the id of the model
  for (std::size_t i = 0; i < pieces.size(); ++i)
  {
    const bool isKept = i < 10 || i % 7 != 0;
    numbers.push_back(isKept ? static_cast<std::int64_t>(kept.size()) : -1);
    if (isKept)
    {
      kept.push_back(pieces[i]);
    }
  }
  const std::int64_t unknown =
    std::find(kept.begin(), kept.end(), std::string("<unk>")) - kept.begin();
  const Tokenizer tokenizer =
    TokenizerFolder({ { "source.spm", model }, { "vocab.json", VocabularyOf(kept).dump() } })
      .Read();
  std::size_t changed = 0;
  for (const json& item : CasesOf("spm-t5"))
  {
    Ids ids = item.at("ids_with_special").get<Ids>();
    if (*std::max_element(ids.begin(), ids.end()) >= static_cast<std::int64_t>(pieces.size()))
    {
      continue; // <extra_id_0> of T5
    }
    for (std::int64_t& id : ids)
    {
      changed += numbers[id] < 0 ? 1 : 0;
      id = numbers[id] < 0 ? unknown : numbers[id];
    }
    EXPECT_EQ(tokenizer.Encode(item.at("text").get<std::string>(), true).ids, ids);
  }
  EXPECT_GE(changed, 50U);
}

/// Both languages share ids, but texts of each are split by its own model.
TEST(MarianTokenizer, TargetsAreSplitByTheirOwnModel)
{
  const TokenizerFolder folder(
    { { "source.spm", SentencePieceFile({ { "<unk>", 0, 2 }, { "<s>", 0, 3 }, { "</s>", 0, 3 },
                        { "\u2581ab", -1 }, { "\u2581", -3 }, { "a", -2 }, { "b", -2 } }) },
      { "target.spm",
        SentencePieceFile({ { "<unk>", 0, 2 }, { "<s>", 0, 3 }, { "</s>", 0, 3 }, { "\u2581a", -1 },
          { "\u2581", -3 }, { "a", -2 }, { "b", -2 }, { "c", -4 } }) },
      { "vocab.json", VocabularyOf({ "</s>", "<unk>", "a", "b", "\u2581ab", "\u2581a", "\u2581",
                                     "c", ">>fra<<", "<pad>" })
                        .dump() } });
  const Tokenizer source = folder.Read();
  const Tokenizer target = ReadTargetTokenizer(folder.Path());
  EXPECT_THAT(source.Encode("ab b", true).ids, ElementsAre(4, 6, 3, 0));
  EXPECT_THAT(target.Encode("ab b", true).ids, ElementsAre(5, 3, 6, 3, 0));
  EXPECT_THAT(source.Encode("abc", true).ids, ElementsAre(4, 1, 0)); // c is of the target
  EXPECT_THAT(target.Encode("abc", true).ids, ElementsAre(5, 3, 7, 0));
  EXPECT_THAT(source.Encode(">>fra<< ab", true).ids, ElementsAre(8, 4, 0));
  EXPECT_EQ(source.Decode({ 5, 3, 7 }), "abc");
  EXPECT_EQ(source.Label(5), " a");
  EXPECT_THAT(ReadTargetTokenizer(Folder / "spm-t5").Encode("a", true).ids,
    ElementsAreArray(ReadTokenizer(Folder / "spm-t5").Encode("a", true).ids));
}

/// Each language has ids of its own.
TEST(MarianTokenizer, TargetsMayHaveAVocabularyOfTheirOwn)
{
  const std::string model =
    SentencePieceFile({ { "<unk>", 0, 2 }, { "a", -2 }, { "b", -2 }, { "\u2581", -3 } });
  const TokenizerFolder folder({ { "source.spm", model }, { "target.spm", model },
    { "vocab.json", VocabularyOf({ "</s>", "<unk>", "a", "b", "\u2581" }).dump() },
    { "target_vocab.json",
      VocabularyOf({ "b", "a", "\u2581", "</s>", "<unk>", "<pad>" }).dump() } });
  const Tokenizer source = folder.Read();
  const Tokenizer target = ReadTargetTokenizer(folder.Path());
  EXPECT_THAT(source.Encode("ab", true).ids, ElementsAre(4, 2, 3, 0));
  EXPECT_THAT(target.Encode("abc", true).ids, ElementsAre(2, 1, 0, 4, 3));
  EXPECT_EQ(source.Label(2), target.Label(1));
  EXPECT_EQ(target.VocabularySize(), 6);
  folder.Write({ { "target_vocab.json", "[]" } });
  EXPECT_THAT(MessageOf<FormatError>([&] { ReadTargetTokenizer(folder.Path()); }),
    HasSubstr("target_vocab.json"));
}

TEST(MarianTokenizer, VocabulariesThatDoNotFitAreRefused)
{
  const TokenizerFolder folder(
    { { "source.spm", SentencePieceFile({ { "<unk>", 0, 2 }, { "a", -2 } }) } });
  const auto refusal = [&](const std::string& vocabulary)
  {
    folder.Write({ { "vocab.json", vocabulary } });
    return folder.Refusal();
  };
  EXPECT_THAT(refusal(R"({"a": 0, "</s>": 1})"),
    HasSubstr("vocab.json: expected a token '<unk>', found none"));
  EXPECT_THAT(refusal(R"({"a": 0, "<unk>": 1})"),
    HasSubstr("vocab.json: expected a token '</s>', found none"));
  EXPECT_THAT(refusal(R"({"a": 0, "<unk>": 1, "</s>": 3})"),
    HasSubstr("vocab.json: expected a token of each id below 4, found none of 2"));
  EXPECT_THAT(refusal("[]"), HasSubstr("vocab.json"));
  folder.Write({ { "source.spm", "no model" } });
  EXPECT_THAT(refusal(R"({"a": 0, "<unk>": 1, "</s>": 2})"), HasSubstr("source.spm"));
}

}
