// Options of architectures that no model of Testing/Oracle has.

#include "ModelOracle.h"
#include "ModelsOracle.h"
#include "NaiveKin.h"
#include "PartParity.h"
#include "Run/RecordTransformer.h"
#include "TestName.h"
#include "TransformerOracle.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;

namespace
{

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

/// Settings of small models, as Hugging Face writes them: what most decoders of text have.
const std::string CommonSettings = R"({"hidden_size": 24, "intermediate_size": 40,
  "max_position_embeddings": 64, "num_attention_heads": 4, "num_hidden_layers": 2,
  "vocab_size": 31})";

/// Beside these, and by their model_type.
const std::map<std::string, std::string> Decoders = {
  { "llama", R"({"architectures": ["LlamaForCausalLM"], "hidden_act": "silu",
    "num_key_value_heads": 2, "rms_norm_eps": 1e-05, "rope_theta": 10000.0})" },
  { "mistral", R"({"architectures": ["MistralForCausalLM"], "head_dim": null,
    "num_key_value_heads": 2, "rms_norm_eps": 1e-05, "sliding_window": null})" },
  { "qwen2", R"({"architectures": ["Qwen2ForCausalLM"], "max_window_layers": 2,
    "num_hidden_layers": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "sliding_window": 5,
    "use_sliding_window": true})" },
  { "qwen3", R"({"architectures": ["Qwen3ForCausalLM"], "max_window_layers": 1, "head_dim": 10,
    "num_hidden_layers": 3, "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "sliding_window": 5,
    "use_sliding_window": true})" },
  { "gemma", R"({"architectures": ["GemmaForCausalLM"], "hidden_act": "gelu",
    "hidden_activation": null, "head_dim": 10, "num_key_value_heads": 1})" },
  { "gemma2", R"({"architectures": ["Gemma2ForCausalLM"],
    "hidden_activation": "gelu_pytorch_tanh", "head_dim": 10, "num_hidden_layers": 3,
    "num_key_value_heads": 2, "query_pre_attn_scalar": 12, "sliding_window": 5})" },
  { "gemma3_text", R"({"architectures": ["Gemma3ForCausalLM"], "head_dim": 10,
    "num_hidden_layers": 4, "num_key_value_heads": 2, "query_pre_attn_scalar": 12,
    "sliding_window": 5, "sliding_window_pattern": 2, "rope_scaling": {"factor": 8.0,
    "rope_type": "linear"}})" },
  { "gpt_oss", R"({"architectures": ["GptOssForCausalLM"], "attention_bias": true, "head_dim": 10,
    "intermediate_size": 20, "max_position_embeddings": 128, "num_experts_per_tok": 2,
    "num_hidden_layers": 3, "num_key_value_heads": 2, "num_local_experts": 5,
    "rms_norm_eps": 1e-05, "rope_scaling": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0,
    "original_max_position_embeddings": 64, "rope_type": "yarn", "truncate": false},
    "rope_theta": 150000.0, "sliding_window": 5, "swiglu_limit": 7.0})" },
  { "olmo", R"({"architectures": ["OlmoForCausalLM"], "hidden_act": "silu",
    "num_key_value_heads": 4, "clip_qkv": null, "rope_theta": 10000.0,
    "tie_word_embeddings": false})" },
  { "phi3", R"({"architectures": ["Phi3ForCausalLM"], "num_attention_heads": 3,
    "num_key_value_heads": 1, "original_max_position_embeddings": 10,
    "rope_scaling": {"type": "longrope", "long_factor": [1.0, 2.1, 3.2, 4.3],
    "short_factor": [1.0, 1.1, 1.2, 1.3]}, "sliding_window": null})" },
  { "phi", R"({"architectures": ["PhiForCausalLM"], "hidden_act": "gelu_new", "hidden_size": 32,
    "layer_norm_eps": 1e-05, "num_key_value_heads": null, "partial_rotary_factor": 0.5,
    "qk_layernorm": false, "rope_scaling": null, "rope_theta": 10000.0,
    "tie_word_embeddings": false})" },
  { "stablelm", R"({"architectures": ["StableLmForCausalLM"], "hidden_act": "silu",
    "hidden_size": 32, "layer_norm_eps": 1e-05, "num_key_value_heads": 2,
    "partial_rotary_factor": 0.25, "qk_layernorm": false, "rope_theta": 10000,
    "tie_word_embeddings": false, "use_parallel_residual": false, "use_qkv_bias": false})" },
  { "gpt_neox", R"({"architectures": ["GPTNeoXForCausalLM"], "attention_bias": true,
    "hidden_act": "gelu", "hidden_size": 32, "layer_norm_eps": 1e-05, "rotary_emb_base": 10000,
    "rotary_pct": 0.25, "tie_word_embeddings": false, "use_parallel_residual": true})" },
  { "roberta", R"({"architectures": ["RobertaForMaskedLM"], "hidden_act": "gelu",
    "layer_norm_eps": 1e-05, "max_position_embeddings": 40, "pad_token_id": 1,
    "type_vocab_size": 1})" },
  { "clip_text_model", R"({"architectures": ["CLIPTextModel"], "hidden_act": "quick_gelu",
    "max_position_embeddings": 40})" },
  { "olmo2", R"({"num_key_value_heads": 2, "rms_norm_eps": 1e-05})" },
  { "olmo3", R"({"num_hidden_layers": 5, "num_key_value_heads": 2, "sliding_window": 5,
    "rope_theta": 500000.0})" },
  { "exaone4", R"({"num_hidden_layers": 5, "num_key_value_heads": 2, "sliding_window": 5})" },
  { "smollm3", R"({"num_hidden_layers": 5, "num_key_value_heads": 2, "rope_theta": 2000000.0})" },
  { "granite", R"({"attention_multiplier": 0.3, "embedding_multiplier": 2.5,
    "logits_scaling": 1.7, "num_key_value_heads": 2, "residual_multiplier": 0.4})" },
  { "granite_swa", R"({"num_hidden_layers": 5, "num_key_value_heads": 2, "sliding_window": 5,
    "attention_multiplier": 0.4, "residual_multiplier": 0.7})" },
  { "cohere", R"({"num_key_value_heads": 2, "rope_theta": 500000.0})" },
  { "cohere2", R"({"num_hidden_layers": 5, "num_key_value_heads": 2, "sliding_window": 5})" },
  { "glm", R"({"hidden_size": 32, "head_dim": 8, "num_key_value_heads": 2})" },
  { "glm4", R"({"hidden_size": 32, "head_dim": 12, "num_key_value_heads": 2})" },
  { "nemotron", R"({"hidden_size": 32, "num_key_value_heads": 2})" },
  { "starcoder2", R"({"num_key_value_heads": 2})" },
  { "falcon", R"({"intermediate_size": null})" },
  { "ministral", R"({"num_key_value_heads": 2, "num_hidden_layers": 3, "sliding_window": 5})" },
  { "ministral3", R"({"head_dim": 8, "num_key_value_heads": 2, "rope_parameters": {
    "beta_fast": 32.0, "beta_slow": 1.0, "factor": 16.0, "llama_4_scaling_beta": 0.3,
    "max_position_embeddings": 64, "mscale": 1.0, "mscale_all_dim": 1.0,
    "original_max_position_embeddings": 16, "rope_theta": 1000000.0, "rope_type": "yarn"}})" },
  { "ernie4_5", R"({"head_dim": 8, "num_key_value_heads": 2, "rope_theta": 500000.0})" },
  { "arcee", R"({"num_key_value_heads": 2})" },
  { "seed_oss", R"({"head_dim": 8, "num_key_value_heads": 2})" },
  { "hunyuan_v1_dense", R"({"num_key_value_heads": 2})" },
  { "apertus", R"({"num_key_value_heads": 2, "rope_parameters": {"rope_theta": 12000000.0,
    "rope_type": "default"}})" },
  { "vaultgemma", R"({"head_dim": 10, "num_hidden_layers": 3, "num_key_value_heads": 2,
    "query_pre_attn_scalar": 12, "sliding_window": 5})" },
  { "bitnet", R"({"num_key_value_heads": 2, "rope_theta": 500000.0})" },
  { "modernbert-decoder", R"({"num_hidden_layers": 4, "local_attention": 10})" },
  { "helium", R"({"head_dim": 6, "num_key_value_heads": 2, "rope_theta": 100000.0})" },
  { "biogpt", R"({"hidden_act": "gelu"})" },
};

/// All settings, by their model_type.
const std::map<std::string, std::string> Others = {
  { "gptj", R"({"architectures": ["GPTJForCausalLM"], "activation_function": "gelu_new",
    "layer_norm_epsilon": 1e-05, "n_embd": 32, "n_head": 4, "n_inner": null, "n_layer": 2,
    "n_positions": 64, "rotary_dim": 4, "tie_word_embeddings": false, "vocab_size": 31})" },
  { "gpt_neo", R"({"architectures": ["GPTNeoForCausalLM"], "activation_function": "gelu_new",
    "attention_types": [[["global", "local"], 2]], "hidden_size": 24, "intermediate_size": null,
    "layer_norm_epsilon": 1e-05, "max_position_embeddings": 64, "num_heads": 4, "num_layers": 4,
    "vocab_size": 31, "window_size": 5})" },
  { "opt", R"({"architectures": ["OPTForCausalLM"], "_remove_final_layer_norm": false,
    "activation_function": "relu", "do_layer_norm_before": true, "ffn_dim": 40, "hidden_size": 24,
    "max_position_embeddings": 64, "num_attention_heads": 4, "num_hidden_layers": 2,
    "pad_token_id": 1, "vocab_size": 31, "word_embed_proj_dim": 24})" },
  { "distilbert", R"({"architectures": ["DistilBertForMaskedLM"], "activation": "gelu", "dim": 24,
    "hidden_dim": 40, "max_position_embeddings": 40, "n_heads": 4, "n_layers": 2,
    "pad_token_id": 0, "vocab_size": 31})" },
  { "deit", R"({"architectures": ["DeiTModel"], "hidden_act": "gelu", "hidden_size": 24,
    "image_size": 24, "intermediate_size": 40, "layer_norm_eps": 1e-12, "num_attention_heads": 4,
    "num_channels": 3, "num_hidden_layers": 2, "patch_size": 8, "qkv_bias": true})" },
  { "dinov2", R"({"architectures": ["Dinov2Model"], "hidden_act": "gelu", "hidden_size": 24,
    "image_size": 24, "layer_norm_eps": 1e-06, "layerscale_value": 1.0, "mlp_ratio": 4,
    "num_attention_heads": 4, "num_channels": 3, "num_hidden_layers": 2, "patch_size": 8,
    "qkv_bias": true, "use_swiglu_ffn": false})" },
  { "clip_vision_model", R"({"architectures": ["CLIPVisionModel"], "hidden_size": 24,
    "hidden_act": "quick_gelu", "image_size": 24, "intermediate_size": 40,
    "num_attention_heads": 4, "num_channels": 3, "num_hidden_layers": 2, "patch_size": 8})" },
  { "mpt", R"({"attn_config": {"alibi": true, "attn_type": "multihead_attention"}, "d_model": 24,
    "max_seq_len": 64, "n_heads": 4, "n_layers": 2, "vocab_size": 31})" },
  { "gpt_bigcode", R"({"activation_function": "gelu_pytorch_tanh", "multi_query": true,
    "n_embd": 24, "n_head": 4, "n_inner": null, "n_layer": 2, "n_positions": 64,
    "vocab_size": 31})" },
  { "openai-gpt", R"({"afn": "gelu", "n_embd": 24, "n_head": 4, "n_layer": 2, "n_positions": 64,
    "vocab_size": 31})" },
  { "xglm", R"({"activation_function": "gelu", "attention_heads": 4, "d_model": 24, "ffn_dim": 40,
    "max_position_embeddings": 64, "num_layers": 2, "pad_token_id": 1, "vocab_size": 31})" },
  { "codegen", R"({"n_embd": 64, "n_head": 8, "n_layer": 2, "n_positions": 64, "rotary_dim": 6,
    "tie_word_embeddings": false, "vocab_size": 31})" },
};

const std::vector<Variant> Variants = { { "olmo2", "olmo2" },
  { "olmo2_bias", "olmo2", R"({"attention_bias": true,
     "num_key_value_heads": null, "tie_word_embeddings": true})" },
  { "olmo2_llama3", "olmo2", R"({"rope_scaling": {"rope_type": "llama3", "factor": 8.0,
     "original_max_position_embeddings": 32}})" },
  { "olmo3", "olmo3" }, { "olmo3_no_window", "olmo3", R"({"sliding_window": null})" },
  { "olmo3_layer_types", "olmo3", R"({"num_hidden_layers": 3, "layer_types": ["full_attention",
     "sliding_attention", "full_attention"]})" },
  { "olmo3_yarn", "olmo3", R"({"rope_scaling": {"rope_type": "yarn", "factor": 4.0,
     "attention_factor": 1.2, "original_max_position_embeddings": 16}})" },
  { "olmo3_parameters", "olmo3", R"({"rope_theta": null, "rope_parameters": {
     "full_attention": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 3000.0,
       "original_max_position_embeddings": 16},
     "sliding_attention": {"rope_type": "default", "rope_theta": 700.0}}})" },
  { "exaone4", "exaone4" }, { "exaone4_no_window", "exaone4", R"({"sliding_window": null})" },
  { "exaone4_pattern", "exaone4", R"({"sliding_window_pattern": 2, "head_dim": 8,
     "tie_word_embeddings": true})" },
  { "exaone4_layer_types", "exaone4", R"({"num_hidden_layers": 2, "layer_types":
     ["full_attention", "sliding_attention"]})" },
  { "smollm3", "smollm3" }, { "smollm3_interval", "smollm3", R"({"no_rope_layer_interval": 2,
     "attention_bias": true, "mlp_bias": true})" },
  { "smollm3_list", "smollm3", R"({"no_rope_layers": [0, 1, 1, 0, 1],
     "tie_word_embeddings": false})" },
  { "smollm3_windows", "smollm3", R"({"use_sliding_window": true, "sliding_window": 5,
     "no_rope_layers": [0, 1, 1, 0, 1]})" },
  { "smollm3_layer_types", "smollm3", R"({"use_sliding_window": true, "sliding_window": 5,
     "layer_types": ["full_attention", "sliding_attention", "full_attention",
       "sliding_attention", "sliding_attention"]})" },
  { "granite", "granite" }, { "granite_bias", "granite", R"({"attention_bias": true,
     "mlp_bias": true, "tie_word_embeddings": true, "head_dim": 8})" },
  { "granite_swa", "granite_swa" },
  { "granite_swa_thetas", "granite_swa", R"({"layer_rope_theta": [0, 500, 10000, 0.0, 500],
     "logits_scaling": 3.0, "embedding_multiplier": 1.5})" },
  { "granite_swa_layer_types", "granite_swa", R"({"num_hidden_layers": 2, "layer_types":
     ["sliding_attention", "full_attention"], "attention_bias": true,
     "tie_word_embeddings": false})" },
  { "cohere", "cohere" }, { "cohere_norms", "cohere", R"({"use_qk_norm": true,
     "logit_scale": 0.5})" },
  { "cohere_bias", "cohere", R"({"attention_bias": true, "num_key_value_heads": null,
     "tie_word_embeddings": false})" },
  { "cohere2", "cohere2" }, { "cohere2_pattern", "cohere2", R"({"sliding_window_pattern": 2,
     "attention_bias": true})" },
  { "cohere2_layer_types", "cohere2", R"({"num_hidden_layers": 2, "layer_types":
     ["sliding_attention", "full_attention"], "tie_word_embeddings": false})" },
  { "glm", "glm" }, { "glm_no_bias", "glm", R"({"attention_bias": false,
     "partial_rotary_factor": 0.25, "tie_word_embeddings": true})" },
  { "glm_parameters", "glm", R"({"rope_parameters": {"rope_type": "default",
     "rope_theta": 500.0, "partial_rotary_factor": 1.0}})" },
  { "glm4", "glm4" }, { "glm4_no_bias", "glm4", R"({"attention_bias": false})" },
  { "nemotron", "nemotron" }, { "nemotron_bias", "nemotron", R"({"attention_bias": true,
     "mlp_bias": true, "head_dim": 12, "hidden_act": "silu", "partial_rotary_factor": 1.0,
     "tie_word_embeddings": true})" },
  { "starcoder2", "starcoder2" }, { "starcoder2_no_bias", "starcoder2", R"({"use_bias": false,
     "sliding_window": 5, "hidden_act": "relu", "tie_word_embeddings": false})" },
  { "falcon", "falcon" }, { "falcon_bias", "falcon", R"({"bias": true, "ffn_hidden_size": 40,
     "activation": "relu", "tie_word_embeddings": false})" },
  { "falcon_new", "falcon", R"({"new_decoder_architecture": true, "num_kv_heads": 2})" },
  { "falcon_new_all", "falcon", R"({"new_decoder_architecture": true, "bias": true})" },
  { "falcon_new_one_norm", "falcon", R"({"new_decoder_architecture": true, "num_kv_heads": 2,
     "num_ln_in_parallel_attn": 1})" },
  { "falcon_sequential", "falcon", R"({"parallel_attn": false, "multi_query": false})" },
  { "falcon_alibi", "falcon", R"({"alibi": true, "parallel_attn": false, "multi_query": false,
     "bias": true})" },
  { "falcon_alibi_one_key", "falcon", R"({"alibi": true})" }, { "mpt", "mpt" },
  { "mpt_clip", "mpt", R"({"attn_config": {"clip_qkv": 0.8,
     "softmax_scale": 0.3}, "tie_word_embeddings": false})" },
  { "gpt_bigcode", "gpt_bigcode" },
  { "gpt_bigcode_heads", "gpt_bigcode",
    R"({"multi_query": false, "n_inner": 40, "scale_attn_weights": false,
     "tie_word_embeddings": false})" },
  { "openai_gpt", "openai-gpt" }, { "openai_gpt_relu", "openai-gpt", R"({"afn": "relu",
     "tie_word_embeddings": false})" },
  { "ministral", "ministral" }, { "ministral_layer_types", "ministral", R"({"head_dim": 8,
     "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]})" },
  { "ministral_no_window", "ministral", R"({"sliding_window": null,
     "tie_word_embeddings": true})" },
  { "ministral3", "ministral3" }, { "ministral3_window", "ministral3", R"({"sliding_window": 5,
     "tie_word_embeddings": true})" },
  { "ernie4_5", "ernie4_5" }, { "ernie4_5_bias", "ernie4_5", R"({"use_bias": true,
     "tie_word_embeddings": false})" },
  { "ernie4_5_wide", "ernie4_5", R"({"head_dim": null})" }, { "arcee", "arcee" },
  { "arcee_bias", "arcee", R"({"attention_bias": true, "mlp_bias": true, "head_dim": 8,
     "hidden_act": "gelu", "tie_word_embeddings": true})" },
  { "seed_oss", "seed_oss" }, { "seed_oss_bias", "seed_oss", R"({"attention_bias": false,
     "attention_out_bias": true, "mlp_bias": true, "tie_word_embeddings": true})" },
  { "hunyuan", "hunyuan_v1_dense" },
  { "hunyuan_bias", "hunyuan_v1_dense",
    R"({"attention_bias": true, "head_dim": 8, "tie_word_embeddings": true})" },
  { "hunyuan_alpha", "hunyuan_v1_dense", R"({"rope_scaling": {"alpha": 1000.0,
     "beta_fast": 32, "beta_slow": 1, "factor": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
     "type": "dynamic"}})" },
  { "apertus", "apertus" }, { "apertus_bias", "apertus", R"({"attention_bias": true,
     "hidden_act": "silu", "tie_word_embeddings": true})" },
  { "vaultgemma", "vaultgemma" },
  { "vaultgemma_no_caps", "vaultgemma",
    R"({"attn_logit_softcapping": null, "final_logit_softcapping": null,
     "attention_bias": true, "layer_types": ["full_attention", "sliding_attention",
       "full_attention"]})" },
  { "bitnet", "bitnet" }, { "bitnet_bias", "bitnet", R"({"attention_bias": true,
     "hidden_act": "silu", "tie_word_embeddings": true})" },
  { "modernbert_decoder", "modernbert-decoder" },
  { "modernbert_decoder_all", "modernbert-decoder", R"({"attention_bias": true,
     "mlp_bias": true, "norm_bias": true, "classifier_bias": true, "decoder_bias": false,
     "classifier_activation": "relu", "hidden_activation": "silu",
     "global_attn_every_n_layers": 2, "tie_word_embeddings": false})" },
  { "modernbert_decoder_old", "modernbert-decoder", R"({"global_rope_theta": 3000.0,
     "local_rope_theta": 700.0, "layer_types": ["sliding_attention", "full_attention",
       "sliding_attention", "full_attention"]})" },
  { "helium", "helium" }, { "helium_bias", "helium", R"({"attention_bias": true,
     "mlp_bias": true, "tie_word_embeddings": true})" },
  { "xglm", "xglm" }, { "xglm_unscaled", "xglm", R"({"scale_embedding": false})" },
  { "codegen", "codegen" }, { "biogpt", "biogpt" },
  { "biogpt_unscaled", "biogpt", R"({"scale_embedding": false,
     "tie_word_embeddings": false})" },
  { "phi", "phi" }, { "phi_grouped", "phi", R"({"num_key_value_heads": 2})" },
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
     "original_max_position_embeddings": 10, "long_factor": [1.0, 2.1, 3.2],
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

void RunAll(NaiveKin& model, Reference& reference)
{
  for (const std::vector<std::int64_t>& ids : reference.input.tokens)
  {
    reference.runs.push_back(model.RunKnownText(ids));
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

/// What the reference computed of one sequence, with the names of the original code's tensors.
Tensors TensorsOf(const NaiveModel::Run& run)
{
  Tensors tensors;
  const auto add = [&](const std::string& name, const std::vector<NaiveModel::Rows>& heads)
  {
    std::vector<double> values;
    for (const NaiveModel::Rows& rows : heads)
    {
      values.insert(values.end(), rows.data(), rows.data() + rows.size());
    }
    const auto count = static_cast<std::int64_t>(heads.size());
    tensors[name] = Tensor::FromDouble(
      DType::F64, { 1, count, heads.front().rows(), heads.front().cols() }, values);
  };
  for (std::size_t l = 0; l < run.layers.size(); ++l)
  {
    const std::string prefix = "layer." + std::to_string(l) + ".";
    add(prefix + "query", run.layers[l].query);
    add(prefix + "key", run.layers[l].key);
    add(prefix + "scores", run.layers[l].scores);
    add(prefix + "attention", run.layers[l].attention);
    add(prefix + "head_output", run.layers[l].output);
  }
  for (std::size_t l = 0; l < run.hidden.size(); ++l)
  {
    add("hidden." + std::to_string(l), { run.hidden[l] });
  }
  if (run.logits.size() != 0)
  {
    add("logits", { run.logits });
  }
  return tensors;
}

void ExpectReference(const std::string& name, const Recording& found, const Reference& expected)
{
  std::map<std::string, double> deviations;
  double scoreScale = 1; // without a scale (GPT-Neo) scores are large
  for (std::size_t s = 0; s < expected.runs.size(); ++s)
  {
    const NaiveModel::Run& run = expected.runs[s];
    ASSERT_EQ(found.layers.size(), run.layers.size());
    ASSERT_EQ(found.residual.size(), run.hidden.size());
    ASSERT_EQ(found.SequenceLength(static_cast<std::int64_t>(s)), run.hidden[0].rows());
    ExpectedPlaces places;
    for (std::int64_t t = 0; t < run.hidden[0].rows(); ++t)
    {
      places.push_back({ found.sequenceOffsets[s] + t, 0, t });
    }
    const Tensors tensors = TensorsOf(run);
    const TensorViews views = ViewsOf(tensors);
    const PartParity parity = { found, views, "", places, places };
    for (const auto& [quantity, deviation] : parity.Deviations())
    {
      Raise(deviations[quantity], deviation);
    }
    ASSERT_EQ(found.logits.IsRecorded(), parity.Has("logits"));
    if (found.logits.IsRecorded())
    {
      Raise(deviations["logits"], parity.Deviation("logits", found.logits, places));
    }
    for (const NaiveModel::Layer& layer : run.layers)
    {
      for (const NaiveModel::Rows& scores : layer.scores)
      {
        scoreScale = std::max(scoreScale, scores.cwiseAbs().maxCoeff() / 16);
      }
    }
  }
  EXPECT_EQ(NamesOf(deviations), found.logits.IsRecorded()
                                   ? "attention hidden key logits outputs query scores"
                                   : "attention hidden key outputs query scores");
  ExpectSmall(name, deviations, scoreScale);
}

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
  return { ParseTransformerConfig(config, "config.json"),
    WeightFiles(ViewsOf(weights), "variant") };
}

nlohmann::json ConfigOf(const Variant& variant)
{
  const auto decoder = Decoders.find(variant.family);
  const bool isDecoder = decoder != Decoders.end();
  nlohmann::json config = isDecoder ? nlohmann::json::parse(CommonSettings) : nlohmann::json();
  config["model_type"] = variant.family;
  config.update(nlohmann::json::parse(isDecoder ? decoder->second : Others.at(variant.family)));
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
  NaiveKin naive(config, {}, this->GetParam().base);
  Reference reference;
  reference.input = MakeInput(config);
  RunAll(naive, reference);
  const Transformer model = MakeModel(naive.GetWeights(), config.dump());
  ExpectReference(this->GetParam().name, RecordVariant(model, reference.input), reference);
}

/// As files of Gemma 3 with pictures have it: the text model is a part.
void ExpectNestedGemma(const std::string& base, const std::string& rest, bool hasHead)
{
  nlohmann::json text = ConfigOf({ "", "gemma3_text" });
  text.erase("architectures");
  text["tie_word_embeddings"] = true;
  NaiveKin naive(text, {}, base);
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
  // As if the architecture gemma3_text were chosen.
  const nlohmann::json config = { { "architectures", { "Gemma3ForConditionalGeneration" } },
    { "model_type", "gemma3_text" }, { "mm_tokens_per_image", 256 }, { "text_config", text },
    { "vision_config",
      { { "hidden_size", 8 }, { "image_size", 28 }, { "model_type", "siglip_vision_model" },
        { "num_attention_heads", 2 }, { "num_hidden_layers", 1 }, { "patch_size", 14 } } } };
  const Transformer model = MakeModel(weights, config.dump());
  ExpectReference("gemma3 in " + base, RecordVariant(model, reference.input), reference);
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

std::vector<std::string> ReferenceNames()
{
  std::vector<std::string> names = { "deit", "dinov2", "distilbert", "gemma2", "gemma3-v5",
    "gpt_neox", "gpt_oss", "gptj", "olmo", "opt-proj", "phi3-longrope", "qwen2-tied", "qwen3-v5" };
  for (const char* name : { "clip-text", "clip-vision", "gemma", "gemma3", "gpt_neo",
         "gpt_neox-seq", "llama-linear", "llama-yarn", "llama3", "mistral", "mistral-window", "opt",
         "phi", "phi3", "qwen2", "qwen3", "roberta-mlm", "stablelm" })
  {
    if (!ModelsOracle("transformers/" + std::string(name)).empty()) // too large for this repository
    {
      names.emplace_back(name);
    }
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(, NaiveReference, testing::ValuesIn(ReferenceNames()),
  [](const auto& model) { return TestName(model.param); });

TEST_P(NaiveReference, IsTheOriginalCode)
{
  const std::filesystem::path path = ModelsOracle("transformers/" + this->GetParam());
  std::ifstream file(path / ConfigFile);
  const Transformer model = Transformer::Read(path);
  // The tensors of a file without a head have no prefix.
  const bool hasNoPrefix = model.GetConfig().input == InputKind::Images &&
                           model.GetFiles().GetTensors().count("embeddings.cls_token") != 0;
  NaiveKin naive(nlohmann::json::parse(file),
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
  ExpectReference(this->GetParam(), RecordVariant(model, reference.input), reference);
}

}
