#include "Weights/CheckpointConfig.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "ExpectMembers.h"
#include "ModelsOracle.h"
#include "TemporaryDirectory.h"
#include "TorchBytes.h"
#include "Weights/Transformer.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::AllOf;
using testing::HasSubstr;

namespace
{

std::filesystem::path OracleFolder(const std::string& name)
{
  return ModelsOracle("files/pt/checkpoints/" + name);
}

/// A checkpoint {name: state, 'config': settings}, whose state has one weight of this name and
/// shape.
void WriteCheckpoint(const std::filesystem::path& path, const std::string& weight,
  const std::vector<std::int64_t>& shape,
  const std::vector<std::pair<std::string, std::string>>& settings)
{
  std::int64_t count = 1;
  std::vector<std::int64_t> strides(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;)
  {
    strides[axis] = count;
    count *= shape[axis];
  }
  const PickledStorage storage = { "0", count };
  const std::string state =
    PickledDictionary({ { weight, PickledTensor(storage, 0, shape, strides) } });
  WriteBytes(path,
    TorchZip(PickledDictionary({ { "model", state }, { "config", PickledDictionary(settings) } }),
      { { "0", FloatBytes(std::vector<float>(count, 1)) } }));
}

}

TEST(CheckpointConfig, IsThatOfTheTraining)
{
  ExpectMembers(ReadCheckpointConfig(OracleFolder("nanogpt-unbiased/ckpt.pt")),
    "architecture=nanogpt layers=2 heads=2 modelDimension=16 positions=12 vocabulary=13 "
    "inputBias=0");
  EXPECT_TRUE(ReadCheckpointConfig(OracleFolder("nanogpt/ckpt.pt")).inputBias);
  ExpectMembers(ReadCheckpointConfig(OracleFolder("llama2.c/ckpt.pt")),
    "architecture=meta_llama keyHeads=2 mlpDimension=48 rotatesNeighbors=1"); // mlpDimension: 2/3
                                                                              // of 64 is 42
}

/// Settings of before 2023 and of forks do not say whether there are biases.
TEST(CheckpointConfig, BiasesOfNanoGptAreThoseOfTheWeights)
{
  for (const bool hasBias : { false, true })
  {
    const TemporaryDirectory folder;
    WriteCheckpoint(folder / "ckpt.pt",
      std::string("transformer.h.0.mlp.c_fc.") + (hasBias ? "bias" : "weight"), { 4, 2 },
      { { "n_layer", PickledNumber(1) }, { "n_head", PickledNumber(1) },
        { "n_embd", PickledNumber(2) }, { "block_size", PickledNumber(5) },
        { "vocab_size", PickledNumber(7) } });
    const TransformerConfig config = ReadCheckpointConfig(folder / "ckpt.pt");
    EXPECT_EQ(config.inputBias, hasBias);
    EXPECT_EQ(config.mlpBias, hasBias);
  }
}

TEST(CheckpointConfig, OfMetaHasTheVocabularyOfTheEmbedding)
{
  EXPECT_EQ(ReadCheckpointConfig(OracleFolder("meta_llama/consolidated.00.pth")).vocabulary, 13);
}

TEST(CheckpointConfig, OfMetaWithSeveralPartsIsRefused)
{
  const TemporaryDirectory folder;
  for (const char* name : { "params.json", "consolidated.00.pth" })
  {
    std::filesystem::copy_file(OracleFolder(std::string("meta_llama/") + name), folder / name);
  }
  std::ofstream(folder / "consolidated.01.pth") << "x";
  EXPECT_THAT(MessageOf<ModelError>([&] { ReadCheckpointConfig(folder / "consolidated.00.pth"); }),
    HasSubstr("expected the weights in one file"));
}

TEST(CheckpointConfig, OfTransformerLensIsKnownByItsSizes)
{
  const TransformerConfig config = ParseTransformerConfig(
    R"({"n_layers": 1, "n_ctx": 5, "d_model": 8, "d_head": 4, "d_vocab": 7, "act_fn": "relu"})",
    "config.json");
  ExpectMembers(config, "architecture=transformer_lens heads=2");
  const TemporaryDirectory folder;
  WriteCheckpoint(folder / "a.pt", "blocks.0.attn.W_Q", { 2, 8, 4 },
    { { "n_layers", PickledNumber(1) }, { "n_ctx", PickledNumber(5) },
      { "d_model", PickledNumber(8) }, { "d_head", PickledNumber(4) },
      { "d_vocab", PickledNumber(7) }, { "act_fn", PickledText("gelu") } });
  EXPECT_EQ(ReadCheckpointConfig(folder / "a.pt").positions, 5);
  EXPECT_TRUE(IsTransformerCheckpoint(folder / "a.pt"));
}

TEST(CheckpointConfig, WithoutSettingsTheMessageSaysWhatToWrite)
{
  EXPECT_THAT(MessageOf<ModelError>([] { Transformer::Read(OracleFolder("nanogpt-weights.pt")); }),
    AllOf(HasSubstr("Write a config.json"),
      HasSubstr(R"({"model_type": "nanogpt", "n_layer": 2, "n_head": ?, "n_embd": 16,)"),
      HasSubstr(R"("vocab_size": 13, "block_size": 12,)"), HasSubstr(R"("bias": true})")));
  const TemporaryDirectory folder;
  WriteCheckpoint(folder / "a.pt", "encoder.layers.0.weight", { 2, 2 }, {});
  EXPECT_THAT(MessageOf<ModelError>([&] { Transformer::Read(folder / "a.pt"); }),
    AllOf(HasSubstr("a.pt: expected a config.json beside it"),
      HasSubstr("Copy the config.json of the model to it.")));
  EXPECT_FALSE(IsTransformerCheckpoint(folder / "a.pt"));
}

TEST(CheckpointConfig, LinesOfTheMessageOpenTheModel)
{
  const TemporaryDirectory folder;
  std::filesystem::copy_file(OracleFolder("nanogpt-weights.pt"), folder / "model.pt");
  std::string text = MessageOf<ModelError>([&] { Transformer::Read(folder / "model.pt"); });
  text = text.substr(text.find('{'));
  text.replace(text.find('?'), 1, "2");
  std::ofstream(folder / "config.json") << text;
  EXPECT_EQ(Transformer::Read(folder / "model.pt").GetConfig().heads, 2);
}

TEST(CheckpointConfig, DataOfTheTrainingIsFound)
{
  const TemporaryDirectory folder;
  std::filesystem::create_directories(folder / "out");
  const std::filesystem::path data = folder / "data" / "letters";
  std::filesystem::copy_file(OracleFolder("nanogpt/ckpt.pt"), folder / "out/ckpt.pt");
  EXPECT_EQ(FindTrainingData(folder / "out/ckpt.pt"), "");
  std::filesystem::create_directories(data);
  std::filesystem::copy_file(OracleFolder("nanogpt/meta.pkl"), data / "meta.pkl");
  EXPECT_EQ(FindTrainingData(folder / "out/ckpt.pt"), data);
}

TEST(Transformer, ModelsAreCalledByTheirFolders)
{
  EXPECT_EQ(ModelName("/models/GPT-2/config.json"), "GPT-2");
  EXPECT_EQ(ModelName("/models/GPT-2/model.safetensors"), "GPT-2");
  EXPECT_EQ(ModelName("/models/GPT-2/checkpoint-300/config.json"), "GPT-2/checkpoint-300");
  EXPECT_EQ(ModelName("/models/Llama-3.2-1B.Q4_0.gguf"), "Llama-3.2-1B.Q4_0");
  EXPECT_EQ(ModelName("/hub/models--openai-community--gpt2/snapshots/607a30d/config.json"), "gpt2");
  const TemporaryDirectory folder;
  const std::string name = folder.Path().filename().string();
  EXPECT_EQ(ModelName(folder.Path()), name);
  EXPECT_EQ(ModelName(folder.Path() / ""), name);
}
