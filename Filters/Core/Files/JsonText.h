#pragma once

// Internal to Core: included by .cxx files only, so users of Core need no JSON library.

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace atlas
{

/// Parses JSON strictly: UTF-8, no comments, no duplicate keys. Throws FormatError; the message
/// starts with `source` and describes the text as `what`, for example "the safetensors header".
nlohmann::json ParseJson(
  std::string_view text, const std::string& source, const std::string& what = "the file");

/// The same for text that must hold an object.
nlohmann::json ParseJsonObject(
  std::string_view text, const std::string& source, const std::string& what = "the file");

/// Text that Python's json wrote, in which numbers that are not finite (Infinity, -Infinity and NaN
/// outside of strings) are objects, {"__float__": "Infinity"}, as release 5 of transformers writes
/// them.
std::string WithTaggedNumbers(std::string_view text);

/// Describes a value in a message. Arrays and objects are given by type only, as printing them
/// recurses to their depth.
std::string Describe(const nlohmann::json& value);

}
