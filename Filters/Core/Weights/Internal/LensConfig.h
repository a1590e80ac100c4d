#pragma once

// Internal to Core.

#include "JsonSettings.h"
#include "TransformerConfig.h"

namespace atlas
{

/// The configuration of a model with the setting names of TransformerLens
/// (HookedTransformerConfig). Throws ModelError.
TransformerConfig ParseTransformerLens(const Settings& settings);

}
