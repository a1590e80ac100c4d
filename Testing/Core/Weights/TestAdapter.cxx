#include "Weights/Adapter.h"

#include "Base/Error.h"
#include "Files/Safetensors.h"
#include "ModelsOracle.h"
#include "Oracle.h"
#include "Recorder/OpenTransformer.h"
#include "Recording/RecordedAttention.h"
#include "Refusals.h"
#include "Run/RecordTransformer.h"
#include "TemporaryDirectory.h"
#include "TinyTransformer.h"
#include "TorchBytes.h"
#include "TransformerOracle.h"
#include "Weights/Transformer.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Rows with these lengths, a column.
Matrix WithLengths(const Matrix& w, const Matrix& lengths)
{
  return lengths.col(0).cwiseQuotient(w.rowwise().norm()).asDiagonal() * w;
}

/// A small model with an adapter in one folder, or in two.
class Adapter : public testing::Test
{
protected:
  TemporaryDirectory Folder;
  Tensors Base;
  Tensors Changes;
  std::string Config;                                                       ///< of the model
  std::string Settings = R"("peft_type": "LORA", "r": 2, "lora_alpha": 6)"; ///< of the adapter
  Metadata About; ///< the metadata of the base's file

  const std::string Query = "model.layers.0.self_attn.q_proj";
  const std::string Gate = "model.layers.1.mlp.gate_proj";
  const std::string Embedding = "model.embed_tokens";

  /// A Llama of two layers.
  void MakeLlama(bool isTied = false)
  {
    this->Config = R"({"model_type": "llama", "hidden_size": 8, "num_attention_heads": 2,
      "num_key_value_heads": 1, "num_hidden_layers": 2, "intermediate_size": 6, "vocab_size": 5,
      "rms_norm_eps": 1e-5, "max_position_embeddings": 16, "tie_word_embeddings": )" +
                   std::string(isTied ? "true}" : "false}");
    this->Add(this->Base, "model.embed_tokens.weight", { 5, 8 });
    if (!isTied)
    {
      this->Add(this->Base, "lm_head.weight", { 5, 8 });
    }
    for (const std::string layer : { "model.layers.0.", "model.layers.1." })
    {
      for (const char* norm : { "input_layernorm.weight", "post_attention_layernorm.weight" })
      {
        this->Add(this->Base, layer + norm, { 8 });
      }
      this->Add(this->Base, layer + "self_attn.q_proj.weight", { 8, 8 });
      this->Add(this->Base, layer + "self_attn.k_proj.weight", { 4, 8 });
      this->Add(this->Base, layer + "self_attn.v_proj.weight", { 4, 8 });
      this->Add(this->Base, layer + "self_attn.o_proj.weight", { 8, 8 });
      this->Add(this->Base, layer + "mlp.gate_proj.weight", { 6, 8 });
      this->Add(this->Base, layer + "mlp.up_proj.weight", { 6, 8 });
      this->Add(this->Base, layer + "mlp.down_proj.weight", { 8, 6 });
    }
    this->Add(this->Base, "model.norm.weight", { 8 });
  }

  /// Likewise with an adapter of its first queries.
  void MakeChangedLlama()
  {
    this->MakeLlama();
    this->ChangeMatrix(this->Query, 8, 8);
  }

  void MakeGpt2()
  {
    this->Config = TinyTransformer::Config();
    this->Base = TinyTransformer().tensors;
  }

  void Add(Tensors& tensors, const std::string& name, const Shape& shape)
  {
    std::vector<double> values(ElementCount(shape).value());
    for (double& value : values)
    {
      value = static_cast<double>(this->Generator() % 2001) / 1000 - 1;
    }
    tensors[name] = Tensor::FromDouble(DType::F32, shape, values);
  }

  /// A tensor of the adapter, with the prefix that peft gives all.
  void Change(const std::string& name, const Shape& shape)
  {
    this->Add(this->Changes, "base_model.model." + name, shape);
  }

  void ChangeMatrix(
    const std::string& module, std::int64_t outputs, std::int64_t inputs, std::int64_t r = 2)
  {
    this->Change(module + ".lora_A.weight", { r, inputs });
    this->Change(module + ".lora_B.weight", { outputs, r });
  }

  void Set(const std::string& more) { this->Settings += ", " + more; }

  void WriteBase(const std::filesystem::path& folder) const
  {
    std::filesystem::create_directories(folder);
    WriteBytes(folder / ConfigFile, this->Config);
    WriteSafetensors(folder / WeightsFile, this->Base, this->About);
  }

  void WriteAdapter(const std::filesystem::path& folder) const
  {
    std::filesystem::create_directories(folder);
    WriteBytes(folder / AdapterConfigFile, "{" + this->Settings + "}");
    WriteSafetensors(folder / AdapterWeightsFiles[0], this->Changes, { { "format", "pt" } });
  }

  Transformer Read() const
  {
    this->WriteBase(this->Folder.Path());
    this->WriteAdapter(this->Folder.Path());
    return Transformer::Read(this->Folder.Path());
  }

  template<class ErrorType = ModelError>
  std::string Refusal() const
  {
    return MessageOf<ErrorType>([&] { this->Read(); });
  }

  /// Reads an adapter that has one more setting.
  void ReadWith(const std::string& more)
  {
    const std::string before = std::exchange(this->Settings, this->Settings + ", " + more);
    try
    {
      this->Read();
    }
    catch (...)
    {
      this->Settings = before;
      throw;
    }
    this->Settings = before;
  }
  auto ReaderWith()
  {
    return [this](const std::string& more) { this->ReadWith(more); };
  }

  static Matrix RowsOf(const TensorView& view)
  {
    const std::vector<double> values = view.ToDouble();
    const std::int64_t rows = view.shape.front();
    return Eigen::Map<const Matrix>(
      values.data(), rows, static_cast<std::int64_t>(values.size()) / rows);
  }
  Matrix OfBase(const std::string& name) const { return RowsOf(this->Base.at(name).View()); }
  Matrix OfAdapter(const std::string& name) const
  {
    return RowsOf(this->Changes.at("base_model.model." + name).View());
  }
  Matrix Sum(const std::string& module, double scaling) const
  {
    return this->Sum(module, scaling, this->OfBase(module + ".weight"));
  }
  Matrix Sum(const std::string& module, double scaling, const Matrix& base) const
  {
    return base + scaling * this->OfAdapter(module + ".lora_B.weight") *
                    this->OfAdapter(module + ".lora_A.weight");
  }

  void ChangeEmbedding()
  {
    this->Change(this->Embedding + ".lora_embedding_A", { 2, 5 });
    this->Change(this->Embedding + ".lora_embedding_B", { 8, 2 });
  }
  /// The transposed embedding with its change.
  Matrix EmbeddingSum(const Matrix& base) const
  {
    return base.transpose() + 3 * this->OfAdapter(this->Embedding + ".lora_embedding_B") *
                                this->OfAdapter(this->Embedding + ".lora_embedding_A");
  }

  /// A model of an oracle in place of ours.
  void TakeModel(const std::filesystem::path& folder)
  {
    this->Base = CopyTensors(SafetensorsFile(folder / WeightsFile).GetTensors());
    this->Config = ReadBytes(folder / ConfigFile);
  }

  static void Expect(const TensorView& found, const Matrix& expected)
  {
    const Matrix rows = RowsOf(found);
    ASSERT_EQ(rows.rows(), expected.rows());
    ASSERT_EQ(rows.cols(), expected.cols());
    EXPECT_LE(((rows - expected).array() / expected.array().abs().max(1)).abs().maxCoeff(), 1e-6);
  }
  static void Expect(const Transformer& model, const std::string& name, const Matrix& expected)
  {
    SCOPED_TRACE(name);
    Expect(model.GetFiles().GetTensors().at(name), expected);
  }

private:
  std::mt19937 Generator{ 5 };
};

// What a model and its adapter compute together

/// The oracle's model and adapter, in one folder or in two.
class AdapterOracle : public testing::Test
{
protected:
  std::filesystem::path Source = ModelsOracle("adapters/llama-lora");
  TemporaryDirectory Folder;

  void Copy(const std::string& part, const std::filesystem::path& to) const
  {
    std::filesystem::copy(this->Source / part, to, std::filesystem::copy_options::recursive);
  }

  static Recording Record(const Transformer& model, const SafetensorsFile& expected)
  {
    TransformerInput input;
    input.tokens = { expected.GetTensors().at("0.input_ids").ToInteger() };
    return RecordTransformer(model, input, AllQuantities());
  }

  void ExpectAll(const std::filesystem::path& path) const
  {
    SCOPED_TRACE(path);
    const SafetensorsFile expected(this->Source / "expected.safetensors");
    const Recording found = Record(Transformer::Read(path), expected);
    const std::vector<double> logits = expected.GetTensors().at("0.logits").ToDouble();
    ExpectClose("logits", Rows(found.logits, 0, 19), logits, 2e-5);
    for (std::size_t l = 0; l < found.layers.size(); ++l)
    {
      const std::vector<double> all =
        expected.GetTensors().at("0.attention." + std::to_string(l)).ToDouble();
      constexpr std::int64_t size = 19 * 19;
      for (std::int64_t h = 0; h < 4; ++h)
      {
        std::vector<float> attention(size);
        EvaluateAttention(found, 0, static_cast<std::int64_t>(l), h, AttentionQuantity::Weights, 0,
          19, attention.data());
        ExpectClose("attention", attention,
          std::vector<double>(all.begin() + h * size, all.begin() + (h + 1) * size), 2e-5);
      }
    }
  }
};

TEST_F(AdapterOracle, IsAppliedBesideItsBase)
{
  this->Copy("base", this->Folder.Path());
  this->Copy("adapter", this->Folder.Path());
  this->ExpectAll(this->Folder.Path());
  for (const char* name : { "config.json", "adapter_config.json", "adapter_model.safetensors" })
  {
    this->ExpectAll(this->Folder / name);
  }
  EXPECT_EQ(Transformer::Read(this->Folder.Path()).GetAdapter(), this->Folder.Path());
}

TEST_F(AdapterOracle, BaseAloneIsReadFromItsWeights)
{
  this->Copy("base", this->Folder.Path());
  this->Copy("adapter", this->Folder.Path());
  const Transformer alone = Transformer::Read(this->Folder / WeightsFile);
  EXPECT_EQ(alone.GetAdapter(), "");
  const SafetensorsFile base(this->Source / "base" / WeightsFile);
  for (const auto& [name, view] : base.GetTensors())
  {
    EXPECT_EQ(alone.GetFiles().GetTensors().at(name).ToDouble(), view.ToDouble()) << name;
  }
}

TEST_F(AdapterOracle, BaseMayBeElsewhere)
{
  std::filesystem::create_directory(this->Folder / "models");
  this->Copy("base", this->Folder / "models/base");
  this->Copy("adapter", this->Folder / "adapter");
  const std::filesystem::path settings = this->Folder / "adapter/adapter_config.json";
  const std::string text = ReadBytes(settings);
  EXPECT_EQ(ModelFile(this->Folder / "adapter"), settings);
  for (const std::string& base :
    { std::string("../models/base"), (this->Folder / "models/base").string() })
  {
    std::string named = text;
    const std::string none = R"("base_model_name_or_path": null)";
    named.replace(named.find(none), none.size(), R"("base_model_name_or_path": ")" + base + "\"");
    WriteBytes(settings, named);
    this->ExpectAll(this->Folder / "adapter");
    this->ExpectAll(settings);
  }
}

// Each kind of change

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

// Settings

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

// Tensors

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

// The open model

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
