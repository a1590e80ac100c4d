#pragma once

#include "TransformerConfig.h"

#include <initializer_list>
#include <string>
#include <vector>

namespace atlas
{

/// What sets an architecture apart from those of the first transformers, and what a computation on
/// weights may not know of.
enum class ArchitectureSwitch
{
  Encoder,             ///< an encoder beside the decoder, of its source or of pictures
  Parallel,            ///< attention and MLP in parallel
  NormsAfterToo,       ///< normalizations of what sublayers add
  NormsInside,         ///< normalizations of what the last matrices of sublayers read
  FirstUnnormed,       ///< no normalization before the first attention
  QueryKeyNorms,       ///< normalized queries and keys
  LayerScales,         ///< what sublayers add is scaled
  NormsWithoutWeights, ///< normalizations without gains
  GainOffset,          ///< gains stored less 1
  PartialRotation,     ///< of a part of each head
  NeighborRotation,    ///< of neighboring components
  RotationByLayer,     ///< another base in some layers, or none
  RotationFactor,      ///< scalings that enlarge queries and keys or depend on the length
  QueryGrowth,         ///< queries that are multiplied by what depends on their position
  SlopeVariant,        ///< ALiBi with other slopes
  ScoreCap,
  LogitScale,
  XieluActivation,
  LogitCap,
  Windows,
  Sinks,
  ProjectionClip, ///< limited queries, keys and values
  Experts,
  ValueNorms,      ///< normalized or rotated values
  LayerSides,      ///< inputs of layers, layers of different sizes, several residual streams, or a
                   ///< convolution
  LatentAttention, ///< keys and values, perhaps queries, that are linear in a normalized vector
  Mixers,          ///< layers without attention
  OutputGate,      ///< what heads write is multiplied by gates
  EmbeddingScale,
  EmbeddingProjection,
  ShiftedPositions, ///< positions that do not begin in row 0
  MoreImageTokens,  ///< more than one token before the patches
  PositionScores,   ///< biases of distances or patches, or vectors of distances, in scores
  PatchRotation,    ///< by row and column of a patch
  AddedPositions,   ///< vectors of positions beside another kind of positions
  SharedLayers,     ///< parameters that layers share
  LogitsTransform   ///< a layer before the unembedding of another dimension
};

/// All of them that a model has.
std::vector<ArchitectureSwitch> SwitchesOf(const TransformerConfig& config);

/// Throws ModelError, which begins with `what` is done and names the model and the first of the
/// `refused` switches that it has, if it has any.
void RefuseSwitches(const TransformerConfig& config, const std::string& what,
  std::initializer_list<ArchitectureSwitch> refused);

/// Likewise for all switches.
void RequireNoSwitches(const TransformerConfig& config, const std::string& what);

/// Whether a model has any of these switches.
bool HasSwitch(const TransformerConfig& config, std::initializer_list<ArchitectureSwitch> switches);

}
