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
  /// Trains anew, unless it is what was trained the last time. What was reached when the user
  /// cancels, or when the training diverges, is the result. Returns what to report of a divergence,
  /// or an empty text. Throws std::runtime_error for a request that cannot be met.
  std::string Update(const TrainingRequest& request, const TrainingProgress& progress);

  const std::vector<Checkpoint>& Checkpoints() const { return this->Reached; }

  /// The last checkpoint at a step or before; the first if there is none. There is at least one.
  const Checkpoint& At(double step) const;

private:
  void Train(
    atlas::Trainer& trainer, const TrainingRequest& request, const TrainingProgress& progress);

  std::optional<TrainingRequest> Trained;
  std::vector<Checkpoint> Reached;
};

}
