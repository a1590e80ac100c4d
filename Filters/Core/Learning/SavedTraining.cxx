#include "SavedTraining.h"

#include "Base/Error.h"
#include "RecipeFile.h"

namespace atlas
{
namespace
{

LearningRecipe ReadRecipeToContinue(const std::filesystem::path& path)
{
  LearningRecipe recipe = ReadRecipe(path);
  ThrowIf<ModelError>(recipe.task.kind == TaskKind::TokenPairs, path.string(),
    ": expected the task of a transformer to continue, found TokenPairs, which starts from a file "
    "by model and keep_weights.");
  return recipe;
}

}

bool AreOfOneTraining(const std::string& first, const std::string& second)
{
  LearningRecipe one = ParseRecipe(first, RecipeFile);
  const LearningRecipe other = ParseRecipe(second, RecipeFile);
  one.steps = other.steps;
  return ToJson(one) == ToJson(other);
}

SavedTraining::SavedTraining(const std::filesystem::path& folder)
  : recipe(ReadRecipeToContinue(folder / RecipeFile))
  , state(folder / TrainingStateFile)
{
  const TensorViews& tensors = this->state.GetTensors();
  const auto found = tensors.find("step");
  const double steps =
    found != tensors.end() && found->second.Count() == 1 ? found->second.At(0) : -1;
  ThrowIf<ModelError>(!(steps >= 0 && steps < 1e15), (folder / TrainingStateFile).string(),
    ": expected the state of a training with its 'step', found none.");
  this->step = static_cast<std::int64_t>(steps);
}

void SavedTraining::RequireMoreSteps(const LearningRecipe& continued) const
{
  ThrowIf<OptionError>(continued.steps <= this->step, "Steps: expected more than the ", this->step,
    " that are done, found ", continued.steps, ".");
}

}
