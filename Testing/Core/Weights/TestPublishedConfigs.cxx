// Configurations with all the names and values that published models have, also those that the
// original code does not read.

#include "Weights/TransformerConfig.h"

#include "ExpectMembers.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

/// A published file. No setting of it may be unknown, but for one that names code.
TransformerConfig Published(const char* text)
{
  TransformerConfig config = ParseTransformerConfig(text, "config.json");
  EXPECT_THAT(config.unknownSettings, Each("auto_map"));
  return config;
}

/// The number of layers with a window.
std::int64_t Sliding(const TransformerConfig& config)
{
  return std::count_if(
    config.windows.begin(), config.windows.end(), [](std::int64_t window) { return window > 0; });
}

TEST(PublishedConfig, OfOlmo2Opens) // 7B
{
  const TransformerConfig config = Published(R"({
    "architectures": ["Olmo2ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "eos_token_id": 100257, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
    "intermediate_size": 11008, "max_position_embeddings": 4096, "model_type": "olmo2",
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
    "pad_token_id": 100277, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 500000,
    "tie_word_embeddings": false, "torch_dtype": "float32", "transformers_version": "4.47.0.dev0",
    "use_cache": false, "vocab_size": 100352})");
  ExpectMembers(config,
    "architecture=olmo2 layers=32 heads=32 keyHeads=32 headDimension=128 modelDimension=4096 "
    "mlpDimension=11008 vocabulary=100352 positions=4096 rotaryBase=500000 tiedUnembedding=0");
  EXPECT_EQ(config.queryKeyNorm, QueryKeyNorm::Together);
  EXPECT_EQ(config.normPlace, NormPlace::AfterOutput);
}

TEST(PublishedConfig, OfGraniteOpens) // 3.1 2B
{
  const TransformerConfig config = Published(R"({
    "architectures": ["GraniteForCausalLM"], "attention_bias": false, "attention_dropout": 0.1,
    "attention_multiplier": 0.015625, "bos_token_id": 0, "embedding_multiplier": 12.0,
    "eos_token_id": 0, "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02,
    "intermediate_size": 8192, "logits_scaling": 8.0, "max_position_embeddings": 131072,
    "mlp_bias": false, "model_type": "granite", "num_attention_heads": 32,
    "num_hidden_layers": 40, "num_key_value_heads": 8, "pad_token_id": 0,
    "residual_multiplier": 0.22, "rms_norm_eps": 1e-05, "rope_scaling": null,
    "rope_theta": 5000000.0, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
    "transformers_version": "4.47.0.dev0", "use_cache": true, "vocab_size": 49155})");
  ExpectMembers(config,
    "architecture=granite layers=40 heads=32 keyHeads=8 headDimension=64 modelDimension=2048 "
    "mlpDimension=8192 vocabulary=49155 positions=131072 rotaryBase=5000000 tiedUnembedding=1");
  EXPECT_DOUBLE_EQ(config.embeddingScale, 12);
  EXPECT_DOUBLE_EQ(config.attentionScale, 64);
  EXPECT_DOUBLE_EQ(config.residualScale, 0.22);
  EXPECT_DOUBLE_EQ(config.logitScale, 1.0 / 8);
}

TEST(PublishedConfig, OfCommandROpens) // R7B
{
  const TransformerConfig config = Published(R"({
    "architectures": ["Cohere2ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "bos_token_id": 5, "cache_implementation": "hybrid", "eos_token_id": 255001, "head_dim": 128,
    "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
    "intermediate_size": 14336, "layer_norm_eps": 1e-05, "layer_switch": 4, "logit_scale": 0.25,
    "max_position_embeddings": 132096, "model_type": "cohere2", "num_attention_heads": 32,
    "num_hidden_layers": 32, "num_key_value_heads": 8,
    "order_of_interleaved_layers": "local_attn_first", "pad_token_id": 0,
    "position_embedding_type": "rope_gptj", "rope_scaling": null, "rope_theta": 50000,
    "rotary_pct": 1.0, "sliding_window": 4096, "sliding_window_pattern": 4,
    "torch_dtype": "bfloat16", "transformers_version": "4.48.0.dev0", "use_cache": true,
    "use_embedding_sharing": true, "use_gated_activation": true, "use_parallel_block": true,
    "use_parallel_embedding": false, "vocab_size": 256000})");
  ExpectMembers(config,
    "architecture=cohere2 layers=32 heads=32 keyHeads=8 headDimension=128 modelDimension=4096 "
    "mlpDimension=14336 vocabulary=256000 positions=132096 rotaryBase=50000 tiedUnembedding=1");
  EXPECT_DOUBLE_EQ(config.logitScale, 0.25);
  EXPECT_EQ(Sliding(config), 24);
  EXPECT_EQ(config.Window(3), 0);
}

TEST(PublishedConfig, OfErnieOpens) // 4.5 0.3B
{
  const TransformerConfig config = Published(R"({
    "architectures": ["Ernie4_5_ForCausalLM"],
    "auto_map": {"AutoConfig": "configuration_ernie4_5.Ernie4_5_Config",
      "AutoModel": "modeling_ernie4_5.Ernie4_5_Model",
      "AutoModelForCausalLM": "modeling_ernie4_5.Ernie4_5_ForCausalLM"},
    "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 1024,
    "intermediate_size": 3072, "max_position_embeddings": 131072, "model_type": "ernie4_5",
    "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 128,
    "num_hidden_layers": 18, "pad_token_id": 0, "rms_norm_eps": 1e-05, "use_cache": false,
    "vocab_size": 103424, "rope_theta": 500000, "use_bias": false, "tie_word_embeddings": true,
    "torch_dtype": "bfloat16"})");
  ExpectMembers(config,
    "architecture=ernie4_5 layers=18 heads=16 keyHeads=2 headDimension=128 modelDimension=1024 "
    "mlpDimension=3072 vocabulary=103424 positions=131072 rotaryBase=500000 tiedUnembedding=1 "
    "inputBias=0");
  EXPECT_THAT(config.unknownSettings, ElementsAre("auto_map"));
}

TEST(PublishedConfig, OfModernBertOpens) // base
{
  const TransformerConfig config = Published(R"({
    "architectures": ["ModernBertForMaskedLM"], "attention_bias": false,
    "attention_dropout": 0.0, "bos_token_id": 50281, "classifier_activation": "gelu",
    "classifier_bias": false, "classifier_dropout": 0.0, "classifier_pooling": "mean",
    "cls_token_id": 50281, "decoder_bias": true, "deterministic_flash_attn": false,
    "embedding_dropout": 0.0, "eos_token_id": 50282, "global_attn_every_n_layers": 3,
    "global_rope_theta": 160000.0, "gradient_checkpointing": false, "hidden_activation": "gelu",
    "hidden_size": 768, "initializer_cutoff_factor": 2.0, "initializer_range": 0.02,
    "intermediate_size": 1152, "layer_norm_eps": 1e-05, "local_attention": 128,
    "local_rope_theta": 10000.0, "max_position_embeddings": 8192, "mlp_bias": false,
    "mlp_dropout": 0.0, "model_type": "modernbert", "norm_bias": false, "norm_eps": 1e-05,
    "num_attention_heads": 12, "num_hidden_layers": 22, "pad_token_id": 50283,
    "position_embedding_type": "absolute", "sep_token_id": 50282, "tie_word_embeddings": true,
    "torch_dtype": "float32", "transformers_version": "4.47.0.dev0", "vocab_size": 50368})");
  ExpectMembers(config,
    "architecture=modernbert layers=22 heads=12 keyHeads=12 headDimension=64 modelDimension=768 "
    "mlpDimension=1152 vocabulary=50368 positions=8192 rotaryBase=160000");
  EXPECT_EQ(config.windowRotaryBase, 10000);
  EXPECT_EQ(Sliding(config), 14);
  EXPECT_EQ(config.Window(0), 0);
  EXPECT_EQ(config.Window(1), 65); // 64 to both sides
}

TEST(PublishedConfig, OfNemotronOpens) // Minitron 4B
{
  const TransformerConfig config = Published(R"({
    "architectures": ["NemotronForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "bos_token_id": 2, "eos_token_id": 3, "head_dim": 128, "hidden_act": "relu2",
    "hidden_size": 3072, "initializer_range": 0.0134, "intermediate_size": 9216,
    "max_position_embeddings": 4096, "mlp_bias": false, "model_type": "nemotron",
    "norm_eps": 1e-05, "num_attention_heads": 24, "num_hidden_layers": 32,
    "num_key_value_heads": 8, "partial_rotary_factor": 0.5, "rope_theta": 10000.0,
    "tie_word_embeddings": false, "torch_dtype": "bfloat16",
    "transformers_version": "4.32.0.dev0", "use_cache": true, "vocab_size": 256000})");
  ExpectMembers(config,
    "architecture=nemotron layers=32 heads=24 keyHeads=8 headDimension=128 modelDimension=3072 "
    "mlpDimension=9216 vocabulary=256000 positions=4096 gated=0");
  EXPECT_EQ(config.rotaryDimension, 64);
  EXPECT_EQ(config.activation, Activation::SquaredRelu);
}

}
