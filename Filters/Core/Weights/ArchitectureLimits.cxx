#include "ArchitectureLimits.h"

#include "Base/Error.h"
#include "Base/NamedValues.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace atlas
{
namespace
{

bool Enlarges(const RotaryScaling& scaling)
{
  const bool dependsOnLength =
    scaling.kind == RotaryScaling::Kind::LongRope && scaling.shortFactors != scaling.longFactors;
  return scaling.attentionFactor != 1 || scaling.longAttentionFactor > 0 || dependsOnLength;
}

/// The switches that a model has, in words: "expected a model without ...".
std::vector<Named<ArchitectureSwitch>> NamedSwitchesOf(const TransformerConfig& config)
{
  using Switch = ArchitectureSwitch;
  const bool rotates = config.position == PositionKind::Rotary;
  const bool hasWindows = std::any_of(
    config.windows.begin(), config.windows.end(), [](std::int64_t window) { return window > 0; });
  const std::vector<std::pair<bool, Named<Switch>>> all = {
    { config.encoder != nullptr || config.vision != nullptr,
      { "an encoder beside its decoder", Switch::Encoder } },
    { config.order != SublayerOrder::Sequential,
      { "attention and MLP in parallel", Switch::Parallel } },
    { config.normPlace == NormPlace::BeforeAndAfter,
      { "normalizations both before and after attention and MLP", Switch::NormsAfterToo } },
    { config.normPlace == NormPlace::AfterOutput,
      { "normalizations of what attention and MLP add", Switch::NormsAfterToo } },
    { config.normsInside, { "normalizations inside attention and MLP", Switch::NormsInside } },
    { !config.firstAttentionIsNormed,
      { "a first attention without a normalization before it", Switch::FirstUnnormed } },
    { config.queryKeyNorm != QueryKeyNorm::None,
      { "normalizations of queries and keys", Switch::QueryKeyNorms } },
    { config.layerScales || config.residualScale != 1,
      { "scales of what a layer adds", Switch::LayerScales } },
    { !config.normsHaveWeights,
      { "normalizations that have no gains", Switch::NormsWithoutWeights } },
    { config.gainOffset != 0, { "gains that are stored less 1", Switch::GainOffset } },
    { rotates && config.RotatedDimension() != config.headDimension,
      { "a rotary embedding of a part of each head", Switch::PartialRotation } },
    { rotates && config.rotatesNeighbors,
      { "a rotary embedding of neighboring components", Switch::NeighborRotation } },
    { rotates && (config.windowRotaryBase > 0 || !config.rotatedLayers.empty() ||
                   !config.rotaryBases.empty()),
      { "a rotary embedding that depends on the layer", Switch::RotationByLayer } },
    { rotates && (Enlarges(config.rotaryScaling) || Enlarges(config.windowRotaryScaling)),
      { "a rotary embedding that enlarges queries and keys or depends on the length of the text",
        Switch::RotationFactor } },
    { config.queryGrowth > 0, { "queries that grow with their position", Switch::QueryGrowth } },
    { config.slopeScale != 1 || config.slopeExponent != 8,
      { "other slopes of ALiBi", Switch::SlopeVariant } },
    { config.scoreCap > 0, { "capped scores", Switch::ScoreCap } },
    { config.logitScale != 1, { "scaled logits", Switch::LogitScale } },
    { config.activation == Activation::Xielu,
      { "an activation with parameters", Switch::XieluActivation } },
    { config.logitCap > 0, { "capped logits", Switch::LogitCap } },
    { hasWindows, { "sliding windows of attention", Switch::Windows } },
    { std::any_of(
        config.chunks.begin(), config.chunks.end(), [](std::int64_t chunk) { return chunk > 0; }),
      { "chunks of attention", Switch::Windows } },
    { config.sinks, { "attention sinks", Switch::Sinks } },
    { config.projectionClip > 0, { "limits of queries, keys and values", Switch::ProjectionClip } },
    { config.experts > 0, { "experts", Switch::Experts } },
    { config.normsValues, { "normalized values", Switch::ValueNorms } },
    { config.rotatesValues, { "rotated values", Switch::ValueNorms } },
    { config.HasLayerSides() || config.HasLayerSizes() || config.sharedKeyLayers > 0,
      { "layers of different sizes, with inputs or keys of other layers, or several residual "
        "streams",
        Switch::LayerSides } },
    { config.vision != nullptr && !config.vision->deepLayers.empty(),
      { "features of pictures that are added between its layers", Switch::LayerSides } },
    { config.convolution > 0, { "a convolution behind its first layer", Switch::LayerSides } },
    { config.keyLatent > 0, { "latent attention", Switch::LatentAttention } },
    { !config.mixers.empty(), { "layers that have no attention", Switch::Mixers } },
    { config.gatesAttention, { "gates of what heads write", Switch::OutputGate } },
    { config.embeddingScale != 1 || config.maskToken >= 0,
      { "scaled embeddings", Switch::EmbeddingScale } },
    { config.embeddingDimension > 0, { "projected embeddings", Switch::EmbeddingProjection } },
    { config.firstPosition > 0,
      { "positions that begin after the first row of their embedding", Switch::ShiftedPositions } },
    { config.input == InputKind::Images && config.TokensBeforePatches() != 1,
      { "several tokens before the patches", Switch::MoreImageTokens } },
    { config.position == PositionKind::Relative ||
        config.position == PositionKind::RelativeOfPatches ||
        config.position == PositionKind::Disentangled,
      { "scores that depend on distances", Switch::PositionScores } },
    { config.position == PositionKind::RotaryOfPatches,
      { "a rotary embedding of rows and columns", Switch::PatchRotation } },
    { config.addsPositions || config.tasks > 0,
      { "vectors of positions or tasks beside others", Switch::AddedPositions } },
    { config.layerGroups > 0, { "parameters that layers share", Switch::SharedLayers } },
    { config.transformDimension > 0,
      { "a layer of another dimension before the unembedding", Switch::LogitsTransform } },
  };
  std::vector<Named<Switch>> found;
  for (const auto& [has, named] : all)
  {
    if (has)
    {
      found.push_back(named);
    }
  }
  return found;
}

[[noreturn]] void Refuse(
  const TransformerConfig& config, const std::string& what, std::string_view name)
{
  throw ModelError(what, ": expected a model without ", name, ", found ", config.architecture, ".");
}

}

std::vector<ArchitectureSwitch> SwitchesOf(const TransformerConfig& config)
{
  std::vector<ArchitectureSwitch> found;
  for (const auto& one : NamedSwitchesOf(config))
  {
    found.push_back(one.value);
  }
  return found;
}

void RefuseSwitches(const TransformerConfig& config, const std::string& what,
  std::initializer_list<ArchitectureSwitch> refused)
{
  for (const auto& [name, one] : NamedSwitchesOf(config))
  {
    if (std::find(refused.begin(), refused.end(), one) != refused.end())
    {
      Refuse(config, what, name);
    }
  }
}

bool HasSwitch(const TransformerConfig& config, std::initializer_list<ArchitectureSwitch> switches)
{
  const std::vector<ArchitectureSwitch> found = SwitchesOf(config);
  return std::find_first_of(found.begin(), found.end(), switches.begin(), switches.end()) !=
         found.end();
}

void RequireNoSwitches(const TransformerConfig& config, const std::string& what)
{
  for (const auto& one : NamedSwitchesOf(config))
  {
    Refuse(config, what, one.name);
  }
}

}
