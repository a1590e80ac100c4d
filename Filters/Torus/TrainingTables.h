#pragma once

#include "PairTrainingRuns.h"

#include <vector>

class vtkTable;

/// The tables of vtkAttentionOnlyTraining.
namespace AttentionAtlas
{

/// A model during training, with its loss and accuracy.
struct Checkpoint
{
  atlas::AttentionOnlyModel model;
  atlas::TrainingState state;
  int phase;                 ///< the head being trained, -1 for all
  std::vector<double> heads; ///< accuracy of each head alone
};

Checkpoint TakeCheckpoint(atlas::PairTrainer& trainer);

/// Adds the columns of output port 1, one row per checkpoint.
void AddCheckpoints(const std::vector<Checkpoint>& checkpoints, vtkTable* table);

/// Adds the columns of output port 2, one row per training.
void AddRuns(const std::vector<atlas::TrainingRun>& runs, vtkTable* table);

}
