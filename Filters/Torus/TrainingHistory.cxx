#include "TrainingHistory.h"

#include "Error.h"
#include "Execution.h"

#include <algorithm>

namespace AttentionAtlas
{
namespace
{

/// Throws std::runtime_error if the task and the checkpoints need too much memory.
void RequireMemoryFor(const atlas::TrainingOptions& options, std::size_t checkpoints)
{
  const double pairs = static_cast<double>(options.vocabularySize) * options.vocabularySize;
  RequireMemory(atlas::PairTaskBytes(options),
    "VocabularySize: a task of " + std::to_string(static_cast<std::int64_t>(pairs)) + " pairs",
    "lower VocabularySize.");
  RequireMemory(atlas::PairModelBytes(options) * static_cast<double>(checkpoints),
    "CheckpointEvery: " + std::to_string(checkpoints) + " models", "raise CheckpointEvery.");
}

}

std::string TrainingHistory::Update(
  const TrainingRequest& request, const TrainingProgress& progress)
{
  if (this->Trained && *this->Trained == request)
  {
    return {};
  }
  this->Reached.clear();
  this->Trained = request;
  const std::optional<atlas::AttentionOnlyModel> model = request.ReadModel();
  atlas::CheckOptions(request.options);
  RequireMemoryFor(request.options, request.checkpoints.size());
  atlas::PairTrainer trainer(request.options, { model ? &*model : nullptr, request.continues });
  try
  {
    this->Train(trainer, request, progress);
  }
  catch (const atlas::DivergenceError& e)
  {
    return e.what();
  }
  return {};
}

void TrainingHistory::Train(
  atlas::PairTrainer& trainer, const TrainingRequest& request, const TrainingProgress& progress)
{
  const double all = std::max(request.options.steps, 1);
  bool goesOn = true;
  for (const int checkpoint : request.checkpoints)
  {
    while (goesOn && trainer.GetStep() < checkpoint)
    {
      trainer.Step();
      goesOn = progress(trainer.GetStep() / all, false);
    }
    this->Reached.push_back(TakeCheckpoint(trainer));
    if (!goesOn || !progress(trainer.GetStep() / all, true))
    {
      return;
    }
  }
}

const Checkpoint& TrainingHistory::At(double step) const
{
  std::size_t found = 0;
  while (found + 1 < this->Reached.size() && this->Reached[found + 1].state.step <= step)
  {
    ++found;
  }
  return this->Reached[found];
}

}
