#include "TransformerWeights.h"

#include "Error.h"
#include "ErrorMessage.h"
#include "FloatValues.h"
#include "MappedFile.h"
#include "ModelsOracle.h"
#include "Safetensors.h"
#include "TemporaryDirectory.h"
#include "TestName.h"
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
  EXPECT_THAT(this->Refusal<FileError>(),
    AllOf(HasSubstr("model.safetensors.index.json: the shard 'two.safetensors', which holds tensor "
                    "'h.0.attn.c_attn.bias', is missing")));
}

TEST_F(ShardedModel, BadIndexIsRefused)
{
  this->WriteIndex("{");
  EXPECT_THAT(this->Refusal<FormatError>(), HasSubstr("the index of shards is not JSON"));
  this->WriteIndex("{}");
  EXPECT_THAT(this->Refusal<FormatError>(), HasSubstr("expected an object 'weight_map'"));
  this->WriteIndex(R"({"weight_map": {"wte.weight": "../one.safetensors"}})");
  EXPECT_THAT(this->Refusal<FormatError>(),
    HasSubstr("tensor 'wte.weight': expected the name of a file in the folder of the index"));
  this->WriteIndex(R"({"weight_map": {"wte.weight": 3}})");
  EXPECT_THAT(this->Refusal<FormatError>(), HasSubstr("expected the name of a file"));
  this->WriteIndex("{\"weight_map\": {\"other\": \"two.safetensors\", " + this->Map + "}}");
  EXPECT_THAT(this->Refusal<ModelError>(), HasSubstr("two.safetensors: tensor 'other' is missing"));
  this->WriteIndex("{\"weight_map\": {\"wte.weight\": \"two.safetensors\", " + this->Map + "}}");
  EXPECT_THAT(this->Refusal<FormatError>(), HasSubstr("has the name 'wte.weight' twice"));
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

TEST(TransformerWeights, MissingTensorIsNamed)
{
  TinyTransformer tiny;
  tiny.tensors.erase("h.1.ln_2.bias");
  EXPECT_EQ(Refusal(tiny), "tiny: tensor 'h.1.ln_2.bias' is missing.");
}

TEST(TransformerWeights, WrongShapeIsNamed)
{
  TinyTransformer tiny;
  tiny.tensors["h.0.mlp.c_fc.weight"] = tiny.tensors["h.0.mlp.c_proj.weight"];
  EXPECT_EQ(Refusal(tiny),
    "tiny: tensor 'h.0.mlp.c_fc.weight': expected shape [48, 300] by the configuration, found "
    "[300, 48].");
}

TEST(TransformerWeights, ConfigurationThatContradictsTheTensorsIsRefused)
{
  const TinyTransformer tiny;
  EXPECT_THAT(Refusal(tiny, ConfigWith(R"("n_layer": 1)")),
    HasSubstr("tensor 'h.1.attn.c_attn.bias': the configuration has only 1 layers, from 0"));
  EXPECT_THAT(
    Refusal(tiny, ConfigWith(R"("n_layer": 3)")), HasSubstr("tensor 'h.2.ln_1.weight' is missing"));
  EXPECT_THAT(Refusal(tiny, ConfigWith(R"("vocab_size": 14)")),
    HasSubstr("tensor 'wte.weight': expected shape [14, 48] by the configuration, found [13, 48]"));
  EXPECT_THAT(Refusal(tiny, ConfigWith(R"("n_positions": 1024)")),
    HasSubstr("tensor 'wpe.weight': expected shape [1024, 48]"));
}

TEST(TransformerWeights, IntegersAreRefused)
{
  TinyTransformer tiny;
  tiny.tensors["ln_f.bias"] = Tensor::FromInteger({ 48 }, std::vector<std::int64_t>(48));
  EXPECT_EQ(Refusal(tiny), "tiny: tensor 'ln_f.bias': expected F32, F16, BF16 or F64, found I64.");
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
    const std::string expected = "tiny: tensor 'h.0.mlp.c_fc.weight' is quantized by " + method +
                                 ", which is not run; expected the model before its quantization";
    EXPECT_THAT(Refusal(tiny), StartsWith(expected));
    tiny.tensors.erase(module + ".weight");
    EXPECT_THAT(Refusal(tiny), StartsWith(expected));
  }
}

/// gpt-oss as it is published, and with a configuration that does not say how.
TEST(TransformerWeights, Mxfp4IsRefusedByItsName)
{
  const std::filesystem::path published = AnyOracle("v5/mxfp4/a");
  EXPECT_THAT(MessageOf<ModelError>([&] { Transformer::Read(published); }),
    HasSubstr("config.json: by 'quantization_config' the weights are quantized by MXFP4, which is "
              "not run; expected the model before its quantization (F32, F16, BF16 or F64), or a "
              ".gguf file of it."));
  const TemporaryDirectory folder;
  std::string config = ReadFile(published / "config.json");
  config.replace(config.find("quantization_config"), 19, "_name_or_path");
  WriteBytes(folder / "config.json", config);
  std::filesystem::copy_file(published / "model.safetensors", folder / "model.safetensors");
  EXPECT_THAT(MessageOf<ModelError>([&] { Transformer::Read(folder.Path()); }),
    HasSubstr("tensor 'model.layers.0.mlp.experts.gate_up_proj' is quantized by MXFP4, which"));
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

TEST(TransformerWeights, TensorsThatAConfigurationLacksAreRefused)
{
  for (const std::string name : { "h.1.attn.q_norm.weight", "h.0.ln_3.weight",
         "h.0.mlp.c_gate.weight", "ln_g.weight", "emb_layernorm.bias" })
  {
    TinyTransformer tiny;
    tiny.tensors[name] = tiny.tensors["ln_f.bias"];
    EXPECT_EQ(Refusal(tiny), "tiny: tensor '" + name +
                               "': the attention, MLPs and normalizations of gpt2, as configured, "
                               "have no such tensor, and "
                               "results without it would be wrong; expected the architecture that "
                               "the model was made for.");
  }
}

/// The tensors of an oracle and one more.
using UnknownTensor = testing::TestWithParam<std::pair<const char*, const char*>>;

INSTANTIATE_TEST_SUITE_P(, UnknownTensor,
  testing::Values(std::pair("attn-only", "blocks.1.mlp.W_in"),
    std::pair("attn-only-shortformer", "blocks.1.ln1.w"),
    std::pair("bert", "encoder.layer.1.attention.self.distance_embedding.weight"),
    std::pair("bloom", "transformer.h.1.self_attention.q_layernorm.weight"),
    std::pair("gpt2", "transformer.h.1.crossattention.c_attn.weight"),
    std::pair("llama", "model.layers.1.self_attn.q_norm.weight"),
    std::pair("llama", "model.layers.0.self_attn.q_proj.bias"),
    std::pair("llama", "model.norm.bias"), std::pair("vit", "encoder.layer.1.layer_scale.lambda")),
  [](const auto& tensor) { return TestName(tensor.param.second); });

TEST_P(UnknownTensor, IsRefused)
{
  const auto& [architecture, name] = GetParam();
  const std::filesystem::path folder = atlas::test::TransformerOracle::Folder(architecture);
  const SafetensorsFile file(folder / "model.safetensors");
  const TransformerConfig config = ReadTransformerConfig(folder / "config.json");
  TensorViews views = file.GetTensors();
  EXPECT_NO_THROW(Transformer(config, WeightFiles(views, "file")));
  views.emplace(name, views.begin()->second);
  EXPECT_THAT(MessageOf<ModelError>([&] { Transformer(config, WeightFiles(views, "file")); }),
    StartsWith(std::string("file: tensor '") + name + "': the attention, MLPs and"));
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

/// Values that all types hold exactly, stored as each of them, at an odd address too.
TEST(TransformerWeights, AllTypesAreWidened)
{
  const std::vector<double> values = { 1, -0.5, 3, 0, 256 };
  const std::vector<std::pair<DType, std::vector<std::uint16_t>>> halves = {
    { DType::F16, { 0x3c00, 0xb800, 0x4200, 0, 0x5c00 } },
    { DType::BF16, { 0x3f80, 0xbf00, 0x4040, 0, 0x4380 } }
  };
  std::vector<Tensor> tensors = { Tensor::FromDouble(DType::F64, { 5 }, values),
    Tensor::FromDouble(DType::F32, { 5 }, values) };
  for (const auto& [dtype, bits] : halves)
  {
    const auto* begin = reinterpret_cast<const std::byte*>(bits.data());
    tensors.push_back({ dtype, { 5 }, { begin, begin + 10 } });
  }
  for (const Tensor& tensor : tensors)
  {
    std::vector<std::byte> shifted(tensor.bytes.size() + 1);
    std::copy(tensor.bytes.begin(), tensor.bytes.end(), shifted.begin() + 1);
    TensorView view = tensor.View();
    const std::byte* const odd = shifted.data() + 1;
    for (const std::byte* data : { tensor.bytes.data(), odd })
    {
      view.data = data;
      const FloatValues floats(view);
      EXPECT_EQ(std::vector<double>(floats.Data(), floats.Data() + 5), values);
      const bool isFloatArray = data == tensor.bytes.data() && tensor.dtype == DType::F32;
      EXPECT_EQ(WidenedBytes(view), isFloatArray ? 0U : 20U);
      EXPECT_EQ(floats.Data() == reinterpret_cast<const float*>(data), isFloatArray);
    }
  }
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

class EncoderDecoderWeights : public testing::TestWithParam<std::string>
{
};

INSTANTIATE_TEST_SUITE_P(, EncoderDecoderWeights,
  testing::Values(
    "t5", "t5-v1_1", "mt5", "bart", "mbart", "pegasus", "marian", "marian-two", "whisper"),
  [](const auto& name) { return TestName(name.param); });

TEST_P(EncoderDecoderWeights, AllAreUsed)
{
  const PairFile pair(GetParam());
  const Transformer model = pair.Read();
  const TransformerWeights& weights = model.GetWeights();
  ASSERT_NE(weights.encoder, nullptr);
  EXPECT_THAT(weights.unused, IsEmpty());
  EXPECT_EQ(weights.encoder->encoder, nullptr);
  EXPECT_FALSE(weights.encoder->unembedding.Exists());
  EXPECT_TRUE(model.HasLogits());
  EXPECT_TRUE(weights.layers[0].crossQuery.Exists());
  EXPECT_FALSE(weights.encoder->layers[0].crossQuery.Exists());
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

TEST_P(EncoderDecoderWeights, ThoseThatDoNotFitAreNamed)
{
  const bool isT5 = GetParam().find("t5") != std::string::npos;
  const std::string outer = isT5 ? "" : "model.";
  const std::string layers = isT5 ? "block." : "layers.";
  const std::string cross =
    isT5 ? "0.layer.1.EncDecAttention.k.weight" : "0.encoder_attn.k_proj.weight";
  const PairFile pair(GetParam());
  PairFile missing(GetParam());
  missing.views.erase(outer + "decoder." + layers + cross);
  EXPECT_EQ(
    missing.Refusal(), "file: tensor '" + outer + "decoder." + layers + cross + "' is missing.");
  for (const std::string stack : { "encoder.", "decoder." })
  {
    PairFile deeper(GetParam());
    const std::string name = outer + stack + layers + "7.weight";
    deeper.views[name] = deeper.views.begin()->second;
    EXPECT_THAT(
      deeper.Refusal(), StartsWith("file: tensor '" + name + "': the configuration has only "));
    PairFile other(GetParam());
    const std::string norm = outer + stack + layers + "0.another_norm.weight";
    other.views[norm] = other.views.begin()->second;
    EXPECT_THAT(other.Refusal(),
      StartsWith("file: tensor '" + norm + "': the attention, MLPs and normalizations of " +
                 pair.Read().GetConfig().architecture + ","));
  }
}

/// Files hold the embedding that both share once, under any of three names, or several times.
TEST(TransformerWeights, SharedEmbeddingsAreFoundUnderAnyName)
{
  const std::vector<std::string> names = { "model.shared.weight",
    "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight" };
  for (const std::string& name : names)
  {
    PairFile pair("bart");
    const TensorView view = pair.views.at("model.shared.weight");
    pair.views.erase("model.shared.weight");
    pair.views[name] = view;
    const Transformer model = pair.Read();
    EXPECT_EQ(model.GetWeights().tokenEmbedding.data, view.data) << name;
    EXPECT_EQ(model.GetWeights().encoder->tokenEmbedding.data, view.data) << name;
    EXPECT_EQ(model.GetWeights().unembedding.weight.data, view.data) << name;
  }
  PairFile all("bart");
  TensorView own = all.views.at("model.shared.weight");
  all.views[names[1]] = own;
  own.data += 4; // another tensor than that of the encoder
  own.shape = { 83, 32 };
  all.views[names[2]] = own;
  const Transformer model = all.Read();
  EXPECT_EQ(model.GetWeights().tokenEmbedding.data, own.data);
  EXPECT_EQ(model.GetWeights().encoder->tokenEmbedding.data, own.data - 4);
  EXPECT_THAT(model.GetWeights().unused, IsEmpty());
  PairFile none("bart");
  none.views.erase(names[0]);
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
