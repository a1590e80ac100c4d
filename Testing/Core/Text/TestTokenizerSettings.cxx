// What the files beside tokenizer.json, or beside the vocabularies of older tokenizers, say.

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "ModelsOracle.h"
#include "SettingsFiles.h"
#include "TemporaryDirectory.h"
#include "Text/TokenizerFile.h"

#include <set>
#include <string>
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
