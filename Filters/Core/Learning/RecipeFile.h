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

/// All settings, in the order in which they are written. The first one is the task.
const std::vector<RecipeSetting>& RecipeSettings();

/// Sets one of them, except the task, from text: a number, true or false, or a name. Throws
/// ModelError for an invalid value; the message begins with `source`.
void SetRecipe(LearningRecipe& recipe, const std::string& setting, const std::string& value,
  const std::string& source);

/// A recipe as a JSON object of all settings, in lines.
std::string ToJson(const LearningRecipe& recipe);

/// Parses a JSON object of settings. The task is required; other settings that are missing are
/// those of its DefaultRecipe. Throws FormatError if it is not a JSON object, and ModelError for an
/// unknown name or an invalid value; the message begins with `source`.
LearningRecipe ParseRecipe(std::string_view text, const std::string& source);

/// Reads a file. A relative path of its text is taken from the folder of the file if the text is
/// there, else from the working directory. Throws as ParseRecipe does, and FileError.
LearningRecipe ReadRecipe(const std::filesystem::path& path);

}
