#pragma once

#include <string>
#include <string_view>

namespace atlas
{

/// A token as a label, never empty: its leading spaces are middle dots (U+00B7), control characters
/// escape sequences, and an empty token is ''.
std::string TokenLabel(std::string_view token);

/// The text with each leading middle dot replaced by the space that it stands for in a label.
std::string WithLeadingSpaces(std::string_view text);

}
