#include "GgufSettings.h"

#include "Base/NamedValues.h"
#include "Base/TextEnds.h"
#include "SettingRoles.h"

#include <algorithm>

namespace atlas
{
namespace
{

using nlohmann::json;

constexpr const char* ArchitectureKey = "general.architecture";

/// The settings of tokenizers: those that are read, then those that change no token of a text.
constexpr std::string_view TokenizerPrefix = "tokenizer.ggml.";
constexpr std::string_view TokenizerKeys =
  "add_bos_token add_eos_token add_space_prefix bos_token_id cls_token_id eos_token_id merges "
  "model normalizer.lowercase normalizer.strip_accents pre precompiled_charsmap "
  "remove_extra_whitespaces scores separator_token_id seperator_token_id token_type tokens "
  "unknown_token_id "
  "add_sep_token added_tokens eom_token_id eot_token_id fim_mid_token_id fim_pad_token_id "
  "fim_pre_token_id fim_rep_token_id fim_sep_token_id fim_suf_token_id mask_token_id "
  "middle_token_id pad_token_id padding_token_id prefix_token_id suffix_token_id token_type_count";

/// The architectures of llama.cpp that are known, in alphabetical order.
const std::vector<RowName>& Families()
{
  static const std::vector<RowName> families = []
  {
    std::set<std::string> names;
    for (const RowGguf& row : AllRowGguf())
    {
      names.insert(row.name);
    }
    names.erase(""); // of variants
    std::vector<RowName> all;
    all.reserve(names.size());
    for (const std::string& name : names)
    {
      all.push_back({ name });
    }
    return all;
  }();
  return families;
}

}

GgufSettings::GgufSettings(const GgufFile& file)
  : File(file)
  , Data(file.GetMetadata())
  , Architecture(this->Data.Text(ArchitectureKey))
{
  this->FailIf(file.GetTensors().empty() && !this->Architecture.empty(),
    "expected the weights of a model, found none: this file has a vocabulary alone, "
    "which Vocabulary Reader shows.");
  const std::string type = this->Data.Text("general.type", "model");
  this->FailIf(type == "adapter",
    "expected a model, found an adapter of llama.cpp; open the files of peft that it was made "
    "from, adapter_config.json and adapter_model.safetensors.");
  this->FailIf(
    type != "model", "expected a model, found the general.type '", type.substr(0, 80), "'.");
  this->FailIf(FindNamed(Families(), this->Architecture) == nullptr,
    "expected a model of one of the architectures ", NamesOf(Families()), ", found '",
    this->Architecture.substr(0, 80), "'.");
  for (const RowGguf& row : AllRowGguf())
  {
    const bool isPlain = row.condition.empty();
    if (row.name == this->Architecture &&
        (isPlain ? this->Family == nullptr : this->IsOn(row.condition)))
    {
      this->Family = &row;
    }
  }
}

json GgufSettings::Value(const char* key) const
{
  const auto found = this->Data.GetValues().find(this->Key(key));
  if (found == this->Data.GetValues().end())
  {
    return {};
  }
  const GgufValue& value = found->second;
  if (value.isArray && value.type == GgufType::Bool)
  {
    json flags = json::array();
    for (std::uint64_t i = 0; i < value.count; ++i)
    {
      flags.push_back(value.data[i] == std::byte{ 0 } ? 0 : 1);
    }
    return flags;
  }
  if (value.isArray || value.type == GgufType::F32 || value.type == GgufType::F64)
  {
    return value.isArray ? json(this->Data.Numbers(found->first)) : json(this->Number(key));
  }
  return value.type == GgufType::Bool ? json(this->Flag(key, false)) : json(this->Integer(key, 0));
}

std::vector<std::int64_t> GgufSettings::Sizes(const char* key) const
{
  if (!this->IsList(key))
  {
    return { this->Size(key) };
  }
  const std::vector<std::int64_t> sizes = this->Data.Integers(this->Key(key));
  this->FailIf(sizes.empty() || *std::min_element(sizes.begin(), sizes.end()) <= 0,
    "the metadata '", this->Key(key), "': expected positive sizes.");
  return sizes;
}

json GgufSettings::FindUnread() const
{
  json unread = json::object();
  const std::string prefix = this->Key("");
  for (const auto& [key, value] : this->Data.GetValues())
  {
    if (BeginsWith(key, prefix) && this->Read.count(key) == 0)
    {
      unread[key.substr(prefix.size())] = this->ToJson(key, value);
    }
    if (BeginsWith(key, TokenizerPrefix) &&
        !HasWord(TokenizerKeys, std::string_view(key).substr(TokenizerPrefix.size())))
    {
      unread[key] = this->ToJson(key, value);
    }
  }
  return unread;
}

std::int64_t GgufSettings::HeadDimension() const
{
  if (this->HasLatent())
  {
    return this->Size("rope.dimension_count");
  }
  if (this->Has("attention.key_length_swa")) // Gemma 4: that of layers with a window
  {
    this->Ignore({ "attention.value_length", "attention.value_length_swa", "rope.dimension_count",
      "rope.dimension_count_swa" });
    return this->Size("attention.key_length_swa");
  }
  const std::int64_t heads = this->Size("attention.head_count");
  const std::int64_t dimension = this->Size("embedding_length");
  const std::int64_t keys = this->Size("attention.key_length", dimension / heads);
  const std::int64_t values = this->Size("attention.value_length", keys);
  this->FailIf(keys == 0 || keys != values,
    "expected heads whose keys and values have the same positive dimension, found ", keys, " and ",
    values, ".");
  return keys;
}

json GgufSettings::ToJson(const std::string& key, const GgufValue& value) const
{
  if (value.isArray)
  {
    return "an array of " + std::to_string(value.count);
  }
  switch (value.type)
  {
    case GgufType::Bool:
      return this->Data.Flag(key, false);
    case GgufType::String:
      return this->Data.Text(key);
    default:
      return this->Data.Number(key);
  }
}
}
