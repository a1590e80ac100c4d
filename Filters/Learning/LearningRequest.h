#pragma once

#include "Learning/LearningRun.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace AttentionAtlas
{

/// Reports the fraction done and the loss. Returns false to stop.
using LearningReport = std::function<bool(double, double)>;

/// A training that the properties of vtkTransformerTraining ask for.
struct LearningRequest
{
  atlas::LearningRecipe recipe;
  std::int64_t checkpointEvery = 0;
  std::int64_t measureEvery = 0;
  std::filesystem::path continueFrom; ///< a folder with recipe.json, or empty

  /// A text that is the same for the same training: all settings, and the times of the files.
  std::string Key() const;

  /// The steps at which checkpoints are planned. Throws atlas::OptionError if there are too many,
  /// and as atlas::SavedTraining does.
  std::vector<std::int64_t> CheckpointSteps() const;

  /// The configuration of the model. Throws as atlas::MakeConfig and atlas::MakeTask do.
  atlas::TransformerConfig Config() const;

  /// Trains. Throws as atlas::Learn does, and std::runtime_error if there is not enough memory.
  atlas::LearningResult Train(const LearningReport& report) const;
};

}
