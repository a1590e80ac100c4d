#include "Weights/GgufModel.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "ExpectMembers.h"
#include "GgufBytes.h"
#include "TemporaryDirectory.h"
#include "Text/GgufTokenizer.h"
#include "Weights/Transformer.h"

#include <cmath>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

// What models of GGUF files compute is compared with the original code in TestModelParity.cxx.

/// A model from a file in a folder of its own.
class GgufModel : public testing::Test
{
protected:
  Transformer Read(const GgufBytes& bytes) const
  {
    WriteBytes(this->Path, bytes.File());
    return Transformer::Read(this->Path);
  }

  template<class ErrorType = ModelError>
  std::string Refusal(const GgufBytes& bytes) const
  {
    return MessageOf<ErrorType>([&] { this->Read(bytes); });
  }

  TemporaryDirectory Folder;
  std::filesystem::path Path = this->Folder / "tiny.gguf";
};

TEST_F(GgufModel, ConfigurationIsInTheFile)
{
  const TransformerConfig config = this->Read(TinyGguf()).GetConfig();
  ExpectMembers(config,
    "architecture=llama layers=1 heads=2 keyHeads=1 headDimension=4 modelDimension=8 "
    "mlpDimension=6 vocabulary=5 positions=32 rotaryBase=1000 tiedUnembedding=1 inputBias=0");
  EXPECT_NEAR(config.epsilon, 1e-5, 1e-12);
}

TEST_F(GgufModel, IsFoundByItsFolder)
{
  WriteBytes(this->Path, TinyGguf().File());
  EXPECT_EQ(Transformer::Read(this->Folder.Path()).GetConfig().layers, 1);
  EXPECT_EQ(FindGguf(this->Folder.Path()), this->Path);
  EXPECT_EQ(FindGguf(this->Path), this->Path);
  EXPECT_EQ(FindGguf(this->Folder / "config.json"), "");
  std::filesystem::copy(this->Path, this->Folder / "other.gguf");
  EXPECT_THAT(MessageOf<FileError>([&] { Transformer::Read(this->Folder.Path()); }),
    HasSubstr("expected a single GGUF file, found 2, such as other.gguf and tiny.gguf"));
  WriteBytes(this->Folder / "config.json", "{}");
  EXPECT_EQ(FindGguf(this->Folder.Path()), "");
}

/// The tensors of TinyGguf in three files, as llama.cpp's gguf-split writes them: the first has the
/// metadata, and with --no-tensor-first-split no tensor.
class SplitGguf : public GgufModel
{
protected:
  struct Part
  {
    std::uint32_t number;
    std::uint32_t count = 3;
    std::uint32_t tensors = 11;
  };
  std::vector<GgufBytes> Parts;

  SplitGguf() { this->Make({ { 0 }, { 1 }, { 2 } }); }

  std::filesystem::path Shard(int number) const
  {
    return this->Folder / ("tiny-0000" + std::to_string(number + 1) + "-of-00003.gguf");
  }

  void Make(const std::vector<Part>& parts)
  {
    this->Parts.clear();
    for (const Part& part : parts)
    {
      GgufBytes& bytes = this->Parts.emplace_back();
      if (this->Parts.size() == 1)
      {
        bytes = TinyGgufSettings();
      }
      bytes.Add("split.no", 2, LittleEndian(part.number, 2));
      bytes.Add("split.count", 2, LittleEndian(part.count, 2));
      bytes.Add("split.tensors.count", 5, LittleEndian(part.tensors, 4));
    }
    for (const auto& [name, shape] : TinyGgufTensors())
    {
      this->Parts[name.find("attn") != std::string::npos ? 1 : 2].AddFloats(name, shape);
    }
    for (std::size_t i = 0; i < this->Parts.size(); ++i)
    {
      WriteBytes(this->Shard(static_cast<int>(i)), this->Parts[i].File());
    }
  }

  template<class ErrorType>
  std::string RefusedShard(int number) const
  {
    return MessageOf<ErrorType>([&] { Transformer::Read(this->Shard(number)); });
  }
};

TEST_F(SplitGguf, IsReadFromEachShardAndFromItsFolder)
{
  const TemporaryDirectory other;
  WriteBytes(other / "whole.gguf", TinyGguf().File());
  const Transformer whole = Transformer::Read(other / "whole.gguf");
  for (const std::filesystem::path& path :
    { this->Shard(0), this->Shard(1), this->Shard(2), this->Folder.Path() })
  {
    SCOPED_TRACE(path);
    EXPECT_FALSE(std::filesystem::is_regular_file(path) && IsVocabularyAlone(path));
    const Transformer model = Transformer::Read(path);
    EXPECT_EQ(model.GetConfig().vocabulary, 5);
    const TensorViews& tensors = model.GetFiles().GetTensors();
    ASSERT_EQ(tensors.size(), whole.GetFiles().GetTensors().size());
    for (const auto& [name, view] : whole.GetFiles().GetTensors())
    {
      EXPECT_EQ(tensors.at(name).ToDouble(), view.ToDouble()) << name;
    }
    EXPECT_EQ(model.GetFiles().FileOf("blk.0.attn_q.weight"), this->Shard(1).string());
    EXPECT_EQ(model.GetFiles().FileOf("output_norm.weight"), this->Shard(2).string());
    EXPECT_EQ(model.GetFiles().Stamps().size(), 3U);
    EXPECT_EQ(ReadGgufTokenizer(FindGguf(path)).VocabularySize(), 5);
  }
}

TEST_F(SplitGguf, MissingShardIsNamed)
{
  for (int missing = 0; missing < 3; ++missing)
  {
    std::filesystem::remove(this->Shard(missing));
    EXPECT_THAT(this->RefusedShard<FileError>(missing == 0 ? 2 : 0),
      HasSubstr("the shard '" + this->Shard(missing).filename().string() +
                "' is missing; expected all 3 in one folder."));
    EXPECT_THAT(MessageOf<FileError>([&] { Transformer::Read(this->Folder.Path()); }),
      HasSubstr(this->Shard(missing).filename().string()));
    this->Make({ { 0 }, { 1 }, { 2 } });
  }
}

TEST_F(SplitGguf, ShardsThatDoNotFitAreRefused)
{
  this->Make({ { 0 }, { 2 }, { 2 } });
  EXPECT_THAT(this->RefusedShard<FormatError>(0),
    HasSubstr("tiny-00002-of-00003.gguf: the metadata 'split.no': expected 1 by the name of the "
              "file, found 2."));
  this->Make({ { 0 }, { 1, 4 }, { 2 } });
  EXPECT_THAT(this->RefusedShard<FormatError>(0),
    HasSubstr("the metadata 'split.count': expected 3 by the name of the file, found 4."));
  this->Make({ { 0, 3, 12 }, { 1, 3, 12 }, { 2, 3, 12 } });
  EXPECT_THAT(this->RefusedShard<FormatError>(0),
    HasSubstr("'split.tensors.count': expected 12 tensors in all shards, found 11."));
  this->Make({ { 0 }, { 1 }, { 2 } });
  this->Parts[2].AddFloats("blk.0.attn_q.weight", { 8, 8 });
  WriteBytes(this->Shard(2), this->Parts[2].File());
  EXPECT_THAT(this->RefusedShard<FormatError>(0), HasSubstr("tensor 'blk.0.attn_q.weight' is in"));
}

TEST_F(SplitGguf, ShardsAreFoundByTheirNames)
{
  std::filesystem::rename(this->Shard(0), this->Path);
  EXPECT_THAT(MessageOf<FormatError>([&] { Transformer::Read(this->Path); }),
    HasSubstr("tiny.gguf: expected a name that ends with '-00001-of-00003.gguf'"));
  EXPECT_EQ(FirstGgufShard(this->Path), this->Path);
  EXPECT_EQ(FirstGgufShard("a/b-00012-of-00013.gguf"), "a/b-00001-of-00013.gguf");
  EXPECT_EQ(FirstGgufShard("b-0012-of-00013.gguf"), "b-0012-of-00013.gguf");
}

TEST_F(GgufModel, AdapterIsRefusedAsWhatItIs)
{
  GgufBytes bytes;
  bytes.AddText("general.type", "adapter");
  bytes.AddText("general.architecture", "llama");
  bytes.AddFloats("blk.0.attn_q.weight.lora_a", { 2, 8 });
  EXPECT_THAT(this->Refusal(bytes), HasSubstr("expected a model, found an adapter of llama.cpp"));
}

TEST_F(GgufModel, TensorsHaveTheNamesOfTheFile)
{
  const Transformer model = this->Read(TinyGguf());
  const TensorViews& tensors = model.GetFiles().GetTensors();
  EXPECT_EQ(tensors.size(), 11U);
  EXPECT_EQ(tensors.at("token_embd.weight").shape, (Shape{ 5, 8 }));
  EXPECT_EQ(tensors.at("blk.0.attn_q.weight").interleavedRows, 4);
  EXPECT_EQ(tensors.at("blk.0.attn_k.weight").interleavedRows, 4);
  EXPECT_EQ(tensors.at("blk.0.attn_v.weight").interleavedRows, 0);
  EXPECT_EQ(model.GetFiles().FileOf("output_norm.weight"), this->Path.string());
  EXPECT_EQ(model.GetFiles().Stamps().size(), 1U);
}

TEST_F(GgufModel, FrequenciesAreDivided)
{
  const std::vector<float> plain = RotaryFrequencies(this->Read(TinyGguf()).GetConfig());
  GgufBytes divided = TinyGguf();
  divided.AddTensor("rope_freqs.weight", { 2 }, 0, FloatBytes({ 1, 4 }));
  const std::vector<float> frequencies = RotaryFrequencies(this->Read(divided).GetConfig());
  ASSERT_EQ(frequencies.size(), 2U);
  EXPECT_FLOAT_EQ(frequencies[0], plain[0]);
  EXPECT_FLOAT_EQ(frequencies[1], plain[1] / 4);
  for (const std::vector<float>& bad : { std::vector<float>{ 1 }, { 1, 0 }, { 1, NAN } })
  {
    GgufBytes bytes = TinyGguf();
    bytes.AddTensor(
      "rope_freqs.weight", { static_cast<std::int64_t>(bad.size()) }, 0, FloatBytes(bad));
    EXPECT_THAT(this->Refusal(bytes), HasSubstr("tensor 'rope_freqs.weight': expected "));
  }
}

/// As llama.cpp: the factor of the file multiplies that of YaRN, and counts without YaRN, too.
TEST_F(GgufModel, FactorOfAttentionMultiplies)
{
  const auto factor = [&](const std::string& type, bool hasFactor)
  {
    GgufBytes bytes = TinyGguf();
    bytes.AddText("llama.rope.scaling.type", type);
    bytes.AddNumber("llama.rope.scaling.factor", 8);
    if (hasFactor)
    {
      bytes.AddNumber("llama.rope.scaling.attn_factor", 0.5F);
    }
    return this->Read(bytes).GetConfig().rotaryScaling.attentionFactor;
  };
  const double yarn = 1 + 0.1 * std::log(8.0);
  EXPECT_DOUBLE_EQ(factor("yarn", false), yarn);
  EXPECT_DOUBLE_EQ(factor("yarn", true), 0.5 * yarn);
  EXPECT_DOUBLE_EQ(factor("linear", false), 1);
  EXPECT_DOUBLE_EQ(factor("linear", true), 0.5);
  EXPECT_DOUBLE_EQ(factor("none", true), 0.5);
}

/// llama.cpp (llama_model::load_hparams) has 4096 for Gemma 2, and none for Gemma 3.
TEST_F(GgufModel, Gemma2HasAWindowThatOldFilesLeaveOut)
{
  const auto window = [&](const std::string& architecture, int size)
  {
    GgufBytes bytes = TinyGguf(architecture);
    if (size >= 0)
    {
      bytes.AddInteger(
        architecture + ".attention.sliding_window", static_cast<std::uint32_t>(size));
    }
    WriteBytes(this->Path, bytes.File());
    return ReadGgufConfig(this->Path).Window(0);
  };
  EXPECT_EQ(window("gemma2", -1), 4096);
  EXPECT_EQ(window("gemma2", 16), 16);
  EXPECT_EQ(window("gemma2", 0), 0);
  EXPECT_EQ(window("gemma3", -1), 0);
  EXPECT_EQ(window("gemma3", 16), 16);
}

TEST_F(GgufModel, SettingsThatChangeNumbersAreRefusedByName)
{
  const auto read = [&](const char* key, float value)
  {
    GgufBytes bytes = TinyGguf();
    bytes.AddNumber(key, value);
    return this->Read(bytes).GetConfig().unknownSettings;
  };
  for (const std::string key : { "attention.scale", "logit_scale", "residual_scale",
         "embedding_scale", "rope.scaling.yarn_ext_factor", "rope.scaling.yarn_attn_factor",
         "rope.scaling.yarn_log_multiplier", "nextn_predict_layers", "attn_logit_softcapping",
         "attention.max_alibi_bias", "attention.clamp_kqv", "interleave_moe_layer_step" })
  {
    // Some are given to the parser, with the name that they have in a config.json.
    EXPECT_THAT(MessageOf<ModelError>([&] { read(("llama." + key).c_str(), 0.25F); }),
      AllOf(StartsWith(this->Path.string() + ": '"), HasSubstr(" is 0.25")))
      << key;
  }
  EXPECT_THAT(read("llama.logit_scale", 1), IsEmpty());
  EXPECT_THAT(read("llama.expert_group_count", 0), IsEmpty());
  EXPECT_THAT(read("llama.of_mine", 3), ElementsAre("of_mine"));
  EXPECT_THAT(read("mine.number", 3), IsEmpty());
  EXPECT_THAT(read("tokenizer.ggml.of_mine", 3), ElementsAre("tokenizer.ggml.of_mine"));
  EXPECT_THAT(read("tokenizer.ggml.padding_token_id", 3), IsEmpty());
  GgufBytes bytes = TinyGguf();
  bytes.Add("llama.attention.causal", 7, std::string(1, 0)); // false
  EXPECT_THAT(this->Refusal(bytes),
    HasSubstr("expected attention.causal to be true for 'llama', found false"));
  GgufBytes projector = TinyGguf();
  projector.AddText("general.type", "mmproj");
  EXPECT_THAT(
    this->Refusal(projector), HasSubstr("expected a model, found the general.type 'mmproj'"));
}

TEST_F(GgufModel, OtherModelsAreRefusedByName)
{
  EXPECT_THAT(this->Refusal(TinyGguf("mamba")),
    AllOf(StartsWith(this->Path.string() + ": "),
      HasSubstr(
        "expected a model of one of the architectures apertus, arcee, bert, bloom, chatglm, "),
      HasSubstr(", found 'mamba'")));
  for (const char* name : { "bitnet", "gptj", "jina-bert-v2", "plamo", "t5" }) // and their kind
  {
    EXPECT_THAT(this->Refusal(TinyGguf(name)), HasSubstr(", found '" + std::string(name) + "'"));
  }
  GgufBytes experts = TinyGguf("qwen2");
  experts.AddInteger("qwen2.expert_count", 8);
  EXPECT_THAT(this->Refusal(experts), HasSubstr("found a mixture of experts"));
  experts = TinyGguf();
  experts.AddInteger("llama.expert_count", 8);
  EXPECT_THAT(this->Refusal<FormatError>(experts), HasSubstr("'llama.expert_used_count'"));
  experts.AddInteger("llama.expert_used_count", 2);
  EXPECT_THAT(this->Refusal(experts),
    HasSubstr("expected tensors 'ffn_gate_exps.weight' in layers with experts, found none"));
  using Change = std::function<void(GgufBytes&)>;
  const auto add = [](const char* key, std::uint32_t value) -> Change
  { return [=](GgufBytes& bytes) { bytes.AddInteger(key, value); }; };
  const auto addTensor = [](const char* name, std::int64_t size) -> Change
  { return [=](GgufBytes& bytes) { bytes.AddFloats(name, { size }); }; };
  for (const auto& [change, message] : std::vector<std::pair<Change, const char*>>{
         { add("llama.rope.dimension_count", 2),
           "expected a rotary embedding of all components of a head" },
         { add("llama.rope.dimension_count", 6),
           "expected a rotary embedding of at most 4 components of a head, found one of 6" },
         { add("llama.attention.value_length", 2), "found 4 and 2" },
         { addTensor("blk.0.attn_q_norm.weight", 4), "tensor 'blk.0.attn_q_norm.weight'" },
         { addTensor("blk.0.attn_rot_embd.weight", 4), "tensor 'blk.0.attn_rot_embd.weight'" },
         { addTensor("rope_factors_long.weight", 2),
           "tensor 'rope_factors_short.weight' is missing" } })
  {
    GgufBytes bytes = TinyGguf();
    change(bytes);
    EXPECT_THAT(this->Refusal(bytes), HasSubstr(message));
  }
  GgufBytes vocabulary;
  vocabulary.AddText("general.architecture", "llama");
  EXPECT_THAT(this->Refusal(vocabulary),
    HasSubstr("expected the weights of a model, found none: this file has a vocabulary alone"));
  GgufBytes empty;
  empty.AddFloats("token_embd.weight", { 4 });
  EXPECT_THAT(this->Refusal<FormatError>(empty), HasSubstr("'general.architecture'"));
  empty.AddText("general.architecture", "llama");
  EXPECT_THAT(this->Refusal<FormatError>(empty), HasSubstr("'llama."));
}

}
