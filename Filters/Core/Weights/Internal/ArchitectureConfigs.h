#pragma once

// Internal to Core.

#include "JsonSettings.h"
#include "TransformerConfig.h"

namespace atlas
{

/// Parses the settings of the model_type that they name. Throws ModelError, with the names of all
/// that are known, if it is another one; a model type that is known but not run is refused as what
/// it is.
TransformerConfig ParseArchitecture(const Settings& settings);

}
