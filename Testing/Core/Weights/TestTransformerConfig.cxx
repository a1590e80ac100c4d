#include "TransformerConfig.h"

#include "Error.h"
#include "ErrorMessage.h"
#include "TemporaryDirectory.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

TransformerConfig Parse(const std::string& text)
{
  return ParseTransformerConfig(text, "some/config.json");
}

/// The settings of a model, followed by those that a test adds or overrides: if a name occurs
/// twice, the last one counts.
std::string Gpt2(const std::string& more = "")
{
  return R"({"model_type": "gpt2", "n_embd": 12, "n_head": 3, "n_layer": 2, "vocab_size": 7)" +
         more + "}";
}

std::string Bert(const std::string& more = "")
{
  return R"({"model_type": "bert", "hidden_size": 12, "num_attention_heads": 3,
    "num_hidden_layers": 2, "vocab_size": 7)" +
         more + "}";
}

std::string Vit(const std::string& more = "")
{
  return R"({"model_type": "vit", "hidden_size": 12, "num_attention_heads": 3,
    "num_hidden_layers": 2)" +
         more + "}";
}

std::string Bloom(const std::string& more = "")
{
  return R"({"model_type": "bloom", "hidden_size": 12, "n_head": 3, "n_layer": 2, "vocab_size": 7)" +
         more + "}";
}

std::string Llama(const std::string& more = "")
{
  return R"({"model_type": "llama", "hidden_size": 12, "num_attention_heads": 6,
    "num_hidden_layers": 2, "intermediate_size": 20, "vocab_size": 7)" +
         more + "}";
}

/// A decoder with the setting names of most.
std::string Decoder(const std::string& type, const std::string& more = "")
{
  return R"({"model_type": ")" + type +
         R"(", "hidden_size": 12, "num_attention_heads": 6, "num_hidden_layers": 2,
    "intermediate_size": 20, "vocab_size": 7)" +
         more + "}";
}

std::string DeepSeek(const std::string& more = "")
{
  return Decoder("deepseek_v2",
    R"(, "kv_lora_rank": 5, "q_lora_rank": null,
    "qk_nope_head_dim": 4, "qk_rope_head_dim": 2, "n_routed_experts": 8, "num_experts_per_tok": 3,
    "moe_intermediate_size": 10, "n_shared_experts": 2, "first_k_dense_replace": 1)" +
      (more.find("v_head_dim") == std::string::npos ? R"(, "v_head_dim": 3)" + more : more));
}

std::string T5(const std::string& more = "")
{
  return R"({"model_type": "t5", "d_model": 12, "d_kv": 5, "d_ff": 20, "num_heads": 3,
    "num_layers": 2, "vocab_size": 7)" +
         more + "}";
}

/// A model with the setting names of BART.
std::string Pair(const std::string& type, const std::string& more = "")
{
  return R"({"model_type": ")" + type +
         R"(", "d_model": 12, "encoder_layers": 2, "encoder_attention_heads": 3,
    "decoder_layers": 4, "decoder_attention_heads": 6, "decoder_ffn_dim": 20, "vocab_size": 7)" +
         more + "}";
}

std::string Phi3(const std::string& more = "")
{
  return Decoder("phi3", more);
}

std::string Neo(const std::string& more = "")
{
  return R"({"model_type": "gpt_neo", "hidden_size": 12, "num_heads": 3, "num_layers": 2,
    "vocab_size": 7)" +
         more + "}";
}

std::string Lens(const std::string& more = "")
{
  return R"({"model_type": "transformer_lens", "d_model": 12, "d_head": 5, "n_heads": 3,
    "n_layers": 2, "d_vocab": 7, "n_ctx": 9, "attn_only": true)" +
         more + "}";
}

TEST(TransformerConfig, WhatAFileLeavesOutIsTheOriginalsDefault)
{
  const TransformerConfig gpt2 = Parse(Gpt2());
  EXPECT_EQ(gpt2.positions, 1024);
  EXPECT_EQ(gpt2.mlpDimension, 48);
  EXPECT_EQ(gpt2.activation, Activation::GeluTanh);
  EXPECT_EQ(gpt2.headDimension, 4);
  EXPECT_DOUBLE_EQ(gpt2.ScoreScale(1), 0.5);
  EXPECT_TRUE(gpt2.tiedUnembedding);
  const TransformerConfig bert = Parse(Bert());
  EXPECT_EQ(bert.positions, 512);
  EXPECT_EQ(bert.segments, 2);
  EXPECT_EQ(bert.activation, Activation::Gelu);
  EXPECT_EQ(bert.mask, AttentionMask::Bidirectional);
  const TransformerConfig vit = Parse(Vit());
  EXPECT_EQ(vit.positions, 14 * 14 + 1);
  const TransformerConfig llama = Parse(Llama());
  EXPECT_EQ(llama.keyHeads, 6);
  EXPECT_EQ(llama.rotaryBase, 10000);
  EXPECT_FALSE(llama.tiedUnembedding);
  EXPECT_FALSE(llama.inputBias);
}

TEST(TransformerConfig, DefaultsOfTodaysModels)
{
  const TransformerConfig gemma2 = Parse(Decoder("gemma2"));
  EXPECT_EQ(gemma2.headDimension, 256);
  EXPECT_EQ(gemma2.scoreCap, 50);
  EXPECT_EQ(gemma2.logitCap, 30);
  EXPECT_EQ(gemma2.Window(0), 4096);
  EXPECT_EQ(gemma2.Window(1), 0);
  EXPECT_EQ(gemma2.ScoreScale(0), 1.0 / 16);
  EXPECT_DOUBLE_EQ(gemma2.embeddingScale, std::sqrt(12.0));
  EXPECT_TRUE(gemma2.tiedUnembedding);
  EXPECT_EQ(Parse(Decoder("gemma2", R"(, "attn_logit_softcapping": null)")).scoreCap, 0);
  EXPECT_EQ(Parse(Decoder("gemma2", R"(, "sliding_window": null)")).Window(0), 0);
  // Older files name the activation gelu, but it always was its approximation.
  EXPECT_EQ(Parse(Decoder("gemma", R"(, "hidden_act": "gelu")")).activation, Activation::GeluTanh);
  const TransformerConfig mistral = Parse(Decoder("mistral"));
  EXPECT_EQ(mistral.Window(0), 4096);
  EXPECT_EQ(Parse(Decoder("mistral", R"(, "sliding_window": null)")).Window(0), 0);
  EXPECT_EQ(mistral.headDimension, 2);
  EXPECT_FALSE(mistral.inputBias);
  EXPECT_EQ(Parse(Decoder("mistral", R"(, "head_dim": null)")).headDimension, 2);
  const TransformerConfig qwen2 = Parse(Decoder("qwen2", R"(, "sliding_window": 4)"));
  EXPECT_EQ(qwen2.Window(1), 0);
  EXPECT_TRUE(qwen2.inputBias);
  EXPECT_FALSE(qwen2.outputBias);
  const TransformerConfig later = Parse(Decoder(
    "qwen2", R"(, "sliding_window": 4, "use_sliding_window": true, "max_window_layers": 1)"));
  EXPECT_EQ(later.windows, (std::vector<std::int64_t>{ 0, 4 }));
  const TransformerConfig neo = Parse(Neo());
  EXPECT_EQ(neo.windows, (std::vector<std::int64_t>{ 0, 256 }));
  EXPECT_EQ(neo.ScoreScale(1), 1);
  const TransformerConfig stablelm =
    Parse(Decoder("stablelm", R"(, "hidden_size": 48, "use_parallel_residual": true,
      "qk_layernorm": true)")); // heads of 8
  EXPECT_EQ(stablelm.order, SublayerOrder::ParallelOfOneNorm);
  EXPECT_EQ(stablelm.queryKeyNorm, QueryKeyNorm::OfEachHead);
  EXPECT_EQ(stablelm.RotatedDimension(), 2);
  const TransformerConfig clip = Parse(R"({"model_type": "clip_text_model"})");
  EXPECT_EQ(clip.positions, 77);
  EXPECT_EQ(clip.activation, Activation::QuickGelu);
}

TEST(TransformerConfig, MixturesOfExperts)
{
  const TransformerConfig mixtral = Parse(Decoder("mixtral"));
  EXPECT_EQ(mixtral.experts, 8);
  EXPECT_EQ(mixtral.expertsPerToken, 2);
  EXPECT_EQ(mixtral.expertDimension, 20);
  EXPECT_EQ(mixtral.rotaryBase, 1e6);
  EXPECT_EQ(mixtral.Window(1), 0);
  EXPECT_FALSE(mixtral.expertWeightsOfAll);
  EXPECT_TRUE(mixtral.HasExperts(0));
  EXPECT_EQ(Parse(Decoder("mixtral", R"(, "sliding_window": 5)")).Window(1), 5);

  const TransformerConfig qwen2 = Parse(Decoder("qwen2_moe"));
  EXPECT_EQ(qwen2.experts, 60);
  EXPECT_EQ(qwen2.expertsPerToken, 4);
  EXPECT_EQ(qwen2.expertDimension, 1408);
  EXPECT_EQ(qwen2.sharedExpertDimension, 5632);
  EXPECT_TRUE(qwen2.expertWeightsOfAll);
  EXPECT_TRUE(qwen2.inputBias);
  EXPECT_FALSE(Parse(Decoder("qwen2_moe", R"(, "norm_topk_prob": true)")).expertWeightsOfAll);
  const TransformerConfig some = Parse(Decoder("qwen2_moe",
    R"(, "num_hidden_layers": 5, "decoder_sparse_step": 2, "mlp_only_layers": [3, 4, 9])"));
  EXPECT_EQ(some.expertLayers, (std::vector<bool>{ false, true, false, false, false }));

  const TransformerConfig qwen3 = Parse(
    Decoder("qwen3_moe", R"(, "use_sliding_window": true, "sliding_window": 6, "head_dim": 4)"));
  EXPECT_EQ(qwen3.experts, 128);
  EXPECT_EQ(qwen3.expertsPerToken, 8);
  EXPECT_EQ(qwen3.expertDimension, 768);
  EXPECT_EQ(qwen3.sharedExpertDimension, 0);
  EXPECT_EQ(qwen3.windows, (std::vector<std::int64_t>{ 6, 6 }));
  EXPECT_EQ(qwen3.queryKeyNorm, QueryKeyNorm::OfAllHeads);

  const TransformerConfig olmoe = Parse(Decoder("olmoe", R"(, "clip_qkv": 8.0)"));
  EXPECT_EQ(olmoe.experts, 64);
  EXPECT_EQ(olmoe.expertsPerToken, 8);
  EXPECT_EQ(olmoe.expertDimension, 20);
  EXPECT_EQ(olmoe.projectionClip, 8);
  EXPECT_EQ(olmoe.queryKeyNorm, QueryKeyNorm::Together);
  EXPECT_TRUE(olmoe.expertWeightsOfAll);
}

TEST(TransformerConfig, LatentAttention)
{
  const TransformerConfig lite = Parse(DeepSeek());
  EXPECT_EQ(lite.headDimension, 6);
  EXPECT_EQ(lite.ValueDimension(), 3);
  EXPECT_EQ(lite.RotatedDimension(), 2);
  EXPECT_EQ(lite.keyLatent, 5);
  EXPECT_EQ(lite.queryLatent, 0);
  EXPECT_DOUBLE_EQ(lite.ScoreScale(0), 1 / std::sqrt(6.0));
  EXPECT_EQ(lite.expertGroups, 0);
  EXPECT_EQ(lite.sharedExpertDimension, 20);
  EXPECT_FALSE(lite.sharedExpertHasGate);
  EXPECT_EQ(lite.expertLayers, (std::vector<bool>{ false, true }));
  const TransformerConfig yarn = Parse(DeepSeek(R"(, "rope_scaling": {"type": "yarn", "factor": 40,
    "original_max_position_embeddings": 64, "mscale": 0.707, "mscale_all_dim": 0.707},
    "topk_method": "group_limited_greedy", "n_group": 4, "topk_group": 2)"));
  const double magnitude = 0.0707 * std::log(40) + 1;
  EXPECT_NEAR(yarn.ScoreScale(0), magnitude * magnitude / std::sqrt(6.0), 1e-12);
  EXPECT_DOUBLE_EQ(yarn.rotaryScaling.attentionFactor, 1);
  EXPECT_EQ(yarn.expertGroups, 4);
  EXPECT_EQ(yarn.expertGroupsPerToken, 2);
}

/// Gemma 3: sliding layers have a base of their own and no scaling, in files of any age.
TEST(TransformerConfig, RotationsMayDependOnTheLayer)
{
  const std::string sizes =
    R"(, "head_dim": 4, "num_key_value_heads": 2, "sliding_window": 4, "sliding_window_pattern": 2)";
  const TransformerConfig old =
    Parse(Decoder("gemma3_text", sizes + R"(, "rope_theta": 100.0, "rope_local_base_freq": 10000.0,
      "rope_scaling": {"rope_type": "linear", "factor": 4.0})"));
  const TransformerConfig modern = Parse(Decoder(
    "gemma3_text", sizes + R"(, "rope_parameters": {"sliding_attention": {"rope_theta": 10000.0},
      "full_attention": {"rope_theta": 100.0, "rope_type": "linear", "factor": 4.0}})"));
  for (const TransformerConfig& config : { old, modern })
  {
    EXPECT_EQ(config.windows, (std::vector<std::int64_t>{ 4, 0 }));
    EXPECT_THAT(RotaryFrequencies(config, 0), testing::ElementsAre(1, 0.01F));
    EXPECT_THAT(RotaryFrequencies(config, 1), testing::ElementsAre(0.25F, 0.025F));
  }
}

/// Of any family, and also if only one kind of layer has its own.
TEST(TransformerConfig, NewFilesMayHaveRotationsByLayer)
{
  const TransformerConfig config =
    Parse(Decoder("qwen3", R"(, "head_dim": 4, "num_key_value_heads": 2, "sliding_window": 4,
      "use_sliding_window": true, "layer_types": ["sliding_attention", "full_attention"],
      "rope_parameters": {"sliding_attention": {"rope_theta": 100.0},
        "full_attention": {"rope_theta": 10000.0, "rope_type": "linear", "factor": 2.0}})"));
  EXPECT_THAT(RotaryFrequencies(config, 0), testing::ElementsAre(1, 0.1F));
  EXPECT_THAT(RotaryFrequencies(config, 1), testing::ElementsAre(0.5F, 0.005F));
  const TransformerConfig same = Parse(Decoder("qwen3", R"(, "head_dim": 4,
      "num_key_value_heads": 2, "sliding_window": 4, "use_sliding_window": true,
      "max_window_layers": 0, "rope_parameters": {"full_attention": {"rope_theta": 100.0}})"));
  EXPECT_THAT(RotaryFrequencies(same, 0), testing::ElementsAre(1, 0.1F));
}

/// Settings of other models that the original code does not read do not count.
TEST(TransformerConfig, AnArchitectureReadsItsOwnSettings)
{
  const TransformerConfig neox = Parse(Decoder("gpt_neox",
    R"(, "hidden_size": 24, "rotary_pct": 0.5, "num_key_value_heads": 2, "head_dim": 6)"));
  EXPECT_EQ(neox.keyHeads, 6);
  EXPECT_EQ(neox.headDimension, 4);
  const TransformerConfig stableLm = Parse(Decoder("stablelm",
    R"(, "hidden_size": 24, "partial_rotary_factor": 0.5, "num_key_value_heads": 2, "head_dim": 6)"));
  EXPECT_EQ(stableLm.keyHeads, 2);
  EXPECT_EQ(stableLm.headDimension, 4);
  const TransformerConfig gptJ = Parse(Gpt2(R"(, "model_type": "gptj", "rotary_dim": 4,
    "scale_attn_weights": false, "scale_attn_by_inverse_layer_idx": true)"));
  EXPECT_DOUBLE_EQ(gptJ.ScoreScale(1), 0.5);
  EXPECT_EQ(Parse(Gpt2(R"(, "hidden_act": "relu")")).activation, Activation::GeluTanh);
  const TransformerConfig whisper = Parse(Pair("whisper", R"(, "scale_embedding": true)"));
  EXPECT_EQ(whisper.embeddingScale, 1);
  EXPECT_EQ(Parse(Decoder("gemma", R"(, "hidden_act": "silu")")).activation, Activation::Silu);
}

TEST(TransformerConfig, ExpertsHaveTwoNames)
{
  for (const std::string key : { "num_experts", "num_local_experts" })
  {
    for (const char* type : { "qwen2_moe", "qwen3_moe", "olmoe", "mixtral", "gpt_oss" })
    {
      EXPECT_EQ(Parse(Decoder(type, ", \"" + key + "\": 9")).experts, 9) << type << " " << key;
    }
  }
}

/// A weight of 0 counts as none, as in the original.
TEST(TransformerConfig, MagnitudesOfYarn)
{
  const auto factor = [](const std::string& more)
  {
    return Parse(Llama(R"(, "rope_scaling": {"type": "yarn", "factor": 8.0)" + more + "}"))
      .rotaryScaling.attentionFactor;
  };
  const double plain = 1 + 0.1 * std::log(8.0);
  EXPECT_DOUBLE_EQ(factor(""), plain);
  EXPECT_DOUBLE_EQ(factor(R"(, "mscale": 0.5)"), plain);
  EXPECT_DOUBLE_EQ(factor(R"(, "mscale": 0, "mscale_all_dim": 1)"), plain);
  EXPECT_DOUBLE_EQ(factor(R"(, "mscale": 0.5, "mscale_all_dim": 0)"), plain);
  EXPECT_DOUBLE_EQ(factor(R"(, "mscale": 0.5, "mscale_all_dim": 2)"),
    (1 + 0.05 * std::log(8.0)) / (2 * plain - 1));
  EXPECT_DOUBLE_EQ(factor(R"(, "mscale": 0.5, "mscale_all_dim": 2, "attention_factor": 3)"), 3);
}

TEST(TransformerConfig, LongRopeDependsOnTheLength)
{
  const TransformerConfig config = Parse(Decoder("phi3", R"(, "max_position_embeddings": 64,
    "original_max_position_embeddings": 16, "head_dim": 4, "rope_theta": 100.0,
    "rope_scaling": {"type": "su", "short_factor": [1, 2], "long_factor": [4, 5]})"));
  EXPECT_THAT(RotaryFrequencies(config, 0, 16), testing::ElementsAre(1, 0.05F));
  EXPECT_THAT(RotaryFrequencies(config, 0, 17), testing::ElementsAre(0.25F, 0.02F));
  EXPECT_DOUBLE_EQ(config.rotaryScaling.attentionFactor, std::sqrt(1.5)); // 1 + ln 4 / ln 16
  const TransformerConfig own = Parse(Decoder("phi3", R"(, "max_position_embeddings": 64,
    "original_max_position_embeddings": 16, "head_dim": 4, "rope_scaling": {"type": "longrope",
      "factor": 16.0, "short_factor": [1, 2], "long_factor": [4, 5]})"));
  EXPECT_DOUBLE_EQ(own.rotaryScaling.attentionFactor, std::sqrt(2.0)); // 1 + ln 16 / ln 16
}

TEST(TransformerConfig, OlderNamesOfSettingsAreKnown)
{
  const TransformerConfig gpt2 = Parse(Gpt2(R"(, "n_ctx": 33, "activation_function": "relu")"));
  EXPECT_EQ(gpt2.positions, 33);
  EXPECT_EQ(gpt2.activation, Activation::Relu);
  const TransformerConfig bloom = Parse(R"({"model_type": "bloom", "n_embed": 8,
    "num_attention_heads": 2, "num_hidden_layers": 1, "vocab_size": 3})");
  EXPECT_EQ(bloom.modelDimension, 8);
  EXPECT_EQ(bloom.heads, 2);
  EXPECT_EQ(bloom.layers, 1);
}

TEST(TransformerConfig, ScoresAreScaledAsSaid)
{
  const TransformerConfig byLayer = Parse(Gpt2(R"(, "scale_attn_by_inverse_layer_idx": true)"));
  EXPECT_DOUBLE_EQ(byLayer.ScoreScale(0), 0.5);
  EXPECT_DOUBLE_EQ(byLayer.ScoreScale(3), 0.125);
  EXPECT_EQ(Parse(Gpt2(R"(, "scale_attn_weights": false)")).ScoreScale(1), 1);
  EXPECT_DOUBLE_EQ(Parse(Lens()).ScoreScale(0), 1 / std::sqrt(5.0));
  EXPECT_EQ(Parse(Lens(R"(, "attn_scale": 8.0)")).ScoreScale(0), 0.125);
  EXPECT_EQ(Parse(Lens(R"(, "use_attn_scale": false)")).ScoreScale(0), 1);
}

TEST(TransformerConfig, ImagesAndPatchesMayBeOblong)
{
  const TransformerConfig vit = Parse(Vit(R"(, "image_size": [32, 48], "patch_size": [8, 16])"));
  EXPECT_EQ(vit.PatchRows(), 4);
  EXPECT_EQ(vit.PatchColumns(), 3);
  EXPECT_EQ(vit.positions, 13);
}

TEST(TransformerConfig, TransformerLensKnowsFoldedNorms)
{
  const TransformerConfig folded = Parse(Lens(R"(, "normalization_type": "LNPre")"));
  EXPECT_EQ(folded.norm, NormKind::LayerNorm);
  EXPECT_TRUE(folded.normsAreFolded);
  EXPECT_EQ(Parse(Lens(R"(, "normalization_type": null)")).norm, NormKind::None);
  const TransformerConfig mlp =
    Parse(Lens(R"(, "attn_only": false, "act_fn": "gelu_new", "d_mlp": 31, "d_vocab_out": 4)"));
  EXPECT_EQ(mlp.mlpDimension, 31);
  EXPECT_EQ(mlp.outputVocabulary, 4);
}

/// Press et al. give 1/2, 1/4 ... 1/256 for 8 heads; for 12, the original code adds every second
/// slope of 16 heads.
TEST(TransformerConfig, AlibiSlopesOfAnyNumberOfHeads)
{
  EXPECT_THAT(AlibiSlopes(8), testing::ElementsAre(1.0 / 2, 1.0 / 4, 1.0 / 8, 1.0 / 16, 1.0 / 32,
                                1.0 / 64, 1.0 / 128, 1.0 / 256));
  const std::vector<double> slopes = AlibiSlopes(12);
  ASSERT_EQ(slopes.size(), 12U);
  EXPECT_DOUBLE_EQ(slopes[7], 1.0 / 256);
  EXPECT_DOUBLE_EQ(slopes[8], std::sqrt(0.5));
  EXPECT_DOUBLE_EQ(slopes[9], std::sqrt(0.5) / 2);
  EXPECT_DOUBLE_EQ(slopes[11], std::sqrt(0.5) / 8);
  EXPECT_THAT(AlibiSlopes(1), testing::ElementsAre(1.0 / 256));
  EXPECT_THAT(AlibiSlopes(3), testing::ElementsAre(1.0 / 16, 1.0 / 256, 1.0 / 4));
}

TEST(TransformerConfig, RotaryFrequenciesFallFromOne)
{
  const std::string sizes = R"(, "head_dim": 4, "rope_theta": 100.0)";
  EXPECT_THAT(RotaryFrequencies(Parse(Llama(sizes))), testing::ElementsAre(1, 0.1F));
  EXPECT_THAT(RotaryFrequencies(
                Parse(Llama(sizes + R"(, "rope_scaling": {"type": "linear", "factor": 4.0})"))),
    testing::ElementsAre(0.25F, 0.025F));
}

/// 2 pi / 64 per position is one wave in 64 positions. With low and high factors 1 and 4 and 256
/// original positions, waves of 64 and shorter are kept, those of 256 and longer divided by 8, and
/// one of 128 is mixed: (256/128 - 1) / (4 - 1) = 1/3 of it is kept.
TEST(TransformerConfig, Llama3StretchesLowFrequenciesOnly)
{
  const auto first = [](double waveLength)
  {
    // With d_head = 4 the second frequency is 1 / sqrt(base).
    const double frequency = 2 * 3.14159265358979 / waveLength;
    const std::string base = std::to_string(1 / (frequency * frequency));
    return std::pair(frequency,
      RotaryFrequencies(Parse(
        Llama(R"(, "head_dim": 4, "rope_theta": )" + base +
              R"(, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
             "high_freq_factor": 4.0, "original_max_position_embeddings": 256})")))[1]);
  };
  const auto [high, keptHigh] = first(60);
  EXPECT_NEAR(keptHigh, high, 1e-6);
  const auto [low, stretched] = first(300);
  EXPECT_NEAR(stretched, low / 8, 1e-6);
  const auto [middle, mixed] = first(128);
  EXPECT_NEAR(mixed, middle * (1.0 / 3 + 2.0 / 3 / 8), 1e-6);
}

TEST(TransformerConfig, ThatIsNoJsonIsRefused)
{
  const auto refusal = [](const std::string& text)
  { return MessageOf<FormatError>([&] { Parse(text); }); };
  EXPECT_THAT(
    refusal(""), AllOf(StartsWith("some/config.json: "), HasSubstr("configuration is not JSON")));
  EXPECT_THAT(refusal("model_type: gpt2"), HasSubstr("configuration is not JSON"));
  EXPECT_THAT(refusal(Gpt2() + "}"), HasSubstr("configuration is not JSON"));
  EXPECT_THAT(refusal("{\"\xff\": 1}"), HasSubstr("configuration is not JSON"));
  EXPECT_THAT(refusal("[1, 2]"), HasSubstr("to be a JSON object, found array"));
  EXPECT_THAT(refusal(std::string(500'000, '[') + std::string(500'000, ']')),
    HasSubstr("to be a JSON object, found array"));
}

TEST(TransformerConfig, AMissingFileIsNamed)
{
  EXPECT_THAT(MessageOf<FileError>([] { ReadTransformerConfig("/nowhere/config.json"); }),
    StartsWith("/nowhere/config.json: cannot open file"));
}

/// Settings that must be rejected, and the expected message.
struct BadConfig
{
  const char* name;
  std::string text;
  const char* message;
  friend void PrintTo(const BadConfig& bad, std::ostream* stream) { *stream << bad.name; }
};

using BadTransformerConfig = testing::TestWithParam<BadConfig>;

std::string NameOf(const testing::TestParamInfo<BadConfig>& bad)
{
  return bad.param.name;
}

INSTANTIATE_TEST_SUITE_P(Architecture, BadTransformerConfig,
  testing::Values(BadConfig{ "Missing", "{}",
                    "'model_type' is missing, expected one of bart, bert, bloom, camembert, clip, "
                    "clip_text_model" },
    BadConfig{ "Unknown", R"({"model_type": "falcon"})",
      "unknown model_type 'falcon', expected one of bart, bert, bloom, camembert, clip" },
    BadConfig{ "Mixture", R"({"model_type": "dbrx"})",
      "the model_type 'dbrx' is a mixture of experts, which is not run here; recordings of it "
      "that were made elsewhere can be read. Expected one of bart, bert, bloom" },
    BadConfig{ "PairThatIsNotRun", R"({"model_type": "umt5"})",
      "the model_type 'umt5' is a pair of encoder and decoder, which is not run here" },
    BadConfig{ "Recurrent", R"({"model_type": "mamba"})",
      "the model_type 'mamba' is a model with linear attention or a recurrent state, which" },
    BadConfig{ "LatentAttention", R"({"model_type": "deepseek_v3"})", "with latent attention" },
    BadConfig{ "TwoEncoders", R"({"model_type": "clip"})",
      "choose the architecture clip_text_model or clip_vision_model" },
    BadConfig{ "TwoEncodersOfSiglip", R"({"model_type": "siglip"})",
      "choose the architecture siglip_vision_model" },
    BadConfig{ "NoText", R"({"model_type": 5})", "expected 'model_type' to be a string, found 5" }),
  NameOf);

INSTANTIATE_TEST_SUITE_P(Size, BadTransformerConfig,
  testing::Values(BadConfig{ "Missing", R"({"model_type": "gpt2"})", "'n_layer' is missing" },
    BadConfig{ "HeadsThatDoNotFit",
      R"({"model_type": "transformer_lens", "d_model": 4, "d_head": 5, "n_layers": 1})",
      "'n_heads' is missing, and 'd_head', 5, is larger than 'd_model', 4." },
    BadConfig{ "Zero", Gpt2(R"(, "n_layer": 0)"),
      "expected 'n_layer' to be an integer from 1 to 2147483647, found 0" },
    BadConfig{ "Negative", Gpt2(R"(, "n_head": -1)"), "expected 'n_head' to be an integer from 1" },
    BadConfig{ "Fraction", Gpt2(R"(, "n_embd": 12.5)"), "'n_embd' to be an integer from 1 to" },
    BadConfig{ "Text", Gpt2(R"(, "vocab_size": "7")"), "to be an integer from 1 to 2147483647" },
    BadConfig{ "Huge", Gpt2(R"(, "n_positions": 1e30)"), "'n_positions' to be an integer" },
    BadConfig{ "Heads", Gpt2(R"(, "n_head": 5)"),
      "the number of heads, 5, does not divide the dimension of the model, 12" },
    BadConfig{ "HugeHeads", Llama(R"(, "head_dim": 2147483646)"),
      "expected at most 2147483647 components of all heads, found 6 heads" },
    BadConfig{ "KeyHeads", Llama(R"(, "num_key_value_heads": 4)"),
      "the number of heads of keys, 4, does not divide that of queries, 6" },
    BadConfig{ "Patches", Vit(R"(, "image_size": 7, "patch_size": 8)"),
      "patches of 8 x 8 pixels do not fit in an image of 7 x 7" },
    BadConfig{ "ImageOfThree", Vit(R"(, "image_size": [3, 8, 8])"),
      "expected 'image_size' to be an integer or two, found array" },
    BadConfig{ "Epsilon", Gpt2(R"(, "layer_norm_epsilon": -1)"),
      "'layer_norm_epsilon' to be a number that is not negative, found -1" },
    BadConfig{ "Flag", Gpt2(R"(, "scale_attn_weights": "no")"),
      "expected 'scale_attn_weights' to be true or false, found \"no\"" },
    BadConfig{ "OddRotation", Llama(R"(, "head_dim": 3)"),
      "an even number of components, of at most 3 of a head, found 3" }),
  NameOf);

INSTANTIATE_TEST_SUITE_P(Variant, BadTransformerConfig,
  testing::Values(
    BadConfig{ "Activation", Gpt2(R"(, "activation_function": "mish")"),
      "unknown activation_function 'mish', expected one of gelu, gelu_fast, gelu_new" },
    BadConfig{ "CrossAttention", Gpt2(R"(, "add_cross_attention": true)"),
      "'add_cross_attention' is true, a variant of attention that is not known" },
    BadConfig{ "Decoder", Bert(R"(, "is_decoder": true)"), "'is_decoder' is true" },
    BadConfig{ "RelativePositions", Bert(R"(, "position_embedding_type": "relative_key")"),
      "unknown position_embedding_type 'relative_key', expected one of absolute" },
    BadConfig{ "ResidualOfNorm", Bloom(R"(, "apply_residual_connection_post_layernorm": true)"),
      "'apply_residual_connection_post_layernorm' is true" },
    BadConfig{ "Window", Llama(R"(, "sliding_window": 4096)"), "'sliding_window' is 4096" },
    BadConfig{ "Yarn", Llama(R"(, "rope_scaling": {"rope_type": "yarn"})"), "'factor' is missing" },
    BadConfig{ "Scaling", Llama(R"(, "rope_scaling": {"rope_type": "ntk"})"),
      "unknown rope_type 'ntk', expected one of default, dynamic, linear, llama3, longrope, mrope, "
      "su, yarn" },
    BadConfig{ "FactorOfZero", Llama(R"(, "rope_scaling": {"rope_type": "linear", "factor": 0})"),
      "expected 'factor' to be a positive number, found 0" },
    BadConfig{ "NegativeFactor",
      Llama(R"(, "rope_scaling": {"rope_type": "yarn", "factor": -4.0})"),
      "expected 'factor' to be a positive number, found -4" },
    BadConfig{ "YarnOfBaseOne",
      Llama(R"(, "rope_theta": 1, "rope_scaling": {"rope_type": "yarn", "factor": 4.0})"),
      "expected 'rope_theta' to be above 1, found 1" },
    BadConfig{ "LongRopeWithoutFactors", Phi3(R"(, "rope_scaling": {"type": "longrope"})"),
      "'short_factor' is missing" },
    BadConfig{ "LongRopeOfOtherSize",
      Phi3(R"(, "rope_scaling": {"type": "longrope", "short_factor": [1.0, 2.0]})"),
      "expected 'short_factor' to be a number or a list of 1" },
    BadConfig{ "LongRopeOfZero",
      Phi3(R"(, "rope_scaling": {"type": "longrope", "short_factor": [1], "long_factor": [0]})"),
      "expected 'long_factor' to be positive numbers, found 0" },
    BadConfig{ "LongRopeOfOnePosition", Phi3(R"(, "original_max_position_embeddings": 1,
        "rope_scaling": {"type": "longrope", "short_factor": [1], "long_factor": [2]})"),
      "expected 'original_max_position_embeddings' to be above 1, found 1" },
    BadConfig{ "Quantized", Llama(R"(, "quantization_config": {"quant_method": "mxfp4"})"),
      "by 'quantization_config' the weights are quantized by MXFP4, which is not run" },
    BadConfig{ "WindowOfZero", Decoder("mistral", R"(, "sliding_window": 0)"),
      "expected 'sliding_window' to be an integer from 1 to 2147483647, found 0" },
    BadConfig{ "NegativeWindow", Decoder("gemma2", R"(, "sliding_window": -4)"),
      "expected 'sliding_window' to be an integer from 1 to 2147483647, found -4" },
    BadConfig{ "WindowsOfTooManyLayers",
      Decoder("mistral", R"(, "sliding_window": 4, "num_hidden_layers": 2147483647)"),
      "expected at most 100000 layers, found 2147483647" },
    BadConfig{ "TypesOfOtherLayers",
      Decoder("mistral", R"(, "sliding_window": 4, "layer_types": ["full_attention"])"),
      "expected 'layer_types' to be a list of 2 names" },
    BadConfig{ "TypeOfLayer",
      Decoder("gemma2", R"(, "sliding_window": 4, "layer_types": ["full_attention", "linear"])"),
      "unknown layer_types 'linear', expected full_attention or sliding_attention" },
    BadConfig{ "TypesOfAModelWithoutThem",
      Decoder("mistral", R"(, "layer_types": ["sliding_attention", "full_attention"])"),
      "expected 'layer_types' to be sliding_attention in all layers, as in the original code of "
      "this model_type, found full_attention" },
    BadConfig{ "TypesWithoutWindow",
      Decoder("qwen2", R"(, "layer_types": ["sliding_attention", "full_attention"])"),
      "'layer_types' is array, which changes what a model computes, and 'qwen2' is run without" },
    BadConfig{ "TwoScalings", Llama(R"(, "rope_scaling": {"type": "linear", "factor": 2},
        "rope_parameters": {"rope_theta": 100, "rope_type": "default"})"),
      "expected the factor of 'rope_scaling' and 'rope_parameters' to be the same, found 2 and "
      "null" },
    BadConfig{ "PartOfOneKindOfLayer", Decoder("gemma3_text", R"(, "head_dim": 4,
        "num_key_value_heads": 2, "rope_parameters": {"full_attention": {"rope_theta": 100},
        "sliding_attention": {"rope_theta": 100, "partial_rotary_factor": 0.5}})"),
      "'rope_parameters.sliding_attention.partial_rotary_factor' is 0.5" },
    BadConfig{ "OlderTextOfClip", R"({"model_type": "clip_text_model", "text_config":
        {"hidden_act": "gelu"}, "text_config_dict": {"hidden_act": "relu"}})",
      "expected the hidden_act of 'text_config_dict' and 'text_config' to be the same" },
    BadConfig{ "NegativeCap", Decoder("gemma2", R"(, "attn_logit_softcapping": -1)"),
      "expected 'attn_logit_softcapping' to be a number that is not negative, found -1" },
    BadConfig{ "NoScale", Decoder("gemma2", R"(, "query_pre_attn_scalar": 0)"),
      "expected 'query_pre_attn_scalar' to be a positive number, found 0" },
    BadConfig{ "MorePartThanWhole", Decoder("gpt_neox", R"(, "rotary_pct": 1.5)"),
      "expected a rotary embedding of a part of a head, found the partial_rotary_factor 1.5" },
    BadConfig{ "NoPart", Decoder("gpt_neox", R"(, "rotary_pct": 0.25)"),
      "at least 2 components of a head, found 0 of 2" },
    BadConfig{ "ExpertsBeyondAll",
      Decoder("gpt_oss", R"(, "num_local_experts": 2, "num_experts_per_tok": 3)"),
      "expected at most 2 experts per token, found 3" },
    BadConfig{ "LayersOfPlainMlps", Decoder("qwen2_moe", R"(, "mlp_only_layers": [-1])"),
      "expected 'mlp_only_layers' to be a list of numbers of layers" },
    BadConfig{ "WideValues", DeepSeek(R"(, "v_head_dim": 7)"),
      "'v_head_dim' to be at most 'qk_nope_head_dim' + 'qk_rope_head_dim', 6, found 7" },
    BadConfig{ "GroupsOfExperts", DeepSeek(R"(, "topk_method": "group_limited_greedy",
        "n_group": 4, "topk_group": 1)"),
      "found 8 experts in 4 groups, 3 of them from 1 groups per token" },
    BadConfig{ "ScoresOfExperts", DeepSeek(R"(, "scoring_func": "sigmoid")"),
      "unknown scoring_func 'sigmoid', expected one of softmax" },
    BadConfig{ "NoSparseStep", Decoder("qwen3_moe", R"(, "decoder_sparse_step": 0)"),
      "expected 'decoder_sparse_step' to be an integer from 1 to 2147483647, found 0" },
    BadConfig{ "WindowsOfQwenMoe", Decoder("qwen2_moe", R"(, "use_sliding_window": true)"),
      "'use_sliding_window' is true, a variant of attention that is not known" },
    BadConfig{ "FewBuckets", T5(R"(, "relative_attention_num_buckets": 3)"),
      "expected 'relative_attention_num_buckets' to be an integer from 4 to 65536, found 3" },
    BadConfig{ "ShortDistance", T5(R"(, "relative_attention_max_distance": 16)"),
      "'relative_attention_max_distance' to be above half of 'relative_attention_num_buckets', "
      "found 16 and 32" },
    BadConfig{ "LongDistance", T5(R"(, "relative_attention_max_distance": 65537)"),
      "'relative_attention_max_distance' to be an integer from 1 to 65536, found 65537" },
    BadConfig{ "T5Activation", T5(R"(, "feed_forward_proj": "gated-mish")"),
      "unknown feed_forward_proj 'gated-mish', expected one of gated-gelu, gated-relu" },
    BadConfig{ "StartBeyondVocabulary", T5(R"(, "decoder_start_token_id": 7)"),
      "expected 'decoder_start_token_id' to be an integer from 0 to 6, found 7" },
    BadConfig{ "HeadsOfAnEncoder", Pair("bart", R"(, "encoder_attention_heads": 5)"),
      "the number of heads, 5, does not divide the dimension of the model, 12" },
    BadConfig{ "NoMelBands", Pair("whisper", R"(, "num_mel_bins": 0)"),
      "expected 'num_mel_bins' to be an integer from 1 to 2147483647, found 0" },
    BadConfig{ "PaddingBeyondPositions",
      R"({"model_type": "roberta", "hidden_size": 12, "num_attention_heads": 3,
        "num_hidden_layers": 2, "vocab_size": 7, "max_position_embeddings": 2})",
      "expected 'max_position_embeddings' to be above 'pad_token_id' + 1, found 2 and 1" },
    BadConfig{ "NeoTypes", Neo(R"(, "attention_types": [[["global", "local"], 2]])"),
      "expected 'attention_types' to be a list of [[kinds], repetitions] for 2 layers" },
    BadConfig{ "NeoKind", Neo(R"(, "attention_layers": ["global", "sparse"])"),
      "unknown kind of attention 'sparse' of a layer" },
    BadConfig{ "NeighborsBeyondHead", Gpt2(R"(, "model_type": "gptj", "rotary_dim": 6)"),
      "an even number of components, of at most 4 of a head, found 6" },
    BadConfig{ "NoMlp",
      R"({"model_type": "dinov2", "hidden_size": 12, "num_attention_heads": 3,
        "num_hidden_layers": 2, "mlp_ratio": 0.01})",
      "expected 'mlp_ratio' to give an MLP of at least one number" },
    BadConfig{ "ScalingOfNothing", Llama(R"(, "rope_scaling": 4)"),
      "expected 'rope_scaling' to be an object, found 4" },
    BadConfig{
      "PartialRotation", Llama(R"(, "partial_rotary_factor": 0.5)"), "partial_rotary_factor 0.5" },
    BadConfig{ "LensPositions", Lens(R"(, "positional_embedding_type": "relative")"),
      "unknown positional_embedding_type 'relative', expected one of alibi, rotary, shortformer, "
      "standard" },
    BadConfig{ "LensOddRotation", Lens(R"(, "positional_embedding_type": "rotary")"),
      "expected 'rotary_dim' to be even and at most 'd_head', found 5 of 5" },
    BadConfig{ "LensRotationBeyondHead",
      Lens(R"(, "positional_embedding_type": "rotary", "d_head": 8, "rotary_dim": 10)"),
      "expected 'rotary_dim' to be even and at most 'd_head', found 10 of 8" },
    BadConfig{ "LensScaledRotation", Lens(R"(, "use_NTK_by_parts_rope": true)"),
      "'use_NTK_by_parts_rope' is true" },
    BadConfig{ "LensBidirectionalAlibi",
      Lens(R"(, "positional_embedding_type": "alibi", "attention_dir": "bidirectional")"),
      "'attention_dir' is bidirectional, expected causal with ALiBi positions" },
    BadConfig{ "LensEmbeddingNorm",
      Lens(R"(, "normalization_type": "RMS", "post_embedding_ln": true)"),
      "'post_embedding_ln' is true, expected 'normalization_type' LN or LNPre" },
    BadConfig{ "LensNorm", Lens(R"(, "normalization_type": "BN")"),
      "unknown normalization_type 'BN', expected one of LN, LNPre, RMS, RMSPre, null" },
    BadConfig{
      "LensCap", Lens(R"(, "attn_scores_soft_cap": 50.0)"), "'attn_scores_soft_cap' is 50" },
    BadConfig{ "LensActivation", Lens(R"(, "attn_only": false, "act_fn": "solu_ln")"),
      "unknown act_fn 'solu_ln'" }),
  NameOf);

TEST_P(BadTransformerConfig, IsRefused)
{
  EXPECT_THAT(MessageOf<ModelError>([] { Parse(GetParam().text); }),
    AllOf(StartsWith("some/config.json: "), HasSubstr(GetParam().message)));
}

TEST(TransformerConfig, T5)
{
  const TransformerConfig decoder = Parse(T5());
  ASSERT_NE(decoder.encoder, nullptr);
  const TransformerConfig& encoder = *decoder.encoder;
  EXPECT_EQ(encoder.encoder, nullptr);
  for (const TransformerConfig* config : { &encoder, &decoder })
  {
    EXPECT_EQ(config->architecture, "t5");
    EXPECT_EQ(config->input, InputKind::Tokens);
    EXPECT_EQ(config->layers, 2);
    EXPECT_EQ(config->heads, 3);
    EXPECT_EQ(config->headDimension, 5);
    EXPECT_EQ(config->modelDimension, 12);
    EXPECT_EQ(config->mlpDimension, 20);
    EXPECT_EQ(config->vocabulary, 7);
    EXPECT_EQ(config->positions, 0);
    EXPECT_EQ(config->norm, NormKind::RmsNorm);
    EXPECT_EQ(config->normPlace, NormPlace::BeforeSublayer);
    EXPECT_EQ(config->epsilon, 1e-6);
    EXPECT_TRUE(config->finalNorm);
    EXPECT_EQ(config->position, PositionKind::Relative);
    EXPECT_EQ(config->relativeBuckets, 32);
    EXPECT_EQ(config->relativeDistance, 128);
    EXPECT_EQ(config->ScoreScale(1), 1);
    EXPECT_EQ(config->activation, Activation::Relu);
    EXPECT_FALSE(config->gated);
    EXPECT_FALSE(config->inputBias || config->outputBias || config->mlpBias);
  }
  EXPECT_EQ(encoder.mask, AttentionMask::Bidirectional);
  EXPECT_EQ(decoder.mask, AttentionMask::Causal);
  EXPECT_TRUE(decoder.tiedUnembedding);
  EXPECT_EQ(decoder.logitScale, 1 / std::sqrt(12.0));
  EXPECT_EQ(decoder.decoderStart, 0);

  const TransformerConfig later =
    Parse(T5(R"(, "num_decoder_layers": 3, "feed_forward_proj": "gated-gelu", "eos_token_id": 1,
      "tie_word_embeddings": false, "relative_attention_num_buckets": 8, "pad_token_id": 4,
      "relative_attention_max_distance": 20)"));
  EXPECT_EQ(later.layers, 3);
  EXPECT_EQ(later.encoder->layers, 2);
  EXPECT_TRUE(later.gated && later.encoder->gated);
  EXPECT_EQ(later.activation, Activation::GeluTanh);
  EXPECT_FALSE(later.tiedUnembedding);
  EXPECT_EQ(later.logitScale, 1);
  EXPECT_EQ(later.encoder->relativeBuckets, 8);
  EXPECT_EQ(later.encoder->relativeDistance, 20);
  EXPECT_EQ(later.decoderStart, 4); // the padding
  EXPECT_THAT(later.endTokens, ElementsAre(1));
  EXPECT_EQ(Parse(T5(R"(, "decoder_start_token_id": 6)")).decoderStart, 6);
}

/// Release 5 of the original calls all models of T5 tied, and says beside it whether logits are
/// scaled.
TEST(TransformerConfig, LogitsOfT5AreScaledAsSaid)
{
  const double scale = 1 / std::sqrt(12.0);
  const std::string tied = R"(, "tie_word_embeddings": true)";
  const std::string scaled = R"(, "scale_decoder_outputs": true)";
  const std::string plain = R"(, "scale_decoder_outputs": false)";
  const std::string separate = R"(, "tie_word_embeddings": false)";
  EXPECT_EQ(Parse(T5(tied)).logitScale, scale);
  EXPECT_EQ(Parse(T5(tied + plain)).logitScale, 1);
  EXPECT_EQ(Parse(T5(tied + scaled)).logitScale, scale);
  EXPECT_EQ(Parse(T5(separate)).logitScale, 1);
  EXPECT_EQ(Parse(T5(separate + scaled)).logitScale, scale);
  // The activation that a file states counts before the one of feed_forward_proj.
  const TransformerConfig other = Parse(T5(R"(, "dense_act_fn": "silu", "is_gated_act": true)"));
  EXPECT_EQ(other.activation, Activation::Silu);
  EXPECT_TRUE(other.gated && other.encoder->gated);
  // mT5 is scaled by releases 4 if it is tied, and never by releases 5.
  const auto ofMT5 = [&](const std::string& version)
  {
    return Parse(T5(tied + R"(, "model_type": "mt5", "transformers_version": ")" + version + "\""))
      .logitScale;
  };
  EXPECT_EQ(ofMT5("4.57.1"), scale);
  EXPECT_EQ(ofMT5("5.17.0"), 1);
}

TEST(TransformerConfig, Bart)
{
  const TransformerConfig decoder = Parse(Pair("bart", R"(, "scale_embedding": true)"));
  const TransformerConfig& encoder = *decoder.encoder;
  EXPECT_EQ(encoder.layers, 2);
  EXPECT_EQ(encoder.heads, 3);
  EXPECT_EQ(encoder.mlpDimension, 48);
  EXPECT_EQ(decoder.layers, 4);
  EXPECT_EQ(decoder.heads, 6);
  EXPECT_EQ(decoder.mlpDimension, 20);
  EXPECT_EQ(encoder.mask, AttentionMask::Bidirectional);
  EXPECT_EQ(decoder.mask, AttentionMask::Causal);
  for (const TransformerConfig* config : { &encoder, &decoder })
  {
    EXPECT_EQ(config->architecture, "bart");
    EXPECT_EQ(config->positions, 1024);
    EXPECT_EQ(config->firstPosition, 2);
    EXPECT_EQ(config->position, PositionKind::Learned);
    EXPECT_EQ(config->normPlace, NormPlace::AfterSublayer);
    EXPECT_TRUE(config->embeddingNorm);
    EXPECT_FALSE(config->finalNorm);
    EXPECT_EQ(config->embeddingScale, std::sqrt(12.0));
    EXPECT_EQ(config->activation, Activation::Gelu);
  }
  EXPECT_EQ(decoder.decoderStart, 2);
  EXPECT_EQ(decoder.logitScale, 1);
}

/// What differs from T5 is what files may leave out.
TEST(TransformerConfig, MT5)
{
  std::string text = T5("");
  text.replace(text.find("\"t5\""), 4, "\"mt5\"");
  const TransformerConfig decoder = Parse(text);
  EXPECT_EQ(decoder.architecture, "mt5");
  EXPECT_FALSE(decoder.tiedUnembedding);
  EXPECT_EQ(decoder.logitScale, 1);
  for (const TransformerConfig* config : { &decoder, decoder.encoder.get() })
  {
    EXPECT_TRUE(config->gated);
    EXPECT_EQ(config->activation, Activation::GeluTanh);
    EXPECT_EQ(config->position, PositionKind::Relative);
    EXPECT_EQ(config->ScoreScale(0), 1);
  }
}

TEST(TransformerConfig, MBartAndPegasus)
{
  for (const std::string name : { "mbart", "pegasus" })
  {
    const bool isMBart = name == "mbart";
    const TransformerConfig decoder = Parse(Pair(name, R"(, "scale_embedding": true)"));
    for (const TransformerConfig* config : { &decoder, decoder.encoder.get() })
    {
      EXPECT_EQ(config->normPlace, NormPlace::BeforeSublayer);
      EXPECT_TRUE(config->finalNorm);
      EXPECT_TRUE(config->lastResidualIsNormed);
      EXPECT_EQ(config->embeddingNorm, isMBart);
      EXPECT_EQ(config->position, isMBart ? PositionKind::Learned : PositionKind::Sinusoidal);
      EXPECT_EQ(config->firstPosition, isMBart ? 2 : 0);
      EXPECT_EQ(config->embeddingScale, std::sqrt(12.0));
      EXPECT_EQ(config->activation, Activation::Gelu);
      EXPECT_EQ(config->vocabulary, 7);
    }
    EXPECT_EQ(decoder.encoder->mask, AttentionMask::Bidirectional);
    EXPECT_TRUE(decoder.tiedUnembedding);
    EXPECT_EQ(decoder.decoderStart, isMBart ? -1 : 0); // of mBART a language
    EXPECT_EQ(Parse(Pair(name, R"(, "decoder_start_token_id": 2)")).decoderStart, 2);
  }
}

TEST(TransformerConfig, Marian)
{
  const TransformerConfig decoder =
    Parse(Pair("marian", R"(, "activation_function": "swish", "max_position_embeddings": 24)"));
  const TransformerConfig& encoder = *decoder.encoder;
  for (const TransformerConfig* config : { &encoder, &decoder })
  {
    EXPECT_EQ(config->position, PositionKind::Sinusoidal);
    EXPECT_EQ(config->positions, 24);
    EXPECT_EQ(config->firstPosition, 0);
    EXPECT_FALSE(config->embeddingNorm);
    EXPECT_EQ(config->embeddingScale, 1);
    EXPECT_EQ(config->activation, Activation::Silu);
    EXPECT_EQ(config->vocabulary, 7);
  }
  EXPECT_EQ(decoder.decoderStart, -1); // 58100 is beyond the vocabulary
  const TransformerConfig own = Parse(Pair("marian", R"(, "decoder_vocab_size": 9,
    "share_encoder_decoder_embeddings": false, "decoder_start_token_id": 8)"));
  EXPECT_EQ(own.encoder->vocabulary, 7);
  EXPECT_EQ(own.vocabulary, 9);
  EXPECT_EQ(own.outputVocabulary, 9);
  EXPECT_EQ(own.decoderStart, 8);
}

/// New files say with which token texts begin only there; a number that is no id counts as none.
TEST(TransformerConfig, StartOfTargetsMayBeInTheSettingsOfGeneration)
{
  const TemporaryDirectory folder;
  WriteBytes(folder / "config.json", Pair("marian"));
  const auto start = [&](const std::string& settings)
  {
    WriteBytes(folder / "generation_config.json", settings);
    return ReadTransformerConfig(folder / "config.json").decoderStart;
  };
  EXPECT_EQ(start("{}"), -1);
  EXPECT_EQ(start(R"({"decoder_start_token_id": 6})"), 6);
  EXPECT_EQ(start(R"({"decoder_start_token_id": 7})"), -1);
  EXPECT_EQ(start(R"({"decoder_start_token_id": -1})"), -1);
  EXPECT_EQ(start(R"({"decoder_start_token_id": null})"), -1);
}

TEST(TransformerConfig, Whisper)
{
  const TransformerConfig decoder = Parse(Pair("whisper"));
  const TransformerConfig& encoder = *decoder.encoder;
  EXPECT_EQ(encoder.input, InputKind::Sound);
  EXPECT_EQ(encoder.melBands, 80);
  EXPECT_EQ(encoder.positions, 1500);
  EXPECT_EQ(encoder.vocabulary, 0);
  EXPECT_EQ(decoder.input, InputKind::Tokens);
  EXPECT_EQ(decoder.positions, 448);
  for (const TransformerConfig* config : { &encoder, &decoder })
  {
    EXPECT_EQ(config->position, PositionKind::Learned);
    EXPECT_EQ(config->firstPosition, 0);
    EXPECT_EQ(config->normPlace, NormPlace::BeforeSublayer);
    EXPECT_TRUE(config->finalNorm);
  }
}

TEST(TransformerConfig, EndsOfTextsAreOneIdOrSeveral)
{
  const auto ends = [](const std::string& value)
  {
    return ParseTransformerConfig(R"({"model_type": "gpt2", "n_embd": 8, "n_head": 2, "n_layer": 1,
      "vocab_size": 100, "eos_token_id": )" +
                                    value + "}",
      "config.json")
      .endTokens;
  };
  EXPECT_THAT(ends("7"), testing::ElementsAre(7));
  EXPECT_THAT(ends("[7, 99, 100]"), testing::ElementsAre(7, 99)); // the last is no id
  for (const char* none : { "null", "-1", "100", "\"</s>\"", "[]", "1e300", "{}" })
  {
    EXPECT_THAT(ends(none), testing::IsEmpty()) << none;
  }
}

}

TEST(TransformerConfig, GenerationConfigNamesTheEndTokens)
{
  const TemporaryDirectory folder;
  const auto ends = [&] { return ReadTransformerConfig(folder / "config.json").endTokens; };
  WriteBytes(folder / "config.json", R"({"model_type": "gpt2", "n_layer": 1, "n_head": 1,
    "n_embd": 4, "vocab_size": 9, "eos_token_id": 2})");
  EXPECT_THAT(ends(), testing::ElementsAre(2));
  WriteBytes(folder / "generation_config.json", R"({"temperature": 0.6})");
  EXPECT_THAT(ends(), testing::ElementsAre(2));
  WriteBytes(folder / "generation_config.json", R"({"eos_token_id": [7, 8]})");
  EXPECT_THAT(ends(), testing::ElementsAre(7, 8));
  WriteBytes(folder / "generation_config.json", R"({"decoder_start_token_id": 1})");
  EXPECT_EQ(ReadTransformerConfig(folder / "config.json").decoderStart, -1) << "has no encoder";
  WriteBytes(folder / "generation_config.json", "[]");
  EXPECT_THAT(MessageOf<FormatError>(ends),
    testing::HasSubstr("generation_config.json: expected a JSON object, found"));
}
