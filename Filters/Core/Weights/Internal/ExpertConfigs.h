#pragma once

// Internal to Core.

#include "JsonSettings.h"
#include "TransformerConfig.h"

namespace atlas
{

/// The configurations of decoders with experts. Throw ModelError.
TransformerConfig ParseDeepSeekV2(const Settings& settings);
TransformerConfig ParseGptOss(const Settings& settings);
TransformerConfig ParseMixtral(const Settings& settings);
TransformerConfig ParseOlmoe(const Settings& settings);
TransformerConfig ParseQwen2Moe(const Settings& settings);
TransformerConfig ParseQwen3Moe(const Settings& settings);

}
