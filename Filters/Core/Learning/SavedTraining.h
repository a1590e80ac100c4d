#pragma once

#include "LearningRecipe.h"
#include "Safetensors.h"

#include <cstdint>
#include <filesystem>

namespace atlas
{

/// The file in the folder of a trained model from which its training goes on.
inline constexpr const char* TrainingStateFile = "training-state.safetensors";

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
