#include "TokenizerFile.h"

#include "Error.h"
#include "ErrorMessage.h"
#include "ModelsOracle.h"
#include "Safetensors.h"
#include "TemporaryDirectory.h"

#include <cstring>
#include <random>
#include <sstream>
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

std::vector<std::string> Lines(const std::string& text)
{
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
  {
    lines.push_back(line);
  }
  return lines;
}

/// GPT-2's tokenizer.json as Hugging Face writes it; merges as strings (old) or pairs (new).
json Gpt2Json(bool pairs)
{
  json file = json::parse(R"({"version":"1.0","truncation":null,"padding":null,
    "added_tokens":[{"id":50256,"content":"<|endoftext|>","single_word":false,"lstrip":false,
      "rstrip":false,"normalized":false,"special":true}],
    "normalizer":null,
    "pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,
      "use_regex":true},
    "post_processor":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":false,
      "use_regex":true},
    "decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true},
    "model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":"",
      "end_of_word_suffix":"","fuse_unk":false,"byte_fallback":false,"merges":[]}})");
  file["model"]["vocab"] = json::parse(ReadBytes(Folder / "gpt2-vocab.json"));
  for (const std::string& line : Lines(ReadBytes(Folder / "gpt2-merges.txt")))
  {
    if (line[0] != '#')
    {
      const std::size_t space = line.find(' ');
      file["model"]["merges"].push_back(
        pairs ? json{ line.substr(0, space), line.substr(space + 1) } : json(line));
    }
  }
  return file;
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
  const std::vector<std::string> lines = Lines(ReadBytes(Folder / "bert-vocab.txt"));
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

void ExpectGpt2Cases(const Tokenizer& tokenizer)
{
  const json cases = Cases();
  EXPECT_GE(cases.size(), 36U);
  for (const json& item : cases)
  {
    const auto text = item.at("text").get<std::string>();
    SCOPED_TRACE(text);
    const auto expected = item.at("gpt2").get<std::vector<std::int64_t>>();
    EXPECT_EQ(tokenizer.Encode(text, false).ids, expected);
    EXPECT_EQ(tokenizer.Encode(text, true).ids, expected);
    EXPECT_EQ(tokenizer.EncodePrompt(text, true).ids, expected);
    EXPECT_EQ(tokenizer.Decode(expected), text);
  }
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
    EXPECT_EQ(with.ids, item.at("bert").get<std::vector<std::int64_t>>());
    EXPECT_EQ(without.tokens, item.at("bert_tokens").get<std::vector<std::string>>());
    EXPECT_EQ(with.types, std::vector<std::int32_t>(with.ids.size(), 0));
    EXPECT_EQ(without.ids.size() + 2, with.ids.size());
  }
}

TEST(OriginalTokenizer, BytePairsOfGpt2)
{
  ExpectGpt2Cases(Gpt2());
}

TEST(OriginalTokenizer, BytePairsOfGpt2ThroughTokenizerJson)
{
  ExpectGpt2Cases(ParseTokenizer(Gpt2Json(false).dump(), "tokenizer.json"));
}

TEST(OriginalTokenizer, BytePairsOfGpt2ThroughTokenizerJsonWithPairs)
{
  ExpectGpt2Cases(ParseTokenizer(Gpt2Json(true).dump(), "tokenizer.json"));
}

TEST(OriginalTokenizer, WordPiecesOfBert)
{
  ExpectBertCases(Bert());
}

TEST(OriginalTokenizer, WordPiecesOfBertThroughTokenizerJson)
{
  ExpectBertCases(ParseTokenizer(BertJson().dump(), "tokenizer.json"));
}

TEST(OriginalTokenizer, IsFoundInADirectory)
{
  const TemporaryDirectory folder;
  std::filesystem::copy(Folder / "bert-vocab.txt", folder / "vocab.txt");
  EXPECT_EQ(ReadTokenizer(folder.Path()).Kind(), "WordPiece");
  ExpectBertCases(ReadTokenizer(folder.Path()));
  std::filesystem::copy(Folder / "gpt2-vocab.json", folder / "vocab.json");
  std::filesystem::copy(Folder / "gpt2-merges.txt", folder / "merges.txt");
  EXPECT_EQ(ReadTokenizer(folder.Path()).Kind(), "byte-level BPE");
  ExpectGpt2Cases(ReadTokenizer(folder.Path()));
  WriteBytes(folder / "tokenizer.json", BertJson().dump());
  EXPECT_EQ(ReadTokenizer(folder.Path()).Kind(), "WordPiece");
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

TEST(OriginalTokenizer, LongTextsAndWordsTakeTheTimeOfTheirLength)
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

/// The 256 byte tokens with ids 0 ... 255 in the order of their characters, then `more`.
json ByteVocabulary(const std::vector<std::string>& more)
{
  json vocabulary;
  const auto add = [&](unsigned c)
  {
    const std::string token = c < 0x80 ? std::string(1, static_cast<char>(c))
                                       : std::string{ static_cast<char>(0xC0U | c >> 6U),
                                           static_cast<char>(0x80U | (c & 0x3FU)) };
    vocabulary[token] = vocabulary.size();
  };
  for (unsigned c = '!'; c <= '~'; ++c)
  {
    add(c);
  }
  for (unsigned c = 0xA1; c <= 0xFF; ++c)
  {
    if (c != 0xAD)
    {
      add(c);
    }
  }
  for (unsigned c = 0x100; c < 0x144; ++c)
  {
    add(c);
  }
  for (const std::string& token : more)
  {
    vocabulary[token] = vocabulary.size();
  }
  return vocabulary;
}

const std::string Space = "\xc4\xa0"; // how byte-level vocabularies write it

/// A byte-level tokenizer.json with the tokens ab (256), abc (257) and " ab" (258).
json SmallBytePairs()
{
  json file = json::parse(R"({"added_tokens":[],"normalizer":null,
    "pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},"post_processor":null,
    "model":{"type":"BPE","merges":["a b","ab c"]}})");
  file["model"]["vocab"] = ByteVocabulary({ "ab", "abc", Space + "ab" });
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
  EXPECT_THAT(tokenizer.Encode("abc ab b", false).ids, ElementsAre(257, 258, 220, 65));
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
  file["added_tokens"] = { Added("<s>", 300), Added("<s><s>", 301), Added("s", 82) };
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
  const TemporaryDirectory folder;
  WriteBytes(folder / "vocab.txt", "[UNK]\r\n[CLS]\r\n[SEP]\r\nA\r\na");
  EXPECT_THAT(ReadTokenizer(folder.Path()).Encode("A", false).tokens, ElementsAre("a"));
  WriteBytes(folder / "tokenizer_config.json", R"({"do_lower_case":false})");
  EXPECT_THAT(ReadTokenizer(folder.Path()).Encode("A", true).ids, ElementsAre(1, 3, 2));

  WriteBytes(folder / "vocab.json", ByteVocabulary({ "ab", Space + "a" }).dump());
  WriteBytes(folder / "merges.txt", "#version: 0.2\r\na b\r\n" + Space + " a\r\n");
  WriteBytes(folder / "tokenizer_config.json", R"({"add_prefix_space":true})");
  WriteBytes(folder / "added_tokens.json", R"({"<pad>":258})");
  EXPECT_THAT(
    ReadTokenizer(folder.Path()).Encode("ab<pad>a", false).ids, ElementsAre(220, 256, 258, 257));
  WriteBytes(folder / "tokenizer_config.json", R"({"tokenizer_class":"OtherTokenizer"})");
  EXPECT_THAT(MessageOf<FormatError>([&] { ReadTokenizer(folder.Path()); }),
    HasSubstr("tokenizer_class: expected GPT2Tokenizer, CodeGenTokenizer, RobertaTokenizer, "
              "BartTokenizer, Qwen2Tokenizer or CLIPTokenizer, or a file tokenizer.json that says "
              "how this one "
              "works, found \"OtherTokenizer\""));
}

TEST(Tokenizer, RefusesADirectoryWithoutOne)
{
  const TemporaryDirectory folder;
  const auto refusal = [&] { return MessageOf<FileError>([&] { ReadTokenizer(folder.Path()); }); };
  EXPECT_EQ(refusal(),
    folder.Path().string() +
      ": expected the tokenizer files tokenizer.json, tokenizer.model, "
      "vocab.json and merges.txt, "
      "vocab.txt, or meta.pkl, found none of them; token ids can be given instead of text.");
  WriteBytes(folder / "vocab.json", "{}");
  EXPECT_THAT(refusal(),
    HasSubstr("vocab.json: a vocabulary for byte pair encoding needs merges.txt beside it"));
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

/// A change to a valid tokenizer.json, and the expected message.
struct BadChange
{
  const char* name;
  json patch; ///< JSON Merge Patch
  const char* message;
  bool wordPieces = false;
  friend void PrintTo(const BadChange& bad, std::ostream* stream) { *stream << bad.name; }
};

using BadTokenizer = testing::TestWithParam<BadChange>;

json Model(const json& change)
{
  return { { "model", change } };
}

json PreTokenizer(const json& value)
{
  return { { "pre_tokenizer", value } };
}

json DeepSequence()
{
  json sequence = { { "type", "ByteLevel" } };
  for (int i = 0; i < 40; ++i)
  {
    sequence = { { "type", "Sequence" }, { "pretokenizers", json::array({ sequence }) } };
  }
  return sequence;
}

json SplitAt(const std::string& expression)
{
  return PreTokenizer({ { "type", "Split" }, { "pattern", { { "Regex", expression } } },
    { "behavior", "Isolated" } });
}

INSTANTIATE_TEST_SUITE_P(Model, BadTokenizer,
  testing::Values(
    BadChange{ "Missing", { { "model", nullptr } }, "model: expected the tokenizer's model" },
    BadChange{ "NoObject", { { "model", 3 } }, "model: expected an object, found 3" },
    BadChange{ "Kind", Model({ { "type", "Other" } }),
      "model: expected a tokenizer of byte pairs (BPE), Unigram, WordPiece or WordLevel, found "
      "Other, which is not supported; token ids can be given instead of text" },
    BadChange{ "UnigramOnBytes", Model({ { "type", "Unigram" } }), "found Unigram on bytes" },
    BadChange{ "WordLevelOnBytes", Model({ { "type", "WordLevel" } }), "found WordLevel on bytes" },
    BadChange{ "WordPieceOnBytes", Model({ { "type", "WordPiece" }, { "unk_token", "a" } }),
      "found WordPiece on bytes" },
    BadChange{ "Prefix", Model({ { "continuing_subword_prefix", "##" } }),
      "model.continuing_subword_prefix: expected none in BPE on bytes, found \"##\"" },
    BadChange{ "Dropout", Model({ { "dropout", 0.1 } }), "model.dropout: expected null" },
    BadChange{ "NoVocabulary", Model({ { "vocab", nullptr } }),
      "model.vocab: expected an object of tokens and their ids, found null" },
    BadChange{ "VocabularyArray", Model({ { "vocab", { "a" } } }), "found array" },
    BadChange{ "TextId", Model({ { "vocab", { { "q", "7" } } } }),
      "the id of token 'q': expected an integer, found \"7\"" },
    BadChange{ "FloatId", Model({ { "vocab", { { "q", 7.5 } } } }), "found 7.5" },
    BadChange{ "HugeId", Model({ { "vocab", { { "q", ~0ULL } } } }),
      "expected an integer, found 18446744073709551615" },
    BadChange{ "LargeId", Model({ { "vocab", { { "q", 1LL << 31U } } } }),
      "token 'q': expected an id from 0 to 2147483647, found 2147483648" },
    BadChange{ "NegativeId", Model({ { "vocab", { { "q", -1 } } } }), "found -1" },
    BadChange{
      "SharedId", Model({ { "vocab", { { "q", 256 } } } }), "the id 256 belongs to token" },
    BadChange{ "NoMerges", Model({ { "merges", nullptr } }),
      "model.merges: a vocabulary for byte pair encoding needs its merges, found none" },
    BadChange{ "MergesObject", Model({ { "merges", 1 } }), "model.merges: expected an array" },
    BadChange{ "MergeOfOne", Model({ { "merges", { "ab" } } }),
      "merge 0: expected a merge of two tokens separated by a space, found 'ab'" },
    BadChange{ "MergeOfThree", Model({ { "merges", { "a b", "a b c" } } }),
      "merge 1: expected a merge of two tokens" },
    BadChange{ "MergePairOfThree", Model({ { "merges", { { "a", "b", "c" } } } }),
      "model.merges[0]: expected a merge of two tokens, found array" },
    BadChange{ "MergeOfNumbers", Model({ { "merges", { { 1, 2 } } } }),
      "model.merges[0][0]: expected a string, found 1" },
    BadChange{ "MergeOfUnknown", Model({ { "merges", { "a zz" } } }),
      "merge 0 'a zz': the vocabulary has no token 'azz'" },
    BadChange{ "MergeOfUnknownParts",
      Model({ { "merges", { "ab d", "abd e" } }, { "vocab", { { "abde", 700 } } } }),
      "merge 0 'ab d': the vocabulary has no token 'abd'" },
    BadChange{ "MergeTwice", Model({ { "merges", { "a b", "ab c", "a b" } } }),
      "merge 2 'a b' is listed twice" }),
  [](const auto& bad) { return std::string(bad.param.name); });

INSTANTIATE_TEST_SUITE_P(Steps, BadTokenizer,
  testing::Values(BadChange{ "Normalizer", { { "normalizer", { { "type", "Other" } } } },
                    "normalizer: unknown normalizer 'Other', expected one of" },
    BadChange{ "NormalizerType", { { "normalizer", { { "type", 3 } } } },
      "normalizer.type: expected a string, found 3" },
    BadChange{ "NormalizerOption",
      { { "normalizer", { { "type", "BertNormalizer" }, { "lowercase", 1 } } } },
      "normalizer.lowercase: expected true or false, found 1" },
    BadChange{ "PreTokenizer", PreTokenizer({ { "type", "Other" } }),
      "pre_tokenizer: unknown pre-tokenizer 'Other'" },
    BadChange{ "Deep", PreTokenizer(DeepSequence()), "at most 16 levels, found more" },
    BadChange{ "Expression", SplitAt("(a"), "cannot understand the regular expression '(a'" },
    BadChange{ "UnknownProperty", SplitAt("\\p{Nonsense}"), "cannot understand" },
    BadChange{ "Bytes", SplitAt("\\C"), "cannot understand" },
    BadChange{ "HexDigits", SplitAt("\\h+"), "has \\h, which is not supported" },
    BadChange{ "Behavior",
      PreTokenizer(
        { { "type", "Split" }, { "pattern", { { "String", "a" } } }, { "behavior", "Merged" } }),
      "pre_tokenizer.behavior: expected Isolated, Removed, MergedWithPrevious, MergedWithNext or "
      "Contiguous, found \"Merged\"" },
    BadChange{ "PostProcessor", { { "post_processor", { { "type", "Other" } } } },
      "post_processor: unknown post-processor 'Other'" },
    BadChange{ "TemplateType",
      { { "post_processor",
        { { "type", "TemplateProcessing" },
          { "single", { { { "Sequence", { { "id", "A" }, { "type_id", -1 } } } } } } } } },
      "type_id: expected an integer from 0 to 2^31 - 1, found -1" },
    BadChange{ "TemplateSequence",
      { { "post_processor",
        { { "type", "TemplateProcessing" },
          { "single", { { { "Sequence", { { "id", "B" }, { "type_id", 0 } } } } } } } } },
      "expected the sequence A, found \"B\"" },
    BadChange{ "TemplateToken",
      { { "post_processor",
        { { "type", "TemplateProcessing" },
          { "single", { { { "SpecialToken", { { "id", "X" }, { "type_id", 0 } } } } } },
          { "special_tokens", { { "X", { { "ids", { 900 } } } } } } } } },
      "post_processor.special_tokens.X.ids[0]: the special token's id 900 is not in the "
      "vocabulary" },
    BadChange{ "Framing",
      { { "post_processor", { { "type", "BertProcessing" }, { "cls", { "a", 3, 4 } } } } },
      "post_processor.cls: expected a token and its id, found array" }),
  [](const auto& bad) { return std::string(bad.param.name); });

INSTANTIATE_TEST_SUITE_P(AddedTokens, BadTokenizer,
  testing::Values(
    BadChange{ "NoArray", { { "added_tokens", 1 } }, "added_tokens: expected an array, found 1" },
    BadChange{ "NoContent", { { "added_tokens", { { { "id", 1 } } } } },
      "added_tokens[0].content: expected a string, found null" },
    BadChange{ "Empty", { { "added_tokens", { Added("", 900) } } },
      "added token '': expected a text, found none" },
    BadChange{ "Negative", { { "added_tokens", { Added("<s>", -5) } } },
      "added token '<s>': expected an id from 0 to 2147483647, found -5" },
    BadChange{ "OtherId", { { "added_tokens", { Added("ab", 900) } } },
      "added token 'ab': expected one id, found 256 and 900" },
    BadChange{ "SharedId", { { "added_tokens", { Added("<s>", 900), Added("<t>", 900) } } },
      "added token '<t>': the id 900 belongs to token '<s>' already" }),
  [](const auto& bad) { return std::string(bad.param.name); });

INSTANTIATE_TEST_SUITE_P(WordPieces, BadTokenizer,
  testing::Values(BadChange{ "Maximum", Model({ { "max_input_chars_per_word", -1 } }),
    "model.max_input_chars_per_word: expected an integer from 0 on, found -1", true }),
  [](const auto& bad) { return std::string(bad.param.name); });

TEST_P(BadTokenizer, IsRefused)
{
  json file = GetParam().wordPieces ? SmallWordPieces() : SmallBytePairs();
  file.merge_patch(GetParam().patch);
  const std::string message =
    MessageOf<FormatError>([&] { ParseTokenizer(file.dump(), "t.json"); });
  EXPECT_THAT(message, StartsWith("t.json: "));
  EXPECT_THAT(message, HasSubstr(GetParam().message));
  EXPECT_LT(message.size(), 1000U);
}

TEST(Tokenizer, RefusesFilesThatAreNoJson)
{
  const auto refusal = [](const std::string& text)
  { return MessageOf<FormatError>([&] { ParseTokenizer(text, "t.json"); }); };
  EXPECT_THAT(refusal(""), StartsWith("t.json: the file is not JSON"));
  EXPECT_THAT(refusal("\xff"), StartsWith("t.json: the file is not JSON"));
  EXPECT_THAT(refusal("[]"), StartsWith("t.json: expected the file to hold a JSON object, found"));
  EXPECT_THAT(refusal(R"({"model":{"vocab":{"a":1,"a":2}}})"),
    StartsWith("t.json: the file has the name 'a' twice"));
}

TEST(Tokenizer, RefusesBadMergeFiles)
{
  const std::string vocabulary = ByteVocabulary({ "ab" }).dump();
  const auto refusal = [&](const std::string& merges)
  {
    return MessageOf<FormatError>(
      [&] { ParseBytePairTokenizer(vocabulary, "vocab.json", merges, "merges.txt"); });
  };
  EXPECT_THAT(refusal("#version: 0.2\na b\nabc\n"),
    StartsWith("merges.txt: line 3: expected a merge of two tokens separated by a space"));
  EXPECT_THAT(refusal("a b \n"), HasSubstr("line 1: expected a merge"));
  EXPECT_THAT(refusal(" ab\n"), HasSubstr("line 1: expected a merge"));
  EXPECT_THAT(refusal("a c\n"), HasSubstr("merge 0 'a c': the vocabulary has no token 'ac'"));
  EXPECT_THAT(refusal("a b\n\na b\n"), HasSubstr("merge 1 'a b' is listed twice"));
  EXPECT_THAT(refusal("a \xff\n"), StartsWith("merges.txt: expected UTF-8, found the byte 0xff"));
  EXPECT_THAT(
    MessageOf<FormatError>([&] { ParseBytePairTokenizer("[1]", "vocab.json", "", "merges.txt"); }),
    StartsWith("vocab.json: the vocabulary: expected an object of tokens and their ids"));
}

TEST(Tokenizer, RefusesBadWordPieceVocabularies)
{
  const auto refusal = [&](const std::string& text)
  { return MessageOf<FormatError>([&] { ParseWordPieceTokenizer(text, "vocab.txt"); }); };
  EXPECT_EQ(refusal(""), "vocab.txt: the vocabulary has no unknown token '[UNK]'.");
  EXPECT_THAT(refusal("[UNK]\na\n"), HasSubstr("has no token '[CLS]', which BERT adds to texts"));
  EXPECT_THAT(
    refusal("[UNK]\n\xff\n"), HasSubstr("expected UTF-8, found the byte 0xff at position"));
}

TEST(Tokenizer, OfEqualLinesTheLastOneCounts)
{
  const Tokenizer tokenizer = ParseWordPieceTokenizer("[UNK]\n[CLS]\na\na\n[SEP]\n", "vocab.txt");
  EXPECT_THAT(tokenizer.Encode("a", true).ids, ElementsAre(1, 3, 4));
  EXPECT_EQ(tokenizer.VocabularySize(), 5);
}

}

TEST(CharacterTokenizer, HasTheIdsOfNanoGpt)
{
  const Tokenizer tokenizer = ReadTokenizer(ModelsOracle("files/pt/checkpoints/nanogpt"));
  EXPECT_EQ(tokenizer.Encode("a b!\n", true).ids, (std::vector<std::int64_t>{ 3, 1, 4, 2, 0 }));
  EXPECT_EQ(tokenizer.Decode({ 3, 1, 4, 2, 0 }), "a b!\n");
  EXPECT_THAT(MessageOf<FormatError>([&] { tokenizer.Encode("z", true); }), HasSubstr("meta.pkl"));
}
