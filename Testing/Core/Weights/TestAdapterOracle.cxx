// What a model and its adapter compute together.

#include "Files/Safetensors.h"
#include "ModelsOracle.h"
#include "Oracle.h"
#include "Recording/RecordedAttention.h"
#include "Run/RecordTransformer.h"
#include "TemporaryDirectory.h"
#include "TinyTransformer.h"
#include "TransformerOracle.h"
#include "Weights/Adapter.h"
#include "Weights/Transformer.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

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

}
