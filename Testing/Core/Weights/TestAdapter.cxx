#include "Weights/Adapter.h"

#include "AdapterFixture.h"
#include "ModelsOracle.h"
#include "Recorder/OpenTransformer.h"
#include "Refusals.h"
#include "TorchBytes.h"
#include "TransformerOracle.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

TEST_F(Adapter, MatricesAreAdded)
{
  this->MakeChangedLlama();
  this->ChangeMatrix(this->Gate, 6, 8);
  const Transformer model = this->Read();
  for (const std::string& module : { this->Query, this->Gate })
  {
    Expect(model, module + ".weight", this->Sum(module, 3));
  }
  const std::string untouched = "model.layers.1.self_attn.q_proj.weight";
  Expect(model, untouched, this->OfBase(untouched));
  EXPECT_EQ(model.GetFiles().FileOf(this->Query + ".weight"),
    (this->Folder / "adapter_model.safetensors").string());
  EXPECT_EQ(model.GetFiles().Stamps().size(), 2U);
  EXPECT_THAT(model.GetWeights().unused, IsEmpty());
  this->Set(R"("use_rslora": true)"); // by the root of the rank
  Expect(this->Read(), this->Query + ".weight", this->Sum(this->Query, 6 / std::sqrt(2.0)));
}

TEST_F(Adapter, DoubleBaseStaysDouble)
{
  this->MakeLlama();
  const std::string name = this->Query + ".weight";
  const Tensor single = this->Base.at(name);
  this->Base[name] = Tensor::FromDouble(DType::F64, single.shape, single.View().ToDouble());
  this->ChangeMatrix(this->Query, 8, 8);
  const Transformer model = this->Read();
  EXPECT_EQ(model.GetFiles().GetTensors().at(name).dtype, DType::F64);
  Expect(model, name, this->Sum(this->Query, 3));
}

TEST_F(Adapter, FirstPatternThatMatchesGivesRankAndAlpha)
{
  this->MakeLlama();
  const std::string other = "model.layers.1.self_attn.q_proj";
  this->ChangeMatrix(this->Query, 8, 8, 3);
  this->ChangeMatrix(other, 8, 8, 1);
  this->ChangeMatrix(this->Gate, 6, 8);
  this->Set(R"("rank_pattern": {"layers\\.0\\.self_attn\\.q_proj": 3, "self_attn.(q|k)_proj": 1},
    "alpha_pattern": {"z": 9, "q_proj": 5, ".*self_attn.q_proj": 7, "gate": 11, "_proj": 13})");
  const Transformer model = this->Read();
  Expect(model, this->Query + ".weight", this->Sum(this->Query, 5.0 / 3));
  Expect(model, other + ".weight", this->Sum(other, 5));
  Expect(model, this->Gate + ".weight", this->Sum(this->Gate, 3)); // matches as a whole alone
}

TEST_F(Adapter, DoraGivesEachOutputItsLength)
{
  this->MakeLlama();
  this->Set(R"("use_dora": true)");
  const std::string down = "model.layers.0.mlp.down_proj";
  this->ChangeMatrix(this->Query, 8, 8);
  this->ChangeMatrix(down, 8, 6);
  this->Change(this->Query + ".lora_magnitude_vector", { 8 });
  this->Change(down + ".lora_magnitude_vector.weight", { 8 });
  const Transformer model = this->Read();
  Expect(model, this->Query + ".weight",
    WithLengths(
      this->Sum(this->Query, 3), this->OfAdapter(this->Query + ".lora_magnitude_vector")));
  Expect(model, down + ".weight",
    WithLengths(this->Sum(down, 3), this->OfAdapter(down + ".lora_magnitude_vector.weight")));
}

/// GPT-2 stores its matrices as [inputs, outputs], which are those of A and B. Its files may lack
/// the prefix that modules have.
TEST_F(Adapter, MatricesOfGpt2AreTransposed)
{
  for (const bool isDora : { false, true })
  {
    this->MakeGpt2();
    this->Changes.clear();
    this->Settings = R"("peft_type": "LORA", "r": 2, "lora_alpha": 6, "fan_in_fan_out": true)";
    this->Set(isDora ? R"("use_dora": true)" : R"("use_dora": false)");
    const std::vector<std::pair<std::string, std::pair<std::int64_t, std::int64_t>>> modules = {
      { "h.0.attn.c_attn", { 144, 48 } }, { "h.0.attn.c_proj", { 48, 48 } },
      { "h.1.mlp.c_fc", { 300, 48 } }, { "h.1.mlp.c_proj", { 48, 300 } }
    };
    for (const auto& [module, sizes] : modules)
    {
      this->ChangeMatrix("transformer." + module, sizes.first, sizes.second);
      if (isDora)
      {
        this->Change("transformer." + module + ".lora_magnitude_vector", { sizes.first });
      }
    }
    const Transformer model = this->Read();
    for (const auto& [module, sizes] : modules)
    {
      const std::string changed = "transformer." + module;
      Matrix sum = this->Sum(changed, 3, this->OfBase(module + ".weight").transpose());
      if (isDora)
      {
        sum = WithLengths(sum, this->OfAdapter(changed + ".lora_magnitude_vector"));
      }
      Expect(model, module + ".weight", sum.transpose());
    }
  }
}

TEST_F(Adapter, BiasOfBIsScaled)
{
  this->MakeGpt2();
  const std::string module = "transformer.h.0.attn.c_attn";
  this->ChangeMatrix(module, 144, 48);
  this->Change(module + ".lora_B.bias", { 144 });
  this->Set(R"("lora_bias": true)");
  const Matrix expected =
    this->OfBase("h.0.attn.c_attn.bias") + 3 * this->OfAdapter(module + ".lora_B.bias");
  Expect(this->Read(), "h.0.attn.c_attn.bias", expected);
  this->Settings = R"("peft_type": "LORA", "r": 2)";
  EXPECT_THAT(this->Refusal(), HasSubstr("expected a bias of lora_B with lora_bias alone"));
  this->Changes.clear();
  this->MakeLlama(); // which has none
  this->ChangeMatrix(this->Query, 8, 8);
  this->Change(this->Query + ".lora_B.bias", { 8 });
  this->Set(R"("lora_bias": true)");
  EXPECT_THAT(this->Refusal(), HasSubstr("expected a bias in the model"));
}

TEST_F(Adapter, TrainedBiasesReplaceThoseOfTheModel)
{
  this->MakeGpt2();
  this->ChangeMatrix("transformer.h.0.attn.c_attn", 144, 48);
  this->Change("transformer.h.0.attn.c_attn.base_layer.bias", { 144 });
  this->Change("transformer.h.1.ln_1.bias", { 48 });
  this->Set(R"("bias": "all")");
  const Transformer model = this->Read();
  Expect(
    model, "h.0.attn.c_attn.bias", this->OfAdapter("transformer.h.0.attn.c_attn.base_layer.bias"));
  Expect(model, "h.1.ln_1.bias", this->OfAdapter("transformer.h.1.ln_1.bias"));
}

TEST_F(Adapter, SavedModulesReplaceThoseOfTheModel)
{
  this->MakeChangedLlama();
  this->Change("lm_head.weight", { 5, 8 });
  this->Change("model.layers.1.input_layernorm.weight", { 8 });
  this->Change("score.weight", { 2, 8 });
  this->Set(R"("modules_to_save": ["lm_head", "input_layernorm", "score"])");
  const Transformer model = this->Read();
  Expect(model, "lm_head.weight", this->OfAdapter("lm_head.weight"));
  Expect(model, "model.layers.1.input_layernorm.weight",
    this->OfAdapter("model.layers.1.input_layernorm.weight"));
  Expect(model.GetWeights().unembedding.weight, this->OfAdapter("lm_head.weight"));
  EXPECT_THAT(model.GetWeights().unused, ElementsAre("score.weight"));
}

TEST_F(Adapter, EmbeddingsAreChangedToo)
{
  this->MakeLlama();
  const std::string module = this->Embedding;
  this->ChangeEmbedding();
  const Matrix sum = this->EmbeddingSum(this->OfBase(module + ".weight"));
  Expect(this->Read(), module + ".weight", sum.transpose());
  this->Set(R"("use_dora": true)");
  this->Change(module + ".lora_magnitude_vector", { 8 });
  Expect(this->Read(), module + ".weight",
    WithLengths(sum, this->OfAdapter(module + ".lora_magnitude_vector")).transpose());
}

/// In peft a module that is changed is no longer tied, unless the settings say so.
TEST_F(Adapter, TiedUnembeddingIsLeftUnlessItIsToFollow)
{
  this->MakeLlama(true);
  const Matrix old = this->OfBase("model.embed_tokens.weight");
  this->ChangeEmbedding();
  const Matrix sum = this->EmbeddingSum(old).transpose();
  const auto expect = [&](const Matrix& unembedding)
  {
    const Transformer model = this->Read();
    Expect(model.GetWeights().tokenEmbedding, sum);
    Expect(model.GetWeights().unembedding.weight, unembedding);
  };
  expect(old);
  const std::string before = this->Settings;
  this->Set(R"("ensure_weight_tying": true)");
  expect(sum);
  this->Settings = before; // and the embedding may have its other name in the file
  this->Base["lm_head.weight"] = this->Base.at("model.embed_tokens.weight");
  this->Base.erase("model.embed_tokens.weight");
  expect(old);
}

TEST_F(Adapter, TiedUnembeddingMayBeChangedOrSavedAlone)
{
  this->MakeLlama(true);
  const Matrix old = this->OfBase("model.embed_tokens.weight");
  this->ChangeMatrix("lm_head", 5, 8);
  const Transformer changed = this->Read();
  Expect(changed.GetWeights().tokenEmbedding, old);
  Expect(changed.GetWeights().unembedding.weight, this->Sum("lm_head", 3, old));
  this->Changes.clear();
  this->Change("lm_head.weight", { 5, 8 });
  this->Set(R"("modules_to_save": ["lm_head"])");
  const Transformer saved = this->Read();
  Expect(saved.GetWeights().tokenEmbedding, old);
  Expect(saved.GetWeights().unembedding.weight, this->OfAdapter("lm_head.weight"));
}

TEST_F(Adapter, RowsOfTokensAreReplaced)
{
  this->MakeLlama(true);
  this->Change("model.embed_tokens.token_adapter.trainable_tokens_delta", { 2, 8 });
  Matrix expected = this->OfBase("model.embed_tokens.weight");
  const Matrix rows = this->OfAdapter("model.embed_tokens.token_adapter.trainable_tokens_delta");
  expected.row(4) = rows.row(0);
  expected.row(1) = rows.row(1);
  for (const char* tokens : { "[4, 1]", R"({"embed_tokens": [4, 1]})" })
  {
    this->Settings =
      R"("peft_type": "LORA", "r": 2, "trainable_token_indices": )" + std::string(tokens);
    const Transformer model = this->Read();
    Expect(model.GetWeights().tokenEmbedding, expected);
    Expect(model.GetWeights().unembedding.weight, expected); // it follows
  }
  this->Settings = R"("peft_type": "LORA", "r": 2)";
  ExpectRefusals<ModelError>(
    { { R"("trainable_token_indices": [4, 5])", "expected tokens below 5, found 5" },
      { R"("trainable_token_indices": [4])", "expected the shape [1, 8], found [2, 8]" },
      { R"("lora_alpha": 6)", "expected the tokens of 'model.embed_tokens', found none" } },
    this->ReaderWith());
}

/// Trainings add tokens, and save the embeddings, which then have more rows than those of the base.
TEST_F(Adapter, SavedEmbeddingsMayHaveMoreTokens)
{
  this->MakeChangedLlama();
  this->Change("model.embed_tokens.weight", { 7, 8 });
  this->Change("lm_head.weight", { 7, 8 });
  this->Set(R"("modules_to_save": ["embed_tokens", "lm_head"])");
  const Transformer model = this->Read();
  EXPECT_EQ(model.GetConfig().vocabulary, 7);
  EXPECT_EQ(model.GetConfig().outputVocabulary, 7);
  Expect(model.GetWeights().tokenEmbedding, this->OfAdapter("model.embed_tokens.weight"));
  Expect(model.GetWeights().unembedding.weight, this->OfAdapter("lm_head.weight"));
}

/// An embedding that was resized and is no module of the adapter is still tied.
TEST_F(Adapter, ResizedEmbeddingStaysTied)
{
  this->MakeLlama(true);
  this->ChangeMatrix(this->Query, 8, 8);
  this->Change("model.embed_tokens.weight", { 7, 8 });
  const Transformer model = this->Read();
  EXPECT_EQ(model.GetConfig().outputVocabulary, 7);
  Expect(model.GetWeights().unembedding.weight, this->OfAdapter("model.embed_tokens.weight"));
}

TEST_F(Adapter, ConvolutionOfPatchesIsAMatrix)
{
  const std::filesystem::path vit = TransformerOracle::Folder("vit");
  this->TakeModel(vit);
  std::string name = "embeddings.patch_embeddings.projection.weight";
  name = this->Base.count(name) != 0 ? name : "vit." + name;
  const std::string module = "vit.embeddings.patch_embeddings.projection";
  const Shape shape = this->Base.at(name).shape;
  this->Change(module + ".lora_A.weight", { 2, shape[1], shape[2], shape[3] });
  this->Change(module + ".lora_B.weight", { shape[0], 2, 1, 1 });
  Expect(this->Read(), name, this->Sum(module, 3, this->OfBase(name)));
}

/// Releases of transformers put other prefixes before the names of modules than files have.
TEST_F(Adapter, ModulesAreFoundBehindAllPrefixes)
{
  struct Case
  {
    std::string model;
    std::string module;
    std::string name; ///< in the file
  };
  for (const Case& one : std::vector<Case>{
         { "llava", "model.language_model.layers.0.self_attn.q_proj",
           "language_model.model.layers.0.self_attn.q_proj" },
         { "llava", "language_model.model.layers.0.self_attn.q_proj",
           "language_model.model.layers.0.self_attn.q_proj" },
         { "llava", "model.vision_tower.vision_model.encoder.layers.0.self_attn.q_proj",
           "vision_tower.vision_model.encoder.layers.0.self_attn.q_proj" },
         { "llava", "model.multi_modal_projector.linear_1", "multi_modal_projector.linear_1" },
         { "llava", "lm_head", "language_model.lm_head" },
         { "qwen2_vl", "model.language_model.layers.0.self_attn.q_proj",
           "model.layers.0.self_attn.q_proj" },
         { "qwen2_vl", "model.visual.blocks.0.attn.qkv", "visual.blocks.0.attn.qkv" },
         { "internvl", "model.vision_tower.encoder.layer.0.attention.q_proj",
           "vision_tower.encoder.layer.0.attention.q_proj" },
         { "smolvlm", "model.text_model.layers.0.self_attn.v_proj",
           "model.text_model.layers.0.self_attn.v_proj" },
         { "bart", "model.encoder.layers.0.self_attn.q_proj",
           "model.encoder.layers.0.self_attn.q_proj" },
         { "bart", "decoder.layers.0.self_attn.q_proj", "model.decoder.layers.0.self_attn.q_proj" },
         { "opt-proj", "decoder.layers.0.self_attn.q_proj",
           "model.decoder.layers.0.self_attn.q_proj" },
         { "phi3-longrope", "layers.0.self_attn.qkv_proj", "model.layers.0.self_attn.qkv_proj" },
         { "qwen3_moe", "model.layers.1.mlp.experts.0.down_proj",
           "model.layers.1.mlp.experts.0.down_proj" },
       })
  {
    SCOPED_TRACE(one.model + ": " + one.module);
    this->TakeModel(ModelsOracle("transformers/" + one.model));
    this->Changes.clear();
    const Shape shape = this->Base.at(one.name + ".weight").shape;
    this->ChangeMatrix(one.module, shape[0], shape[1]);
    Expect(this->Read(), one.name + ".weight",
      this->Sum(one.module, 3, this->OfBase(one.name + ".weight")));
  }
}

TEST_F(Adapter, EmbeddingThatEncoderAndDecoderShareIsRefused)
{
  this->TakeModel(ModelsOracle("transformers/t5"));
  const Shape shape = this->Base.at("shared.weight").shape;
  this->Change("shared.lora_embedding_A", { 2, shape[0] });
  this->Change("shared.lora_embedding_B", { shape[1], 2 });
  EXPECT_THAT(this->Refusal(), HasSubstr("the embedding that encoder and decoder share"));
  this->Changes.clear();
  this->Change("shared.weight", shape);
  EXPECT_THAT(this->Refusal(), HasSubstr("the embedding that encoder and decoder share"));
}

TEST_F(Adapter, IsReadFromPyTorchToo)
{
  this->MakeChangedLlama();
  this->WriteBase(this->Folder.Path());
  this->WriteAdapter(this->Folder.Path());
  std::vector<std::pair<std::string, std::string>> entries;
  std::vector<std::pair<std::string, std::string>> storages;
  for (const auto& [name, tensor] : this->Changes)
  {
    const std::string key = std::to_string(storages.size());
    const auto count = static_cast<std::int64_t>(tensor.View().Count());
    entries.emplace_back(
      name, PickledTensor({ key, count }, 0, tensor.shape, { tensor.shape[1], 1 }));
    storages.emplace_back(
      key, std::string(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()));
  }
  WriteBytes(this->Folder / "adapter_model.bin", TorchZip(PickledDictionary(entries), storages));
  std::filesystem::remove(this->Folder / "adapter_model.safetensors");
  Expect(
    Transformer::Read(this->Folder.Path()), this->Query + ".weight", this->Sum(this->Query, 3));
}

TEST_F(Adapter, OpenModelIsReadAgainAfterAChange)
{
  this->MakeGpt2();
  this->ChangeMatrix("transformer.h.0.attn.c_proj", 48, 48);
  this->Set(R"("base_model_name_or_path": "../base")");
  this->WriteBase(this->Folder / "base");
  WriteBytes(this->Folder / "base/vocab.json", R"({"a": 0, "b": 1, "c": 2, ",": 3})");
  WriteBytes(this->Folder / "base/merges.txt", "#version: 0.2\n");
  this->WriteAdapter(this->Folder / "adapter");
  const auto open = [&] { return OpenTransformer::Open(this->Folder / "adapter", ""); };
  auto model = open();
  EXPECT_EQ(model->GetTokenizer().VocabularySize(), 4);
  EXPECT_EQ(open(), model);
  for (const char* name : { "adapter/adapter_config.json", "adapter/adapter_model.safetensors",
         "base/config.json", "base/model.safetensors", "base/vocab.json" })
  {
    const std::filesystem::path path = this->Folder / name;
    std::filesystem::last_write_time(
      path, std::filesystem::last_write_time(path) + std::chrono::seconds(2));
    const auto again = open();
    EXPECT_NE(again, model) << name;
    model = again;
  }
}

}
