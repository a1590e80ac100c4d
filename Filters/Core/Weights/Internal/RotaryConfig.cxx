#include "RotaryConfig.h"

#include "Base/Index.h"
#include "ConfigParts.h"
#include "Files/JsonText.h"

#include <array>
#include <cmath>

namespace atlas
{
namespace
{

using ScalingKind = RotaryScaling::Kind;

constexpr std::array<Named<ScalingKind>, 9> ScalingNames = { {
  { "default", ScalingKind::None },
  { "dynamic", ScalingKind::None }, // differs beyond max_position_embeddings only
  { "linear", ScalingKind::Linear },
  { "llama3", ScalingKind::Llama3 },
  { "longrope", ScalingKind::LongRope },
  { "mrope", ScalingKind::None }, // in three sections, of words all the same
  { "proportional", ScalingKind::Proportional },
  { "su", ScalingKind::LongRope }, // its first name
  { "yarn", ScalingKind::Yarn },
} };

constexpr const char* PositionsKey = "original_max_position_embeddings";

void ParseLlama3(RotaryScaling& scaling, const Settings& settings)
{
  scaling.lowFactor = settings.Number({ "low_freq_factor" }, 1);
  scaling.highFactor = settings.Number({ "high_freq_factor" }, 4);
  settings.FailIf(scaling.highFactor < scaling.lowFactor,
    "expected 'high_freq_factor' to be at least 'low_freq_factor', found ", scaling.highFactor,
    " and ", scaling.lowFactor, ".");
}

void ParseYarn(RotaryScaling& scaling, const Settings& settings)
{
  scaling.betaFast = settings.Number({ "beta_fast" }, 32);
  scaling.betaSlow = settings.Number({ "beta_slow" }, 1);
  scaling.truncates = settings.Flag({ "truncate" }, true);
  // A weight of 0 counts as none, as in the original.
  const double weight = settings.Number({ "mscale" }, 0, true);
  const double weightOfAll = settings.Number({ "mscale_all_dim" }, 0, true);
  const double magnitude =
    weight > 0 && weightOfAll > 0
      ? YarnMagnitude(scaling.factor, weight) / YarnMagnitude(scaling.factor, weightOfAll)
      : YarnMagnitude(scaling.factor, 1);
  scaling.attentionFactor = settings.Number({ "attention_factor" }, magnitude);
}

/// A factor for each of `pairs` pairs.
std::vector<double> ParseFactors(const Settings& settings, const char* key, std::int64_t pairs)
{
  settings.FailIf(!settings.Has({ key }), "'", key, "' is missing.");
  std::vector<double> factors = settings.Numbers({ key }, pairs, 1);
  for (const double factor : factors)
  {
    settings.FailIf(
      factor <= 0, "expected '", key, "' to be positive numbers, found ", factor, ".");
  }
  return factors;
}

void ParseLongRope(
  RotaryScaling& scaling, const Settings& settings, const TransformerConfig& config)
{
  const std::int64_t pairs = config.RotatedDimension() / 2;
  scaling.shortFactors = ParseFactors(settings, "short_factor", pairs);
  scaling.longFactors = ParseFactors(settings, "long_factor", pairs);
  settings.FailIf(scaling.originalPositions <= 1,
    "expected 'original_max_position_embeddings' to be above 1, found ", scaling.originalPositions,
    ".");
  const double ratio = settings.Number(
    { "factor" }, static_cast<double>(config.positions) / scaling.originalPositions);
  const double magnitude =
    ratio > 1 ? std::sqrt(1 + std::log(ratio) / std::log(scaling.originalPositions)) : 1;
  scaling.attentionFactor = settings.Number({ "attention_factor" }, magnitude);
}

/// Phi-3.5-MoE: what short and long texts are multiplied by. Its frequencies are those of short
/// texts for all, as in release 5 of transformers.
void ParseMagnitudes(RotaryScaling& scaling, const Settings& settings)
{
  for (const char* key : { "short_mscale", "long_mscale", "original_max_position_embeddings" })
  {
    settings.FailIf(!settings.Has({ key }), "'", key, "' is missing.");
  }
  scaling.attentionFactor = settings.Number({ "short_mscale" }, 1);
  scaling.longAttentionFactor = settings.Number({ "long_mscale" }, 1);
  scaling.longFactors = scaling.shortFactors;
}

/// `original` is the context length in training if the scaling does not have it.
RotaryScaling ParseScaling(
  const Settings& settings, const TransformerConfig& config, double original, bool hasMagnitudes)
{
  RotaryScaling scaling;
  scaling.kind = settings.Choice({ "rope_type", "type" }, "default", ScalingNames);
  scaling.originalPositions = settings.Number({ "original_max_position_embeddings" }, original);
  scaling.factor = settings.Number({ "factor" }, 1);
  settings.Ignore({ "mrope_section", "mrope_interleaved" }); // of words all sections are the same
  settings.FailIf(scaling.kind != ScalingKind::None && scaling.kind != ScalingKind::LongRope &&
                    scaling.kind != ScalingKind::Proportional && !settings.Has({ "factor" }),
    "'factor' is missing.");
  if (scaling.kind == ScalingKind::Llama3)
  {
    ParseLlama3(scaling, settings);
  }
  else if (scaling.kind == ScalingKind::Yarn)
  {
    ParseYarn(scaling, settings);
  }
  else if (scaling.kind == ScalingKind::Proportional)
  {
    scaling.part = settings.Number({ "partial_rotary_factor" }, 1, true);
  }
  else if (scaling.kind == ScalingKind::LongRope)
  {
    ParseLongRope(scaling, settings, config);
  }
  if (hasMagnitudes && settings.Text({ "rope_type", "type" }, "default") != "default")
  {
    ParseMagnitudes(scaling, settings);
  }
  return scaling;
}

/// YaRN divides by the logarithm of the base.
void RequireRotation(const RotaryScaling& scaling, double base, const Settings& settings)
{
  settings.FailIf(scaling.kind == ScalingKind::Yarn && base <= 1,
    "expected 'rope_theta' to be above 1, found ", base, ".");
}

/// Of an odd number of components, the original rotates one more, by the frequencies of the odd
/// number.
void RoundUp(TransformerConfig& config)
{
  const std::int64_t odd = config.rotaryDimension;
  const bool isPlain = config.rotaryScaling.kind == RotaryScaling::Kind::None &&
                       config.windowRotaryBase == 0 && config.rotaryBases.empty();
  if (odd % 2 == 0 || odd == config.headDimension || !isPlain)
  {
    return;
  }
  config.rotaryDimension = odd + 1;
  for (std::int64_t pair = 0; pair <= odd / 2; ++pair)
  {
    config.rotaryFrequencies.push_back(static_cast<float>(
      std::pow(config.rotaryBase, -2 * static_cast<double>(pair) / static_cast<double>(odd))));
  }
}

/// Throws ModelError if both names of the settings of rotations are there and do not say the same:
/// which of them counts differs between releases of the original. What one lacks is `otherwise`.
void RequireSameRotation(const Settings& settings, const nlohmann::json& otherwise)
{
  using nlohmann::json;
  constexpr const char* older = "rope_scaling";
  constexpr const char* newer = "rope_parameters";
  // An empty older one is none in the original.
  const bool areBoth = settings.IsNested({ older }) && !settings.Value({ older })->empty() &&
                       settings.IsNested({ newer });
  const auto whole = [&](const char* name)
  {
    json all = json::object();
    for (const json* part : { settings.Value({ name }), &otherwise })
    {
      for (const auto& [key, value] : part->items())
      {
        if (!value.is_null()) // the first counts
        {
          all.emplace(key == "type" ? "rope_type" : key, value); // its first name
        }
      }
    }
    return all;
  };
  if (!areBoth)
  {
    return;
  }
  const json first = whole(older);
  const json second = whole(newer);
  json keys = first;
  keys.update(second);
  for (const auto& [key, value] : keys.items())
  {
    const json one = first.value(key, json());
    const json other = second.value(key, json());
    settings.FailIf(one != other, "expected the ", key, " of '", older, "' and '", newer,
      "' to be the same, found ", Describe(one), " and ", Describe(other), ".");
  }
}

/// Throws ModelError if the context length in training is there twice and not the same: which one
/// counts differs between releases of the original.
void RequireSamePositions(const Settings& settings, const std::optional<Settings>& nested)
{
  const nlohmann::json* inner = nested ? nested->Value({ PositionsKey }) : nullptr;
  const nlohmann::json* all = settings.Value({ PositionsKey });
  settings.FailIf(inner != nullptr && all != nullptr && *inner != *all, "expected '", PositionsKey,
    "' to be the same in the settings of rotations and beside them, found ",
    Describe(inner == nullptr ? nlohmann::json() : *inner), " and ",
    Describe(all == nullptr ? nlohmann::json() : *all), ".");
}

}

double YarnMagnitude(double factor, double weight)
{
  return factor > 1 ? 0.1 * weight * std::log(factor) + 1 : 1;
}

void CheckRotatedPart(const TransformerConfig& config, const Settings& settings)
{
  const std::int64_t rotated = config.RotatedDimension();
  settings.FailIf(rotated % 2 != 0 || rotated > config.headDimension,
    "expected a rotary embedding of an even number of components, of at most ",
    config.headDimension, " of a head, found ", rotated, ".");
}

void ParseRotation(
  TransformerConfig& config, const Settings& settings, const RotaryDefaults& defaults)
{
  config.position = PositionKind::Rotary;
  config.rotaryBase = settings.Number({ "rope_theta", "rotary_emb_base" }, defaults.base);
  config.windowRotaryBase =
    defaults.windowBase > 0 ? settings.Number({ "rope_local_base_freq" }, defaults.windowBase) : 0;
  double part =
    settings.Number({ "partial_rotary_factor", "rotary_pct", "rope_pct" }, defaults.part);
  // Newer files have all in rope_parameters, perhaps by the kind of layer. Which of both names
  // counts differs between releases of the original.
  const nlohmann::json* original = settings.Value({ PositionsKey });
  RequireSameRotation(
    settings, { { "rope_type", "default" }, { "rope_theta", config.rotaryBase },
                { "partial_rotary_factor", part },
                { PositionsKey, original == nullptr ? nlohmann::json() : *original } });
  const std::optional<Settings> all = settings.Nested({ "rope_parameters", "rope_scaling" });
  const std::optional<Settings> sliding = all ? all->Nested({ "sliding_attention" }) : std::nullopt;
  const std::optional<Settings> full = all ? all->Nested({ "full_attention" }) : std::nullopt;
  const std::optional<Settings> nested = full || sliding ? full : all;
  for (const std::optional<Settings>& one : { nested, sliding })
  {
    RequireSamePositions(settings, one);
  }
  if (nested)
  {
    config.rotaryBase = nested->Number({ "rope_theta" }, config.rotaryBase);
    const bool isOfAll = nested->Text({ "rope_type", "type" }, "") == "proportional";
    part = isOfAll ? 1 : nested->Number({ "partial_rotary_factor" }, part);
  }
  settings.FailIf(part > 1 || (part != 1 && !defaults.isPartial), "expected a rotary embedding of ",
    defaults.isPartial ? "a part" : "all components",
    " of a head, found the partial_rotary_factor ", part, ".");
  const std::int64_t whole = defaults.dimension > 0 ? defaults.dimension : config.headDimension;
  config.rotaryDimension = static_cast<std::int64_t>(static_cast<double>(whole) * part);
  settings.FailIf(config.rotaryDimension < 2,
    "expected a rotary embedding of at least 2 components of a head, found ",
    config.rotaryDimension, " of ", whole, ".");
  const double positions = settings.Number(
    { PositionsKey }, defaults.originalPositions > 0 ? defaults.originalPositions
                                                     : static_cast<double>(config.positions));
  if (nested)
  {
    config.rotaryScaling = ParseScaling(*nested, config, positions, defaults.hasMagnitudes);
  }
  if (sliding)
  {
    config.windowRotaryBase = sliding->Number(
      { "rope_theta" }, config.windowRotaryBase > 0 ? config.windowRotaryBase : config.rotaryBase);
    config.windowRotaryScaling = ParseScaling(*sliding, config, positions, defaults.hasMagnitudes);
  }
  RequireRotation(config.rotaryScaling, config.rotaryBase, settings);
  RequireRotation(config.windowRotaryScaling, config.windowRotaryBase, settings);
  RoundUp(config);
  CheckRotatedPart(config, settings);
}

}
