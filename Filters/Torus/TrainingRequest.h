#pragma once

#include "AttentionOnlyModel.h"
#include "Training.h"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// What vtkAttentionOnlyTraining is asked for.
namespace AttentionAtlas
{

/// All that a training depends on.
struct TrainingRequest
{
  atlas::TrainingOptions options;
  std::vector<int> checkpoints; ///< steps
  std::string file;             ///< of a model, or empty
  std::filesystem::file_time_type fileTime;
  bool continues = false; ///< from the parameters of that model

  bool operator==(const TrainingRequest& other) const
  {
    return this->options == other.options && this->checkpoints == other.checkpoints &&
           this->file == other.file && this->fileTime == other.fileTime &&
           this->continues == other.continues;
  }

  /// The model of the file, or none if there is no file. Throws atlas::Error.
  std::optional<atlas::AttentionOnlyModel> ReadModel() const
  {
    if (this->file.empty())
    {
      return std::nullopt;
    }
    return atlas::ReadAttentionOnlyModel(this->file);
  }
};

/// Hears how much is done, from 0 to 1, and returns whether to go on. `always`: it is worth
/// showing, however soon after the last time.
using TrainingProgress = std::function<bool(double done, bool always)>;

}
