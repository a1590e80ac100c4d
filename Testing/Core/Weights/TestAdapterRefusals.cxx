// Settings, tensors and files of adapters that cannot be applied.

#include "AdapterFixture.h"
#include "Refusals.h"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

TEST_F(Adapter, ModulesAreThoseOfTheSettings)
{
  this->MakeChangedLlama();
  for (const char* good : { R"("target_modules": ["q_proj"])",
         R"("target_modules": ["self_attn.q_proj", "v_proj"])", R"("target_modules": "all-linear")",
         R"("target_modules": null)", R"("target_modules": ".*\\.(?P<n>q|v)_proj")",
         R"("target_modules": ["q_proj"], "layers_to_transform": [0, 2])",
         R"("target_modules": ["q_proj"], "layers_to_transform": 0, "layers_pattern": "layers")",
         R"("target_modules": ["q_proj"], "exclude_modules": ["1.self_attn.q_proj"])" })
  {
    EXPECT_NO_THROW(this->ReadWith(good)) << good;
  }
  for (const char* bad : { R"("target_modules": ["proj"])", R"("target_modules": "q_proj")",
         R"("target_modules": ["q_proj"], "layers_to_transform": [1])",
         R"("target_modules": ["q_proj"], "layers_to_transform": 0, "layers_pattern": "h")",
         R"("target_modules": ["q_proj"], "exclude_modules": ["q_proj"])",
         R"("target_modules": ["q_proj"], "exclude_modules": ".*layers.0.*")",
         R"("target_modules": ["q_proj"], "modules_to_save": ["self_attn"])" })
  {
    EXPECT_THAT(MessageOf<ModelError>([&] { this->ReadWith(bad); }),
      HasSubstr("'model.layers.0.self_attn.q_proj': expected one that adapter_config.json names"))
      << bad;
  }
}

TEST_F(Adapter, OtherKindsAreRefusedByName)
{
  this->MakeChangedLlama();
  for (const std::string kind : { "IA3", "PREFIX_TUNING", "ADALORA", "LOHA", "" })
  {
    this->Settings = R"("r": 2, "peft_type": ")" + kind + "\"";
    EXPECT_THAT(this->Refusal(), HasSubstr("the peft_type LORA, found '" + kind + "'"));
  }
}

TEST_F(Adapter, SettingsThatChangeNumbersAreRefusedByName)
{
  this->MakeChangedLlama();
  for (const std::string key :
    { "alora_invocation_tokens", "arrow_config", "kasa_config", "layer_replication",
      "monteclora_config", "target_parameters", "use_bdlora", "use_qalora", "something_new" })
  {
    const std::string quoted = "\"" + key + "\": ";
    for (const char* off : { "null", "false", "[]", "{}" })
    {
      EXPECT_NO_THROW(this->ReadWith(quoted + off)) << key << off;
    }
    ExpectRefusals<ModelError>({ { quoted + "[1]", "'" + key + "' is array" },
                                 { quoted + "true", "'" + key + "' is true" } },
      this->ReaderWith());
  }
  for (const std::string start : { "pissa", "pissa_niter_4", "olora", "corda", "loftq", "lora_ga" })
  {
    ExpectRefusals<ModelError>(
      { { R"("init_lora_weights": ")" + start + "\"", "expected true, false, gaussian, eva" },
        { R"("init_lora_weights": ")" + start + "\"", "found \"" + start + "\"" } },
      this->ReaderWith());
  }
  for (const std::string start : { "true", "false", "\"gaussian\"", "\"eva\"", "null" })
  {
    EXPECT_NO_THROW(this->ReadWith(R"("init_lora_weights": )" + start)) << start;
  }
}

TEST_F(Adapter, InvalidSettingsAreRefused)
{
  this->MakeChangedLlama();
  this->Settings = R"("peft_type": "LORA")";
  const std::vector<Refused> bad = { { R"("r": 0)", "'r' to be an integer from 1 to" },
    { R"("r": -2)", "'r' to be an integer from 1 to" },
    { R"("r": 2.5)", "'r' to be an integer from 1 to" },
    { R"("r": "2")", "'r' to be an integer from 1 to" },
    { R"("r": 3)", "q_proj': lora_A.weight: expected the shape [3, 8], found [2, 8]" },
    { R"("r": 2, "lora_alpha": "x")", "'lora_alpha'" },
    { R"("r": 2, "rank_pattern": [1])", "'rank_pattern': expected an object" },
    { R"("r": 2, "rank_pattern": {"q": 0})", "'rank_pattern: q': expected a positive integer" },
    { R"("r": 2, "alpha_pattern": {"q": "x"})", "'alpha_pattern: q': expected a number" },
    { R"("r": 2, "alpha_pattern": {"(": 1})", "'alpha_pattern': expected a regular expression" },
    { R"("r": 2, "target_modules": "((m|o|d|e|l|.)*)*)*x")", "regular expression" },
    { R"("r": 2, "target_modules": "(([a-z]|[a-z0-9._])+)+[-+]")", "matched in 1000000 steps" },
    { R"("r": 2, "modules_to_save": [1])", "'modules_to_save': expected texts" },
    { R"("r": 2, "layers_to_transform": [-1])", "expected integers from 0" } };
  ExpectRefusals<ModelError>(bad, this->ReaderWith());
  this->Set(R"("r": NaN)");
  EXPECT_THAT(this->Refusal<FormatError>(), HasSubstr("adapter_config.json: the file is not JSON"));
}

TEST_F(Adapter, TensorsThatDoNotFitAreRefused)
{
  struct Case
  {
    std::string name;
    Shape shape;
    const char* message;
  };
  this->MakeLlama();
  const std::string query = this->Query;
  for (const Case& one : std::vector<Case>{
         { query + ".lora_A.weight", { 2, 9 }, "expected the shape [2, 8], found [2, 9]" },
         { query + ".lora_A.weight", { 16 }, "found [16]" },
         { query + ".lora_A.weight", { 0 }, "of shape [0]" },
         { query + ".lora_B.weight", { 9, 2 }, "expected the shape [8, 2], found [9, 2]" },
         { "model.layers.0.self_attn.v_proj.lora_A.weight", { 2, 8 },
           "'model.layers.0.self_attn.v_proj': expected lora_B.weight, found none" },
         { query + ".lora_magnitude_vector", { 8 }, "expected none without use_dora" },
         { query + ".lora_diag", { 2 }, "expected a part of LoRA or DoRA" },
         { "model.layers.2.self_attn.q_proj.lora_A.weight", { 2, 8 },
           "'model.layers.2.self_attn.q_proj': expected one of the model's" },
         { "model.norm.lora_A.weight", { 2, 8 },
           "'model.norm': expected a matrix in the model, found a tensor of shape [8]" },
         { "model.layers.0.extra.weight", { 8 },
           "'model.layers.0.extra.weight': expected one of the model's" },
         { "model.embed_tokens.lora_embedding_A", { 2, 4 },
           "expected the shape [2, 5], found [2, 4]" } })
  {
    this->Changes.clear();
    this->ChangeMatrix(this->Query, 8, 8);
    this->Change(one.name, one.shape);
    EXPECT_THAT(this->Refusal(), HasSubstr(one.message)) << one.name;
  }
}

TEST_F(Adapter, NumbersThatAreNoneAreRefused)
{
  this->MakeChangedLlama();
  const std::string name = "base_model.model." + this->Query + ".lora_B.weight";
  std::vector<double> values(16, 1);
  values[3] = std::numeric_limits<double>::quiet_NaN();
  this->Changes[name] = Tensor::FromDouble(DType::F32, { 8, 2 }, values);
  EXPECT_THAT(this->Refusal(), HasSubstr("q_proj': expected finite numbers, found others"));
  this->Changes[name] = Tensor::FromInteger({ 8, 2 }, std::vector<std::int64_t>(16));
  EXPECT_THAT(this->Refusal(), HasSubstr("expected numbers of F32, F16, BF16 or F64, found I64"));
  this->Changes.clear();
  EXPECT_THAT(this->Refusal(), HasSubstr("expected the tensors of an adapter, found none"));
}

TEST_F(Adapter, DamagedFilesAreRefused)
{
  this->MakeChangedLlama();
  this->Read();
  const std::filesystem::path weights = this->Folder / "adapter_model.safetensors";
  const std::string bytes = ReadBytes(weights);
  const auto message = [&] { Transformer::Read(this->Folder.Path()); };
  for (const std::size_t size :
    { std::size_t(0), std::size_t(7), bytes.size() / 2, bytes.size() - 1 })
  {
    WriteBytes(weights, bytes.substr(0, size));
    EXPECT_THAT(MessageOf<FormatError>(message), HasSubstr("adapter_model.safetensors: "));
  }
  std::filesystem::remove(weights);
  EXPECT_THAT(MessageOf<FileError>(message), HasSubstr("found the settings alone"));
  WriteBytes(weights, bytes);
  std::filesystem::remove(this->Folder / "adapter_config.json");
  EXPECT_THAT(MessageOf<FileError>(message), HasSubstr("found the weights alone."));
}

TEST_F(Adapter, BaseThatIsNotHereIsNamed)
{
  this->MakeChangedLlama();
  this->Set(R"("base_model_name_or_path": "meta-llama/Llama-2-7b-hf")");
  this->WriteAdapter(this->Folder.Path());
  const auto message = [&]
  { return MessageOf<FileError>([&] { Transformer::Read(this->Folder.Path()); }); };
  EXPECT_THAT(message(), HasSubstr("'meta-llama/Llama-2-7b-hf', found none."));
  // Settings of the base alone, as some trainings leave them, do not make a model.
  WriteBytes(this->Folder / ConfigFile, this->Config);
  EXPECT_THAT(message(), HasSubstr("'meta-llama/Llama-2-7b-hf', found none."));
  this->WriteBase(this->Folder / "meta-llama/Llama-2-7b-hf");
  EXPECT_NO_THROW(Transformer::Read(this->Folder.Path()));
  // It comes before a model beside the adapter, which may be one that it was merged into.
  this->Base.erase("lm_head.weight");
  this->WriteBase(this->Folder.Path());
  EXPECT_NO_THROW(Transformer::Read(this->Folder.Path()));
  WriteBytes(this->Folder / "meta-llama/Llama-2-7b-hf/adapter_config.json", "{}");
  EXPECT_THAT(message(), HasSubstr("without an adapter of its own, found one."));
}

}
