#pragma once

// Internal to Core.

#include "ModulePattern.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace atlas
{

/// Modules by their names or the ends of these, or by an expression.
struct ModuleSet
{
  bool isGiven = false;
  std::vector<std::string> names;
  std::vector<ModulePattern> patterns;

  bool Has(const std::string& module) const;
};

/// Values of modules by expressions, of which the first that matches counts.
template<class Value>
using ModuleValues = std::vector<std::pair<ModulePattern, Value>>;

/// The settings of a LoRA adapter, as the library peft writes them to adapter_config.json and
/// understands them. Modules have the names of the model in transformers, such as
/// "model.layers.0.self_attn.q_proj".
struct AdapterConfig
{
  /// Throws FileError or FormatError. Throws ModelError for other kinds of adapters, and for a
  /// setting that changes numbers and is not known.
  explicit AdapterConfig(const std::filesystem::path& path);

  std::string source;
  std::string base;      ///< base_model_name_or_path; or empty
  std::int64_t rank = 0; ///< of modules without one in `ranks`
  double alpha = 0;      ///< likewise
  bool rootOfRank = false;
  bool isDora = false; ///< magnitude and direction are apart (DoRA)
  bool hasBias = false;
  bool keepsTies = false; ///< what is tied in the model stays so where the adapter changes it
  ModuleValues<std::int64_t> ranks;
  ModuleValues<double> alphas;
  ModuleSet targeted;
  ModuleSet excluded;
  std::vector<std::string> saved;
  std::vector<ModulePattern> savedPatterns;
  std::vector<std::int64_t> layers; ///< empty: all
  std::vector<ModulePattern> layerPatterns;
  std::map<std::string, std::vector<std::int64_t>> tokens; ///< by the end of the module's name

  /// The rank of a module, and the factor of its product of matrices.
  std::int64_t RankOf(const std::string& module) const;
  double ScalingOf(const std::string& module) const;

  /// Whether the settings name a module as one that the adapter changes.
  bool Targets(const std::string& module) const;

  /// Whether a module is stored as a whole.
  bool IsSaved(const std::string& module) const;

  /// The rows of an embedding that the adapter replaces. Throws ModelError for other modules.
  std::vector<std::int64_t> TokensOf(const std::string& module) const;
};

}
