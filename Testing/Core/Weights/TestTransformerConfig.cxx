#include "Weights/TransformerConfig.h"

#include "Base/Error.h"
#include "ConfigTexts.h"
#include "ExpectMembers.h"
#include "Refusals.h"
#include "TemporaryDirectory.h"

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

TEST(TransformerConfig, WhatAFileLeavesOutIsTheOriginalsDefault)
{
  const TransformerConfig gpt2 = ParseConfig(Gpt2());
  ExpectMembers(
    gpt2, "positions=1024 mlpDimension=48 activation=GeluTanh headDimension=4 tiedUnembedding=1");
  EXPECT_DOUBLE_EQ(gpt2.ScoreScale(1), 0.5);
  const TransformerConfig bert = ParseConfig(Decoder("bert"));
  ExpectMembers(bert, "positions=512 segments=2 activation=Gelu mask=Bidirectional");
  const TransformerConfig vit = ParseConfig(Vit());
  EXPECT_EQ(vit.positions, 14 * 14 + 1);
  ExpectMembers(ParseConfig(Llama()), "keyHeads=6 rotaryBase=10000 tiedUnembedding=0 inputBias=0");
}

/// Where both names of the rotation's settings are there and say the same, each counts as alone.
TEST(TransformerConfig, ARotationMayBeSaidTwice)
{
  const std::string scaling = R"("rope_scaling": {"type": "linear", "factor": 2.0})";
  for (const std::string& more : { std::string(),
         std::string(
           R"(, "rope_parameters": {"rope_theta": 100, "rope_type": "linear", "factor": 2})"),
         std::string(R"(, "rope_parameters": {"rope_type": "linear", "factor": 2})") })
  {
    const TransformerConfig config =
      ParseConfig(Llama(R"(, "rope_theta": 100.0, )" + scaling + more));
    EXPECT_EQ(config.rotaryBase, 100) << more;
    EXPECT_EQ(config.rotaryScaling.kind, RotaryScaling::Kind::Linear) << more;
    EXPECT_EQ(config.rotaryScaling.factor, 2) << more;
  }
  const TransformerConfig same = ParseConfig(Llama(R"(, "original_max_position_embeddings": 16,
    "rope_scaling": {"type": "yarn", "factor": 2, "original_max_position_embeddings": 16})"));
  EXPECT_EQ(same.rotaryScaling.originalPositions, 16);
  ExpectMembers(ParseConfig(Decoder(
                  "gemma", R"(, "hidden_act": "gelu", "hidden_activation": "gelu_pytorch_tanh")")),
    "activation=GeluTanh");
}

TEST(TransformerConfig, DefaultsOfTodaysModels)
{
  const TransformerConfig gemma2 = ParseConfig(Decoder("gemma2"));
  ExpectMembers(gemma2, "headDimension=256 scoreCap=50 logitCap=30 tiedUnembedding=1");
  EXPECT_EQ(gemma2.Window(0), 4096);
  EXPECT_EQ(gemma2.Window(1), 0);
  EXPECT_EQ(gemma2.ScoreScale(0), 1.0 / 16);
  EXPECT_DOUBLE_EQ(gemma2.embeddingScale, std::sqrt(12.0));
  EXPECT_EQ(ParseConfig(Decoder("gemma2", R"(, "attn_logit_softcapping": null)")).scoreCap, 0);
  EXPECT_EQ(ParseConfig(Decoder("gemma2", R"(, "sliding_window": null)")).Window(0), 0);
  // Older files name the activation gelu, but it always was its approximation.
  EXPECT_EQ(
    ParseConfig(Decoder("gemma", R"(, "hidden_act": "gelu")")).activation, Activation::GeluTanh);
  const TransformerConfig mistral = ParseConfig(Decoder("mistral"));
  EXPECT_EQ(mistral.Window(0), 4096);
  EXPECT_EQ(ParseConfig(Decoder("mistral", R"(, "sliding_window": null)")).Window(0), 0);
  ExpectMembers(mistral, "headDimension=2 inputBias=0");
  EXPECT_EQ(ParseConfig(Decoder("mistral", R"(, "head_dim": null)")).headDimension, 2);
  const TransformerConfig qwen2 = ParseConfig(Decoder("qwen2", R"(, "sliding_window": 4)"));
  EXPECT_EQ(qwen2.Window(1), 0);
  ExpectMembers(qwen2, "inputBias=1 outputBias=0");
  const TransformerConfig later = ParseConfig(Decoder(
    "qwen2", R"(, "sliding_window": 4, "use_sliding_window": true, "max_window_layers": 1)"));
  EXPECT_EQ(later.windows, (std::vector<std::int64_t>{ 0, 4 }));
  const TransformerConfig neo = ParseConfig(Neo());
  EXPECT_EQ(neo.windows, (std::vector<std::int64_t>{ 0, 256 }));
  EXPECT_EQ(neo.ScoreScale(1), 1);
  const TransformerConfig stablelm =
    ParseConfig(Decoder("stablelm", R"(, "hidden_size": 48, "use_parallel_residual": true,
      "qk_layernorm": true)")); // heads of 8
  ExpectMembers(stablelm, "order=ParallelOfOneNorm queryKeyNorm=OfEachHead");
  EXPECT_EQ(stablelm.RotatedDimension(), 2);
  ExpectMembers(
    ParseConfig(R"({"model_type": "clip_text_model"})"), "positions=77 activation=QuickGelu");
}

TEST(TransformerConfig, MixturesOfExperts)
{
  const TransformerConfig mixtral = ParseConfig(Decoder("mixtral"));
  ExpectMembers(
    mixtral, "experts=8 expertsPerToken=2 expertDimension=20 rotaryBase=1e6 expertWeightsOfAll=0");
  EXPECT_EQ(mixtral.Window(1), 0);
  EXPECT_TRUE(mixtral.HasExperts(0));
  EXPECT_EQ(ParseConfig(Decoder("mixtral", R"(, "sliding_window": 5)")).Window(1), 5);

  ExpectMembers(ParseConfig(Decoder("qwen2_moe")),
    "experts=60 expertsPerToken=4 expertDimension=1408 sharedExpertDimension=5632 "
    "expertWeightsOfAll=1 inputBias=1");
  EXPECT_FALSE(ParseConfig(Decoder("qwen2_moe", R"(, "norm_topk_prob": true)")).expertWeightsOfAll);
  const TransformerConfig some = ParseConfig(Decoder("qwen2_moe",
    R"(, "num_hidden_layers": 5, "decoder_sparse_step": 2, "mlp_only_layers": [3, 4, 9])"));
  EXPECT_EQ(some.expertLayers, (std::vector<bool>{ false, true, false, false, false }));
  const TransformerConfig windows = ParseConfig(Decoder("qwen2_moe",
    R"(, "num_hidden_layers": 5, "use_sliding_window": true, "sliding_window": 6, "max_window_layers": 3)"));
  EXPECT_EQ(windows.windows, (std::vector<std::int64_t>{ 6, 0, 6, 0, 0 }));

  const TransformerConfig qwen3 = ParseConfig(
    Decoder("qwen3_moe", R"(, "use_sliding_window": true, "sliding_window": 6, "head_dim": 4)"));
  ExpectMembers(qwen3, "experts=128 expertsPerToken=8 expertDimension=768 sharedExpertDimension=0 "
                       "queryKeyNorm=OfAllHeads");
  EXPECT_EQ(qwen3.windows, (std::vector<std::int64_t>{ 6, 6 }));

  const TransformerConfig olmoe = ParseConfig(Decoder("olmoe", R"(, "clip_qkv": 8.0)"));
  ExpectMembers(olmoe,
    "experts=64 expertsPerToken=8 expertDimension=20 projectionClip=8 queryKeyNorm=Together "
    "expertWeightsOfAll=1");
}

TEST(TransformerConfig, LatentAttention)
{
  const TransformerConfig lite = ParseConfig(DeepSeek());
  ExpectMembers(lite,
    "headDimension=6 keyLatent=5 queryLatent=0 expertGroups=0 sharedExpertDimension=20 "
    "sharedExpertHasGate=0");
  EXPECT_EQ(lite.ValueDimension(), 3);
  EXPECT_EQ(lite.RotatedDimension(), 2);
  EXPECT_DOUBLE_EQ(lite.ScoreScale(0), 1 / std::sqrt(6.0));
  EXPECT_EQ(lite.expertLayers, (std::vector<bool>{ false, true }));
  const TransformerConfig yarn =
    ParseConfig(DeepSeek(R"(, "rope_scaling": {"type": "yarn", "factor": 40,
    "original_max_position_embeddings": 64, "mscale": 0.707, "mscale_all_dim": 0.707},
    "topk_method": "group_limited_greedy", "n_group": 4, "topk_group": 2)"));
  const double magnitude = 0.0707 * std::log(40) + 1;
  EXPECT_NEAR(yarn.ScoreScale(0), magnitude * magnitude / std::sqrt(6.0), 1e-12);
  EXPECT_DOUBLE_EQ(yarn.rotaryScaling.attentionFactor, 1);
  ExpectMembers(yarn, "expertGroups=4 expertGroupsPerToken=2");
}

/// The experts of DeepSeek-V3 and its kin; what transformers 5.17 computes with most switches is in
/// TestSavedModels.
TEST(TransformerConfig, RoutersWithABias)
{
  const std::string file = DeepSeek(R"(, "num_nextn_predict_layers": 2, "n_group": 4,
    "topk_group": 2, "scoring_func": "sigmoid", "topk_method": "noaux_tc", "n_shared_experts": 0)");
  const auto as = [&](const std::string& type)
  { return ParseConfig(std::string(file).replace(file.find("deepseek_v2"), 11, type)); };
  const TransformerConfig deepseek = as("deepseek_v3");
  ExpectMembers(deepseek, "keyLatent=5 expertGroups=4 expertGroupsPerToken=2 "
                          "sharedExpertDimension=0 expertWeightsOfAll=0");
  EXPECT_EQ(deepseek.expertScores, ExpertScores::Sigmoid);
  EXPECT_TRUE(deepseek.expertBias);
  EXPECT_EQ(deepseek.expertGroupScores, 2);
  EXPECT_EQ(deepseek.expertFactor, 2.5);
  EXPECT_EQ(deepseek.predictionLayers, 2);
  EXPECT_EQ(as("glm4_moe_lite").expertLayers, (std::vector<bool>{ false, true }));

  const TransformerConfig ernie = ParseConfig(Decoder("ernie4_5_moe", R"(, "num_hidden_layers": 4,
    "moe_layer_end_index": -1, "moe_layer_start_index": 2, "num_key_value_heads": 2)"));
  EXPECT_EQ(ernie.expertLayers, (std::vector<bool>{ false, false, true, true }));
  EXPECT_EQ(ernie.expertLeastSum, 1e-12);

  const TransformerConfig published = ParseConfig(
    Decoder("minimax_m2", R"(, "rotary_dim": 4, "head_dim": 8, "num_key_value_heads": 2)"));
  EXPECT_EQ(published.RotatedDimension(), 4);
}

TEST(TransformerConfig, Llama4)
{
  // Scout, as it was published.
  const TransformerConfig scout = ParseConfig(Decoder("llama4_text", R"(, "num_hidden_layers": 4,
    "num_key_value_heads": 2, "no_rope_layers": [], "attn_temperature_tuning": 4,
    "attention_chunk_size": 8, "interleave_moe_layer_step": 2, "use_qk_norm": true, "head_dim": 4,
    "rope_theta": 100.0, "rope_scaling": {"rope_type": "llama3", "factor": 16.0,
    "high_freq_factor": 1.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 32})"));
  // Rotations by 1 and 0.1 per position turn 5 times and half a time in 32 positions.
  const std::vector<float> frequencies = RotaryFrequencies(scout);
  EXPECT_THAT(frequencies, ElementsAre(FloatEq(1), FloatEq(0.1F / 16)));
  EXPECT_EQ(scout.chunks, (std::vector<std::int64_t>{ 8, 8, 8, 0 }));
  EXPECT_EQ(scout.rotatedLayers, (std::vector<bool>{ true, true, true, false }));
  EXPECT_EQ(scout.expertLayers, (std::vector<bool>{ false, true, false, true }));
  EXPECT_EQ(scout.queryKeyNorm, QueryKeyNorm::WithoutGain);
  EXPECT_EQ(scout.queryGrowth, 0.1);
  EXPECT_TRUE(scout.expertScalesInput);
  const TransformerConfig other = ParseConfig(Decoder("llama4_text", R"(, "num_key_value_heads": 2,
    "attn_temperature_tuning": false, "moe_layers": [1], "layer_types":
    ["full_attention", "chunked_attention"])"));
  EXPECT_EQ(other.queryGrowth, 0);
  EXPECT_EQ(other.expertLayers, (std::vector<bool>{ false, true }));
  EXPECT_EQ(other.chunks, (std::vector<std::int64_t>{ 0, 8192 }));
}

/// Gemma 3: sliding layers have a base of their own and no scaling, in files of any age.
TEST(TransformerConfig, RotationsMayDependOnTheLayer)
{
  const std::string sizes =
    R"(, "head_dim": 4, "num_key_value_heads": 2, "sliding_window": 4, "sliding_window_pattern": 2)";
  const TransformerConfig old = ParseConfig(
    Decoder("gemma3_text", sizes + R"(, "rope_theta": 100.0, "rope_local_base_freq": 10000.0,
      "rope_scaling": {"rope_type": "linear", "factor": 4.0})"));
  const TransformerConfig modern = ParseConfig(Decoder(
    "gemma3_text", sizes + R"(, "rope_parameters": {"sliding_attention": {"rope_theta": 10000.0},
      "full_attention": {"rope_theta": 100.0, "rope_type": "linear", "factor": 4.0}})"));
  for (const TransformerConfig& config : { old, modern })
  {
    EXPECT_EQ(config.windows, (std::vector<std::int64_t>{ 4, 0 }));
    EXPECT_THAT(RotaryFrequencies(config, 0), ElementsAre(1, 0.01F));
    EXPECT_THAT(RotaryFrequencies(config, 1), ElementsAre(0.25F, 0.025F));
  }
}

/// Of any family, and also if only one kind of layer has its own.
TEST(TransformerConfig, NewFilesMayHaveRotationsByLayer)
{
  const TransformerConfig config =
    ParseConfig(Decoder("qwen3", R"(, "head_dim": 4, "num_key_value_heads": 2, "sliding_window": 4,
      "use_sliding_window": true, "layer_types": ["sliding_attention", "full_attention"],
      "rope_parameters": {"sliding_attention": {"rope_theta": 100.0},
        "full_attention": {"rope_theta": 10000.0, "rope_type": "linear", "factor": 2.0}})"));
  EXPECT_THAT(RotaryFrequencies(config, 0), ElementsAre(1, 0.1F));
  EXPECT_THAT(RotaryFrequencies(config, 1), ElementsAre(0.5F, 0.005F));
  const TransformerConfig same = ParseConfig(Decoder("qwen3", R"(, "head_dim": 4,
      "num_key_value_heads": 2, "sliding_window": 4, "use_sliding_window": true,
      "max_window_layers": 0, "rope_parameters": {"full_attention": {"rope_theta": 100.0}})"));
  EXPECT_THAT(RotaryFrequencies(same, 0), ElementsAre(1, 0.1F));
}

/// Settings of other models that the original code does not read do not count.
TEST(TransformerConfig, AnArchitectureReadsItsOwnSettings)
{
  ExpectMembers(
    ParseConfig(Decoder("gpt_neox",
      R"(, "hidden_size": 24, "rotary_pct": 0.5, "num_key_value_heads": 2, "head_dim": 6)")),
    "keyHeads=6 headDimension=4");
  ExpectMembers(
    ParseConfig(Decoder("stablelm",
      R"(, "hidden_size": 24, "partial_rotary_factor": 0.5, "num_key_value_heads": 2, "head_dim": 6)")),
    "keyHeads=2 headDimension=4");
  const TransformerConfig gptJ = ParseConfig(Gpt2(R"(, "model_type": "gptj", "rotary_dim": 4,
    "scale_attn_weights": false, "scale_attn_by_inverse_layer_idx": true)"));
  EXPECT_DOUBLE_EQ(gptJ.ScoreScale(1), 0.5);
  EXPECT_EQ(ParseConfig(Gpt2(R"(, "hidden_act": "relu")")).activation, Activation::GeluTanh);
  const TransformerConfig whisper =
    ParseConfig(EncoderDecoder("whisper", R"(, "scale_embedding": true)"));
  EXPECT_EQ(whisper.embeddingScale, 1);
  EXPECT_EQ(
    ParseConfig(Decoder("gemma", R"(, "hidden_act": "silu")")).activation, Activation::Silu);
}

TEST(TransformerConfig, ExpertsHaveTwoNames)
{
  for (const std::string key : { "num_experts", "num_local_experts" })
  {
    for (const char* type : { "qwen2_moe", "qwen3_moe", "olmoe", "mixtral", "gpt_oss" })
    {
      EXPECT_EQ(ParseConfig(Decoder(type, ", \"" + key + "\": 9")).experts, 9)
        << type << " " << key;
    }
  }
}

/// A weight of 0 counts as none, as in the original.
TEST(TransformerConfig, MagnitudesOfYarn)
{
  const auto factor = [](const std::string& more)
  {
    return ParseConfig(Llama(R"(, "rope_scaling": {"type": "yarn", "factor": 8.0)" + more + "}"))
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
  const TransformerConfig config = ParseConfig(Decoder("phi3", R"(, "max_position_embeddings": 64,
    "original_max_position_embeddings": 16, "head_dim": 4, "rope_theta": 100.0,
    "rope_scaling": {"type": "su", "short_factor": [1, 2], "long_factor": [4, 5]})"));
  EXPECT_THAT(RotaryFrequencies(config, 0, 16), ElementsAre(1, 0.05F));
  EXPECT_THAT(RotaryFrequencies(config, 0, 17), ElementsAre(0.25F, 0.02F));
  EXPECT_DOUBLE_EQ(config.rotaryScaling.attentionFactor, std::sqrt(1.5)); // 1 + ln 4 / ln 16
  const TransformerConfig own = ParseConfig(Decoder("phi3", R"(, "max_position_embeddings": 64,
    "original_max_position_embeddings": 16, "head_dim": 4, "rope_scaling": {"type": "longrope",
      "factor": 16.0, "short_factor": [1, 2], "long_factor": [4, 5]})"));
  EXPECT_DOUBLE_EQ(own.rotaryScaling.attentionFactor, std::sqrt(2.0)); // 1 + ln 16 / ln 16
}

TEST(TransformerConfig, OlderNamesOfSettingsAreKnown)
{
  ExpectMembers(ParseConfig(Gpt2(R"(, "n_ctx": 33, "activation_function": "relu")")),
    "positions=33 activation=Relu");
  const TransformerConfig bloom = ParseConfig(R"({"model_type": "bloom", "n_embed": 8,
    "num_attention_heads": 2, "num_hidden_layers": 1, "vocab_size": 3})");
  ExpectMembers(bloom, "modelDimension=8 heads=2 layers=1");
}

TEST(TransformerConfig, ScoresAreScaledAsSaid)
{
  const TransformerConfig byLayer =
    ParseConfig(Gpt2(R"(, "scale_attn_by_inverse_layer_idx": true)"));
  EXPECT_DOUBLE_EQ(byLayer.ScoreScale(0), 0.5);
  EXPECT_DOUBLE_EQ(byLayer.ScoreScale(3), 0.125);
  EXPECT_EQ(ParseConfig(Gpt2(R"(, "scale_attn_weights": false)")).ScoreScale(1), 1);
  EXPECT_DOUBLE_EQ(ParseConfig(Lens()).ScoreScale(0), 1 / std::sqrt(5.0));
  EXPECT_EQ(ParseConfig(Lens(R"(, "attn_scale": 8.0)")).ScoreScale(0), 0.125);
  EXPECT_EQ(ParseConfig(Lens(R"(, "use_attn_scale": false)")).ScoreScale(0), 1);
}

TEST(TransformerConfig, ImagesAndPatchesMayBeOblong)
{
  const TransformerConfig vit =
    ParseConfig(Vit(R"(, "image_size": [32, 48], "patch_size": [8, 16])"));
  EXPECT_EQ(vit.PatchRows(), 4);
  EXPECT_EQ(vit.PatchColumns(), 3);
  EXPECT_EQ(vit.positions, 13);
}

TEST(TransformerConfig, TransformerLensKnowsFoldedNorms)
{
  ExpectMembers(
    ParseConfig(Lens(R"(, "normalization_type": "LNPre")")), "norm=LayerNorm normsAreFolded=1");
  EXPECT_EQ(ParseConfig(Lens(R"(, "normalization_type": null)")).norm, NormKind::None);
  ExpectMembers(ParseConfig(Lens(
                  R"(, "attn_only": false, "act_fn": "gelu_new", "d_mlp": 31, "d_vocab_out": 4)")),
    "mlpDimension=31 outputVocabulary=4");
}

/// Press et al. give 1/2, 1/4 ... 1/256 for 8 heads; for 12, the original code adds every second
/// slope of 16 heads.
TEST(TransformerConfig, AlibiSlopesOfAnyNumberOfHeads)
{
  EXPECT_THAT(AlibiSlopes(8),
    ElementsAre(1.0 / 2, 1.0 / 4, 1.0 / 8, 1.0 / 16, 1.0 / 32, 1.0 / 64, 1.0 / 128, 1.0 / 256));
  const std::vector<double> slopes = AlibiSlopes(12);
  ASSERT_EQ(slopes.size(), 12U);
  EXPECT_DOUBLE_EQ(slopes[7], 1.0 / 256);
  EXPECT_DOUBLE_EQ(slopes[8], std::sqrt(0.5));
  EXPECT_DOUBLE_EQ(slopes[9], std::sqrt(0.5) / 2);
  EXPECT_DOUBLE_EQ(slopes[11], std::sqrt(0.5) / 8);
  EXPECT_THAT(AlibiSlopes(1), ElementsAre(1.0 / 256));
  EXPECT_THAT(AlibiSlopes(3), ElementsAre(1.0 / 16, 1.0 / 256, 1.0 / 4));
}

TEST(TransformerConfig, RotaryFrequenciesFallFromOne)
{
  const std::string sizes = R"(, "head_dim": 4, "rope_theta": 100.0)";
  EXPECT_THAT(RotaryFrequencies(ParseConfig(Llama(sizes))), ElementsAre(1, 0.1F));
  EXPECT_THAT(RotaryFrequencies(ParseConfig(
                Llama(sizes + R"(, "rope_scaling": {"type": "linear", "factor": 4.0})"))),
    ElementsAre(0.25F, 0.025F));
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
      RotaryFrequencies(ParseConfig(
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
  ExpectRefusals<FormatError>(
    { { "", "configuration is not JSON" }, { Gpt2() + "}", "configuration is not JSON" },
      { "[1, 2]", "to be a JSON object, found array" },
      { std::string(500'000, '[') + std::string(500'000, ']'), "found array" } },
    ParseConfig, "some/config.json: ");
}

TEST(TransformerConfig, AMissingFileIsNamed)
{
  EXPECT_THAT(MessageOf<FileError>([] { ReadTransformerConfig("/nowhere/config.json"); }),
    StartsWith("/nowhere/config.json: cannot open file"));
}

TEST(TransformerConfig, BadArchitecturesAreRefused)
{
  const std::vector<Refused> bad = { { "{}",
                                       "'model_type' is missing, expected one of albert, apertus" },
    { R"({"model_type": "hawk"})", "unknown model_type 'hawk', expected one of albert, apertus" },
    { R"({"model_type": "dbrx"})", "'dbrx' is a mixture of experts, which is not run here" },
    { R"({"model_type": "mamba2"})",
      "'mamba2' is a model with a recurrent state in all layers, and so without attention" },
    { R"({"model_type": "kimi_k2"})", "with latent attention" },
    { R"({"model_type": "clip"})", "clip_text_model or clip_vision_model" },
    { R"({"model_type": "siglip"})", "architecture siglip_vision_model" },
    { R"({"model_type": 5})", "'model_type' to be a string, found 5" } };
  ExpectRefusals<ModelError>(bad, ParseConfig, "some/config.json: ");
}

TEST(TransformerConfig, BadSizesAreRefused)
{
  const std::vector<Refused> bad = { { R"({"model_type": "gpt2"})", "'n_layer' is missing" },
    { R"({"model_type": "transformer_lens", "d_model": 4, "d_head": 5, "n_layers": 1})",
      "'d_head', 5, is larger than 'd_model', 4" },
    { Gpt2(R"(, "n_layer": 0)"), "'n_layer' to be an integer from 1 to 2147483647, found 0" },
    { Gpt2(R"(, "n_head": -1)"), "'n_head' to be an integer from 1" },
    { Gpt2(R"(, "n_embd": 12.5)"), "'n_embd' to be an integer from 1 to" },
    { Gpt2(R"(, "vocab_size": "7")"), "to be an integer from 1 to 2147483647" },
    { Gpt2(R"(, "n_positions": 1e30)"), "'n_positions' to be an integer" },
    { Gpt2(R"(, "n_head": 5)"),
      "number of heads, 5, does not divide the dimension of the model, 12" },
    { Llama(R"(, "head_dim": 2147483646)"), "2147483647 components of all heads, found 6 heads" },
    { Llama(R"(, "num_key_value_heads": 4)"),
      "heads of keys, 4, does not divide that of queries, 6" },
    { Vit(R"(, "image_size": 7, "patch_size": 8)"),
      "8 x 8 pixels do not fit in an image of 7 x 7" },
    { Vit(R"(, "image_size": [3, 8, 8])"), "an integer or two, found array" },
    { Gpt2(R"(, "layer_norm_epsilon": -1)"), "not negative, found -1" },
    { Gpt2(R"(, "scale_attn_weights": "no")"), "to be true or false, found \"no\"" },
    { Llama(R"(, "head_dim": 3)"), "of at most 3 of a head, found 3" } };
  ExpectRefusals<ModelError>(bad, ParseConfig, "some/config.json: ");
}

TEST(TransformerConfig, BadVariantsAreRefused)
{
  const std::vector<Refused> bad = { { Gpt2(R"(, "activation_function": "mish")"),
                                       "'mish', expected one of gelu, gelu_fast" },
    { Gpt2(R"(, "add_cross_attention": true)"), "'add_cross_attention' is true" },
    { Decoder("bert", R"(, "is_decoder": true)"), "'is_decoder' is true" },
    { Decoder("bert", R"(, "position_embedding_type": "relative_key")"),
      "'relative_key', expected one of absolute" },
    { Decoder("bloom", R"(, "apply_residual_connection_post_layernorm": true)"),
      "connection_post_layernorm' is true" },
    { Llama(R"(, "sliding_window": 4096)"), "'sliding_window' is 4096" },
    { Llama(R"(, "rope_scaling": {"rope_type": "yarn"})"), "'factor' is missing" },
    { Llama(R"(, "rope_scaling": {"rope_type": "ntk"})"),
      "'ntk', expected one of default, dynamic, linear, llama3, longrope, mrope, proportional, su, "
      "yarn" },
    { Llama(R"(, "rope_scaling": {"rope_type": "linear", "factor": 0})"),
      "'factor' to be a positive number, found 0" },
    { Llama(R"(, "rope_scaling": {"rope_type": "yarn", "factor": -4.0})"),
      "'factor' to be a positive number, found -4" },
    { Llama(R"(, "rope_theta": 1, "rope_scaling": {"rope_type": "yarn", "factor": 4.0})"),
      "'rope_theta' to be above 1, found 1" },
    { Decoder("phi3", R"(, "rope_scaling": {"type": "longrope"})"), "'short_factor' is missing" },
    { Decoder("phi3", R"(, "rope_scaling": {"type": "longrope", "short_factor": [1.0, 2.0]})"),
      "'short_factor' to be a number or a list of 1" },
    { Decoder("phi3",
        R"(, "rope_scaling": {"type": "longrope", "short_factor": [1], "long_factor": [0]})"),
      "'long_factor' to be positive numbers, found 0" },
    { Decoder("phi3", R"(, "original_max_position_embeddings": 1,
        "rope_scaling": {"type": "longrope", "short_factor": [1], "long_factor": [2]})"),
      "'original_max_position_embeddings' to be above 1" },
    { Llama(R"(, "quantization_config": {"quant_method": "aqlm"})"),
      "the weights are quantized by aqlm" },
    { Decoder("mistral", R"(, "sliding_window": 0)"),
      "'sliding_window' to be an integer from 1 to 2147483647, found 0" },
    { Decoder("gemma2", R"(, "sliding_window": -4)"), "from 1 to 2147483647, found -4" },
    { Decoder("mistral", R"(, "sliding_window": 4, "num_hidden_layers": 2147483647)"),
      "100000 layers, found 2147483647" },
    { Decoder("mistral", R"(, "sliding_window": 4, "layer_types": ["full_attention"])"),
      "'layer_types' to be a list of 2 names" },
    { Decoder("gemma2", R"(, "sliding_window": 4, "layer_types": ["full_attention", "linear"])"),
      "'linear', expected full_attention or" },
    { Decoder("mistral", R"(, "layer_types": ["sliding_attention", "full_attention"])"),
      "'layer_types' to be sliding_attention in all layers" },
    { Decoder("qwen2", R"(, "layer_types": ["sliding_attention", "full_attention"])"),
      "'layer_types' is array, which changes" },
    { Llama(R"(, "rope_scaling": {"type": "linear", "factor": 2},
        "rope_parameters": {"rope_theta": 100, "rope_type": "default"})"),
      "'rope_scaling' and 'rope_parameters' to be the same, found 2 and null" },
    { Llama(R"(, "rope_scaling": {"type": "linear", "factor": 2}, "rope_parameters": {})"),
      "'rope_scaling' and 'rope_parameters' to be the same, found 2 and null" },
    { Llama(R"(, "rope_theta": 10000, "rope_scaling": {"rope_type": "linear", "factor": 2},
        "rope_parameters": {"rope_theta": 100, "rope_type": "linear", "factor": 2})"),
      "the rope_theta of 'rope_scaling' and 'rope_parameters' to be the same, found 10000" },
    { Llama(R"(, "original_max_position_embeddings": 8, "rope_scaling": {"rope_type": "yarn",
        "factor": 2, "original_max_position_embeddings": 16})"),
      "expected 'original_max_position_embeddings' to be the same in the settings of rotations and "
      "beside them, found 16 and 8" },
    { Decoder("gemma", R"(, "hidden_act": "silu", "hidden_activation": "gelu_pytorch_tanh")"),
      "expected 'hidden_act' and 'hidden_activation' to be the same, found silu and gelu_pytorch" },
    { Decoder("gemma", R"(, "hidden_activation": "silu")"), "found gelu_pytorch_tanh and silu" },
    { Decoder("gemma3_text", R"(, "head_dim": 4,
        "num_key_value_heads": 2, "rope_parameters": {"full_attention": {"rope_theta": 100},
        "sliding_attention": {"rope_theta": 100, "partial_rotary_factor": 0.5}})"),
      "sliding_attention.partial_rotary_factor' is 0.5" },
    { R"({"model_type": "clip_text_model", "text_config":
        {"hidden_act": "gelu"}, "text_config_dict": {"hidden_act": "relu"}})",
      "hidden_act of 'text_config_dict' and 'text_config'" },
    { Decoder("gemma2", R"(, "attn_logit_softcapping": -1)"), "not negative, found -1" },
    { Decoder("gemma2", R"(, "query_pre_attn_scalar": 0)"), "a positive number, found 0" },
    { Decoder("gpt_neox", R"(, "rotary_pct": 1.5)"), "found the partial_rotary_factor 1.5" },
    { Decoder("gpt_neox", R"(, "rotary_pct": 0.25)"), "components of a head, found 0 of 2" },
    { Decoder("gpt_oss", R"(, "num_local_experts": 2, "num_experts_per_tok": 3)"),
      "at most 2 experts per token, found 3" },
    { Decoder("qwen2_moe", R"(, "mlp_only_layers": [-1])"),
      "'mlp_only_layers' to be a list of numbers of" },
    { DeepSeek(R"(, "v_head_dim": 7)"), "'qk_rope_head_dim', 6, found 7" },
    { DeepSeek(R"(, "topk_method": "group_limited_greedy",
        "n_group": 4, "topk_group": 1)"),
      "8 experts in 4 groups, 3 of them from 1 groups" },
    { DeepSeek(R"(, "scoring_func": "sigmoid")"), "'scoring_func' to be \"softmax\"" },
    { Decoder("llama4_text", R"(, "num_key_value_heads": 2, "attention_chunk_size": null)"),
      "'attention_chunk_size' to be a number of tokens, found null" },
    { Decoder("llama4_text", R"(, "num_key_value_heads": 2, "layer_types":
        ["sliding_attention", "full_attention"])"),
      "'sliding_attention', expected chunked_attention or full_attention" },
    { Decoder("qwen3_moe", R"(, "decoder_sparse_step": 0)"),
      "'decoder_sparse_step' to be an integer from 1" },
    { T5(R"(, "relative_attention_num_buckets": 3)"),
      "num_buckets' to be an integer from 4 to 65536, found 3" },
    { T5(R"(, "relative_attention_max_distance": 16)"), "found 16 and 32" },
    { T5(R"(, "relative_attention_max_distance": 65537)"), "from 1 to 65536, found 65537" },
    { T5(R"(, "feed_forward_proj": "gated-mish")"),
      "'gated-mish', expected one of gated-gelu, gated-relu" },
    { T5(R"(, "decoder_start_token_id": 7)"), "an integer from 0 to 6, found 7" },
    { EncoderDecoder("bart", R"(, "encoder_attention_heads": 5)"),
      "number of heads, 5, does not divide the dimension of the model, 12" },
    { EncoderDecoder("whisper", R"(, "num_mel_bins": 0)"),
      "'num_mel_bins' to be an integer from 1" },
    { Decoder("roberta", R"(, "max_position_embeddings": 2)"),
      "above 'pad_token_id' + 1, found 2 and 1" },
    { Neo(R"(, "attention_types": [[["global", "local"], 2]])"),
      "[[kinds], repetitions] for 2 layers" },
    { Neo(R"(, "attention_layers": ["global", "sparse"])"), "kind of attention 'sparse'" },
    { Gpt2(R"(, "model_type": "gptj", "rotary_dim": 6)"), "of at most 4 of a head, found 6" },
    { Decoder("dinov2", R"(, "mlp_ratio": 0.01)"), "'mlp_ratio' to give an MLP of at least one" },
    { Llama(R"(, "rope_scaling": 4)"), "to be an object, found 4" },
    { Llama(R"(, "partial_rotary_factor": 0.5)"), "partial_rotary_factor 0.5" },
    { Lens(R"(, "positional_embedding_type": "relative")"),
      "'relative', expected one of alibi, rotary, shortformer, standard" },
    { Lens(R"(, "positional_embedding_type": "rotary")"),
      "even and at most 'd_head', found 5 of 5" },
    { Lens(R"(, "positional_embedding_type": "rotary", "d_head": 8, "rotary_dim": 10)"),
      "even and at most 'd_head', found 10 of 8" },
    { Lens(R"(, "use_NTK_by_parts_rope": true)"), "'use_NTK_by_parts_rope' is true" },
    { Lens(R"(, "positional_embedding_type": "alibi", "attention_dir": "bidirectional")"),
      "'attention_dir' is bidirectional" },
    { Lens(R"(, "normalization_type": "RMS", "post_embedding_ln": true)"),
      "expected 'normalization_type' LN or LNPre" },
    { Lens(R"(, "normalization_type": "BN")"),
      "'BN', expected one of LN, LNPre, RMS, RMSPre, null" },
    { Lens(R"(, "attn_scores_soft_cap": 50.0)"), "'attn_scores_soft_cap' is 50" },
    { Lens(R"(, "attn_only": false, "act_fn": "solu_ln")"), "unknown act_fn 'solu_ln'" } };
  ExpectRefusals<ModelError>(bad, ParseConfig, "some/config.json: ");
}

/// Which layers have attention, "a", and which have not, "-".
std::string LayersOf(const TransformerConfig& config)
{
  std::string layers;
  for (std::int64_t l = 0; l < config.layers; ++l)
  {
    layers += config.HasAttention(l) ? "a" : "-";
  }
  return layers;
}

/// By the classes of settings of the original code.
TEST(TransformerConfig, LayersWithoutAttention)
{
  const auto parse = [](const std::string& type, const std::string& more)
  {
    return ParseConfig(R"({"model_type": ")" + type +
                       R"(", "hidden_size": 16, "num_attention_heads": 2,
      "num_key_value_heads": 2, "num_hidden_layers": 5, "vocab_size": 7, "intermediate_size": 100)" +
                       more + "}");
  };
  EXPECT_EQ(LayersOf(parse("lfm2", "")), "aaaaa");
  EXPECT_EQ(LayersOf(parse("lfm2", R"(, "full_attn_idxs": [1, 3])")), "-a-a-");
  EXPECT_EQ(parse("lfm2", "").mlpDimension, 256);
  EXPECT_EQ(parse("lfm2", R"(, "block_auto_adjust_ff_dim": false)").mlpDimension, 100);
  EXPECT_EQ(parse("lfm2", R"(, "block_ffn_dim_multiplier": null)").mlpDimension, 66);
  EXPECT_EQ(
    parse("lfm2", R"(, "block_ff_dim": 60, "block_multiple_of": 7)").mlpDimension, 42); // of 40
  EXPECT_EQ(LayersOf(parse("qwen3_next", "")), "---a-");
  EXPECT_EQ(LayersOf(parse("qwen3_next", R"(, "full_attention_interval": 2)")), "-a-a-");
  EXPECT_EQ(LayersOf(parse("qwen3_5_text", R"(, "layer_types":
    ["full_attention", "linear_attention", "attention", "mamba", "linear_attention"])")),
    "a-a--");
  EXPECT_THAT(
    parse("qwen3_next", R"(, "decoder_sparse_step": 2, "mlp_only_layers": [1])").expertLayers,
    ElementsAre(false, false, false, true, false));
  EXPECT_THAT(
    parse("qwen3_5_moe_text", R"(, "decoder_sparse_step": 2, "mlp_only_layers": [1])").expertLayers,
    IsEmpty()); // as in the original code, which does not read them
  EXPECT_EQ(LayersOf(parse("lfm2_moe", R"(, "layer_types":
    ["conv", "conv", "full_attention", "conv", "full_attention"])")),
    "--a-a");
  EXPECT_THAT(
    MessageOf<ModelError>([&] { parse("lfm2_moe", ""); }), HasSubstr("'layer_types' is missing"));
  const std::string sizes = R"(, "mamba_n_heads": 4, "mamba_d_state": 6)";
  const std::string types =
    R"(, "layer_types": ["mamba", "attention", "mamba", "linear_attention", "full_attention"])" +
    sizes;
  const TransformerConfig granite =
    parse("granitemoehybrid", types + R"(, "mamba_d_head": "auto", "num_local_experts": 0)");
  EXPECT_EQ(LayersOf(granite), "-a--a");
  ExpectMembers(granite, "position=None mlpDimension=1024 experts=0 mixerHeads=4 mixerKeyHeads=1 "
                         "mixerValueDimension=8 mixerTaps=4 mixerTapsBias=1 mixerMostStep=0");
  ExpectMembers(parse("granitemoehybrid", types + R"(, "position_embedding_type": "rope",
      "time_step_limit": [0.5, {"__float__": "Infinity"}])"),
    "position=Rotary mlpDimension=100 experts=8 sharedExpertDimension=1024 mixerLeastStep=0.5 "
    "mixerMostStep=0");
  ExpectMembers(parse("granitemoehybrid", types + R"(, "time_step_limit": [0.5, Infinity])"),
    "mixerLeastStep=0.5 mixerMostStep=0");
  EXPECT_EQ(LayersOf(parse("bamba", types)), "-a--a");
  EXPECT_EQ(LayersOf(parse("bamba", sizes + R"(, "attn_layer_indices": [1, 4])")), "-a--a");
  EXPECT_EQ(LayersOf(parse("bamba", types + R"(, "attn_layer_indices": [4, 1])")), "-a--a");
  ExpectMembers(parse("bamba", types + R"(, "partial_rotary_factor": 0.5)"), "rotaryDimension=4");
  ExpectMembers(parse("bamba", types + R"(, "rope_parameters": {"partial_rotary_factor": 0.25})"),
    "rotaryDimension=2");
  for (const auto& [type, more, message] :
    { std::tuple("bamba", types + R"(, "attn_layer_indices": [1])",
        "expected 'attn_layer_indices' to be the layers with attention of 'layer_types', found "
        "layer 4 in one of them"),
      std::tuple("granitemoehybrid", sizes + R"(, "attn_layer_indices": [1, 4])",
        "'attn_layer_indices' is array, which changes what a model computes"),
      std::tuple("bamba", types + R"(, "partial_rotary_factor": 1.0)",
        "expected 'partial_rotary_factor' to be 0.5, as in the original code"),
      std::tuple("granitemoehybrid", types + R"(, "time_step_limit": [0.5, -Infinity])",
        "expected 'time_step_limit' to be a number"),
      std::tuple("bamba", sizes + R"(, "layer_types": ["conv", "conv", "conv", "conv", "conv"])",
        "unknown layer_types 'conv', expected one of attention, full_attention, linear_attention, "
        "mamba"),
      std::tuple("granitemoehybrid", types + R"(, "rms_norm_eps": NaN)", "rms_norm_eps"),
      std::tuple(
        "lfm2", types, "unknown layer_types 'mamba', expected one of conv, full_attention") })
  {
    EXPECT_THAT(
      MessageOf<ModelError>([&, t = type, m = more] { parse(t, m); }), HasSubstr(message));
  }
  for (const auto& [more, message] :
    { std::pair(R"(, "mamba_d_head": 7)", "to be 'mamba_expand' times 'hidden_size', 32, found 4 "
                                          "times 7"),
      std::pair(R"(, "mamba_n_groups": 3)", "'mamba_n_groups', 3, divides, found 4"),
      std::pair(R"(, "time_step_limit": [0.5])", "expected 'time_step_limit' to be a number"),
      std::pair(R"(, "position_embedding_type": "alibi")",
        "unknown position_embedding_type 'alibi', expected one of nope, rope") })
  {
    EXPECT_THAT(
      MessageOf<ModelError>([&] { parse("granitemoehybrid", types + more); }), HasSubstr(message));
  }
  const TransformerConfig olmo = parse("olmo_hybrid", "");
  EXPECT_EQ(LayersOf(olmo), "---a-");
  EXPECT_EQ(olmo.mixerKeyDimension, 6);
  EXPECT_EQ(olmo.mixerValueDimension, 12);
  EXPECT_EQ(olmo.mixerRate, 2);
  EXPECT_EQ(olmo.position, PositionKind::Rotary);
  for (const char* none : { R"(, "rope_parameters": {"rope_theta": null, "rope_type": "default"})",
         R"(, "rope_theta": null)" })
  {
    EXPECT_EQ(parse("olmo_hybrid", none).position, PositionKind::None) << none;
  }
  EXPECT_THAT(MessageOf<ModelError>(
                [&] { parse("qwen3_next", R"(, "layer_types": ["a", "a", "a", "a", "a"])"); }),
    HasSubstr("unknown layer_types 'a', expected one of attention, full_attention"));
  EXPECT_THAT(
    MessageOf<ModelError>([&] { parse("olmo_hybrid", R"(, "linear_num_key_heads": 3)"); }),
    HasSubstr("'linear_num_key_heads', 3, divides, found 2"));
}

TEST(TransformerConfig, EndsOfTextsAreOneIdOrSeveral)
{
  const auto ends = [](const std::string& value)
  { return ParseConfig(Gpt2(R"(, "vocab_size": 100, "eos_token_id": )" + value)).endTokens; };
  EXPECT_THAT(ends("7"), ElementsAre(7));
  EXPECT_THAT(ends("[7, 99, 100]"), ElementsAre(7, 99)); // the last is no id
  for (const char* none : { "null", "-1", "100", "\"</s>\"", "[]", "1e300", "{}" })
  {
    EXPECT_THAT(ends(none), IsEmpty()) << none;
  }
}

TEST(TransformerConfig, GenerationConfigNamesTheEndTokens)
{
  const TemporaryDirectory folder;
  const auto ends = [&] { return ReadTransformerConfig(folder / "config.json").endTokens; };
  WriteBytes(folder / "config.json", Gpt2(R"(, "vocab_size": 9, "eos_token_id": 2)"));
  EXPECT_THAT(ends(), ElementsAre(2));
  WriteBytes(folder / "generation_config.json", R"({"temperature": 0.6})");
  EXPECT_THAT(ends(), ElementsAre(2));
  WriteBytes(folder / "generation_config.json", R"({"eos_token_id": [7, 8]})");
  EXPECT_THAT(ends(), ElementsAre(7, 8));
  WriteBytes(folder / "generation_config.json", R"({"decoder_start_token_id": 1})");
  EXPECT_EQ(ReadTransformerConfig(folder / "config.json").decoderStart, -1) << "has no encoder";
  WriteBytes(folder / "generation_config.json", "[]");
  EXPECT_THAT(MessageOf<FormatError>(ends),
    HasSubstr("generation_config.json: expected a JSON object, found"));
}

}
