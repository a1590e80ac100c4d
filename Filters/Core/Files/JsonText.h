#pragma once

// Internal to Core: only its .cxx files include this header, as users of Core need no JSON library.

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace atlas
{

/// Parses JSON strictly: UTF-8, no comments, no name twice in one object. Throws FormatError, whose
/// message starts with `source` and calls the text `what`, such as "the safetensors header".
nlohmann::json ParseJson(
  std::string_view text, const std::string& source, const std::string& what = "the file");

/// A value, for a message: nested values by their type, as dump would recurse as deep as they do.
std::string Describe(const nlohmann::json& value);

}
