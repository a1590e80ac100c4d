#include "Weights/ModelFingerprint.h"

#include "Weights/Transformer.h"

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <gtest/gtest.h>

using namespace atlas;
namespace fs = std::filesystem;

namespace
{

/// A shipped model whose settings and tensors can be changed.
struct ModelFingerprints : testing::Test
{
  Transformer read =
    Transformer::Read(fs::path(ATLAS_DATA_DIR) / "models" / "language-alibi" / "config.json");
  TransformerConfig config = this->read.GetConfig();
  Tensors tensors;

  ModelFingerprints()
  {
    for (const auto& [name, view] : this->read.GetFiles().GetTensors())
    {
      this->tensors[name] = { view.dtype, view.shape, { view.data, view.data + view.Bytes() } };
    }
  }

  ModelFingerprint Found(int threads = 0) const
  {
    const Transformer model(this->config, WeightFiles(ViewsOf(this->tensors), "memory"));
    return FingerprintOf(model, threads);
  }
};

}

TEST_F(ModelFingerprints, DoNotDependOnTheFileOrThreads)
{
  const ModelFingerprint fingerprint = FingerprintOf(this->read);
  for (const int threads : { 1, 2, 3 })
  {
    EXPECT_TRUE(this->Found(threads) == fingerprint);
  }
  EXPECT_EQ(fingerprint.weights.size(), 16);
  EXPECT_EQ(fingerprint.configuration.size(), 16);
  EXPECT_NE(fingerprint.weights, fingerprint.configuration);
}

TEST_F(ModelFingerprints, DifferByAnyTensor)
{
  const ModelFingerprint fingerprint = this->Found();
  for (auto& [name, tensor] : this->tensors)
  {
    for (const std::size_t place : { std::size_t{ 0 }, tensor.bytes.size() - 1 })
    {
      tensor.bytes[place] ^= std::byte{ 1 };
      const ModelFingerprint found = this->Found();
      EXPECT_NE(found.weights, fingerprint.weights) << name;
      EXPECT_EQ(found.configuration, fingerprint.configuration);
      tensor.bytes[place] ^= std::byte{ 1 };
    }
  }
  EXPECT_TRUE(this->Found() == fingerprint);
}

/// Settings of each kind of field, and of the structures in it.
TEST_F(ModelFingerprints, DifferByAnySetting)
{
  const std::string before = FingerprintOf(this->config);
  using Change = std::function<void(TransformerConfig&)>;
  const std::map<std::string, Change> changes = {
    { "architecture", [](TransformerConfig& c) { c.architecture += "2"; } },
    { "epsilon", [](TransformerConfig& c) { c.epsilon *= 2; } },
    { "attentionScale", [](TransformerConfig& c) { c.attentionScale += 1; } },
    { "windows", [](TransformerConfig& c) { c.windows = { 3 }; } },
    { "expertLayers", [](TransformerConfig& c) { c.expertLayers = { true }; } },
    { "norm", [](TransformerConfig& c) { c.norm = NormKind::None; } },
    { "gated", [](TransformerConfig& c) { c.gated = !c.gated; } },
    { "logitsActivation", [](TransformerConfig& c) { c.logitsActivation = Activation::Relu; } },
    { "rotaryScaling", [](TransformerConfig& c) { c.rotaryScaling.betaSlow += 1; } },
    { "windowRotaryScaling",
      [](TransformerConfig& c) { c.windowRotaryScaling.longFactors = { 1 }; } },
    { "encoder",
      [](TransformerConfig& c) { c.encoder = std::make_shared<const TransformerConfig>(); } },
    { "vision", [](TransformerConfig& c) { c.vision = std::make_shared<const VisionConfig>(); } },
    { "decoderStart", [](TransformerConfig& c) { c.decoderStart = 7; } },
    { "ownTensors", [](TransformerConfig& c) { c.ownTensors = "like=llama"; } },
    { "firstAttentionIsNormed", [](TransformerConfig& c) { c.firstAttentionIsNormed = false; } },
    { "residualScale", [](TransformerConfig& c) { c.residualScale = 2; } },
    { "rotatedLayers", [](TransformerConfig& c) { c.rotatedLayers = { true, false }; } },
    { "rotaryBases", [](TransformerConfig& c) { c.rotaryBases = { 1, 2 }; } },
    { "queryGrowthStep", [](TransformerConfig& c) { c.queryGrowthStep = 2; } },
    { "chunks", [](TransformerConfig& c) { c.chunks = { 3 }; } },
    { "expertScores", [](TransformerConfig& c) { c.expertScores = ExpertScores::Sigmoid; } },
  };
  std::map<std::string, std::string> found;
  for (const auto& [name, change] : changes)
  {
    TransformerConfig changed = this->config;
    change(changed);
    const std::string fingerprint = FingerprintOf(changed);
    EXPECT_NE(fingerprint, before) << name;
    EXPECT_TRUE(found.emplace(fingerprint, name).second) << name;
  }
}
