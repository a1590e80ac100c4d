#include "Error.h"
#include "RecordTransformer.h"
#include "RecordedAttention.h"
#include "RecordingFile.h"
#include "Safetensors.h"
#include "TemporaryDirectory.h"
#include "TestName.h"
#include "TorchBytes.h"
#include "TransformerOracle.h"

#include <filesystem>
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

constexpr double AttentionTolerance = 2e-5;
constexpr double TorchStreamTolerance = 2e-4;

/// The values of one sequence of an expected quantity [B, ...].
std::vector<double> Values(
  const SafetensorsFile& file, const std::string& quantity, std::int64_t sequence)
{
  const TensorView& view = file.GetTensors().at(quantity);
  const std::vector<double> all = view.ToDouble();
  const auto size = static_cast<std::int64_t>(all.size()) / view.shape[0];
  return { all.begin() + sequence * size, all.begin() + (sequence + 1) * size };
}

TransformerInput InputOf(const SafetensorsFile& file)
{
  const TensorView& view = file.GetTensors().at("input_ids");
  const std::vector<std::int64_t> ids = view.ToInteger();
  TransformerInput input;
  const auto length = static_cast<std::ptrdiff_t>(view.shape[1]);
  for (auto begin = ids.begin(); begin != ids.end(); begin += length)
  {
    input.tokens.emplace_back(begin, begin + length);
  }
  return input;
}

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
  const SafetensorsFile expected(Folder / (GetParam().expected + ".forward.safetensors"s));
  RecordOptions options;
  options.residual = true;
  options.logits = true;
  const Recording recording = RecordTransformer(model, InputOf(expected), options);
  EXPECT_THAT(model.GetWeights().unused, IsEmpty());
  for (std::int64_t s = 0; s < recording.SequenceCount(); ++s)
  {
    const std::int64_t first = recording.sequenceOffsets[s];
    const std::int64_t length = recording.SequenceLength(s);
    const auto expect = [&](const std::string& quantity, const SharedMatrix& matrix)
    {
      ExpectClose(
        quantity, Rows(matrix, first, length), Values(expected, quantity, s), TorchStreamTolerance);
    };
    expect("logits", recording.logits);
    for (std::size_t l = 0; l < recording.residual.size(); ++l)
    {
      expect("hidden." + std::to_string(l), recording.residual[l]);
    }
    for (std::size_t l = 0; l < recording.layers.size(); ++l)
    {
      const std::vector<double> all =
        Values(expected, "layer." + std::to_string(l) + ".attention", s);
      const auto size = static_cast<std::ptrdiff_t>(length * length);
      auto begin = all.begin();
      for (std::size_t h = 0; h < recording.layers[l].heads.size(); ++h, begin += size)
      {
        std::vector<float> weights(size);
        EvaluateAttention(recording, s, static_cast<std::int64_t>(l), static_cast<std::int64_t>(h),
          AttentionQuantity::Weights, 0, length, weights.data());
        ExpectClose(
          "attention", weights, std::vector<double>(begin, begin + size), AttentionTolerance);
      }
    }
  }
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
