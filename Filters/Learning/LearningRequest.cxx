#include "LearningRequest.h"

#include "Base/Error.h"
#include "Execution.h"
#include "Learning/RecipeFile.h"
#include "Learning/SavedTraining.h"

#include <optional>
#include <system_error>

namespace AttentionAtlas
{
namespace
{

/// The time of the last change of a file, as text; empty if there is none.
std::string TimeOf(const std::filesystem::path& path)
{
  std::error_code absent; // which reading the file will tell
  const auto time = std::filesystem::last_write_time(path, absent);
  return absent ? "" : std::to_string(time.time_since_epoch().count());
}

}

std::string LearningRequest::Key() const
{
  std::string key = atlas::ToJson(this->recipe) + std::to_string(this->checkpointEvery) + " " +
                    std::to_string(this->measureEvery) + "\n" + TimeOf(this->recipe.task.text);
  if (!this->continueFrom.empty())
  {
    key += "\n" + this->continueFrom.string() + "\n" +
           TimeOf(this->continueFrom / atlas::TrainingStateFile);
  }
  return key;
}

std::vector<std::int64_t> LearningRequest::CheckpointSteps() const
{
  std::int64_t first = 0;
  if (!this->continueFrom.empty())
  {
    const atlas::SavedTraining saved(this->continueFrom);
    saved.RequireMoreSteps(this->recipe);
    first = saved.step;
  }
  return atlas::CheckpointSteps(first, this->recipe.steps, this->checkpointEvery);
}

atlas::TransformerConfig LearningRequest::Config() const
{
  return atlas::MakeConfig(this->recipe.architecture, *atlas::MakeTask(this->recipe.task));
}

atlas::LearningResult LearningRequest::Train(const LearningReport& report) const
{
  const std::int64_t checkpoints = this->CheckpointSteps().size();
  RequireMemory(atlas::TrainingBytes(this->recipe, checkpoints), "the training",
    "choose smaller sizes or a larger CheckpointEvery.");
  atlas::LearningOptions options;
  options.checkpointEvery = this->checkpointEvery;
  options.measureEvery = this->measureEvery;
  options.threads = ThreadLimit();
  options.progress = report;
  std::optional<atlas::SavedTraining> saved;
  if (!this->continueFrom.empty())
  {
    saved.emplace(this->continueFrom);
  }
  return atlas::Learn(
    this->recipe, options, saved ? saved->state.GetTensors() : atlas::TensorViews());
}

}
