#include "Error.h"
#include "ErrorMessage.h"
#include "ModelOracle.h"
#include "ModelsOracle.h"
#include "ParityRow.h"
#include "RecordTransformer.h"
#include "RecordedAttention.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::HasSubstr;

namespace
{

constexpr double Tolerance = 2e-5;       ///< of scores, attention and head outputs
constexpr double StreamTolerance = 2e-4; ///< of hidden states and logits

/// A model of Testing/Oracle/models, or of those beside this repository.
struct Case
{
  std::string folder; ///< of transformers; or a file of weights below `models`
  std::string expected = "expected.safetensors"; ///< in the folder; or a file below `models`
  std::string architecture = "";
  bool isShipped = false; ///< part of this repository
  std::string file = "safetensors";
  std::string dtype = "F32";

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

Case Torch(const std::string& name, const std::string& values, const std::string& file,
  const std::string& dtype = "F32")
{
  return { "files/pt/" + name, "files/pt/" + values + ".forward.safetensors", "",
    dtype == "F32" || dtype == "F16", file, dtype };
}

Case Gguf(const std::string& name, const std::string& dtype, bool isShipped = false)
{
  return { "files/gguf/" + name + ".gguf", "files/gguf/" + name + ".expected.safetensors", "",
    isShipped, "GGUF", dtype };
}

/// A model that llama.cpp's script converted; the others of TestGgufModel lose settings by that.
Case Converted(const std::string& name)
{
  return { "files/gguf/conversions/" + name + ".gguf",
    "transformers/" + name + "/expected.safetensors", "", true, "GGUF, converted", "F32" };
}

const std::vector<Case> Cases = { { "clip", Text, "clip_text_model", true },
  { "clip", Vision, "clip_vision_model", true }, { "clip-text" }, { "clip-vision" },
  { "deepseek_v2", "expected.safetensors", "", true },
  { "deepseek_v2-lite", "expected.safetensors", "", true },
  { "deit", "expected.safetensors", "", true }, { "dinov2", "expected.safetensors", "", true },
  { "dinov2-size", "expected.safetensors", "", true },
  { "dinov2-registers-size", "expected.safetensors", "", true },
  { "dinov2-registers-larger", "expected.safetensors", "", true },
  { "distilbert", "expected.safetensors", "", true }, { "gemma" },
  { "gemma2", "expected.safetensors", "", true }, { "gemma3" },
  { "gemma3-v5", "expected.safetensors", "", true }, { "gpt_neo" },
  { "gpt_neox", "expected.safetensors", "", true }, { "gpt_neox-seq" },
  { "gpt_oss", "expected.safetensors", "", true }, { "gptj", "expected.safetensors", "", true },
  { "llama-linear" }, { "llama-yarn" }, { "llama3" }, { "mistral" }, { "mistral-window" },
  { "mixtral", "expected.safetensors", "", true }, { "olmo", "expected.safetensors", "", true },
  { "olmoe", "expected.safetensors", "", true }, { "opt" },
  { "opt-proj", "expected.safetensors", "", true }, { "phi" }, { "phi3" },
  { "phi3-longrope", "expected.safetensors", "", true }, { "qwen2" },
  { "qwen2-tied", "expected.safetensors", "", true },
  { "qwen2_moe", "expected.safetensors", "", true }, { "qwen3" },
  { "qwen3_moe", "expected.safetensors", "", true },
  { "qwen3-v5", "expected.safetensors", "", true }, { "roberta", "expected.safetensors", "", true },
  { "roberta-mlm" }, { "stablelm" }, Torch("gpt2-zip.pt", "gpt2", "PyTorch, zip"),
  Torch("gpt2-torch2.pt", "gpt2", "PyTorch 2, zip"),
  Torch("gpt2-legacy.pt", "gpt2", "PyTorch, pickles"),
  Torch("gpt2-lightning.ckpt", "gpt2", "Lightning"),
  Torch("gpt2-half.bin", "gpt2-half", "PyTorch, zip", "F16"),
  Torch("gpt2-bfloat16.bin", "gpt2-bfloat16", "PyTorch, zip", "BF16"), Gguf("llama-f32", "F32"),
  Gguf("llama-f16", "F16"), Gguf("llama-bf16", "BF16"), Gguf("llama-q8_0", "Q8_0", true),
  Gguf("llama-q4_0", "Q4_0"), Gguf("llama-mixed", "mixed"), Gguf("llama-ropefreqs", "F32"),
  Gguf("llama-q4_k_m", "Q4_K, Q6_K"), Gguf("llama-q6_k", "Q6_K"), Gguf("qwen2-q8_0", "Q8_0"),
  Converted("gpt_neox"), Converted("olmo"), Converted("phi3-longrope"), Converted("roberta") };

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
  void SetUp() override
  {
    const std::filesystem::path path = this->GetParam().Model();
    const std::filesystem::path values = this->GetParam().Values();
    if (path.empty() || !std::filesystem::exists(values))
    {
      ASSERT_FALSE(this->GetParam().isShipped) << "not found";
      GTEST_SKIP() << "not part of this repository, and not beside it";
    }
    this->Expected.emplace(values);
    this->Model.emplace(Transformer::Read(path, this->GetParam().architecture));
    this->Options.headOutputs = true;
    this->Options.residual = true;
    this->Options.logits = this->Model->HasLogits();
    this->Options.routing = this->Model->GetConfig().experts > 0;
    this->Found = RecordTransformer(*this->Model, this->Expected->Input(), this->Options);
  }

  /// The largest deviation of a matrix [tokens, columns] from the expected [B, H, T, columns] at
  /// head `head`, or [B, T, columns].
  double Deviation(const std::string& quantity, const SharedMatrix& found, std::int64_t head) const
  {
    const TensorView& view = this->Expected->Get(quantity);
    const Shape& shape = view.shape;
    EXPECT_EQ(shape.back(), found.columns) << quantity;
    const std::int64_t heads = shape.size() == 4 ? shape[1] : 1;
    const std::int64_t length = shape[shape.size() - 2];
    double largest = 0;
    for (std::int64_t s = 0; s < this->Found.SequenceCount(); ++s)
    {
      std::int64_t row = this->Found.sequenceOffsets[s];
      for (const std::int64_t place : this->Expected->Places(s))
      {
        const std::int64_t first = ((s * heads + head) * length + place) * found.columns;
        for (std::int64_t c = 0; c < found.columns; ++c)
        {
          Raise(largest, static_cast<double>(found.Row(row)[c]) -
                           view.At(static_cast<std::uint64_t>(first + c)));
        }
        ++row;
      }
    }
    return largest;
  }

  /// The experts of a layer are those of the original code, in the same order.
  void ExpectChosen(std::size_t l) const
  {
    const TensorView& view = this->Expected->Get("layer." + std::to_string(l) + ".experts");
    const std::vector<std::int64_t> expected = view.ToInteger();
    const SharedMatrix& found = this->Found.layers[l].routing.chosen;
    ASSERT_EQ(found.columns, view.shape[2]);
    std::int64_t row = 0;
    for (std::int64_t s = 0; s < this->Found.SequenceCount(); ++s)
    {
      for (const std::int64_t place : this->Expected->Places(s))
      {
        for (std::int64_t k = 0; k < found.columns; ++k)
        {
          const std::int64_t expert = expected[(s * view.shape[1] + place) * found.columns + k];
          EXPECT_EQ(found.Row(row)[k], static_cast<float>(expert)) << "layer " << l;
        }
        ++row;
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
    const TensorView& bias = this->Model->GetWeights().layers[l].output.bias;
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

  /// Likewise of the scores or weights that views show, at the pairs that the mask and the window
  /// allow, and of weights at all pairs.
  double AttentionDeviation(std::size_t l, std::int64_t h, AttentionQuantity quantity) const
  {
    const bool isScores = quantity == AttentionQuantity::Scores;
    const TensorView& view =
      this->Expected->Get("layer." + std::to_string(l) + (isScores ? ".scores" : ".attention"));
    const std::int64_t length = view.shape[3];
    const std::int64_t window = this->Found.layers[l].window;
    double largest = 0;
    for (std::int64_t s = 0; s < this->Found.SequenceCount(); ++s)
    {
      const std::vector<std::int64_t> places = this->Expected->Places(s);
      const std::int64_t count = places.size();
      std::vector<float> found(count * count);
      EvaluateAttention(
        this->Found, s, static_cast<std::int64_t>(l), h, quantity, 0, count, found.data());
      for (std::int64_t q = 0; q < count; ++q)
      {
        for (std::int64_t k = 0; k < count; ++k)
        {
          const bool isMasked =
            this->Found.mask == AttentionMask::Causal && (k > q || (window > 0 && k <= q - window));
          const std::int64_t first = (s * view.shape[1] + h) * length * length;
          const std::int64_t place = places[q] * length + places[k];
          if (!isScores || !isMasked)
          {
            Raise(largest, static_cast<double>(found[q * count + k]) -
                             view.At(static_cast<std::uint64_t>(first + place)));
          }
        }
      }
    }
    return largest;
  }

  /// For large scores the tolerance is in proportion: single precision has as many digits for all.
  double ScoreScale() const
  {
    double largest = 0;
    for (std::size_t l = 0; l < this->Found.layers.size(); ++l)
    {
      for (const double score :
        this->Expected->Get("layer." + std::to_string(l) + ".scores").ToDouble())
      {
        largest = std::max(largest, std::abs(score));
      }
    }
    return std::max(1.0, largest / 16);
  }

  std::optional<ModelOracle> Expected;
  std::optional<Transformer> Model;
  RecordOptions Options;
  Recording Found;

  static void Raise(double& largest, double difference)
  {
    // Not with std::max, which would lose NaN.
    largest = std::abs(difference) <= largest ? largest : std::abs(difference);
  }
};

INSTANTIATE_TEST_SUITE_P(, ModelParity, testing::ValuesIn(Cases), NameOf);

TEST_P(ModelParity, IsThatOfTheOriginalCode)
{
  CheckRecording(this->Found, "recording");
  const TransformerConfig& config = this->Model->GetConfig();
  std::map<std::string, double> deviations;
  const auto raise = [&](const std::string& name, double value) { Raise(deviations[name], value); };
  const auto has = [&](const std::string& name) { return this->Expected->Has("layer.0." + name); };
  ASSERT_EQ(this->Found.layers.size(), static_cast<std::size_t>(config.layers));
  for (std::size_t l = 0; l < this->Found.layers.size(); ++l)
  {
    const RecordedLayer& layer = this->Found.layers[l];
    const std::string prefix = "layer." + std::to_string(l) + ".";
    for (std::int64_t h = 0; h < config.heads; ++h)
    {
      const RecordedHead& head = layer.heads[h];
      raise("query", this->Deviation(prefix + "query", head.query, h));
      raise("key", this->Deviation(prefix + "key", head.key, h));
      if (has("value"))
      {
        raise("value", this->Deviation(prefix + "value", head.value, h));
      }
      if (has("head_output"))
      {
        raise("outputs", this->Deviation(prefix + "head_output", head.output, h));
      }
      if (has("scores"))
      {
        raise("scores", this->AttentionDeviation(l, h, AttentionQuantity::Scores));
      }
      raise("attention", this->AttentionDeviation(l, h, AttentionQuantity::Weights));
    }
  }
  for (std::size_t l = 0; l < this->Found.layers.size(); ++l)
  {
    const std::string name = "layer." + std::to_string(l) + ".expert_weights";
    if (this->Expected->Has(name))
    {
      this->ExpectChosen(l);
      raise("experts", this->Deviation(name, this->Found.layers[l].routing.weights, 0));
    }
  }
  const std::size_t last = this->Found.residual.size() - 1;
  for (std::size_t l = 0; l <= last; ++l)
  {
    // OPT's last hidden state is projected, so it has other columns; its logits are compared.
    if (l < last || config.embeddingDimension == 0)
    {
      raise("hidden", this->Deviation("hidden." + std::to_string(l), this->Found.residual[l], 0));
    }
  }
  EXPECT_EQ(this->Found.logits.IsRecorded(), this->Expected->Has("logits"));
  if (this->Found.logits.IsRecorded())
  {
    raise("logits", this->Deviation("logits", this->Found.logits, 0));
  }
  std::ostringstream text;
  for (const auto& [name, deviation] : deviations)
  {
    const bool isStream = name == "hidden" || name == "logits";
    const double scale = name == "scores" ? this->ScoreScale() : 1;
    EXPECT_LE(deviation, isStream ? StreamTolerance : scale * Tolerance) << name;
    text << " " << name << " " << deviation;
  }
  std::cout << this->GetParam().folder << ":" << text.str() << "\n";
  const Case& one = this->GetParam();
  Write(NameOf({ one, 0 }), { one.Name(), one.architecture, one.file, one.dtype, deviations });
}

TEST_P(ModelParity, ProductsOfBfloat16AreNear)
{
  const Case& one = this->GetParam();
  if (one.IsFile() || one.architecture != "")
  {
    GTEST_SKIP() << "another file of the same architecture";
  }
  CompareBfloat16(one.Name(), *this->Model, this->Expected->Input(), this->Options, this->Found);
}

TEST_P(ModelParity, LayersWithoutExpertsHaveNoRouting)
{
  const TransformerConfig& config = this->Model->GetConfig();
  for (std::size_t l = 0; l < this->Found.layers.size(); ++l)
  {
    const RecordedRouting& routing = this->Found.layers[l].routing;
    const bool expected = this->Expected->Has("layer." + std::to_string(l) + ".experts") ||
                          config.architecture == "gpt_oss";
    EXPECT_EQ(routing.chosen.IsRecorded(), expected);
    EXPECT_EQ(routing.weights.IsRecorded(), expected);
    EXPECT_EQ(routing.experts, expected ? config.experts : 0);
  }
}

/// Shared experts, limits and plain MLPs included.
TEST_P(ModelParity, WhatAnMlpAddsIsThatOfTheOriginalCode)
{
  if (!this->Expected->Has("layer.0.mlp_output"))
  {
    GTEST_SKIP() << "the original values have no such quantity";
  }
  double largest = 0;
  for (std::size_t l = 0; l + 1 < this->Found.layers.size(); ++l)
  {
    const TensorView& view = this->Expected->Get("layer." + std::to_string(l) + ".mlp_output");
    std::int64_t row = 0;
    for (std::int64_t s = 0; s < this->Found.SequenceCount(); ++s)
    {
      for (const std::int64_t place : this->Expected->Places(s))
      {
        const std::vector<double> found = this->MlpOutput(l, row);
        for (std::size_t i = 0; i < found.size(); ++i)
        {
          const std::int64_t first = (s * view.shape[1] + place) * view.shape[2];
          Raise(largest, found[i] - view.At(static_cast<std::uint64_t>(first) + i));
        }
        ++row;
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
  const TransformerConfig& config = this->Model->GetConfig();
  if (config.architecture != "gpt_oss")
  {
    GTEST_SKIP() << "only gpt-oss";
  }
  for (std::size_t l = 0; l < this->Found.layers.size(); ++l)
  {
    const LayerTensors& tensors = this->Model->GetWeights().layers[l];
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

/// A JSON list of numbers.
std::vector<double> ListOf(std::string text)
{
  std::replace_if(
    text.begin(), text.end(), [](char c) { return c == '[' || c == ']' || c == ','; }, ' ');
  std::istringstream stream(text);
  std::vector<double> numbers;
  for (double number = 0; stream >> number;)
  {
    numbers.push_back(number);
  }
  return numbers;
}

TEST_P(ModelParity, TheDescriptionIsThatOfTheOriginalCode)
{
  EXPECT_EQ(
    this->Found.mask == AttentionMask::Causal ? "causal" : "none", this->Expected->Text("mask"));
  const std::vector<double> windows = ListOf(this->Expected->Text("window"));
  const std::vector<double> scales = ListOf(this->Expected->Text("score_scale"));
  ASSERT_EQ(windows.size(), this->Found.layers.size());
  for (std::size_t l = 0; l < windows.size(); ++l)
  {
    const RecordedLayer& layer = this->Found.layers[l];
    EXPECT_EQ(static_cast<double>(layer.window), windows[l]);
    EXPECT_NEAR(layer.scoreScale, scales[l], 1e-12);
    EXPECT_EQ(layer.scoreCap, std::stod(this->Expected->Text("softcap")));
    EXPECT_EQ(layer.sinks.empty(), this->Expected->Text("sinks") == "no");
    for (std::size_t h = 0; h < layer.sinks.size(); ++h)
    {
      EXPECT_EQ(static_cast<double>(layer.sinks[h]),
        this->Expected->Get("layer." + std::to_string(l) + ".sinks").At(h));
    }
  }
}

/// With one sequence alone, and on other numbers of threads.
TEST_P(ModelParity, BytesDoNotDependOnTheOtherSequencesOrThreads)
{
  const TransformerInput input = this->Expected->Input();
  if (input.images > 0)
  {
    GTEST_SKIP() << "images have equal lengths";
  }
  RecordOptions options;
  options.headOutputs = true;
  options.residual = true;
  options.threads = 1;
  TransformerInput one;
  one.tokens = { input.tokens.back() };
  const Recording alone = RecordTransformer(*this->Model, one, options);
  const std::int64_t first =
    this->Found.sequenceOffsets[static_cast<std::size_t>(this->Found.SequenceCount()) - 1];
  const SharedMatrix& expected = this->Found.residual.back();
  const SharedMatrix& found = alone.residual.back();
  EXPECT_TRUE(std::equal(
    found.Row(0), found.Row(found.rows), expected.Row(first), expected.Row(expected.rows)));
}

TEST(ModelParityOfAll, TheModelsOfThisRepositoryAreThere)
{
  const auto shipped = std::count_if(Cases.begin(), Cases.end(),
    [](const Case& one) { return one.isShipped && !one.Model().empty(); });
  EXPECT_EQ(shipped, 35);
}

TEST(ModelParityOfAll, OneEncoderOfClipMustBeChosen)
{
  EXPECT_THAT(atlas::test::MessageOf<ModelError>(
                [] { Transformer::Read(ModelsOracle("transformers/clip")); }),
    HasSubstr("choose the architecture clip_text_model or clip_vision_model"));
}

}
