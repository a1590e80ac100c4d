#include "LearningTask.h"

#include "Base/Error.h"
#include "Base/NamedValues.h"
#include "Internal/ColorPictureDrawing.h"
#include "Internal/Tasks.h"
#include "LearningRecipe.h"

#include <algorithm>
#include <array>

namespace atlas
{
namespace
{

/// A task, and how it is made where it is one of a transformer.
struct NamedTask
{
  std::string_view name;
  TaskKind value;
  std::unique_ptr<LearningTask> (*make)(const TaskOptions&);
};
constexpr std::array<NamedTask, 9> Tasks = { {
  { "RepeatedTokens", TaskKind::RepeatedTokens, MakeRepeatedTokensTask },
  { "Text", TaskKind::Text, MakeTextTask },
  { "StatisticalInduction", TaskKind::StatisticalInduction, MakeStatisticalInductionTask },
  { "ModularAddition", TaskKind::ModularAddition, MakeModularAdditionTask },
  { "BeliefStates", TaskKind::BeliefStates, MakeBeliefStatesTask },
  { "ColorPatches", TaskKind::ColorPatches, MakeColorPatchesTask },
  { "MaskedText", TaskKind::MaskedText, MakeMaskedTextTask },
  { "LatticeProtein", TaskKind::LatticeProtein, MakeLatticeProteinTask },
  { "TokenPairs", TaskKind::TokenPairs, nullptr },
} };

/// The options with the sizes of the task for those that are 0.
TaskOptions Completed(TaskOptions options)
{
  const TaskOptions usual = DefaultRecipe(options.kind).task;
  options.vocabulary = options.vocabulary != 0 ? options.vocabulary : usual.vocabulary;
  options.context = options.context != 0 ? options.context : usual.context;
  options.trainShare = options.trainShare != 0 ? options.trainShare : usual.trainShare;
  return options;
}

}

std::unique_ptr<LearningTask> MakeTask(const TaskOptions& options)
{
  for (const NamedTask& task : Tasks)
  {
    if (task.value == options.kind && task.make != nullptr)
    {
      return task.make(Completed(options));
    }
  }
  throw OptionError("Task: expected one of a transformer, found TokenPairs.");
}

std::vector<std::string> LabelsOf(const TaskOptions& task)
{
  return task.kind == TaskKind::ColorPatches ? ColorPictureNames() : std::vector<std::string>();
}

std::vector<std::string> TaskNames()
{
  std::vector<std::string> names;
  names.reserve(std::size(Tasks));
  for (const NamedTask& task : Tasks)
  {
    names.emplace_back(task.name);
  }
  return names;
}

std::string NameOf(TaskKind kind)
{
  return NameOf(Tasks, kind);
}

TaskKind TaskNumbered(int number)
{
  const auto isKind = [number](const auto& task) { return static_cast<int>(task.value) == number; };
  ThrowIf<OptionError>(std::none_of(Tasks.begin(), Tasks.end(), isKind),
    "Task: expected one of the list, found number ", number, ", a task of an older version.");
  return static_cast<TaskKind>(number);
}

TaskKind ParseTask(const std::string& name)
{
  return ParseNamed<OptionError>(Tasks, name, "Task");
}

}
