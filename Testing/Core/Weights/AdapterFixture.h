#pragma once

#include "Base/Error.h"
#include "Files/Safetensors.h"
#include "Refusals.h"
#include "TemporaryDirectory.h"
#include "TinyTransformer.h"
#include "TransformerOracle.h"
#include "Weights/Adapter.h"
#include "Weights/Transformer.h"

#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <gtest/gtest.h>

namespace atlas::test
{

/// A small model with an adapter in one folder, or in two.
class Adapter : public testing::Test
{
protected:
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  /// Rows with these lengths, a column.
  static Matrix WithLengths(const Matrix& w, const Matrix& lengths)
  {
    return lengths.col(0).cwiseQuotient(w.rowwise().norm()).asDiagonal() * w;
  }

  TemporaryDirectory Folder;
  Tensors Base;
  Tensors Changes;
  std::string Config;                                                       ///< of the model
  std::string Settings = R"("peft_type": "LORA", "r": 2, "lora_alpha": 6)"; ///< of the adapter
  Metadata About; ///< the metadata of the base's file

  const std::string Query = "model.layers.0.self_attn.q_proj";
  const std::string Gate = "model.layers.1.mlp.gate_proj";
  const std::string Embedding = "model.embed_tokens";

  /// A Llama of two layers.
  void MakeLlama(bool isTied = false)
  {
    this->Config = R"({"model_type": "llama", "hidden_size": 8, "num_attention_heads": 2,
      "num_key_value_heads": 1, "num_hidden_layers": 2, "intermediate_size": 6, "vocab_size": 5,
      "rms_norm_eps": 1e-5, "max_position_embeddings": 16, "tie_word_embeddings": )" +
                   std::string(isTied ? "true}" : "false}");
    this->Add(this->Base, "model.embed_tokens.weight", { 5, 8 });
    if (!isTied)
    {
      this->Add(this->Base, "lm_head.weight", { 5, 8 });
    }
    for (const std::string layer : { "model.layers.0.", "model.layers.1." })
    {
      for (const char* norm : { "input_layernorm.weight", "post_attention_layernorm.weight" })
      {
        this->Add(this->Base, layer + norm, { 8 });
      }
      this->Add(this->Base, layer + "self_attn.q_proj.weight", { 8, 8 });
      this->Add(this->Base, layer + "self_attn.k_proj.weight", { 4, 8 });
      this->Add(this->Base, layer + "self_attn.v_proj.weight", { 4, 8 });
      this->Add(this->Base, layer + "self_attn.o_proj.weight", { 8, 8 });
      this->Add(this->Base, layer + "mlp.gate_proj.weight", { 6, 8 });
      this->Add(this->Base, layer + "mlp.up_proj.weight", { 6, 8 });
      this->Add(this->Base, layer + "mlp.down_proj.weight", { 8, 6 });
    }
    this->Add(this->Base, "model.norm.weight", { 8 });
  }

  /// Likewise with an adapter of its first queries.
  void MakeChangedLlama()
  {
    this->MakeLlama();
    this->ChangeMatrix(this->Query, 8, 8);
  }

  void MakeGpt2()
  {
    this->Config = TinyTransformer::Config();
    this->Base = TinyTransformer().tensors;
  }

  void Add(Tensors& tensors, const std::string& name, const Shape& shape)
  {
    std::vector<double> values(ElementCount(shape).value());
    for (double& value : values)
    {
      value = static_cast<double>(this->Generator() % 2001) / 1000 - 1;
    }
    tensors[name] = Tensor::FromDouble(DType::F32, shape, values);
  }

  /// A tensor of the adapter, with the prefix that peft gives all.
  void Change(const std::string& name, const Shape& shape)
  {
    this->Add(this->Changes, "base_model.model." + name, shape);
  }

  void ChangeMatrix(
    const std::string& module, std::int64_t outputs, std::int64_t inputs, std::int64_t r = 2)
  {
    this->Change(module + ".lora_A.weight", { r, inputs });
    this->Change(module + ".lora_B.weight", { outputs, r });
  }

  void Set(const std::string& more) { this->Settings += ", " + more; }

  void WriteBase(const std::filesystem::path& folder) const
  {
    std::filesystem::create_directories(folder);
    WriteBytes(folder / ConfigFile, this->Config);
    WriteSafetensors(folder / WeightsFile, this->Base, this->About);
  }

  void WriteAdapter(const std::filesystem::path& folder) const
  {
    std::filesystem::create_directories(folder);
    WriteBytes(folder / AdapterConfigFile, "{" + this->Settings + "}");
    WriteSafetensors(folder / AdapterWeightsFiles[0], this->Changes, { { "format", "pt" } });
  }

  Transformer Read() const
  {
    this->WriteBase(this->Folder.Path());
    this->WriteAdapter(this->Folder.Path());
    return Transformer::Read(this->Folder.Path());
  }

  template<class ErrorType = ModelError>
  std::string Refusal() const
  {
    return MessageOf<ErrorType>([&] { this->Read(); });
  }

  /// Reads an adapter that has one more setting.
  void ReadWith(const std::string& more)
  {
    const std::string before = std::exchange(this->Settings, this->Settings + ", " + more);
    try
    {
      this->Read();
    }
    catch (...)
    {
      this->Settings = before;
      throw;
    }
    this->Settings = before;
  }
  auto ReaderWith()
  {
    return [this](const std::string& more) { this->ReadWith(more); };
  }

  static Matrix RowsOf(const TensorView& view)
  {
    const std::vector<double> values = view.ToDouble();
    const std::int64_t rows = view.shape.front();
    return Eigen::Map<const Matrix>(
      values.data(), rows, static_cast<std::int64_t>(values.size()) / rows);
  }
  Matrix OfBase(const std::string& name) const { return RowsOf(this->Base.at(name).View()); }
  Matrix OfAdapter(const std::string& name) const
  {
    return RowsOf(this->Changes.at("base_model.model." + name).View());
  }
  Matrix Sum(const std::string& module, double scaling) const
  {
    return this->Sum(module, scaling, this->OfBase(module + ".weight"));
  }
  Matrix Sum(const std::string& module, double scaling, const Matrix& base) const
  {
    return base + scaling * this->OfAdapter(module + ".lora_B.weight") *
                    this->OfAdapter(module + ".lora_A.weight");
  }

  void ChangeEmbedding()
  {
    this->Change(this->Embedding + ".lora_embedding_A", { 2, 5 });
    this->Change(this->Embedding + ".lora_embedding_B", { 8, 2 });
  }
  /// The transposed embedding with its change.
  Matrix EmbeddingSum(const Matrix& base) const
  {
    return base.transpose() + 3 * this->OfAdapter(this->Embedding + ".lora_embedding_B") *
                                this->OfAdapter(this->Embedding + ".lora_embedding_A");
  }

  /// A model of an oracle in place of ours.
  void TakeModel(const std::filesystem::path& folder)
  {
    this->Base = CopyTensors(SafetensorsFile(folder / WeightsFile).GetTensors());
    this->Config = ReadBytes(folder / ConfigFile);
  }

  static void Expect(const TensorView& found, const Matrix& expected)
  {
    const Matrix rows = RowsOf(found);
    ASSERT_EQ(rows.rows(), expected.rows());
    ASSERT_EQ(rows.cols(), expected.cols());
    EXPECT_LE(((rows - expected).array() / expected.array().abs().max(1)).abs().maxCoeff(), 1e-6);
  }
  static void Expect(const Transformer& model, const std::string& name, const Matrix& expected)
  {
    SCOPED_TRACE(name);
    Expect(model.GetFiles().GetTensors().at(name), expected);
  }

private:
  std::mt19937 Generator{ 5 };
};

}
