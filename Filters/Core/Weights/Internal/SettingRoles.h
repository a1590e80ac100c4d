#pragma once

// Internal to Core: what becomes of settings that no parser reads.

#include "Base/Words.h"
#include "Files/JsonSettings.h"

#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// What a setting does in the models that have it.
enum class SettingRole
{
  Unknown,
  ChangesNothing, ///< of training, generation, file formats or heads; or the tensors show the same
  ChangesNumbers
};

SettingRole RoleOf(std::string_view key);

/// Decides on the settings that were not read. Throws ModelError if one changes numbers where
/// models have it, unless its value is the one that changes nothing. Returns the names of those
/// that are not known, with their places, unless they are
/// off. `model` is the architecture, for messages.
std::vector<std::string> DecideUnread(const Settings& settings, const std::string& model);

}
