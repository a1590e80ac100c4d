#include "GgufModel.h"

#include "Error.h"
#include "ErrorMessage.h"
#include "GgufBytes.h"
#include "JsonText.h"
#include "ModelsOracle.h"
#include "RecordTransformer.h"
#include "Safetensors.h"
#include "TemporaryDirectory.h"
#include "Transformer.h"

#include <algorithm>
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
  EXPECT_EQ(config.architecture, "llama");
  EXPECT_EQ(config.layers, 1);
  EXPECT_EQ(config.heads, 2);
  EXPECT_EQ(config.keyHeads, 1);
  EXPECT_EQ(config.headDimension, 4);
  EXPECT_EQ(config.modelDimension, 8);
  EXPECT_EQ(config.mlpDimension, 6);
  EXPECT_EQ(config.vocabulary, 5);
  EXPECT_EQ(config.positions, 32);
  EXPECT_EQ(config.rotaryBase, 1000);
  EXPECT_NEAR(config.epsilon, 1e-5, 1e-12);
  EXPECT_TRUE(config.tiedUnembedding);
  EXPECT_FALSE(config.inputBias);
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

TEST_F(GgufModel, OtherModelsAreRefusedByName)
{
  EXPECT_THAT(this->Refusal(TinyGguf("mamba")),
    AllOf(StartsWith(this->Path.string() + ": "),
      HasSubstr(
        "expected a model of one of the architectures bert, bloom, deepseek2, gemma, gemma2, "
        "gemma3, gpt2, gptneox, llama, olmo, olmoe, phi2, phi3, qwen2, qwen2moe, qwen3, qwen3moe, "
        "stablelm, found 'mamba'")));
  const auto refusal = [&](const std::function<void(GgufBytes&)>& change)
  {
    GgufBytes bytes = TinyGguf();
    change(bytes);
    return this->Refusal(bytes);
  };
  GgufBytes experts = TinyGguf("qwen2");
  experts.AddInteger("qwen2.expert_count", 8);
  EXPECT_THAT(this->Refusal(experts), HasSubstr("found a mixture of experts"));
  experts = TinyGguf();
  experts.AddInteger("llama.expert_count", 8);
  EXPECT_THAT(this->Refusal<FormatError>(experts), HasSubstr("'llama.expert_used_count'"));
  experts.AddInteger("llama.expert_used_count", 2);
  EXPECT_THAT(this->Refusal(experts),
    HasSubstr("expected tensors 'ffn_gate_exps.weight' in layers with experts, found none"));
  EXPECT_THAT(refusal([](GgufBytes& bytes) { bytes.AddInteger("llama.rope.dimension_count", 2); }),
    HasSubstr("expected a rotary embedding of all components of a head"));
  EXPECT_THAT(refusal([](GgufBytes& bytes) { bytes.AddInteger("llama.rope.dimension_count", 6); }),
    HasSubstr("expected a rotary embedding of at most 4 components of a head, found one of 6"));
  EXPECT_THAT(
    refusal([](GgufBytes& bytes) { bytes.AddInteger("llama.attention.value_length", 2); }),
    HasSubstr("found 4 and 2"));
  EXPECT_THAT(refusal([](GgufBytes& bytes) { bytes.AddFloats("blk.0.attn_q_norm.weight", { 4 }); }),
    HasSubstr("tensor 'blk.0.attn_q_norm.weight'"));
  EXPECT_THAT(
    refusal([](GgufBytes& bytes) { bytes.AddFloats("blk.0.attn_rot_embd.weight", { 4 }); }),
    HasSubstr("tensor 'blk.0.attn_rot_embd.weight'"));
  EXPECT_THAT(refusal([](GgufBytes& bytes) { bytes.AddFloats("rope_factors_long.weight", { 2 }); }),
    HasSubstr("tensor 'rope_factors_short.weight' is missing"));
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

/// A model of Hugging Face, and its file by llama.cpp's own conversion.
struct ConvertedModel
{
  const char* name;
  const char* change; ///< settings that the file cannot hold, which are as llama.cpp assumes
  friend void PrintTo(const ConvertedModel& model, std::ostream* stream) { *stream << model.name; }
};

using GgufConversion = testing::TestWithParam<ConvertedModel>;

INSTANTIATE_TEST_SUITE_P(, GgufConversion,
  testing::Values(ConvertedModel{ "bert", "{}" }, ConvertedModel{ "bloom", "{}" },
    ConvertedModel{ "gemma", "{}" },
    ConvertedModel{ "gemma2", R"({ "query_pre_attn_scalar": 16 })" },
    ConvertedModel{ "gemma3-v5", R"({ "layer_types": null, "sliding_window_pattern": 6 })" },
    ConvertedModel{ "gpt2", "{}" }, ConvertedModel{ "gpt_neox", "{}" },
    ConvertedModel{ "olmo", "{}" }, ConvertedModel{ "phi", "{}" },
    ConvertedModel{ "phi3-longrope", "{}" },
    ConvertedModel{ "qwen3-v5", R"({ "use_sliding_window": false })" },
    ConvertedModel{ "roberta", "{}" }, ConvertedModel{ "stablelm", "{}" }),
  [](const auto& test)
  {
    std::string name = test.param.name;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
  });

/// The folder of a model, which may be among those of the conversions, of all architectures, or of
/// the first.
std::filesystem::path FolderOf(const std::string& name)
{
  std::filesystem::path folder = ModelsOracle("files/gguf/conversions/" + name);
  folder = folder.empty() ? ModelsOracle("transformers/" + name) : folder;
  return folder.empty() ? std::filesystem::path(ATLAS_ORACLE_DIR) / "transformers" / name : folder;
}

/// All but the conversion is checked elsewhere: files of Hugging Face against the original code.
TEST_P(GgufConversion, ComputesWhatTheModelDoes)
{
  const std::string name = GetParam().name;
  const std::filesystem::path folder = FolderOf(name);
  nlohmann::json config =
    ParseJson(ReadFile(folder / "config.json"), folder.string(), "the configuration");
  config.merge_patch(nlohmann::json::parse(GetParam().change));
  const Transformer model(
    ParseTransformerConfig(config.dump(), name), WeightFiles::Read(FindWeights(folder)));
  const Transformer found =
    Transformer::Read(ModelsOracle("files/gguf/conversions/" + name + ".gguf"));
  EXPECT_THAT(found.GetWeights().unused, testing::IsEmpty());
  TransformerInput input;
  // No id 1, which RoBERTa's files of Hugging Face take for padding without a position.
  input.tokens = { { 3, 10, 4, 10, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6 },
    { 2, 7, 11 } };
  // llama.cpp leaves out what predicts masked words.
  RecordOptions options;
  options.logits = model.GetConfig().mask == AttentionMask::Causal;
  options.residual = true;
  const Recording expected = RecordTransformer(model, input, options);
  const Recording recording = RecordTransformer(found, input, options);
  const auto expectClose = [](const SharedMatrix& x, const SharedMatrix& y)
  {
    ASSERT_EQ(x.Count(), y.Count());
    for (std::uint64_t i = 0; i < x.Count(); ++i)
    {
      // Its epsilon is rounded.
      ASSERT_NEAR(x.Row(0)[i], y.Row(0)[i], 2e-5 * std::max(1.F, std::abs(x.Row(0)[i]))) << i;
    }
  };
  ASSERT_EQ(expected.layers.size(), recording.layers.size());
  for (std::size_t l = 0; l < expected.layers.size(); ++l)
  {
    SCOPED_TRACE(l);
    for (std::size_t h = 0; h < expected.layers[l].heads.size(); ++h)
    {
      expectClose(expected.layers[l].heads[h].query, recording.layers[l].heads[h].query);
      expectClose(expected.layers[l].heads[h].key, recording.layers[l].heads[h].key);
    }
    expectClose(expected.residual[l + 1], recording.residual[l + 1]);
  }
  EXPECT_EQ(found.GetWeights().unembedding.Exists(), options.logits);
  expectClose(expected.logits, recording.logits);
}

}
