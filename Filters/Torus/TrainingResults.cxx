#include "TrainingResults.h"

#include "ArrayNames.h"
#include "Base/Error.h"
#include "DataFormat.h"
#include "Execution.h"
#include "ListArrays.h"

#include <algorithm>

namespace AttentionAtlas
{

namespace Names = ArrayNames;

Checkpoint TakeCheckpoint(atlas::PairTrainer& trainer)
{
  Checkpoint checkpoint{ trainer.GetModel(), trainer.Measure(), trainer.GetPhase(), {} };
  const atlas::HeadAccuracies counts =
    atlas::CountCorrect(checkpoint.model, atlas::Residual::EmbeddingPosition);
  for (const auto correct : counts.alone)
  {
    checkpoint.heads.push_back(counts.Share(correct));
  }
  return checkpoint;
}

void AddCheckpoints(const std::vector<Checkpoint>& checkpoints, vtkTable* table)
{
  SetFormat(table, Formats::Training);
  using C = Checkpoint;
  ListArrays(checkpoints, table->GetRowData())
    .Int(Names::Step, [](const C& c) { return c.state.step; })
    .Double(Names::Loss, [](const C& c) { return c.state.loss; })
    .Double(Names::Accuracy, [](const C& c) { return c.state.accuracy; })
    .Int(Names::Phase, &C::phase);
  for (std::size_t h = 0; h < checkpoints.front().heads.size(); ++h)
  {
    AddColumn<vtkDoubleArray>(table, Names::OfHead(Names::AccuracyHead, h), checkpoints,
      [h](const C& c) { return c.heads[h]; });
  }
}

void AddRuns(const std::vector<atlas::TrainingRun>& runs, vtkTable* table)
{
  SetFormat(table, Formats::TrainingRuns);
  using R = atlas::TrainingRun;
  ListArrays(runs, table->GetRowData())
    .Int64(Names::Seed, [](const R& r) { return r.options.seed; })
    .Text(
      Names::Mode, [](const R& r) { return atlas::NameOf(atlas::TrainingModes, r.options.mode); })
    .Double(Names::Loss, [](const R& r) { return r.last.loss; })
    .Double(Names::Accuracy, [](const R& r) { return r.last.accuracy; })
    .Int(Names::StepsToLearn, &R::learned);
  for (std::size_t h = 0; !runs.empty() && h < runs.front().heads.alone.size(); ++h)
  {
    AddColumn<vtkDoubleArray>(table, Names::OfHead(Names::AccuracyHead, h), runs,
      [h](const R& r) { return r.heads.Share(r.heads.alone[h]); });
  }
  AddColumn<vtkDoubleArray>(
    table, Names::Union, runs, [](const R& r) { return r.heads.Share(r.heads.any); });
}

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

void TrainingSweep::Update(const TrainingRequest& request,
  const std::vector<atlas::TrainingOptions>& options, const TrainingProgress& progress)
{
  this->Done.clear();
  this->Swept = request;
  this->Options = options;
  const std::optional<atlas::AttentionOnlyModel> model = request.ReadModel();
  this->Done = atlas::RunTrainings(options, { model ? &*model : nullptr, request.continues },
    ThreadLimit(), [&progress](double done) { return progress(done, false); });
}

std::vector<atlas::TrainingOptions> SweepPiece(
  const TrainingRequest& request, int seeds, bool allModes, int piece, int pieces)
{
  using Modes = atlas::TrainingMode;
  const std::vector<Modes> modes =
    allModes ? std::vector<Modes>{ Modes::Joint, Modes::Boosting, Modes::BoostingOutputOnly }
             : std::vector<Modes>{ request.options.mode };
  const auto all = atlas::SweepOptions(request.options, seeds, modes);
  const auto bound = [&](int number)
  { return all.begin() + static_cast<std::int64_t>(all.size()) * number / pieces; };
  return { bound(piece), bound(piece + 1) };
}

}
