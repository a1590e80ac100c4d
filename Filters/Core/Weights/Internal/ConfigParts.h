#pragma once

// Internal to Core: what parsers of architectures share.

#include "Files/JsonSettings.h"
#include "Weights/TransformerConfig.h"

#include <functional>

namespace atlas
{

/// Sets d_head = d_model / H, and the divisor of scores to its square root.
void SplitHeads(TransformerConfig& config, const Settings& settings);

/// A model with the sizes of these settings, whose heads are split. The width of the MLP is 4
/// d_model unless it is there, or has no keys.
TransformerConfig ParseSizes(const Settings& settings, const Settings::Keys& layers,
  const Settings::Keys& heads, const Settings::Keys& modelDimension,
  const Settings::Keys& mlpDimension = {});

/// The settings of the part of a model that is run alone, or `all` if they are not in a part. Those
/// beside it are not read.
Settings PartOf(const Settings& all, const char* part);

/// Throws ModelError if two objects of settings are both there, and one of `part` is not the same
/// in `whole`.
void RequireSame(const Settings& settings, const char* part, const char* whole);

/// Throws ModelError if a model with settings by layer has too many layers.
void RequireFewLayers(const TransformerConfig& config, const Settings& settings);

/// The extents of images and patches, and the number of tokens that follow from them.
void ParseImages(TransformerConfig& config, const Settings& settings, std::int64_t patch,
  std::int64_t image = 224);

/// Lets the positions of square images be interpolated where images of another size are read.
void AllowOtherSizes(TransformerConfig& config);

/// The width of an MLP that is mlp_ratio times d_model, by default 4 times.
std::int64_t ScaledWidth(const TransformerConfig& config, const Settings& settings);

/// The windows of the layers that layer_types calls sliding or, without it, of those for which
/// `slides` is true; without `slides` of all, and layer_types must not say otherwise. Without
/// sliding_window there are `otherwise`, 0: none.
void ParseWindows(TransformerConfig& config, const Settings& settings, std::int64_t otherwise,
  const std::function<bool(std::int64_t)>& slides = {});

}
