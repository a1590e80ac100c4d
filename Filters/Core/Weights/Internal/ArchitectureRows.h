#pragma once

// Internal to Core.

#include "Files/JsonSettings.h"
#include "Weights/TransformerConfig.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// What is known of architectures as data: the files of Weights/Architectures, which are compiled
/// into Core, and the rows of users. Each is an object of rows by model_type. A row is an object:
///
///   "like": "NAME"          what this row does not say is as in that row
///   "FIELD": VALUE          a field of TransformerConfig by its name; null: as in
///   TransformerConfig "let": {"NAME": VALUE}  names for expressions "part": "KEY"           the
///   settings are this part of the file, if it has the part "ignore": "KEYS"        settings that
///   files have and the original code does not use "refuse": "KEYS"        settings that must be
///   off "require": {"KEY": X}   settings that must be X where they are there "need": "KEYS"
///   settings of which one must be there "rotation": {...}       of a rotary embedding, see
///   RotaryDefaults: base, part (of the head
///                           dimension, or of `dimension`), partial (whether it may be a part),
///                           originalPositions, windowBase, magnitudes; with "if": VALUE only
///                           where this is true
///   "windows": {...}        the sliding window of layers: else, "if": VALUE and
///                           "slides": EXPRESSION of the layer l, see ParseWindows
///   "rules": "NAMES"        functions of ArchitectureRules
///   "gguf": {...}           how GGUF files have it, see RowGguf; no other row inherits it
///   "tensors": {...}        names by role, see TensorNames; "like" names another row. A row whose
///                           name ends with a variant behind a slash has these alone
///
/// A VALUE is a number, true, false, the name of an enumerator, an expression (RowExpression.h) of
/// fields and names of "let", or an object, {"if": EXPRESSION, "then": VALUE, "else": VALUE} or
///
///   "from": "KEYS"          a setting of the file, by the first of these keys that it has
///   "else": VALUE           without it; without "else" it must be there
///   "null": VALUE           if it is null
///   "to": "EXPRESSION"      of the number x that was read
///   "names": {"TEXT": VALUE} by a text, true or false that was read
///   "least": NUMBER         the smallest that it may be; by default that of the field
///
/// Fields of lists have a value for each layer: an expression of l, the layer, and `slides`, which
/// is 1 if the layer has a window and 0 if not; or a list in the file, of numbers, true and false,
/// or texts with "names". A list without items is none. A key "part.key" is that of
/// a nested object.

struct RowName
{
  std::string name;
};

/// The names of the rows that describe a whole model, in alphabetical order.
const std::vector<RowName>& ModelRows();

/// Whether there is a row of this name, and whether it describes a whole model.
bool HasRow(const std::string& name);
bool IsModelRow(const std::string& name);

/// Parses the settings of a file by the row of this name. Throws ModelError.
TransformerConfig ParseByRow(const Settings& settings, const std::string& name);

/// Likewise by a row that the file holds, or that is beside it. Throws ModelError, also if the row
/// has words that no row has.
TransformerConfig ParseByOwnRow(const Settings& settings, const nlohmann::json& row);

/// The name of the setting, and of a file NAME.json beside the weights, that hold such a row.
inline constexpr const char* OwnRow = "atlas_architecture";

/// Names of tensors of a row as it stands in its file.
struct RowTensors
{
  std::string name;
  std::string like;  ///< the row whose names hold where this one says nothing; empty: none
  std::string words; ///< ROLE=NAME, with spaces between them
};

/// Those of all rows, such that `like` comes before.
std::vector<RowTensors> AllRowTensors();

/// A setting of config.json that is made of a GGUF file: a metadata by its key behind the name of
/// the architecture; or what is said if a tensor of the first layer is there, and else; or the rows
/// of a tensor; or a constant.
struct GgufSetting
{
  std::string name; ///< PART.NAME: of a nested object
  std::string key;
  std::string tensor;
  std::string rows;
  nlohmann::json value = true; ///< a constant, or if the tensor is there
  nlohmann::json otherwise = false;
};

/// How GGUF files of llama.cpp have a model. In a row it is the name, or an object, or a list:
///
///   "name": "NAME"          general.architecture
///   "if": "KEY"             only files that have this metadata, other than 0
///   "interleaved": true     rows of queries and keys are interleaved to rotate neighbors
///   "settings": {...}       by their names in config.json: "KEY", {"value": X}, {"rows": "NAME"}
///                           or {"tensor": "NAME", "then": X, "else": Y} of the first layer
///   "tensors": {...}        names by role that differ from those of the row "gguf"
struct RowGguf
{
  std::string row;  ///< what Hugging Face calls it
  std::string name; ///< empty: of a variant, which has tensors alone
  std::string condition;
  bool interleaved = false;
  std::vector<GgufSetting> settings;
  std::string words; ///< of tensors, as in RowTensors

  /// Whether a setting is that metadata.
  bool Has(std::string_view key) const
  {
    return std::any_of(settings.begin(), settings.end(),
      [key](const GgufSetting& setting) { return setting.key == key; });
  }
};

/// Those of all rows, in the order of their names.
const std::vector<RowGguf>& AllRowGguf();

}
