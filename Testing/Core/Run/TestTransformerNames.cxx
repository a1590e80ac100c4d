// The same weights under other names, in other layouts, folded or with a separate head must give
// the results of the original code.

#include "ModelsOracle.h"
#include "TemporaryDirectory.h"
#include "TransformerOracle.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::IsEmpty;

namespace
{

constexpr double HeadTolerance = 1e-4;
constexpr double HiddenTolerance = 5e-4;
constexpr std::int64_t HeadCount = 4;
constexpr std::int64_t Dimension = 8; ///< of a head
constexpr std::int64_t ModelDimension = 32;

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// A tensor in double, to calculate with; a vector is a column.
Matrix MatrixOf(const Tensor& tensor)
{
  const std::vector<double> values = tensor.View().ToDouble();
  return Eigen::Map<const Matrix>(
    values.data(), tensor.shape.front(), tensor.shape.size() > 1 ? tensor.shape.back() : 1);
}

Tensor Store(const Matrix& matrix, const Shape& shape)
{
  return Tensor::FromDouble(DType::F32, shape, { matrix.data(), matrix.data() + matrix.size() });
}
Tensor Store(const Matrix& matrix)
{
  return Store(matrix, { matrix.rows(), matrix.cols() });
}

/// [heads, d_model, d_head] of [d_model, heads d_head].
Tensor SplitHeads(const Matrix& matrix, std::int64_t heads)
{
  std::vector<double> values;
  for (std::int64_t h = 0; h < heads; ++h)
  {
    const Matrix head = matrix.middleCols(h * Dimension, Dimension);
    values.insert(values.end(), head.data(), head.data() + head.size());
  }
  return Tensor::FromDouble(DType::F32, { heads, matrix.rows(), Dimension }, values);
}

/// Multiplies the rows of `weight` by `gain`, and adds shift * weight to `bias`: both then read
/// what is normalized without gain and shift (design/transformers.md F.4).
void Fold(Matrix& weight, Matrix& bias, const Tensor& gain, const Tensor& shift)
{
  bias += weight.transpose() * MatrixOf(shift);
  weight = MatrixOf(gain).col(0).asDiagonal() * weight;
}

class TransformerNames : public testing::Test
{
protected:
  /// Loads an oracle and its tensors under their own names.
  void Load(const std::string& name)
  {
    this->Expected.emplace(name);
    const SafetensorsFile file(this->Expected->Path() / "model.safetensors");
    this->Old = CopyTensors(file.GetTensors());
    this->Config = atlas::test::ReadBytes(this->Expected->Path() / "config.json");
  }

  const Tensor& Get(const std::string& name) const { return this->Old.at(name); }
  Matrix Transposed(const std::string& name) const { return MatrixOf(this->Get(name)).transpose(); }

  using Names = std::vector<std::pair<std::string, std::string>>;

  /// Gives tensors other names behind other prefixes.
  void Rename(const std::string& from, const std::string& to, const Names& names)
  {
    for (const auto& [old, name] : names)
    {
      this->New[to + name] = this->Get(from + old);
    }
  }

  /// Likewise matrices, which are transposed.
  void Transpose(const std::string& from, const std::string& to, const Names& names)
  {
    for (const auto& [old, name] : names)
    {
      this->New[to + name] = Store(this->Transposed(from + old));
    }
  }

  Transformer Make() const
  {
    return { ParseTransformerConfig(this->Config, "config"),
      WeightFiles(ViewsOf(this->New), "tensors") };
  }

  /// Runs the model of the new tensors, all of which it must use. The last residual is compared
  /// unless it is normalized without gain and shift.
  void ExpectSame(bool lastResidual = true) const
  {
    const Transformer model = this->Make();
    EXPECT_THAT(model.GetWeights().unused, IsEmpty());
    RecordOptions options;
    options.residual = true;
    options.logits = this->Expected->Has("logits");
    const Recording recording = RecordTransformer(model, this->Expected->Input(), options);
    for (const RecordedLayer& layer : recording.layers)
    {
      const std::string prefix = "layer." + std::to_string(layer.index) + ".";
      for (std::int64_t h = 0; h < HeadCount; ++h)
      {
        const RecordedHead& head = layer.heads[h];
        ExpectRows(*this->Expected, recording, prefix + "query", h, head.query, HeadTolerance);
        ExpectRows(*this->Expected, recording, prefix + "key", h, head.key, HeadTolerance);
        ExpectRows(*this->Expected, recording, prefix + "value", h, head.value, HeadTolerance);
      }
    }
    for (std::size_t l = 0; l < (lastResidual ? 3 : 2); ++l)
    {
      ExpectRows(*this->Expected, recording, "hidden." + std::to_string(l), 0,
        recording.residual[l], HiddenTolerance);
    }
    if (options.logits)
    {
      ExpectRows(*this->Expected, recording, "logits", 0, recording.logits, HiddenTolerance);
    }
  }

  /// GPT-2 as TransformerLens stores it, its normalizations folded or not.
  void MakeLensGpt2(bool folded)
  {
    this->Load("gpt2");
    this->Rename(
      "transformer.", "", { { "wte.weight", "embed.W_E" }, { "wpe.weight", "pos_embed.W_pos" } });
    for (const std::string l : { "0", "1" })
    {
      this->MakeLensGpt2Layer("transformer.h." + l + ".", "blocks." + l + ".", folded);
    }
    Matrix unembedding = this->Transposed("transformer.wte.weight");
    Matrix bias = Matrix::Zero(unembedding.cols(), 1);
    if (folded)
    {
      Fold(unembedding, bias, this->Get("transformer.ln_f.weight"),
        this->Get("transformer.ln_f.bias"));
    }
    else
    {
      this->Rename("transformer.ln_f.", "ln_final.", { { "weight", "w" }, { "bias", "b" } });
    }
    this->New["unembed.W_U"] = Store(unembedding);
    this->New["unembed.b_U"] = Store(bias, { bias.rows() });
  }

  void MakeLensGpt2Layer(const std::string& from, const std::string& to, bool folded)
  {
    Matrix fused = MatrixOf(this->Get(from + "attn.c_attn.weight"));
    Matrix fusedBias = MatrixOf(this->Get(from + "attn.c_attn.bias"));
    Matrix up = MatrixOf(this->Get(from + "mlp.c_fc.weight"));
    Matrix upBias = MatrixOf(this->Get(from + "mlp.c_fc.bias"));
    if (folded)
    {
      Fold(fused, fusedBias, this->Get(from + "ln_1.weight"), this->Get(from + "ln_1.bias"));
      Fold(up, upBias, this->Get(from + "ln_2.weight"), this->Get(from + "ln_2.bias"));
    }
    else
    {
      this->Rename(from, to,
        { { "ln_1.weight", "ln1.w" }, { "ln_1.bias", "ln1.b" }, { "ln_2.weight", "ln2.w" },
          { "ln_2.bias", "ln2.b" } });
    }
    std::int64_t first = 0;
    for (const std::string kind : { "Q", "K", "V" })
    {
      this->New[to + "attn.W_" + kind] =
        SplitHeads(fused.middleCols(first, ModelDimension), HeadCount);
      this->New[to + "attn.b_" + kind] =
        Store(fusedBias.middleRows(first, ModelDimension), { HeadCount, Dimension });
      first += ModelDimension;
    }
    this->New[to + "attn.W_O"] = Store(
      MatrixOf(this->Get(from + "attn.c_proj.weight")), { HeadCount, Dimension, ModelDimension });
    this->New[to + "mlp.W_in"] = Store(up);
    this->New[to + "mlp.b_in"] = Store(upBias, { upBias.rows() });
    this->Rename(from, to,
      { { "attn.c_proj.bias", "attn.b_O" }, { "mlp.c_proj.weight", "mlp.W_out" },
        { "mlp.c_proj.bias", "mlp.b_out" } });
    // Buffers.
    this->New[to + "attn.mask"] = { DType::BOOL, { 1 }, { std::byte{ 1 } } };
    this->New[to + "attn.IGNORE"] = Tensor::FromDouble(DType::F32, {}, { 0 });
  }

  std::optional<TransformerOracle> Expected;
  std::string Config;
  Tensors Old;
  Tensors New;
};

constexpr const char* LensConfig =
  R"({"model_type": "transformer_lens", "n_layers": 2, "n_heads": 4,
  "d_model": 32, "d_head": 8, "d_mlp": 128, "d_vocab": 211, "n_ctx": 64, "act_fn": "gelu_new",
  "eps": 1e-05, "normalization_type": )";

TEST_F(TransformerNames, Gpt2OfTransformerLens)
{
  this->MakeLensGpt2(false);
  EXPECT_EQ(this->Make().GetWeights().processing, WeightProcessing::Unknown);
  this->ExpectSame();
  this->Config = LensConfig + std::string("\"LN\"}");
  this->ExpectSame(false);
}

TEST_F(TransformerNames, Gpt2OfTransformerLensWithFoldedNorms)
{
  this->MakeLensGpt2(true);
  EXPECT_EQ(this->Make().GetWeights().processing, WeightProcessing::Processed);
  this->ExpectSame(false);
  this->Config = LensConfig + std::string("\"LNPre\"}");
  this->ExpectSame(false);
}

TEST_F(TransformerNames, LlamaOfTransformerLensWithGroupedKeys)
{
  this->Load("llama");
  this->Rename(
    "model.", "", { { "embed_tokens.weight", "embed.W_E" }, { "norm.weight", "ln_final.w" } });
  this->Transpose("", "", { { "lm_head.weight", "unembed.W_U" } });
  for (const std::string l : { "0", "1" })
  {
    const std::string from = "model.layers." + l + ".";
    const std::string to = "blocks." + l + ".";
    this->Rename(from, to,
      { { "input_layernorm.weight", "ln1.w" }, { "post_attention_layernorm.weight", "ln2.w" } });
    this->New[to + "attn.W_Q"] =
      SplitHeads(this->Transposed(from + "self_attn.q_proj.weight"), HeadCount);
    this->New[to + "attn._W_K"] =
      SplitHeads(this->Transposed(from + "self_attn.k_proj.weight"), HeadCount / 2);
    this->New[to + "attn._W_V"] =
      SplitHeads(this->Transposed(from + "self_attn.v_proj.weight"), HeadCount / 2);
    this->New[to + "attn.W_O"] = Store(
      this->Transposed(from + "self_attn.o_proj.weight"), { HeadCount, Dimension, ModelDimension });
    this->Transpose(from + "mlp.", to + "mlp.",
      { { "gate_proj.weight", "W_gate" }, { "up_proj.weight", "W_in" },
        { "down_proj.weight", "W_out" } });
  }
  this->ExpectSame();
}

TEST_F(TransformerNames, BertWithPrefixAndItsFirstNamesOfNorms)
{
  this->Load("bert");
  for (const auto& [name, tensor] : this->Old)
  {
    std::string changed = "bert." + name;
    for (const auto& [end, old] :
      { std::pair<std::string, std::string>("LayerNorm.weight", "gamma"),
        std::pair<std::string, std::string>("LayerNorm.bias", "beta") })
    {
      const std::size_t at = changed.rfind(end);
      if (at != std::string::npos)
      {
        changed = changed.substr(0, at) + "LayerNorm." + old;
      }
    }
    if (name.rfind("pooler", 0) != 0)
    {
      this->New[changed] = tensor;
    }
  }
  this->New["bert.embeddings.position_ids"] = Tensor::FromInteger({ 1 }, { 0 });
  this->ExpectSame();
}

TEST_F(TransformerNames, BertOfTransformerLens)
{
  this->Load("bert");
  this->Rename("embeddings.", "embed.",
    { { "word_embeddings.weight", "embed.W_E" },
      { "position_embeddings.weight", "pos_embed.W_pos" },
      { "token_type_embeddings.weight", "token_type_embed.W_token_type" },
      { "LayerNorm.weight", "ln.w" }, { "LayerNorm.bias", "ln.b" } });
  for (const std::string l : { "0", "1" })
  {
    const std::string from = "encoder.layer." + l + ".";
    const std::string to = "blocks." + l + ".";
    for (const auto& [kind, name] :
      { std::pair("Q", "query"), std::pair("K", "key"), std::pair("V", "value") })
    {
      const std::string old = from + "attention.self." + name;
      this->New[to + "attn.W_" + kind] = SplitHeads(this->Transposed(old + ".weight"), HeadCount);
      this->New[to + "attn.b_" + kind] =
        Store(MatrixOf(this->Get(old + ".bias")), { HeadCount, Dimension });
    }
    const std::string output = from + "attention.output.";
    this->New[to + "attn.W_O"] =
      Store(this->Transposed(output + "dense.weight"), { HeadCount, Dimension, ModelDimension });
    this->Rename(output, to,
      { { "dense.bias", "attn.b_O" }, { "LayerNorm.weight", "ln1.w" },
        { "LayerNorm.bias", "ln1.b" } });
    this->Transpose(from, to,
      { { "intermediate.dense.weight", "mlp.W_in" }, { "output.dense.weight", "mlp.W_out" } });
    this->Rename(from, to,
      { { "intermediate.dense.bias", "mlp.b_in" }, { "output.dense.bias", "mlp.b_out" },
        { "output.LayerNorm.weight", "ln2.w" }, { "output.LayerNorm.bias", "ln2.b" } });
  }
  this->ExpectSame();
}

/// The logits of masked words, calculated here in double from the hidden states of the original
/// code.
TEST_F(TransformerNames, BertPredictsMaskedWords)
{
  this->Load("bert");
  this->New = this->Old;
  std::mt19937 generator(5);
  const auto add = [&](const std::string& name, std::int64_t rows, std::int64_t columns = 1)
  {
    const Matrix values = Matrix::NullaryExpr(
      rows, columns, [&] { return static_cast<float>(generator() % 257) / 256 - 0.5F; });
    const Shape shape = columns == 1 ? Shape{ rows } : Shape{ rows, columns };
    this->New["cls.predictions." + name] = Store(values, shape);
    return values;
  };
  const Matrix transform = add("transform.dense.weight", ModelDimension, ModelDimension);
  const Matrix transformBias = add("transform.dense.bias", ModelDimension);
  const Matrix gain = add("transform.LayerNorm.weight", ModelDimension);
  const Matrix shift = add("transform.LayerNorm.bias", ModelDimension);
  const Matrix bias = add("bias", 199);
  const Matrix words = MatrixOf(this->Get("embeddings.word_embeddings.weight"));

  // The first sequence, which has no padding; a column is a token.
  const std::vector<double> hidden = this->Expected->Values("hidden.2", 0);
  const auto length = static_cast<Eigen::Index>(hidden.size()) / ModelDimension;
  Matrix x =
    transform * Eigen::Map<const Matrix>(hidden.data(), length, ModelDimension).transpose();
  x.colwise() += transformBias.col(0);
  x = x.unaryExpr([](double v) { return v / 2 * std::erfc(-v / std::sqrt(2.0)); });
  x.rowwise() -= x.colwise().mean().eval();
  x.array().rowwise() /= (x.array().square().colwise().mean() + 1e-12).sqrt().eval();
  x = gain.col(0).asDiagonal() * x;
  x.colwise() += shift.col(0);
  Matrix logits = (words * x).transpose();
  logits.rowwise() += bias.col(0).transpose();
  const Transformer model = this->Make();
  RecordOptions options;
  options.logits = true;
  const Recording recording = RecordTransformer(model, this->Expected->Input(), options);
  ExpectClose("logits", Rows(recording.logits, 0, recording.SequenceLength(0)),
    { logits.data(), logits.data() + logits.size() }, HiddenTolerance);
}

TEST_F(TransformerNames, ThePrefixMayBeThereOrNot)
{
  for (const auto& [name, prefix] : { std::pair<std::string, std::string>("llama", "model."),
         std::pair<std::string, std::string>("bloom", "transformer.") })
  {
    this->Load(name);
    this->New.clear();
    for (const auto& [tensorName, tensor] : this->Old)
    {
      const bool hasPrefix = tensorName.rfind(prefix, 0) == 0;
      this->New[hasPrefix ? tensorName.substr(prefix.size()) : tensorName] = tensor;
    }
    this->ExpectSame();
  }
  this->Load("vit");
  this->New.clear();
  for (const auto& [name, tensor] : this->Old)
  {
    if (name.rfind("pooler", 0) != 0)
    {
      this->New["vit." + name] = tensor;
    }
  }
  this->ExpectSame();
}

/// The name that TransformerBridge gives a tensor, by the component mappings of its adapters.
std::string BridgeNameOf(std::string name)
{
  const std::vector<std::pair<std::string, std::string>> parts = { { "transformer.wte.", "embed." },
    { "transformer.wpe.", "pos_embed." }, { "transformer.ln_f.", "ln_final." },
    { "transformer.h.", "blocks." }, { ".ln_1.", ".ln1." }, { ".ln_2.", ".ln2." },
    { ".attn.c_attn.", ".attn.qkv." }, { ".attn.c_proj.", ".attn.o." },
    { ".mlp.c_fc.", ".mlp.in." }, { ".mlp.c_proj.", ".mlp.out." },
    { "gpt_neox.embed_in.", "embed." }, { "gpt_neox.layers.", "blocks." },
    { "gpt_neox.final_layer_norm.", "ln_final." }, { "embed_out.", "unembed." },
    { ".attention.query_key_value.", ".attn.qkv." }, { ".attention.dense.", ".attn.o." },
    { ".mlp.dense_h_to_4h.", ".mlp.in." }, { ".mlp.dense_4h_to_h.", ".mlp.out." },
    { "model.embed_tokens.", "embed." }, { "model.layers.", "blocks." },
    { "model.norm.", "ln_final." }, { "lm_head.", "unembed." },
    { ".self_attn.q_proj.", ".attn.q." }, { ".self_attn.k_proj.", ".attn.k." },
    { ".self_attn.v_proj.", ".attn.v." }, { ".self_attn.o_proj.", ".attn.o." },
    { ".mlp.gate_proj.", ".mlp.gate." }, { ".mlp.up_proj.", ".mlp.in." },
    { ".mlp.down_proj.", ".mlp.out." }, { ".input_layernorm.", ".ln1." },
    { ".pre_feedforward_layernorm.", ".ln2." }, { ".post_feedforward_layernorm.", ".ln2_post." } };
  for (const auto& [from, to] : parts)
  {
    const std::size_t found = name.find(from);
    if (found != std::string::npos)
    {
      name.replace(found, from.size(), to);
    }
  }
  return name;
}

/// The tensors of a model as TransformerBridge names and keeps them.
Tensors BridgeTensors(const Transformer& model)
{
  Tensors renamed;
  for (const auto& [tensor, view] : model.GetFiles().GetTensors())
  {
    // The norm after attention in Gemma 2 has the name of that before the MLP in Llama.
    const std::string after = ".post_attention_layernorm.";
    std::string name = BridgeNameOf(tensor);
    const std::size_t found = name.find(after);
    if (found != std::string::npos)
    {
      name.replace(found, after.size(),
        model.GetConfig().normPlace == NormPlace::BeforeAndAfter ? ".ln1_post." : ".ln2.");
    }
    renamed[name] = { view.dtype, view.shape, { view.data, view.data + view.Bytes() } };
    if (name.find(".attn.qkv.weight") != std::string::npos)
    {
      std::string part = name; // split from it, and kept as well
      part.replace(part.find("qkv"), 3, "q");
      renamed[part] = renamed[name];
    }
  }
  return renamed;
}

TEST(BridgeNames, AreReadAsThoseOfHuggingFace)
{
  for (const std::string name : { "gpt2", "llama", "gpt_neox", "gemma2", "qwen2-tied" })
  {
    std::filesystem::path folder = TransformerOracle::Folder(name);
    if (!std::filesystem::exists(folder))
    {
      folder = atlas::test::ModelsOracle("transformers/" + name);
    }
    const Transformer model = Transformer::Read(folder);
    const Tensors tensors = BridgeTensors(model);
    EXPECT_EQ(tensors.count("blocks.0.attn.o.weight"), 1U) << name;
    const Transformer bridge(model.GetConfig(), WeightFiles(ViewsOf(tensors), "bridge"));
    TransformerInput input;
    input.tokens = { { 3, 1, 4, 1, 5, 9, 2, 6 } };
    RecordOptions options;
    options.logits = true;
    const SharedMatrix expected = RecordTransformer(model, input, options).logits;
    const SharedMatrix found = RecordTransformer(bridge, input, options).logits;
    EXPECT_TRUE(
      std::equal(found.Row(0), found.Row(found.rows), expected.Row(0), expected.Row(expected.rows)))
      << name;
  }
}

}
