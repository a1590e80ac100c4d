#include "AdapterConfig.h"

#include "Error.h"
#include "JsonSettings.h"
#include "JsonText.h"
#include "MappedFile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

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
  return name == end || (name.size() > end.size() && name.substr(name.size() - end.size()) == end &&
                          name[name.size() - end.size() - 1] == '.');
}

template<class List>
bool Contains(const List& list, std::string_view key)
{
  return std::find(list.begin(), list.end(), key) != list.end();
}

}

/// Reads the settings of an object.
class AdapterConfig::Reader
{
public:
  Reader(AdapterConfig& config, const json& object, const std::string& text)
    : Config(config)
    , Object(object)
    , Text(text)
    , All(object, config.Source)
  {
  }

  void Read()
  {
    const std::string type = this->All.Text({ "peft_type" }, "");
    if (type != "LORA")
    {
      this->All.Fail("expected an adapter of the peft_type LORA, found '" + type.substr(0, 80) +
                     "'; other kinds are not applied.");
    }
    this->RefuseOthers();
    constexpr auto most = std::numeric_limits<std::int32_t>::max();
    this->Config.Base = this->All.Text({ "base_model_name_or_path" }, "");
    this->Config.Rank = static_cast<std::int64_t>(this->All.Integer({ "r" }, 8, 1, most));
    this->Config.Alpha = this->All.Number({ "lora_alpha" }, 8, true);
    this->Config.RootOfRank = this->All.Flag({ "use_rslora" }, false);
    this->Config.Dora = this->All.Flag({ "use_dora" }, false);
    this->Config.LoraBias = this->All.Flag({ "lora_bias" }, false);
    this->Config.Ties = this->All.Flag({ "ensure_weight_tying" }, false);
    this->ReadPatterns("rank_pattern", this->Config.Ranks,
      [&](const json& value, const std::string& what)
      {
        if (!value.is_number_unsigned() || value < 1 || value > most)
        {
          this->Refuse(what, "a positive integer", value);
        }
        return value.get<std::int64_t>();
      });
    this->ReadPatterns("alpha_pattern", this->Config.Alphas,
      [&](const json& value, const std::string& what)
      {
        if (!value.is_number())
        {
          this->Refuse(what, "a number", value);
        }
        return value.get<double>();
      });
    this->Config.Targeted = this->Modules("target_modules");
    this->Config.Excluded = this->Modules("exclude_modules");
    this->Config.Saved = this->Texts("modules_to_save");
    for (const std::string& name : this->Config.Saved)
    {
      this->Config.SavedPatterns.emplace_back(
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
    return this->Config.Source + ": '" + key + "'";
  }

  [[noreturn]] void Refuse(
    const std::string& key, const std::string& expected, const json& found) const
  {
    this->All.Fail("'" + key + "': expected " + expected + ", found " + Describe(found) + ".");
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

  /// Values by expressions, in the order of the file: the first that matches a module counts.
  template<class Value, class Convert>
  void ReadPatterns(const char* key, Patterns<Value>& patterns, const Convert& convert) const
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
    for (const auto& [pattern, value] : ordered.at(key).items())
    {
      patterns.emplace_back(ModulePattern("(.*\\.)?(" + pattern + ")", this->Place(key)),
        convert(given->at(pattern), std::string(key) + ": " + pattern.substr(0, 80)));
    }
  }

  /// A list of texts, or one alone; empty if there is none.
  std::vector<std::string> Texts(const char* key) const
  {
    const json* given = this->All.Value({ key });
    std::vector<std::string> texts;
    if (given == nullptr)
    {
      return texts;
    }
    for (const json& text : given->is_array() ? *given : json::array({ *given }))
    {
      if (!text.is_string())
      {
        this->Refuse(key, "texts", text);
      }
      texts.push_back(text.get<std::string>());
    }
    return texts;
  }

  /// A list of numbers that are not negative, or one alone; empty if there is none.
  std::vector<std::int64_t> Numbers(const std::string& key, const json* given) const
  {
    std::vector<std::int64_t> numbers;
    if (given == nullptr)
    {
      return numbers;
    }
    for (const json& number : given->is_array() ? *given : json::array({ *given }))
    {
      if (!number.is_number_unsigned() || number > std::numeric_limits<std::int32_t>::max())
      {
        this->Refuse(key, "integers from 0", number);
      }
      numbers.push_back(number.get<std::int64_t>());
    }
    return numbers;
  }

  /// A text alone is an expression. The name all-linear stands for most modules.
  ModuleSet Modules(const char* key) const
  {
    const json* given = this->All.Value({ key });
    ModuleSet modules;
    modules.isGiven = given != nullptr && *given != json("all-linear") && !given->empty();
    if (!modules.isGiven)
    {
      return modules;
    }
    if (given->is_string())
    {
      modules.patterns.emplace_back(given->get<std::string>(), this->Place(key));
    }
    else
    {
      modules.names = this->Texts(key);
    }
    return modules;
  }

  void ReadLayers()
  {
    this->Config.Layers =
      this->Numbers("layers_to_transform", this->All.Value({ "layers_to_transform" }));
    std::vector<std::string> names = this->Texts("layers_pattern");
    names.erase(std::remove(names.begin(), names.end(), ""), names.end());
    const std::string place = this->Place("layers_pattern");
    for (const std::string& name : names)
    {
      this->Config.LayerPatterns.emplace_back(
        "(?:^|.*?\\.)" + name + "\\.(?P<idx>\\d+)\\..*", place);
    }
    if (names.empty())
    {
      this->Config.LayerPatterns.emplace_back(".*?\\.[^.]*\\.(?P<idx>\\d+)\\..*", place);
    }
  }

  void ReadTokens()
  {
    const std::string key = "trainable_token_indices";
    const json* given = this->All.Value({ key.c_str() });
    if (given == nullptr || !given->is_object())
    {
      if (given != nullptr)
      {
        this->Config.Tokens[""] = this->Numbers(key, given);
      }
      return;
    }
    for (const auto& [name, tokens] : given->items())
    {
      this->Config.Tokens[name] = this->Numbers(key, &tokens);
    }
  }
};

AdapterConfig::AdapterConfig(const std::filesystem::path& path)
  : Source(path.string())
{
  const std::string text = ReadFile(path);
  const json object = ParseJson(text, this->Source);
  if (!object.is_object())
  {
    throw FormatError(this->Source + ": expected a JSON object, found " + object.type_name() + ".");
  }
  Reader(*this, object, text).Read();
}

void AdapterConfig::Fail(const std::string& message) const
{
  throw ModelError(this->Source + ": " + message);
}

std::int64_t AdapterConfig::RankOf(const std::string& module) const
{
  const auto found = std::find_if(this->Ranks.begin(), this->Ranks.end(),
    [&](const auto& entry) { return entry.first.Match(module).has_value(); });
  return found == this->Ranks.end() ? this->Rank : found->second;
}

double AdapterConfig::ScalingOf(const std::string& module) const
{
  const auto found = std::find_if(this->Alphas.begin(), this->Alphas.end(),
    [&](const auto& entry) { return entry.first.Match(module).has_value(); });
  const auto rank = static_cast<double>(this->RankOf(module));
  return (found == this->Alphas.end() ? this->Alpha : found->second) /
         (this->RootOfRank ? std::sqrt(rank) : rank);
}

bool AdapterConfig::ModuleSet::Has(const std::string& module) const
{
  return std::any_of(this->names.begin(), this->names.end(),
           [&](const std::string& name) { return EndsWithPart(module, name); }) ||
         std::any_of(this->patterns.begin(), this->patterns.end(),
           [&](const ModulePattern& pattern) { return pattern.Match(module).has_value(); });
}

bool AdapterConfig::Targets(const std::string& module) const
{
  const bool isOther = std::any_of(this->SavedPatterns.begin(), this->SavedPatterns.end(),
    [&](const ModulePattern& pattern) { return pattern.Match(module).has_value(); });
  if (isOther || this->Excluded.Has(module) ||
      (this->Targeted.isGiven && !this->Targeted.Has(module)))
  {
    return false;
  }
  if (this->Layers.empty())
  {
    return true;
  }
  for (const ModulePattern& pattern : this->LayerPatterns)
  {
    if (const std::optional<std::string> layer = pattern.Match(module))
    {
      return std::any_of(this->Layers.begin(), this->Layers.end(),
        [&](std::int64_t one) { return std::to_string(one) == *layer; });
    }
  }
  return false;
}

bool AdapterConfig::IsSaved(const std::string& module) const
{
  return std::any_of(this->Saved.begin(), this->Saved.end(),
    [&](const std::string& name)
    {
      return module.size() >= name.size() &&
             module.compare(module.size() - name.size(), name.size(), name) == 0;
    });
}

std::vector<std::int64_t> AdapterConfig::TokensOf(const std::string& module) const
{
  for (const auto& [name, tokens] : this->Tokens)
  {
    if (name.empty() || EndsWithPart(module, name))
    {
      return tokens;
    }
  }
  this->Fail("'trainable_token_indices': expected the tokens of '" + module + "', found none.");
}

}
