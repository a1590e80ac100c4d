#pragma once

// Internal to Core: what rows of architectures cannot say by an expression.

#include "Files/JsonSettings.h"
#include "Weights/TransformerConfig.h"

#include <string>

namespace atlas
{

/// Applies the rule of this name to a configuration whose other fields are known. Throws
/// ModelError, also if there is no such rule.
void ApplyRule(const std::string& name, TransformerConfig& config, const Settings& settings);

}
