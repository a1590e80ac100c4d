#pragma once

#include "HeadAccuracy.h"
#include "Training.h"

#include <functional>
#include <string>

namespace atlas
{

/// The name of a mode, and the mode of a name: Joint, Boosting, BoostingOutputOnly. Throws
/// OptionError for another name.
const char* ModeName(TrainingMode mode);
TrainingMode ModeOfName(const std::string& name);

/// How a training from its first step to its last went.
struct TrainingRun
{
  TrainingOptions options;
  TrainingState last;   ///< in the end; a loss of NaN tells that it diverged, `last.step` where
  int learned = -1;     ///< the first step after which the accuracy is 1; -1: there is none
  HeadAccuracies heads; ///< in the end, without residual for heads alone
};

/// Told the share of the work that is done, 0 to 1, after every step of the calling thread; false
/// cancels the rest.
using RunsProgress = std::function<bool(double done)>;

/// Trains with each of these options, on up to ThreadCount(threads) threads (see Parallel.h), of
/// which the calling one is the first. The runs are in the order of the options and do not depend on the
/// number of threads; if cancelled, only those before the first unfinished one are returned. Throws
/// OptionError, but not for divergence.
std::vector<TrainingRun> RunTrainings(const std::vector<TrainingOptions>& options,
  const TrainingStart& start, int threads, const RunsProgress& progress = nullptr);

/// The options with `runs` seeds from their own on, for each of these modes. Throws OptionError if
/// `runs` is less than 0.
std::vector<TrainingOptions> SweepOptions(
  const TrainingOptions& options, int runs, const std::vector<TrainingMode>& modes);

}
