#include "Weights/Internal/TensorFile.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "Files/Safetensors.h"
#include "TemporaryDirectory.h"
#include "TestName.h"
#include "TorchBytes.h"
#include "Weights/Transformer.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;
using testing::HasSubstr;
using namespace std::string_literals;

namespace
{

const std::filesystem::path Folder =
  std::filesystem::path(ATLAS_ORACLE_DIR) / "models" / "files" / "pt";

std::vector<std::string> NamesOf(const TensorViews& tensors)
{
  std::vector<std::string> names;
  for (const auto& [name, view] : tensors)
  {
    names.push_back(name);
  }
  return names;
}

using TorchWeights = testing::TestWithParam<std::pair<const char*, const char*>>;

INSTANTIATE_TEST_SUITE_P(Oracle, TorchWeights,
  testing::Values(std::pair("gpt2-zip.pt", "gpt2"), std::pair("gpt2-legacy.pt", "gpt2"),
    std::pair("gpt2-torch2.pt", "gpt2"), std::pair("gpt2-module-prefix.pt", "gpt2"),
    std::pair("gpt2-lightning.ckpt", "gpt2"), std::pair("gpt2-half.bin", "gpt2-half"),
    std::pair("gpt2-bfloat16-legacy.bin", "gpt2-bfloat16")),
  [](const auto& file) { return TestName(file.param.first); });

TEST_P(TorchWeights, AreThoseOfTheModelAlone)
{
  const auto [name, expected] = this->GetParam();
  const WeightFiles files = WeightFiles::Read(Folder / name);
  const SafetensorsFile tensors(Folder / (expected + ".tensors.safetensors"s));
  EXPECT_EQ(NamesOf(files.GetTensors()), NamesOf(tensors.GetTensors()));
  for (const auto& [tensor, view] : tensors.GetTensors())
  {
    const TensorView& found = files.GetTensors().at(tensor);
    EXPECT_EQ(found.dtype, view.dtype) << tensor;
    EXPECT_EQ(found.shape, view.shape) << tensor;
    EXPECT_EQ(found.ToDouble(), view.ToDouble()) << tensor;
    EXPECT_EQ(files.FileOf(tensor), (Folder / name).string());
  }
  EXPECT_NO_THROW(files.RequireIntact());
  EXPECT_EQ(files.Stamps().size(), 1U);
}

/// The names that are read from a file with these objects by name, each a tensor.
class Checkpoint : public testing::Test
{
protected:
  TemporaryDirectory Temporary;

  std::vector<std::string> Read(
    const std::string& object, const char* name = "a.pt", bool isShard = false) const
  {
    WriteBytes(this->Temporary / name, TorchZip(object, { { "0", FloatBytes({ 1 }) } }));
    return NamesOf(ReadTensorFile(this->Temporary / name, isShard).tensors);
  }

  static std::string Dictionary(const std::vector<std::string>& names)
  {
    std::vector<std::pair<std::string, std::string>> items;
    for (const std::string& name : names)
    {
      items.emplace_back(name, PickledVector("0", 1));
    }
    return PickledDictionary(items);
  }
};

TEST_F(Checkpoint, LossesAndStepsHideNoWeights)
{
  const std::string weights = Dictionary({ "wte.weight" });
  const std::string loss = PickledTensor({ "0", 1 }, 0, {}, {});
  const std::string random = PickledVector("0", 1);
  for (const char* name : { "model", "module", "net", "ema" })
  {
    const std::string object =
      PickledDictionary({ { name, weights }, { "best_val_loss", loss }, { "rng_state", random } });
    EXPECT_THAT(this->Read(object), ElementsAre("wte.weight")) << name;
  }
}

TEST_F(Checkpoint, WrappersAreTakenOff)
{
  EXPECT_THAT(this->Read(Dictionary({ "a", "b" })), ElementsAre("a", "b"));
  for (const char* wrapper : { "state_dict", "model_state_dict", "model", "module" })
  {
    EXPECT_THAT(this->Read(PickledDictionary({ { wrapper, Dictionary({ "a", "b" }) },
                  { "optimizer", PickledDictionary({ { "state", Dictionary({ "c" }) } }) },
                  { "epoch", PickledNumber(3) } })),
      ElementsAre("a", "b"))
      << wrapper;
  }
  EXPECT_THAT(this->Read(PickledDictionary(
                { { "state_dict", PickledDictionary({ { "model", Dictionary({ "a" }) } }) },
                  { "model", Dictionary({ "b" }) } })),
    ElementsAre("a"));
}

TEST_F(Checkpoint, TensorsOutsideOfTheWrapperMakeItAModule)
{
  EXPECT_THAT(this->Read(PickledDictionary(
                { { "lm_head.weight", PickledVector("0", 1) }, { "model", Dictionary({ "a" }) } })),
    ElementsAre("lm_head.weight", "model.a"));
}

TEST_F(Checkpoint, TensorsBesideAStateDictAreOfTheTraining)
{
  for (const char* wrapper : { "state_dict", "model_state_dict" })
  {
    EXPECT_THAT(this->Read(PickledDictionary({ { "rng_state", PickledVector("0", 1) },
                  { wrapper, Dictionary({ "a", "b" }) } })),
      ElementsAre("a", "b"));
  }
}

TEST_F(Checkpoint, ListsAreNotWrappers)
{
  EXPECT_THAT(this->Read(PickledDictionary(
                { { "blocks", PickledList({ Dictionary({ "w" }), Dictionary({ "w" }) }) } })),
    ElementsAre("blocks.0.w", "blocks.1.w"));
}

TEST_F(Checkpoint, CommonPrefixesAreDropped)
{
  EXPECT_THAT(this->Read(Dictionary({ "module.a", "module.b" })), ElementsAre("a", "b"));
  EXPECT_THAT(
    this->Read(Dictionary({ "module._orig_mod.a", "module._orig_mod.b" })), ElementsAre("a", "b"));
  EXPECT_THAT(this->Read(Dictionary({ "model.transformer.a", "model.lm_head.b" })),
    ElementsAre("lm_head.b", "transformer.a"));
  EXPECT_THAT(
    this->Read(Dictionary({ "module.a", "modules.b" })), ElementsAre("module.a", "modules.b"));
  EXPECT_THAT(this->Read(Dictionary({ "model.model.layers.0", "model.lm_head.b" })),
    ElementsAre("lm_head.b", "model.layers.0"));
}

TEST_F(Checkpoint, PrefixOfTheArchitectureStays)
{
  EXPECT_THAT(this->Read(Dictionary({ "model.layers.0.a", "model.norm.weight" })),
    ElementsAre("model.layers.0.a", "model.norm.weight"));
}

TEST_F(Checkpoint, ShardsKeepTheirNames)
{
  EXPECT_THAT(this->Read(Dictionary({ "module.a" }), "a.bin", true), ElementsAre("module.a"));
}

TEST_F(Checkpoint, FormatIsThatOfTheContent)
{
  EXPECT_THAT(this->Read(Dictionary({ "a" }), "a.safetensors"), ElementsAre("a"));
  WriteSafetensors(
    this->Temporary / "b.pt", { { "b", Tensor::FromDouble(DType::F32, { 1 }, { 1 }) } }, {});
  EXPECT_THAT(NamesOf(ReadTensorFile(this->Temporary / "b.pt", false).tensors), ElementsAre("b"));
  WriteBytes(this->Temporary / "c.pth", "<html>");
  EXPECT_THAT(MessageOf<FormatError>([&] { ReadTensorFile(this->Temporary / "c.pth", false); }),
    HasSubstr("c.pth: expected a PyTorch file"));
  WriteBytes(this->Temporary / "c", "<html>");
  EXPECT_THAT(MessageOf<FormatError>([&] { ReadTensorFile(this->Temporary / "c", false); }),
    HasSubstr("safetensors"));
}

TEST_F(Checkpoint, ShardsAreFoundByTheirIndex)
{
  this->Read(Dictionary({ "a" }), "one.bin");
  this->Read(Dictionary({ "b" }), "two.bin");
  WriteBytes(
    this->Temporary / TorchShardIndexFile, R"({"weight_map": {"a": "one.bin", "b": "two.bin"}})");
  const WeightFiles files = WeightFiles::Read(FindWeights(this->Temporary.Path()));
  EXPECT_THAT(NamesOf(files.GetTensors()), ElementsAre("a", "b"));
  EXPECT_EQ(files.FileOf("b"), (this->Temporary / "two.bin").string());
}

TEST_F(Checkpoint, WeightsOfAFolderAreFound)
{
  const auto find = [&] { return FindWeights(this->Temporary.Path()).filename().string(); };
  EXPECT_THAT(MessageOf<FileError>(find), HasSubstr("or in a .pt, .pth or .ckpt file, found none"));
  WriteBytes(this->Temporary / "training_args.bin", "");
  EXPECT_THROW(find(), FileError);
  WriteBytes(this->Temporary / "b.pt", "");
  EXPECT_EQ(find(), "b.pt");
  WriteBytes(this->Temporary / "a.ckpt", "");
  EXPECT_THAT(
    MessageOf<FileError>(find), HasSubstr("expected one file of weights, found a.ckpt, b.pt"));
  for (const char* name : { TorchShardIndexFile, TorchWeightsFile, ShardIndexFile, WeightsFile })
  {
    WriteBytes(this->Temporary / name, "");
    EXPECT_EQ(find(), name);
  }
}

}
