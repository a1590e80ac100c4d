#pragma once

#include <string_view>

namespace atlas
{

/// Whether `key`, which is not empty, is one of these words with a space between them.
bool HasWord(std::string_view words, std::string_view key);

}
