#include "RotaryConfig.h"

#include "ConfigParts.h"
#include "Index.h"

#include <array>
#include <cmath>

namespace atlas
{
namespace
{

using ScalingKind = RotaryScaling::Kind;

constexpr std::array<Named<ScalingKind>, 8> ScalingNames = { {
  { "default", ScalingKind::None },
  { "dynamic", ScalingKind::None }, // differs beyond max_position_embeddings only
  { "linear", ScalingKind::Linear },
  { "llama3", ScalingKind::Llama3 },
  { "longrope", ScalingKind::LongRope },
  { "mrope", ScalingKind::None },  // in three sections, of words all the same
  { "su", ScalingKind::LongRope }, // its first name
  { "yarn", ScalingKind::Yarn },
} };

void ParseLlama3(RotaryScaling& scaling, const Settings& settings)
{
  scaling.lowFactor = settings.Number({ "low_freq_factor" }, 1);
  scaling.highFactor = settings.Number({ "high_freq_factor" }, 4);
  if (scaling.highFactor <= scaling.lowFactor)
  {
    settings.Fail("expected 'high_freq_factor' to be above 'low_freq_factor', found " +
                  std::to_string(scaling.highFactor) + " and " + std::to_string(scaling.lowFactor) +
                  ".");
  }
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
  if (!settings.Has({ key }))
  {
    settings.Fail("'" + std::string(key) + "' is missing.");
  }
  std::vector<double> factors = settings.Numbers({ key }, pairs, 1);
  for (const double factor : factors)
  {
    if (factor <= 0)
    {
      settings.Fail("expected '" + std::string(key) + "' to be positive numbers, found " +
                    std::to_string(factor) + ".");
    }
  }
  return factors;
}

void ParseLongRope(
  RotaryScaling& scaling, const Settings& settings, const TransformerConfig& config)
{
  const std::int64_t pairs = config.RotatedDimension() / 2;
  scaling.shortFactors = ParseFactors(settings, "short_factor", pairs);
  scaling.longFactors = ParseFactors(settings, "long_factor", pairs);
  if (scaling.originalPositions <= 1)
  {
    settings.Fail("expected 'original_max_position_embeddings' to be above 1, found " +
                  std::to_string(scaling.originalPositions) + ".");
  }
  const double ratio = settings.Number(
    { "factor" }, static_cast<double>(config.positions) / scaling.originalPositions);
  const double magnitude =
    ratio > 1 ? std::sqrt(1 + std::log(ratio) / std::log(scaling.originalPositions)) : 1;
  scaling.attentionFactor = settings.Number({ "attention_factor" }, magnitude);
}

/// `original` is the context length in training if the scaling does not have it.
RotaryScaling ParseScaling(
  const Settings& settings, const TransformerConfig& config, double original)
{
  RotaryScaling scaling;
  scaling.kind = settings.Choice({ "rope_type", "type" }, "default", ScalingNames);
  scaling.originalPositions = settings.Number({ "original_max_position_embeddings" }, original);
  scaling.factor = settings.Number({ "factor" }, 1);
  settings.Ignore({ "mrope_section", "mrope_interleaved" }); // of words all sections are the same
  if (scaling.kind != ScalingKind::None && scaling.kind != ScalingKind::LongRope &&
      !settings.Has({ "factor" }))
  {
    settings.Fail("'factor' is missing.");
  }
  switch (scaling.kind)
  {
    case ScalingKind::None:
    case ScalingKind::Linear:
      break;
    case ScalingKind::Llama3:
      ParseLlama3(scaling, settings);
      break;
    case ScalingKind::Yarn:
      ParseYarn(scaling, settings);
      break;
    case ScalingKind::LongRope:
      ParseLongRope(scaling, settings, config);
      break;
  }
  return scaling;
}

/// YaRN divides by the logarithm of the base.
void RequireTurning(const RotaryScaling& scaling, double base, const Settings& settings)
{
  if (scaling.kind == ScalingKind::Yarn && base <= 1)
  {
    settings.Fail("expected 'rope_theta' to be above 1, found " + std::to_string(base) + ".");
  }
}

/// The context length in training as a model's own setting, or that of its family, or all
/// positions.
double OriginalPositions(
  const TransformerConfig& config, const Settings& settings, const RotaryDefaults& defaults)
{
  return settings.Number({ "original_max_position_embeddings" },
    defaults.originalPositions > 0 ? defaults.originalPositions
                                   : static_cast<double>(config.positions));
}

}

double YarnMagnitude(double factor, double weight)
{
  return factor > 1 ? 0.1 * weight * std::log(factor) + 1 : 1;
}

void CheckRotatedPart(const TransformerConfig& config, const Settings& settings)
{
  const std::int64_t rotated = config.RotatedDimension();
  if (rotated % 2 != 0 || rotated > config.headDimension)
  {
    settings.Fail("expected a rotary embedding of an even number of components, of at most " +
                  std::to_string(config.headDimension) + " of a head, found " +
                  std::to_string(rotated) + ".");
  }
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
  RequireSame(settings, "rope_scaling", "rope_parameters");
  const std::optional<Settings> all = settings.Nested({ "rope_parameters", "rope_scaling" });
  const std::optional<Settings> sliding = all ? all->Nested({ "sliding_attention" }) : std::nullopt;
  const std::optional<Settings> full = all ? all->Nested({ "full_attention" }) : std::nullopt;
  const std::optional<Settings> nested = full || sliding ? full : all;
  if (nested)
  {
    config.rotaryBase = nested->Number({ "rope_theta" }, config.rotaryBase);
    part = nested->Number({ "partial_rotary_factor" }, part);
  }
  if (part > 1 || (part != 1 && !defaults.isPartial))
  {
    settings.Fail("expected a rotary embedding of " +
                  std::string(defaults.isPartial ? "a part" : "all components") +
                  " of a head, found the partial_rotary_factor " + std::to_string(part) + ".");
  }
  config.rotaryDimension =
    static_cast<std::int64_t>(static_cast<double>(config.headDimension) * part);
  if (config.rotaryDimension < 2)
  {
    settings.Fail("expected a rotary embedding of at least 2 components of a head, found " +
                  std::to_string(config.rotaryDimension) + " of " +
                  std::to_string(config.headDimension) + ".");
  }
  CheckRotatedPart(config, settings);
  const double original = OriginalPositions(config, settings, defaults);
  if (nested)
  {
    config.rotaryScaling = ParseScaling(*nested, config, original);
  }
  if (sliding)
  {
    config.windowRotaryBase = sliding->Number(
      { "rope_theta" }, config.windowRotaryBase > 0 ? config.windowRotaryBase : config.rotaryBase);
    config.windowRotaryScaling = ParseScaling(*sliding, config, original);
  }
  RequireTurning(config.rotaryScaling, config.rotaryBase, settings);
  RequireTurning(config.windowRotaryScaling, config.windowRotaryBase, settings);
}

}
