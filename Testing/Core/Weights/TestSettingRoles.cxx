#include "Weights/Internal/SettingRoles.h"

#include "Base/Error.h"
#include "Files/GgufFile.h"
#include "Files/JsonText.h"
#include "Files/MappedFile.h"
#include "Refusals.h"
#include "Weights/GgufModel.h"
#include "Weights/Internal/ArchitectureConfigs.h"
#include "Weights/TransformerConfig.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;
using nlohmann::json;

namespace
{

/// The names of all settings of an object and of those in it.
void AddKeys(const json& object, std::set<std::string>& keys)
{
  for (const auto& [key, value] : object.items())
  {
    keys.insert(key);
    if (value.is_object())
    {
      AddKeys(value, keys);
    }
  }
}

/// What becomes of the settings of many files.
class Decisions
{
public:
  /// The settings of one model.
  void Add(json settings, const std::string& source)
  {
    const Settings reading(settings, source);
    if (!reading.Has({ "model_type" }))
    {
      settings["model_type"] = ArchitectureBySettings(reading);
    }
    std::set<std::string> keys;
    AddKeys(settings, keys);
    try
    {
      ParseArchitecture(reading);
      ++this->Opened;
    }
    catch (const ModelError& error)
    {
      this->Refusals.push_back(error.what());
    }
    for (const Settings::Unread& unread : reading.FindUnread())
    {
      keys.erase(unread.key);
      if (RoleOf(unread.key) == SettingRole::Unknown)
      {
        this->Unknown.emplace_back(unread.key, source);
      }
    }
    this->Read.insert(keys.begin(), keys.end());
  }

  /// The settings that no parser of any of these models reads and no table has.
  std::vector<std::string> FindUndecided() const
  {
    std::vector<std::string> undecided;
    for (const auto& [key, source] : this->Unknown)
    {
      if (this->Read.count(key) == 0)
      {
        undecided.push_back(source + ": " + key);
      }
    }
    return undecided;
  }

  /// Those of models that are opened must be read, or in a table, by their own architecture.
  std::vector<std::pair<std::string, std::string>> Unknown;
  std::vector<std::string> Refusals;
  std::set<std::string> Read;
  int Opened = 0;
};

std::vector<std::filesystem::path> FilesBelow(
  const std::filesystem::path& folder, const std::string& begin, const std::string& end)
{
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
  {
    const std::string name = entry.path().filename().string();
    if (name.compare(0, begin.size(), begin) == 0 && entry.path().extension() == end)
    {
      files.push_back(entry.path());
    }
  }
  return files;
}

/// Testing/Oracle, the models that are installed, and the expected values beside the project, if
/// they are there.
std::vector<std::filesystem::path> Folders()
{
  std::vector<std::filesystem::path> folders = { ATLAS_ORACLE_DIR,
    std::filesystem::path(ATLAS_SOURCE_DIR) / "Data" };
  const std::filesystem::path beside =
    std::filesystem::path(ATLAS_SOURCE_DIR).parent_path() / "shared" / "oracle";
  if (std::filesystem::exists(beside))
  {
    folders.push_back(beside);
  }
  return folders;
}

/// A setting that nobody has decided on belongs into a parser or into a table of SettingRoles.cxx.
TEST(SettingRoles, EverySettingOfOurFilesIsDecidedOn)
{
  Decisions decisions;
  for (const std::filesystem::path& folder : Folders())
  {
    for (const std::filesystem::path& path : FilesBelow(folder, "config", ".json"))
    {
      decisions.Add(ParseJson(ReadFile(path), path.string()), path.string());
    }
  }
  EXPECT_GT(decisions.Opened, 40);
  EXPECT_THAT(decisions.FindUndecided(), IsEmpty());
  for (const auto& unknown : decisions.Unknown)
  {
    const std::string& source = unknown.second;
    const bool isRefused = std::any_of(decisions.Refusals.begin(), decisions.Refusals.end(),
      [&](const std::string& refusal) { return refusal.compare(0, source.size(), source) == 0; });
    EXPECT_TRUE(isRefused) << source << ": " << unknown.first << " is not read here, but elsewhere";
  }
  if (Folders().size() == 2)
  {
    GTEST_SKIP() << "only those of this repository: none are beside it";
  }
}

/// The settings that the original has for each architecture that is opened.
TEST(SettingRoles, EverySettingOfTheOriginalIsDecidedOn)
{
  const std::string source = (std::filesystem::path(ATLAS_ORACLE_DIR) / "settings/defaults.json");
  const json versions = ParseJson(ReadFile(source), source);
  Decisions decisions;
  for (const auto& [version, models] : versions.items())
  {
    for (const auto& [name, settings] : models.items())
    {
      std::string place = version;
      place.append(" ").append(name);
      decisions.Add(settings, place);
    }
  }
  EXPECT_EQ(versions.size(), 2U);
  // Of Gemma 3 the original makes squares of 0 patches.
  EXPECT_THAT(decisions.Refusals, Each(AnyOf(HasSubstr("choose the architecture clip_text_model"),
                                    HasSubstr("expected 'mm_tokens_per_image'"))));
  std::vector<std::string> unknown;
  for (const auto& [key, place] : decisions.Unknown)
  {
    if (key != "text_config" && key != "vision_config") // of CLIP
    {
      unknown.push_back(place + ": " + key);
    }
  }
  EXPECT_THAT(unknown, IsEmpty());
}

TEST(SettingRoles, EverySettingOfGgufFilesIsDecidedOn)
{
  int opened = 0;
  for (const std::filesystem::path& folder : Folders())
  {
    for (const std::filesystem::path& path : FilesBelow(folder, "", ".gguf"))
    {
      std::optional<GgufFile> file;
      std::optional<TransformerConfig> config;
      try
      {
        file.emplace(path);
        config = ReadGgufConfig(path);
      }
      catch (const Error&)
      {
        continue; // a hostile file, or one of tensors alone
      }
      ++opened;
      EXPECT_THAT(config->unknownSettings, IsEmpty()) << path;
      const std::string own = file->GetMetadata().Text("general.architecture") + ".";
      for (const auto& [key, value] : file->GetMetadata().GetValues())
      {
        const std::string begin = key.substr(0, key.find('.') + 1);
        EXPECT_THAT(begin, AnyOf(own, "general.", "tokenizer.", "split.", "quantize."))
          << path << ": " << key;
      }
    }
  }
  EXPECT_GE(opened, 15);
}

/// The settings of a model of OPT, which has none of those that are added.
std::string Opt(const std::string& more)
{
  return R"({"model_type": "opt", "hidden_size": 12, "num_attention_heads": 3,
    "num_hidden_layers": 2, "vocab_size": 7, )" +
         more + "}";
}

TransformerConfig ConfigOf(const std::string& text)
{
  return ParseTransformerConfig(text, "config.json");
}

TEST(SettingRoles, WhatChangesNumbersIsReadOrRefusedByItsName)
{
  for (const std::string more : { R"("sliding_window": 5)", R"("attn_logit_softcapping": 30.0)",
         R"("residual_multiplier": 0.22)", R"("logit_scale": 0.0625)", R"("qk_norm": true)",
         R"("alibi": true)", R"("parallel_attn": true)", R"("is_causal": false)",
         R"("rope_scaling": {"type": "linear", "factor": 2})", R"("num_experts": 4)",
         R"("no_rope_layers": [1, 0])", R"("layer_types": ["full_attention", "linear_attention"])",
         R"("pruned_heads": {"0": [1]})", R"("attention_chunk_size": 8192)",
         R"("alibi_starting_size": 4096)" })
  {
    const std::string name = more.substr(0, more.find(':'));
    const std::string quoted = "'" + name.substr(1, name.size() - 2) + "' is ";
    EXPECT_THAT(MessageOf<ModelError>([&] { ConfigOf(Opt(more)); }),
      AllOf(StartsWith("config.json: " + quoted), HasSubstr("and 'opt' is run without it")));
  }
}

TEST(SettingRoles, WhatIsOffChangesNothing)
{
  for (const std::string more : { R"("sliding_window": null)", R"("residual_multiplier": 1.0)",
         R"("logit_scale": 1)", R"("qk_norm": false)", R"("is_causal": true)",
         R"("rope_scaling": null)", R"("num_experts": 0)",
         R"("layer_types": ["full_attention", "full_attention"])", R"("pruned_heads": {})" })
  {
    EXPECT_THAT(ConfigOf(Opt(more)).unknownSettings, IsEmpty()) << more;
  }
}

TEST(SettingRoles, WhatIsNotKnownIsListed)
{
  EXPECT_THAT(ConfigOf(Opt(R"("custom_field": {"a": 1}, "my_notes": "mine", "my_flag": false,
    "_name_or_path": "me/opt", "task_specific_params": {"summarization": {"num_beams": 4}})"))
                .unknownSettings,
    ElementsAre("custom_field", "my_notes"));
}

/// Also in the parts of models.
TEST(SettingRoles, PartsHaveTheirPlaces)
{
  const auto parse = [](const std::string& more)
  {
    return ConfigOf(R"({"model_type": "clip_text_model", "text_config": {"hidden_size": 16, )" +
                    more + R"(}, "vision_config": {"sliding_window": 3}})");
  };
  EXPECT_THAT(parse(R"("my_notes": "mine")").unknownSettings, ElementsAre("text_config.my_notes"));
  EXPECT_THAT(MessageOf<ModelError>([&] { parse(R"("sliding_window": 3)"); }),
    HasSubstr("'text_config.sliding_window' is 3"));
}

/// Methods, and settings of those that are run.
TEST(SettingRoles, QuantizedWeightsAreRefusedByTheirMethod)
{
  const auto parse = [](const std::string& setting) { ConfigOf(Opt(setting)); };
  const auto of = [](const std::string& setting)
  { return R"("quantization_config": {)" + setting + "}"; };
  std::vector<Refused> all = { { of(R"("quant_method": "hqq", "nbits": 4)"), "hqq" },
    { of(R"("quant_method": "aqlm")"), "aqlm" },
    { of(R"("bits": 4)"), "a method without a name (4 bits)" },
    { of(R"("quant_method": "compressed-tensors")"), "compressed-tensors" } };
  for (Refused& one : all)
  {
    one.message = "' the weights are quantized by " + one.message + ", which is not run; ";
  }
  ExpectRefusals<ModelError>(all, parse, "config.json: by 'quantization");
  const std::string packed =
    R"("quant_method": "compressed-tensors", "format": "pack-quantized", )";
  const std::string groups = R"("config_groups": {"group_0": {"weights": {"num_bits": 4}}})";
  ExpectRefusals<ModelError>(
    { { of(R"("quant_method": "awq", "bits": 3)"),
        "AWQ (3 bits), with 'bits' 3, which is not run; expected 4" },
      { of(R"("quant_method": "awq", "version": "gemv")"), R"(with 'version' "gemv")" },
      { of(R"("quant_method": "awq", "zero_point": false)"), "with 'zero_point' false" },
      { of(R"("quant_method": "awq", "backend": "llm-awq")"), "with 'backend'" },
      { of(R"("quant_method": "gptq", "bits": 5)"), "expected 2, 3, 4, 8." },
      { of(R"("quant_method": "gptq", "bits": 4, "checkpoint_format": "marlin")"),
        "'checkpoint_format'" },
      { of(R"("quant_method": "gptq", "bits": 4, "group_size": 0)"), "with 'group_size' 0" },
      { of(R"("quant_method": "gptq", "bits": 4, "is_marlin_format": true)"),
        "'is_marlin_format' true" },
      { of(R"("quant_method": "gptq", "bits": 4, "rotation": "hadamard")"), "with 'rotation'" },
      { of(R"("quant_method": "gptq", "bits": 4, "dynamic": {"+:.*q_proj": {"bits": 8}})"),
        "with 'dynamic'" },
      { of(R"("quant_method": "fp8", "fmt": "e5m2")"), R"(with 'fmt' "e5m2")" },
      { of(R"("quant_method": "fp8", "weight_block_size": [128])"), "expected two positive sizes" },
      { of(R"("quant_method": "mxfp4", "my_switch": 2)"), "with 'my_switch' 2" },
      { of(R"("quant_method": "bitsandbytes", "load_in_4bit": true, "residual": true)"),
        "with 'residual' true" },
      { of(packed + R"("config_groups": {})"), "with 'config_groups'" },
      { of(packed + groups + R"(, "sparsity_config": {"format": "sparse-24-bitmask"})"),
        "'sparsity_config'" },
      { of(packed + groups + R"(, "transform_config": {"config_groups": {"R1": {}}})"),
        "'transform_config'" },
      { of(packed + groups + R"(, "quantization_status": "frozen")"), "'quantization_status'" },
      { of(R"("quant_method": "compressed-tensors", "format": "marlin-24", )" + groups),
        "'format'" },
      { of(R"("group_size": 64, "bits": 7)"), "with 'bits' 7" },
      { of(R"("group_size": 64, "bits": 4, "mode": "nvfp4")"), R"(with 'mode' "nvfp4")" },
      { of(R"("group_size": 64, "bits": 4, "model.norm": {"bits": 9})"),
        "with 'model.norm.bits' 9" } },
    parse, "config.json: by 'quantization_config' the weights are quantized by ");
}

/// Which modules are quantized is told by tensors; what rounds activations changes no weight.
TEST(SettingRoles, SettingsOfQuantizationThatChangeNothingAreKnown)
{
  for (const std::string setting :
    { R"("quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"])",
      R"("quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": null)",
      R"("quant_method": "gptq", "bits": 4, "group_size": -1, "sym": true, "meta": {"a": 1},
         "dynamic": {"-:.*mlp.*": {}}, "checkpoint_format": null, "pack_dtype": "int32")",
      R"("quant_method": "awq", "bits": 4, "version": "GEMM", "zero_point": true)",
      R"("load_in_4bit": true, "bnb_4bit_compute_dtype": "float16")" })
  {
    const std::string text = R"("quantization_config": {)" + setting + "}";
    EXPECT_THAT(ConfigOf(Opt(text)).unknownSettings, testing::IsEmpty()) << setting;
  }
}

}
