#pragma once

#include "PairTrainingRuns.h"
#include "TrainingRequest.h"

#include <optional>
#include <vector>

namespace AttentionAtlas
{

/// The trainings of many seeds: output port 2 of vtkAttentionOnlyTraining.
class TrainingSweep
{
public:
  /// Whether these trainings are the same as in the last update.
  bool IsDone(
    const TrainingRequest& request, const std::vector<atlas::TrainingOptions>& options) const
  {
    return this->Swept && *this->Swept == request && this->Options == options;
  }

  /// Runs these trainings on all processors that VTK may use. If the user cancels, the result is
  /// what was completed. Throws atlas::Error.
  void Update(const TrainingRequest& request, const std::vector<atlas::TrainingOptions>& options,
    const TrainingProgress& progress);

  const std::vector<atlas::TrainingRun>& Runs() const { return this->Done; }

private:
  std::optional<TrainingRequest> Swept;
  std::vector<atlas::TrainingOptions> Options;
  std::vector<atlas::TrainingRun> Done;
};

/// The options for one piece of the sweep over `seeds` seeds: each seed in the mode of the request
/// or in all modes, one after another.
std::vector<atlas::TrainingOptions> SweepPiece(
  const TrainingRequest& request, int seeds, bool allModes, int piece, int pieces);

}
