#include "AdapterConfig.h"

#include "Base/Error.h"
#include "Base/TextEnds.h"
#include "Files/JsonSettings.h"
#include "Files/JsonText.h"
#include "Files/MappedFile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace atlas
{
namespace
{

using nlohmann::json;

/// Settings that Reader reads.
constexpr std::array<std::string_view, 17> KnownKeys = { "alpha_pattern", "base_model_name_or_path",
  "ensure_weight_tying", "exclude_modules", "init_lora_weights", "layers_pattern",
  "layers_to_transform", "lora_alpha", "lora_bias", "modules_to_save", "peft_type", "r",
  "rank_pattern", "target_modules", "trainable_token_indices", "use_dora", "use_rslora" };

/// Settings that change no number of a trained adapter, or state what its tensors show: where it
/// comes from, how it was trained, initialized, divided over devices or quantized in training,
/// which biases it has, and the layout that follows from the kind of a module.
constexpr std::array<std::string_view, 17> HarmlessKeys = { "auto_mapping", "bias", "corda_config",
  "eva_config", "fan_in_fan_out", "inference_mode", "loftq_config", "lora_dropout",
  "lora_ga_config", "megatron_config", "megatron_core", "peft_version", "qalora_group_size",
  "revision", "runtime_config", "task_type", "velora_config" };

/// How the matrices may have been initialized: the others change the base too.
constexpr std::array<std::string_view, 4> HarmlessStarts = { "gaussian", "eva", "orthogonal",
  "mica" };

bool EndsWithPart(std::string_view name, std::string_view end)
{
  return name == end || (name.size() > end.size() && EndsWith(name, end) &&
                          name[name.size() - end.size() - 1] == '.');
}

template<class List>
bool Contains(const List& list, std::string_view key)
{
  return std::find(list.begin(), list.end(), key) != list.end();
}

/// Whether any of the expressions matches a module.
bool MatchesAny(const std::vector<ModulePattern>& patterns, const std::string& module)
{
  return std::any_of(patterns.begin(), patterns.end(),
    [&](const ModulePattern& pattern) { return pattern.Match(module).has_value(); });
}

template<class Value>
Value ValueOf(const ModuleValues<Value>& values, const std::string& module, Value otherwise)
{
  const auto found = std::find_if(values.begin(), values.end(),
    [&](const auto& entry) { return entry.first.Match(module).has_value(); });
  return found == values.end() ? otherwise : found->second;
}

constexpr auto Most = std::numeric_limits<std::int32_t>::max();

/// Reads the settings of an object.
class Reader
{
public:
  Reader(AdapterConfig& config, const json& object, const std::string& text)
    : Config(config)
    , Object(object)
    , Text(text)
    , All(object, config.source)
  {
  }

  void Read()
  {
    const std::string type = this->All.Text({ "peft_type" }, "");
    this->All.FailIf(type != "LORA", "expected an adapter of the peft_type LORA, found '",
      type.substr(0, 80), "'; other kinds are not applied.");
    this->RefuseOthers();
    this->Config.base = this->All.Text({ "base_model_name_or_path" }, "");
    this->Config.rank = this->All.Signed({ "r" }, 8, 1, Most);
    this->Config.alpha = this->All.Number({ "lora_alpha" }, 8, true);
    this->Config.rootOfRank = this->All.Flag({ "use_rslora" }, false);
    this->Config.isDora = this->All.Flag({ "use_dora" }, false);
    this->Config.hasBias = this->All.Flag({ "lora_bias" }, false);
    this->Config.keepsTies = this->All.Flag({ "ensure_weight_tying" }, false);
    this->ReadPatterns("rank_pattern", this->Config.ranks, "a positive integer",
      [](const json& value) { return value.is_number_unsigned() && value >= 1 && value <= Most; });
    this->ReadPatterns("alpha_pattern", this->Config.alphas, "a number",
      [](const json& value) { return value.is_number(); });
    this->Config.targeted = this->Modules("target_modules");
    this->Config.excluded = this->Modules("exclude_modules");
    this->Config.saved = this->Texts("modules_to_save");
    for (const std::string& name : this->Config.saved)
    {
      this->Config.savedPatterns.emplace_back(
        "(^|.*\\.)" + name + "($|\\..*)", this->Place("modules_to_save"));
    }
    this->ReadLayers();
    this->ReadTokens();
  }

private:
  AdapterConfig& Config;
  const json& Object;
  const std::string& Text;
  const Settings All;

  std::string Place(const std::string& key) const
  {
    return this->Config.source + ": '" + key + "'";
  }

  [[noreturn]] void Refuse(
    const std::string& key, const std::string& expected, const json& found) const
  {
    this->All.Fail("'", key, "': expected ", expected, ", found ", Describe(found), ".");
  }

  /// Throws for what would change numbers.
  void RefuseOthers() const
  {
    for (const auto& [key, value] : this->Object.items())
    {
      if (!Contains(KnownKeys, key) && !Contains(HarmlessKeys, key))
      {
        this->All.RefuseVariants({ key.c_str() }, "a setting of LoRA");
      }
    }
    const json* start = this->All.Value({ "init_lora_weights" });
    const bool isHarmless =
      start == nullptr || start->is_boolean() ||
      (start->is_string() && Contains(HarmlessStarts, start->get<std::string>()));
    if (!isHarmless)
    {
      this->Refuse("init_lora_weights",
        "true, false, gaussian, eva, orthogonal or mica, which leave the base as it is (peft "
        "converts others: path_initial_model_for_weight_conversion of save_pretrained)",
        *start);
    }
  }

  /// Values by expressions, in the order of the file.
  template<class Value, class IsRight>
  void ReadPatterns(const char* key, ModuleValues<Value>& values, const char* expected,
    const IsRight& isRight) const
  {
    const json* given = this->All.Value({ key });
    if (given == nullptr)
    {
      return;
    }
    if (!given->is_object())
    {
      this->Refuse(key, "an object", *given);
    }
    const auto ordered = nlohmann::ordered_json::parse(this->Text);
    for (const auto& [pattern, unused] : ordered.at(key).items())
    {
      const json& value = given->at(pattern);
      ModulePattern expression("(.*\\.)?(" + pattern + ")", this->Place(key));
      if (!isRight(value))
      {
        this->Refuse(std::string(key) + ": " + pattern.substr(0, 80), expected, value);
      }
      values.emplace_back(std::move(expression), value.get<Value>());
    }
  }

  /// A list, or one item alone; empty if there is none.
  template<class Value, class IsRight>
  std::vector<Value> List(
    const std::string& key, const json* given, const char* expected, const IsRight& isRight) const
  {
    std::vector<Value> values;
    const json list = given == nullptr ? json::array() : *given;
    for (const json& item : list.is_array() ? list : json::array({ list }))
    {
      if (!isRight(item))
      {
        this->Refuse(key, expected, item);
      }
      values.push_back(item.get<Value>());
    }
    return values;
  }

  std::vector<std::string> Texts(const char* key) const
  {
    return this->List<std::string>(
      key, this->All.Value({ key }), "texts", [](const json& item) { return item.is_string(); });
  }

  std::vector<std::int64_t> Numbers(const std::string& key, const json* given) const
  {
    return this->List<std::int64_t>(key, given, "integers from 0",
      [](const json& item) { return item.is_number_unsigned() && item <= Most; });
  }

  /// A text alone is an expression. The name all-linear stands for most modules.
  ModuleSet Modules(const char* key) const
  {
    const json* given = this->All.Value({ key });
    ModuleSet modules;
    modules.isGiven = given != nullptr && *given != json("all-linear") && !given->empty();
    if (modules.isGiven && given->is_string())
    {
      modules.patterns.emplace_back(given->get<std::string>(), this->Place(key));
    }
    else if (modules.isGiven)
    {
      modules.names = this->Texts(key);
    }
    return modules;
  }

  void ReadLayers()
  {
    this->Config.layers =
      this->Numbers("layers_to_transform", this->All.Value({ "layers_to_transform" }));
    std::vector<std::string> names = this->Texts("layers_pattern");
    names.erase(std::remove(names.begin(), names.end(), ""), names.end());
    const std::string place = this->Place("layers_pattern");
    for (const std::string& name : names)
    {
      this->Config.layerPatterns.emplace_back(
        "(?:^|.*?\\.)" + name + "\\.(?P<idx>\\d+)\\..*", place);
    }
    if (names.empty())
    {
      this->Config.layerPatterns.emplace_back(".*?\\.[^.]*\\.(?P<idx>\\d+)\\..*", place);
    }
  }

  void ReadTokens()
  {
    const std::string key = "trainable_token_indices";
    const json* given = this->All.Value({ key.c_str() });
    if (given != nullptr && !given->is_object())
    {
      this->Config.tokens[""] = this->Numbers(key, given);
    }
    else if (given != nullptr)
    {
      for (const auto& [name, tokens] : given->items())
      {
        this->Config.tokens[name] = this->Numbers(key, &tokens);
      }
    }
  }
};

}

AdapterConfig::AdapterConfig(const std::filesystem::path& path)
  : source(path.string())
{
  const std::string text = ReadFile(path);
  const json object = ParseJson(text, this->source);
  ThrowIf<FormatError>(
    !object.is_object(), this->source, ": expected a JSON object, found ", object.type_name(), ".");
  Reader(*this, object, text).Read();
}

std::int64_t AdapterConfig::RankOf(const std::string& module) const
{
  return ValueOf(this->ranks, module, this->rank);
}

double AdapterConfig::ScalingOf(const std::string& module) const
{
  const auto r = static_cast<double>(this->RankOf(module));
  return ValueOf(this->alphas, module, this->alpha) / (this->rootOfRank ? std::sqrt(r) : r);
}

bool ModuleSet::Has(const std::string& module) const
{
  return std::any_of(this->names.begin(), this->names.end(),
           [&](const std::string& name) { return EndsWithPart(module, name); }) ||
         MatchesAny(this->patterns, module);
}

bool AdapterConfig::Targets(const std::string& module) const
{
  if (MatchesAny(this->savedPatterns, module) || this->excluded.Has(module) ||
      (this->targeted.isGiven && !this->targeted.Has(module)))
  {
    return false;
  }
  if (this->layers.empty())
  {
    return true;
  }
  for (const ModulePattern& pattern : this->layerPatterns)
  {
    if (const std::optional<std::string> layer = pattern.Match(module))
    {
      return std::any_of(this->layers.begin(), this->layers.end(),
        [&](std::int64_t one) { return std::to_string(one) == *layer; });
    }
  }
  return false;
}

bool AdapterConfig::IsSaved(const std::string& module) const
{
  return std::any_of(this->saved.begin(), this->saved.end(),
    [&](const std::string& name) { return EndsWith(module, name); });
}

std::vector<std::int64_t> AdapterConfig::TokensOf(const std::string& module) const
{
  for (const auto& [name, rows] : this->tokens)
  {
    if (name.empty() || EndsWithPart(module, name))
    {
      return rows;
    }
  }
  throw ModelError(this->source, ": 'trainable_token_indices': expected the tokens of '", module,
    "', found none.");
}

}
