#include "Weights/TransformerWeights.h"

#include "Base/Error.h"
#include "Files/MappedFile.h"
#include "Files/Safetensors.h"
#include "ModelsOracle.h"
#include "Refusals.h"
#include "TemporaryDirectory.h"
#include "TinyTransformer.h"
#include "TransformerOracle.h"

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

/// A folder with a model in two shards: the layers in the second.
class ShardedModel : public testing::Test
{
protected:
  TemporaryDirectory Folder;
  TinyTransformer Tiny;
  std::string Map; ///< of the index

  ShardedModel()
  {
    Tensors first;
    Tensors second;
    for (const auto& [name, tensor] : this->Tiny.tensors)
    {
      const bool isLayer = name.rfind("h.", 0) == 0;
      (isLayer ? second : first)[name] = tensor;
      this->Map += (this->Map.empty() ? "\"" : ", \"") + name +
                   (isLayer ? "\": \"two.safetensors\"" : "\": \"one.safetensors\"");
    }
    WriteSafetensors(this->Folder / "one.safetensors", first, {});
    WriteSafetensors(this->Folder / "two.safetensors", second, {});
    WriteBytes(this->Folder / "config.json", TinyTransformer::Config());
    this->WriteIndex("{\"metadata\": {}, \"weight_map\": {" + this->Map + "}}");
  }

  void WriteIndex(const std::string& text) const
  {
    WriteBytes(this->Folder / "model.safetensors.index.json", text);
  }

  template<class ErrorType>
  std::string Refusal() const
  {
    return MessageOf<ErrorType>([&] { Transformer::Read(this->Folder.Path()); });
  }
};

TEST_F(ShardedModel, IsRead)
{
  const Transformer model = Transformer::Read(this->Folder.Path());
  const TransformerWeights& weights = model.GetWeights();
  EXPECT_EQ(weights.layers.size(), 2U);
  EXPECT_EQ(weights.layers[1].up.weight.ToDouble(),
    this->Tiny.tensors.at("h.1.mlp.c_fc.weight").View().ToDouble());
  EXPECT_EQ(
    model.GetFiles().FileOf("h.1.mlp.c_fc.weight"), (this->Folder / "two.safetensors").string());
  EXPECT_THAT(weights.unused, IsEmpty());
  EXPECT_EQ(weights.processing, WeightProcessing::Unprocessed);
}

TEST_F(ShardedModel, IsReadFromEachOfItsFiles)
{
  for (const char* name : { "config.json", "model.safetensors.index.json" })
  {
    EXPECT_EQ(Transformer::Read(this->Folder / name).GetWeights().layers.size(), 2U) << name;
  }
  EXPECT_THAT(MessageOf<ModelError>([&] { Transformer::Read(this->Folder / "two.safetensors"); }),
    HasSubstr("two.safetensors: tensor 'wte.weight' is missing"));
}

TEST_F(ShardedModel, MissingShardIsNamed)
{
  std::filesystem::remove(this->Folder / "two.safetensors");
  EXPECT_THAT(this->Refusal<FileError>(), HasSubstr("the shard 'two.safetensors', which holds"));
}

TEST_F(ShardedModel, BadIndexIsRefused)
{
  const auto read = [this](const std::string& index)
  {
    this->WriteIndex(index);
    Transformer::Read(this->Folder.Path());
  };
  ExpectRefusals<FormatError>(
    { { "{", "the index of shards is not JSON" }, { "{}", "expected an object 'weight_map'" },
      { R"({"weight_map": {"wte.weight": "../one.safetensors"}})",
        "'wte.weight': expected the name of a file in the folder of the index" },
      { R"({"weight_map": {"wte.weight": 3}})", "expected the name of a file" },
      { R"({"weight_map": {"wte.weight": "two.safetensors", )" + this->Map + "}}",
        "has the name 'wte.weight' twice" } },
    read);
  ExpectRefusals<ModelError>(
    { { R"({"weight_map": {"other": "two.safetensors", )" + this->Map + "}}",
      "two.safetensors: tensor 'other' is missing" } },
    read);
}

TEST_F(ShardedModel, TensorInTwoShardsIsRefused)
{
  WriteSafetensors(this->Folder / "two.safetensors", this->Tiny.tensors, {});
  EXPECT_THAT(this->Refusal<ModelError>(),
    HasSubstr("one.safetensors: tensor 'ln_f.bias' is in " +
              (this->Folder / "two.safetensors").string() + " too, expected it once."));
}

TEST_F(ShardedModel, DamagedShardIsNamed)
{
  WriteBytes(this->Folder / "two.safetensors", "123");
  EXPECT_THAT(
    this->Refusal<FormatError>(), HasSubstr("two.safetensors: expected a safetensors file"));
}

TEST_F(ShardedModel, MissingFilesAreNamed)
{
  std::filesystem::remove(this->Folder / "model.safetensors.index.json");
  EXPECT_THAT(this->Refusal<FileError>(),
    HasSubstr("expected the weights in model.safetensors, in pytorch_model.bin, in shards"));
  WriteBytes(this->Folder / "pytorch_model.bin", "");
  EXPECT_THAT(
    this->Refusal<FormatError>(), HasSubstr("pytorch_model.bin: expected a PyTorch file"));
  std::filesystem::remove(this->Folder / "config.json");
  EXPECT_THAT(this->Refusal<FileError>(), HasSubstr("config.json: cannot open file"));
}

std::string Refusal(
  const TinyTransformer& tiny, const std::string& config = TinyTransformer::Config())
{
  return MessageOf<ModelError>([&] { tiny.Make(config); });
}

std::string ConfigWith(const std::string& more)
{
  std::string config = TinyTransformer::Config();
  config.pop_back();
  return config + ", " + more + "}";
}

TEST(TransformerWeights, TensorsThatDoNotFitAreNamed)
{
  TinyTransformer missing;
  missing.tensors.erase("h.1.ln_2.bias");
  EXPECT_EQ(Refusal(missing), "tiny: tensor 'h.1.ln_2.bias' is missing.");
  TinyTransformer shape;
  shape.tensors["h.0.mlp.c_fc.weight"] = shape.tensors["h.0.mlp.c_proj.weight"];
  EXPECT_THAT(Refusal(shape),
    AllOf(HasSubstr("'h.0.mlp.c_fc.weight'"), HasSubstr("[48, 300]"), HasSubstr("[300, 48]")));
  TinyTransformer integers;
  integers.tensors["ln_f.bias"] = Tensor::FromInteger({ 48 }, std::vector<std::int64_t>(48));
  EXPECT_THAT(
    Refusal(integers), HasSubstr("'ln_f.bias': expected F32, F16, BF16 or F64, found I64"));
}

TEST(TransformerWeights, ConfigurationThatContradictsTheTensorsIsRefused)
{
  const TinyTransformer tiny;
  ExpectRefusals<ModelError>(
    { { R"("n_layer": 1)", "the configuration has only 1 layers, from 0" },
      { R"("n_layer": 3)", "tensor 'h.2.ln_1.weight' is missing" },
      { R"("vocab_size": 14)", "'wte.weight': expected shape [14, 48]" },
      { R"("n_positions": 1024)", "'wpe.weight': expected shape [1024, 48]" } },
    [&](const std::string& setting) { tiny.Make(ConfigWith(setting)); });
}

/// Tensors beside a weight, or in its place, tell how it is quantized, if the configuration does
/// not.
TEST(TransformerWeights, QuantizedOnesAreRefusedByTheirMethod)
{
  const std::string module = "h.0.mlp.c_fc";
  for (const auto& [beside, method] :
    std::vector<std::pair<std::string, std::string>>{ { module + ".qweight", "AWQ or GPTQ" },
      { module + ".g_idx", "GPTQ" }, { module + ".weight_packed", "compressed-tensors" },
      { module + ".weight.absmax", "bitsandbytes (4 bits)" },
      { module + ".SCB", "bitsandbytes (8 bits)" },
      { module + ".weight_scale_inv", "FP8 or integers" } })
  {
    TinyTransformer tiny;
    tiny.tensors[module + ".weight"] = Tensor::FromInteger({ 2 }, { 1, 2 });
    tiny.tensors[beside] = Tensor::FromInteger({ 1 }, { 1 });
    const std::string expected =
      "tiny: tensor 'h.0.mlp.c_fc.weight' is quantized by " + method + ", in a way";
    EXPECT_THAT(Refusal(tiny), StartsWith(expected));
    tiny.tensors.erase(module + ".weight");
    EXPECT_THAT(Refusal(tiny), StartsWith(expected));
  }
}

/// gpt-oss as it is published, with a configuration that does not say how.
TEST(TransformerWeights, Mxfp4IsRefusedByItsName)
{
  const std::filesystem::path published = AnyOracle("v5/mxfp4/a");
  const TemporaryDirectory folder;
  std::string config = ReadFile(published / "config.json");
  config.replace(config.find("quantization_config"), 19, "_name_or_path");
  WriteBytes(folder / "config.json", config);
  std::filesystem::copy_file(published / "model.safetensors", folder / "model.safetensors");
  EXPECT_THAT(MessageOf<ModelError>([&] { Transformer::Read(folder.Path()); }),
    HasSubstr("'model.layers.0.mlp.experts.gate_up_proj' is quantized by MXFP4"));
}

TEST(TransformerWeights, BuffersAreIgnoredAndTheRestIsListed)
{
  TinyTransformer tiny;
  tiny.tensors["h.0.attn.bias"] = tiny.tensors["ln_f.bias"];
  tiny.tensors["h.0.attn.masked_bias"] = { DType::BOOL, { 1 }, { std::byte{ 1 } } };
  for (const char* name : { "classifier.weight", "lm_head.layer_norm.weight", "pooler.dense.bias" })
  {
    tiny.tensors[name] = tiny.tensors["ln_f.bias"];
  }
  EXPECT_THAT(tiny.Make().GetWeights().unused,
    ElementsAre("classifier.weight", "lm_head.layer_norm.weight", "pooler.dense.bias"));
}

/// The tensors of an oracle and one more.
TEST(TransformerWeights, TensorsThatAConfigurationLacksAreRefused)
{
  const std::vector<std::pair<std::string, std::string>> unknown = {
    { "attn-only", "blocks.1.mlp.W_in" }, { "attn-only-shortformer", "blocks.1.ln1.w" },
    { "bert", "encoder.layer.1.attention.self.distance_embedding.weight" },
    { "bloom", "transformer.h.1.self_attention.q_layernorm.weight" },
    { "gpt2", "transformer.h.1.crossattention.c_attn.weight" },
    { "gpt2", "transformer.h.1.attn.q_norm.weight" }, { "gpt2", "transformer.h.0.ln_3.weight" },
    { "gpt2", "transformer.h.0.mlp.c_gate.weight" }, { "gpt2", "transformer.ln_g.weight" },
    { "gpt2", "transformer.emb_layernorm.bias" },
    { "llama", "model.layers.1.self_attn.q_norm.weight" },
    { "llama", "model.layers.0.self_attn.q_proj.bias" }, { "llama", "model.norm.bias" },
    { "vit", "encoder.layer.1.layer_scale.lambda" }
  };
  for (const auto& [architecture, name] : unknown)
  {
    const std::filesystem::path folder = atlas::test::TransformerOracle::Folder(architecture);
    const SafetensorsFile file(folder / "model.safetensors");
    const TransformerConfig config = ReadTransformerConfig(folder / "config.json");
    TensorViews views = file.GetTensors();
    EXPECT_NO_THROW(Transformer(config, WeightFiles(views, "file")));
    views.emplace(name, views.begin()->second);
    EXPECT_THAT(MessageOf<ModelError>([&] { Transformer(config, WeightFiles(views, "file")); }),
      StartsWith("file: tensor '" + name + "': the attention, MLPs and"));
  }
}

/// Norms of heads are outside of the base model, and rotary embeddings are computed.
TEST(TransformerWeights, HeadsAndBuffersAreLeftOut)
{
  const std::filesystem::path folder = atlas::test::TransformerOracle::Folder("llama");
  const SafetensorsFile file(folder / "model.safetensors");
  TensorViews views = file.GetTensors();
  for (const char* name : { "slot_head.layer_norm.weight", "v_head.norm.weight",
         "model.layers.0.self_attn.rotary_emb.cos_cached" })
  {
    views.emplace(name, views.begin()->second);
  }
  const Transformer model(
    ReadTransformerConfig(folder / "config.json"), WeightFiles(views, "file"));
  EXPECT_THAT(model.GetWeights().unused,
    testing::UnorderedElementsAre("slot_head.layer_norm.weight", "v_head.norm.weight"));
}

TEST(TransformerWeights, PrefixMayBeThere)
{
  const TinyTransformer tiny;
  TinyTransformer prefixed;
  prefixed.tensors.clear();
  for (const auto& [name, tensor] : tiny.tensors)
  {
    prefixed.tensors["transformer." + name] = tensor;
  }
  const Transformer model = prefixed.Make();
  EXPECT_THAT(model.GetWeights().unused, IsEmpty());
  EXPECT_TRUE(model.HasLogits());
  prefixed.tensors.erase("transformer.ln_f.bias");
  EXPECT_THAT(Refusal(prefixed), HasSubstr("tensor 'transformer.ln_f.bias' is missing"));
}

TEST(TransformerWeights, UnembeddingIsItsOwnOrTied)
{
  TinyTransformer tiny;
  EXPECT_EQ(
    tiny.Make().GetWeights().unembedding.weight.data, tiny.tensors.at("wte.weight").bytes.data());
  EXPECT_FALSE(tiny.Make(ConfigWith(R"("tie_word_embeddings": false)")).HasLogits());
  tiny.tensors["lm_head.weight"] = tiny.tensors["wte.weight"];
  EXPECT_EQ(tiny.Make().GetWeights().unembedding.weight.data,
    tiny.tensors.at("lm_head.weight").bytes.data());
}

/// A model with encoder and decoder whose tensors can be renamed, added and left out.
struct PairFile
{
  explicit PairFile(const std::string& name)
    : folder(ModelsOracle("transformers/" + name))
    , file(folder / "model.safetensors")
    , views(file.GetTensors())
  {
  }

  void Rename(const std::string& from, const std::string& to)
  {
    this->views[to] = this->views.at(from);
    this->views.erase(from);
  }

  Transformer Read() const
  {
    return { ReadTransformerConfig(this->folder / "config.json"),
      WeightFiles(this->views, "file") };
  }

  std::string Refusal() const
  {
    return MessageOf<ModelError>([&] { this->Read(); });
  }

  std::filesystem::path folder;
  SafetensorsFile file;
  TensorViews views;
};

TEST(TransformerWeights, AllOfEncodersAndDecodersAreUsed)
{
  for (const std::string name :
    { "t5", "t5-v1_1", "mt5", "bart", "mbart", "pegasus", "marian", "marian-two", "whisper" })
  {
    SCOPED_TRACE(name);
    const PairFile pair(name);
    const Transformer model = pair.Read();
    const TransformerWeights& weights = model.GetWeights();
    ASSERT_NE(weights.encoder, nullptr);
    EXPECT_THAT(weights.unused, IsEmpty());
    EXPECT_EQ(weights.encoder->encoder, nullptr);
    EXPECT_FALSE(weights.encoder->unembedding.Exists());
    EXPECT_TRUE(model.HasLogits());
    EXPECT_TRUE(weights.layers[0].crossQuery.Exists());
    EXPECT_FALSE(weights.encoder->layers[0].crossQuery.Exists());

    const bool isT5 = name.find("t5") != std::string::npos;
    const std::string outer = isT5 ? "" : "model.";
    const std::string layers = isT5 ? "block." : "layers.";
    const std::string cross =
      outer + "decoder." + layers +
      (isT5 ? "0.layer.1.EncDecAttention.k.weight" : "0.encoder_attn.k_proj.weight");
    PairFile missing(name);
    missing.views.erase(cross);
    EXPECT_EQ(missing.Refusal(), "file: tensor '" + cross + "' is missing.");
    for (const std::string stack : { "encoder.", "decoder." })
    {
      const auto refusalWith = [&](const std::string& tensor)
      {
        PairFile other(name);
        other.views[tensor] = other.views.begin()->second;
        return other.Refusal();
      };
      EXPECT_THAT(refusalWith(outer + stack + layers + "7.weight"),
        HasSubstr("7.weight': the configuration has only "));
      EXPECT_THAT(refusalWith(outer + stack + layers + "0.another_norm.weight"),
        HasSubstr("0.another_norm.weight': the attention, MLPs and normalizations of " +
                  model.GetConfig().architecture + ","));
    }
  }
}

/// Of Marian with a vocabulary for each language.
TEST(TransformerWeights, EachStackMayHaveAnEmbeddingOfItsOwn)
{
  const PairFile pair("marian-two");
  const Transformer model = pair.Read();
  const TransformerWeights& weights = model.GetWeights();
  EXPECT_EQ(weights.tokenEmbedding.data, pair.views.at("model.decoder.embed_tokens.weight").data);
  EXPECT_EQ(weights.unembedding.weight.data, weights.tokenEmbedding.data);
  EXPECT_EQ(weights.tokenEmbedding.shape[0], 41);
  EXPECT_EQ(
    weights.encoder->tokenEmbedding.data, pair.views.at("model.encoder.embed_tokens.weight").data);
  EXPECT_EQ(weights.encoder->tokenEmbedding.shape[0], 47);
}

/// A decoder may have an embedding beside the one that both share; TestTiedWeights has the names.
TEST(TransformerWeights, SharedEmbeddingMayBeThereTwice)
{
  PairFile all("bart");
  TensorView own = all.views.at("model.shared.weight");
  all.views["model.encoder.embed_tokens.weight"] = own;
  own.data += 4; // another tensor than that of the encoder
  own.shape = { 83, 32 };
  all.views["model.decoder.embed_tokens.weight"] = own;
  const Transformer model = all.Read();
  EXPECT_EQ(model.GetWeights().tokenEmbedding.data, own.data);
  EXPECT_EQ(model.GetWeights().encoder->tokenEmbedding.data, own.data - 4);
  EXPECT_THAT(model.GetWeights().unused, IsEmpty());
  PairFile none("bart");
  none.views.erase("model.shared.weight");
  EXPECT_EQ(none.Refusal(), "file: tensor 'model.shared.weight' is missing.");
}

/// Without the language model around them, names have no prefix.
TEST(TransformerWeights, PrefixesOfEncodersAndDecodersMayBeMissing)
{
  for (const std::string name : { "bart", "whisper" })
  {
    PairFile pair(name);
    const TensorViews views = pair.views;
    for (const auto& [tensor, view] : views)
    {
      if (tensor.rfind("model.", 0) == 0)
      {
        pair.Rename(tensor, tensor.substr(6));
      }
    }
    EXPECT_THAT(pair.Read().GetWeights().unused, IsEmpty()) << name;
  }
}

/// Older files of T5 hold biases of cross attention that its code does not use.
TEST(TransformerWeights, WhatOlderFilesHoldBesidesIsIgnored)
{
  PairFile t5("t5");
  t5.views["decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"] =
    t5.views.at("decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight");
  EXPECT_THAT(t5.Read().GetWeights().unused, IsEmpty());
}

/// Older files of Marian, and those of Pegasus, hold the positions that are computed otherwise.
TEST(TransformerWeights, PositionsOfTheFileCount)
{
  PairFile marian("marian");
  EXPECT_EQ(marian.Read().GetWeights().positionEmbedding.data, nullptr);
  const std::int64_t positions = marian.Read().GetConfig().positions;
  const TensorView rows = RowsOf(marian.views.at("model.shared.weight"), 0, positions);
  for (const char* name :
    { "model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight" })
  {
    marian.views[name] = rows;
  }
  const Transformer model = marian.Read();
  EXPECT_THAT(model.GetWeights().unused, IsEmpty());
  EXPECT_EQ(model.GetWeights().positionEmbedding.data, rows.data);
  EXPECT_EQ(model.GetWeights().encoder->positionEmbedding.data, rows.data);
  marian.views["model.encoder.embed_positions.weight"] = RowsOf(rows, 0, positions - 1);
  EXPECT_THAT(
    marian.Refusal(), HasSubstr("tensor 'model.encoder.embed_positions.weight': expected shape ["));
}

/// DINOv2 reads images of another size than those that its positions are of.
TEST(Positions, AreInterpolatedAsByTheOriginal)
{
  for (const std::string name :
    { "dinov2-size", "dinov2-registers-size", "dinov2-registers-larger" })
  {
    SCOPED_TRACE(name);
    const std::filesystem::path folder = ModelsOracle("transformers/" + name);
    const Transformer model = Transformer::Read(folder);
    const SafetensorsFile oracle(folder / "expected.safetensors");
    const TensorView& expected = oracle.GetTensors().at("positions");
    const TensorView& found = model.GetWeights().positionEmbedding;
    ASSERT_EQ(found.shape, expected.shape);
    for (std::uint64_t i = 0; i < expected.Count(); ++i)
    {
      ASSERT_NEAR(found.At(i), expected.At(i), 2e-6) << i;
    }
  }
}

/// A table that is not of the size that config.json says is refused all the same.
TEST(Positions, MustBeThoseOfTheConfiguration)
{
  const TemporaryDirectory folder;
  const std::filesystem::path model = ModelsOracle("transformers/dinov2-size");
  for (const char* name : { "model.safetensors", "preprocessor_config.json" })
  {
    std::filesystem::copy(model / name, folder / name);
  }
  std::string config = ReadBytes(model / "config.json");
  config.replace(config.find("70"), 2, "84");
  WriteBytes(folder / "config.json", config);
  EXPECT_THAT(MessageOf<ModelError>([&] { Transformer::Read(folder.Path()); }),
    HasSubstr("'embeddings.position_embeddings': expected shape [1, 37, 16] by the configuration, "
              "found [1, 26, 16]."));
}

}
