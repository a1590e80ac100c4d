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

/// The settings of a LoRA adapter, as the library peft writes them to adapter_config.json and
/// understands them. Modules have the names of the model in transformers, such as
/// "model.layers.0.self_attn.q_proj".
class AdapterConfig
{
public:
  /// Throws FileError or FormatError. Throws ModelError for other kinds of adapters, and for a
  /// setting that changes numbers and is not known.
  explicit AdapterConfig(const std::filesystem::path& path);

  [[noreturn]] void Fail(const std::string& message) const;

  /// base_model_name_or_path; or empty.
  const std::string& GetBase() const { return this->Base; }

  /// The rank of a module, and the factor of its product of matrices: those of the first pattern
  /// that matches, or of all others.
  std::int64_t RankOf(const std::string& module) const;
  double ScalingOf(const std::string& module) const;

  /// Whether the settings name a module as one that the adapter changes.
  bool Targets(const std::string& module) const;

  /// Whether a module is stored as a whole.
  bool IsSaved(const std::string& module) const;

  /// Magnitude and direction are apart (DoRA).
  bool IsDora() const { return this->Dora; }

  bool HasBias() const { return this->LoraBias; }

  /// Whether what is tied in the model stays so where the adapter changes it.
  bool KeepsTies() const { return this->Ties; }

  /// The rows of an embedding that the adapter replaces. Throws ModelError for other modules.
  std::vector<std::int64_t> TokensOf(const std::string& module) const;

private:
  /// Modules by their names or the ends of these, or by an expression.
  struct ModuleSet
  {
    bool isGiven = false;
    std::vector<std::string> names;
    std::vector<ModulePattern> patterns;

    bool Has(const std::string& module) const;
  };
  template<class Value>
  using Patterns = std::vector<std::pair<ModulePattern, Value>>;

  std::string Source;
  std::string Base;
  std::int64_t Rank = 0;
  double Alpha = 0;
  Patterns<std::int64_t> Ranks;
  Patterns<double> Alphas;
  bool RootOfRank = false;
  bool Dora = false;
  bool LoraBias = false;
  bool Ties = false;
  ModuleSet Targeted;
  ModuleSet Excluded;
  std::vector<std::string> Saved;
  std::vector<ModulePattern> SavedPatterns;
  std::vector<std::int64_t> Layers; ///< empty: all
  std::vector<ModulePattern> LayerPatterns;
  std::map<std::string, std::vector<std::int64_t>> Tokens; ///< by the end of the module's name

  class Reader;
};

}
