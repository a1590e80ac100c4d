#include "Learning/CheckpointFiles.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "TemporaryDirectory.h"
#include "Text/TokenizerFile.h"
#include "Weights/CheckpointConfig.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

enum class Data
{
  Tokens,
  Masked,
  Images
};

/// A task that has nothing but sizes.
class SizesOnly : public LearningTask
{
public:
  explicit SizesOnly(Data data)
    : Kind(data)
  {
  }

  void Configure(TransformerConfig& config) const override
  {
    config.input = this->Kind == Data::Images ? InputKind::Images : InputKind::Tokens;
    config.vocabulary = this->Kind == Data::Images ? 0 : 11;
    config.outputVocabulary = this->Kind == Data::Masked ? 11 : 5;
    config.positions = 9;
    config.mask = this->Kind == Data::Tokens ? AttentionMask::Causal : AttentionMask::Bidirectional;
    config.segments = this->Kind == Data::Masked ? 2 : 0;
    if (this->Kind == Data::Images)
    {
      config.positions = 1 + 2 * 3;
      config.imageHeight = 8;
      config.imageWidth = 12;
      config.patchHeight = config.patchWidth = 4;
      config.channels = 3;
    }
  }

  TrainingBatch MakeBatch(std::int64_t, std::int64_t) const override { return {}; }
  TrainingBatch MakeHeldOut() const override { return {}; }
  std::vector<std::string> MeasureNames() const override { return {}; }
  std::vector<double> Measure(const Transformer&, int) const override { return {}; }

private:
  Data Kind;
};

auto SizesOf(const TransformerConfig& c)
{
  return std::make_tuple(c.architecture, c.input, c.layers, c.heads, c.keyHeads, c.headDimension,
    c.modelDimension, c.mlpDimension, c.vocabulary, c.outputVocabulary, c.positions, c.segments,
    c.imageHeight, c.imageWidth, c.patchHeight, c.patchWidth, c.channels);
}

auto StructureOf(const TransformerConfig& c)
{
  return std::make_tuple(c.norm, c.normPlace, c.epsilon, c.normsAreFolded, c.embeddingNorm,
    c.finalNorm, c.lastResidualIsNormed, c.rotaryBase, c.rotaryScaling.kind, c.gated, c.mask,
    c.attentionScale, c.scaleByLayer, c.mlpDimension > 0 ? c.activation : Activation());
}

/// What TransformerLens cannot leave out is there when it is read.
void ExpectRoundTrip(const ArchitectureOptions& options)
{
  const TransformerConfig made = MakeConfig(options, SizesOnly(Data::Tokens));
  const TransformerConfig read = ParseTransformerConfig(ToConfigText(made), "config.json");
  EXPECT_EQ(SizesOf(read), SizesOf(made));
  EXPECT_EQ(StructureOf(read), StructureOf(made));
  EXPECT_EQ(
    read.position, made.position == PositionKind::None ? PositionKind::Learned : made.position);
  EXPECT_FALSE(read.tiedUnembedding);
}

TEST(CheckpointFiles, EveryModelOfTokensIsReadAsItWasMade)
{
  for (const PositionKind positions : { PositionKind::Learned, PositionKind::Shortformer,
         PositionKind::Alibi, PositionKind::Rotary, PositionKind::None })
  {
    for (const NormKind norm : { NormKind::None, NormKind::LayerNorm, NormKind::RmsNorm })
    {
      for (const Activation activation :
        { Activation::Gelu, Activation::GeluTanh, Activation::Relu, Activation::Silu })
      {
        for (int bits = 0; bits < 16; ++bits)
        {
          ArchitectureOptions options;
          options.positions = positions;
          options.norm = norm;
          options.activation = activation;
          options.mlpDimension = (bits & 1) != 0 ? 48 : 0;
          options.gated = options.mlpDimension > 0 && (bits & 2) != 0;
          options.keyHeads = (bits & 4) != 0 ? 2 : 0;
          options.headDimension = (bits & 4) != 0 ? 6 : 0;
          options.tied = options.biases = (bits & 8) != 0;
          ExpectRoundTrip(options);
        }
      }
    }
  }
}

TEST(CheckpointFiles, EncodersAreReadAsTheyWereMade)
{
  ArchitectureOptions options;
  options.mlpDimension = 32;
  for (const Data data : { Data::Masked, Data::Images })
  {
    const TransformerConfig made = MakeConfig(options, SizesOnly(data));
    const TransformerConfig read = ParseTransformerConfig(ToConfigText(made), "config.json");
    EXPECT_EQ(SizesOf(read), SizesOf(made));
    EXPECT_EQ(StructureOf(read), StructureOf(made));
    EXPECT_EQ(read.position, made.position);
    EXPECT_EQ(read.tiedUnembedding, made.tiedUnembedding);
    EXPECT_EQ(read.inputBias, made.inputBias);
  }
}

TEST(LearningRecipe, AnInvalidSizeIsNamed)
{
  struct Case
  {
    std::int64_t ArchitectureOptions::* option;
    std::int64_t value;
    const char* message;
  };
  for (const Case& c : { Case{ &ArchitectureOptions::layers, 0, "Layers: expected at least 1" },
         Case{ &ArchitectureOptions::heads, 0, "Heads: expected at least 1, found 0" },
         Case{ &ArchitectureOptions::heads, 65, "HeadDimension: 65 heads do not fit" },
         Case{ &ArchitectureOptions::keyHeads, 3, "KeyHeads: expected a divisor of Heads, 4" },
         Case{ &ArchitectureOptions::mlpDimension, -1, "MlpDimension: expected 0 or more" },
         Case{ &ArchitectureOptions::headDimension, 7, "HeadDimension: expected an even number" } })
  {
    ArchitectureOptions options;
    options.positions = PositionKind::Rotary;
    options.*c.option = c.value;
    EXPECT_THAT(MessageOf<OptionError>([&] { MakeConfig(options, SizesOnly(Data::Tokens)); }),
      HasSubstr(c.message));
  }
}

TEST(CheckpointFiles, TransformerLensFindsEverySettingThatItAsksFor)
{
  ArchitectureOptions options;
  options.positions = PositionKind::Rotary;
  options.norm = NormKind::None;
  const auto json =
    nlohmann::json::parse(ToConfigText(MakeConfig(options, SizesOnly(Data::Tokens))));
  // The arguments of HookedTransformerConfig without a default, and those that its code requires
  // of such a model.
  for (const char* name : { "n_layers", "d_model", "n_ctx", "d_head", "d_vocab", "act_fn",
         "model_type", "model_name", "n_heads", "d_mlp", "d_vocab_out", "eps", "attn_only",
         "use_attn_result", "use_attn_scale", "rotary_base", "n_key_value_heads", "gated_mlp",
         "init_weights", "seed", "final_rms", "dtype" })
  {
    EXPECT_TRUE(json.contains(name)) << name;
  }
  EXPECT_EQ(json["rotary_dim"], 16);
  EXPECT_EQ(json["rotary_adjacent_pairs"], false);
  EXPECT_TRUE(json["normalization_type"].is_null());
  EXPECT_TRUE(json["n_key_value_heads"].is_null());
  EXPECT_EQ(json["attn_scale"], 4.0);
}

TEST(CheckpointFiles, ClassesHaveTheirNames)
{
  ArchitectureOptions options;
  options.mlpDimension = 32;
  const TransformerConfig config = MakeConfig(options, SizesOnly(Data::Images));
  const std::vector<std::string> labels = { "red", "green", "blue", "disc", "stripes" };
  const auto json = nlohmann::json::parse(ToConfigText(config, labels));
  EXPECT_EQ(json["id2label"]["3"], "disc");
  EXPECT_EQ(json["label2id"]["stripes"], 4);
  EXPECT_EQ(json["image_size"], nlohmann::json({ 8, 12 }));
  EXPECT_EQ(json["patch_size"], 4);
  EXPECT_THAT(MessageOf<OptionError>([&] { ToConfigText(config, { "red" }); }),
    HasSubstr("expected a name for each of the 5 classes, found 1"));
}

TEST(CheckpointFiles, WhatTheOriginalCannotExpressIsRefused)
{
  ArchitectureOptions options;
  options.mlpDimension = 32;
  options.headDimension = 7;
  for (const Data data : { Data::Masked, Data::Images })
  {
    EXPECT_THAT(MessageOf<OptionError>([&] { MakeConfig(options, SizesOnly(data)); }),
      HasSubstr("HeadDimension: expected ModelDimension / Heads for BERT and ViT"));
  }
  options.headDimension = 0;
  TransformerConfig bert = MakeConfig(options, SizesOnly(Data::Masked));
  bert.headDimension = 7;
  EXPECT_THAT(MessageOf<OptionError>([&] { ToConfigText(bert); }),
    HasSubstr("expected HeadDimension to be ModelDimension / Heads"));
  TransformerConfig config = MakeConfig({}, SizesOnly(Data::Tokens));
  config.finalNorm = false;
  EXPECT_THAT(MessageOf<OptionError>([&] { ToConfigText(config); }),
    HasSubstr("expected a final normalization"));
  config.architecture = "gpt2";
  EXPECT_THAT(MessageOf<OptionError>([&] { ToConfigText(config); }),
    HasSubstr("expected a model of transformer_lens, bert or vit, found 'gpt2'"));
}

/// A small attention-only model with tied embeddings, and without biases, norms and positions.
class BareModel : public testing::Test
{
protected:
  static constexpr float Special = 0.1F;

  TransformerConfig Config;
  Tensors Weights;
  TemporaryDirectory Folder;

  BareModel()
  {
    ArchitectureOptions options;
    options.layers = 1;
    options.heads = 2;
    options.keyHeads = 1;
    options.modelDimension = 4;
    options.norm = NormKind::None;
    options.positions = PositionKind::None;
    options.biases = false;
    options.tied = true;
    this->Config = MakeConfig(options, SizesOnly(Data::Tokens));
    this->Config.outputVocabulary = this->Config.vocabulary;
    this->Add("embed.W_E", { 11, 4 });
    this->Add("blocks.0.attn.W_Q", { 2, 4, 2 });
    this->Add("blocks.0.attn._W_K", { 1, 4, 2 });
    this->Add("blocks.0.attn._W_V", { 1, 4, 2 });
    this->Add("blocks.0.attn.W_O", { 2, 2, 4 });
  }

  void Add(const std::string& name, const Shape& shape)
  {
    std::vector<double> values(*ElementCount(shape));
    for (std::size_t i = 0; i < values.size(); ++i)
    {
      values[i] = static_cast<double>(i) / 4;
    }
    this->Weights[name] = Tensor::FromDouble(DType::F32, shape, values);
  }

  Transformer Model() const
  {
    return { this->Config, WeightFiles(ViewsOf(this->Weights), "bare") };
  }
};

TEST_F(BareModel, HasTheTensorsThatTransformerLensExpects)
{
  WriteCheckpoint(this->Folder.Path() / "model", this->Model(), { { "tokenizer.json", "{}" } });
  const Transformer read = Transformer::Read(this->Folder.Path() / "model");
  const TensorViews& tensors = read.GetFiles().GetTensors();
  for (const auto& [name, tensor] : this->Weights)
  {
    EXPECT_EQ(tensors.at(name).ToDouble(), tensor.View().ToDouble()) << name;
  }
  const std::map<std::string, Shape> zeros = { { "blocks.0.attn.b_Q", { 2, 2 } },
    { "blocks.0.attn._b_K", { 1, 2 } }, { "blocks.0.attn._b_V", { 1, 2 } },
    { "blocks.0.attn.b_O", { 4 } }, { "unembed.b_U", { 11 } }, { "pos_embed.W_pos", { 9, 4 } } };
  for (const auto& [name, shape] : zeros)
  {
    EXPECT_EQ(tensors.at(name).shape, shape) << name;
    EXPECT_THAT(tensors.at(name).ToDouble(), testing::Each(0.0)) << name;
  }
  const TensorView unembedding = tensors.at("unembed.W_U");
  EXPECT_EQ(unembedding.shape, Shape({ 4, 11 }));
  EXPECT_EQ(unembedding.At(2 * 11 + 5), this->Weights["embed.W_E"].View().At(5 * 4 + 2));
  EXPECT_EQ(tensors.size(), this->Weights.size() + zeros.size() + 1);
  EXPECT_EQ(ReadBytes(this->Folder.Path() / "model" / "tokenizer.json"), "{}");
}

/// Halves have 11 significant bits: 1 + 2^-11 is between two of them, and the even one is 1; 1 + 3
/// 2^-11 is between 1 + 2^-10 and 1 + 2^-9, which is even. 2^-24 is the smallest.
TEST_F(BareModel, HalvesAreRoundedToTheNearestEven)
{
  const std::vector<double> values = { 1 + std::exp2(-11), 1 + 3 * std::exp2(-11),
    1 + std::exp2(-11) + std::exp2(-20), 65504, -65504, std::exp2(-24), std::exp2(-26), 0.1 };
  this->Weights["blocks.0.attn._W_K"] = Tensor::FromDouble(DType::F32, { 1, 4, 2 }, values);
  WriteCheckpoint(this->Folder.Path(), this->Model(), {}, DType::F16);
  const Transformer read = Transformer::Read(this->Folder.Path());
  const TensorView& halves = read.GetFiles().GetTensors().at("blocks.0.attn._W_K");
  EXPECT_EQ(halves.dtype, DType::F16);
  EXPECT_THAT(halves.ToDouble(), ElementsAre(1, 1 + std::exp2(-9), 1 + std::exp2(-10), 65504,
                                   -65504, std::exp2(-24), 0, 1638 * std::exp2(-14)));
  const auto json = nlohmann::json::parse(ReadBytes(this->Folder.Path() / "config.json"));
  EXPECT_EQ(json["dtype"], "float16");
}

TEST_F(BareModel, NothingIsWrittenThatCannotBe)
{
  for (const double value : { 65505.0, -1e6, std::numeric_limits<double>::infinity(),
         std::numeric_limits<double>::quiet_NaN() })
  {
    this->Weights["blocks.0.attn._W_V"] =
      Tensor::FromDouble(DType::F32, { 1, 4, 2 }, std::vector<double>(8, value));
    EXPECT_THAT(MessageOf<OptionError>(
                  [&] { WriteCheckpoint(this->Folder.Path(), this->Model(), {}, DType::F16); }),
      HasSubstr("tensor 'blocks.0.attn._W_V': expected values up to 65504 for F16, found "));
  }
  EXPECT_THAT(MessageOf<OptionError>(
                [&] { WriteCheckpoint(this->Folder.Path(), this->Model(), {}, DType::I8); }),
    HasSubstr("expected F32 or F16, found I8"));
  EXPECT_FALSE(std::filesystem::exists(this->Folder.Path() / "config.json"));
  WriteBytes(this->Folder.Path() / "file", "");
  EXPECT_THAT(MessageOf<FileError>([&]
                { WriteCheckpoint(this->Folder.Path() / "file" / "model", this->Model(), {}); }),
    HasSubstr("the folder cannot be created"));
}

/// The texts of its tokens, as they are typed.
TEST(CheckpointFiles, EveryTaskOfTokensHasATokenizer)
{
  for (const std::string& name : TaskNames())
  {
    TaskOptions options;
    options.kind = ParseTask(name);
    if (options.kind == TaskKind::Text || options.kind == TaskKind::MaskedText)
    {
      continue; // they make theirs from the text: TestTextTask
    }
    if (options.kind == TaskKind::TokenPairs)
    {
      EXPECT_THROW(MakeTask(options), OptionError);
      continue;
    }
    const auto task = MakeTask(options);
    const auto files = FilesOf(*task);
    const std::vector<std::string> words = task->TokenNames();
    EXPECT_EQ(words.empty(), files.count("tokenizer.json") == 0) << name;
    EXPECT_EQ(words.empty(), !LabelsOf(options).empty()) << name;
    if (!words.empty())
    {
      const Tokenizer tokenizer = ParseTokenizer(files.at("tokenizer.json"), name);
      EXPECT_THAT(tokenizer.Encode(words.back() + " " + words.front(), true).ids,
        ElementsAre(static_cast<std::int64_t>(words.size()) - 1, 0));
      TransformerConfig config;
      config.tiedUnembedding = false;
      task->Configure(config);
      EXPECT_EQ(tokenizer.VocabularySize(), config.vocabulary) << name;
    }
  }
}

TEST(CheckpointFiles, CurvesAreLinesOfNumbers)
{
  const TemporaryDirectory folder;
  LearningCurves curves;
  curves.names = { "Step", "Held-out Loss" };
  curves.rows = { { 0, 4.25 }, { 100, std::numeric_limits<double>::quiet_NaN() }, { 1e5, 0.1 } };
  WriteCurves(folder.Path() / "curves.csv", curves);
  EXPECT_EQ(
    ReadBytes(folder.Path() / "curves.csv"), "Step,Held-out Loss\n0,4.25\n100,nan\n100000,0.1\n");
}

TEST(CheckpointFiles, FoldersOfCheckpointsAreFoundByTheirStep)
{
  const TemporaryDirectory folder;
  EXPECT_THAT(FindCheckpoints(folder.Path() / "none"), IsEmpty());
  for (const char* name :
    { "checkpoint-10", "checkpoint-9", "checkpoint-", "checkpoint-1a", "checkpoint--1", "runs" })
  {
    std::filesystem::create_directory(folder.Path() / name);
    WriteBytes(folder.Path() / name / "config.json", "{}");
  }
  std::filesystem::create_directory(folder.Path() / "checkpoint-5"); // without a config.json
  const auto found = FindCheckpoints(folder.Path());
  EXPECT_THAT(found, ElementsAre(Key(9), Key(10)));
  EXPECT_EQ(found.at(9), folder.Path() / "checkpoint-9");
  EXPECT_EQ(CheckpointStep("a/checkpoint-5"), 5);
  EXPECT_FALSE(CheckpointStep("a/checkpoint"));
}

}
