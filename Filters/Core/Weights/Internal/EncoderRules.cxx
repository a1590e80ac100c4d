#include "EncoderRules.h"

#include "ActivationNames.h"
#include "Base/NamedValues.h"
#include "ConfigParts.h"
#include "Files/JsonText.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <sstream>
#include <tuple>
#include <utility>

namespace atlas
{
namespace
{

using nlohmann::json;

/// The longest distance that has a vector.
constexpr std::int64_t MostDistances = 65'536;

/// A whole number that may be negative, or `otherwise`.
std::int64_t NumberOr(const Settings& settings, const char* key, std::int64_t otherwise)
{
  const json* value = settings.Value({ key });
  settings.FailIf(value != nullptr && !value->is_number_integer(), "expected '", key,
    "' to be an integer, found ", value == nullptr ? "" : Describe(*value), ".");
  return value == nullptr ? otherwise : value->get<std::int64_t>();
}

/// The words of a list, or of a text with bars between them.
std::vector<std::string> TextsIn(const Settings& settings, const char* key)
{
  std::vector<std::string> words;
  const json* value = settings.Value({ key });
  if (value == nullptr)
  {
    return words;
  }
  json list = *value;
  if (value->is_string())
  {
    list = json::array();
    std::istringstream text(value->get<std::string>());
    for (std::string word; std::getline(text, word, '|');)
    {
      word.erase(std::remove(word.begin(), word.end(), ' '), word.end());
      list.push_back(word);
    }
  }
  for (const json& item : list)
  {
    settings.FailIf(!list.is_array() || !item.is_string(), "expected '", key,
      "' to be a list of texts, found ", Describe(*value), ".");
    words.push_back(item.get<std::string>());
  }
  return words;
}

bool HasText(const std::vector<std::string>& words, const char* word)
{
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// A list of positive integers, or `otherwise`.
std::vector<std::int64_t> SizesIn(
  const Settings& settings, const char* key, const std::vector<std::int64_t>& otherwise)
{
  constexpr std::int64_t most = 65'536;
  constexpr std::size_t longest = 64;
  const json* value = settings.Value({ key });
  if (value == nullptr)
  {
    return otherwise;
  }
  std::vector<std::int64_t> sizes;
  for (const json& item : value->is_array() ? *value : json{ nullptr })
  {
    const bool isSize = item.is_number_integer() && item > 0 && item <= most;
    settings.FailIf(!isSize || sizes.size() == longest, "expected '", key,
      "' to be a list of up to ", longest, " integers from 1 to ", most, ", found ",
      Describe(*value), ".");
    sizes.push_back(item.get<std::int64_t>());
  }
  return sizes;
}

}

void Waveform(TransformerConfig& config, const Settings& settings)
{
  constexpr std::array<Named<bool>, 2> norms = { { { "group", false }, { "layer", true } } };
  SoundConfig sound;
  sound.channels = SizesIn(settings, "conv_dim", { 512, 512, 512, 512, 512, 512, 512 });
  sound.widths = SizesIn(settings, "conv_kernel", { 10, 3, 3, 3, 3, 2, 2 });
  sound.strides = SizesIn(settings, "conv_stride", { 5, 2, 2, 2, 2, 2, 2 });
  const std::size_t count = sound.channels.size();
  settings.FailIf(count == 0 || sound.widths.size() != count || sound.strides.size() != count ||
                    settings.Size({ "num_feat_extract_layers" },
                      static_cast<std::int64_t>(count)) != static_cast<std::int64_t>(count),
    "expected 'conv_dim', 'conv_kernel' and 'conv_stride' to be of equally many convolutions, as "
    "'num_feat_extract_layers' says, found ",
    count, ", ", sound.widths.size(), " and ", sound.strides.size(), ".");
  sound.hasBias = settings.Flag({ "conv_bias" }, false);
  sound.normsEach = settings.Choice({ "feat_extract_norm" }, "group", norms);
  sound.normsLast = settings.Flag({ "feat_proj_layer_norm" }, true);
  sound.activation = settings.Choice({ "feat_extract_activation" }, "gelu", ActivationNames);
  sound.positionWidth = settings.Size({ "num_conv_pos_embeddings" }, 128);
  sound.positionGroups = settings.Size({ "num_conv_pos_embedding_groups" }, 16);
  settings.FailIf(config.modelDimension % sound.positionGroups != 0,
    "expected 'num_conv_pos_embedding_groups' to divide 'hidden_size', ", config.modelDimension,
    ", found ", sound.positionGroups, ".");
  config.input = InputKind::Sound;
  config.tiedUnembedding = false;
  config.sound = std::make_shared<const SoundConfig>(std::move(sound));
}

void Spectrogram(TransformerConfig& config, const Settings& settings)
{
  config.input = InputKind::Sound;
  config.channels = 1;
  config.melBands = config.imageHeight = settings.Size({ "num_mel_bins" }, 128);
  config.imageWidth = settings.Size({ "max_length" }, 1024);
  config.patchHeight = config.patchWidth = settings.Size({ "patch_size" }, 16);
  config.patchRowStep = settings.Size({ "frequency_stride" }, 10);
  config.patchColumnStep = settings.Size({ "time_stride" }, 10);
  settings.FailIf(config.imageHeight < config.patchHeight || config.imageWidth < config.patchWidth,
    "patches of ", config.patchHeight, " bands and frames do not fit in ", config.imageHeight,
    " bands (num_mel_bins) and ", config.imageWidth, " frames (max_length).");
  config.positions = config.PatchRows() * config.PatchColumns() + config.TokensBeforePatches();
  config.tiedUnembedding = false;
}

void PaddedPositions(TransformerConfig& config, const Settings& settings)
{
  if (config.paddingToken < 0 || !config.HasPositionVectors())
  {
    return;
  }
  config.firstPosition = config.paddingToken + 1;
  settings.FailIf(config.firstPosition >= config.positions,
    "expected 'max_position_embeddings' to be above the id of the padding + 1, found ",
    config.positions, " and ", config.paddingToken, ".");
  config.positions -= config.firstPosition;
}

void LocalAttention(TransformerConfig& config, const Settings& settings)
{
  RequireFewLayers(config, settings);
  const std::int64_t window = settings.Size({ "local_attention" }, 128) / 2 + 1;
  const std::int64_t pattern = settings.Size({ "global_attn_every_n_layers" }, 3);
  const std::vector<std::string> types = settings.Texts({ "layer_types" }, config.layers);
  for (std::int64_t l = 0; l < config.layers; ++l)
  {
    const std::string otherwise = l % pattern == 0 ? "full_attention" : "sliding_attention";
    const std::string type = types.empty() ? otherwise : types[l];
    settings.FailIf(type != "sliding_attention" && type != "full_attention",
      "unknown layer_types '", type.substr(0, 80),
      "', expected full_attention or sliding_attention.");
    config.windows.push_back(type == "sliding_attention" ? window : 0);
  }
}

void BothSides(TransformerConfig& config, const Settings& /*settings*/)
{
  for (std::int64_t& window : config.windows)
  {
    const bool isHalf = config.mask == AttentionMask::Bidirectional && window > 0;
    window = isHalf ? window / 2 + 1 : window;
  }
}

void Disentangled(TransformerConfig& config, const Settings& settings)
{
  const std::vector<std::string> kinds = TextsIn(settings, "pos_att_type");
  for (const std::string& kind : kinds)
  {
    settings.FailIf(kind != "c2p" && kind != "p2c", "unknown pos_att_type '", kind.substr(0, 80),
      "', expected c2p or p2c.");
  }
  config.readsKeysOfPositions = HasText(kinds, "c2p");
  config.readsQueriesOfPositions = HasText(kinds, "p2c");
  const std::int64_t terms =
    1 + (config.readsKeysOfPositions ? 1 : 0) + (config.readsQueriesOfPositions ? 1 : 0);
  config.attentionScale = std::sqrt(static_cast<double>(config.headDimension * terms));
  const std::vector<std::string> norms = TextsIn(settings, "norm_rel_ebd");
  std::int64_t longest = NumberOr(settings, "max_relative_positions", -1);
  longest = longest < 1 ? config.positions : longest;
  const std::int64_t buckets =
    std::max<std::int64_t>(NumberOr(settings, "position_buckets", -1), 0);
  if (!settings.Flag({ "relative_attention" }, false))
  {
    config.position = config.addsPositions ? PositionKind::Learned : PositionKind::None;
    config.addsPositions = false;
    config.readsKeysOfPositions = config.readsQueriesOfPositions = true;
    config.sharesPositionKeys = false;
    return;
  }
  config.position = PositionKind::Disentangled;
  const bool isFirst = settings.Text({ "model_type" }, "") == "deberta";
  config.relativeBuckets = isFirst ? 0 : buckets;
  config.relativeDistance = longest;
  config.positionNorm = HasText(norms, "layer_norm") && !isFirst;
  settings.FailIf(longest > MostDistances, "expected 'max_relative_positions' to be at most ",
    MostDistances, ", found ", longest, ".");
  settings.FailIf(config.relativeBuckets == 1 ||
                    (config.relativeBuckets > 0 && longest - 1 <= config.relativeBuckets / 2),
    "expected 'position_buckets' to be 2 to twice 'max_relative_positions' less 2, found ",
    config.relativeBuckets, " and ", longest, ".");
  if (!config.addsPositions)
  {
    config.positions = 0; // there is no limit
  }
}

void Images(TransformerConfig& config, const Settings& settings)
{
  ParseImages(config, settings, 16);
  AllowOtherSizes(config);
  settings.FailIf(config.position == PositionKind::RotaryOfPatches && config.headDimension % 4 != 0,
    "expected heads of a multiple of 4 components, half of which are rotated by the row of a patch "
    "and half by its column, found ",
    config.headDimension, ".");
}

void PatchBias(TransformerConfig& config, const Settings& settings)
{
  Images(config, settings);
  const bool isShared = settings.Flag({ "use_shared_relative_position_bias" }, false);
  if (!config.biasByLayer && !isShared)
  {
    config.position = config.addsPositions ? PositionKind::Learned : PositionKind::None;
    config.addsPositions = false;
    return;
  }
  settings.FailIf(config.biasByLayer && isShared,
    "expected either 'use_relative_position_bias' or 'use_shared_relative_position_bias'.");
  settings.FailIf(config.positionSide == 0,
    "expected square images of a model with biases of "
    "patches, found ",
    config.imageHeight, " x ", config.imageWidth, ".");
  config.position = PositionKind::RelativeOfPatches;
}

void AnySize(TransformerConfig& config, const Settings& settings)
{
  config.input = InputKind::Images;
  std::tie(config.patchHeight, config.patchWidth) = settings.Extent({ "patch_size" }, 16);
  config.channels = settings.Size({ "num_channels", "in_channels" }, 3);
  config.tiedUnembedding = false;
}

void AnyGrid(TransformerConfig& config, const Settings& settings)
{
  constexpr std::int64_t most = 1'000'000;
  const std::int64_t count = settings.Signed({ "num_patches" }, 256, 1, most);
  config.positionSide = static_cast<std::int64_t>(std::sqrt(static_cast<double>(count)));
  settings.FailIf(config.positionSide * config.positionSide != count,
    "expected 'num_patches' to be the square of an integer, found ", count, ".");
  AnySize(config, settings);
}

}
