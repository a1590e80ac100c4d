#pragma once

#include "LearningRequest.h"
#include "RankGroup.h"
#include "Recorder/OpenTransformer.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace AttentionAtlas
{

/// A model at one step of its training. It is open for all filters.
struct KeptModel
{
  std::int64_t step = 0;
  std::string path; ///< with which OpenTransformer finds it
  std::shared_ptr<const atlas::OpenTransformer> model;
};

/// One training with its checkpoints, which it keeps.
class LearningHistory
{
public:
  /// Trains on the first rank, and gives all ranks the result, unless each has that of an equal
  /// request. What was reached is the result if the training diverges or is stopped. Returns a
  /// message if it has diverged now, otherwise an empty string. Throws as LearningRequest::Train
  /// does, on every rank if it does on one.
  std::string Update(
    const LearningRequest& request, const RankGroup& ranks, const LearningReport& report);

  const std::vector<KeptModel>& Models() const { return this->Kept; }
  const atlas::LearningCurves& Curves() const { return this->Measured; }

  /// The last model at or before a step, or the first one if there is none before. There must be
  /// one.
  const KeptModel& At(double step) const;

private:
  std::string Trained; ///< the key of the request; empty: none
  std::vector<KeptModel> Kept;
  atlas::LearningCurves Measured;

  void Take(const LearningRequest& request, const atlas::LearningResult& result);
};

}
