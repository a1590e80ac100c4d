#include "Weights/GgufModel.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "Files/JsonText.h"
#include "GgufBytes.h"
#include "ModelsOracle.h"
#include "Run/RecordTransformer.h"
#include "TemporaryDirectory.h"
#include "TestName.h"
#include "Weights/Transformer.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;
using nlohmann::json;

namespace
{

// Models of Hugging Face are written as GGUF files, as llama.cpp converts them: one tensor of a
// matrix of all experts, its own names and keys. What they compute is that of the original files.

using Pairs = std::vector<std::pair<std::string, std::string>>;

/// Names of Hugging Face, and of GGUF files.
const Pairs Names = {
  { "model.embed_tokens.", "token_embd." },
  { "model.norm.", "output_norm." },
  { "lm_head.", "output." },
  { "model.layers.", "blk." },
  { "self_attn.q_proj.", "attn_q." },
  { "self_attn.k_proj.", "attn_k." },
  { "self_attn.v_proj.", "attn_v." },
  { "self_attn.o_proj.", "attn_output." },
  { "self_attn.q_norm.", "attn_q_norm." },
  { "self_attn.k_norm.", "attn_k_norm." },
  { "self_attn.q_a_proj.", "attn_q_a." },
  { "self_attn.q_a_layernorm.", "attn_q_a_norm." },
  { "self_attn.q_b_proj.", "attn_q_b." },
  { "self_attn.kv_a_proj_with_mqa.", "attn_kv_a_mqa." },
  { "self_attn.kv_a_layernorm.", "attn_kv_a_norm." },
  { "self_attn.kv_b_proj.", "attn_kv_b." },
  { "input_layernorm.", "attn_norm." },
  { "post_attention_layernorm.", "ffn_norm." },
  { "mlp.gate_proj.", "ffn_gate." },
  { "mlp.up_proj.", "ffn_up." },
  { "mlp.down_proj.", "ffn_down." },
  { "mlp.gate.", "ffn_gate_inp." },
  { "block_sparse_moe.gate.", "ffn_gate_inp." },
  { "mlp.shared_expert_gate.", "ffn_gate_inp_shexp." },
  { "mlp.shared_expert.gate_proj.", "ffn_gate_shexp." },
  { "mlp.shared_expert.up_proj.", "ffn_up_shexp." },
  { "mlp.shared_expert.down_proj.", "ffn_down_shexp." },
  { "mlp.shared_experts.gate_proj.", "ffn_gate_shexp." },
  { "mlp.shared_experts.up_proj.", "ffn_up_shexp." },
  { "mlp.shared_experts.down_proj.", "ffn_down_shexp." },
};
const std::map<std::string, std::string> ExpertNames = { { "w1", "ffn_gate_exps.weight" },
  { "w3", "ffn_up_exps.weight" }, { "w2", "ffn_down_exps.weight" },
  { "gate_proj", "ffn_gate_exps.weight" }, { "up_proj", "ffn_up_exps.weight" },
  { "down_proj", "ffn_down_exps.weight" } };

/// A key of a GGUF file, and the setting it has.
const Pairs Sizes = {
  { "block_count", "num_hidden_layers" },
  { "context_length", "max_position_embeddings" },
  { "embedding_length", "hidden_size" },
  { "feed_forward_length", "intermediate_size" },
  { "attention.head_count", "num_attention_heads" },
  { "attention.head_count_kv", "num_key_value_heads" },
  { "expert_count", "num_local_experts" },
  { "expert_count", "num_experts" },
  { "expert_count", "n_routed_experts" },
  { "expert_used_count", "num_experts_per_tok" },
  { "expert_feed_forward_length", "moe_intermediate_size" },
  { "expert_shared_feed_forward_length", "shared_expert_intermediate_size" },
  { "expert_shared_count", "n_shared_experts" },
  { "leading_dense_block_count", "first_k_dense_replace" },
  { "attention.q_lora_rank", "q_lora_rank" },
  { "attention.kv_lora_rank", "kv_lora_rank" },
  { "rope.dimension_count", "qk_rope_head_dim" },
  { "expert_group_count", "n_group" },
  { "expert_group_used_count", "topk_group" },
};
const Pairs Fractions = {
  { "attention.layer_norm_rms_epsilon", "rms_norm_eps" },
  { "rope.freq_base", "rope_theta" },
  { "attention.clamp_kqv", "clip_qkv" },
  { "expert_weights_scale", "routed_scaling_factor" },
};

class Conversion
{
public:
  /// `splits`: keys and values from the latent vector become two tensors, as in newer files.
  Conversion(const std::filesystem::path& folder, std::string family, bool splits)
    : Settings(ParseJson(ReadFile(folder / "config.json"), folder.string(), "the configuration"))
    , Files(WeightFiles::Read(FindWeights(folder)))
    , Family(std::move(family))
    , Splits(splits)
  {
    this->AddSettings();
    for (const auto& [name, view] : this->Files.GetTensors())
    {
      this->AddTensor(name, view);
    }
    for (const auto& [name, experts] : this->Experts)
    {
      this->AddExperts(name, experts);
    }
  }

  GgufBytes File;

private:
  json Settings;
  WeightFiles Files;
  std::string Family;
  bool Splits;
  std::map<std::string, std::map<int, TensorView>> Experts;

  std::string KeyOf(const std::string& key) const { return this->Family + "." + key; }

  std::int64_t Size(const std::string& name) const
  {
    return this->Settings.at(name).get<std::int64_t>();
  }

  bool Has(const std::string& name) const
  {
    return this->Settings.contains(name) && !this->Settings.at(name).is_null();
  }

  void AddSettings()
  {
    this->File.AddText("general.architecture", this->Family);
    for (const auto& [key, setting] : Sizes)
    {
      if (this->Has(setting))
      {
        this->File.AddInteger(this->KeyOf(key), static_cast<std::uint32_t>(this->Size(setting)));
      }
    }
    for (const auto& [key, setting] : Fractions)
    {
      if (this->Has(setting))
      {
        this->File.AddNumber(this->KeyOf(key), this->Settings.at(setting).get<float>());
      }
    }
    if (this->Has("kv_lora_rank"))
    {
      this->AddHeads(
        static_cast<std::uint32_t>(this->Size("qk_nope_head_dim") + this->Size("qk_rope_head_dim")),
        static_cast<std::uint32_t>(this->Size("v_head_dim")));
    }
    else if (this->Has("head_dim"))
    {
      const auto dimension = static_cast<std::uint32_t>(this->Size("head_dim"));
      this->File.AddInteger(this->KeyOf("attention.key_length"), dimension);
      this->File.AddInteger(this->KeyOf("attention.value_length"), dimension);
    }
    if (this->Has("rope_scaling"))
    {
      this->AddScaling(this->Settings.at("rope_scaling"));
    }
  }

  /// The dimensions of a head: where keys and values are split, its keys are the latent vector for
  /// llama.cpp.
  void AddHeads(std::uint32_t keys, std::uint32_t values)
  {
    const auto latent = static_cast<std::uint32_t>(this->Size("kv_lora_rank"));
    const auto rotated = static_cast<std::uint32_t>(this->Size("qk_rope_head_dim"));
    this->File.AddInteger(
      this->KeyOf("attention.key_length"), this->Splits ? latent + rotated : keys);
    this->File.AddInteger(this->KeyOf("attention.value_length"), this->Splits ? latent : values);
    if (this->Splits)
    {
      this->File.AddInteger(this->KeyOf("attention.key_length_mla"), keys);
      this->File.AddInteger(this->KeyOf("attention.value_length_mla"), values);
    }
  }

  void AddScaling(const json& scaling)
  {
    this->File.AddText(this->KeyOf("rope.scaling.type"), "yarn");
    this->File.AddNumber(this->KeyOf("rope.scaling.factor"), scaling.at("factor").get<float>());
    this->File.AddInteger(this->KeyOf("rope.scaling.original_context_length"),
      scaling.at("original_max_position_embeddings").get<std::uint32_t>());
    this->File.AddNumber(this->KeyOf("rope.scaling.yarn_log_multiplier"),
      0.1F * scaling.at("mscale_all_dim").get<float>());
  }

  static std::vector<float> ValuesOf(const TensorView& view)
  {
    std::vector<float> values(view.Count());
    view.ToFloat(0, values.size(), values.data());
    return values;
  }

  void AddTensor(const std::string& name, const TensorView& view)
  {
    const std::size_t place = name.find(".experts.");
    if (place != std::string::npos)
    {
      const std::string rest = name.substr(place + 9); // such as 3.w1.weight
      const std::size_t dot = rest.find('.');
      const std::string matrix = rest.substr(dot + 1, rest.rfind('.') - dot - 1);
      const std::string layer = name.substr(13, name.find('.', 13) - 13); // after model.layers.
      this->Experts["blk." + layer + "." + ExpertNames.at(matrix)][std::atoi(rest.c_str())] = view;
      return;
    }
    std::string renamed = name;
    for (const auto& [huggingFace, gguf] : Names)
    {
      const std::size_t found = renamed.find(huggingFace);
      if (found != std::string::npos)
      {
        renamed.replace(found, huggingFace.size(), gguf);
      }
    }
    std::vector<float> values = ValuesOf(view);
    if (this->Splits && renamed.find("attn_kv_b") != std::string::npos)
    {
      this->AddSplit(renamed.substr(0, renamed.find("attn_kv_b")), values);
      return;
    }
    const bool isRotated =
      renamed.find("attn_q.") != std::string::npos || renamed.find("attn_k.") != std::string::npos;
    if (this->Family == "llama" && isRotated)
    {
      values = Interleaved(values, view.shape.back(), this->Size("head_dim"));
    }
    const bool isFactor = renamed.find("inp_shexp") != std::string::npos;
    this->File.AddTensor(
      renamed, isFactor ? Shape{ view.shape.back() } : view.shape, 0, FloatBytes(values));
  }

  /// The rows of each head, in llama.cpp's order of llama's queries and keys.
  static std::vector<float> Interleaved(
    const std::vector<float>& values, std::int64_t columns, std::int64_t dimension)
  {
    std::vector<float> to(values.size());
    const std::int64_t rows = static_cast<std::int64_t>(values.size()) / columns;
    for (std::int64_t row = 0; row < rows; ++row)
    {
      const std::int64_t i = row % dimension;
      const std::int64_t half = dimension / 2;
      const std::int64_t stored = row - i + (i < half ? 2 * i : 2 * (i - half) + 1);
      std::copy_n(values.data() + row * columns, columns, to.data() + stored * columns);
    }
    return to;
  }

  /// The tensors of keys [heads, latent, components] and of values [heads, components, latent].
  void AddSplit(const std::string& prefix, const std::vector<float>& values)
  {
    const std::int64_t heads = this->Size("num_attention_heads");
    const std::int64_t plain = this->Size("qk_nope_head_dim");
    const std::int64_t width = this->Size("v_head_dim");
    const std::int64_t latent = this->Size("kv_lora_rank");
    std::vector<float> keys;
    std::vector<float> rest;
    for (std::int64_t h = 0; h < heads; ++h)
    {
      const float* head = values.data() + h * (plain + width) * latent;
      for (std::int64_t l = 0; l < latent; ++l)
      {
        for (std::int64_t p = 0; p < plain; ++p)
        {
          keys.push_back(head[p * latent + l]);
        }
      }
      rest.insert(rest.end(), head + plain * latent, head + (plain + width) * latent);
    }
    this->File.AddTensor(prefix + "attn_k_b.weight", { heads, latent, plain }, 0, FloatBytes(keys));
    this->File.AddTensor(prefix + "attn_v_b.weight", { heads, width, latent }, 0, FloatBytes(rest));
  }

  void AddExperts(const std::string& name, const std::map<int, TensorView>& experts)
  {
    std::vector<float> all;
    for (const auto& [number, view] : experts)
    {
      const std::vector<float> values = ValuesOf(view);
      all.insert(all.end(), values.begin(), values.end());
    }
    const Shape& one = experts.begin()->second.shape;
    this->File.AddTensor(
      name, { static_cast<std::int64_t>(experts.size()), one[0], one[1] }, 0, FloatBytes(all));
  }
};

struct ExpertModel
{
  const char* name;
  const char* family;
  bool splits = false;
  friend void PrintTo(const ExpertModel& model, std::ostream* stream)
  {
    *stream << model.name << (model.splits ? ", split" : "");
  }
};

using GgufExperts = testing::TestWithParam<ExpertModel>;

INSTANTIATE_TEST_SUITE_P(, GgufExperts,
  testing::Values(ExpertModel{ "mixtral", "llama" }, ExpertModel{ "qwen2_moe", "qwen2moe" },
    ExpertModel{ "qwen3_moe", "qwen3moe" }, ExpertModel{ "olmoe", "olmoe" },
    ExpertModel{ "deepseek_v2", "deepseek2" }, ExpertModel{ "deepseek_v2", "deepseek2", true },
    ExpertModel{ "deepseek_v2-lite", "deepseek2" },
    ExpertModel{ "deepseek_v2-lite", "deepseek2", true }));

/// What a run records, but for its attention: numbers that are close, and the same experts.
void ExpectCloseRecordings(const Recording& expected, const Recording& found)
{
  const auto compare = [](const SharedMatrix& x, const SharedMatrix& y)
  {
    ASSERT_EQ(x.Count(), y.Count());
    for (std::uint64_t i = 0; i < x.Count(); ++i)
    {
      // Its epsilon is rounded.
      ASSERT_NEAR(x.Row(0)[i], y.Row(0)[i], 2e-5 * std::max(1.F, std::abs(x.Row(0)[i]))) << i;
    }
  };
  ASSERT_EQ(expected.layers.size(), found.layers.size());
  for (std::size_t l = 0; l < expected.layers.size(); ++l)
  {
    SCOPED_TRACE(l);
    EXPECT_NEAR(expected.layers[l].scoreScale, found.layers[l].scoreScale, 1e-6);
    for (std::size_t h = 0; h < expected.layers[l].heads.size(); ++h)
    {
      compare(expected.layers[l].heads[h].query, found.layers[l].heads[h].query);
      compare(expected.layers[l].heads[h].key, found.layers[l].heads[h].key);
      compare(expected.layers[l].heads[h].value, found.layers[l].heads[h].value);
    }
    const RecordedRouting& routing = expected.layers[l].routing;
    ASSERT_EQ(routing.chosen.IsRecorded(), found.layers[l].routing.chosen.IsRecorded());
    if (routing.chosen.IsRecorded())
    {
      compare(routing.chosen, found.layers[l].routing.chosen);
      compare(routing.weights, found.layers[l].routing.weights);
    }
    compare(expected.residual[l + 1], found.residual[l + 1]);
  }
  compare(expected.logits, found.logits);
}

TEST_P(GgufExperts, ComputeWhatTheOriginalFilesDo)
{
  const std::filesystem::path folder = ModelsOracle(std::string("transformers/") + GetParam().name);
  const TemporaryDirectory temporary;
  const std::filesystem::path path = temporary / "model.gguf";
  WriteBytes(path, Conversion(folder, GetParam().family, GetParam().splits).File.File());
  const Transformer model = Transformer::Read(folder);
  const Transformer found = Transformer::Read(path);
  EXPECT_THAT(found.GetWeights().unused, IsEmpty());
  EXPECT_EQ(found.GetConfig().architecture, model.GetConfig().architecture);
  TransformerInput input;
  input.tokens = { { 3, 10, 4, 10, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 71, 80, 96 },
    { 2, 7, 11 } };
  RecordOptions options;
  options.logits = true;
  options.residual = true;
  options.routing = true;
  ExpectCloseRecordings(
    RecordTransformer(model, input, options), RecordTransformer(found, input, options));
}

/// A model of Hugging Face, and its file by llama.cpp's own conversion.
struct ConvertedModel
{
  const char* name;
  const char* change; ///< settings that the file cannot hold, which are as llama.cpp assumes
  friend void PrintTo(const ConvertedModel& model, std::ostream* stream) { *stream << model.name; }
};

using GgufConversion = testing::TestWithParam<ConvertedModel>;

INSTANTIATE_TEST_SUITE_P(, GgufConversion,
  testing::Values(ConvertedModel{ "bert", "{}" }, ConvertedModel{ "bloom", "{}" },
    ConvertedModel{ "gemma", "{}" },
    ConvertedModel{ "gemma2", R"({ "query_pre_attn_scalar": 16 })" },
    ConvertedModel{ "gemma3-v5", R"({ "layer_types": null, "sliding_window_pattern": 6 })" },
    ConvertedModel{ "gpt2", "{}" }, ConvertedModel{ "gpt_neox", "{}" },
    ConvertedModel{ "olmo", "{}" }, ConvertedModel{ "phi", "{}" },
    ConvertedModel{ "phi3-longrope", "{}" },
    ConvertedModel{ "qwen3-v5", R"({ "use_sliding_window": false, "layer_types": null })" },
    ConvertedModel{ "roberta", "{}" }, ConvertedModel{ "stablelm", "{}" }),
  [](const auto& test) { return TestName(test.param.name); });

/// The folder of a model, which may be among those of the conversions, of all architectures, or of
/// the first.
std::filesystem::path FolderOf(const std::string& name)
{
  std::filesystem::path folder = ModelsOracle("files/gguf/conversions/" + name);
  folder = folder.empty() ? ModelsOracle("transformers/" + name) : folder;
  return folder.empty() ? std::filesystem::path(ATLAS_ORACLE_DIR) / "transformers" / name : folder;
}

/// All but the conversion is checked elsewhere: files of Hugging Face against the original code.
TEST_P(GgufConversion, ComputesWhatTheModelDoes)
{
  const std::string name = GetParam().name;
  const std::filesystem::path folder = FolderOf(name);
  json config = ParseJson(ReadFile(folder / "config.json"), folder.string(), "the configuration");
  config.merge_patch(json::parse(GetParam().change));
  const Transformer model(
    ParseTransformerConfig(config.dump(), name), WeightFiles::Read(FindWeights(folder)));
  const Transformer found =
    Transformer::Read(ModelsOracle("files/gguf/conversions/" + name + ".gguf"));
  EXPECT_THAT(found.GetWeights().unused, IsEmpty());
  TransformerInput input;
  // No id 1, which RoBERTa's files of Hugging Face take for padding without a position.
  input.tokens = { { 3, 10, 4, 10, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6 },
    { 2, 7, 11 } };
  // llama.cpp leaves out what predicts masked words.
  RecordOptions options;
  options.logits = model.GetConfig().mask == AttentionMask::Causal;
  options.residual = true;
  ExpectCloseRecordings(
    RecordTransformer(model, input, options), RecordTransformer(found, input, options));
  EXPECT_EQ(found.GetWeights().unembedding.Exists(), options.logits);
}

/// A file of DeepSeek-V2 with other settings.
std::string Refusal(const std::string& key, std::uint32_t type, const std::string& bytes)
{
  Conversion conversion(ModelsOracle("transformers/deepseek_v2-lite"), "deepseek2", false);
  conversion.File.Add("deepseek2." + key, type, bytes);
  const TemporaryDirectory temporary;
  WriteBytes(temporary / "model.gguf", conversion.File.File());
  return MessageOf<ModelError>([&] { Transformer::Read(temporary / "model.gguf"); });
}

TEST(GgufExpertSettings, OtherRoutersAreRefused)
{
  EXPECT_THAT(Refusal("expert_gating_func", 4, LittleEndian(2, 4)), HasSubstr("sigmoid"));
  EXPECT_THAT(Refusal("expert_gating_func", 4, LittleEndian(9, 4)), HasSubstr("found \"9\""));
  EXPECT_THAT(Refusal("expert_weights_norm", 7, LittleEndian(1, 1)), HasSubstr("norm_topk_prob"));
  EXPECT_THAT(Refusal("attention.key_length_mla", 4, LittleEndian(6, 4)),
    HasSubstr("expected heads with more components than the 6 rotated ones, found 6"));
}

}
