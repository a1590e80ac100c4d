#include "TrainingRuns.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>

namespace atlas
{
namespace
{

constexpr std::array<const char*, 3> ModeNames = { "Joint", "Boosting", "BoostingOutputOnly" };

/// Trains from the first step to the last, or until `goesOn`, which is asked after each step, is
/// false; returns whether it came to its end.
template<class GoesOn>
bool Train(Trainer& trainer, TrainingRun& run, const GoesOn& goesOn)
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

/// Train, and what is to be told of a training that diverges.
template<class GoesOn>
bool TrainOrDiverge(Trainer& trainer, TrainingRun& run, const GoesOn& goesOn)
{
  try
  {
    return Train(trainer, run, goesOn);
  }
  catch (const DivergenceError&)
  {
    run.last = { trainer.GetStep(), std::numeric_limits<double>::quiet_NaN(), 0 };
    run.learned = -1;
    run.heads.alone.resize(static_cast<std::size_t>(trainer.GetOptions().heads));
    const Eigen::Index tokens = trainer.GetOptions().vocabularySize;
    run.heads.pairs = tokens * tokens;
    return true;
  }
}

/// Runs that several threads take one by one.
class Queue
{
public:
  Queue(const std::vector<TrainingOptions>& options, const TrainingStart& start)
    : Options(options)
    , Start(start)
    , Runs(options.size())
    , IsDone(options.size(), 0)
  {
  }

  /// Works until nothing is left or somebody has stopped. `progress` may be null.
  void Work(const RunsProgress& progress)
  {
    while (!this->Stopped)
    {
      const std::size_t next = this->Next++;
      if (next >= this->Runs.size())
      {
        return;
      }
      try
      {
        this->Train(next, progress);
      }
      catch (...)
      {
        const std::lock_guard<std::mutex> lock(this->Mutex);
        this->Error = std::current_exception();
        this->Stopped = true;
      }
    }
  }

  /// All that is done up to the first that is not, once nobody works any more. Throws what a run
  /// threw.
  std::vector<TrainingRun> Take()
  {
    if (this->Error)
    {
      std::rethrow_exception(this->Error);
    }
    const auto end = std::find(this->IsDone.begin(), this->IsDone.end(), 0);
    this->Runs.resize(static_cast<std::size_t>(end - this->IsDone.begin()));
    return std::move(this->Runs);
  }

private:
  void Train(std::size_t index, const RunsProgress& progress)
  {
    TrainingRun& run = this->Runs[index];
    run.options = this->Options[index];
    Trainer trainer(run.options, this->Start);
    const auto goesOn = [&](int step)
    {
      if (progress)
      {
        const double own = static_cast<double>(step) / run.options.steps;
        const double done = static_cast<double>(this->Done) + own;
        if (!progress(std::min(done / static_cast<double>(this->Runs.size()), 1.)))
        {
          this->Stopped = true;
        }
      }
      return !this->Stopped;
    };
    this->IsDone[index] = TrainOrDiverge(trainer, run, goesOn) ? 1 : 0;
    ++this->Done;
  }

  const std::vector<TrainingOptions>& Options;
  const TrainingStart& Start;
  std::vector<TrainingRun> Runs;
  std::vector<char> IsDone;
  std::atomic<std::size_t> Next = 0;
  std::atomic<std::size_t> Done = 0;
  std::atomic<bool> Stopped = false;
  std::mutex Mutex;
  std::exception_ptr Error;
};

}

const char* ModeName(TrainingMode mode)
{
  return ModeNames.at(static_cast<std::size_t>(mode));
}

TrainingMode ModeOfName(const std::string& name)
{
  const auto* const found = std::find(ModeNames.begin(), ModeNames.end(), name);
  if (found == ModeNames.end())
  {
    throw OptionError(
      "Mode: expected Joint, Boosting or BoostingOutputOnly, found '" + name + "'.");
  }
  return static_cast<TrainingMode>(found - ModeNames.begin());
}

std::vector<TrainingRun> RunTrainings(const std::vector<TrainingOptions>& options,
  const TrainingStart& start, unsigned int threads, const RunsProgress& progress)
{
  Queue queue(options, start);
  std::vector<std::thread> helpers;
  const auto useful = static_cast<unsigned int>(std::min<std::size_t>(threads, options.size()));
  for (unsigned int i = 1; i < useful; ++i)
  {
    helpers.emplace_back([&queue]() { queue.Work(nullptr); });
  }
  queue.Work(progress);
  for (std::thread& helper : helpers)
  {
    helper.join();
  }
  return queue.Take();
}

std::vector<TrainingOptions> SweepOptions(
  const TrainingOptions& options, int runs, const std::vector<TrainingMode>& modes)
{
  if (runs < 0)
  {
    throw OptionError("Runs: expected at least 0, found " + std::to_string(runs) + ".");
  }
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
