// What the files beside tokenizer.json, or beside the vocabularies of older tokenizers, say.

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "ModelsOracle.h"
#include "SettingsFiles.h"
#include "TemporaryDirectory.h"
#include "Text/TokenizerFile.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using OrderedJson = nlohmann::ordered_json; // the order of names decides ids
using namespace testing;

namespace
{

/// Folders with small tokenizers, and what transformers made of texts with them.
OrderedJson Oracle()
{
  return OrderedJson::parse(ReadFile(ModelsOracle("tokenizers/settings/cases.json")));
}

void Write(const std::filesystem::path& folder, const OrderedJson& files)
{
  for (const auto& [name, content] : files.items())
  {
    WriteBytes(folder / name, content.is_string() ? content.get<std::string>() : content.dump());
  }
}

/// The files of a folder of the oracle, and others.
Tokenizer Read(const char* folder, const OrderedJson& others)
{
  const TemporaryDirectory directory;
  Write(directory.Path(), Oracle()["folders"][folder]);
  Write(directory.Path(), others);
  return ReadTokenizer(directory.Path());
}

std::string Refusal(const char* folder, const OrderedJson& others)
{
  return MessageOf<FormatError>([&] { Read(folder, others); });
}

}

TEST(TokenizerSettings, IdsAreThoseOfTheOriginal)
{
  const OrderedJson oracle = Oracle();
  ASSERT_EQ(oracle["cases"].size(), 166U);
  for (const OrderedJson& one : oracle["cases"])
  {
    SCOPED_TRACE(one["name"]);
    const TemporaryDirectory directory;
    Write(directory.Path(), oracle["folders"][one["base"].get<std::string>()]);
    Write(directory.Path(), one["files"]);
    const Tokenizer tokenizer = ReadTokenizer(directory.Path());
    const OrderedJson& texts = oracle["texts"][one["texts"].get<std::size_t>()];
    for (std::size_t i = 0; i < texts.size(); ++i)
    {
      EXPECT_EQ(tokenizer.Encode(texts[i].get<std::string>(), true).ids,
        one["ids"][i].get<std::vector<std::int64_t>>())
        << texts[i];
    }
  }
}

TEST(TokenizerSettings, AddedTokensHaveTheNextIds)
{
  const auto added = [](const char* id)
  {
    return OrderedJson{ { "tokenizer_config.json",
      { { "added_tokens_decoder",
        { { id, { { "content", "<new>" }, { "special", true } } } } } } } };
  };
  const Tokenizer tokenizer = Read("bert", added("31"));
  EXPECT_EQ(tokenizer.IdOf("<new>"), 31);
  EXPECT_EQ(tokenizer.Decode({ 31 }), "<new>");
  EXPECT_THAT(Refusal("bert", added("33")),
    HasSubstr("tokenizer.json: expected the id 31, which is the next one, for the added token "
              "'<new>' of the files beside it, found 33."));
  EXPECT_EQ(Read("bert-files", added("33")).IdOf("<new>"), 33);
  EXPECT_THAT(Refusal("bert", added("many")), HasSubstr("expected a token's id as its name"));
}

TEST(TokenizerSettings, RefusesWhatItDoesNotFollow)
{
  const auto settings = [](const OrderedJson& object)
  { return OrderedJson{ { "tokenizer_config.json", object } }; };
  for (const char* folder : { "bert", "bpe", "bert-files", "bpe-files" })
  {
    EXPECT_THAT(Refusal(folder, settings({ { "split_special_tokens", true } })),
      HasSubstr("tokenizer_config.json: split_special_tokens: expected false, so that special "
                "tokens stay whole, found true."));
  }
  EXPECT_THAT(Refusal("bert-files", settings({ { "tokenizer_class", "BertJapaneseTokenizer" } })),
    HasSubstr("tokenizer_class: expected BertTokenizer, DistilBertTokenizer, ElectraTokenizer, "
              "MPNetTokenizer, EsmTokenizer or one alike, or a file tokenizer.json that says how "
              "this one works, found "
              "\"BertJapaneseTokenizer\"."));
  EXPECT_THAT(Refusal("bert", settings({ { "mask_token", 5 } })),
    HasSubstr("mask_token: expected an object, found 5"));
  EXPECT_THAT(Refusal("bert", settings({ { "extra_special_tokens", { 5 } } })),
    HasSubstr("extra_special_tokens[0]: expected an object, found 5"));
  EXPECT_THAT(Refusal("bert", { { "special_tokens_map.json", OrderedJson::array() } }),
    HasSubstr("special_tokens_map.json: expected the file to be a JSON object, found array"));
  EXPECT_THAT(Refusal("bert", { { "added_tokens.json", { { "<new>", "5" } } } }),
    HasSubstr("added_tokens.json: <new>: expected an integer"));
}

/// The files of tokenizers without tokenizer.json, by their classes or model types.
TEST(TokenizerClasses, GiveTheIdsOfTheOriginal)
{
  const OrderedJson oracle =
    OrderedJson::parse(ReadFile(ModelsOracle("tokenizers/classes/cases.json")));
  ASSERT_EQ(oracle["cases"].size(), 19U);
  const OrderedJson& texts = oracle["texts"];
  const auto expect = [&](const Tokenizer& tokenizer, const OrderedJson& ids)
  {
    ASSERT_EQ(ids.size(), texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i)
    {
      if (!ids[i].is_null()) // another behavior, by design
      {
        EXPECT_EQ(tokenizer.Encode(texts[i].get<std::string>(), true).ids,
          ids[i].get<std::vector<std::int64_t>>())
          << texts[i];
      }
    }
  };
  for (const OrderedJson& one : oracle["cases"])
  {
    SCOPED_TRACE(one["name"]);
    const TemporaryDirectory directory;
    for (const auto& [name, content] : one["files"].items())
    {
      const std::string model = content.is_string() ? content.get<std::string>() : "";
      if (model.empty() || model.front() != '@')
      {
        Write(directory.Path(), { { name, content } });
        continue;
      }
      std::filesystem::copy(
        ModelsOracle("tokenizers/classes/" + model.substr(1) + ".model"), directory / name);
    }
    const Tokenizer tokenizer = ReadTokenizer(directory.Path());
    expect(tokenizer, one["ids"]);
    if (one.contains("pair"))
    {
      EXPECT_EQ(tokenizer.EncodePair("the man", "of", true).ids,
        one["pair"].get<std::vector<std::int64_t>>());
    }
    EXPECT_EQ(HasTargetTokenizer(directory.Path()), one.contains("target"));
    if (one.contains("target"))
    {
      expect(ReadTargetTokenizer(directory.Path()), one["target"]);
    }
  }
}

TEST(TokenizerClasses, RefuseWhatTheyDoNotFollow)
{
  const auto refusal = [](const char* name, const OrderedJson& settings)
  {
    const TemporaryDirectory directory;
    std::filesystem::copy(ModelsOracle("tokenizers/classes/unigram.model"), directory / name);
    Write(directory.Path(), { { "tokenizer_config.json", settings } });
    return MessageOf<Error>([&] { ReadTokenizer(directory.Path()); });
  };
  EXPECT_THAT(refusal("spm.model",
                { { "tokenizer_class", "DebertaV2Tokenizer" }, { "split_by_punct", true } }),
    HasSubstr("split_by_punct: expected false, or a file tokenizer.json that says how words are "
              "split, found true"));
  const char* languages = "sentencepiece.bpe.model";
  EXPECT_THAT(refusal(languages, { { "tokenizer_class", "MBartTokenizer" }, { "src_lang", "de" } }),
    HasSubstr("src_lang: expected a language of the model, one of ar_AR cs_CZ"));
  EXPECT_THAT(
    refusal(languages, { { "tokenizer_class", "M2M100Tokenizer" } }), HasSubstr("vocab.json"));
  const TemporaryDirectory proteins;
  WriteBytes(proteins / "vocab.txt", "<cls>\r\n<pad>\r\n<eos>\r\nL\r\n");
  EXPECT_THAT(MessageOf<FormatError>([&] { ReadTokenizer(proteins.Path()); }),
    HasSubstr("vocab.txt: expected the unknown token '<unk>' in the vocabulary, found none."));
}

/// mBART-50 has the model_type of mBART, and other languages at another place.
TEST(TokenizerClasses, TheClassOfTheModelComesBeforeItsType)
{
  const TemporaryDirectory directory;
  std::filesystem::copy(
    ModelsOracle("tokenizers/classes/unigram.model"), directory / "sentencepiece.bpe.model");
  OrderedJson config = { { "model_type", "mbart" } };
  Write(directory.Path(), { { "config.json", config } });
  EXPECT_TRUE(ReadTokenizer(directory.Path()).IdOf("en_XX"));
  config["tokenizer_class"] = "MBart50Tokenizer";
  Write(directory.Path(), { { "config.json", config } });
  EXPECT_THAT(
    MessageOf<FormatError>([&] { ReadTokenizer(directory.Path()); }), HasSubstr("tokenizer.json"));
}

/// Of a component that is known, a setting that is not known would change ids.
TEST(TokenizerSettings, ComponentsHaveSettingsThatAreKnown)
{
  const auto refusal = [](const char* folder, const char* part, const char* key)
  {
    OrderedJson file = Oracle()["folders"][folder]["tokenizer.json"];
    file[part][key] = "much";
    return MessageOf<FormatError>([&] { ParseTokenizer(file.dump(), "tokenizer.json"); });
  };
  EXPECT_THAT(refusal("bert", "normalizer", "upper"),
    HasSubstr("tokenizer.json: normalizer: unknown setting 'upper' of BertNormalizer"));
  EXPECT_THAT(refusal("bpe", "pre_tokenizer", "limit"), HasSubstr("'limit' of ByteLevel"));
  EXPECT_THAT(refusal("bert", "pre_tokenizer", "limit"), HasSubstr("'limit' of BertPreTokenizer"));
  EXPECT_THAT(
    refusal("bert", "model", "rare"), HasSubstr("model: unknown setting 'rare' of WordPiece"));
  EXPECT_THAT(refusal("bpe", "post_processor", "x"), HasSubstr("'x' of ByteLevel"));
  EXPECT_THAT(refusal("bert", "post_processor", "x"), HasSubstr("'x' of TemplateProcessing"));
}

/// Each key that real files have is read, refused, or known to change no ids.
TEST(TokenizerSettings, EachKeyIsDecided)
{
  const std::set<std::string> known = { // read or refused
    "add_bos_token", "add_eos_token", "add_prefix_space", "added_tokens_decoder",
    "additional_special_tokens", "do_lower_case", "extra_ids", "extra_special_tokens",
    "keep_accents", "language_codes", "split_by_punct", "split_special_tokens", "src_lang",
    "strip_accents", "tgt_lang", "tokenize_chinese_chars", "tokenizer_class",
    // about saved files, chats, texts that are too long, padding, or the way back to text
    "auto_map", "backend", "chat_template", "clean_up_tokenization_spaces", "errors", "is_local",
    "max_length", "model_max_length", "name_or_path", "pad_to_multiple_of", "padding_side",
    "processor_class", "return_token_type_ids", "spaces_between_special_tokens",
    "special_tokens_map_file", "stride", "tokenizer_file", "truncation_side", "trim_offsets",
    "use_default_system_prompt",
    // not followed by transformers either where tokenizer.json is
    "do_basic_tokenize", "never_split", "legacy", "sp_model_kwargs"
  };
  const auto check = [&](const std::string& path, const nlohmann::json& settings)
  {
    for (const auto& [key, value] : settings.items())
    {
      const std::string_view end = "_token"; // a special token
      const bool isToken = key.size() > end.size() && key.substr(key.size() - end.size()) == end;
      EXPECT_TRUE(isToken || known.count(key) == 1) << path << ": " << key;
    }
  };
  EXPECT_GE(ForEachSettingsFile("tokenizer_config.json", check), 7);
  ForEachSettingsFile("special_tokens_map.json", check);
  EXPECT_GE(ForEachSettingsFile("tokenizer.json",
              [](const std::string& path, const nlohmann::json& file)
              {
                const std::set<std::string> parts = { "version", "truncation", "padding",
                  "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder",
                  "model" };
                for (const auto& [key, value] : file.items())
                {
                  EXPECT_EQ(parts.count(key), 1U) << path << ": " << key;
                }
                EXPECT_NO_THROW(ParseTokenizer(file.dump(), path));
              }),
    10);
}

/// The expected tokens are those of AutoTokenizer of transformers 5.24.
TEST(TokenizerSettings, LlamaHasTheStepsOfItsClass)
{
  const std::vector<std::string> tokens = { "<unk>", "<s>", "</s>", "\u2581", "a", "b", "h", "e",
    "l", "o", "\u2581h", "\u2581he", "\u2581a", "\u2581b", "lo" };
  OrderedJson file = OrderedJson::parse(R"({"normalizer": {"type": "Sequence", "normalizers": [
      {"type": "Prepend", "prepend": "\u2581"},
      {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
    "pre_tokenizer": null, "added_tokens": [
      {"id": 0, "content": "<unk>", "special": true}, {"id": 1, "content": "<s>", "special": true},
      {"id": 2, "content": "</s>", "special": true}],
    "decoder": {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true,
      "merges": ["\u2581 h", "\u2581h e", "\u2581 a", "\u2581 b", "l o"]}})");
  for (std::size_t i = 0; i < tokens.size(); ++i)
  {
    file["model"]["vocab"][tokens[i]] = i;
  }
  struct Case
  {
    const char* settings;
    std::vector<const char*> expected;
  };
  const std::vector<const char*> texts = { "a</s>b", "hello", "<s>hello</s> hello", " a", "a b" };
  const std::vector<const char*> first = { "\u2581a </s> b", "\u2581he l lo",
    "<s> h e l lo </s> \u2581he l lo", "\u2581a", "\u2581a \u2581b" };
  const std::vector<const char*> always = { "\u2581a </s> \u2581b", "\u2581he l lo",
    "<s> \u2581he l lo </s> \u2581he l lo", "\u2581a", "\u2581a \u2581b" };
  const std::vector<const char*> never = { "a </s> b", "h e l lo",
    "<s> h e l lo </s> \u2581he l lo", "\u2581a", "a \u2581b" };
  const std::vector<const char*> ofFile = { "\u2581a </s> \u2581b", "\u2581he l lo",
    "<s> \u2581he l lo </s> \u2581 \u2581he l lo", "\u2581 \u2581a", "\u2581a \u2581b" };
  const std::string name = R"({"tokenizer_class": "LlamaTokenizerFast")";
  for (const auto& [type, cases] : std::vector<std::pair<const char*, std::vector<Case>>>{
         { R"({"model_type": "llama"})",
           { { R"(, "legacy": false})", first }, { R"(, "legacy": true})", always }, { "}", first },
             { R"(, "add_prefix_space": false})", never },
             { R"(, "legacy": false, "add_prefix_space": true})", first } } },
         { R"({"model_type": "mistral"})", { { R"(, "legacy": false})", ofFile }, { "}", ofFile },
                                             { R"(, "add_prefix_space": false})", ofFile } } } })
  {
    for (const Case& one : cases)
    {
      const TemporaryDirectory folder;
      Write(folder.Path(), { { "tokenizer.json", file }, { "config.json", type },
                             { "tokenizer_config.json", name + one.settings } });
      const Tokenizer tokenizer = ReadTokenizer(folder.Path());
      for (std::size_t i = 0; i < texts.size(); ++i)
      {
        std::string found;
        for (const std::int64_t id : tokenizer.Encode(texts[i], false).ids)
        {
          found += (found.empty() ? "" : " ") + tokens.at(static_cast<std::size_t>(id));
        }
        EXPECT_EQ(found, one.expected[i]) << type << one.settings << texts[i];
      }
      EXPECT_EQ(tokenizer.Decode(tokenizer.Encode("a b", false).ids), "a b");
      EXPECT_THAT(TokenizerWarnings(folder.Path()), IsEmpty());
    }
  }
}

/// The steps of classes are those of transformers 5.24, by their code.
TEST(TokenizerSettings, OtherStepsOfAClassAreNamed)
{
  const auto warnings = [](const char* kind, const char* model, const std::string& steps)
  {
    const TemporaryDirectory folder;
    Write(folder.Path(),
      { { "tokenizer.json", "{\"model\": {\"vocab\": {\"a\": 0}}, " + steps + "}" },
        { "config.json", { { "model_type", model } } },
        { "tokenizer_config.json", { { "tokenizer_class", kind }, { "src_lang", "fra_Latn" } } } });
    return TokenizerWarnings(folder.Path());
  };
  const std::string split = R"("pre_tokenizer": {"type": "Sequence", "pretokenizers": [
    {"type": "Split", "pattern": {"Regex": "a"}, "behavior": "Isolated", "invert": false},
    {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]})";
  const std::string composed = R"("normalizer": {"type": "NFC"}, )" + split;
  const std::string bytes = R"("pre_tokenizer": {"type": "ByteLevel"})";
  const auto differs = [](const std::string& name)
  {
    return ElementsAre(
      HasSubstr("tokenizer.json: decides how texts are normalized and split, as in "
                "release 4 of transformers; in release 5 " +
                name + " does this itself"));
  };
  EXPECT_THAT(warnings("GPT2Tokenizer", "llama", split), differs("GPT2Tokenizer"));
  EXPECT_THAT(warnings("GPT2TokenizerFast", "exaone4", split), differs("GPT2Tokenizer"));
  EXPECT_THAT(warnings("GPT2Tokenizer", "gpt_bigcode", split), IsEmpty());
  EXPECT_THAT(warnings("GPT2Tokenizer", "gpt2", bytes), IsEmpty());
  EXPECT_THAT(warnings("Qwen2Tokenizer", "qwen3", composed), IsEmpty());
  EXPECT_THAT(warnings("Qwen2Tokenizer", "qwen3", split), differs("Qwen2Tokenizer"));
  EXPECT_THAT(warnings("LlamaTokenizerFast", "qwen2", bytes), differs("Qwen2Tokenizer"));
  EXPECT_THAT(warnings("LlamaTokenizerFast", "llama", split), IsEmpty());
  EXPECT_THAT(warnings("PreTrainedTokenizerFast", "llama", split), IsEmpty());
  const std::string translation =
    R"("normalizer": null, "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581",
      "add_prefix_space": true}, "post_processor": {"type": "TemplateProcessing", "single": [
      {"SpecialToken": {"id": "eng_Latn", "type_id": 0}}]})";
  EXPECT_THAT(warnings("NllbTokenizer", "m2m_100", translation),
    ElementsAre(HasSubstr("tokenizer.json: decides what is added to texts; in transformers "
                          "NllbTokenizer adds the language fra_Latn of 'src_lang'.")));
}
