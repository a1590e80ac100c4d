#include "Text/TokenizerFile.h"

#include "Base/Utf8Text.h"
#include "Files/Safetensors.h"
#include "Refusals.h"
#include "TokenizerOracle.h"

#include <cstring>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace atlas;
using namespace atlas::test;
using nlohmann::json;
using namespace testing;
using namespace std::string_literals;

namespace
{

const std::filesystem::path Folder =
  std::filesystem::path(ATLAS_ORACLE_DIR) / "transformers/tokenizers";

// OriginalTokenizer: the original vocabularies, and what the original code made of some texts.

Tokenizer Gpt2()
{
  return ParseBytePairTokenizer(ReadBytes(Folder / "gpt2-vocab.json"), "vocab.json",
    ReadBytes(Folder / "gpt2-merges.txt"), "merges.txt");
}

Tokenizer Bert()
{
  return ParseWordPieceTokenizer(ReadBytes(Folder / "bert-vocab.txt"), "vocab.txt");
}

json Cases()
{
  return json::parse(ReadBytes(Folder / "cases.json"));
}

json BertJson()
{
  json file = json::parse(R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[],
    "normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,
      "strip_accents":null,"lowercase":true},
    "pre_tokenizer":{"type":"BertPreTokenizer"},
    "post_processor":{"type":"TemplateProcessing",
      "single":[{"SpecialToken":{"id":"[CLS]","type_id":0}},{"Sequence":{"id":"A","type_id":0}},
        {"SpecialToken":{"id":"[SEP]","type_id":0}}],
      "pair":[{"SpecialToken":{"id":"[CLS]","type_id":0}},{"Sequence":{"id":"A","type_id":0}},
        {"SpecialToken":{"id":"[SEP]","type_id":0}},{"Sequence":{"id":"B","type_id":1}},
        {"SpecialToken":{"id":"[SEP]","type_id":1}}],
      "special_tokens":{"[CLS]":{"id":"[CLS]","ids":[101],"tokens":["[CLS]"]},
        "[SEP]":{"id":"[SEP]","ids":[102],"tokens":["[SEP]"]}}},
    "decoder":{"type":"WordPiece","prefix":"##","cleanup":true},
    "model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##",
      "max_input_chars_per_word":100}})");
  const std::vector<std::string> lines = SplitLines(ReadBytes(Folder / "bert-vocab.txt"));
  for (std::size_t id = 0; id < lines.size(); ++id)
  {
    file["model"]["vocab"][lines[id]] = id;
    if (lines[id].front() == '[' && lines[id].back() == ']' &&
        lines[id].compare(0, 7, "[unused") != 0 && lines[id].size() > 2)
    {
      file["added_tokens"].push_back(
        { { "id", id }, { "content", lines[id] }, { "single_word", false }, { "lstrip", false },
          { "rstrip", false }, { "normalized", false }, { "special", true } });
    }
  }
  return file;
}

void ExpectBertCases(const Tokenizer& tokenizer)
{
  const json cases = Cases();
  for (const json& item : cases)
  {
    const auto text = item.at("text").get<std::string>();
    SCOPED_TRACE(text);
    const Encoding with = tokenizer.Encode(text, true);
    const Encoding without = tokenizer.Encode(text, false);
    EXPECT_EQ(with.ids, item.at("bert").get<Ids>());
    EXPECT_EQ(without.tokens, item.at("bert_tokens").get<std::vector<std::string>>());
    EXPECT_EQ(with.types, std::vector<std::int32_t>(with.ids.size(), 0));
    EXPECT_EQ(without.ids.size() + 2, with.ids.size());
  }
}

TEST(OriginalTokenizer, BytePairsOfGpt2)
{
  const Tokenizer tokenizer = Gpt2();
  const json cases = Cases();
  EXPECT_GE(cases.size(), 36U);
  for (const json& item : cases)
  {
    const auto text = item.at("text").get<std::string>();
    SCOPED_TRACE(text);
    const auto expected = item.at("gpt2").get<Ids>();
    EXPECT_EQ(tokenizer.Encode(text, false).ids, expected);
    EXPECT_EQ(tokenizer.Encode(text, true).ids, expected);
    EXPECT_EQ(tokenizer.EncodePrompt(text, true).ids, expected);
    EXPECT_EQ(tokenizer.Decode(expected), text);
  }
}

TEST(OriginalTokenizer, WordPiecesOfBert)
{
  ExpectBertCases(Bert());
  ExpectBertCases(ParseTokenizer(BertJson().dump(), "tokenizer.json"));
}

TEST(OriginalTokenizer, IsFoundInADirectory)
{
  const TokenizerFolder folder;
  std::filesystem::copy(Folder / "bert-vocab.txt", folder / "vocab.txt");
  EXPECT_EQ(folder.Read().Kind(), "WordPiece");
  std::filesystem::copy(Folder / "gpt2-vocab.json", folder / "vocab.json");
  std::filesystem::copy(Folder / "gpt2-merges.txt", folder / "merges.txt");
  EXPECT_EQ(folder.Read().Kind(), "byte-level BPE");
  folder.Write({ { "tokenizer.json", BertJson().dump() } });
  EXPECT_EQ(folder.Read().Kind(), "WordPiece");
}

TEST(OriginalTokenizer, PairsHaveSegments)
{
  for (const Tokenizer& bert : { Bert(), ParseTokenizer(BertJson().dump(), "tokenizer.json") })
  {
    ASSERT_TRUE(bert.HasSegments());
    const Encoding with = bert.EncodePrompt("the users\tto", true);
    EXPECT_THAT(with.tokens, ElementsAre("[CLS]", "the", "users", "[SEP]", "to", "[SEP]"));
    EXPECT_THAT(with.ids, ElementsAre(101, 1996, 5198, 102, 2000, 102));
    EXPECT_THAT(with.types, ElementsAre(0, 0, 0, 0, 1, 1));
    const Encoding without = bert.EncodePair("the users", "to", false);
    EXPECT_THAT(without.ids, ElementsAre(1996, 5198, 2000));
    EXPECT_THAT(without.types, ElementsAre(0, 0, 1));
    EXPECT_THAT(bert.EncodePrompt("\t", true).ids, ElementsAre(101, 102, 102));
    EXPECT_THAT(MessageOf<FormatError>([&] { bert.EncodePrompt("a\tb\tc", true); }),
      HasSubstr("expected one or two segments, separated by a tab, found more"));
  }
}

TEST(OriginalTokenizer, TokensOfGpt2AreTheirText)
{
  const Tokenizer gpt2 = Gpt2();
  EXPECT_FALSE(gpt2.HasSegments());
  for (const char* name : { "prompt0", "prompt1", "prompt2" })
  {
    const SafetensorsFile prompt(
      std::filesystem::path(ATLAS_ORACLE_DIR) / "gpt2" / (name + ".safetensors"s));
    const Metadata& metadata = prompt.GetMetadata();
    const Encoding encoding = gpt2.Encode(metadata.at("prompt"), false);
    EXPECT_EQ(encoding.ids, prompt.GetTensors().at("token_ids").ToInteger());
    EXPECT_EQ(encoding.tokens, json::parse(metadata.at("tokens")).get<std::vector<std::string>>());
  }
  EXPECT_EQ(gpt2.Label(33768), "\xef\xbf\xbd"); // a part of a character
  EXPECT_EQ(gpt2.Label(50256), "<|endoftext|>");
  EXPECT_EQ(gpt2.VocabularySize(), 50257);
  EXPECT_EQ(gpt2.IdOf("\xc4\xa0the"), 262);
  EXPECT_EQ(gpt2.IdOf("no such token"), std::nullopt);
}

TEST(OriginalTokenizer, WordPiecesAreReadWithSpacesBetweenWords)
{
  EXPECT_EQ(Bert().Decode({ 101, 2951, 5107, 3989, 7861, 11452, 2015, 5198, 102 }),
    "[CLS] data visualization empowers users [SEP]");
  EXPECT_EQ(Bert().VocabularySize(), 30522);
}

/// Difficult UTF-8 text: characters from every plane, controls, marks, and spaces of all kinds.
std::string RandomText(std::mt19937_64& random, std::size_t characters)
{
  static const std::vector<std::string> parts = { "a", "B", "the", " ", "  ", "\n", "\t", "'s", "'",
    "1", "23", "\xc3\xa9", "e\xcc\x81", "\xe2\x80\xa8", "\xe3\x80\x80", "\xe6\x97\xa5",
    "\xf0\x9f\x98\x80", "\xe2\x80\x8d", "\xc2\x85", "\x7f", "\x01", "\xf4\x8f\xbf\xbf",
    "\xed\x9f\xbf", "\xef\xbf\xbe", "\xe1\xa0\x8e", "\xc2\xbd", "<|endoftext|>", "<|", "..." };
  std::string text;
  for (std::size_t i = 0; i < characters; ++i)
  {
    text += parts[random() % parts.size()];
  }
  return text;
}

TEST(OriginalTokenizer, DecodingGivesTheTextBack)
{
  const Tokenizer gpt2 = Gpt2();
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i)
  {
    const std::string text = RandomText(random, random() % 60);
    const Encoding encoding = gpt2.Encode(text, false);
    ASSERT_EQ(gpt2.Decode(encoding.ids), text);
    ASSERT_EQ(encoding.tokens.size(), encoding.ids.size());
    ASSERT_EQ(encoding.types.size(), encoding.ids.size());
  }
}

/// In a time that grows with the length: the limit of the test's time would be exceeded.
TEST(OriginalTokenizer, LongTextsAndWordsAreEncoded)
{
  const Tokenizer gpt2 = Gpt2();
  const Tokenizer bert = Bert();
  for (const char* part : { "a", " ", "1", "!", "\n", "\xc3\xa9", "\xe6\x97\xa5", "'s", "ab " })
  {
    std::string text;
    while (text.size() < 1'000'000)
    {
      text += part;
    }
    EXPECT_EQ(gpt2.Decode(gpt2.Encode(text, false).ids), text) << part;
    EXPECT_GE(bert.Encode(text, true).ids.size(), 2U) << part;
  }
}

TEST(OriginalTokenizer, ThreadsShareOneTokenizer)
{
  const Tokenizer gpt2 = Gpt2();
  std::mt19937_64 random(3);
  std::vector<std::string> texts(200);
  std::vector<std::vector<std::int64_t>> expected;
  for (std::string& text : texts)
  {
    text = RandomText(random, 40);
    expected.push_back(gpt2.Encode(text, false).ids);
  }
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (int& count : wrong)
  {
    threads.emplace_back(
      [&]
      {
        for (std::size_t i = 0; i < texts.size(); ++i)
        {
          count += gpt2.Encode(texts[i], false).ids != expected[i] ? 1 : 0;
        }
      });
  }
  for (std::thread& thread : threads)
  {
    thread.join();
  }
  EXPECT_THAT(wrong, testing::Each(0));
}

// The tests below need no oracle: they use vocabularies of a few tokens.

const std::string Space = "\xc4\xa0"; // how byte-level vocabularies write it

/// A byte-level tokenizer.json with the tokens ab (256), abc (257) and " ab" (258).
json SmallBytePairs()
{
  json file = json::parse(R"({"added_tokens":[],"normalizer":null,
    "pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},"post_processor":null,
    "model":{"type":"BPE","merges":["a b","ab c"]}})");
  file["model"]["vocab"] = VocabularyOf(ByteTokens({ "ab", "abc", Space + "ab" }));
  file["model"]["merges"].push_back(Space + " ab");
  return file;
}

json SmallWordPieces()
{
  return json::parse(R"({"normalizer":{"type":"BertNormalizer"},
    "pre_tokenizer":{"type":"BertPreTokenizer"},
    "model":{"type":"WordPiece","vocab":{"[UNK]":0,"[CLS]":1,"[SEP]":2,"a":3,"##b":4,"ab":5}}})");
}

std::vector<std::string> Tokens(const json& file, const std::string& text)
{
  return ParseTokenizer(file.dump(), "t.json").Encode(text, false).tokens;
}

TEST(Tokenizer, HasByteTokensForEverything)
{
  const Tokenizer tokenizer = ParseTokenizer(SmallBytePairs().dump(), "t.json");
  std::string text;
  for (char c = 1; c > 0 && c < 127; ++c)
  {
    text += c;
  }
  text += "\xc3\xa9\0"s;
  EXPECT_EQ(tokenizer.Decode(tokenizer.Encode(text, true).ids), text);
  EXPECT_THAT(tokenizer.Encode("abc ab b", false).tokens, ElementsAre("abc", " ab", " ", "b"));
  EXPECT_THAT(tokenizer.Encode("abc ab b", false).ids, ElementsAre(257, 258, ' ', 'b'));
}

TEST(Tokenizer, BeginsWithASpaceIfAsked)
{
  json file = SmallBytePairs();
  file["pre_tokenizer"]["add_prefix_space"] = true;
  EXPECT_THAT(Tokens(file, "ab"), ElementsAre(" ab"));
  EXPECT_THAT(Tokens(file, " ab"), ElementsAre(" ab"));
  EXPECT_THAT(Tokens(file, ""), IsEmpty());
}

json Added(const std::string& content, std::int64_t id, const json& more = json::object())
{
  json token = { { "content", content }, { "id", id } };
  token.update(more);
  return token;
}

TEST(Tokenizer, LongestAddedTokenWins)
{
  json file = SmallBytePairs();
  file["added_tokens"] = { Added("<s>", 300), Added("<s><s>", 301), Added("s", 's') };
  EXPECT_THAT(Tokens(file, "<s><s><s>as"), ElementsAre("<s><s>", "<s>", "a", "s"));
  EXPECT_EQ(ParseTokenizer(file.dump(), "t.json").VocabularySize(), 302);
}

TEST(Tokenizer, BloomSplitsAtItsOwnExpression)
{
  json file = SmallBytePairs();
  file["pre_tokenizer"] = json::parse(R"({"type":"Sequence","pretokenizers":[
    {"type":"Split","pattern":{"Regex":" ?[^(\\s|[.,!?…。，、।۔،])]+"},"behavior":"Isolated",
     "invert":false},
    {"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]})");
  EXPECT_THAT(Tokens(file, "ab c ab"), ElementsAre("ab", " ", "c", " ab"));
  EXPECT_THAT(Tokens(file, "ab,ab|abc"), ElementsAre("ab", ",", "ab", "|", "abc"));
  EXPECT_THAT(Tokens(file, "a[b"), ElementsAre("a", "[", "b"));
}

TEST(Tokenizer, SplitsAreKeptOrRemoved)
{
  json file = SmallBytePairs();
  const auto split = [&](const std::string& pattern, const char* behavior, bool invert)
  {
    file["pre_tokenizer"] = { { "type", "Sequence" },
      { "pretokenizers",
        { { { "type", "Split" }, { "pattern", { { "String", pattern } } }, { "behavior", behavior },
            { "invert", invert } },
          { { "type", "ByteLevel" }, { "add_prefix_space", false }, { "use_regex", false } } } } };
    return Tokens(file, "ab.ab");
  };
  EXPECT_THAT(split(".", "Isolated", false), ElementsAre("ab", ".", "ab"));
  EXPECT_THAT(split(".", "Removed", false), ElementsAre("ab", "ab"));
  EXPECT_THAT(split(".", "Removed", true), ElementsAre("."));
  EXPECT_THAT(split("b.", "Isolated", false), ElementsAre("a", "b", ".", "ab"));
  file["model"]["vocab"].update({ { "ab.", 300 }, { ".ab", 301 } });
  file["model"]["merges"] = { "a b", ". ab", "ab ." };
  EXPECT_THAT(split(".", "Isolated", false), ElementsAre("ab", ".", "ab"));
  EXPECT_THAT(split(".", "MergedWithPrevious", false), ElementsAre("ab.", "ab"));
  EXPECT_THAT(split(".", "MergedWithNext", false), ElementsAre("ab", ".ab"));
  EXPECT_THAT(split("a", "Contiguous", true), ElementsAre("a", "b", ".", "a", "b"));
}

TEST(Tokenizer, RobertaFramesPairsWithoutTypes)
{
  json file = SmallBytePairs();
  file["added_tokens"] = { Added("<s>", 300), Added("</s>", 301) };
  file["post_processor"] =
    json::parse(R"({"type":"RobertaProcessing","sep":["</s>",301],"cls":["<s>",300]})");
  const Tokenizer tokenizer = ParseTokenizer(file.dump(), "t.json");
  EXPECT_THAT(tokenizer.Encode("ab", true).ids, ElementsAre(300, 256, 301));
  const Encoding pair = tokenizer.EncodePair("ab", "abc", true);
  EXPECT_THAT(pair.ids, ElementsAre(300, 256, 301, 301, 257, 301));
  EXPECT_THAT(pair.types, testing::Each(0));
  EXPECT_THAT(tokenizer.EncodePrompt("ab\tab", false).tokens, ElementsAre("ab", "\t", "ab"));
}

TEST(Tokenizer, CasedModelsKeepCaseAndAccents)
{
  const std::string vocabulary = "[UNK]\n[CLS]\n[SEP]\nE\n\xc3\x89\ne\n\xc3\xa9\n";
  const auto encode = [&](const WordPieceOptions& options)
  { return ParseWordPieceTokenizer(vocabulary, "v", options).Encode("E \xc3\x89", false).tokens; };
  EXPECT_THAT(encode({}), ElementsAre("e", "e"));
  EXPECT_THAT(encode({ false, {}, true }), ElementsAre("E", "\xc3\x89"));
  EXPECT_THAT(encode({ false, true, true }), ElementsAre("E", "E"));
  EXPECT_THAT(encode({ true, false, true }), ElementsAre("e", "\xc3\xa9"));
}

TEST(Tokenizer, ReadsSettingsOfADirectory)
{
  const TokenizerFolder folder({ { "vocab.txt", "[UNK]\r\n[CLS]\r\n[SEP]\r\nA\r\na" } });
  EXPECT_THAT(folder.Read().Encode("A", false).tokens, ElementsAre("a"));
  folder.Write({ { "tokenizer_config.json", R"({"do_lower_case":false})" } });
  EXPECT_THAT(folder.Read().Encode("A", true).ids, ElementsAre(1, 3, 2));

  folder.Write({ { "vocab.json", VocabularyOf(ByteTokens({ "ab", Space + "a" })).dump() },
    { "merges.txt", "#version: 0.2\r\na b\r\n" + Space + " a\r\n" },
    { "tokenizer_config.json", R"({"add_prefix_space":true})" },
    { "added_tokens.json", R"({"<pad>":258})" } });
  EXPECT_THAT(folder.Read().Encode("ab<pad>a", false).ids, ElementsAre(' ', 256, 258, 257));
  folder.Write({ { "tokenizer_config.json", R"({"tokenizer_class":"OtherTokenizer"})" } });
  EXPECT_THAT(
    folder.Refusal(), AllOf(HasSubstr("tokenizer_class"), HasSubstr("found \"OtherTokenizer\"")));
}

TEST(Tokenizer, RefusesADirectoryWithoutOne)
{
  const TemporaryDirectory folder;
  const auto refusal = [&] { return MessageOf<FileError>([&] { ReadTokenizer(folder.Path()); }); };
  EXPECT_THAT(refusal(), AllOf(StartsWith(folder.Path().string() + ": "),
                           HasSubstr("tokenizer.json, a model of SentencePiece (tokenizer.model"),
                           HasSubstr("found none of them")));
  WriteBytes(folder / "vocab.json", "{}");
  EXPECT_THAT(
    refusal(), HasSubstr("vocab.json: a vocabulary for byte pair encoding needs merges.txt"));
}

TEST(Tokenizer, RefusesTextThatIsNotUtf8)
{
  const Tokenizer tokenizer = ParseTokenizer(SmallBytePairs().dump(), "t.json");
  for (const std::string& text :
    { "ab\xff"s, "ab\xc3"s, "ab\x80"s, "ab\xed\xa0\x80"s, "ab\xc0\x80"s, "ab\xf4\x90\x80\x80"s })
  {
    EXPECT_THAT(MessageOf<FormatError>([&] { tokenizer.Encode(text, true); }),
      StartsWith("the text: expected UTF-8, found the byte 0x"));
    EXPECT_THAT(MessageOf<FormatError>([&] { tokenizer.EncodePair("a", text, true); }),
      HasSubstr(" at position 2."));
  }
}

TEST(Tokenizer, RefusesUnknownIds)
{
  const Tokenizer tokenizer = ParseTokenizer(SmallBytePairs().dump(), "t.json");
  EXPECT_EQ(MessageOf<OptionError>([&] { tokenizer.Decode({ 3, 259 }); }),
    "token id 259: expected an id of the vocabulary t.json, from 0 to 258.");
  EXPECT_THAT(MessageOf<OptionError>([&] { tokenizer.Label(-1); }), StartsWith("token id -1:"));
}

TEST(Tokenizer, DecodesPartsOfCharacters)
{
  const Tokenizer tokenizer = ParseTokenizer(SmallBytePairs().dump(), "t.json");
  std::vector<std::int64_t> ids = tokenizer.Encode("\xe6\x97\xa5"s + "a", false).ids;
  ASSERT_EQ(ids.size(), 4U);
  EXPECT_EQ(tokenizer.Decode({ ids[0], ids[1], ids[3] }), "\xef\xbf\xbd"s + "a");
}

TEST(Tokenizer, RefusesABytePairVocabularyWithoutAByte)
{
  json file = SmallBytePairs();
  file["model"]["vocab"].erase("z");
  EXPECT_THAT(MessageOf<FormatError>([&] { Tokens(file, "az"); }),
    HasSubstr("t.json: the vocabulary has no token for the byte 0x7a, which the text contains"));
  EXPECT_THAT(Tokens(file, "a"), ElementsAre("a"));
}

TEST(Tokenizer, WordsOfMoreThan100CharactersAreUnknown)
{
  const auto word = [](std::size_t length) { return "a" + std::string(length - 1, 'b'); };
  EXPECT_EQ(Tokens(SmallWordPieces(), word(100)).size(), 99U);
  EXPECT_THAT(Tokens(SmallWordPieces(), word(101)), ElementsAre("[UNK]"));
}

/// The setting of one part of a file.
std::string Part(const std::string& name, const std::string& value)
{
  return "{\"" + name + "\": " + value + "}";
}

std::string SplitAt(const std::string& expression)
{
  return Part("pre_tokenizer",
    R"({"type": "Split", "behavior": "Isolated", "pattern": {"Regex": ")" + expression + R"("}})");
}

std::string DeepSequence()
{
  std::string sequence = R"({"type": "ByteLevel"})";
  for (int i = 0; i < 40; ++i)
  {
    sequence = R"({"type": "Sequence", "pretokenizers": [)" + sequence + "]}";
  }
  return Part("pre_tokenizer", sequence);
}

/// A template with one item.
std::string Template(const std::string& item)
{
  return Part("post_processor", R"({"type": "TemplateProcessing", "single": [{)" + item +
                                  R"(}], "special_tokens": {"X": {"ids": [900]}}})");
}

TEST(Tokenizer, RefusesBadFiles)
{
  const auto model = [](const std::string& change) { return Part("model", "{" + change + "}"); };
  const auto added = [](const std::string& tokens) { return Part("added_tokens", tokens); };
  // changes of a good file, as JSON Merge Patch
  const std::vector<Refused> bad = { { R"({"model": null})",
                                       "model: expected the tokenizer's model" },
    { R"({"model": 3})", "model: expected an object, found 3" },
    { model(R"("type": "Other")"), "(BPE), Unigram, WordPiece or WordLevel, found Other" },
    { model(R"("type": "Unigram")"), "found Unigram on bytes" },
    { model(R"("type": "WordLevel")"), "found WordLevel on bytes" },
    { model(R"("type": "WordPiece", "unk_token": "a")"), "found WordPiece on bytes" },
    { model(R"("continuing_subword_prefix": "##")"),
      "continuing_subword_prefix: expected none in" },
    { model(R"("dropout": 0.1)"), "model.dropout: expected null" },
    { model(R"("vocab": null)"), "model.vocab: expected an object of tokens and their ids" },
    { model(R"("vocab": ["a"])"), "found array" },
    { model(R"("vocab": {"q": "7"})"), "token 'q': expected an integer, found \"7\"" },
    { model(R"("vocab": {"q": 7.5})"), "found 7.5" },
    { model(R"("vocab": {"q": 18446744073709551615})"), "found 18446744073709551615" },
    { model(R"("vocab": {"q": 2147483648})"), "from 0 to 2147483647, found 2147483648" },
    { model(R"("vocab": {"q": 256})"), "the id 256 belongs to token" },
    { model(R"("merges": null)"), "model.merges: a vocabulary for byte pair encoding needs its" },
    { model(R"("merges": 1)"), "model.merges: expected an array" },
    { model(R"("merges": ["ab"])"), "merge 0: expected a merge of two tokens" },
    { model(R"("merges": ["a b", "a b c"])"), "merge 1: expected a merge of two tokens" },
    { model(R"("merges": [["a", "b", "c"]])"), "model.merges[0]: expected a merge of two tokens" },
    { model(R"("merges": [[1, 2]])"), "merges[0][0]: expected a string, found 1" },
    { model(R"("merges": ["a zz"])"), "merge 0 'a zz': the vocabulary has no token 'azz'" },
    { model(R"("merges": ["ab d", "abd e"], "vocab": {"abde": 700})"),
      "merge 0 'ab d': the vocabulary has no token 'abd'" },
    { model(R"("merges": ["a b", "ab c", "a b"])"), "merge 2 'a b' is listed twice" },
    { Part("normalizer", R"({"type": "Other"})"), "unknown normalizer 'Other', expected one of" },
    { Part("normalizer", R"({"type": 3})"), "normalizer.type: expected a string, found 3" },
    { Part("normalizer", R"({"type": "BertNormalizer", "lowercase": 1})"),
      "normalizer.lowercase: expected true or false, found 1" },
    { Part("pre_tokenizer", R"({"type": "Other"})"), "unknown pre-tokenizer 'Other'" },
    { DeepSequence(), "at most 16 levels, found more" },
    { SplitAt("(a"), "cannot understand the regular expression '(a'" },
    { SplitAt("\\\\h+"), "has \\h, which is not supported" },
    { Part(
        "pre_tokenizer", R"({"type": "Split", "pattern": {"String": "a"}, "behavior": "Merged"})"),
      "MergedWithNext or Contiguous, found \"Merged\"" },
    { Part("post_processor", R"({"type": "Other"})"), "unknown post-processor 'Other'" },
    { Part("post_processor", R"({"type": "BertProcessing", "cls": ["a", 3, 4]})"),
      "cls: expected a token and its id, found array" },
    { Template(R"("Sequence": {"id": "A", "type_id": -1})"),
      "type_id: expected an integer from 0" },
    { Template(R"("Sequence": {"id": "B", "type_id": 0})"), "the sequence A, found \"B\"" },
    { Template(R"("SpecialToken": {"id": "X", "type_id": 0})"), "the special token's id 900" },
    { added("1"), "added_tokens: expected an array, found 1" },
    { added(R"([{"id": 1}])"), "added_tokens[0].content: expected a string" },
    { added(R"([{"id": 900, "content": ""}])"), "added token '': expected a text, found none" },
    { added(R"([{"id": -5, "content": "<s>"}])"), "an id from 0 to 2147483647, found -5" },
    { added(R"([{"id": 900, "content": "ab"}])"), "'ab': expected one id, found 256 and 900" },
    { added(R"([{"id": 900, "content": "<s>"}, {"id": 900, "content": "<t>"}])"),
      "'<t>': the id 900 belongs to token '<s>'" } };
  const auto read = [](const std::string& text) { ParseTokenizer(text, "t.json"); };
  ExpectRefusals<FormatError>(
    bad,
    [&](const std::string& patch)
    {
      json file = SmallBytePairs();
      file.merge_patch(json::parse(patch));
      read(file.dump());
    },
    "t.json: ");
  json pieces = SmallWordPieces();
  pieces["model"]["max_input_chars_per_word"] = -1;
  ExpectRefusals<FormatError>(
    { { pieces.dump(), "max_input_chars_per_word: expected an integer from 0 on, found -1" },
      { "[]", "expected the file to hold a JSON object, found" },
      { R"({"model": {"vocab": {"a": 1, "a": 2}}})", "the file has the name 'a' twice" },
      { "\xff", "the file is not JSON" } },
    read, "t.json: ");
}

TEST(Tokenizer, RefusesBadMergeFiles)
{
  const std::string vocabulary = VocabularyOf(ByteTokens({ "ab" })).dump();
  const std::vector<Refused> bad = { { "#version: 0.2\na b\nabc\n", "line 3: expected a merge" },
    { "a b \n", "line 1: expected a merge" }, { " ab\n", "line 1: expected a merge" },
    { "a c\n", "merge 0 'a c': the vocabulary has no token 'ac'" },
    { "a b\n\na b\n", "merge 1 'a b' is listed twice" },
    { "a \xff\n", "expected UTF-8, found the byte 0xff" } };
  ExpectRefusals<FormatError>(
    bad, [&](const std::string& merges)
    { ParseBytePairTokenizer(vocabulary, "vocab.json", merges, "merges.txt"); }, "merges.txt: ");
  EXPECT_THAT(
    MessageOf<FormatError>([&] { ParseBytePairTokenizer("[1]", "vocab.json", "", "merges.txt"); }),
    StartsWith("vocab.json: the vocabulary: expected an object"));
}

TEST(Tokenizer, RefusesBadWordPieceVocabularies)
{
  const std::vector<Refused> bad = { { "", "no unknown token '[UNK]'" },
    { "[UNK]\na\n", "no token '[CLS]', which the model adds to texts" },
    { "[UNK]\n\xff\n", "expected UTF-8, found the byte 0xff" } };
  ExpectRefusals<FormatError>(
    bad, [](const std::string& text) { ParseWordPieceTokenizer(text, "vocab.txt"); },
    "vocab.txt: ");
}

TEST(Tokenizer, OfEqualLinesTheLastOneCounts)
{
  const Tokenizer tokenizer = ParseWordPieceTokenizer("[UNK]\n[CLS]\na\na\n[SEP]\n", "vocab.txt");
  EXPECT_THAT(tokenizer.Encode("a", true).ids, ElementsAre(1, 3, 4));
  EXPECT_EQ(tokenizer.VocabularySize(), 5);
}

TEST(CharacterTokenizer, HasTheIdsOfNanoGpt)
{
  const Tokenizer tokenizer = ReadTokenizer(ModelsOracle("files/pt/checkpoints/nanogpt"));
  EXPECT_EQ(tokenizer.Encode("a b!\n", true).ids, (Ids{ 3, 1, 4, 2, 0 }));
  EXPECT_EQ(tokenizer.Decode({ 3, 1, 4, 2, 0 }), "a b!\n");
  EXPECT_THAT(MessageOf<FormatError>([&] { tokenizer.Encode("z", true); }), HasSubstr("meta.pkl"));
}

}
