#include "ActivationNames.h"
#include "ArchitectureConfigs.h"
#include "ArchitectureRows.h"
#include "Base/TextEnds.h"
#include "ConfigParts.h"
#include "Files/JsonText.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace atlas
{
namespace
{

using nlohmann::json;

/// The most patches on a side of the square that makes a token.
constexpr std::int64_t MostMerged = 64;

/// The most layers that a projector reads together.
constexpr std::size_t MostRead = 100;

/// The longest side of a picture that is cut into tiles.
constexpr std::uint64_t MostPixels = 1'000'000;

/// The text, of the model_type that it names, or `otherwise`. `isTied`: whether the unembedding is
/// the token embedding where the file of all does not say.
TransformerConfig ParseText(
  const Settings& all, const Settings& settings, const std::string& otherwise, bool isTied = false)
{
  TransformerConfig text = ParseTextPart(all, settings, settings.Text({ "model_type" }, otherwise));
  text.tiedUnembedding = text.tiedUnembedding || all.Flag({ "tie_word_embeddings" }, isTied);
  return text;
}

/// A part of the settings without which the original code takes another model's.
Settings RequirePart(const Settings& settings, const char* name)
{
  settings.FailIf(!settings.IsNested({ name }), "'", name, "' is missing.");
  return settings.NestedOrEmpty({ name });
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

/// Throws ModelError unless rows and columns rotate equally many pairs of components.
void RequireQuarters(const TransformerConfig& config, const Settings& settings)
{
  settings.FailIf(config.headDimension % 4 != 0,
    "expected heads of a multiple of 4 components, half of which are rotated by the "
    "row of a patch and half by its column, found ",
    config.headDimension, ".");
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
  RequireQuarters(config, settings);
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

/// The numbers of layers that vision_feature_layer means: from the first, or from the last if they
/// are negative; -1 are all. At most `most`.
void ParseLayersRead(const Settings& settings, std::int64_t layers, std::int64_t otherwise,
  std::size_t most, VisionConfig& vision)
{
  const char* key = "vision_feature_layer";
  const json* value = settings.Value({ key });
  const json given = value == nullptr ? json(otherwise) : *value;
  std::vector<std::int64_t> read;
  for (const json& one : given.is_array() ? given : json::array({ given }))
  {
    const std::int64_t layer = one.is_number_integer() ? one.get<std::int64_t>() : layers + 1;
    settings.FailIf(layer > layers || layer < -layers - 1 || read.size() == most, "expected '", key,
      "' to be ", most == 1 ? "one layer" : "layers", " from ", -layers - 1, " to ", layers,
      ", found ", Describe(given), ".");
    read.push_back(layer < 0 ? layers + 1 + layer : layer);
  }
  settings.FailIf(read.empty(), "expected '", key, "' to be a layer, found ", Describe(given), ".");
  vision.layersRead = read.front();
  vision.moreLayersRead.assign(read.begin() + 1, read.end());
}

/// Class tokens are left out, which the original does if the strategy is "default".
void RequireStrategy(const Settings& settings, const TransformerConfig& encoder,
  const std::string& otherwise = "default")
{
  const std::string expected = encoder.classTokens > 0 ? "default" : "full";
  const std::string found = settings.Text({ "vision_feature_select_strategy" }, otherwise);
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
  settings.FailIf(!vision.averages && (encoder.PatchRows() % vision.merge != 0 ||
                                        encoder.PatchColumns() % vision.merge != 0),
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

namespace
{

/// The encoder of a LLaVA, of the model_type that it names, or `otherwise`; without settings it has
/// `defaults`. Its layers are read before the last normalization, also the last one
/// (vision_feature_layer -1), as LLaVA's own code does. Version 4.57 of transformers gives SigLIP's
/// last layer after it, later ones do not.
TransformerConfig ParseLlavaEncoder(
  const Settings& settings, const std::string& otherwise, const EncoderDefaults& defaults)
{
  const Settings part = settings.NestedOrEmpty({ "vision_config" });
  using ParseEncoder = TransformerConfig (*)(const Settings&);
  constexpr std::array<Named<ParseEncoder>, 2> encoders = { {
    { "clip_vision_model",
      [](const Settings& clip) { return ParseClipEncoder(clip, ClipDefaults); } },
    { "siglip_vision_model",
      [](const Settings& siglip) { return ParseSiglip(siglip, SiglipDefaults); } },
  } };
  TransformerConfig encoder = settings.IsNested({ "vision_config" })
                                ? part.Choice({ "model_type" }, otherwise, encoders)(part)
                              : otherwise == "clip_vision_model" ? ParseClipEncoder(part, defaults)
                                                                 : ParseSiglip(part, defaults);
  encoder.finalNorm = false;
  return encoder;
}

}

TransformerConfig ParseLlava(const Settings& settings)
{
  TransformerConfig text = ParseText(settings, settings.NestedOrEmpty({ "text_config" }), "llama");
  TransformerConfig encoder =
    ParseLlavaEncoder(settings, "clip_vision_model", { 24, 16, 1024, 4096, 336, 14, "quick_gelu" });
  VisionConfig vision;
  ParseLayersRead(settings, encoder.layers, -2, MostRead, vision);
  vision.projectorActivation = settings.Choice({ "projector_hidden_act" }, "gelu", ActivationNames);
  vision.imageToken =
    ParseImageToken(settings, { "image_token_index", "image_token_id" }, 32000, text.vocabulary);
  RequireStrategy(settings, encoder);
  return JoinVision(settings, std::move(text), std::move(encoder), std::move(vision));
}

namespace
{

/// The sizes of pictures that are cut into tiles, in the order in which the original tries them.
std::vector<std::pair<std::int64_t, std::int64_t>> ParseGridSizes(
  const Settings& settings, const TransformerConfig& encoder)
{
  const char* key = "image_grid_pinpoints";
  json sizes = json::array();
  constexpr std::uint64_t side = 384;
  for (std::uint64_t height = side; height <= 6 * side; height += side)
  {
    for (std::uint64_t width = side; width <= 6 * side; width += side)
    {
      sizes.push_back({ height, width });
    }
  }
  if (const json* given = settings.Value({ key }))
  {
    sizes = *given;
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> grids;
  for (const json& size : sizes.is_array() ? sizes : json::array())
  {
    const auto isSide = [&](const json& length, std::int64_t tile)
    {
      return length.is_number_unsigned() && length.get<std::uint64_t>() <= MostPixels &&
             length.get<std::int64_t>() % tile == 0 && length.get<std::int64_t>() > 0;
    };
    settings.FailIf(!size.is_array() || size.size() != 2 || !isSide(size[0], encoder.imageHeight) ||
                      !isSide(size[1], encoder.imageWidth),
      "expected '", key, "' to be pairs of multiples of the encoder's ", encoder.imageHeight,
      " pixels, found ", Describe(size), ".");
    grids.emplace_back(size[0].get<std::int64_t>(), size[1].get<std::int64_t>());
  }
  settings.FailIf(
    grids.empty(), "expected '", key, "' to be a list of sizes, found ", Describe(sizes), ".");
  return grids;
}

}

TransformerConfig ParseLlavaOnevision(const Settings& settings)
{
  TransformerConfig text = ParseText(settings, settings.NestedOrEmpty({ "text_config" }), "qwen2");
  TransformerConfig encoder = ParseLlavaEncoder(
    settings, "siglip_vision_model", { 26, 16, 1152, 4304, 384, 14, "gelu_pytorch_tanh" });
  settings.FailIf(encoder.PatchRows() != encoder.PatchColumns(),
    "expected an encoder of square images, found one of ", encoder.imageHeight, " x ",
    encoder.imageWidth, " pixels (height x width).");
  VisionConfig vision;
  ParseLayersRead(settings, encoder.layers, -1, MostRead, vision);
  vision.projectorActivation = settings.Choice({ "projector_hidden_act" }, "gelu", ActivationNames);
  vision.imageToken =
    ParseImageToken(settings, { "image_token_index", "image_token_id" }, 151'646, text.vocabulary);
  settings.Ignore({ "video_token_index", "video_token_id" }); // videos are not read
  RequireStrategy(settings, encoder, "full");
  vision.gridSizes = ParseGridSizes(settings, encoder);
  const std::string proportions = settings.Text({ "vision_aspect_ratio" }, "anyres_max_9");
  constexpr std::string_view begin = "anyres_max_";
  constexpr std::int64_t mostTiles = 1'000'000;
  const bool hasNumber = BeginsWith(proportions, begin) && proportions.size() > begin.size();
  const char* end = proportions.data() + proportions.size();
  const auto read = hasNumber
                      ? std::from_chars(proportions.data() + begin.size(), end, vision.mostTiles)
                      : std::from_chars_result{ nullptr, std::errc::invalid_argument };
  settings.FailIf(read.ptr != end || vision.mostTiles < 1 || vision.mostTiles > mostTiles,
    "expected 'vision_aspect_ratio' to be ", begin, " and a number of tiles from 1 to ", mostTiles,
    ", found '", proportions.substr(0, 80), "'.");
  return JoinVision(settings, std::move(text), std::move(encoder), std::move(vision));
}

TransformerConfig ParseGemma3(const Settings& settings)
{
  const bool hasPictures = settings.IsNested({ "vision_config" });
  TransformerConfig text =
    hasPictures
      ? ParseText(settings, settings.NestedOrEmpty({ "text_config" }), "gemma3_text", true)
      : ParseByRow(settings, "gemma3_text");
  text.logitCap = 0; // whatever final_logit_softcapping is, which is of texts that are saved alone
  if (!hasPictures)
  {
    return text;
  }
  text.mask = AttentionMask::Causal; // use_bidirectional_attention changes the windows alone
  TransformerConfig encoder =
    ParseSiglip(settings.NestedOrEmpty({ "vision_config" }), SiglipDefaults);
  const std::int64_t patches = encoder.PatchRows();
  const std::int64_t tokens = settings.Size({ "mm_tokens_per_image" }, 256);
  const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(tokens)));
  VisionConfig vision;
  vision.layersRead = encoder.layers;
  vision.merge = std::max<std::int64_t>(patches / side, 1);
  vision.averages = true;
  vision.projectorHasTwo = false;
  vision.projectorNorm = VisionConfig::ProjectorNorm::OfMerged;
  vision.projectorEpsilon = encoder.epsilon;
  vision.seesWholePictures = true;
  vision.imageToken =
    ParseImageToken(settings, { "image_token_index", "image_token_id" }, 262'144, text.vocabulary);
  const auto border = [&](const Settings::Keys& keys, std::int64_t otherwise)
  { return settings.Signed(keys, std::min(otherwise, text.vocabulary - 1)); };
  vision.startToken = border({ "boi_token_index", "boi_token_id" }, 255'999);
  vision.endToken = border({ "eoi_token_index", "eoi_token_id" }, 256'000);
  settings.FailIf(patches != encoder.PatchColumns() || side > patches || vision.merge > MostMerged,
    "expected 'mm_tokens_per_image' to be those of squares of up to ", MostMerged, " x ",
    MostMerged, " of the ", patches, " x ", encoder.PatchColumns(), " patches, found ", tokens,
    ".");
  return JoinVision(settings, std::move(text), std::move(encoder), std::move(vision));
}

TransformerConfig ParsePaliGemma(const Settings& settings)
{
  TransformerConfig text = ParseText(settings, RequirePart(settings, "text_config"), "gemma", true);
  text.logitCap = 0; // whatever final_logit_softcapping is, which is of texts that are saved alone
  TransformerConfig encoder = ParseSiglip(RequirePart(settings, "vision_config"), SiglipDefaults);
  VisionConfig vision;
  vision.layersRead = encoder.layers;
  vision.projectorHasTwo = false;
  vision.seesWholePrompts = true;
  vision.imageToken =
    ParseImageToken(settings, { "image_token_index", "image_token_id" }, 256'000, text.vocabulary);
  const std::int64_t width = settings.Size({ "projection_dim" }, 2048);
  settings.FailIf(width != text.modelDimension, "expected 'projection_dim' to be ",
    text.modelDimension, ", the dimension of the text, found ", width, ".");
  settings.Ignore({ "hidden_size" });
  return JoinVision(settings, std::move(text), std::move(encoder), std::move(vision));
}

TransformerConfig ParseMistral3(const Settings& settings)
{
  TransformerConfig text =
    ParseText(settings, RequirePart(settings, "text_config"), "mistral", true);
  const Settings part = RequirePart(settings, "vision_config");
  const std::string kind = part.Text({ "model_type" }, "pixtral");
  part.FailIf(kind != "pixtral", "expected an encoder of the model_type pixtral, found '",
    kind.substr(0, 80), "'.");
  TransformerConfig encoder = ParseByRow(part, "pixtral/encoder");
  encoder.architecture = kind;
  VisionConfig vision;
  ParseLayersRead(settings, encoder.layers, -1, 1, vision);
  vision.merge = settings.Signed({ "spatial_merge_size" }, 2, 1, MostMerged);
  vision.joinsByMatrix = true;
  vision.projectorNorm = VisionConfig::ProjectorNorm::OfPatches;
  vision.projectorEpsilon = text.epsilon;
  vision.projectorActivation = settings.Choice({ "projector_hidden_act" }, "gelu", ActivationNames);
  vision.imageToken =
    ParseImageToken(settings, { "image_token_index", "image_token_id" }, 10, text.vocabulary);
  return JoinVision(settings, std::move(text), std::move(encoder), std::move(vision));
}

TransformerConfig ParseInternVl(const Settings& settings)
{
  TransformerConfig text =
    ParseText(settings, settings.NestedOrEmpty({ "text_config" }), "qwen2", true);
  TransformerConfig encoder = ParseInternVlEncoder(settings.NestedOrEmpty({ "vision_config" }));
  VisionConfig vision;
  ParseLayersRead(settings, encoder.layers, -1, 1, vision);
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

namespace
{

/// By how many pairs frames, rows and columns rotate (mrope_section). They add up to `pairs`; 0:
/// any number.
std::vector<std::int64_t> ParseSections(
  const Settings& all, const Settings& words, std::int64_t pairs, const json& otherwise)
{
  const std::optional<Settings> rotation = words.Nested({ "rope_parameters", "rope_scaling" });
  const json* found = rotation ? rotation->Value({ "mrope_section" }) : nullptr;
  const json& sections = found == nullptr ? otherwise : *found;
  std::vector<std::int64_t> counts;
  std::int64_t sum = 0;
  bool areCounts = sections.is_array();
  for (const json& item : areCounts ? sections : json::array())
  {
    const bool isCount = item.is_number_unsigned() &&
                         item.get<std::uint64_t>() <= std::numeric_limits<std::int32_t>::max();
    areCounts = areCounts && isCount;
    counts.push_back(isCount ? item.get<std::int64_t>() : 0);
    sum += counts.back();
  }
  all.FailIf(!areCounts || counts.size() != 3 || (pairs > 0 && sum != pairs),
    "expected 'mrope_section' to be three numbers",
    pairs > 0 ? " that add up to the " + std::to_string(pairs) : " of the",
    " rotated pairs of a head, found ", found == nullptr ? "none" : Describe(sections), ".");
  return counts;
}

/// Qwen's encoders have their own projector, which gives the numbers that the text reads.
void RequireOutputs(const Settings& settings, const char* key, const TransformerConfig& text)
{
  const std::int64_t outputs = settings.Size({ key }, 3584);
  settings.FailIf(outputs != text.modelDimension, "expected the encoder of images to give ",
    text.modelDimension, " numbers per token, the dimension of the text, found ", outputs, ".");
}

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
  RequireOutputs(part, isLater ? "out_hidden_size" : "hidden_size", text);
  vision.imageToken = ParseImageToken(settings, { "image_token_id" }, 151'655, text.vocabulary);
  vision.videoToken = ParseImageToken(settings, { "video_token_id" }, 151'656, text.vocabulary);
  vision.rotarySections =
    ParseSections(settings, words, text.RotatedDimension() / 2, json::array());
  return JoinVision(settings, std::move(text), std::move(encoder), std::move(vision));
}

/// Qwen3.5 has no deep features.
TransformerConfig ParseQwen3Vl(const Settings& settings)
{
  const std::string kind = settings.Text({ "model_type" }, "");
  const bool isLater = BeginsWith(kind, "qwen3_5");
  const Settings words = settings.NestedOrEmpty({ "text_config" });
  TransformerConfig text = ParseText(settings, words, kind + "_text");
  if (isLater && !settings.IsNested({ "vision_config" }))
  {
    settings.IgnoreAll();
    return text;
  }
  const Settings part = settings.NestedOrEmpty({ "vision_config" });
  TransformerConfig encoder = ParseByRow(part, "qwen3_vl/encoder");
  encoder.architecture = "qwen3_vl";
  RequireQuarters(encoder, part);
  VisionConfig vision;
  vision.layersRead = encoder.layers;
  vision.merge = part.Signed({ "spatial_merge_size" }, 2, 1, MostMerged);
  vision.projectorNorm = VisionConfig::ProjectorNorm::OfPatches;
  vision.projectorEpsilon = encoder.epsilon;
  RequireOutputs(part, "out_hidden_size", text);
  const std::int64_t token = isLater ? 248'056 : 151'655;
  vision.imageToken = ParseImageToken(settings, { "image_token_id" }, token, text.vocabulary);
  vision.videoToken = ParseImageToken(settings, { "video_token_id" }, token + 1, text.vocabulary);
  const json sections = isLater ? json{ 11U, 11U, 10U } : json{ 24U, 20U, 20U };
  vision.rotarySections = ParseSections(settings, words, 0, sections);
  vision.interleavesSections = true;
  const json* given = part.Value({ "deepstack_visual_indexes" });
  const json deep = isLater ? json::array() : given == nullptr ? json{ 8, 16, 24 } : *given;
  std::map<std::int64_t, std::int64_t> projectors; // by layers
  for (const json& item : deep.is_array() ? deep : json::array({ deep }))
  {
    const bool isIndex = item.is_number_unsigned() &&
                         item.get<std::uint64_t>() < static_cast<std::uint64_t>(encoder.layers);
    const auto number = static_cast<std::int64_t>(projectors.size());
    part.FailIf(!isIndex || !projectors.emplace(item.get<std::int64_t>() + 1, number).second,
      "expected 'deepstack_visual_indexes' to be different layers from 0 to ", encoder.layers - 1,
      ", found ", Describe(deep), ".");
  }
  for (const auto& [layers, projector] : projectors)
  {
    vision.deepLayers.push_back(layers);
    vision.deepProjectors.push_back(projector);
  }
  return JoinVision(settings, std::move(text), std::move(encoder), std::move(vision));
}

}
