#include "Base/Error.h"
#include "ErrorMessage.h"
#include "ModelOracle.h"
#include "ModelsOracle.h"
#include "ParityRow.h"
#include "PartParity.h"
#include "Run/RecordTransformer.h"
#include "WholeRuns.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;

namespace
{

/// A model of Testing/Oracle/models, or of those beside this repository.
struct Case
{
  /// The folder alone names most models.
  Case(std::string model, std::string values = "expected.safetensors", std::string part = "",
    std::string kind = "safetensors", std::string type = "F32")
    : folder(std::move(model))
    , expected(std::move(values))
    , architecture(std::move(part))
    , file(std::move(kind))
    , dtype(std::move(type))
  {
  }

  std::string folder;   ///< of transformers; or a file of weights below `models`
  std::string expected; ///< in the folder; or a file below `models`
  std::string architecture;
  std::string file;
  std::string dtype;

  bool IsFile() const { return this->folder.find('/') != std::string::npos; }
  std::filesystem::path Model() const
  {
    return ModelsOracle(this->IsFile() ? this->folder : "transformers/" + this->folder);
  }
  std::filesystem::path Values() const
  {
    return this->IsFile() ? ModelsOracle(this->expected) : this->Model() / this->expected;
  }
  std::string Name() const { return std::filesystem::path(this->folder).stem().string(); }
  friend void PrintTo(const Case& one, std::ostream* stream) { *stream << one.folder; }
};

const std::string Text = "expected-text.safetensors";
const std::string Vision = "expected-vision.safetensors";

/// Models by their folders. A missing one fails.
const std::vector<std::string> Shipped = { "deepseek_v2", "deepseek_v2-lite", "deit", "dinov2",
  "dinov2-size", "dinov2-registers-size", "dinov2-registers-larger", "distilbert", "gemma2",
  "gemma3-v5", "gpt_neox", "gpt_oss", "gptj", "mixtral", "olmo", "olmoe", "opt-proj",
  "phi3-longrope", "qwen2-tied", "qwen2_moe", "qwen3_moe", "qwen3-v5", "roberta" };

/// Those whose values are too large for this repository: compared where they lie beside it.
const std::vector<std::string> Beside = { "clip-text", "clip-vision", "gemma", "gemma3", "gpt_neo",
  "gpt_neox-seq", "llama-linear", "llama-yarn", "llama3", "mistral", "mistral-window", "opt", "phi",
  "phi3", "qwen2", "qwen3", "roberta-mlm", "stablelm" };

Case Torch(const std::string& name, const std::string& values, const std::string& file,
  const std::string& dtype = "F32")
{
  return { "files/pt/" + name, "files/pt/" + values + ".forward.safetensors", "", file, dtype };
}

Case Gguf(const std::string& name, const std::string& dtype)
{
  return { "files/gguf/" + name + ".gguf", "files/gguf/" + name + ".expected.safetensors", "",
    "GGUF", dtype };
}

/// A model that llama.cpp's script converted; the others of TestGgufModel lose settings by that.
Case Converted(const std::string& name)
{
  return { "files/gguf/conversions/" + name + ".gguf",
    "transformers/" + name + "/expected.safetensors", "", "GGUF, converted", "F32" };
}

std::vector<Case> MakeCases()
{
  std::vector<Case> cases = { { "clip", Text, "clip_text_model" },
    { "clip", Vision, "clip_vision_model" }, Torch("gpt2-zip.pt", "gpt2", "PyTorch, zip"),
    Torch("gpt2-torch2.pt", "gpt2", "PyTorch 2, zip"),
    Torch("gpt2-legacy.pt", "gpt2", "PyTorch, pickles"),
    Torch("gpt2-lightning.ckpt", "gpt2", "Lightning"),
    Torch("gpt2-half.bin", "gpt2-half", "PyTorch, zip", "F16"), Gguf("llama-q8_0", "Q8_0"),
    Converted("gpt_neox"), Converted("olmo"), Converted("phi3-longrope"), Converted("roberta") };
  std::vector<Case> beside = { Torch("gpt2-bfloat16.bin", "gpt2-bfloat16", "PyTorch, zip", "BF16"),
    Gguf("llama-f32", "F32"), Gguf("llama-f16", "F16"), Gguf("llama-bf16", "BF16"),
    Gguf("llama-q4_0", "Q4_0"), Gguf("llama-mixed", "mixed"), Gguf("llama-ropefreqs", "F32"),
    Gguf("llama-q4_k_m", "Q4_K, Q6_K"), Gguf("llama-q6_k", "Q6_K"), Gguf("qwen2-q8_0", "Q8_0") };
  cases.insert(cases.end(), Shipped.begin(), Shipped.end());
  beside.insert(beside.end(), Beside.begin(), Beside.end());
  std::copy_if(beside.begin(), beside.end(), std::back_inserter(cases),
    [](const Case& one) { return !one.Model().empty() && std::filesystem::exists(one.Values()); });
  return cases;
}

std::string NameOf(const testing::TestParamInfo<Case>& info)
{
  std::string name = info.param.Name();
  name += info.param.expected == Text     ? "_text_part"
          : info.param.expected == Vision ? "_vision_part"
                                          : "";
  name += info.param.IsFile() ? "_" + info.param.file : "";
  std::replace_if(
    name.begin(), name.end(), [](char c) { return c == '-' || c == ' ' || c == ','; }, '_');
  return name;
}

class ModelParity : public testing::TestWithParam<Case>
{
protected:
  ModelParity()
  {
    this->Options.headOutputs = true;
    this->Options.residual = true;
    this->Options.logits = this->Model.HasLogits();
    this->Options.routing = this->Model.GetConfig().experts > 0;
    this->Found = RecordTransformer(this->Model, this->Expected.Input(), this->Options);
  }

  PartParity Parity() const
  {
    const ExpectedPlaces places = PlacesOf(this->Found, this->Expected.Places());
    return { this->Found, this->Expected.Tensors(), "", places, places };
  }

  /// The experts of a layer are those of the original code, in the same order.
  void ExpectChosen(std::size_t l) const
  {
    const TensorView& view = this->Expected.Get("layer." + std::to_string(l) + ".experts");
    const std::vector<std::int64_t> expected = view.ToInteger();
    const SharedMatrix& found = this->Found.layers[l].routing.chosen;
    ASSERT_EQ(found.columns, view.shape[2]);
    for (const ExpectedPlace& place : this->Parity().queries)
    {
      for (std::int64_t k = 0; k < found.columns; ++k)
      {
        const std::int64_t first = (place.batch * view.shape[1] + place.token) * found.columns;
        EXPECT_EQ(found.Row(place.row)[k], static_cast<float>(expected[first + k]))
          << "layer " << l;
      }
    }
  }

  /// What a layer adds to the residual stream at row `row`, without its heads and output bias: the
  /// output of its MLP. Not for the last layer, after which there is a normalization.
  std::vector<double> MlpOutput(std::size_t l, std::int64_t row) const
  {
    std::vector<double> output = this->AfterAttention(l, row);
    for (std::size_t i = 0; i < output.size(); ++i)
    {
      output[i] = static_cast<double>(this->Found.residual[l + 1].Row(row)[i]) - output[i];
    }
    return output;
  }

  /// The residual stream between the attention and the MLP of a layer.
  std::vector<double> AfterAttention(std::size_t l, std::int64_t row) const
  {
    const SharedMatrix& before = this->Found.residual[l];
    const TensorView& bias = this->Model.GetWeights().layers[l].output.bias;
    std::vector<double> stream(before.Row(row), before.Row(row) + before.columns);
    for (std::size_t i = 0; i < stream.size(); ++i)
    {
      stream[i] += bias.data != nullptr ? bias.At(i) : 0;
      for (const RecordedHead& head : this->Found.layers[l].heads)
      {
        stream[i] += static_cast<double>(head.output.Row(row)[i]);
      }
    }
    return stream;
  }

  /// For large scores the tolerance is in proportion: single precision has as many digits for all.
  double ScoreScale() const
  {
    double largest = 0;
    for (std::size_t l = 0; l < this->Found.layers.size(); ++l)
    {
      for (const double score :
        this->Expected.Get("layer." + std::to_string(l) + ".scores").ToDouble())
      {
        largest = std::max(largest, std::abs(score));
      }
    }
    return std::max(1.0, largest / 16);
  }

  ModelOracle Expected{ GetParam().Values() };
  Transformer Model = Transformer::Read(GetParam().Model(), GetParam().architecture);
  RecordOptions Options;
  Recording Found;
};

INSTANTIATE_TEST_SUITE_P(, ModelParity, testing::ValuesIn(MakeCases()), NameOf);

TEST_P(ModelParity, IsThatOfTheOriginalCode)
{
  CheckRecording(this->Found, "recording");
  const TransformerConfig& config = this->Model.GetConfig();
  ASSERT_EQ(this->Found.layers.size(), static_cast<std::size_t>(config.layers));
  const PartParity parity = this->Parity();
  std::map<std::string, double> deviations = parity.Deviations();
  for (const char* name : { "query", "key", "attention", "hidden" })
  {
    EXPECT_EQ(deviations.count(name), 1U) << name;
  }
  for (std::size_t l = 0; l < this->Found.layers.size(); ++l)
  {
    const std::string name = "layer." + std::to_string(l) + ".expert_weights";
    if (parity.Has(name))
    {
      this->ExpectChosen(l);
      Raise(deviations["experts"],
        parity.Deviation(name, this->Found.layers[l].routing.weights, parity.queries));
    }
  }
  EXPECT_EQ(this->Found.logits.IsRecorded(), parity.Has("logits"));
  if (this->Found.logits.IsRecorded())
  {
    deviations["logits"] = parity.Deviation("logits", this->Found.logits, parity.queries);
  }
  const Case& one = this->GetParam();
  ExpectSmall(one.folder, deviations, parity.Has("layer.0.scores") ? this->ScoreScale() : 1);
  Write(NameOf({ one, 0 }), { one.Name(), one.architecture, one.file, one.dtype, deviations });
}

TEST_P(ModelParity, ProductsOfBfloat16AreNear)
{
  const Case& one = this->GetParam();
  const bool isOtherFile = one.IsFile() || one.architecture != ""; // of the same architecture
  if (!isOtherFile)
  {
    CompareBfloat16(one.Name(), this->Model, this->Expected.Input(), this->Options, this->Found);
  }
}

TEST_P(ModelParity, LayersWithoutExpertsHaveNoRouting)
{
  const TransformerConfig& config = this->Model.GetConfig();
  for (std::size_t l = 0; l < this->Found.layers.size(); ++l)
  {
    const RecordedRouting& routing = this->Found.layers[l].routing;
    const bool expected = this->Expected.Has("layer." + std::to_string(l) + ".experts") ||
                          config.architecture == "gpt_oss";
    EXPECT_EQ(routing.chosen.IsRecorded(), expected);
    EXPECT_EQ(routing.weights.IsRecorded(), expected);
    EXPECT_EQ(routing.experts, expected ? config.experts : 0);
  }
}

/// Shared experts, limits and plain MLPs included.
TEST_P(ModelParity, WhatAnMlpAddsIsThatOfTheOriginalCode)
{
  double largest = 0;
  const bool isKnown = this->Expected.Has("layer.0.mlp_output");
  for (std::size_t l = 0; isKnown && l + 1 < this->Found.layers.size(); ++l)
  {
    const TensorView& view = this->Expected.Get("layer." + std::to_string(l) + ".mlp_output");
    for (const ExpectedPlace& place : this->Parity().queries)
    {
      const std::vector<double> found = this->MlpOutput(l, place.row);
      const std::int64_t first = (place.batch * view.shape[1] + place.token) * view.shape[2];
      for (std::size_t i = 0; i < found.size(); ++i)
      {
        Raise(largest, found[i] - view.At(static_cast<std::uint64_t>(first) + i));
      }
    }
  }
  std::cout << this->GetParam().folder << ": mlp " << largest << "\n";
  EXPECT_LE(largest, Tolerance);
}

/// gpt-oss, whose original values have no routing: the router of its paper, in double precision, on
/// the recorded stream between attention and MLP.
TEST_P(ModelParity, ExpertsAreThoseOfTheLargestScores)
{
  const TransformerConfig& config = this->Model.GetConfig();
  const bool isGptOss = config.architecture == "gpt_oss";
  for (std::size_t l = 0; isGptOss && l < this->Found.layers.size(); ++l)
  {
    const LayerTensors& tensors = this->Model.GetWeights().layers[l];
    const RecordedRouting& routing = this->Found.layers[l].routing;
    for (std::int64_t row = 0; row < routing.chosen.rows; ++row)
    {
      const std::vector<double> x = this->AfterAttention(l, row);
      const double squares = std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
      const double scale = 1 / std::sqrt(squares / static_cast<double>(x.size()) + config.epsilon);
      std::vector<std::pair<double, std::int64_t>> scores; // less, expert
      for (std::int64_t e = 0; e < config.experts; ++e)
      {
        double score = tensors.experts.router.bias.At(static_cast<std::uint64_t>(e));
        for (std::size_t i = 0; i < x.size(); ++i)
        {
          const std::size_t weight = static_cast<std::size_t>(e) * x.size() + i;
          score +=
            tensors.experts.router.weight.At(weight) * x[i] * scale * tensors.mlpNorm.gain.At(i);
        }
        scores.emplace_back(-score, e);
      }
      std::sort(scores.begin(), scores.end());
      double sum = 0;
      for (std::int64_t k = 0; k < config.expertsPerToken; ++k)
      {
        sum += std::exp(-scores[k].first);
      }
      for (std::int64_t k = 0; k < config.expertsPerToken; ++k)
      {
        EXPECT_EQ(routing.chosen.Row(row)[k], static_cast<float>(scores[k].second));
        EXPECT_NEAR(routing.weights.Row(row)[k], std::exp(-scores[k].first) / sum, Tolerance);
      }
    }
  }
}

TEST_P(ModelParity, TheDescriptionIsThatOfTheOriginalCode)
{
  EXPECT_EQ(
    this->Found.mask == AttentionMask::Causal ? "causal" : "none", this->Expected.Text("mask"));
  const nlohmann::json windows = nlohmann::json::parse(this->Expected.Text("window"));
  const nlohmann::json scales = nlohmann::json::parse(this->Expected.Text("score_scale"));
  ASSERT_EQ(windows.size(), this->Found.layers.size());
  for (std::size_t l = 0; l < windows.size(); ++l)
  {
    const RecordedLayer& layer = this->Found.layers[l];
    EXPECT_EQ(layer.window, windows[l].get<std::int64_t>());
    EXPECT_NEAR(layer.scoreScale, scales[l].get<double>(), 1e-12);
    EXPECT_EQ(layer.scoreCap, std::stod(this->Expected.Text("softcap")));
    EXPECT_EQ(layer.sinks.empty(), this->Expected.Text("sinks") == "no");
    for (std::size_t h = 0; h < layer.sinks.size(); ++h)
    {
      EXPECT_EQ(static_cast<double>(layer.sinks[h]),
        this->Expected.Get("layer." + std::to_string(l) + ".sinks").At(h));
    }
  }
}

TEST_P(ModelParity, BytesDoNotDependOnTheOtherSequencesOrThreads)
{
  ExpectSameAlone(this->Model, this->Expected.Input(), this->Options, this->Found);
}

TEST(ModelParityOfAll, OneEncoderOfClipMustBeChosen)
{
  EXPECT_THAT(atlas::test::MessageOf<ModelError>(
                [] { Transformer::Read(ModelsOracle("transformers/clip")); }),
    HasSubstr("choose the architecture clip_text_model or clip_vision_model"));
}

}
