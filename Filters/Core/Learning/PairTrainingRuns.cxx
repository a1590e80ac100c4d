#include "PairTrainingRuns.h"

#include "Base/Parallel.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>

namespace atlas
{
namespace
{

/// Trains from the first step to the last, or until `goesOn`, which is called after each step,
/// returns false. Returns whether it completed, which it has, too, if it diverges.
template<class GoesOn>
bool Train(PairTrainer& trainer, TrainingRun& run, const GoesOn& goesOn)
{
  try
  {
    const auto note = [&run](const TrainingState& state)
    {
      run.last = state;
      if (run.learned < 0 && state.accuracy == 1)
      {
        run.learned = state.step;
      }
    };
    while (!trainer.IsFinished())
    {
      TrainingState before;
      trainer.Step(&before);
      note(before);
      if (!goesOn(trainer.GetStep()))
      {
        return false;
      }
    }
    note(trainer.Measure());
    run.heads = CountCorrect(trainer.GetModel(), Residual::EmbeddingPosition);
    return true;
  }
  catch (const DivergenceError&)
  {
    run.last = { trainer.GetStep(), std::numeric_limits<double>::quiet_NaN(), 0 };
    run.learned = -1;
    run.heads.alone.resize(trainer.GetOptions().heads);
    const Eigen::Index tokens = trainer.GetOptions().vocabularySize;
    run.heads.pairs = tokens * tokens;
    return true;
  }
}

}

std::vector<TrainingRun> RunTrainings(const std::vector<TrainingOptions>& options,
  const TrainingStart& start, int threads, const RunsProgress& progress)
{
  const std::int64_t count = options.size();
  const std::thread::id caller = std::this_thread::get_id();
  std::vector<TrainingRun> runs(options.size());
  std::vector<char> isDone(options.size(), 0);
  std::atomic<std::int64_t> done = 0;
  std::atomic<bool> stopped = false;
  ParallelFor(count, threads,
    [&](std::int64_t index)
    {
      if (stopped)
      {
        return;
      }
      const std::size_t i = index;
      runs[i].options = options[i];
      PairTrainer trainer(options[i], start);
      const bool tells = progress && std::this_thread::get_id() == caller;
      const auto goesOn = [&](int step)
      {
        const double share =
          (static_cast<double>(done) + static_cast<double>(step) / options[i].steps) /
          static_cast<double>(count);
        if (tells && !progress(std::min(share, 1.)))
        {
          stopped = true;
        }
        return !stopped;
      };
      isDone[i] = Train(trainer, runs[i], goesOn) ? 1 : 0;
      ++done;
    });
  const auto end = std::find(isDone.begin(), isDone.end(), 0);
  runs.resize(end - isDone.begin());
  return runs;
}

std::vector<TrainingOptions> SweepOptions(
  const TrainingOptions& options, int runs, const std::vector<TrainingMode>& modes)
{
  ThrowIf<OptionError>(runs < 0, "Runs: expected at least 0, found ", runs, ".");
  std::vector<TrainingOptions> sweep;
  for (const TrainingMode mode : modes)
  {
    for (int run = 0; run < runs; ++run)
    {
      sweep.push_back(options);
      sweep.back().mode = mode;
      sweep.back().seed += static_cast<std::uint64_t>(run);
    }
  }
  return sweep;
}

}
