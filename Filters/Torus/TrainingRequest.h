#pragma once

#include "AttentionOnlyModel.h"
#include "PairTrainer.h"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// The request of a vtkAttentionOnlyTraining.
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

}
