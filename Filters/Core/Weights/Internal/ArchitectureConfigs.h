#pragma once

// Internal to Core.

#include "JsonSettings.h"
#include "TransformerConfig.h"

namespace atlas
{

/// The model_type that settings without one have, by the names of their sizes: transformer_lens,
/// nanogpt or meta_llama; empty if it is none of these.
std::string ArchitectureBySettings(const Settings& settings);

/// Parses the settings of the model_type that they name. Throws ModelError, with the names of all
/// that are known, if it is another one; a model type that is known but not run is refused as what
/// it is.
TransformerConfig ParseArchitecture(const Settings& settings);

/// Parses the text of a model of pictures among words, whose settings are a part of `all`, or all.
/// Sizes that are missing are those of the original code of the model_type `name`.
TransformerConfig ParseTextPart(
  const Settings& all, const Settings& settings, const std::string& name);

}
