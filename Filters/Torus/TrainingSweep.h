#pragma once

#include "TrainingRequest.h"
#include "TrainingRuns.h"

#include <optional>
#include <vector>

namespace AttentionAtlas
{

/// The trainings of many seeds: output port 2 of vtkAttentionOnlyTraining.
class TrainingSweep
{
public:
  /// Whether these trainings are those of the last time.
  bool IsDone(
    const TrainingRequest& request, const std::vector<atlas::TrainingOptions>& options) const
  {
    return this->Swept && *this->Swept == request && this->Options == options;
  }

  /// Trains these on all processors that VTK may use; what is done when the user cancels is the
  /// result. Throws atlas::Error.
  void Update(const TrainingRequest& request, const std::vector<atlas::TrainingOptions>& options,
    const TrainingProgress& progress);

  const std::vector<atlas::TrainingRun>& Runs() const { return this->Done; }

private:
  std::optional<TrainingRequest> Swept;
  std::vector<atlas::TrainingOptions> Options;
  std::vector<atlas::TrainingRun> Done;
};

/// The options of a piece of the sweep over `seeds` seeds: each seed in the mode of the request, or
/// in all modes, one after the other.
std::vector<atlas::TrainingOptions> SweepPiece(
  const TrainingRequest& request, int seeds, bool allModes, int piece, int pieces);

}
