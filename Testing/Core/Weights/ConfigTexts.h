#pragma once

#include "Weights/TransformerConfig.h"

#include <string>

namespace atlas::test
{

inline TransformerConfig ParseConfig(const std::string& text)
{
  return ParseTransformerConfig(text, "some/config.json");
}

/// The settings of a model of this type, followed by those that a test adds or overrides: if a name
/// occurs twice, the last one counts. Most types have these names.
inline std::string Decoder(const std::string& type, const std::string& more = "")
{
  return R"({"model_type": ")" + type +
         R"(", "hidden_size": 12, "num_attention_heads": 6, "num_hidden_layers": 2,
    "intermediate_size": 20, "vocab_size": 7)" +
         more + "}";
}

inline std::string Llama(const std::string& more = "")
{
  return Decoder("llama", more);
}

inline std::string Gpt2(const std::string& more = "")
{
  return R"({"model_type": "gpt2", "n_embd": 12, "n_head": 3, "n_layer": 2, "vocab_size": 7)" +
         more + "}";
}

inline std::string Vit(const std::string& more = "")
{
  return R"({"model_type": "vit", "hidden_size": 12, "num_attention_heads": 3,
    "num_hidden_layers": 2)" +
         more + "}";
}

inline std::string DeepSeek(const std::string& more = "")
{
  return Decoder("deepseek_v2",
    R"(, "kv_lora_rank": 5, "q_lora_rank": null,
    "qk_nope_head_dim": 4, "qk_rope_head_dim": 2, "n_routed_experts": 8, "num_experts_per_tok": 3,
    "moe_intermediate_size": 10, "n_shared_experts": 2, "first_k_dense_replace": 1)" +
      (more.find("v_head_dim") == std::string::npos ? R"(, "v_head_dim": 3)" + more : more));
}

inline std::string T5(const std::string& more = "")
{
  return R"({"model_type": "t5", "d_model": 12, "d_kv": 5, "d_ff": 20, "num_heads": 3,
    "num_layers": 2, "vocab_size": 7)" +
         more + "}";
}

/// A model with the setting names of BART.
inline std::string EncoderDecoder(const std::string& type, const std::string& more = "")
{
  return R"({"model_type": ")" + type +
         R"(", "d_model": 12, "encoder_layers": 2, "encoder_attention_heads": 3,
    "decoder_layers": 4, "decoder_attention_heads": 6, "decoder_ffn_dim": 20, "vocab_size": 7)" +
         more + "}";
}

inline std::string Neo(const std::string& more = "")
{
  return R"({"model_type": "gpt_neo", "hidden_size": 12, "num_heads": 3, "num_layers": 2,
    "vocab_size": 7)" +
         more + "}";
}

inline std::string Lens(const std::string& more = "")
{
  return R"({"model_type": "transformer_lens", "d_model": 12, "d_head": 5, "n_heads": 3,
    "n_layers": 2, "d_vocab": 7, "n_ctx": 9, "attn_only": true)" +
         more + "}";
}

}
