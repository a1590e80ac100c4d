#pragma once

// Internal to Core: what parsers of architectures share.

#include "JsonSettings.h"
#include "RotaryConfig.h"
#include "TransformerConfig.h"

#include <functional>

namespace atlas
{

/// What a family of decoders assumes where a file leaves a setting out. A size of 0 must be there.
struct DecoderDefaults
{
  std::int64_t positions = 2048;
  double epsilon = 1e-6;
  bool isTied = false;
  std::int64_t headDimension = 0; ///< 0: d_model / H
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t keyHeads = 0; ///< 0: those of queries
  std::int64_t modelDimension = 0;
  std::int64_t mlpDimension = 0;
  std::int64_t vocabulary = 0;
  RotaryDefaults rotary = {};
};

/// A size that must be there unless there is a default.
std::int64_t SizeOr(const Settings& settings, Settings::Keys keys, std::int64_t otherwise);

/// Sets d_head = d_model / H, and the divisor of scores to its square root.
void SplitHeads(TransformerConfig& config, const Settings& settings);

/// Throws ModelError if a model with settings by layer has too many layers.
void RequireFewLayers(const TransformerConfig& config, const Settings& settings);

/// The settings that decoders with rotary embeddings share: as llama, but for what a family
/// changes.
TransformerConfig ParseDecoder(const Settings& settings, const DecoderDefaults& defaults = {});

/// The extents of images and patches, and the number of tokens that follow from them.
void ParseImages(TransformerConfig& config, const Settings& settings, std::int64_t patch,
  std::int64_t image = 224);

/// The width of an MLP that is mlp_ratio times d_model, by default 4 times.
std::int64_t ScaledWidth(const TransformerConfig& config, const Settings& settings);

void ParseActivation(TransformerConfig& config, const Settings& settings, const char* otherwise);

/// The windows of the layers that layer_types calls sliding or, without it, of those for which
/// `slides` is true. Without sliding_window there are `otherwise`, 0: none.
void ParseWindows(TransformerConfig& config, const Settings& settings, std::int64_t otherwise,
  const std::function<bool(std::int64_t)>& slides);

}
