// Models with weights of fewer than 16 bits, as they are published, against weights that an
// independent program made by the definitions of their formats (Testing/Oracle/v5/packed).

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "Files/AtomicFile.h"
#include "Files/JsonText.h"
#include "Files/MappedFile.h"
#include "Files/PackedNumbers.h"
#include "Files/Safetensors.h"
#include "ModelsOracle.h"
#include "OracleFile.h"
#include "Run/GenerateTokens.h"
#include "Run/RecordTransformer.h"
#include "SameRecording.h"
#include "TemporaryDirectory.h"
#include "TestName.h"
#include "TinyTransformer.h"
#include "Weights/ModelFingerprint.h"
#include "Weights/Transformer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;
using testing::StartsWith;

namespace
{

std::vector<std::string> FormatNames()
{
  std::vector<std::string> names;
  for (const auto& entry :
    std::filesystem::directory_iterator(std::filesystem::path(ATLAS_ORACLE_DIR) / "v5/packed"))
  {
    if (entry.is_directory())
    {
      names.push_back(entry.path().filename().string());
    }
  }
  return names;
}

double LargestOf(const std::vector<double>& values)
{
  return std::accumulate(values.begin(), values.end(), 0.0,
    [](double most, double value) { return std::max(most, std::abs(value)); });
}

class PackedModels : public testing::TestWithParam<std::string>
{
protected:
  std::filesystem::path Folder = AnyOracle("v5/packed/" + this->GetParam());
  OracleFile Expected{ this->Folder / "expected.safetensors" };
  Transformer Model = Transformer::Read(this->Folder);

  /// The same model with the expected weights, as if it were not quantized.
  Transformer Dense() const
  {
    nlohmann::json config = ParseJson(ReadFile(this->Folder / "config.json"), "config.json");
    config.erase("quantization");
    config.erase("quantization_config");
    TensorViews views = this->Model.GetFiles().GetTensors();
    for (const auto& [name, view] : this->Expected.Tensors())
    {
      views[name] = view;
    }
    return { ParseTransformerConfig(config.dump(), "config.json"),
      WeightFiles(views, "model.safetensors") };
  }

  /// Whether single precision has the weights as the definition gives them. Where a format has two
  /// factors for a number, or adds to the product, it rounds twice.
  bool IsExact() const
  {
    const std::set<std::string> rounded = { "int8-vectors", "mlx", "nf4", "nvfp4" };
    return rounded.count(this->GetParam()) == 0;
  }

  static TransformerInput Input()
  {
    TransformerInput input;
    input.tokens = { { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 23 }, { 0, 7 } };
    return input;
  }
};

INSTANTIATE_TEST_SUITE_P(, PackedModels, testing::ValuesIn(FormatNames()),
  [](const auto& test) { return TestName(test.param); });

TEST_P(PackedModels, HaveTheWeightsOfTheDefinition)
{
  EXPECT_THAT(this->Model.GetConfig().unknownSettings, testing::IsEmpty());
  double deviation = 0;
  for (const auto& [name, expected] : this->Expected.Tensors())
  {
    SCOPED_TRACE(name);
    const TensorView& found = this->Model.GetFiles().GetTensors().at(name);
    ASSERT_NE(found.packed, nullptr);
    ASSERT_EQ(found.shape, expected.shape);
    const std::vector<double> values = found.ToDouble();
    const std::vector<double> wanted = expected.ToDouble();
    const double most = LargestOf(wanted);
    for (std::size_t i = 0; i < wanted.size(); ++i)
    {
      deviation = std::max(deviation, std::abs(values[i] - wanted[i]) / most);
      EXPECT_EQ(found.At(i), values[i]) << i;
    }
    const auto row = static_cast<std::ptrdiff_t>(values.size()) / found.shape[0];
    EXPECT_EQ(RowsOf(found, 3, 5).ToDouble(),
      std::vector<double>(values.begin() + 3 * row, values.begin() + 8 * row));
    // Parts that begin and end anywhere, also within words and rows.
    for (std::size_t begin = 0; begin < 40; begin += 3)
    {
      std::vector<float> part(std::min<std::size_t>(77, wanted.size() - begin));
      found.ToFloat(begin, begin + part.size(), part.data());
      EXPECT_TRUE(std::equal(part.begin(), part.end(), values.begin() + begin,
        [](float a, double b) { return static_cast<double>(a) == b; }))
        << begin;
    }
  }
  EXPECT_LE(deviation, this->IsExact() ? 0 : 2e-7);
  std::cout << this->GetParam() << ": weights " << deviation << "\n";
}

TEST_P(PackedModels, ComputeWhatTheirWeightsDo)
{
  const Transformer dense = this->Dense();
  const RecordOptions options = AllQuantities(2);
  const Recording found = RecordTransformer(this->Model, this->Input(), options);
  const Recording expected = RecordTransformer(dense, this->Input(), options);
  if (this->IsExact())
  {
    ExpectEqual(found, expected);
  }
  const auto count = static_cast<std::int64_t>(expected.logits.Count());
  double deviation = 0;
  for (std::int64_t i = 0; i < count; ++i)
  {
    const auto difference = found.logits.values.get()[i] - expected.logits.values.get()[i];
    deviation = std::max(deviation, static_cast<double>(std::abs(difference)));
  }
  EXPECT_LE(deviation, 2e-5);
  std::cout << this->GetParam() << ": logits " << deviation << "\n";
  GenerationOptions generation;
  generation.count = 6;
  EXPECT_EQ(GenerateTokens(this->Model, this->Input(), generation),
    GenerateTokens(dense, this->Input(), generation));
}

/// Their numbers stay as the file has them: less than half of what F32 takes.
TEST_P(PackedModels, StayInTheirSize)
{
  std::uint64_t stored = 0;
  std::uint64_t count = 0;
  for (const auto& [name, expected] : this->Expected.Tensors())
  {
    count += expected.Count();
    VisitStored(this->Model.GetFiles().GetTensors().at(name),
      [&stored](const TensorView& view) { stored += view.Bytes(); });
  }
  EXPECT_LE(stored, 2 * count);
}

/// Files with changes.
class ChangedPackedModels : public testing::Test
{
protected:
  const std::string Layer = "model.layers.0.";

  /// The message about a model whose tensor is changed; without data it is left out.
  std::string MessageAbout(const std::string& format, const std::string& tensor,
    const std::function<void(TensorView&)>& change) const
  {
    const std::filesystem::path folder = AnyOracle("v5/packed/" + format);
    const SafetensorsFile file(folder / "model.safetensors");
    TensorViews views = file.GetTensors();
    change(views.at(this->Layer + tensor));
    if (views.at(this->Layer + tensor).data == nullptr)
    {
      views.erase(this->Layer + tensor);
    }
    const TemporaryDirectory directory;
    std::filesystem::copy_file(folder / "config.json", directory / "config.json");
    WriteSafetensorViews(directory / "model.safetensors", views, {});
    return MessageOf<ModelError>([&] { Transformer::Read(directory.Path()); });
  }

  static void LeaveOut(TensorView& view) { view.data = nullptr; }
  /// One row less.
  static void Shorten(TensorView& view) { --view.shape.front(); }
  /// As many bytes of another type.
  static void Retype(TensorView& view)
  {
    view.shape = { static_cast<std::int64_t>(view.Bytes()) };
    view.dtype = DType::I8;
  }
};

TEST_F(ChangedPackedModels, AreRefusedByTheTensor)
{
  const auto leaveOut = ChangedPackedModels::LeaveOut;
  const auto shorten = ChangedPackedModels::Shorten;
  const auto retype = ChangedPackedModels::Retype;
  struct Case
  {
    std::string format;
    std::string tensor;
    std::function<void(TensorView&)> change;
    std::string message;
  };
  const std::vector<Case> cases = {
    { "fp8-block", "mlp.gate_proj.weight_scale_inv", shorten,
      "of shape [3, 2], found F32 of shape [2, 2]" },
    { "fp8-block", "mlp.gate_proj.weight", leaveOut, "expected it beside" },
    { "fp8-block", "mlp.gate_proj.weight", retype, "expected a matrix of F8_E4M3" },
    { "fp8-block", "mlp.gate_proj.weight_scale_inv", leaveOut, "expected its scale as" },
    { "fp8-rows", "self_attn.k_proj.weight_scale", shorten, "of shape [16, 1], found BF16" },
    { "gptq", "mlp.down_proj.g_idx", leaveOut, "g_idx', since desc_act is true, found none" },
    { "gptq", "mlp.down_proj.scales", leaveOut, "expected it beside" },
    { "gptq", "mlp.down_proj.scales", shorten, "of shape [4, 32], found F16 of shape [3, 32]" },
    { "gptq", "mlp.down_proj.qzeros", retype, "expected I32 of shape [4, 4], found I8" },
    { "gptq", "mlp.down_proj.g_idx", shorten, "expected I32 of shape [64], found I32 of shape" },
    { "gptq", "mlp.down_proj.qweight", retype, "expected I32 of 2 axes, found I8" },
    { "gptq", "mlp.down_proj.qweight", shorten, "expected" },
    { "awq", "mlp.down_proj.qzeros", leaveOut, "expected it beside" },
    { "awq", "mlp.down_proj.scales", shorten, "of shape [4, 32], found F16 of shape [3, 32]" },
    { "int4", "mlp.down_proj.weight_shape", leaveOut, "expected it beside" },
    { "int4", "mlp.down_proj.weight_shape", shorten, "expected [32, columns], found []" },
    { "int4", "mlp.down_proj.weight_packed", shorten, "expected [31, columns], found [32, 64]" },
    { "int4", "mlp.down_proj.weight_zero_point", shorten, "expected I32 of shape [4, 4], found" },
    { "int8", "mlp.down_proj.weight_zero_point", shorten, "expected I8 of shape [32, 1], found" },
    { "nvfp4", "mlp.down_proj.weight_global_scale", leaveOut, "expected it beside" },
    { "nvfp4", "mlp.down_proj.weight_scale", shorten, "of shape [32, 4], found F8_E4M3" },
    { "nf4", "mlp.down_proj.weight", shorten, "half a byte for each number of a matrix [32, 64]" },
    { "nf4", "mlp.down_proj.weight.absmax", shorten, "of shape [32], found F32 of shape [31]" },
    { "nf4", "mlp.gate_proj.weight.nested_absmax", shorten, "of shape [9], found F32" },
    { "nf4", "mlp.gate_proj.weight.quant_map", leaveOut, "expected it beside" },
    { "int8-vectors", "mlp.down_proj.SCB", shorten, "of shape [32], found F32 of shape [31]" },
    { "../mxfp4/a", "mlp.experts.down_proj_scales", leaveOut, "expected it beside" },
    { "../mxfp4/a", "mlp.experts.down_proj_scales", shorten,
      "expected U8 or F8_E8M0 of shape [3, 64, 2], found U8 of shape [2, 64, 2]" },
    { "../mxfp4/a", "mlp.experts.down_proj_blocks", retype, "expected U8 of 4 axes, found I8" },
    { "mlx", "mlp.down_proj.biases", leaveOut, "expected it beside" },
    { "mlx", "mlp.down_proj.scales", shorten, "of shape [32, 1], found F16 of shape [31, 1]" },
  };
  for (const Case& one : cases)
  {
    SCOPED_TRACE(one.format + " " + one.tensor);
    const std::string message = this->MessageAbout(one.format, one.tensor, one.change);
    EXPECT_THAT(message, HasSubstr("model.safetensors: tensor '" + this->Layer));
    EXPECT_THAT(message, HasSubstr(one.message));
  }
}

TEST_F(ChangedPackedModels, WithAStateThatIsNoJsonAreRefused)
{
  const SafetensorsFile file(AnyOracle("v5/packed/nf4/model.safetensors"));
  TensorViews views = file.GetTensors();
  --views.at(this->Layer + "mlp.gate_proj.weight.quant_state.bitsandbytes__nf4").shape[0];
  const TemporaryDirectory directory;
  std::filesystem::copy_file(AnyOracle("v5/packed/nf4/config.json"), directory / "config.json");
  WriteSafetensorViews(directory / "model.safetensors", views, {});
  EXPECT_THAT(MessageOf<FormatError>([&] { Transformer::Read(directory.Path()); }),
    HasSubstr("mlp.gate_proj.weight.quant_state.bitsandbytes__nf4': the state is not JSON"));
}

TEST_F(ChangedPackedModels, WithAGroupThatIsNotThereAreRefused)
{
  const std::int32_t wrong = 4;
  std::vector<std::byte> bytes;
  const std::string message = this->MessageAbout("gptq", "mlp.down_proj.g_idx",
    [&](TensorView& view)
    {
      bytes.assign(view.data, view.data + view.Bytes());
      std::memcpy(bytes.data() + 12, &wrong, sizeof(wrong));
      view.data = bytes.data();
    });
  EXPECT_THAT(message, HasSubstr("expected groups from 0 to 3, found 4"));
}

/// What a fingerprint is of includes scales, zeros and the order of columns.
TEST_F(ChangedPackedModels, HaveAnotherFingerprint)
{
  const std::filesystem::path folder = AnyOracle("v5/packed/gptq");
  const std::string original = FingerprintOf(Transformer::Read(folder), 1).weights;
  const SafetensorsFile file(folder / "model.safetensors");
  for (const char* tensor : { "qweight", "qzeros", "scales", "g_idx" })
  {
    TensorViews views = file.GetTensors();
    TensorView& view = views.at(this->Layer + "mlp.down_proj." + tensor);
    std::vector<std::byte> bytes(view.data, view.data + view.Bytes());
    std::rotate(bytes.begin(), bytes.begin() + 4, bytes.end());
    view.data = bytes.data();
    const TemporaryDirectory directory;
    std::filesystem::copy_file(folder / "config.json", directory / "config.json");
    WriteSafetensorViews(directory / "model.safetensors", views, {});
    EXPECT_NE(FingerprintOf(Transformer::Read(directory.Path()), 1).weights, original) << tensor;
  }
}

TEST_F(ChangedPackedModels, MayHaveOneZeroForAMatrix)
{
  const std::filesystem::path folder = AnyOracle("v5/packed/int8");
  const SafetensorsFile file(folder / "model.safetensors");
  const std::string name = this->Layer + "mlp.down_proj.weight";
  const float scale = 0.5F;
  const std::int8_t zero = 3;
  TensorViews views = file.GetTensors();
  const std::vector<double> codes = views.at(name).ToDouble();
  views[name + "_scale"] = { DType::F32, { 1 }, reinterpret_cast<const std::byte*>(&scale) };
  views[name + "_zero_point"] = { DType::I8, { 1 }, reinterpret_cast<const std::byte*>(&zero) };
  const TemporaryDirectory directory;
  std::filesystem::copy_file(folder / "config.json", directory / "config.json");
  WriteSafetensorViews(directory / "model.safetensors", views, {});
  const Transformer model = Transformer::Read(directory.Path());
  const TensorView& found = model.GetFiles().GetTensors().at(name);
  std::vector<double> expected = codes;
  for (double& value : expected)
  {
    value = 0.5 * (value - 3);
  }
  EXPECT_EQ(found.ToDouble(), expected);
  ASSERT_NE(found.packed, nullptr);
  EXPECT_EQ(found.packed->zeros.Bytes(), 1U);
}

/// The first files of GPTQ and AWQ have their settings in a file of their own.
TEST(PackedWeights, HaveTheirSettingsBesideTheModels)
{
  for (const auto& [format, name] : std::map<std::string, std::string>{
         { "gptq", "quantize_config.json" }, { "awq", "quant_config.json" } })
  {
    const std::filesystem::path source = AnyOracle("v5/packed/" + format);
    const TemporaryDirectory directory;
    nlohmann::json config = ParseJson(ReadFile(source / "config.json"), "config.json");
    nlohmann::json settings = config["quantization_config"];
    config.erase("quantization_config");
    settings.erase("quant_method");
    WriteBytes(directory / "config.json", config.dump());
    WriteBytes(directory / name, settings.dump());
    std::filesystem::copy_file(source / "model.safetensors", directory / "model.safetensors");
    EXPECT_EQ(FingerprintOf(Transformer::Read(directory.Path()), 1).weights,
      FingerprintOf(Transformer::Read(source), 1).weights);
    WriteBytes(directory / name, R"({"bits": 5})");
    EXPECT_THAT(MessageOf<ModelError>([&] { Transformer::Read(directory.Path()); }),
      HasSubstr(name + ": by '" + name + "' the weights are quantized by"));
  }
}

/// An adapter of rank 1 that adds 1 to all weights of a matrix.
TEST(PackedWeights, AreChangedByAdapters)
{
  const std::filesystem::path source = AnyOracle("v5/packed/nf4");
  const TemporaryDirectory directory;
  for (const char* name : { "config.json", "model.safetensors" })
  {
    std::filesystem::copy_file(source / name, directory / name);
  }
  WriteBytes(directory / "adapter_config.json", R"({"peft_type": "LORA", "task_type": "CAUSAL_LM",
    "r": 1, "lora_alpha": 1, "target_modules": ["k_proj"], "bias": "none"})");
  const std::string module = "model.layers.0.self_attn.k_proj.";
  const std::string adapted = "base_model.model." + module;
  WriteSafetensors(directory / "adapter_model.safetensors",
    { { adapted + "lora_A.weight",
        Tensor::FromDouble(DType::F32, { 1, 32 }, std::vector<double>(32, 1)) },
      { adapted + "lora_B.weight",
        Tensor::FromDouble(DType::F32, { 16, 1 }, std::vector<double>(16, 1)) } },
    {});
  const std::vector<double> found =
    Transformer::Read(directory.Path()).GetFiles().GetTensors().at(module + "weight").ToDouble();
  const std::vector<double> expected =
    OracleFile(source / "expected.safetensors").Values(module + "weight");
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
  {
    EXPECT_NEAR(found[i], expected[i] + 1, 1e-6);
  }
}

/// MLX has the matrices of experts in one tensor of each kind.
TEST(PackedWeights, OfExpertsOfMlxAreSplit)
{
  const std::filesystem::path source = AnyOracle("v5/decoder/qwen3_moe-a");
  const Transformer original = Transformer::Read(source);
  Tensors stacks;
  TensorViews views;
  for (const auto& [name, view] : original.GetFiles().GetTensors())
  {
    const std::size_t at = name.find(".experts.");
    if (at == std::string::npos)
    {
      views[name] = view;
      continue;
    }
    // The map has experts 10, 11 ... before 2; there are fewer.
    const std::size_t matrix = name.find('.', at + 9);
    Tensor& stack = stacks[name.substr(0, at) + ".switch_mlp" + name.substr(matrix)];
    ASSERT_EQ(matrix, at + 10);
    stack.dtype = view.dtype;
    stack.shape = { stack.shape.empty() ? 1 : stack.shape[0] + 1, view.shape[0], view.shape[1] };
    stack.bytes.insert(stack.bytes.end(), view.data, view.data + view.Bytes());
  }
  for (const auto& [name, stack] : stacks)
  {
    views[name] = stack.View();
  }
  const TemporaryDirectory directory;
  nlohmann::json config = ParseJson(ReadFile(source / "config.json"), "config.json");
  config["quantization"] = { { "group_size", 32 }, { "bits", 4 } };
  WriteBytes(directory / "config.json", config.dump());
  WriteSafetensorViews(directory / "model.safetensors", views, {});
  TransformerInput input;
  input.tokens = { { 3, 1, 4, 1, 5, 9 } };
  ExpectEqual(RecordTransformer(Transformer::Read(directory.Path()), input, AllQuantities()),
    RecordTransformer(original, input, AllQuantities()));
}

/// GPT-2 has its matrices by inputs, and quantized ones are by outputs.
TEST(PackedWeights, OfAnotherLayoutAreRefused)
{
  TinyTransformer tiny;
  PackedNumbers numbers;
  numbers.name = "GPTQ, 4 bits";
  numbers.rows = numbers.columns = TinyTransformer::ModelDimension;
  numbers.codes.data = tiny.tensors.at("h.0.attn.c_proj.weight").bytes.data();
  const Shape shape = { numbers.rows, numbers.columns };
  TensorViews views = ViewsOf(tiny.tensors);
  views["h.0.attn.c_proj.weight"] = ViewOf(std::move(numbers), shape);
  const TransformerConfig config = ParseTransformerConfig(TinyTransformer::Config(), "tiny");
  EXPECT_THAT(MessageOf<ModelError>([&] { Transformer(config, WeightFiles(views, "tiny")); }),
    StartsWith("tiny: tensor 'h.0.attn.c_proj.weight' is quantized by GPTQ, 4 bits"));
}

}
