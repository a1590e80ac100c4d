#include "TransformerConfig.h"

#include "Base/Error.h"
#include "Base/Pi.h"
#include "Base/TextEnds.h"
#include "Files/FileContent.h"
#include "Files/JsonSettings.h"
#include "Files/JsonText.h"
#include "Files/MappedFile.h"
#include "Internal/ArchitectureConfigs.h"
#include "Internal/ArchitectureRows.h"
#include "Internal/Quantization.h"
#include "Internal/SettingRoles.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

namespace atlas
{
namespace
{

using nlohmann::json;

/// One id or a list of them. Numbers that are no ids, which some files have, count as none.
std::vector<std::int64_t> EndTokens(const Settings& settings, std::int64_t vocabulary)
{
  std::vector<std::int64_t> ends;
  const json* value = settings.Value({ "eos_token_id" });
  const json list = value == nullptr ? json::array() : value->is_array() ? *value : json{ *value };
  for (const json& end : list)
  {
    const auto id = end.is_number_integer() ? end.get<std::int64_t>() : -1;
    if (id >= 0 && id < vocabulary)
    {
      ends.push_back(id);
    }
  }
  return ends;
}

/// Llama 3: the fraction of a frequency that is unchanged; the rest is divided by the factor.
double KeptByLlama3(const RotaryScaling& scaling, double frequency)
{
  const double waves = scaling.originalPositions * frequency / (2 * Pi);
  if (scaling.highFactor == scaling.lowFactor) // Llama 4
  {
    return waves < scaling.lowFactor ? 0 : 1;
  }
  const double kept = (waves - scaling.lowFactor) / (scaling.highFactor - scaling.lowFactor);
  return std::clamp(kept, 0.0, 1.0);
}

/// YaRN: likewise, of the pair i of `rotated` components (Peng et al. 2023, section 3.2).
double KeptByYarn(const RotaryScaling& scaling, double base, double rotated, std::int64_t i)
{
  // The index of the pair that turns so many times in the context of the training.
  const auto pairOf = [&](double turns)
  {
    return rotated * std::log(scaling.originalPositions / (2 * Pi * turns)) / (2 * std::log(base));
  };
  double low = pairOf(scaling.betaFast);
  double high = pairOf(scaling.betaSlow);
  if (scaling.truncates)
  {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, rotated - 1);
  constexpr double least = 0.001; // so that there is something to divide by
  const double width = high == low ? least : high - low;
  return 1 - std::clamp((static_cast<double>(i) - low) / width, 0.0, 1.0);
}

}

std::int64_t SoundConfig::Places(std::int64_t samples) const
{
  for (std::size_t i = 0; i < this->widths.size(); ++i)
  {
    samples = samples < this->widths[i] ? 0 : (samples - this->widths[i]) / this->strides[i] + 1;
  }
  return samples;
}

std::int64_t SoundConfig::Step() const
{
  return std::accumulate(
    this->strides.begin(), this->strides.end(), std::int64_t{ 1 }, std::multiplies<>());
}

TransformerConfig TransformerConfig::WithSizesOf(std::int64_t layer) const
{
  TransformerConfig config = *this;
  const auto choose = [layer](const std::vector<std::int64_t>& sizes, std::int64_t& size)
  { size = sizes.empty() ? size : sizes[layer]; };
  choose(this->headDimensions, config.headDimension);
  choose(this->keyHeadCounts, config.keyHeads);
  choose(this->mlpDimensions, config.mlpDimension);
  if (!this->headDimensions.empty())
  {
    config.rotaryDimension = config.headDimension;
  }
  if (!this->HasAttention(layer))
  {
    config.normPlace = this->mixerNormPlace;
  }
  return config;
}

std::int64_t TransformerConfig::AttentionsBefore(std::int64_t layer) const
{
  return this->mixers.empty()
           ? layer
           : std::count(this->mixers.begin(), this->mixers.begin() + layer, Mixer::Attention);
}

std::int64_t TransformerConfig::KeyLayer(std::int64_t layer) const
{
  const std::int64_t own = this->layers - this->sharedKeyLayers;
  if (this->sharedKeyLayers == 0 || layer < own)
  {
    return layer;
  }
  std::int64_t source = own - 1;
  while (source > 0 && (this->Window(source) > 0) != (this->Window(layer) > 0))
  {
    --source;
  }
  return source;
}

double TransformerConfig::ScoreScale(std::int64_t layer) const
{
  return 1 / (this->attentionScale * (this->scaleByLayer ? static_cast<double>(layer + 1) : 1));
}

namespace
{

json ParseObject(std::string_view text, const std::string& source)
{
  json object;
  try
  {
    object = json::parse(WithTaggedNumbers(text));
  }
  catch (const json::exception& e)
  {
    throw FormatError(source, ": the configuration is not JSON: ", WhyNoJson(text, e.what()), ".");
  }
  ThrowIf<FormatError>(!object.is_object(), source,
    ": expected the configuration to be a JSON object, found ", object.type_name(), ".");
  return object;
}

/// The setting that names the code of a model in its own folder.
constexpr const char* CodeSetting = "auto_map";

/// Whether it names a class of models there.
bool HasOwnCode(const json& object)
{
  const json map = object.value(CodeSetting, json());
  const auto items = map.items();
  return map.is_object() && std::any_of(items.begin(), items.end(),
                              [](const auto& item) { return BeginsWith(item.key(), "AutoModel"); });
}

TransformerConfig ParseSettings(
  json object, const std::string& source, const std::string& architecture)
{
  if (!architecture.empty())
  {
    object["model_type"] = architecture;
    object.erase(OwnRow);
  }
  const Settings settings(object, source);
  const std::string found = ArchitectureBySettings(settings);
  if (!settings.Has({ "model_type" }) && (!found.empty() || settings.Has({ OwnRow })))
  {
    object["model_type"] = settings.Has({ OwnRow }) ? OwnRow : found;
  }
  settings.FailIf(!settings.Has({ "model_type" }), "'model_type' is missing, expected one of ",
    KnownArchitectures(), ".");
  TransformerConfig config = ParseArchitecture(settings);
  ParseQuantization(settings);
  config.architecture = settings.Text({ "model_type" }, "");
  constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max();
  settings.FailIf(config.heads > largest / config.headDimension, "expected at most ", largest,
    " components of all heads, found ", config.heads, " heads of dimension ", config.headDimension,
    ".");
  settings.FailIf(config.heads % config.keyHeads != 0, "the number of heads of keys, ",
    config.keyHeads, ", does not divide that of queries, ", config.heads, ".");
  settings.FailIf(config.convolution > 0 &&
                    (config.convolution % 2 == 0 || config.mask != AttentionMask::Bidirectional),
    "expected a convolution over an odd number of tokens, in a model without a causal mask, found ",
    config.convolution, " tokens.");
  if (config.outputVocabulary == 0)
  {
    config.outputVocabulary = config.vocabulary;
  }
  const bool hasEnds = config.vision == nullptr || settings.Has({ "eos_token_id" });
  config.endTokens = EndTokens(
    hasEnds ? settings : settings.NestedOrEmpty({ "text_config" }), config.outputVocabulary);
  config.unknownSettings = DecideUnread(settings, config.architecture);
  if (HasOwnCode(object) && !settings.Has({ OwnRow }))
  {
    config.unknownSettings.emplace_back(CodeSetting);
  }
  return config;
}

}

TransformerConfig ParseTransformerConfig(
  std::string_view text, const std::string& source, const std::string& architecture)
{
  return ParseSettings(ParseObject(text, source), source, architecture);
}

TransformerConfig ReadTransformerConfig(
  const std::filesystem::path& path, const std::string& architecture)
{
  json whole = ParseObject(ReadFile(path), path.string());
  const std::filesystem::path row = path.parent_path() / (std::string(OwnRow) + ".json");
  if (architecture.empty() && FileExists(row))
  {
    ThrowIf<ModelError>(whole.contains(OwnRow), path.string(), ": expected '", OwnRow,
      "' here or in ", row.string(), ", found both.");
    whole[OwnRow] = ParseJsonObject(ReadFile(row), row.string());
  }
  TransformerConfig config = ParseSettings(std::move(whole), path.string(), architecture);
  const std::filesystem::path generation = path.parent_path() / GenerationConfigFile;
  if (FileExists(generation))
  {
    const std::string source = generation.string();
    const json object = ParseJson(ReadFile(generation), source);
    ThrowIf<FormatError>(
      !object.is_object(), source, ": expected a JSON object, found ", Describe(object), ".");
    const Settings settings(object, source);
    if (settings.Has({ "eos_token_id" }))
    {
      config.endTokens = EndTokens(settings, config.outputVocabulary);
    }
    const json* start = settings.Value({ "decoder_start_token_id" }); // as the ends, of new files
    const auto id =
      start != nullptr && start->is_number_integer() ? start->get<std::int64_t>() : -1;
    if (config.encoder != nullptr && id >= 0 && id < config.vocabulary)
    {
      config.decoderStart = id;
    }
  }
  return config;
}

std::vector<double> AlibiSlopes(std::int64_t heads, double exponent)
{
  std::int64_t power = 1;
  while (2 * power <= heads)
  {
    power *= 2;
  }
  std::vector<double> slopes;
  const auto p = static_cast<double>(power);
  for (std::int64_t k = 1; k <= power; ++k)
  {
    slopes.push_back(std::exp2(-exponent * static_cast<double>(k) / p));
  }
  for (std::int64_t k = 1; k <= heads - power; ++k)
  {
    slopes.push_back(std::exp2(-exponent / 2 * static_cast<double>(2 * k - 1) / p));
  }
  return slopes;
}

std::int64_t RelativeBucket(const TransformerConfig& config, std::int64_t distance)
{
  const bool isCausal = config.mask == AttentionMask::Causal;
  const std::int64_t count = isCausal ? config.relativeBuckets : config.relativeBuckets / 2;
  const std::int64_t first = !isCausal && distance > 0 ? count : 0;
  const std::int64_t length = isCausal ? std::max<std::int64_t>(-distance, 0) : std::abs(distance);
  const std::int64_t exact = count / 2; // distances with a bucket each
  if (length < exact)
  {
    return first + length;
  }
  // In single precision, as the original code.
  const auto ratio = static_cast<float>(length) / static_cast<float>(exact);
  const auto longest = static_cast<float>(
    std::log(static_cast<double>(config.relativeDistance) / static_cast<double>(exact)));
  const float part = std::log(ratio) / longest * static_cast<float>(count - exact);
  return first + std::min(exact + static_cast<std::int64_t>(part), count - 1);
}

std::int64_t DistanceRow(const TransformerConfig& config, std::int64_t distance)
{
  const std::int64_t buckets = config.relativeBuckets;
  const std::int64_t span = buckets > 0 ? buckets : config.relativeDistance;
  const std::int64_t middle = buckets / 2;
  std::int64_t length = std::abs(distance);
  if (buckets > 0 && length > middle)
  {
    // In single precision, as the original code.
    const float ratio = std::log(static_cast<float>(length) / static_cast<float>(middle));
    const float longest =
      std::log(static_cast<float>(config.relativeDistance - 1) / static_cast<float>(middle));
    const float part = ratio / longest * static_cast<float>(middle - 1);
    length = static_cast<std::int64_t>(std::ceil(part)) + middle;
  }
  return std::clamp<std::int64_t>(span + (distance < 0 ? -length : length), 0, 2 * span - 1);
}

std::vector<float> RotaryFrequencies(
  const TransformerConfig& config, std::int64_t layer, std::int64_t length)
{
  if (!config.rotaryFrequencies.empty())
  {
    return config.rotaryFrequencies;
  }
  using Kind = RotaryScaling::Kind;
  const RotaryScaling& scaling = config.RotaryScalingOf(layer);
  const double base = config.RotaryBaseOf(layer);
  const bool isOfPatches = config.position == PositionKind::RotaryOfPatches;
  const auto rotated =
    static_cast<double>(isOfPatches ? config.headDimension / 2 : config.RotatedDimension());
  const bool isLong = static_cast<double>(length) > scaling.originalPositions;
  std::vector<float> frequencies;
  const std::int64_t pairs = config.RotatedDimension() / 2;
  for (std::int64_t pair = 0; pair < pairs; ++pair)
  {
    const std::int64_t rows = isOfPatches ? (pairs + 1) / 2 : pairs; // the others are of columns
    const std::int64_t i = pair % rows;
    const bool isBetween = config.alternatesAxes && pair >= rows;
    double frequency =
      std::pow(base, -2 * (static_cast<double>(i) + (isBetween ? 0.5 : 0)) / rotated);
    if (scaling.kind == Kind::Proportional)
    {
      const bool turns = static_cast<double>(i) < std::floor(scaling.part * rotated / 2);
      frequency *= turns ? 1 / scaling.factor : 0;
    }
    else if (scaling.kind == Kind::LongRope)
    {
      frequency /= (isLong ? scaling.longFactors : scaling.shortFactors)[i];
    }
    else if (scaling.kind != Kind::None)
    {
      const double kept = scaling.kind == Kind::Llama3 ? KeptByLlama3(scaling, frequency)
                          : scaling.kind == Kind::Yarn ? KeptByYarn(scaling, base, rotated, i)
                                                       : 0;
      frequency *= kept + (1 - kept) / scaling.factor;
    }
    frequencies.push_back(static_cast<float>(frequency));
  }
  return frequencies;
}

}
