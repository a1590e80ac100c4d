#include "ActivationNames.h"
#include "ArchitectureConfigs.h"
#include "ConfigParts.h"
#include "Files/JsonText.h"

#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

namespace atlas
{
namespace
{

using nlohmann::json;

/// The most patches on a side of the square that makes a token.
constexpr std::int64_t MostMerged = 64;

/// The text, of the model_type that it names, or `otherwise`.
TransformerConfig ParseText(
  const Settings& all, const Settings& settings, const std::string& otherwise)
{
  return ParseTextPart(all, settings, settings.Text({ "model_type" }, otherwise));
}

/// What the encoders of images share.
struct EncoderDefaults
{
  std::int64_t layers;
  std::int64_t heads;
  std::int64_t modelDimension;
  std::int64_t mlpDimension;
  std::int64_t image;
  std::int64_t patch;
  const char* activation;
};

constexpr EncoderDefaults ClipDefaults = { 12, 12, 768, 3072, 224, 32, "quick_gelu" };
constexpr EncoderDefaults SiglipDefaults = { 12, 12, 768, 3072, 224, 16, "gelu_pytorch_tanh" };

/// An encoder of images of one size, each of whose patches has a learned position.
TransformerConfig ParseImageEncoder(
  const Settings& settings, const EncoderDefaults& defaults, std::int64_t classTokens)
{
  TransformerConfig config;
  config.layers = settings.Size({ "num_hidden_layers" }, defaults.layers);
  config.heads = settings.Size({ "num_attention_heads" }, defaults.heads);
  config.modelDimension = settings.Size({ "hidden_size" }, defaults.modelDimension);
  config.mlpDimension = settings.Size({ "intermediate_size" }, defaults.mlpDimension);
  config.epsilon = settings.Number({ "layer_norm_eps" }, 1e-6, true);
  config.activation = settings.Choice({ "hidden_act" }, defaults.activation, ActivationNames);
  config.mask = AttentionMask::Bidirectional;
  config.classTokens = classTokens;
  SplitHeads(config, settings);
  ParseImages(config, settings, defaults.patch, defaults.image);
  return config;
}

TransformerConfig ParseSiglip(const Settings& settings, const EncoderDefaults& defaults)
{
  TransformerConfig config = ParseImageEncoder(settings, defaults, 0);
  config.architecture = "siglip_vision_model";
  return config;
}

TransformerConfig ParseClipEncoder(const Settings& settings, const EncoderDefaults& defaults)
{
  TransformerConfig config = ParseImageEncoder(settings, defaults, 1);
  config.architecture = "clip_vision_model";
  config.epsilon = settings.Number({ "layer_norm_eps" }, 1e-5, true);
  config.patchBias = false;
  config.embeddingNorm = true;
  return config;
}

TransformerConfig ParseInternVlEncoder(const Settings& settings)
{
  constexpr std::array<Named<NormKind>, 2> norms = { {
    { "layer_norm", NormKind::LayerNorm },
    { "rms_norm", NormKind::RmsNorm },
  } };
  TransformerConfig config =
    ParseImageEncoder(settings, { 24, 16, 1024, 4096, 448, 14, "gelu" }, 1);
  config.architecture = "internvl_vision";
  config.norm = settings.Choice({ "norm_type" }, "layer_norm", norms);
  config.inputBias = settings.Flag({ "attention_bias" }, false);
  config.layerScales = true;
  config.finalNorm = !settings.Flag({ "use_mean_pooling" }, true);
  if (!settings.Flag({ "use_absolute_position_embeddings" }, true))
  {
    config.position = PositionKind::None;
  }
  const bool normsKeys = settings.Flag({ "use_qk_norm" }, false);
  config.queryKeyNorm = normsKeys ? QueryKeyNorm::Together : QueryKeyNorm::None;
  // Queries and keys have RMSNorm, with this epsilon, whatever norm_type is; the last is LayerNorm.
  constexpr double epsilon = 1e-6;
  settings.FailIf(normsKeys && (config.norm != NormKind::RmsNorm || config.epsilon != epsilon),
    "expected 'norm_type' rms_norm and 'layer_norm_eps' 1e-06 with 'use_qk_norm', as "
    "the normalizations of queries and keys have them.");
  settings.FailIf(config.finalNorm && config.norm != NormKind::LayerNorm,
    "expected 'norm_type' layer_norm without 'use_mean_pooling', as the last "
    "normalization is one.");
  return config;
}

TransformerConfig ParseQwenEncoder(const Settings& settings, bool isLater)
{
  TransformerConfig config;
  config.layers = settings.Size({ "depth" }, 32);
  config.heads = settings.Size({ "num_heads" }, 16);
  config.modelDimension =
    isLater ? settings.Size({ "hidden_size" }, 3584) : settings.Size({ "embed_dim" }, 1280);
  config.norm = isLater ? NormKind::RmsNorm : NormKind::LayerNorm;
  config.epsilon = 1e-6;
  config.gated = isLater;
  config.mlpDimension =
    isLater ? settings.Size({ "intermediate_size" }, 3420) : ScaledWidth(config, settings);
  config.activation =
    settings.Choice({ "hidden_act" }, isLater ? "silu" : "quick_gelu", ActivationNames);
  config.mask = AttentionMask::Bidirectional;
  config.input = InputKind::Images;
  config.patchHeight = settings.Size({ "patch_size" }, 14);
  config.patchWidth = config.patchHeight;
  config.patchFrames = settings.Size({ "temporal_patch_size" }, 2);
  config.channels = settings.Size({ "in_channels", "in_chans" }, 3);
  config.classTokens = 0;
  config.patchBias = false;
  config.finalNorm = false;
  config.tiedUnembedding = false;
  config.position = PositionKind::RotaryOfPatches;
  SplitHeads(config, settings);
  settings.FailIf(config.headDimension % 4 != 0,
    "expected heads of a multiple of 4 components, half of which are rotated by the "
    "row of a patch and half by its column, found ",
    config.headDimension, ".");
  return config;
}

/// The layers whose windows are the whole picture: fullatt_block_indexes.
std::vector<bool> WholeLayers(const Settings& settings, std::int64_t layers)
{
  std::vector<bool> whole(layers, false);
  const json* list = settings.Value({ "fullatt_block_indexes" });
  for (const json& item : list == nullptr ? json{ 7, 15, 23, 31 } : *list)
  {
    const bool isIndex = item.is_number_unsigned();
    settings.FailIf(list != nullptr && (!isIndex || item.get<std::uint64_t>() >= whole.size()),
      "expected 'fullatt_block_indexes' to be layers from 0 to ", layers - 1, ", found ",
      Describe(item), ".");
    if (item.get<std::uint64_t>() < whole.size())
    {
      whole[item.get<std::uint64_t>()] = true;
    }
  }
  return whole;
}

void ParsePatchWindows(TransformerConfig& config, const Settings& settings, std::int64_t merge)
{
  RequireFewLayers(config, settings);
  const std::int64_t window = settings.Size({ "window_size" }, 112) / merge / config.patchHeight;
  settings.FailIf(window < 1, "expected 'window_size' to be at least ", merge * config.patchHeight,
    " pixels, those of a token.");
  for (const bool isWhole : WholeLayers(settings, config.layers))
  {
    config.patchWindows.push_back(isWhole ? 0 : window * merge);
  }
}

/// The number of layers that vision_feature_layer means: from the first, or from the last if it is
/// negative; -1 are all.
std::int64_t ParseLayersRead(const Settings& settings, std::int64_t layers, std::int64_t otherwise)
{
  const char* key = "vision_feature_layer";
  const json* value = settings.Value({ key });
  std::int64_t layer = otherwise;
  if (value != nullptr)
  {
    layer = value->is_number_integer() ? value->get<std::int64_t>() : layers + 1;
  }
  if (layer > layers || layer < -layers - 1)
  {
    settings.Fail("expected '", key, "' to be one layer from ", -layers - 1, " to ", layers,
      ", found ", Describe(*value), ".");
  }
  return layer < 0 ? layers + 1 + layer : layer;
}

/// Class tokens are left out, which the original does if the strategy is "default".
void RequireStrategy(const Settings& settings, const TransformerConfig& encoder)
{
  const std::string expected = encoder.classTokens > 0 ? "default" : "full";
  const std::string found = settings.Text({ "vision_feature_select_strategy" }, "default");
  settings.FailIf(found != expected, "expected the vision_feature_select_strategy '", expected,
    "' with an encoder ", encoder.classTokens > 0 ? "that has" : "without",
    " a class token, found '", found.substr(0, 80), "'.");
}

std::int64_t ParseImageToken(const Settings& settings, const Settings::Keys& keys,
  std::int64_t otherwise, std::int64_t vocabulary)
{
  const std::int64_t token = settings.Signed(keys, otherwise, 0, vocabulary - 1);
  settings.FailIf(token >= vocabulary, "'", *keys.begin(), "' is missing, and its default, ", token,
    ", is beyond the vocabulary of ", vocabulary, ".");
  return token;
}

/// Gives a text its encoder and projector.
TransformerConfig JoinVision(
  const Settings& settings, TransformerConfig text, TransformerConfig encoder, VisionConfig vision)
{
  // Both are 0 where pictures have any size.
  settings.FailIf(
    encoder.PatchRows() % vision.merge != 0 || encoder.PatchColumns() % vision.merge != 0,
    "tokens of ", vision.merge, " x ", vision.merge, " patches do not fill an image of ",
    encoder.PatchRows(), " x ", encoder.PatchColumns(), ".");
  vision.encoder = std::make_shared<const TransformerConfig>(std::move(encoder));
  text.vision = std::make_shared<const VisionConfig>(std::move(vision));
  return text;
}

}

TransformerConfig ParseClipVision(const Settings& all)
{
  RequireSame(all, "vision_config_dict", "vision_config");
  TransformerConfig config = ParseClipEncoder(PartOf(all, "vision_config"), ClipDefaults);
  AllowOtherSizes(config);
  return config;
}

TransformerConfig ParseSiglipVision(const Settings& all)
{
  TransformerConfig config = ParseSiglip(PartOf(all, "vision_config"), SiglipDefaults);
  AllowOtherSizes(config);
  return config;
}

TransformerConfig ParseLlava(const Settings& settings)
{
  TransformerConfig text = ParseText(settings, settings.NestedOrEmpty({ "text_config" }), "llama");
  const Settings part = settings.NestedOrEmpty({ "vision_config" });
  using ParseEncoder = TransformerConfig (*)(const Settings&);
  constexpr std::array<Named<ParseEncoder>, 2> encoders = { {
    { "clip_vision_model",
      [](const Settings& clip) { return ParseClipEncoder(clip, ClipDefaults); } },
    { "siglip_vision_model",
      [](const Settings& siglip) { return ParseSiglip(siglip, SiglipDefaults); } },
  } };
  TransformerConfig encoder =
    settings.IsNested({ "vision_config" })
      ? part.Choice({ "model_type" }, "clip_vision_model", encoders)(part)
      : ParseClipEncoder(part, { 24, 16, 1024, 4096, 336, 14, "quick_gelu" });
  // The layers are read before it, also the last one (vision_feature_layer -1), as LLaVA's own code
  // does. Version 4.57 of transformers gives SigLIP's last layer after it, later ones do not.
  encoder.finalNorm = false;
  VisionConfig vision;
  vision.layersRead = ParseLayersRead(settings, encoder.layers, -2);
  vision.projectorActivation = settings.Choice({ "projector_hidden_act" }, "gelu", ActivationNames);
  vision.imageToken =
    ParseImageToken(settings, { "image_token_index", "image_token_id" }, 32000, text.vocabulary);
  RequireStrategy(settings, encoder);
  return JoinVision(settings, std::move(text), std::move(encoder), std::move(vision));
}

TransformerConfig ParseInternVl(const Settings& settings)
{
  TransformerConfig text = ParseText(settings, settings.NestedOrEmpty({ "text_config" }), "qwen2");
  TransformerConfig encoder = ParseInternVlEncoder(settings.NestedOrEmpty({ "vision_config" }));
  VisionConfig vision;
  vision.layersRead = ParseLayersRead(settings, encoder.layers, -1);
  const double merge = 1 / settings.Number({ "downsample_ratio" }, 0.5);
  settings.FailIf(merge > static_cast<double>(MostMerged) || merge != std::floor(merge),
    "expected 'downsample_ratio' to be 1 divided by a whole number up to ", MostMerged, ".");
  vision.merge = static_cast<std::int64_t>(merge);
  vision.projectorNorm = VisionConfig::ProjectorNorm::OfMerged;
  vision.projectorActivation = settings.Choice({ "projector_hidden_act" }, "gelu", ActivationNames);
  vision.imageToken = ParseImageToken(settings, { "image_token_id" }, 151'667, text.vocabulary);
  RequireStrategy(settings, encoder);
  return JoinVision(settings, std::move(text), std::move(encoder), std::move(vision));
}

TransformerConfig ParseSmolVlm(const Settings& settings)
{
  TransformerConfig text = ParseText(settings, settings.NestedOrEmpty({ "text_config" }), "llama");
  TransformerConfig encoder = ParseSiglip(settings.NestedOrEmpty({ "vision_config" }),
    { 12, 16, 1152, 3072, 224, 32, "gelu_pytorch_tanh" });
  encoder.architecture = "smolvlm_vision";
  VisionConfig vision;
  vision.layersRead = encoder.layers;
  vision.merge = settings.Signed({ "scale_factor" }, 2, 1, MostMerged);
  vision.projectorHasTwo = false;
  vision.imageToken = ParseImageToken(settings, { "image_token_id" }, 128'257, text.vocabulary);
  return JoinVision(settings, std::move(text), std::move(encoder), std::move(vision));
}

TransformerConfig ParseQwen2Vl(const Settings& settings)
{
  const bool isLater = settings.Text({ "model_type" }, "") == "qwen2_5_vl";
  const Settings words = settings.Nested({ "text_config" }).value_or(settings);
  TransformerConfig text = ParseText(settings, words, "qwen2_vl_text");
  const Settings part = settings.NestedOrEmpty({ "vision_config" });
  TransformerConfig encoder = ParseQwenEncoder(part, isLater);
  encoder.architecture = isLater ? "qwen2_5_vl" : "qwen2_vl";
  VisionConfig vision;
  vision.layersRead = encoder.layers;
  vision.merge = part.Signed({ "spatial_merge_size" }, 2, 1, MostMerged);
  if (isLater)
  {
    ParsePatchWindows(encoder, part, vision.merge);
    vision.positionsPerSecond = part.Number({ "tokens_per_second" }, 4);
  }
  vision.projectorNorm = VisionConfig::ProjectorNorm::OfPatches;
  vision.projectorEpsilon = encoder.epsilon;
  const std::int64_t outputs = part.Size({ isLater ? "out_hidden_size" : "hidden_size" }, 3584);
  settings.FailIf(outputs != text.modelDimension, "expected the encoder of images to give ",
    text.modelDimension, " numbers per token, the dimension of the text, found ", outputs, ".");
  vision.imageToken = ParseImageToken(settings, { "image_token_id" }, 151'655, text.vocabulary);
  vision.videoToken = ParseImageToken(settings, { "video_token_id" }, 151'656, text.vocabulary);
  const std::optional<Settings> rotation = words.Nested({ "rope_parameters", "rope_scaling" });
  const json* sections = rotation ? rotation->Value({ "mrope_section" }) : nullptr;
  std::int64_t pairs = 0;
  for (const json& item : sections == nullptr ? json::array() : *sections)
  {
    const bool isCount = item.is_number_unsigned() &&
                         item.get<std::uint64_t>() <= std::numeric_limits<std::int32_t>::max();
    vision.rotarySections.push_back(isCount ? item.get<std::int64_t>() : 0);
    pairs += vision.rotarySections.back();
  }
  settings.FailIf(vision.rotarySections.size() != 3 || pairs != text.RotatedDimension() / 2,
    "expected 'mrope_section' to be three numbers that add up to the ", text.RotatedDimension() / 2,
    " rotated pairs of a head, found ", sections == nullptr ? "none" : Describe(*sections), ".");
  return JoinVision(settings, std::move(text), std::move(encoder), std::move(vision));
}

}
