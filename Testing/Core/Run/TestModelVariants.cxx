// Options of architectures that no model of Testing/Oracle has.

#include "ModelOracle.h"
#include "ModelsOracle.h"
#include "NaiveModel.h"
#include "RecordTransformer.h"
#include "RecordedAttention.h"
#include "TestName.h"
#include "TransformerOracle.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

constexpr double Tolerance = 2e-5;       ///< of scores, attention and head outputs
constexpr double StreamTolerance = 2e-4; ///< of hidden states and logits

/// A configuration: settings that replace those of a family.
struct Variant
{
  std::string name;
  std::string family;
  std::string changes = "{}";
  // NOLINTNEXTLINE(readability-redundant-member-init): so that it may be left out of { }
  std::string base{}; ///< before the names of weights, if it is not the usual one; "-": nothing
  friend void PrintTo(const Variant& variant, std::ostream* stream) { *stream << variant.name; }
};

/// Settings of small models, as Hugging Face writes them.
const std::map<std::string, std::string> Families = {
  { "llama", R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
    "hidden_size": 24, "intermediate_size": 40, "max_position_embeddings": 64,
    "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
    "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "vocab_size": 31})" },
  { "mistral", R"({"architectures": ["MistralForCausalLM"], "model_type": "mistral",
    "hidden_size": 24, "intermediate_size": 40, "max_position_embeddings": 64, "head_dim": null,
    "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
    "rms_norm_eps": 1e-05, "sliding_window": null, "vocab_size": 31})" },
  { "qwen2", R"({"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 24,
    "intermediate_size": 40, "max_position_embeddings": 64, "max_window_layers": 2,
    "num_attention_heads": 4, "num_hidden_layers": 4, "num_key_value_heads": 2,
    "rms_norm_eps": 1e-06, "sliding_window": 5, "use_sliding_window": true, "vocab_size": 31})" },
  { "qwen3", R"({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 24,
    "intermediate_size": 40, "max_position_embeddings": 64, "max_window_layers": 1, "head_dim": 10,
    "num_attention_heads": 4, "num_hidden_layers": 3, "num_key_value_heads": 2,
    "rms_norm_eps": 1e-06, "sliding_window": 5, "use_sliding_window": true, "vocab_size": 31})" },
  { "gemma", R"({"architectures": ["GemmaForCausalLM"], "model_type": "gemma", "hidden_size": 24,
    "hidden_act": "gelu", "hidden_activation": null, "head_dim": 10, "intermediate_size": 40,
    "max_position_embeddings": 64, "num_attention_heads": 4, "num_hidden_layers": 2,
    "num_key_value_heads": 1, "vocab_size": 31})" },
  { "gemma2", R"({"architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2",
    "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 24, "head_dim": 10,
    "intermediate_size": 40, "max_position_embeddings": 64, "num_attention_heads": 4,
    "num_hidden_layers": 3, "num_key_value_heads": 2, "query_pre_attn_scalar": 12,
    "sliding_window": 5, "vocab_size": 31})" },
  { "gemma3_text", R"({"architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text",
    "hidden_size": 24, "head_dim": 10, "intermediate_size": 40, "max_position_embeddings": 64,
    "num_attention_heads": 4, "num_hidden_layers": 4, "num_key_value_heads": 2,
    "query_pre_attn_scalar": 12, "sliding_window": 5, "sliding_window_pattern": 2,
    "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "vocab_size": 31})" },
  { "gpt_oss", R"({"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss",
    "attention_bias": true, "head_dim": 10, "hidden_size": 24, "intermediate_size": 20,
    "max_position_embeddings": 128, "num_attention_heads": 4, "num_experts_per_tok": 2,
    "num_hidden_layers": 3, "num_key_value_heads": 2, "num_local_experts": 5,
    "rms_norm_eps": 1e-05, "rope_scaling": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0,
      "original_max_position_embeddings": 64, "rope_type": "yarn", "truncate": false},
    "rope_theta": 150000.0, "sliding_window": 5, "swiglu_limit": 7.0, "vocab_size": 31})" },
  { "olmo", R"({"architectures": ["OlmoForCausalLM"], "model_type": "olmo", "hidden_act": "silu",
    "hidden_size": 24, "intermediate_size": 40, "max_position_embeddings": 64,
    "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 4, "clip_qkv": null,
    "rope_theta": 10000.0, "tie_word_embeddings": false, "vocab_size": 31})" },
  { "phi3", R"({"architectures": ["Phi3ForCausalLM"], "model_type": "phi3", "hidden_size": 24,
    "intermediate_size": 40, "max_position_embeddings": 64, "num_attention_heads": 3,
    "num_hidden_layers": 2, "num_key_value_heads": 1, "original_max_position_embeddings": 10,
    "rope_scaling": {"type": "longrope", "long_factor": [1.0, 2.1, 3.2, 4.3],
      "short_factor": [1.0, 1.1, 1.2, 1.3]}, "sliding_window": null, "vocab_size": 31})" },
  { "phi", R"({"architectures": ["PhiForCausalLM"], "model_type": "phi", "hidden_act": "gelu_new",
    "hidden_size": 32, "intermediate_size": 40, "layer_norm_eps": 1e-05,
    "max_position_embeddings": 64, "num_attention_heads": 4, "num_hidden_layers": 2,
    "num_key_value_heads": null, "partial_rotary_factor": 0.5, "qk_layernorm": false,
    "rope_scaling": null, "rope_theta": 10000.0, "tie_word_embeddings": false, "vocab_size": 31})" },
  { "gptj", R"({"architectures": ["GPTJForCausalLM"], "model_type": "gptj",
    "activation_function": "gelu_new", "layer_norm_epsilon": 1e-05, "n_embd": 32, "n_head": 4,
    "n_inner": null, "n_layer": 2, "n_positions": 64, "rotary_dim": 4,
    "tie_word_embeddings": false, "vocab_size": 31})" },
  { "stablelm", R"({"architectures": ["StableLmForCausalLM"], "model_type": "stablelm",
    "hidden_act": "silu", "hidden_size": 32, "intermediate_size": 40, "layer_norm_eps": 1e-05,
    "max_position_embeddings": 64, "num_attention_heads": 4, "num_hidden_layers": 2,
    "num_key_value_heads": 2, "partial_rotary_factor": 0.25, "qk_layernorm": false,
    "rope_theta": 10000, "tie_word_embeddings": false, "use_parallel_residual": false,
    "use_qkv_bias": false, "vocab_size": 31})" },
  { "gpt_neox", R"({"architectures": ["GPTNeoXForCausalLM"], "model_type": "gpt_neox",
    "attention_bias": true, "hidden_act": "gelu", "hidden_size": 32, "intermediate_size": 40,
    "layer_norm_eps": 1e-05, "max_position_embeddings": 64, "num_attention_heads": 4,
    "num_hidden_layers": 2, "rotary_emb_base": 10000, "rotary_pct": 0.25,
    "tie_word_embeddings": false, "use_parallel_residual": true, "vocab_size": 31})" },
  { "gpt_neo", R"({"architectures": ["GPTNeoForCausalLM"], "model_type": "gpt_neo",
    "activation_function": "gelu_new", "attention_types": [[["global", "local"], 2]],
    "hidden_size": 24, "intermediate_size": null, "layer_norm_epsilon": 1e-05,
    "max_position_embeddings": 64, "num_heads": 4, "num_layers": 4, "vocab_size": 31,
    "window_size": 5})" },
  { "opt", R"({"architectures": ["OPTForCausalLM"], "model_type": "opt",
    "_remove_final_layer_norm": false, "activation_function": "relu", "do_layer_norm_before": true,
    "ffn_dim": 40, "hidden_size": 24, "max_position_embeddings": 64, "num_attention_heads": 4,
    "num_hidden_layers": 2, "pad_token_id": 1, "vocab_size": 31, "word_embed_proj_dim": 24})" },
  { "roberta", R"({"architectures": ["RobertaForMaskedLM"], "model_type": "roberta",
    "hidden_act": "gelu", "hidden_size": 24, "intermediate_size": 40, "layer_norm_eps": 1e-05,
    "max_position_embeddings": 40, "num_attention_heads": 4, "num_hidden_layers": 2,
    "pad_token_id": 1, "type_vocab_size": 1, "vocab_size": 31})" },
  { "distilbert", R"({"architectures": ["DistilBertForMaskedLM"], "model_type": "distilbert",
    "activation": "gelu", "dim": 24, "hidden_dim": 40, "max_position_embeddings": 40, "n_heads": 4,
    "n_layers": 2, "pad_token_id": 0, "vocab_size": 31})" },
  { "deit", R"({"architectures": ["DeiTModel"], "model_type": "deit", "hidden_act": "gelu",
    "hidden_size": 24, "image_size": 24, "intermediate_size": 40, "layer_norm_eps": 1e-12,
    "num_attention_heads": 4, "num_channels": 3, "num_hidden_layers": 2, "patch_size": 8,
    "qkv_bias": true})" },
  { "dinov2", R"({"architectures": ["Dinov2Model"], "model_type": "dinov2", "hidden_act": "gelu",
    "hidden_size": 24, "image_size": 24, "layer_norm_eps": 1e-06, "layerscale_value": 1.0,
    "mlp_ratio": 4, "num_attention_heads": 4, "num_channels": 3, "num_hidden_layers": 2,
    "patch_size": 8, "qkv_bias": true, "use_swiglu_ffn": false})" },
  { "clip_text_model", R"({"architectures": ["CLIPTextModel"], "model_type": "clip_text_model",
    "hidden_act": "quick_gelu", "hidden_size": 24, "intermediate_size": 40,
    "max_position_embeddings": 40, "num_attention_heads": 4, "num_hidden_layers": 2,
    "vocab_size": 31})" },
  { "clip_vision_model", R"({"architectures": ["CLIPVisionModel"], "hidden_size": 24,
    "model_type": "clip_vision_model", "hidden_act": "quick_gelu", "image_size": 24,
    "intermediate_size": 40, "num_attention_heads": 4, "num_channels": 3, "num_hidden_layers": 2,
    "patch_size": 8})" },
};

const std::vector<Variant> Variants = { { "phi", "phi" },
  { "phi_grouped", "phi", R"({"num_key_value_heads": 2})" },
  { "phi_norms", "phi", R"({"qk_layernorm": true, "num_key_value_heads": 2})" },
  { "phi_rotation", "phi", R"({"partial_rotary_factor": 0.75, "hidden_act": "gelu",
     "rope_scaling": {"type": "linear", "factor": 3.0}})" },
  { "phi_tied", "phi", R"({"tie_word_embeddings": true})" },
  { "phi_parameters", "phi", R"({"partial_rotary_factor": null, "rope_theta": null,
     "rope_parameters": {"rope_type": "default", "rope_theta": 3000.0,
       "partial_rotary_factor": 0.25}})" },
  { "stablelm", "stablelm" },
  { "stablelm_parameters", "stablelm", R"({"partial_rotary_factor": null, "rope_theta": null,
     "rope_parameters": {"rope_type": "default", "rope_theta": 3000.0,
       "partial_rotary_factor": 0.5}})" },
  { "stablelm_parallel", "stablelm", R"({"use_parallel_residual": true})" },
  { "stablelm_norms", "stablelm", R"({"qk_layernorm": true})" },
  { "stablelm_all", "stablelm", R"({"use_parallel_residual": true, "qk_layernorm": true,
     "use_qkv_bias": true, "tie_word_embeddings": true})" },
  { "olmo_clip", "olmo", R"({"clip_qkv": 0.7})" },
  { "olmo_bias", "olmo", R"({"attention_bias": true, "clip_qkv": 1.1, "num_key_value_heads": 2})" },
  { "dinov2", "dinov2" }, { "dinov2_swiglu", "dinov2", R"({"use_swiglu_ffn": true})" },
  { "dinov2_swiglu_3", "dinov2", R"({"use_swiglu_ffn": true, "mlp_ratio": 3})", "-" },
  { "dinov2_no_bias", "dinov2", R"({"qkv_bias": false})" },
  { "dinov2_registers", "dinov2", R"({"model_type": "dinov2_with_registers",
     "architectures": ["Dinov2WithRegistersModel"], "num_register_tokens": 4})",
    "-" },
  { "dinov2_registers_swiglu", "dinov2", R"({"model_type": "dinov2_with_registers",
     "num_register_tokens": 3, "use_swiglu_ffn": true})" },
  { "deit_no_bias", "deit", R"({"qkv_bias": false})", "-" }, { "deit", "deit" },
  { "vit_no_bias", "deit", R"({"qkv_bias": false, "model_type": "vit"})" },
  { "clip_text_gelu", "clip_text_model", R"({"hidden_act": "gelu"})" },
  { "clip_vision_gelu", "clip_vision_model", R"({"hidden_act": "gelu"})" },
  // Patches that do not fill the image.
  { "vit_unfilled", "deit", R"({"model_type": "vit", "image_size": 31})" },
  { "dinov2_unfilled", "dinov2", R"({"image_size": 25})" },
  { "clip_vision_unfilled", "clip_vision_model", R"({"image_size": 29})" },
  { "qwen2_windows", "qwen2" },
  { "qwen2_windows_everywhere", "qwen2", R"({"max_window_layers": 0})" },
  { "qwen2_windows_nowhere", "qwen2", R"({"max_window_layers": 4})" },
  { "qwen2_default_window_layers", "qwen2", R"({"max_window_layers": null})" },
  { "qwen2_layer_types", "qwen2", R"({"layer_types": ["full_attention", "sliding_attention",
     "full_attention", "sliding_attention"], "tie_word_embeddings": true})" },
  { "qwen2_yarn", "qwen2", R"({"use_sliding_window": false, "rope_scaling": {"type": "yarn",
     "factor": 4.0, "original_max_position_embeddings": 16}})" },
  { "qwen3_windows", "qwen3" },
  { "qwen3_bias", "qwen3", R"({"attention_bias": true, "use_sliding_window": false,
     "sliding_window": null})" },
  { "llama_attention_bias", "llama", R"({"attention_bias": true})" },
  { "llama_mlp_bias", "llama", R"({"mlp_bias": true})" },
  { "llama_head_dim", "llama", R"({"head_dim": 10, "num_key_value_heads": null,
     "tie_word_embeddings": true})" },
  { "llama_yarn", "llama", R"({"rope_scaling": {"rope_type": "yarn", "factor": 4.0,
     "original_max_position_embeddings": 16, "beta_fast": 8.0, "attention_factor": 1.3}})" },
  { "llama_yarn_plain", "llama", R"({"head_dim": 16, "rope_scaling": {"rope_type": "yarn",
     "factor": 4.0, "original_max_position_embeddings": 32, "truncate": false}})" },
  { "llama_llama3", "llama", R"({"head_dim": 16, "rope_theta": 500000.0, "rope_scaling": {
     "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
     "original_max_position_embeddings": 32}})" },
  { "llama_parameters", "llama", R"({"rope_theta": null, "rope_parameters": {
     "rope_theta": 5000.0, "rope_type": "linear", "factor": 2.0}})" },
  { "mistral_head_dim_null", "mistral" },
  { "mistral_window", "mistral", R"({"sliding_window": 4, "head_dim": 8})" },
  { "gemma_bias", "gemma", R"({"attention_bias": true})" }, { "gemma2_defaults", "gemma2" },
  { "gemma2_caps", "gemma2", R"({"attn_logit_softcapping": 3.0, "final_logit_softcapping": 2})" },
  { "gemma2_no_caps", "gemma2", R"({"attn_logit_softcapping": null,
     "final_logit_softcapping": null})" },
  { "gemma3_pattern_2", "gemma3_text" },
  { "gemma3_pattern_3", "gemma3_text", R"({"sliding_window_pattern": 3, "rope_theta": 50000.0,
     "rope_local_base_freq": 1000.0})" },
  { "gemma3_pattern_6", "gemma3_text",
    R"({"sliding_window_pattern": null, "num_hidden_layers": 7})" },
  { "phi3_longrope", "phi3" },
  { "phi3_partial", "phi3", R"({"partial_rotary_factor": 0.75, "tie_word_embeddings": true,
     "rope_scaling": {"type": "longrope", "long_factor": [1.0, 2.1, 3.2],
       "short_factor": [1.0, 1.1, 1.2]}})" },
  { "phi3_su", "phi3", R"({"rope_scaling": {"type": "su", "long_factor": [1.0, 2.1, 3.2, 4.3],
     "short_factor": [1.0, 1.1, 1.2, 1.3]}})" },
  { "phi3_parameters", "phi3", R"({"rope_scaling": null, "rope_parameters": {
     "rope_type": "longrope", "rope_theta": 5000.0, "partial_rotary_factor": 0.75,
     "original_max_position_embeddings": 12, "long_factor": [1.0, 2.1, 3.2],
     "short_factor": [1.0, 1.1, 1.2]}})" },
  { "phi3_default_training", "phi3", R"({"original_max_position_embeddings": null,
     "max_position_embeddings": 8192})" },
  { "phi3_window", "phi3", R"({"rope_scaling": null, "sliding_window": 5})" },
  { "gpt_neox", "gpt_neox" }, { "gpt_neox_no_bias", "gpt_neox", R"({"attention_bias": false})" },
  { "gpt_neox_parameters", "gpt_neox", R"({"rotary_pct": null, "rotary_emb_base": null,
     "rope_parameters": {"rope_type": "default", "rope_theta": 3000.0,
       "partial_rotary_factor": 0.5}})" },
  { "gpt_neox_new_names", "gpt_neox", R"({"rotary_emb_base": null, "rope_theta": 3000.0,
     "partial_rotary_factor": 0.5, "rotary_pct": 0.5})" },
  { "gpt_neox_sequential", "gpt_neox", R"({"attention_bias": false,
     "use_parallel_residual": false, "rotary_pct": 1.0, "tie_word_embeddings": true})" },
  { "gpt_oss", "gpt_oss" },
  { "gpt_oss_one_expert", "gpt_oss", R"({"num_experts_per_tok": 1, "num_local_experts": 2})" },
  { "gpt_oss_plain", "gpt_oss", R"({"attention_bias": false, "swiglu_limit": 0.5,
     "num_experts_per_tok": 5, "sliding_window": null, "tie_word_embeddings": true})" },
  { "gpt_oss_layer_types", "gpt_oss", R"({"layer_types": ["full_attention", "sliding_attention",
     "sliding_attention"], "rope_scaling": null})" },
  { "gpt_neo_types", "gpt_neo" }, { "gpt_neo_inner", "gpt_neo", R"({"intermediate_size": 40,
     "attention_types": [[["global"], 1], [["local"], 3]]})" },
  { "gptj_inner", "gptj", R"({"n_inner": 40, "activation_function": "gelu"})" }, { "gptj", "gptj" },
  { "opt", "opt" }, { "opt_no_final_norm", "opt", R"({"_remove_final_layer_norm": true})" },
  { "opt_plain", "opt", R"({"enable_bias": false, "layer_norm_elementwise_affine": false,
     "activation_function": "gelu"})" },
  { "opt_projection", "opt", R"({"word_embed_proj_dim": 16})" }, { "roberta", "roberta" },
  { "roberta_padding", "roberta", R"({"pad_token_id": 3})" },
  { "distilbert", "distilbert", R"({"activation": "relu"})" } };

/// A model of the reference, run on some input.
struct Reference
{
  std::vector<NaiveModel::Run> runs; ///< one per sequence
  TransformerInput input;
};

TransformerInput MakeInput(const nlohmann::json& config)
{
  std::mt19937 generator(3);
  TransformerInput input;
  if (config.contains("image_size"))
  {
    const auto side = config.at("image_size").get<std::size_t>();
    input.images = 2;
    for (std::size_t i = 0; i < 6 * side * side; ++i)
    {
      input.pixels.push_back(static_cast<float>(generator() % 2001) / 1000.0F - 1.0F);
    }
    return input;
  }
  for (const int length : { 17, 6 })
  {
    input.tokens.emplace_back();
    for (int i = 0; i < length; ++i)
    {
      input.tokens.back().push_back(static_cast<std::int64_t>(generator() % 31));
    }
  }
  input.tokens[0][2] = 3; // padding of one
  return input;
}

void RunAll(NaiveModel& model, Reference& reference)
{
  for (const std::vector<std::int64_t>& ids : reference.input.tokens)
  {
    reference.runs.push_back(model.RunText(ids));
  }
  const std::size_t images = reference.input.images;
  for (std::size_t s = 0; s < images; ++s)
  {
    const std::size_t size = reference.input.pixels.size() / images;
    const auto first = reference.input.pixels.begin() + static_cast<std::int64_t>(s * size);
    reference.runs.push_back(
      model.RunImage(std::vector<double>(first, first + static_cast<std::int64_t>(size))));
  }
}

class Comparison
{
public:
  Comparison(const Recording& found, const Reference& expected)
  {
    for (std::size_t s = 0; s < expected.runs.size(); ++s)
    {
      this->Compare(found, expected.runs[s], static_cast<std::int64_t>(s));
    }
  }

  void Expect(const std::string& name) const
  {
    std::cout << name << ":";
    for (const auto& [quantity, deviation] : this->Deviations)
    {
      const bool isStream = quantity == "hidden" || quantity == "logits";
      EXPECT_LE(deviation, isStream ? StreamTolerance : Tolerance) << name << ": " << quantity;
      std::cout << " " << quantity << " " << deviation;
    }
    std::cout << "\n";
  }

private:
  std::map<std::string, double> Deviations;

  void Raise(const std::string& name, double difference)
  {
    // Not with std::max, which would lose NaN.
    double& largest = this->Deviations[name];
    largest = std::abs(difference) <= largest ? largest : std::abs(difference);
  }

  void Compare(const Recording& found, const NaiveModel::Run& expected, std::int64_t s)
  {
    ASSERT_EQ(found.layers.size(), expected.layers.size());
    for (std::size_t l = 0; l < expected.layers.size(); ++l)
    {
      const NaiveModel::Layer& layer = expected.layers[l];
      ASSERT_EQ(found.layers[l].heads.size(), layer.query.size());
      for (std::size_t h = 0; h < layer.query.size(); ++h)
      {
        const RecordedHead& head = found.layers[l].heads[h];
        this->CompareRows("query", found, s, head.query, layer.query[h]);
        this->CompareRows("key", found, s, head.key, layer.key[h]);
        this->CompareRows("outputs", found, s, head.output, layer.output[h]);
        this->CompareAttention(found, s, l, h, layer);
      }
    }
    ASSERT_EQ(found.residual.size(), expected.hidden.size());
    for (std::size_t l = 0; l < expected.hidden.size(); ++l)
    {
      this->CompareRows("hidden", found, s, found.residual[l], expected.hidden[l]);
    }
    ASSERT_EQ(found.logits.IsRecorded(), expected.logits.size() != 0);
    if (found.logits.IsRecorded())
    {
      this->CompareRows("logits", found, s, found.logits, expected.logits);
    }
  }

  void CompareRows(const std::string& name, const Recording& found, std::int64_t s,
    const SharedMatrix& matrix, const NaiveModel::Rows& expected)
  {
    ASSERT_EQ(found.SequenceLength(s), expected.rows());
    ASSERT_EQ(matrix.columns, expected.cols()) << name;
    const std::int64_t first = found.sequenceOffsets[s];
    for (Eigen::Index t = 0; t < expected.rows(); ++t)
    {
      const float* row = matrix.Row(first + t);
      for (Eigen::Index c = 0; c < expected.cols(); ++c)
      {
        this->Raise(name, static_cast<double>(row[c]) - expected(t, c));
      }
    }
  }

  void CompareAttention(const Recording& found, std::int64_t s, std::size_t l, std::size_t h,
    const NaiveModel::Layer& expected)
  {
    const Eigen::Index length = expected.scores[h].rows();
    std::vector<float> scores(length * length);
    std::vector<float> weights(length * length);
    EvaluateAttention(found, s, static_cast<std::int64_t>(l), static_cast<std::int64_t>(h),
      AttentionQuantity::Scores, 0, length, scores.data());
    EvaluateAttention(found, s, static_cast<std::int64_t>(l), static_cast<std::int64_t>(h),
      AttentionQuantity::Weights, 0, length, weights.data());
    for (Eigen::Index i = 0; i < length * length; ++i)
    {
      const double weight = expected.attention[h].data()[i];
      this->Raise("attention", static_cast<double>(weights[i]) - weight);
      if (weight > 0)
      {
        // Without a scale (GPT-Neo) they are large.
        const double score = expected.scores[h].data()[i];
        this->Raise(
          "scores", (static_cast<double>(scores[i]) - score) / std::max(1.0, std::abs(score)));
      }
    }
  }
};

Recording RecordVariant(const Transformer& model, const TransformerInput& input)
{
  RecordOptions options;
  options.headOutputs = true;
  options.residual = true;
  options.logits = model.HasLogits();
  Recording recording = RecordTransformer(model, input, options);
  CheckRecording(recording, "recording");
  return recording;
}

/// The product's model, which reads tensors that are kept elsewhere.
Transformer MakeModel(const Tensors& weights, const std::string& config)
{
  TensorViews views;
  for (const auto& [name, tensor] : weights)
  {
    views.emplace(name, tensor.View());
  }
  return { ParseTransformerConfig(config, "config.json"), WeightFiles(views, "variant") };
}

nlohmann::json ConfigOf(const Variant& variant)
{
  nlohmann::json config = nlohmann::json::parse(Families.at(variant.family));
  config.update(nlohmann::json::parse(variant.changes));
  return config;
}

using ModelVariants = testing::TestWithParam<Variant>;

std::string NameOf(const testing::TestParamInfo<Variant>& info)
{
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(, ModelVariants, testing::ValuesIn(Variants), NameOf);

TEST_P(ModelVariants, AreThoseOfTheNaiveModel)
{
  const nlohmann::json config = ConfigOf(this->GetParam());
  NaiveModel naive(config, {}, this->GetParam().base);
  Reference reference;
  reference.input = MakeInput(config);
  RunAll(naive, reference);
  const Transformer model = MakeModel(naive.GetWeights(), config.dump());
  Comparison(RecordVariant(model, reference.input), reference).Expect(this->GetParam().name);
}

/// As files of Gemma 3 with pictures have it: the text model is a part.
void ExpectNestedGemma(const std::string& base, const std::string& rest, bool hasHead)
{
  nlohmann::json text = ConfigOf({ "", "gemma3_text" });
  text.erase("architectures");
  text["tie_word_embeddings"] = true;
  NaiveModel naive(text, {}, base);
  Reference reference;
  reference.input = MakeInput(text);
  RunAll(naive, reference);
  naive.AddUnused(rest + "vision_tower.vision_model.embeddings.patch_embedding.weight", { 4, 2 });
  naive.AddUnused(rest + "vision_tower.vision_model.post_layernorm.weight", { 4 });
  naive.AddUnused(rest + "multi_modal_projector.mm_input_projection_weight", { 4, 24 });
  naive.AddUnused(rest + "multi_modal_projector.mm_soft_emb_norm.weight", { 4 });
  Tensors weights = naive.GetWeights();
  if (hasHead)
  {
    // Some tools write the tied unembedding too.
    weights[rest.empty() ? "language_model.lm_head.weight" : "lm_head.weight"] =
      weights.at(base + "embed_tokens.weight");
  }
  const nlohmann::json config = { { "architectures", { "Gemma3ForConditionalGeneration" } },
    { "model_type", "gemma3" }, { "mm_tokens_per_image", 256 }, { "text_config", text },
    { "vision_config",
      { { "hidden_size", 8 }, { "image_size", 28 }, { "model_type", "siglip_vision_model" },
        { "num_attention_heads", 2 }, { "num_hidden_layers", 1 }, { "patch_size", 14 } } } };
  const Transformer model = MakeModel(weights, config.dump());
  Comparison(RecordVariant(model, reference.input), reference).Expect("gemma3 in " + base);
}

TEST(NestedGemma, IsAPartOfAModelForPictures)
{
  ExpectNestedGemma("language_model.model.", "", false);
  ExpectNestedGemma("language_model.model.", "", true);
  ExpectNestedGemma("model.language_model.", "model.", false);
  ExpectNestedGemma("model.language_model.", "model.", true);
}

/// The reference itself against what the original code computed: through the product's recordings,
/// which TestModelParity compares with it.
using NaiveReference = testing::TestWithParam<std::string>;

std::string NameOfModel(const testing::TestParamInfo<std::string>& info)
{
  return TestName(info.param);
}

INSTANTIATE_TEST_SUITE_P(, NaiveReference,
  testing::Values("clip-text", "clip-vision", "deit", "dinov2", "distilbert", "gemma", "gemma2",
    "gemma3", "gemma3-v5", "gpt_neo", "gpt_neox", "gpt_neox-seq", "gpt_oss", "gptj", "llama-linear",
    "llama-yarn", "llama3", "mistral", "mistral-window", "olmo", "opt", "opt-proj", "phi", "phi3",
    "phi3-longrope", "qwen2", "qwen2-tied", "qwen3", "qwen3-v5", "roberta-mlm", "stablelm"),
  NameOfModel);

TEST_P(NaiveReference, IsTheOriginalCode)
{
  const std::filesystem::path path =
    ModelsOracle("transformers/" + this->GetParam() + "/" + ConfigFile).parent_path();
  if (path.empty())
  {
    GTEST_SKIP() << "not part of this repository, and not beside it";
  }
  std::ifstream file(path / ConfigFile);
  const Transformer model = Transformer::Read(path);
  // The tensors of a file without a head have no prefix.
  const bool hasNoPrefix = model.GetConfig().input == InputKind::Images &&
                           model.GetFiles().GetTensors().count("embeddings.cls_token") != 0;
  NaiveModel naive(nlohmann::json::parse(file),
    atlas::test::CopyTensors(model.GetFiles().GetTensors()), hasNoPrefix ? "-" : "");
  const ModelOracle oracle(path / "expected.safetensors");
  Reference reference;
  reference.input = oracle.Input();
  RunAll(naive, reference);
  if (model.GetConfig().embeddingDimension > 0)
  {
    // Its last hidden state is projected in the original code and not here; logits are compared.
    EXPECT_EQ(reference.runs[0].hidden.back().cols(), 48);
  }
  Comparison(RecordVariant(model, reference.input), reference).Expect(this->GetParam());
}

}
