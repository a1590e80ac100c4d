#include "TransformerConfig.h"

#include "Error.h"
#include "ErrorMessage.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::MessageOf;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

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
};

void PrintTo(const BadConfig& bad, std::ostream* stream)
{
  *stream << bad.name;
}

class BadTransformerConfig : public testing::TestWithParam<BadConfig>
{
};

std::string NameOf(const testing::TestParamInfo<BadConfig>& bad)
{
  return bad.param.name;
}

INSTANTIATE_TEST_SUITE_P(Architecture, BadTransformerConfig,
  testing::Values(
    BadConfig{ "Missing", "{}",
      "'model_type' is missing, expected one of bert, bloom, gpt2, llama, transformer_lens, vit." },
    BadConfig{ "Unknown", R"({"model_type": "mistral"})",
      "unknown model_type 'mistral', expected one of bert, bloom, gpt2, llama, transformer_lens" },
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
    BadConfig{ "KeyHeads", Llama(R"(, "num_key_value_heads": 4)"),
      "the number of heads of keys, 4, does not divide that of queries, 6" },
    BadConfig{ "Patches", Vit(R"(, "image_size": 30, "patch_size": 8)"),
      "patches of 8 x 8 pixels do not fill an image of 30 x 30" },
    BadConfig{ "ImageOfThree", Vit(R"(, "image_size": [3, 8, 8])"),
      "expected 'image_size' to be an integer or two, found array" },
    BadConfig{ "Epsilon", Gpt2(R"(, "layer_norm_epsilon": -1)"),
      "'layer_norm_epsilon' to be a number that is not negative, found -1" },
    BadConfig{ "Flag", Gpt2(R"(, "scale_attn_weights": "no")"),
      "expected 'scale_attn_weights' to be true or false, found \"no\"" },
    BadConfig{
      "OddRotation", Llama(R"(, "head_dim": 3)"), "an even head dimension, found the head" }),
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
    BadConfig{ "Yarn", Llama(R"(, "rope_scaling": {"rope_type": "yarn"})"),
      "unknown rope_type 'yarn', expected one of default, linear, llama3" },
    BadConfig{ "ScalingOfNothing", Llama(R"(, "rope_scaling": 4)"),
      "expected 'rope_scaling' to be an object, found 4" },
    BadConfig{
      "PartialRotation", Llama(R"(, "partial_rotary_factor": 0.5)"), "partial_rotary_factor 0.5" },
    BadConfig{ "LensPositions", Lens(R"(, "positional_embedding_type": "relative")"),
      "unknown positional_embedding_type 'relative', expected one of alibi, rotary, shortformer, "
      "standard" },
    BadConfig{ "LensOddRotation", Lens(R"(, "positional_embedding_type": "rotary")"),
      "expected 'rotary_dim' to be 'd_head' and even, found 5 of 5" },
    BadConfig{ "LensPartialRotation",
      Lens(R"(, "positional_embedding_type": "rotary", "d_head": 8, "rotary_dim": 4)"),
      "expected 'rotary_dim' to be 'd_head' and even, found 4 of 8" },
    BadConfig{ "LensAdjacentRotation",
      Lens(
        R"(, "positional_embedding_type": "rotary", "d_head": 8, "rotary_adjacent_pairs": true)"),
      "'rotary_adjacent_pairs' is true, expected rotations of a head's first half" },
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

}
