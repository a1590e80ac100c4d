#include "TrainingTables.h"

#include "ArrayNames.h"
#include "DataFields.h"
#include "DataFormat.h"

#include <vtkTypeInt64Array.h>

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
  AddColumn<vtkIntArray>(table, Names::Step, checkpoints, [](const C& c) { return c.state.step; });
  AddColumn<vtkDoubleArray>(
    table, Names::Loss, checkpoints, [](const C& c) { return c.state.loss; });
  AddColumn<vtkDoubleArray>(
    table, Names::Accuracy, checkpoints, [](const C& c) { return c.state.accuracy; });
  AddColumn<vtkIntArray>(table, Names::Phase, checkpoints, [](const C& c) { return c.phase; });
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
  AddColumn<vtkTypeInt64Array>(
    table, Names::Seed, runs, [](const R& r) { return static_cast<vtkTypeInt64>(r.options.seed); });
  AddColumn<vtkStringArray>(table, Names::Mode, runs,
    [](const R& r) { return atlas::NameOf(atlas::TrainingModes, r.options.mode); });
  AddColumn<vtkDoubleArray>(table, Names::Loss, runs, [](const R& r) { return r.last.loss; });
  AddColumn<vtkDoubleArray>(
    table, Names::Accuracy, runs, [](const R& r) { return r.last.accuracy; });
  AddColumn<vtkIntArray>(table, Names::StepsToLearn, runs, [](const R& r) { return r.learned; });
  for (std::size_t h = 0; !runs.empty() && h < runs.front().heads.alone.size(); ++h)
  {
    AddColumn<vtkDoubleArray>(table, Names::OfHead(Names::AccuracyHead, h), runs,
      [h](const R& r) { return r.heads.Share(r.heads.alone[h]); });
  }
  AddColumn<vtkDoubleArray>(
    table, Names::Union, runs, [](const R& r) { return r.heads.Share(r.heads.any); });
}

}
