#include "FolderSettings.h"

#include "Base/Error.h"
#include "Base/NumberText.h"
#include "Base/TextEnds.h"
#include "Base/Words.h"
#include "Files/JsonText.h"
#include "Files/MappedFile.h"
#include "PieceText.h"
#include "TokenizerJson.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string_view>
#include <utility>

namespace atlas
{
namespace
{

using nlohmann::json;

/// The object in a JSON file next to a vocabulary; empty if there is no such file.
json ReadSettings(const std::filesystem::path& path)
{
  return FileExists(path) ? ParseJsonObject(ReadFile(path), path.string()) : json::object();
}

}

bool IsBert(const std::string& kind)
{
  static const std::set<std::string> kinds = { "Bert", "DistilBert", "Electra", "LayoutLM",
    "Lxmert", "MobileBert", "MPNet", "RetriBert", "SqueezeBert" };
  return kinds.count(kind) != 0;
}

namespace
{

/// Models whose tokenizer.json counts in transformers 5, whatever tokenizer_class says.
constexpr std::string_view ModelsOfFiles =
  "ernie4_5 ernie4_5_moe flex_olmo glm glm4 glm4_moe glm4_moe_lite gpt_bigcode granite granitemoe "
  "granitemoehybrid granitemoeshared llava llava_next minimax_m2 ministral ministral3 mistral "
  "mistral3 mixtral modernbert modernbert-decoder nemotron olmo2 olmo3 olmo_hybrid pegasus_x phi3 "
  "phimoe pixtral smolvlm stablelm umt5 xlm-roberta-xl";

/// The steps of a class in transformers 5, as StepsOf writes them: a regular expression, in which @
/// is what add_prefix_space makes of Metaspace.
struct OwnSteps
{
  const char* steps;
  const char* scheme = "never"; ///< of Metaspace without add_prefix_space
  const char* language = "";    ///< of texts, unless src_lang says another
};

const std::map<std::string, OwnSteps, std::less<>>& AllOwnSteps()
{
  static const OwnSteps bytes = { "/ByteLevel " };
  static const OwnSteps bert = { "BertNormalizer /BertPreTokenizer " };
  static const OwnSteps words = { "(Precompiled )?/WhitespaceSplit Metaspace:@ " };
  static const std::map<std::string, OwnSteps, std::less<>> all = {
    { "Albert",
      { "Replace Replace (NFKD StripAccents )?(Lowercase )?(Precompiled )?/WhitespaceSplit "
        "Metaspace:@ " } },
    { "Bart", bytes },
    { "Bert", bert },
    { "Blenderbot", bytes },
    { "CLIP", { "NFC Replace Lowercase /Split ByteLevel " } },
    { "Camembert", words },
    { "CodeGen", bytes },
    { "Cohere", { "NFC /Digits ByteLevel " } },
    { "Deberta", bytes },
    { "DebertaV2", { "(Lowercase )?Replace NFC Strip /(Punctuation )?Metaspace:@ ", "first" } },
    { "DistilBert", bert },
    { "Electra", bert },
    { "GPT2", bytes },
    { "GPTNeoX", { "NFC /ByteLevel " } },
    { "Gemma", { "Replace /Split " } },
    { "LED", bytes },
    { "Llama", { ".*ByteLevel.*|/Metaspace:(always|first|never) " } },
    { "Longformer", bytes },
    { "MBart", { "/WhitespaceSplit Metaspace:always ", "", "en_XX" } },
    { "MBart50", { "(Precompiled )?Replace /Metaspace:always ", "", "en_XX" } },
    { "MPNet", bert },
    { "MobileBert", bert },
    { "Nllb", { "(Precompiled Replace )?/Metaspace:always ", "", "eng_Latn" } },
    { "Pegasus", { "(Precompiled Replace|Replace Replace) /Metaspace:always " } },
    { "Qwen2", { "NFC /Split ByteLevel " } },
    { "Qwen3_5", { "NFC /Split ByteLevel " } },
    { "RemBert", { "Replace Replace Replace (NFKD StripAccents )?(Lowercase )?(Precompiled )?/"
                   "Metaspace:@ " } },
    { "Roberta", bytes },
    { "T5", { "(Precompiled )?/WhitespaceSplit Metaspace:always " } },
    { "Whisper", bytes },
    { "XGLM", { "(Precompiled )?Replace /Metaspace:@ " } },
    { "XLMRoberta", words },
  };
  return all;
}

/// The types of a component and of those it is made of, each with a space behind it.
std::string StepsOf(const json& tokenizer, const char* name, const char* items)
{
  std::string steps;
  std::vector<const json*> rest;
  const auto found = tokenizer.find(name);
  if (found != tokenizer.end() && found->is_object())
  {
    rest.push_back(&*found);
  }
  while (!rest.empty())
  {
    const json& step = *rest.back();
    rest.pop_back();
    const auto setting = [&step](const char* key)
    { return step.is_object() ? step.value(key, json()) : json(); };
    const json type = setting("type");
    if (type == "Sequence" && setting(items).is_array())
    {
      for (auto item = step[items].rbegin(); item != step[items].rend(); ++item)
      {
        rest.push_back(&*item);
      }
      continue;
    }
    steps += type.is_string() ? type.get<std::string>() : "?";
    if (type == "Metaspace")
    {
      const json scheme = setting("prepend_scheme");
      const bool hasPrefix = setting("add_prefix_space") != false;
      steps += ":";
      steps += scheme.is_string() ? scheme.get<std::string>() : hasPrefix ? "always" : "never";
    }
    steps += " ";
  }
  return steps;
}

std::string StepsOf(const json& tokenizer)
{
  return StepsOf(tokenizer, "normalizer", "normalizers") + "/" +
         StepsOf(tokenizer, "pre_tokenizer", "pretokenizers");
}

}

FolderSettings::FolderSettings(std::filesystem::path folder)
  : Folder(std::move(folder))
  , Source((this->Folder / "tokenizer_config.json").string())
  , Value(ReadSettings(this->Source))
{
  const JsonNode isSplit = this->At("split_special_tokens");
  isSplit.FailExpectedIf(isSplit.Bool(false), "false, so that special tokens stay whole");
  this->ReadOrder(this->Source);
  if (this->At("added_tokens_decoder").IsNull()) // as in transformers
  {
    const std::filesystem::path map = this->Folder / "special_tokens_map.json";
    const json named = ReadSettings(map);
    this->ReadOrder(map);
    this->Value.update(named);
  }
}

JsonNode FolderSettings::At(const std::string& key) const
{
  return JsonNode(this->Value, "", this->Source).At(key);
}

std::string FolderSettings::Kind() const
{
  const std::string source = (this->Folder / "config.json").string();
  const json config = ReadSettings(source);
  for (const JsonNode& type :
    { this->At("tokenizer_class"), JsonNode(config, "", source).At("tokenizer_class") })
  {
    if (!type.IsNull())
    {
      const std::string name = type.String();
      const std::string kind = name.substr(0, name.rfind("Tokenizer"));
      return kind == "PreTrained" ? std::string() : kind;
    }
  }
  static const std::map<std::string, std::string> kinds = { { "albert", "Albert" },
    { "bart", "Bart" }, { "bert", "Bert" }, { "camembert", "Camembert" }, { "clip", "CLIP" },
    { "clip_text_model", "CLIP" }, { "deberta", "Deberta" }, { "deberta-v2", "DebertaV2" },
    { "distilbert", "Bert" }, { "electra", "Bert" }, { "esm", "Esm" }, { "gemma", "Gemma" },
    { "gemma2", "Gemma" }, { "gemma3", "Gemma" }, { "gemma3_text", "Gemma" }, { "gpt2", "GPT2" },
    { "m2m_100", "M2M100" }, { "mbart", "MBart" }, { "mpnet", "MPNet" }, { "mt5", "T5" },
    { "nomic_bert", "Bert" }, { "pegasus", "Pegasus" }, { "qwen2", "Qwen2" },
    { "qwen2_moe", "Qwen2" }, { "qwen3", "Qwen2" }, { "qwen3_moe", "Qwen2" },
    { "rembert", "RemBert" }, { "roberta", "Roberta" }, { "t5", "T5" }, { "umt5", "T5" },
    { "xlm-roberta", "XLMRoberta" } };
  const JsonNode model = JsonNode(config, "", source).At("model_type");
  const auto found = model.IsNull() ? kinds.end() : kinds.find(model.String());
  return found == kinds.end() ? std::string() : found->second;
}

[[noreturn]] void FolderSettings::FailKind(const std::string& expected) const
{
  const std::string source = (this->Folder / "config.json").string();
  const json config = ReadSettings(source);
  const JsonNode type = this->At("tokenizer_class");
  (type.IsNull() ? JsonNode(config, "", source).At("tokenizer_class") : type)
    .FailExpected(expected, ", or a file tokenizer.json that says how this one works");
}

std::string FolderSettings::Special(const std::string& key, const std::string& otherwise) const
{
  const JsonNode node = this->At(key);
  return node.Get().is_object() ? node.At("content").String() : node.String(otherwise);
}

std::vector<AddedToken> FolderSettings::AddedTokens(bool normalizes) const
{
  std::vector<AddedToken> special = this->SpecialTokens();
  const auto isSpecial = [&](const std::string& content)
  {
    return std::any_of(special.begin(), special.end(),
      [&](const AddedToken& token) { return token.content == content; });
  };
  std::vector<AddedToken> tokens;
  const JsonNode listed = this->At("added_tokens_decoder");
  if (listed.IsNull())
  {
    const std::string source = (this->Folder / "added_tokens.json").string();
    const json added = ReadSettings(source);
    for (const auto& [content, id] : added.items())
    {
      AddedToken token = { content, JsonNode(id, content, source).Integer() };
      token.normalized = normalizes && !isSpecial(content);
      tokens.push_back(token);
    }
  }
  else
  {
    for (const auto& item : listed.Get().items())
    {
      const JsonNode token = listed.At(item.key());
      tokens.push_back(ParseAddedToken(token, ParseId(token, item.key())));
    }
  }
  std::sort(tokens.begin(), tokens.end(),
    [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  tokens.insert(tokens.end(), special.begin(), special.end());
  return tokens;
}

void FolderSettings::Override(json& tokenizer) const
{
  static const std::set<std::string> spacing = { "Bart", "CodeGen", "GPT2", "GPTNeoX", "LED",
    "Longformer", "Roberta" };
  const std::string kind = this->Kind();
  const auto part = [&tokenizer](const char* name, const char* type) -> json*
  {
    const auto found = tokenizer.find(name);
    return found != tokenizer.end() && found->is_object() && found->value("type", json()) == type
             ? &*found
             : nullptr;
  };
  json* normalizer = part("normalizer", "BertNormalizer");
  if (normalizer != nullptr && IsBert(kind))
  {
    (*normalizer)["lowercase"] = this->At("do_lower_case").Bool(true);
    (*normalizer)["strip_accents"] = this->At("strip_accents").Get();
    (*normalizer)["handle_chinese_chars"] = this->At("tokenize_chinese_chars").Bool(true);
  }
  json* bytes = part("pre_tokenizer", "ByteLevel");
  if (bytes != nullptr && spacing.count(kind) != 0)
  {
    (*bytes)["add_prefix_space"] = this->At("add_prefix_space").Bool(false);
  }
  if (this->OwnClass() == "Llama")
  {
    this->OverrideLlama(tokenizer);
  }
}

std::string FolderSettings::OwnClass() const
{
  const std::string source = (this->Folder / "config.json").string();
  const json config = ReadSettings(source);
  const json model = config.value("model_type", json());
  const std::string type = model.is_string() ? model.get<std::string>() : "";
  if (HasWord(ModelsOfFiles, type))
  {
    return {};
  }
  const std::string kind = type == "qwen2" ? "Qwen2" : this->Kind();
  return AllOwnSteps().count(kind) != 0 ? kind : std::string();
}

bool FolderSettings::HasOwnSteps() const
{
  return !this->OwnClass().empty();
}

void FolderSettings::OverrideLlama(json& tokenizer) const
{
  static const std::set<std::string> usual = { "Prepend Replace /", "Replace /",
    "/Metaspace:always ", "/Metaspace:first ", "/Metaspace:never " };
  const auto model = tokenizer.find("model");
  const bool isPairs =
    model != tokenizer.end() && model->is_object() && model->value("type", json("BPE")) == "BPE";
  if (!isPairs || usual.count(StepsOf(tokenizer)) == 0)
  {
    return;
  }
  const bool hasPrefix = this->At("add_prefix_space").Bool(true);
  const char* scheme = !hasPrefix ? "never" : this->At("legacy").Bool(false) ? "always" : "first";
  tokenizer["normalizer"] = nullptr;
  tokenizer["pre_tokenizer"] = { { "type", "Metaspace" }, { "replacement", std::string(SpaceMark) },
    { "prepend_scheme", scheme }, { "split", false } };
  tokenizer["decoder"] = { { "type", "Strip" }, { "content", " " },
    { "start", hasPrefix ? 1 : 0 } };
  (*model)["fuse_unk"] = (*model)["byte_fallback"] = true;
}

std::vector<std::string> FolderSettings::Differences(const json& tokenizer) const
{
  std::vector<std::string> differences;
  const std::string kind = this->OwnClass();
  const auto found = AllOwnSteps().find(kind);
  if (found == AllOwnSteps().end())
  {
    return differences;
  }
  const auto& [steps, otherwise, language] = found->second;
  const bool hasPrefix = this->At("add_prefix_space").Bool(true);
  const std::string expected =
    std::regex_replace(std::string(steps), std::regex("@"), hasPrefix ? "always" : otherwise);
  if (!std::regex_match(StepsOf(tokenizer), std::regex(expected)))
  {
    differences.push_back("decides how texts are normalized and split, as in release 4 of "
                          "transformers; in release 5 " +
                          kind + "Tokenizer does this itself, and some texts have other tokens.");
  }
  const std::string code = this->At("src_lang").String(language);
  const json frame = tokenizer.value("post_processor", json());
  if (*language != 0 && frame.dump().find('"' + code + '"') == std::string::npos)
  {
    differences.push_back("decides what is added to texts; in transformers " + kind +
                          "Tokenizer adds the language " + code + " of 'src_lang'.");
  }
  return differences;
}

void FolderSettings::ReadOrder(const std::filesystem::path& path)
{
  if (!FileExists(path))
  {
    return;
  }
  const auto ordered = nlohmann::ordered_json::parse(ReadFile(path));
  for (const auto& item : ordered.items())
  {
    this->Keys.push_back(item.key());
    if (item.key() == "extra_special_tokens" && item.value().is_object())
    {
      for (const auto& extra : item.value().items())
      {
        this->ExtraKeys.push_back(extra.key());
      }
    }
  }
}

std::vector<AddedToken> FolderSettings::SpecialTokens() const
{
  static const std::array<const char*, 7> names = { "bos_token", "eos_token", "unk_token",
    "sep_token", "pad_token", "cls_token", "mask_token" };
  std::vector<AddedToken> tokens;
  const auto add = [&tokens](const JsonNode& node)
  {
    if (node.Get().is_string())
    {
      tokens.push_back({ node.String(), -1 });
    }
    else if (!node.IsNull())
    {
      tokens.push_back(ParseAddedToken(node, -1));
      tokens.back().normalized = node.At("normalized").Bool(false);
    }
  };
  for (const char* name : names)
  {
    add(this->At(name));
  }
  constexpr std::string_view end = "_token";
  for (const std::string& key : this->Keys)
  {
    const bool isName = key.size() > end.size() && EndsWith(key, end) &&
                        std::find(names.begin(), names.end(), key) == names.end();
    if (isName && this->At(key).Get().is_string())
    {
      add(this->At(key));
    }
  }
  for (const char* list : { "extra_special_tokens", "additional_special_tokens" })
  {
    const JsonNode further = this->At(list);
    if (further.Get().is_object())
    {
      for (const std::string& key : this->ExtraKeys)
      {
        add(further.At(key));
      }
    }
    else if (!further.IsNull())
    {
      for (const JsonNode& token : further.Items())
      {
        add(token);
      }
    }
  }
  return tokens;
}

std::int64_t FolderSettings::ParseId(const JsonNode& node, const std::string& text)
{
  const auto id = ToNumber<std::int64_t>(text);
  if (!id)
  {
    node.Fail("expected a token's id as its name, found '", text.substr(0, 80), "'.");
  }
  return *id;
}

void AddTokens(TokenizerParts& parts, const FolderSettings& settings, bool isWhole)
{
  for (AddedToken token : settings.AddedTokens(true))
  {
    if (token.content.empty() || parts.addedIds.count(token.content) != 0)
    {
      continue;
    }
    const std::optional<std::int64_t> known = parts.IdOf(token.content);
    if (isWhole && !known && token.id >= 0 && token.id != parts.Size())
    {
      throw FormatError(parts.source, ": expected the id ", parts.Size(),
        ", which is the next one, for the added token '", token.content.substr(0, 80),
        "' of the files beside it, found ", token.id, ".");
    }
    token.id = isWhole || token.id < 0 ? known.value_or(parts.Size()) : token.id;
    parts.Add(token);
  }
}

}
