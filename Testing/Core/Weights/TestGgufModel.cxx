#include "GgufModel.h"

#include "Error.h"
#include "ErrorMessage.h"
#include "GgufBytes.h"
#include "ModelsOracle.h"
#include "Oracle.h"
#include "RecordTransformer.h"
#include "RecordedAttention.h"
#include "Safetensors.h"
#include "TemporaryDirectory.h"
#include "Transformer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::FloatBytes;
using atlas::test::GgufBytes;
using atlas::test::MessageOf;
using atlas::test::ModelsOracle;
using atlas::test::TemporaryDirectory;
using atlas::test::TinyGguf;
using atlas::test::WriteBytes;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

namespace
{

/// A model, and what the original code of Hugging Face computed with its dequantized weights
/// (Testing/Oracle/models/README.md).
class GgufOracle : public testing::TestWithParam<std::string>
{
protected:
  void SetUp() override
  {
    const std::string name = "files/gguf/" + GetParam();
    this->Path = ModelsOracle(name + ".gguf");
    const std::filesystem::path expected = ModelsOracle(name + ".expected.safetensors");
    if (this->Path.empty() || expected.empty())
    {
      GTEST_SKIP() << "its files are not there";
    }
    this->Expected.emplace(expected);
  }

  const TensorView& Get(const std::string& quantity) const
  {
    return this->Expected->GetTensors().at(quantity);
  }

  TransformerInput Input() const
  {
    TransformerInput input;
    const TensorView& view = this->Get("input_ids");
    const std::vector<std::int64_t> ids = view.ToInteger();
    for (std::int64_t s = 0; s < view.shape[0]; ++s)
    {
      const auto begin = ids.begin() + s * view.shape[1];
      input.tokens.emplace_back(begin, begin + view.shape[1]);
    }
    return input;
  }

  /// The largest deviation of numbers from those of a quantity, from element `begin` on.
  double Deviation(
    const std::string& quantity, const float* found, std::int64_t count, std::int64_t begin) const
  {
    std::vector<float> expected(static_cast<std::size_t>(count));
    this->Get(quantity).ToFloat(static_cast<std::uint64_t>(begin),
      static_cast<std::uint64_t>(begin + count), expected.data());
    double largest = 0;
    for (std::size_t i = 0; i < expected.size(); ++i)
    {
      const double difference =
        std::abs(static_cast<double>(found[i]) - static_cast<double>(expected[i]));
      largest = std::isnan(difference) ? std::numeric_limits<double>::infinity()
                                       : std::max(largest, difference);
    }
    return largest;
  }

  /// The same of all rows of a quantity [sequences, heads, T, columns], for one head.
  double RowDeviation(const std::string& quantity, const SharedMatrix& matrix, std::int64_t heads,
    std::int64_t head) const
  {
    const Shape& shape = this->Get(quantity).shape;
    const std::int64_t size = shape[shape.size() - 2] * shape.back();
    double largest = 0;
    for (std::int64_t s = 0; s < shape[0]; ++s)
    {
      largest = std::max(largest, this->Deviation(quantity, matrix.Row(s * shape[shape.size() - 2]),
                                    size, (s * heads + head) * size));
    }
    return largest;
  }

  std::filesystem::path Path;
  std::optional<SafetensorsFile> Expected;
};

INSTANTIATE_TEST_SUITE_P(, GgufOracle,
  testing::Values("llama-f32", "llama-f16", "llama-bf16", "llama-q8_0", "llama-q4_0", "llama-mixed",
    "llama-ropefreqs", "llama-q4_k_m", "llama-q6_k", "qwen2-q8_0"),
  atlas::test::OracleTest::Name);

TEST_P(GgufOracle, ComputesWhatTheOriginalCodeDoes)
{
  const Transformer model = Transformer::Read(this->Path);
  RecordOptions options;
  options.residual = true;
  options.logits = true;
  const Recording recording = RecordTransformer(model, this->Input(), options).value();
  const std::int64_t heads = model.GetConfig().heads;
  const std::int64_t length = this->Get("input_ids").shape[1];
  double largest = 0;
  for (std::int64_t l = 0; l < model.GetConfig().layers; ++l)
  {
    const std::string layer = "layer." + std::to_string(l) + ".";
    for (std::int64_t h = 0; h < heads; ++h)
    {
      const RecordedHead& head =
        recording.layers[static_cast<std::size_t>(l)].heads[static_cast<std::size_t>(h)];
      EXPECT_LE(this->RowDeviation(layer + "query", head.query, heads, h), 2e-5) << l << " " << h;
      EXPECT_LE(this->RowDeviation(layer + "key", head.key, heads, h), 2e-5) << l << " " << h;
      for (std::int64_t s = 0; s < recording.SequenceCount(); ++s)
      {
        std::vector<float> found(static_cast<std::size_t>(length * length));
        EvaluateAttention(recording, s, l, h, AttentionQuantity::Weights, 0, length, found.data());
        largest = std::max(largest, this->Deviation(layer + "attention", found.data(),
                                      length * length, (s * heads + h) * length * length));
      }
    }
  }
  EXPECT_LE(largest, 2e-5);
  RecordProperty("attention", testing::PrintToString(largest));
  for (std::size_t l = 0; l < recording.residual.size(); ++l)
  {
    const std::string name = "hidden." + std::to_string(l);
    EXPECT_LE(this->RowDeviation(name, recording.residual[l], 1, 0), 2e-4) << name;
  }
  const double logits = this->RowDeviation("logits", recording.logits, 1, 0);
  EXPECT_LE(logits, 2e-4);
  RecordProperty("logits", testing::PrintToString(logits));
}

/// A model from a file in a folder of its own.
class GgufModel : public testing::Test
{
protected:
  Transformer Read(const GgufBytes& bytes) const
  {
    WriteBytes(this->Path, bytes.File());
    return Transformer::Read(this->Path);
  }

  template<class ErrorType = ModelError>
  std::string Refusal(const GgufBytes& bytes) const
  {
    return MessageOf<ErrorType>([&] { this->Read(bytes); });
  }

  TemporaryDirectory Folder;
  std::filesystem::path Path = this->Folder / "tiny.gguf";
};

TEST_F(GgufModel, ConfigurationIsInTheFile)
{
  const TransformerConfig config = this->Read(TinyGguf()).GetConfig();
  EXPECT_EQ(config.architecture, "llama");
  EXPECT_EQ(config.layers, 1);
  EXPECT_EQ(config.heads, 2);
  EXPECT_EQ(config.keyHeads, 1);
  EXPECT_EQ(config.headDimension, 4);
  EXPECT_EQ(config.modelDimension, 8);
  EXPECT_EQ(config.mlpDimension, 6);
  EXPECT_EQ(config.vocabulary, 5);
  EXPECT_EQ(config.positions, 32);
  EXPECT_EQ(config.rotaryBase, 1000);
  EXPECT_NEAR(config.epsilon, 1e-5, 1e-12);
  EXPECT_TRUE(config.tiedUnembedding);
  EXPECT_FALSE(config.inputBias);
}

TEST_F(GgufModel, IsFoundByItsFolder)
{
  WriteBytes(this->Path, TinyGguf().File());
  EXPECT_EQ(Transformer::Read(this->Folder.Path()).GetConfig().layers, 1);
  EXPECT_EQ(FindGguf(this->Folder.Path()), this->Path);
  EXPECT_EQ(FindGguf(this->Path), this->Path);
  EXPECT_EQ(FindGguf(this->Folder / "config.json"), "");
  std::filesystem::copy(this->Path, this->Folder / "other.gguf");
  EXPECT_THAT(MessageOf<FileError>([&] { Transformer::Read(this->Folder.Path()); }),
    HasSubstr("expected a single GGUF file, found 2, such as other.gguf and tiny.gguf"));
  WriteBytes(this->Folder / "config.json", "{}");
  EXPECT_EQ(FindGguf(this->Folder.Path()), "");
}

TEST_F(GgufModel, TensorsHaveTheNamesOfHuggingFace)
{
  const Transformer model = this->Read(TinyGguf());
  const TensorViews& tensors = model.GetFiles().GetTensors();
  EXPECT_EQ(tensors.size(), 11U);
  EXPECT_EQ(tensors.at("model.embed_tokens.weight").shape, (Shape{ 5, 8 }));
  EXPECT_EQ(tensors.at("model.layers.0.self_attn.q_proj.weight").interleavedRows, 4);
  EXPECT_EQ(tensors.at("model.layers.0.self_attn.k_proj.weight").interleavedRows, 4);
  EXPECT_EQ(tensors.at("model.layers.0.self_attn.v_proj.weight").interleavedRows, 0);
  EXPECT_EQ(model.GetFiles().FileOf("model.norm.weight"), this->Path.string());
  EXPECT_EQ(model.GetFiles().Stamps().size(), 1U);
}

TEST_F(GgufModel, FrequenciesAreDivided)
{
  const std::vector<float> plain = RotaryFrequencies(this->Read(TinyGguf()).GetConfig());
  GgufBytes divided = TinyGguf();
  divided.AddTensor("rope_freqs.weight", { 2 }, 0, FloatBytes({ 1, 4 }));
  const std::vector<float> frequencies = RotaryFrequencies(this->Read(divided).GetConfig());
  ASSERT_EQ(frequencies.size(), 2U);
  EXPECT_FLOAT_EQ(frequencies[0], plain[0]);
  EXPECT_FLOAT_EQ(frequencies[1], plain[1] / 4);
  for (const std::vector<float>& bad : { std::vector<float>{ 1 }, { 1, 0 }, { 1, NAN } })
  {
    GgufBytes bytes = TinyGguf();
    bytes.AddTensor(
      "rope_freqs.weight", { static_cast<std::int64_t>(bad.size()) }, 0, FloatBytes(bad));
    EXPECT_THAT(this->Refusal(bytes), HasSubstr("tensor 'rope_freqs.weight': expected "));
  }
}

TEST_F(GgufModel, OtherModelsAreRefusedByName)
{
  EXPECT_THAT(this->Refusal(TinyGguf("mamba")),
    AllOf(StartsWith(this->Path.string() + ": "),
      HasSubstr(
        "expected a model of one of the architectures llama, qwen2, qwen3, found 'mamba'")));
  const auto refusal = [&](const std::function<void(GgufBytes&)>& change)
  {
    GgufBytes bytes = TinyGguf();
    change(bytes);
    return this->Refusal(bytes);
  };
  EXPECT_THAT(refusal([](GgufBytes& bytes) { bytes.AddInteger("llama.expert_count", 8); }),
    HasSubstr("found a mixture of experts"));
  EXPECT_THAT(refusal([](GgufBytes& bytes) { bytes.AddInteger("llama.rope.dimension_count", 2); }),
    HasSubstr("expected a rotary embedding of all 4 components of a head, found one of 2"));
  EXPECT_THAT(
    refusal([](GgufBytes& bytes) { bytes.AddInteger("llama.attention.value_length", 2); }),
    HasSubstr("found 4 and 2"));
  EXPECT_THAT(refusal([](GgufBytes& bytes) { bytes.AddFloats("blk.0.attn_q_norm.weight", { 4 }); }),
    HasSubstr("q_norm.weight'"));
  EXPECT_THAT(
    refusal([](GgufBytes& bytes) { bytes.AddFloats("blk.0.attn_rot_embd.weight", { 4 }); }),
    HasSubstr("tensor 'model.layers.0.attn_rot_embd.weight'"));
  EXPECT_THAT(refusal([](GgufBytes& bytes) { bytes.AddFloats("rope_factors_long.weight", { 2 }); }),
    HasSubstr("tensor 'rope_factors_long.weight': expected no rotary factors"));
  EXPECT_THAT(refusal([](GgufBytes& bytes) { bytes.AddFloats("model.norm.weight", { 8 }); }),
    HasSubstr("expected one tensor of this purpose"));
  GgufBytes empty;
  EXPECT_THAT(this->Refusal<FormatError>(empty), HasSubstr("'general.architecture'"));
  empty.AddText("general.architecture", "llama");
  EXPECT_THAT(this->Refusal<FormatError>(empty), HasSubstr("'llama."));
}

/// The names of llama.cpp, by the ends of those of Hugging Face.
std::string NameOfLlamaCpp(const std::string& name)
{
  const std::vector<std::pair<std::string, std::string>> parts = { { "model.layers.", "blk." },
    { "model.embed_tokens.", "token_embd." }, { "model.norm.", "output_norm." },
    { "lm_head.", "output." }, { "input_layernorm.", "attn_norm." },
    { "post_attention_layernorm.", "ffn_norm." }, { "self_attn.q_proj.", "attn_q." },
    { "self_attn.k_proj.", "attn_k." }, { "self_attn.v_proj.", "attn_v." },
    { "self_attn.o_proj.", "attn_output." }, { "self_attn.q_norm.", "attn_q_norm." },
    { "self_attn.k_norm.", "attn_k_norm." }, { "mlp.gate_proj.", "ffn_gate." },
    { "mlp.up_proj.", "ffn_up." }, { "mlp.down_proj.", "ffn_down." } };
  std::string result = name;
  for (const auto& [from, to] : parts)
  {
    const std::size_t place = result.find(from);
    if (place != std::string::npos)
    {
      result.replace(place, from.size(), to);
    }
  }
  return result;
}

/// The rows of each head as llama.cpp orders them: row i of the first half, then row i of the
/// second, for all i.
std::vector<float> Interleaved(
  const std::vector<float>& values, std::int64_t rows, std::int64_t dimension)
{
  const std::int64_t columns = static_cast<std::int64_t>(values.size()) / rows;
  std::vector<float> result;
  for (std::int64_t head = 0; head < rows; head += dimension)
  {
    for (std::int64_t i = 0; i < dimension / 2; ++i)
    {
      for (const std::int64_t row : { head + i, head + i + dimension / 2 })
      {
        const auto begin = values.begin() + row * columns;
        result.insert(result.end(), begin, begin + columns);
      }
    }
  }
  return result;
}

/// A model of Hugging Face as llama.cpp converts it, in single precision.
GgufBytes Converted(const std::string& architecture, const Transformer& model)
{
  const TransformerConfig& config = model.GetConfig();
  GgufBytes bytes;
  bytes.AddText("general.architecture", architecture);
  const auto add = [&](const char* key, std::int64_t number)
  { bytes.AddInteger(architecture + "." + key, static_cast<std::uint32_t>(number)); };
  add("block_count", config.layers);
  add("context_length", config.positions);
  add("embedding_length", config.modelDimension);
  add("feed_forward_length", config.mlpDimension);
  add("attention.head_count", config.heads);
  add("attention.head_count_kv", config.keyHeads);
  add("attention.key_length", config.headDimension);
  add("attention.value_length", config.headDimension);
  bytes.AddNumber(
    architecture + ".attention.layer_norm_rms_epsilon", static_cast<float>(config.epsilon));
  bytes.AddNumber(architecture + ".rope.freq_base", static_cast<float>(config.rotaryBase));
  for (const auto& [name, view] : model.GetFiles().GetTensors())
  {
    std::vector<float> values(view.Count());
    view.ToFloat(0, values.size(), values.data());
    const std::string translated = NameOfLlamaCpp(name);
    if (architecture == "llama" && (translated.find("attn_q.") != std::string::npos ||
                                     translated.find("attn_k.") != std::string::npos))
    {
      values = Interleaved(values, view.shape[0], config.headDimension);
    }
    bytes.AddTensor(translated, view.shape, 0, FloatBytes(values));
  }
  return bytes;
}

/// Expects a model and its conversion to give the same numbers.
void ExpectSame(const Transformer& expected, const Transformer& found)
{
  TransformerInput input;
  input.tokens = { { 3, 1, 4, 1, 5, 9, 2, 6 } };
  RecordOptions options;
  options.logits = true;
  const Recording a = RecordTransformer(expected, input, options).value();
  const Recording b = RecordTransformer(found, input, options).value();
  const auto expectClose = [](const SharedMatrix& x, const SharedMatrix& y)
  {
    ASSERT_EQ(x.Count(), y.Count());
    for (std::uint64_t i = 0; i < x.Count(); ++i)
    {
      ASSERT_NEAR(x.Row(0)[i], y.Row(0)[i], 1e-5) << i; // its epsilon is rounded
    }
  };
  expectClose(a.logits, b.logits);
  for (std::size_t l = 0; l < a.layers.size(); ++l)
  {
    for (std::size_t h = 0; h < a.layers[l].heads.size(); ++h)
    {
      expectClose(a.layers[l].heads[h].query, b.layers[l].heads[h].query);
      expectClose(a.layers[l].heads[h].key, b.layers[l].heads[h].key);
    }
  }
}

TEST_F(GgufModel, ConversionsComputeWhatTheModelsDo)
{
  const std::filesystem::path llama =
    std::filesystem::path(ATLAS_ORACLE_DIR) / "transformers" / "llama";
  for (const auto& [architecture, folder] :
    { std::pair<std::string, std::filesystem::path>("llama", llama),
      { "qwen2", ModelsOracle("transformers/qwen2") },
      { "qwen3", ModelsOracle("transformers/qwen3") } })
  {
    if (!folder.empty())
    {
      SCOPED_TRACE(architecture);
      const Transformer model = Transformer::Read(folder);
      ExpectSame(model, this->Read(Converted(architecture, model)));
    }
  }
}

}
