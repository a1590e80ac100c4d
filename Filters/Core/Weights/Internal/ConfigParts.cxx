#include "ConfigParts.h"

#include "Files/JsonText.h"

#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

namespace atlas
{
namespace
{

/// The most layers of a model that has settings by layer.
constexpr std::int64_t MaximumLayers = 100'000;

}

void SplitHeads(TransformerConfig& config, const Settings& settings)
{
  settings.FailIf(config.modelDimension % config.heads != 0, "the number of heads, ", config.heads,
    ", does not divide the dimension of the model, ", config.modelDimension, ".");
  config.keyHeads = config.heads;
  config.headDimension = config.modelDimension / config.heads;
  config.attentionScale = std::sqrt(static_cast<double>(config.headDimension));
}

TransformerConfig ParseSizes(const Settings& settings, const Settings::Keys& layers,
  const Settings::Keys& heads, const Settings::Keys& modelDimension,
  const Settings::Keys& mlpDimension)
{
  TransformerConfig config;
  config.layers = settings.Size(layers);
  config.heads = settings.Size(heads);
  config.modelDimension = settings.Size(modelDimension);
  const std::int64_t width = 4 * config.modelDimension;
  config.mlpDimension = mlpDimension.empty() ? width : settings.Size(mlpDimension, width);
  SplitHeads(config, settings);
  return config;
}

void RequireFewLayers(const TransformerConfig& config, const Settings& settings)
{
  settings.FailIf(config.layers > MaximumLayers, "expected at most ", MaximumLayers,
    " layers, found ", config.layers, ".");
}

Settings PartOf(const Settings& all, const char* part)
{
  const std::optional<Settings> found = all.Nested({ part });
  if (found)
  {
    all.IgnoreAll();
  }
  return found.value_or(all);
}

void RequireSame(const Settings& settings, const char* part, const char* whole)
{
  using nlohmann::json;
  const json* first = settings.Value({ part });
  const json* second = settings.Value({ whole });
  if (first == nullptr || second == nullptr || !first->is_object() || !second->is_object())
  {
    return;
  }
  for (const auto& [key, value] : first->items())
  {
    // What a rotary embedding was called first.
    const json found = second->value(key == "type" ? "rope_type" : key, json());
    settings.FailIf(found != value, "expected the ", key, " of '", part, "' and '", whole,
      "' to be the same, found ", Describe(value), " and ", Describe(found), ".");
  }
}

void ParseImages(
  TransformerConfig& config, const Settings& settings, std::int64_t patch, std::int64_t image)
{
  config.input = InputKind::Images;
  std::tie(config.imageHeight, config.imageWidth) = settings.Extent({ "image_size" }, image);
  std::tie(config.patchHeight, config.patchWidth) = settings.Extent({ "patch_size" }, patch);
  config.channels = settings.Size({ "num_channels" }, 3);
  settings.FailIf(config.imageHeight < config.patchHeight || config.imageWidth < config.patchWidth,
    "patches of ", config.patchHeight, " x ", config.patchWidth,
    " pixels do not fit in an image of ", config.imageHeight, " x ", config.imageWidth, ".");
  config.positions = config.PatchRows() * config.PatchColumns() + config.TokensBeforePatches();
  config.tiedUnembedding = false;
}

void AllowOtherSizes(TransformerConfig& config)
{
  config.positionSide = config.PatchRows() == config.PatchColumns() ? config.PatchRows() : 0;
}

std::int64_t ScaledWidth(const TransformerConfig& config, const Settings& settings)
{
  const double width =
    static_cast<double>(config.modelDimension) * settings.Number({ "mlp_ratio" }, 4);
  settings.FailIf(width < 1 || width > std::numeric_limits<std::int32_t>::max(),
    "expected 'mlp_ratio' to give an MLP of at least one number, found ", width, ".");
  return static_cast<std::int64_t>(width);
}

void ParseWindows(TransformerConfig& config, const Settings& settings, std::int64_t otherwise,
  const std::function<bool(std::int64_t)>& slides)
{
  if (settings.IsNull("sliding_window") || (otherwise == 0 && !settings.Has({ "sliding_window" })))
  {
    return;
  }
  RequireFewLayers(config, settings);
  const std::int64_t window = settings.Size({ "sliding_window" }, otherwise);
  const std::vector<std::string> types = settings.Texts({ "layer_types" }, config.layers);
  for (std::int64_t l = 0; l < config.layers; ++l)
  {
    const std::string expected =
      slides == nullptr || slides(l) ? "sliding_attention" : "full_attention";
    const std::string type = types.empty() ? expected : types[l];
    settings.FailIf(slides == nullptr && type != expected, "expected 'layer_types' to be ",
      expected, " in all layers, as in the original code of this model_type, found ",
      type.substr(0, 80), ".");
    settings.FailIf(type != "sliding_attention" && type != "full_attention",
      "unknown layer_types '", type.substr(0, 80),
      "', expected full_attention or sliding_attention.");
    config.windows.push_back(type == "sliding_attention" ? window : 0);
  }
}

}
