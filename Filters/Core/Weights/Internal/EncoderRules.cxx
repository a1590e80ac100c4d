#include "EncoderRules.h"

#include "ConfigParts.h"
#include "Files/JsonText.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <tuple>

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
