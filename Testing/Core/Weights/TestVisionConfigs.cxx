// Settings of models of pictures among words.

#include "Base/Error.h"
#include "ExpectMembers.h"
#include "Refusals.h"
#include "Weights/TransformerConfig.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

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
  ExpectMembers(text,
    "architecture=llava input=Tokens layers=32 heads=32 keyHeads=32 headDimension=128 "
    "modelDimension=4096 mlpDimension=11008 vocabulary=32064 positions=4096 epsilon=1e-5 "
    "tiedUnembedding=0");
  EXPECT_EQ(text.encoder, nullptr);
  ASSERT_NE(text.vision, nullptr);
  const VisionConfig& vision = *text.vision;
  ExpectMembers(vision,
    "layersRead=23 merge=1 projectorNorm=None projectorHasTwo=1 projectorActivation=Gelu "
    "imageToken=32000 videoToken=-1");
  EXPECT_THAT(vision.rotarySections, IsEmpty());
  const TransformerConfig& encoder = *vision.encoder;
  ExpectMembers(encoder,
    "architecture=clip_vision_model input=Images mask=Bidirectional layers=24 heads=16 "
    "modelDimension=1024 positions=577 activation=QuickGelu epsilon=1e-5 embeddingNorm=1 "
    "finalNorm=0");
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
  ExpectMembers(text, "layers=3 keyHeads=8 mlpDimension=14336");
  EXPECT_EQ(text.Window(2), 4096);
  EXPECT_EQ(text.vision->layersRead, 26);
  const TransformerConfig& encoder = *text.vision->encoder;
  ExpectMembers(encoder, "architecture=siglip_vision_model classTokens=0 positions=729");
}

TEST(VisionConfigs, PartsCanBeChosen)
{
  const TransformerConfig text = ParseVision(Llava15, "llama");
  ExpectMembers(text, "architecture=llama modelDimension=4096");
  EXPECT_EQ(text.vision, nullptr);
  ExpectMembers(ParseVision(Llava15, "clip_vision_model"), "input=Images layers=24");
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
  ExpectMembers(text, "modelDimension=896 tiedUnembedding=1 inputBias=1");
  EXPECT_EQ(text.rotaryScaling.kind, RotaryScaling::Kind::None);
  EXPECT_THAT(text.endTokens, ElementsAre(151645));
  const VisionConfig& vision = *text.vision;
  ExpectMembers(vision, "merge=2 layersRead=24 projectorNorm=OfMerged projectorEpsilon=1e-5");
  const TransformerConfig& encoder = *vision.encoder;
  ExpectMembers(encoder,
    "norm=LayerNorm queryKeyNorm=None layerScales=1 inputBias=1 finalNorm=0 positions=1025");
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
  ExpectMembers(text, "architecture=idefics3 rotaryBase=100000");
  const VisionConfig& vision = *text.vision;
  ExpectMembers(
    vision, "merge=4 projectorHasTwo=0 projectorNorm=None imageToken=49190 layersRead=12");
  const TransformerConfig& encoder = *vision.encoder;
  ExpectMembers(encoder,
    "architecture=smolvlm_vision layers=12 mlpDimension=3072 positions=1024 classTokens=0 "
    "activation=GeluTanh epsilon=1e-6 finalNorm=1");
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
  ExpectMembers(text, "layers=36 headDimension=128 tiedUnembedding=1 inputBias=1");
  EXPECT_THAT(text.windows, IsEmpty());
  EXPECT_EQ(text.rotaryScaling.kind, RotaryScaling::Kind::None);
  EXPECT_THAT(text.endTokens, ElementsAre(151645));
  const VisionConfig& vision = *text.vision;
  EXPECT_THAT(vision.rotarySections, ElementsAre(16, 24, 24));
  ExpectMembers(vision,
    "positionsPerSecond=2 merge=2 projectorNorm=OfPatches projectorEpsilon=1e-6 "
    "imageToken=151655 videoToken=151656");
  const TransformerConfig& encoder = *vision.encoder;
  EXPECT_TRUE(encoder.ReadsAnySize());
  ExpectMembers(encoder,
    "patchFrames=2 patchHeight=14 norm=RmsNorm gated=1 mlpBias=1 patchBias=0 finalNorm=0 "
    "position=RotaryOfPatches headDimension=80 positions=0");
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
  ExpectMembers(text, "rotaryBase=500000 vocabulary=152064");
  EXPECT_EQ(text.vision->positionsPerSecond, 0);
  const TransformerConfig& encoder = *text.vision->encoder;
  ExpectMembers(
    encoder, "modelDimension=1280 mlpDimension=5120 norm=LayerNorm activation=QuickGelu gated=0");
  EXPECT_THAT(encoder.patchWindows, IsEmpty());
}

/// By the classes of settings of the original code.
TEST(VisionConfigs, Qwen35HasNoDeepFeatures)
{
  const std::string text = R"({"model_type": "qwen3_5", "text_config": {"hidden_size": 3584,
    "intermediate_size": 64, "num_hidden_layers": 8, "num_attention_heads": 16, "vocab_size": 248320})";
  const TransformerConfig config = ParseVision(
    text + R"(, "vision_config": {"deepstack_visual_indexes": [], "model_type": "qwen3_5"}})");
  ExpectMembers(config, "rotaryDimension=64 keyHeads=4 gatesAttention=1");
  EXPECT_THAT(config.unknownSettings, IsEmpty());
  ExpectMembers(*config.vision, "layersRead=27 imageToken=248056 videoToken=248057");
  EXPECT_TRUE(config.vision->interleavesSections);
  EXPECT_THAT(config.vision->rotarySections, ElementsAre(11, 11, 10));
  EXPECT_THAT(config.vision->deepLayers, IsEmpty());
  EXPECT_EQ(ParseVision(text + "}").vision, nullptr);
}

/// As the file of Qwen3-VL 8B has it; which projectors early layers read by falling layers.
TEST(VisionConfigs, Qwen3Vl)
{
  const TransformerConfig text = ParseVision(R"({"model_type": "qwen3_vl", "image_token_id": 151655,
    "text_config": {"head_dim": 128, "hidden_size": 4096, "intermediate_size": 12288,
      "max_position_embeddings": 262144, "model_type": "qwen3_vl_text", "num_attention_heads": 32,
      "num_hidden_layers": 36, "num_key_value_heads": 8, "rope_scaling": {"mrope_interleaved": true,
        "mrope_section": [24, 20, 20], "rope_type": "default"}, "rope_theta": 5000000},
    "tie_word_embeddings": false, "video_token_id": 151656, "vision_config": {
      "deepstack_visual_indexes": [24, 8, 16], "model_type": "qwen3_vl", "out_hidden_size": 4096}})");
  ExpectMembers(text, "layers=36 keyHeads=8 rotaryBase=5000000 queryKeyNorm=OfAllHeads inputBias=0 "
                      "tiedUnembedding=0 vocabulary=151936");
  EXPECT_THAT(text.unknownSettings, IsEmpty());
  const VisionConfig& vision = *text.vision;
  ExpectMembers(vision,
    "layersRead=27 merge=2 projectorNorm=OfPatches projectorEpsilon=1e-6 imageToken=151655 "
    "videoToken=151656 projectorActivation=Gelu");
  EXPECT_TRUE(vision.interleavesSections);
  EXPECT_THAT(vision.rotarySections, ElementsAre(24, 20, 20));
  EXPECT_THAT(vision.deepLayers, ElementsAre(9, 17, 25));
  EXPECT_THAT(vision.deepProjectors, ElementsAre(1, 2, 0));
  const TransformerConfig& encoder = *vision.encoder;
  EXPECT_TRUE(encoder.ReadsAnySize());
  EXPECT_EQ(encoder.positionSide, 48);
  ExpectMembers(encoder,
    "architecture=qwen3_vl layers=27 heads=16 modelDimension=1152 mlpDimension=4304 patchFrames=2 "
    "patchHeight=16 norm=LayerNorm patchBias=1 activation=GeluTanh position=RotaryOfPatches");
}

TEST(VisionConfigs, Gemma3)
{
  const TransformerConfig text = ParseVision(R"({"model_type": "gemma3", "boi_token_index": 255999,
    "eoi_token_index": 256000, "image_token_index": 262144, "mm_tokens_per_image": 256,
    "text_config": {"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text",
      "num_hidden_layers": 34, "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
      "sliding_window": 1024}, "vision_config": {"hidden_size": 1152, "image_size": 896,
      "intermediate_size": 4304, "model_type": "siglip_vision_model", "num_attention_heads": 16,
      "num_hidden_layers": 27, "patch_size": 14, "vision_use_head": false}})");
  ExpectMembers(text, "architecture=gemma3 layers=34 mask=Causal tiedUnembedding=1 keyHeads=4");
  EXPECT_EQ(text.Window(0), 1024);
  const VisionConfig& vision = *text.vision;
  ExpectMembers(vision, "merge=4 layersRead=27 projectorHasTwo=0 projectorNorm=OfMerged");
  EXPECT_TRUE(vision.averages);
  EXPECT_TRUE(vision.seesWholePictures);
  EXPECT_EQ(vision.startToken, 255'999);
  EXPECT_EQ(vision.endToken, 256'000);
  const TransformerConfig& encoder = *vision.encoder;
  ExpectMembers(encoder, "architecture=siglip_vision_model finalNorm=1 positions=4096");
  // Without pictures it is a text.
  EXPECT_EQ(ParseVision(R"({"model_type": "gemma3"})").vision, nullptr);
}

TEST(VisionConfigs, Mistral3)
{
  const TransformerConfig text = ParseVision(R"({"model_type": "mistral3", "image_token_index": 10,
    "text_config": {"head_dim": 128, "hidden_size": 5120, "intermediate_size": 32768,
      "model_type": "mistral", "num_hidden_layers": 40, "rms_norm_eps": 1e-05,
      "sliding_window": null, "vocab_size": 131072},
    "vision_config": {"head_dim": 64, "hidden_act": "silu", "image_size": 1540, "patch_size": 14,
      "model_type": "pixtral", "rope_theta": 10000.0}, "vision_feature_layer": -1})");
  ExpectMembers(text, "architecture=mistral3 layers=40 headDimension=128 tiedUnembedding=1");
  EXPECT_THAT(text.unknownSettings, IsEmpty());
  const VisionConfig& vision = *text.vision;
  ExpectMembers(
    vision, "merge=2 layersRead=24 projectorNorm=OfPatches projectorEpsilon=1e-5 imageToken=10");
  EXPECT_TRUE(vision.joinsByMatrix);
  const TransformerConfig& encoder = *vision.encoder;
  ExpectMembers(encoder,
    "architecture=pixtral heads=16 modelDimension=1024 mlpDimension=4096 norm=RmsNorm epsilon=1e-5 "
    "embeddingNorm=1 gated=1 activation=Silu inputBias=0 patchBias=0 patchHeight=14");
  // Rows and columns have the frequencies of a head by turns (Pixtral).
  const std::vector<float> frequencies = RotaryFrequencies(encoder);
  ASSERT_EQ(frequencies.size(), 32U);
  EXPECT_FLOAT_EQ(frequencies[1], static_cast<float>(std::pow(10000.0, -4 / 64.0)));
  EXPECT_FLOAT_EQ(frequencies[17], static_cast<float>(std::pow(10000.0, -6 / 64.0)));
}

TEST(VisionConfigs, LlavaOnevision)
{
  const TransformerConfig text = ParseVision(R"({"model_type": "llava_onevision",
    "image_token_index": 151646, "text_config": {"model_type": "qwen2", "vocab_size": 151647},
    "video_token_index": 151647, "vision_aspect_ratio": "anyres_max_4",
    "vision_feature_layer": [-1, 3]})");
  const VisionConfig& vision = *text.vision;
  ExpectMembers(vision, "merge=1 layersRead=26 imageToken=151646 videoToken=-1");
  EXPECT_THAT(vision.moreLayersRead, ElementsAre(3));
  EXPECT_EQ(vision.mostTiles, 4);
  ASSERT_EQ(vision.gridSizes.size(), 36U);
  EXPECT_EQ(vision.gridSizes[1], std::pair(std::int64_t{ 384 }, std::int64_t{ 768 }));
  const TransformerConfig& encoder = *vision.encoder;
  ExpectMembers(encoder, "architecture=siglip_vision_model finalNorm=0 positions=729");
}

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

/// With settings of the text.
std::string PaliGemma(const std::string& text, const std::string& more)
{
  return R"({"model_type": "paligemma", "projection_dim": 3072, "text_config": {"model_type": ")" +
         text + R"(", "vocab_size": 257152, "hidden_size": 3072, "num_image_tokens": 196, )" +
         more + R"(}, "vision_config": {}})";
}

/// By the classes of settings of the original code, where null is true. A Gemma alone is causal.
TEST(VisionConfigs, PromptsOfPaliGemmaSeeAllOfThemselves)
{
  for (const char* text : { "gemma", "gemma2" })
  {
    for (const char* value : { "null", "true" })
    {
      const std::string settings =
        PaliGemma(text, std::string(R"("use_bidirectional_attention": )") + value);
      const TransformerConfig config = ParseVision(settings);
      EXPECT_THAT(config.unknownSettings, IsEmpty());
      EXPECT_TRUE(config.vision->seesWholePrompts);
    }
    EXPECT_THAT(
      MessageOf<ModelError>(
        [&] { ParseVision(PaliGemma(text, R"("use_bidirectional_attention": true)"), text); }),
      HasSubstr("'use_bidirectional_attention'"));
  }
}

TEST(VisionConfigs, BadSettingsAreRefused)
{
  const auto parse = [](const std::string& text) { ParseVision(text); };
  ExpectRefusals<ModelError>(
    { { BadLlava(R"(, "text_config": {"model_type": "falcon"})"),
        "unknown model_type 'falcon' of the text of llava, expected one of llama, mistral, qwen2, "
        "qwen3." },
      { BadLlava(R"(, "text_config": {"model_type": "gemma2"})"),
        "unknown model_type 'gemma2' of the text of llava, expected one of llama" },
      { BadIntern("", R"(, "text_config": {"model_type": "qwen3_5_text"})"),
        "unknown model_type 'qwen3_5_text' of the text of internvl, expected one of llama" },
      { R"({"model_type": "paligemma", "text_config": {"model_type": "llama"}})",
        "unknown model_type 'llama' of the text of paligemma, expected one of gemma, gemma2." },
      { PaliGemma("gemma", R"("use_bidirectional_attention": false)"),
        "expected 'use_bidirectional_attention' to be true, as in the original code of this "
        "model_type, found false" },
      { PaliGemma("gemma2", R"("use_bidirectional_attention": "vision")"),
        "expected 'use_bidirectional_attention' to be true" },
      { BadLlava(R"(, "vision_config": {"model_type": "pixtral"})"),
        "unknown model_type 'pixtral', expected one of clip_vision_model, siglip_vision_model" },
      { BadLlava(R"(, "quantization_config": {"bits": 4})"),
        "the weights are quantized by a method without a name (4 bits), which is not run" },
      { BadLlava(R"(, "vision_feature_layer": [-2, "last"])"),
        "expected 'vision_feature_layer' to be layers from -25 to 24, found array." },
      { BadLlava(R"(, "vision_feature_layer": -26)"),
        "expected 'vision_feature_layer' to be layers from -25 to 24, found -26." },
      { BadLlava(R"(, "vision_feature_select_strategy": "full")"),
        "expected the vision_feature_select_strategy 'default' with an encoder that has a class "
        "token, found 'full'." },
      { BadLlava(R"(, "vision_config": {"model_type": "siglip_vision_model"})"),
        "expected the vision_feature_select_strategy 'full' with an encoder without a class token, "
        "found 'default'." },
      { BadLlava(R"(, "image_token_index": 32000)"),
        "expected 'image_token_index' to be an integer from 0 to 31999, found 32000" },
      { R"({"model_type": "llava"})",
        "'image_token_index' is missing, and its default, 32000, is beyond the vocabulary of "
        "32000." },
      { BadIntern("", R"(, "downsample_ratio": 0.4)"),
        "expected 'downsample_ratio' to be 1 divided by a whole number up to 64." },
      { BadIntern(R"("image_size": 42)"),
        "tokens of 2 x 2 patches do not fill an image of 3 x 3." },
      { BadIntern(R"("use_qk_norm": true)"),
        "expected 'norm_type' rms_norm and 'layer_norm_eps' 1e-06 with 'use_qk_norm'" },
      { BadIntern(R"("use_mean_pooling": false, "norm_type": "rms_norm")"),
        "expected 'norm_type' layer_norm without 'use_mean_pooling'" },
      { BadQwen(R"(, "out_hidden_size": 2048)"),
        "expected the encoder of images to give 8192 numbers per token, the dimension of the text, "
        "found 2048." },
      { BadQwen(R"(, "hidden_size": 32)"),
        "expected heads of a multiple of 4 components, half of which are rotated by the row of a "
        "patch and half by its column, found 2." },
      { BadQwen(R"(, "window_size": 20)"),
        "expected 'window_size' to be at least 28 pixels, those of a token." },
      { BadQwen(R"(, "fullatt_block_indexes": [1, 32])"),
        "expected 'fullatt_block_indexes' to be layers from 0 to 31, found 32." },
      { BadQwen("", R"(, "rope_scaling": {"mrope_section": [16, 24]})"),
        "expected 'mrope_section' to be three numbers that add up to the 64 rotated pairs of a "
        "head, "
        "found array." },
      { BadQwen("", R"(, "rope_scaling": null)"), "found none." },
      { R"({"model_type": "qwen3_vl", "vision_config": {"out_hidden_size": 4096,
          "deepstack_visual_indexes": [8, 27]}})",
        "expected 'deepstack_visual_indexes' to be different layers from 0 to 26, found array." },
      { R"({"model_type": "gemma3", "mm_tokens_per_image": 225, "vision_config": {}})",
        "expected 'mm_tokens_per_image' to be those of squares of up to 64 x 64 of the 14 x 14 "
        "patches, found 225." },
      { R"({"model_type": "mistral3", "text_config": {}})", "'vision_config' is missing." },
      { R"({"model_type": "mistral3", "text_config": {},
          "vision_config": {"model_type": "siglip_vision_model"}})",
        "expected an encoder of the model_type pixtral, found 'siglip_vision_model'." },
      { R"({"model_type": "mistral3", "vision_feature_layer": [-1, -2], "text_config": {},
          "vision_config": {}})",
        "expected 'vision_feature_layer' to be one layer from -25 to 24, found array." },
      { R"({"model_type": "llava_onevision", "vision_aspect_ratio": "pad"})",
        "expected 'vision_aspect_ratio' to be anyres_max_ and a number of tiles" },
      { R"({"model_type": "llava_onevision", "image_grid_pinpoints": [[384, 400]]})",
        "expected 'image_grid_pinpoints' to be pairs of multiples of the encoder's 384 pixels, "
        "found array." } },
    parse, "some/config.json: ");
}

}
