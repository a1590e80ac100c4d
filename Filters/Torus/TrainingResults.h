#pragma once

#include "AttentionOnly/AttentionOnlyModel.h"
#include "Learning/PairTrainer.h"
#include "Learning/PairTrainingRuns.h"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

class vtkTable;

/// What vtkAttentionOnlyTraining is asked for and gives.
namespace AttentionAtlas
{

/// Everything that a training depends on.
struct TrainingRequest
{
  atlas::TrainingOptions options;
  std::vector<int> checkpoints; ///< steps
  std::string file;             ///< model file, or empty
  std::filesystem::file_time_type fileTime;
  bool continues = false; ///< whether to start from the parameters of that model

  bool operator==(const TrainingRequest& other) const
  {
    return this->options == other.options && this->checkpoints == other.checkpoints &&
           this->file == other.file && this->fileTime == other.fileTime &&
           this->continues == other.continues;
  }

  /// Reads the model, or returns std::nullopt if no file is set. Throws atlas::Error.
  std::optional<atlas::AttentionOnlyModel> ReadModel() const
  {
    if (this->file.empty())
    {
      return std::nullopt;
    }
    return atlas::ReadAttentionOnlyModel(this->file);
  }
};

/// Called with the fraction done, 0 to 1; returns whether to continue. `always`: report it even if
/// the last report was very recent.
using TrainingProgress = std::function<bool(double done, bool always)>;

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
