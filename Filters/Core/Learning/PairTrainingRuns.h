#pragma once

#include "AttentionOnly/HeadAccuracy.h"
#include "PairTrainer.h"

#include <functional>
#include <string>

namespace atlas
{

/// The outcome of a complete training.
struct TrainingRun
{
  TrainingOptions options;
  TrainingState last;   ///< at the end; if the training diverged, the loss is NaN and `last.step`
                        ///< is where
  int learned = -1;     ///< the first step after which the accuracy is 1; -1 if there is none
  HeadAccuracies heads; ///< at the end; heads alone are evaluated without residual
};

/// Called with the fraction of the work that is done, 0 to 1, after every step of the calling
/// thread. Returns false to cancel the rest.
using RunsProgress = std::function<bool(double done)>;

/// Trains once with each of these options on up to ThreadCount(threads) threads (see Parallel.h),
/// including the calling one. The runs are in the order of the options and do not depend on the
/// number of threads. If canceled, only the runs before the first unfinished one are returned.
/// Throws OptionError for invalid options; a training that diverges is not an error.
std::vector<TrainingRun> RunTrainings(const std::vector<TrainingOptions>& options,
  const TrainingStart& start, int threads, const RunsProgress& progress = nullptr);

/// Copies the options for each of these modes and for `runs` consecutive seeds, starting with their
/// own. Throws OptionError if `runs` is less than 0.
std::vector<TrainingOptions> SweepOptions(
  const TrainingOptions& options, int runs, const std::vector<TrainingMode>& modes);

}
