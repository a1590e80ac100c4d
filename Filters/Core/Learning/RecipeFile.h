#pragma once

#include "LearningRecipe.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace atlas
{

/// The file in the folder of a trained model that holds its recipe.
inline constexpr const char* RecipeFile = "recipe.json";

/// A setting of a recipe: its name in files and, with - for _, as an option of programs.
struct RecipeSetting
{
  std::string name;
  std::string description; ///< for the help of programs; empty for `task`
};

/// The settings of all tasks, in the order in which they are written. The first one is the task.
const std::vector<RecipeSetting>& RecipeSettings();

/// Sets one of the recipe's task, except the task, from text: a number, true or false, or a name.
/// Throws ModelError for a setting that the task does not have or an invalid value; the message
/// begins with `source`.
void SetRecipe(LearningRecipe& recipe, const std::string& setting, const std::string& value,
  const std::string& source);

/// A recipe as a JSON object of all settings of its task, in lines.
std::string ToJson(const LearningRecipe& recipe);

/// Parses a JSON object of settings. The task is required; other settings that are missing are
/// those of its DefaultRecipe. Throws FormatError if it is not a JSON object, and ModelError for an
/// unknown name or an invalid value; the message begins with `source`.
LearningRecipe ParseRecipe(std::string_view text, const std::string& source);

/// Reads a file. Relative paths are taken from the folder of the file if they are
/// there, else from the working directory. Throws as ParseRecipe does, and FileError.
LearningRecipe ReadRecipe(const std::filesystem::path& path);

}
