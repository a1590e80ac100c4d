// Settings of models of pictures among words.

#include "Error.h"
#include "ErrorMessage.h"
#include "TransformerConfig.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

using Norm = VisionConfig::ProjectorNorm;

TransformerConfig ParseVision(const std::string& text, const std::string& architecture = {})
{
  return ParseTransformerConfig(text, "some/config.json", architecture);
}

/// As the files of LLaVA 1.5 have it, which leave out what is the default of a Llama of 7 billion.
constexpr const char* Llava15 = R"({"architectures": ["LlavaForConditionalGeneration"],
  "ignore_index": -100, "image_token_index": 32000, "model_type": "llava", "pad_token_id": 32001,
  "projector_hidden_act": "gelu", "text_config": {"_name_or_path": "lmsys/vicuna-7b-v1.5",
    "architectures": ["LlamaForCausalLM"], "max_position_embeddings": 4096, "model_type": "llama",
    "rms_norm_eps": 1e-05, "torch_dtype": "float16", "vocab_size": 32064},
  "tie_word_embeddings": false, "vision_config": {"hidden_size": 1024, "image_size": 336,
    "intermediate_size": 4096, "model_type": "clip_vision_model", "num_attention_heads": 16,
    "num_hidden_layers": 24, "patch_size": 14, "projection_dim": 768, "vocab_size": 32000},
  "vision_feature_layer": -2, "vision_feature_select_strategy": "default", "vocab_size": 32064})";

TEST(VisionConfigs, Llava)
{
  const TransformerConfig text = ParseVision(Llava15);
  EXPECT_EQ(text.architecture, "llava");
  EXPECT_EQ(text.input, InputKind::Tokens);
  EXPECT_EQ(text.encoder, nullptr);
  EXPECT_EQ(text.layers, 32);
  EXPECT_EQ(text.heads, 32);
  EXPECT_EQ(text.keyHeads, 32);
  EXPECT_EQ(text.headDimension, 128);
  EXPECT_EQ(text.modelDimension, 4096);
  EXPECT_EQ(text.mlpDimension, 11008);
  EXPECT_EQ(text.vocabulary, 32064);
  EXPECT_EQ(text.positions, 4096);
  EXPECT_EQ(text.epsilon, 1e-5);
  EXPECT_FALSE(text.tiedUnembedding);
  ASSERT_NE(text.vision, nullptr);
  const VisionConfig& vision = *text.vision;
  EXPECT_EQ(vision.layersRead, 23);
  EXPECT_EQ(vision.merge, 1);
  EXPECT_EQ(vision.projectorNorm, Norm::None);
  EXPECT_TRUE(vision.projectorHasTwo);
  EXPECT_EQ(vision.projectorActivation, Activation::Gelu);
  EXPECT_EQ(vision.imageToken, 32000);
  EXPECT_EQ(vision.filmToken, -1);
  EXPECT_THAT(vision.rotarySections, IsEmpty());
  const TransformerConfig& encoder = *vision.encoder;
  EXPECT_EQ(encoder.architecture, "clip_vision_model");
  EXPECT_EQ(encoder.input, InputKind::Images);
  EXPECT_EQ(encoder.mask, AttentionMask::Bidirectional);
  EXPECT_EQ(encoder.layers, 24);
  EXPECT_EQ(encoder.heads, 16);
  EXPECT_EQ(encoder.modelDimension, 1024);
  EXPECT_EQ(encoder.positions, 24 * 24 + 1);
  EXPECT_EQ(encoder.activation, Activation::QuickGelu);
  EXPECT_EQ(encoder.epsilon, 1e-5);
  EXPECT_TRUE(encoder.embeddingNorm);
  EXPECT_FALSE(encoder.finalNorm);
  EXPECT_FALSE(encoder.ReadsAnySize());
}

TEST(VisionConfigs, LlavaOfSiglipHasNoClassToken)
{
  const TransformerConfig text = ParseVision(R"({"model_type": "llava", "image_token_index": 7,
    "vision_config": {"model_type": "siglip_vision_model", "image_size": 378, "patch_size": 14,
      "hidden_size": 1152, "num_attention_heads": 16, "num_hidden_layers": 26,
      "intermediate_size": 4304}, "vision_feature_layer": -1,
    "vision_feature_select_strategy": "full",
    "text_config": {"model_type": "mistral", "num_hidden_layers": 3}})");
  EXPECT_EQ(text.layers, 3);
  EXPECT_EQ(text.keyHeads, 8);
  EXPECT_EQ(text.mlpDimension, 14336);
  EXPECT_EQ(text.Window(2), 4096);
  EXPECT_EQ(text.vision->layersRead, 26);
  const TransformerConfig& encoder = *text.vision->encoder;
  EXPECT_EQ(encoder.architecture, "siglip_vision_model");
  EXPECT_EQ(encoder.classTokens, 0);
  EXPECT_EQ(encoder.positions, 27 * 27);
}

TEST(VisionConfigs, PartsCanBeChosen)
{
  const TransformerConfig text = ParseVision(Llava15, "llama");
  EXPECT_EQ(text.architecture, "llama");
  EXPECT_EQ(text.vision, nullptr);
  EXPECT_EQ(text.modelDimension, 4096);
  const TransformerConfig encoder = ParseVision(Llava15, "clip_vision_model");
  EXPECT_EQ(encoder.input, InputKind::Images);
  EXPECT_EQ(encoder.layers, 24);
}

/// InternVL3-1B and such: layer norms, and no normalization of queries and keys.
TEST(VisionConfigs, InternVl)
{
  const TransformerConfig text = ParseVision(R"({"model_type": "internvl", "downsample_ratio": 0.5,
    "image_token_id": 151667, "text_config": {"model_type": "qwen2", "hidden_size": 896,
      "num_attention_heads": 14, "num_key_value_heads": 2, "num_hidden_layers": 24,
      "intermediate_size": 4864, "vocab_size": 151674, "tie_word_embeddings": true,
      "eos_token_id": 151645, "rope_scaling": {"factor": 2.0, "rope_type": "dynamic"}},
    "vision_config": {"model_type": "internvl_vision", "attention_bias": true}})");
  EXPECT_EQ(text.modelDimension, 896);
  EXPECT_TRUE(text.tiedUnembedding);
  EXPECT_TRUE(text.inputBias);
  EXPECT_EQ(text.rotaryScaling.kind, RotaryScaling::Kind::None);
  EXPECT_THAT(text.endTokens, ElementsAre(151645));
  const VisionConfig& vision = *text.vision;
  EXPECT_EQ(vision.merge, 2);
  EXPECT_EQ(vision.layersRead, 24);
  EXPECT_EQ(vision.projectorNorm, Norm::OfMerged);
  EXPECT_EQ(vision.projectorEpsilon, 1e-5);
  const TransformerConfig& encoder = *vision.encoder;
  EXPECT_EQ(encoder.norm, NormKind::LayerNorm);
  EXPECT_EQ(encoder.queryKeyNorm, QueryKeyNorm::None);
  EXPECT_TRUE(encoder.layerScales);
  EXPECT_TRUE(encoder.inputBias);
  EXPECT_FALSE(encoder.finalNorm);
  EXPECT_EQ(encoder.positions, 32 * 32 + 1);
}

/// As the files of SmolVLM-256M have it.
TEST(VisionConfigs, SmolVlm)
{
  const TransformerConfig text = ParseVision(R"({"model_type": "idefics3", "scale_factor": 4,
    "image_token_id": 49190, "tie_word_embeddings": false, "text_config": {"model_type": "llama",
      "hidden_size": 576, "num_attention_heads": 9, "num_key_value_heads": 3, "head_dim": 64,
      "num_hidden_layers": 30, "intermediate_size": 1536, "vocab_size": 49280,
      "is_llama_config": true, "qk_layer_norms": false, "rope_interleaved": false,
      "rope_theta": 100000, "max_position_embeddings": 8192},
    "vision_config": {"model_type": "idefics3", "hidden_size": 768, "image_size": 512,
      "max_image_size": {"longest_edge": 512}, "num_attention_heads": 12, "patch_size": 16,
      "size": {"longest_edge": 2048}}})");
  EXPECT_EQ(text.architecture, "idefics3");
  EXPECT_EQ(text.rotaryBase, 100'000);
  const VisionConfig& vision = *text.vision;
  EXPECT_EQ(vision.merge, 4);
  EXPECT_FALSE(vision.projectorHasTwo);
  EXPECT_EQ(vision.projectorNorm, Norm::None);
  EXPECT_EQ(vision.imageToken, 49190);
  const TransformerConfig& encoder = *vision.encoder;
  EXPECT_EQ(encoder.architecture, "smolvlm_vision");
  EXPECT_EQ(encoder.layers, 12);
  EXPECT_EQ(encoder.mlpDimension, 3072);
  EXPECT_EQ(encoder.positions, 32 * 32);
  EXPECT_EQ(encoder.classTokens, 0);
  EXPECT_EQ(encoder.activation, Activation::GeluTanh);
  EXPECT_EQ(encoder.epsilon, 1e-6);
  EXPECT_TRUE(encoder.finalNorm);
  EXPECT_EQ(vision.layersRead, 12);
}

/// As the files of Qwen2.5-VL-3B have it: the text is beside vision_config.
constexpr const char* Qwen25 = R"({"architectures": ["Qwen2_5_VLForConditionalGeneration"],
  "eos_token_id": 151645, "hidden_act": "silu", "hidden_size": 2048, "image_token_id": 151655,
  "intermediate_size": 11008, "max_position_embeddings": 128000, "max_window_layers": 70,
  "model_type": "qwen2_5_vl", "num_attention_heads": 16, "num_hidden_layers": 36,
  "num_key_value_heads": 2, "rms_norm_eps": 1e-06,
  "rope_scaling": {"mrope_section": [16, 24, 24], "type": "mrope"}, "rope_theta": 1000000.0,
  "sliding_window": 32768, "tie_word_embeddings": true, "use_sliding_window": false,
  "video_token_id": 151656, "vision_config": {"depth": 32, "fullatt_block_indexes": [7, 15, 23, 31],
    "hidden_act": "silu", "hidden_size": 1280, "in_chans": 3, "intermediate_size": 3420,
    "num_heads": 16, "out_hidden_size": 2048, "patch_size": 14, "spatial_merge_size": 2,
    "spatial_patch_size": 14, "temporal_patch_size": 2, "tokens_per_second": 2,
    "window_size": 112}, "vision_token_id": 151654, "vocab_size": 151936})";

TEST(VisionConfigs, Qwen25Vl)
{
  const TransformerConfig text = ParseVision(Qwen25);
  EXPECT_EQ(text.layers, 36);
  EXPECT_EQ(text.headDimension, 128);
  EXPECT_TRUE(text.tiedUnembedding);
  EXPECT_TRUE(text.inputBias);
  EXPECT_THAT(text.windows, IsEmpty());
  EXPECT_EQ(text.rotaryScaling.kind, RotaryScaling::Kind::None);
  EXPECT_THAT(text.endTokens, ElementsAre(151645));
  const VisionConfig& vision = *text.vision;
  EXPECT_THAT(vision.rotarySections, ElementsAre(16, 24, 24));
  EXPECT_EQ(vision.positionsPerSecond, 2);
  EXPECT_EQ(vision.merge, 2);
  EXPECT_EQ(vision.projectorNorm, Norm::OfPatches);
  EXPECT_EQ(vision.projectorEpsilon, 1e-6);
  EXPECT_EQ(vision.imageToken, 151655);
  EXPECT_EQ(vision.filmToken, 151656);
  const TransformerConfig& encoder = *vision.encoder;
  EXPECT_TRUE(encoder.ReadsAnySize());
  EXPECT_EQ(encoder.patchFrames, 2);
  EXPECT_EQ(encoder.patchHeight, 14);
  EXPECT_EQ(encoder.norm, NormKind::RmsNorm);
  EXPECT_TRUE(encoder.gated);
  EXPECT_TRUE(encoder.mlpBias);
  EXPECT_FALSE(encoder.patchBias);
  EXPECT_FALSE(encoder.finalNorm);
  EXPECT_EQ(encoder.position, PositionKind::RotaryOfPatches);
  EXPECT_EQ(encoder.headDimension, 80);
  EXPECT_EQ(encoder.positions, 0);
  for (std::int64_t l = 0; l < 32; ++l)
  {
    EXPECT_EQ(encoder.PatchWindow(l), l % 8 == 7 ? 0 : 8); // of 14 pixels
  }
  // Half of the pairs have the frequencies of 40 components, and the others again.
  const std::vector<float> frequencies = RotaryFrequencies(encoder);
  ASSERT_EQ(frequencies.size(), 40U);
  EXPECT_EQ(frequencies[0], 1);
  EXPECT_NEAR(frequencies[10], 1e-2, 1e-7);
  EXPECT_EQ(frequencies[20], frequencies[0]);
  EXPECT_EQ(frequencies[33], frequencies[13]);
}

TEST(VisionConfigs, Qwen2VlHasNoWindows)
{
  const TransformerConfig text = ParseVision(R"({"model_type": "qwen2_vl", "text_config": {
      "model_type": "qwen2_vl_text", "hidden_size": 1536, "num_attention_heads": 12,
      "num_key_value_heads": 2, "num_hidden_layers": 28, "intermediate_size": 8960,
      "rope_parameters": {"mrope_section": [16, 24, 24], "rope_type": "default",
        "rope_theta": 500000.0}},
    "vision_config": {"hidden_size": 1536}})");
  EXPECT_EQ(text.rotaryBase, 500'000);
  EXPECT_EQ(text.vocabulary, 152'064);
  EXPECT_EQ(text.vision->positionsPerSecond, 0);
  const TransformerConfig& encoder = *text.vision->encoder;
  EXPECT_EQ(encoder.modelDimension, 1280);
  EXPECT_EQ(encoder.mlpDimension, 5120);
  EXPECT_EQ(encoder.norm, NormKind::LayerNorm);
  EXPECT_EQ(encoder.activation, Activation::QuickGelu);
  EXPECT_FALSE(encoder.gated);
  EXPECT_THAT(encoder.patchWindows, IsEmpty());
}

/// Settings that must be rejected, and the expected message.
struct BadVision
{
  const char* name;
  std::string text;
  const char* message;
  friend void PrintTo(const BadVision& bad, std::ostream* stream) { *stream << bad.name; }
};

/// LLaVA with other settings.
std::string BadLlava(const std::string& more)
{
  return R"({"model_type": "llava", "image_token_index": 7)" + more + "}";
}

std::string BadIntern(const std::string& vision, const std::string& more = "")
{
  return R"({"model_type": "internvl", "image_token_id": 7, "vision_config": {)" + vision + "}" +
         more + "}";
}

std::string BadQwen(const std::string& vision, const std::string& more = "")
{
  return R"({"model_type": "qwen2_5_vl", "rope_scaling": {"mrope_section": [16, 24, 24]},
    "hidden_size": 8192, "vision_config": {"out_hidden_size": 8192)" +
         vision + "}" + more + "}";
}

class BadVisionConfig : public TestWithParam<BadVision>
{
};

INSTANTIATE_TEST_SUITE_P(, BadVisionConfig,
  Values(BadVision{ "Text", BadLlava(R"(, "text_config": {"model_type": "falcon"})"),
           "unknown model_type 'falcon' of the text, expected one of llama, mistral, qwen2" },
    BadVision{ "Vision", BadLlava(R"(, "vision_config": {"model_type": "pixtral"})"),
      "unknown model_type 'pixtral', expected one of clip_vision_model, siglip_vision_model" },
    BadVision{ "Quantized", BadLlava(R"(, "quantization_config": {"bits": 4})"),
      "the weights are quantized by a method without a name (4 bits), which is not run" },
    BadVision{ "Layers", BadLlava(R"(, "vision_feature_layer": [-2, -5])"),
      "expected 'vision_feature_layer' to be one layer from -25 to 24, found array." },
    BadVision{ "Layer", BadLlava(R"(, "vision_feature_layer": -26)"),
      "expected 'vision_feature_layer' to be one layer from -25 to 24, found -26." },
    BadVision{ "ClassToken", BadLlava(R"(, "vision_feature_select_strategy": "full")"),
      "expected the vision_feature_select_strategy 'default' with an encoder that has a class "
      "token, found 'full'." },
    BadVision{ "NoClassToken",
      BadLlava(R"(, "vision_config": {"model_type": "siglip_vision_model"})"),
      "expected the vision_feature_select_strategy 'full' with an encoder without a class token, "
      "found 'default'." },
    BadVision{ "Token", BadLlava(R"(, "image_token_index": 32000)"),
      "expected 'image_token_index' to be an integer from 0 to 31999, found 32000" },
    BadVision{ "NoToken", R"({"model_type": "llava"})",
      "'image_token_index' is missing, and its default, 32000, is beyond the vocabulary of "
      "32000." },
    BadVision{ "Ratio", BadIntern("", R"(, "downsample_ratio": 0.4)"),
      "expected 'downsample_ratio' to be 1 divided by a whole number up to 64." },
    BadVision{ "Merge", BadIntern(R"("image_size": 42)"),
      "tokens of 2 x 2 patches do not fill an image of 3 x 3." },
    BadVision{ "KeyNorms", BadIntern(R"("use_qk_norm": true)"),
      "expected 'norm_type' rms_norm and 'layer_norm_eps' 1e-06 with 'use_qk_norm'" },
    BadVision{ "LastNorm", BadIntern(R"("use_mean_pooling": false, "norm_type": "rms_norm")"),
      "expected 'norm_type' layer_norm without 'use_mean_pooling'" },
    BadVision{ "Outputs", BadQwen(R"(, "out_hidden_size": 2048)"),
      "expected the encoder of images to give 8192 numbers per token, the dimension of the text, "
      "found 2048." },
    BadVision{ "Heads", BadQwen(R"(, "hidden_size": 32)"),
      "expected heads of a multiple of 4 components, half of which are rotated by the row of a "
      "patch and half by its column, found 2." },
    BadVision{ "Window", BadQwen(R"(, "window_size": 20)"),
      "expected 'window_size' to be at least 28 pixels, those of a token." },
    BadVision{ "Whole", BadQwen(R"(, "fullatt_block_indexes": [1, 32])"),
      "expected 'fullatt_block_indexes' to be layers from 0 to 31, found 32." },
    BadVision{ "Sections", BadQwen("", R"(, "rope_scaling": {"mrope_section": [16, 24]})"),
      "expected 'mrope_section' to be three numbers that add up to the 64 rotated pairs of a head, "
      "found array." },
    BadVision{ "NoSections", BadQwen("", R"(, "rope_scaling": null)"), "found none." }),
  [](const auto& one) { return std::string(one.param.name); });

TEST_P(BadVisionConfig, IsRefused)
{
  EXPECT_THAT(MessageOf<ModelError>([] { ParseVision(GetParam().text); }),
    AllOf(StartsWith("some/config.json: "), HasSubstr(GetParam().message)));
}

}
