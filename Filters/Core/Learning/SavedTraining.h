#pragma once

#include "Files/Safetensors.h"
#include "LearningRecipe.h"

#include <cstdint>
#include <filesystem>
#include <string>

namespace atlas
{

/// The file in the folder of a trained model from which its training goes on.
inline constexpr const char* TrainingStateFile = "training-state.safetensors";

/// Whether two recipes, as JSON, are of one training, which is continued by the longer one: they
/// differ in nothing but the number of steps. Throws as ParseRecipe does.
bool AreOfOneTraining(const std::string& first, const std::string& second);

/// A training that can go on: what recipe.json and training-state.safetensors of a folder hold.
struct SavedTraining
{
  LearningRecipe recipe;
  SafetensorsFile state; ///< TransformerTrainer::State
  std::int64_t step = 0; ///< steps done

  /// Throws FileError, FormatError or ModelError.
  explicit SavedTraining(const std::filesystem::path& folder);

  /// Throws OptionError unless a recipe has more steps than are done.
  void RequireMoreSteps(const LearningRecipe& continued) const;
};

}
