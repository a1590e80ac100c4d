#pragma once

// Internal to Core.

#include "Files/JsonSettings.h"
#include "Weights/TransformerConfig.h"

namespace atlas
{

/// What a family assumes about rotary embeddings where a file says nothing.
struct RotaryDefaults
{
  double base = 10000;
  bool isPartial = false;       ///< whether the family can rotate a part of each head
  double part = 1;              ///< of the head dimension
  double originalPositions = 0; ///< context length in training; 0: all positions
  double windowBase = 0;        ///< in layers with a window; 0: the same
  std::int64_t dimension = 0;   ///< components that a part is of; 0: the head dimension
  bool hasMagnitudes = false;   ///< files with a scaling have short_mscale and long_mscale
};

/// Parses the rotary embedding of a model whose head dimension and positions are known: base,
/// rotated part and scaling, under their older names or in rope_parameters, where layers with a
/// window may have their own. Throws ModelError.
void ParseRotation(
  TransformerConfig& config, const Settings& settings, const RotaryDefaults& defaults);

/// By how much YaRN enlarges queries and keys (Peng et al. 2023, equation 22), with a weight of its
/// own in DeepSeek-V2.
double YarnMagnitude(double factor, double weight);

/// Throws ModelError unless the rotated part of each head is even and not larger than the head.
void CheckRotatedPart(const TransformerConfig& config, const Settings& settings);

}
