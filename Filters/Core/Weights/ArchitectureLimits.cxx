#include "ArchitectureLimits.h"

#include "Error.h"

#include <algorithm>
#include <string_view>

namespace atlas
{
namespace
{

/// The switch in words: "expected a model without ...".
std::string_view NameOf(ArchitectureSwitch one)
{
  switch (one)
  {
    case ArchitectureSwitch::Encoder:
      return "an encoder beside its decoder";
    case ArchitectureSwitch::Parallel:
      return "attention and MLP in parallel";
    case ArchitectureSwitch::NormsAfterToo:
      return "normalizations both before and after attention and MLP";
    case ArchitectureSwitch::QueryKeyNorms:
      return "normalizations of queries and keys";
    case ArchitectureSwitch::LayerScales:
      return "scales of what a layer adds";
    case ArchitectureSwitch::NormsWithoutWeights:
      return "normalizations that have no gains";
    case ArchitectureSwitch::GainOffset:
      return "gains that are stored less 1";
    case ArchitectureSwitch::PartialRotation:
      return "a rotary embedding of a part of each head";
    case ArchitectureSwitch::NeighborRotation:
      return "a rotary embedding of neighboring components";
    case ArchitectureSwitch::RotationByLayer:
      return "a rotary embedding that depends on the layer";
    case ArchitectureSwitch::RotationFactor:
      return "a rotary embedding that enlarges queries and keys or depends on the length of the "
             "text";
    case ArchitectureSwitch::ScoreCap:
      return "capped scores";
    case ArchitectureSwitch::LogitCap:
      return "capped logits";
    case ArchitectureSwitch::Windows:
      return "sliding windows of attention";
    case ArchitectureSwitch::Sinks:
      return "attention sinks";
    case ArchitectureSwitch::ProjectionClip:
      return "limits of queries, keys and values";
    case ArchitectureSwitch::Experts:
      return "experts";
    case ArchitectureSwitch::LatentAttention:
      return "latent attention";
    case ArchitectureSwitch::EmbeddingScale:
      return "scaled embeddings";
    case ArchitectureSwitch::EmbeddingProjection:
      return "projected embeddings";
    case ArchitectureSwitch::ShiftedPositions:
      return "positions that begin after the first row of their embedding";
    case ArchitectureSwitch::MoreImageTokens:
      return "several tokens before the patches";
  }
  return "an unknown switch";
}

bool Enlarges(const RotaryScaling& scaling)
{
  const bool dependsOnLength =
    scaling.kind == RotaryScaling::Kind::LongRope && scaling.shortFactors != scaling.longFactors;
  return scaling.attentionFactor != 1 || dependsOnLength;
}

}

std::vector<ArchitectureSwitch> SwitchesOf(const TransformerConfig& config)
{
  using Switch = ArchitectureSwitch;
  std::vector<Switch> found;
  const auto add = [&](bool has, Switch one)
  {
    if (has)
    {
      found.push_back(one);
    }
  };
  const bool rotates = config.position == PositionKind::Rotary;
  add(config.encoder != nullptr || config.vision != nullptr, Switch::Encoder);
  add(config.order != SublayerOrder::Sequential, Switch::Parallel);
  add(config.normPlace == NormPlace::BeforeAndAfter, Switch::NormsAfterToo);
  add(config.queryKeyNorm != QueryKeyNorm::None, Switch::QueryKeyNorms);
  add(config.layerScales, Switch::LayerScales);
  add(!config.normsHaveWeights, Switch::NormsWithoutWeights);
  add(config.gainOffset != 0, Switch::GainOffset);
  add(rotates && config.RotatedDimension() != config.headDimension, Switch::PartialRotation);
  add(rotates && config.rotatesNeighbors, Switch::NeighborRotation);
  add(rotates && config.windowRotaryBase > 0, Switch::RotationByLayer);
  add(rotates && (Enlarges(config.rotaryScaling) || Enlarges(config.windowRotaryScaling)),
    Switch::RotationFactor);
  add(config.scoreCap > 0, Switch::ScoreCap);
  add(config.logitCap > 0, Switch::LogitCap);
  add(std::any_of(config.windows.begin(), config.windows.end(),
        [](std::int64_t window) { return window > 0; }),
    Switch::Windows);
  add(config.sinks, Switch::Sinks);
  add(config.projectionClip > 0, Switch::ProjectionClip);
  add(config.experts > 0, Switch::Experts);
  add(config.keyLatent > 0, Switch::LatentAttention);
  add(config.embeddingScale != 1, Switch::EmbeddingScale);
  add(config.embeddingDimension > 0, Switch::EmbeddingProjection);
  add(config.firstPosition > 0, Switch::ShiftedPositions);
  add(config.input == InputKind::Images && config.TokensBeforePatches() != 1,
    Switch::MoreImageTokens);
  return found;
}

void RefuseSwitches(const TransformerConfig& config, const std::string& what,
  std::initializer_list<ArchitectureSwitch> refused)
{
  for (const ArchitectureSwitch one : SwitchesOf(config))
  {
    if (std::find(refused.begin(), refused.end(), one) != refused.end())
    {
      throw ModelError(what + ": expected a model without " + std::string(NameOf(one)) +
                       ", found " + config.architecture + ".");
    }
  }
}

bool HasSwitch(const TransformerConfig& config, std::initializer_list<ArchitectureSwitch> switches)
{
  const std::vector<ArchitectureSwitch> found = SwitchesOf(config);
  return std::any_of(found.begin(), found.end(), [&](ArchitectureSwitch one)
    { return std::find(switches.begin(), switches.end(), one) != switches.end(); });
}

void RequireNoSwitches(const TransformerConfig& config, const std::string& what)
{
  for (const ArchitectureSwitch one : SwitchesOf(config))
  {
    RefuseSwitches(config, what, { one });
  }
}

}
