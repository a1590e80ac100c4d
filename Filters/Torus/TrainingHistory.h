#pragma once

#include "TrainingRequest.h"
#include "TrainingTables.h"

#include <optional>
#include <string>
#include <vector>

namespace AttentionAtlas
{

/// One training with its checkpoints: output ports 0 and 1 of vtkAttentionOnlyTraining.
class TrainingHistory
{
public:
  /// Trains, unless the request is the same as the last one. If the user cancels or the training
  /// diverges, the result is what was reached. Returns a message if the training diverged,
  /// otherwise an empty string. Throws std::runtime_error for an invalid request.
  std::string Update(const TrainingRequest& request, const TrainingProgress& progress);

  const std::vector<Checkpoint>& Checkpoints() const { return this->Reached; }

  /// The last checkpoint at or before a step, or the first one if there is none before. There is
  /// always at least one.
  const Checkpoint& At(double step) const;

private:
  void Train(
    atlas::PairTrainer& trainer, const TrainingRequest& request, const TrainingProgress& progress);

  std::optional<TrainingRequest> Trained;
  std::vector<Checkpoint> Reached;
};

}
