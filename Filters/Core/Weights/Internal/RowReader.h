#pragma once

// Internal to Core.

#include "Files/JsonSettings.h"
#include "Weights/TransformerConfig.h"

#include <string>

namespace atlas
{

/// Whether rows of architectures have this word; see ArchitectureRows.
bool IsRowWord(const std::string& word);

/// The words of rows that are no fields, separated by ", ".
std::string KnownRowWords();

/// Reads the settings of a file by a row, with all that it inherits. Throws ModelError.
TransformerConfig ReadByRow(const nlohmann::json& row, const Settings& settings);

}
