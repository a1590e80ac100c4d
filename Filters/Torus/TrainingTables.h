#pragma once

#include "TrainingRuns.h"

#include <vector>

class vtkTable;

/// The tables of vtkAttentionOnlyTraining.
namespace AttentionAtlas
{

/// A model in training, and how well it does.
struct Checkpoint
{
  atlas::AttentionOnlyModel model;
  atlas::TrainingState state;
  int phase;                 ///< the head in training, -1 for all
  std::vector<double> heads; ///< accuracy of each alone
};

Checkpoint TakeCheckpoint(atlas::Trainer& trainer);

/// Adds the columns of output port 1, a row per checkpoint.
void AddCheckpoints(const std::vector<Checkpoint>& checkpoints, vtkTable* table);

/// Adds the columns of output port 2, a row per training.
void AddRuns(const std::vector<atlas::TrainingRun>& runs, vtkTable* table);

}
