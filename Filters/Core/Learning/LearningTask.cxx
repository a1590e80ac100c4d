#include "LearningTask.h"

#include "BeliefStatesTask.h"
#include "BracketsTask.h"
#include "ColorPatchesTask.h"
#include "Error.h"
#include "LatticeProteinTask.h"
#include "LearningRecipe.h"
#include "MaskedTextTask.h"
#include "ModularAdditionTask.h"
#include "NamedValues.h"
#include "PointCloudTask.h"
#include "RepeatedTokensTask.h"
#include "SortedListTask.h"
#include "StatisticalInductionTask.h"
#include "TextTask.h"
#include "VolumePatchesTask.h"

#include <array>

namespace atlas
{
namespace
{

constexpr std::array<Named<TaskKind>, 13> Tasks = {
  { { "RepeatedTokens", TaskKind::RepeatedTokens }, { "Text", TaskKind::Text },
    { "StatisticalInduction", TaskKind::StatisticalInduction },
    { "ModularAddition", TaskKind::ModularAddition }, { "SortedList", TaskKind::SortedList },
    { "Brackets", TaskKind::Brackets }, { "BeliefStates", TaskKind::BeliefStates },
    { "ColorPatches", TaskKind::ColorPatches }, { "MaskedText", TaskKind::MaskedText },
    { "LatticeProtein", TaskKind::LatticeProtein }, { "VolumePatches", TaskKind::VolumePatches },
    { "PointCloud", TaskKind::PointCloud }, { "TokenPairs", TaskKind::TokenPairs } }
};

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
  const TaskOptions completed = Completed(options);
  switch (completed.kind)
  {
    case TaskKind::RepeatedTokens:
      return MakeRepeatedTokensTask(completed);
    case TaskKind::Text:
      return MakeTextTask(completed);
    case TaskKind::StatisticalInduction:
      return MakeStatisticalInductionTask(completed);
    case TaskKind::ModularAddition:
      return MakeModularAdditionTask(completed);
    case TaskKind::SortedList:
      return MakeSortedListTask(completed);
    case TaskKind::Brackets:
      return MakeBracketsTask(completed);
    case TaskKind::BeliefStates:
      return MakeBeliefStatesTask(completed);
    case TaskKind::ColorPatches:
      return MakeColorPatchesTask(completed);
    case TaskKind::MaskedText:
      return MakeMaskedTextTask(completed);
    case TaskKind::LatticeProtein:
      return MakeLatticeProteinTask(completed);
    case TaskKind::VolumePatches:
      return MakeVolumePatchesTask(completed);
    case TaskKind::PointCloud:
      return MakePointCloudTask(completed);
    case TaskKind::TokenPairs:
      break;
  }
  throw OptionError("Task: expected one of a transformer, found TokenPairs.");
}

std::vector<std::string> LabelsOf(const TaskOptions& task)
{
  const bool isOfImages = task.kind == TaskKind::ColorPatches ||
                          task.kind == TaskKind::VolumePatches || task.kind == TaskKind::PointCloud;
  return isOfImages ? MakeTask(task)->Labels() : std::vector<std::string>();
}

const std::vector<std::string>& TaskNames()
{
  static const std::vector<std::string> names = []
  {
    std::vector<std::string> all;
    all.reserve(Tasks.size());
    for (const auto& task : Tasks)
    {
      all.emplace_back(task.name);
    }
    return all;
  }();
  return names;
}

TaskKind ParseTask(const std::string& name)
{
  return ParseNamed<OptionError>(Tasks, name, "Task");
}

}
