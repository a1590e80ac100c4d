#include "Base/Error.h"
#include "Files/Safetensors.h"
#include "ModelOracle.h"
#include "PartParity.h"
#include "Recording/RecordingFile.h"
#include "Run/RecordTransformer.h"
#include "TemporaryDirectory.h"
#include "TestName.h"
#include "TinyTransformer.h"
#include "TorchBytes.h"
#include "TransformerOracle.h"

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::IsEmpty;
using namespace std::string_literals;

namespace
{

const std::filesystem::path Folder =
  std::filesystem::path(ATLAS_ORACLE_DIR) / "models" / "files" / "pt";

struct TorchModel
{
  const char* name;
  const char* expected;
};

using TorchTransformer = testing::TestWithParam<TorchModel>;

// Other files of the same weights are compared in TestModelParity.cxx.
INSTANTIATE_TEST_SUITE_P(Oracle, TorchTransformer,
  testing::Values(TorchModel{ "gpt2-module-prefix.pt", "gpt2" },
    TorchModel{ "checkpoints/nanogpt/ckpt.pt", "checkpoints/nanogpt/ckpt" },
    TorchModel{ "checkpoints/nanogpt-unbiased/ckpt.pt", "checkpoints/nanogpt-unbiased/ckpt" },
    TorchModel{ "checkpoints/nanogpt-unbiased", "checkpoints/nanogpt-unbiased/ckpt" },
    TorchModel{ "checkpoints/llama2.c/ckpt.pt", "checkpoints/llama2.c/ckpt" },
    TorchModel{ "checkpoints/meta_llama/params.json", "checkpoints/llama2.c/ckpt" }),
  [](const auto& model) { return TestName(model.param.name); });

TEST_P(TorchTransformer, ComputesWhatTheOriginalDoes)
{
  const Transformer model = Transformer::Read(Folder / GetParam().name);
  const ModelOracle expected(Folder / (GetParam().expected + ".forward.safetensors"s));
  const Recording recording = RecordTransformer(model, expected.Input(), AllQuantities());
  EXPECT_THAT(model.GetWeights().unused, IsEmpty());
  const ExpectedPlaces places = PlacesOf(recording, expected.Places());
  const PartParity parity = { recording, expected.Tensors(), "", places, places };
  std::map<std::string, double> deviations = parity.Deviations();
  EXPECT_EQ(deviations.count("attention") + deviations.count("hidden"), 2U);
  deviations["logits"] = parity.Deviation("logits", recording.logits, places);
  ExpectSmall(GetParam().name, deviations);
}

TEST(TorchRecording, CacheOfTransformerLensIsRead)
{
  const RecordingContent content = ReadRecording(Folder / "tl-cache.pt");
  const SafetensorsFile expected(Folder / "tl-cache.tensors.safetensors");
  const Recording& recording = content.recording;
  ASSERT_EQ(recording.layers.size(), 2U);
  ASSERT_EQ(recording.SequenceCount(), 2);
  for (std::size_t l = 0; l < 2; ++l)
  {
    const TensorView& queries =
      expected.GetTensors().at("blocks." + std::to_string(l) + ".attn.hook_q"); // [B, T, H, d]
    ASSERT_EQ(recording.layers[l].heads.size(), 4U);
    for (std::uint64_t i = 0; i < queries.Count(); ++i)
    {
      const auto row = static_cast<std::int64_t>(i / 32);
      const SharedMatrix& query = recording.layers[l].heads[i / 8 % 4].query;
      ASSERT_EQ(static_cast<double>(query.Row(row)[i % 8]), queries.At(i));
    }
  }
}

TEST(TorchFolder, CheckpointOfTransformerLensIsRead)
{
  const std::filesystem::path original = test::TransformerOracle::Folder("attn-only");
  const SafetensorsFile weights(original / "model.safetensors");
  std::vector<std::pair<std::string, std::string>> tensors;
  std::vector<std::pair<std::string, std::string>> storages;
  for (const auto& [name, view] : weights.GetTensors())
  {
    ASSERT_EQ(view.dtype, DType::F32);
    std::vector<std::int64_t> strides(view.shape.size(), 1);
    for (std::size_t axis = strides.size(); axis-- > 1;)
    {
      strides[axis - 1] = strides[axis] * view.shape[axis];
    }
    const std::string key = std::to_string(tensors.size());
    const auto count = static_cast<std::int64_t>(view.Count());
    tensors.emplace_back(name, test::PickledTensor({ key, count }, 0, view.shape, strides));
    storages.emplace_back(
      key, std::string(reinterpret_cast<const char*>(view.data), view.Count() * sizeof(float)));
  }
  const TemporaryDirectory folder;
  std::filesystem::copy(original / "config.json", folder / "config.json");
  test::WriteBytes(
    folder / "checkpoint.pth", test::TorchZip(test::PickledDictionary(tensors), storages));
  const Transformer model = Transformer::Read(folder.Path());
  const Transformer expected = Transformer::Read(original);
  ASSERT_EQ(model.GetWeights().layers.size(), expected.GetWeights().layers.size());
  for (const auto& [name, view] : expected.GetFiles().GetTensors())
  {
    EXPECT_EQ(model.GetFiles().GetTensors().at(name).ToDouble(), view.ToDouble()) << name;
  }
}

/// A folder with one file of weights and its configuration.
TEST(TorchFolder, ModelIsFoundByItsConfiguration)
{
  const TemporaryDirectory folder;
  std::filesystem::copy(Folder / "config.json", folder / "config.json");
  std::filesystem::copy(Folder / "gpt2-half.bin", folder / "pytorch_model.bin");
  const Transformer model = Transformer::Read(folder / "config.json");
  EXPECT_EQ(model.GetWeights().layers.size(), 2U);
  EXPECT_EQ(model.GetWeights().tokenEmbedding.dtype, DType::F16);
}

}
