#pragma once

#include "CorpusStatistics.h"
#include "Progress.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace atlas
{

/// Empty statistics of a model. Throws OptionError for options out of range and layers that the
/// model does not have.
CorpusStatistics BeginCorpus(
  const OpenTransformer& model, const std::string& path, const CorpusOptions& options);

/// Throws OptionError unless statistics of a file, `source`, can go on as those that were begun:
/// the same heads and options.
void RequireSameOptions(
  const CorpusStatistics& earlier, const CorpusStatistics& begun, const std::string& source);

/// Bytes that MeasureCorpus needs at most beside the weights, for texts that have at most `kinds`
/// kinds of tokens: statistics, activations of a batch, and weights in another form.
std::uint64_t CorpusMemory(
  const OpenTransformer& model, const CorpusOptions& options, std::int64_t kinds);

/// How a text is run.
struct CorpusRunOptions
{
  std::vector<std::string> files;
  std::int64_t tokenLimit = 0; ///< no batch is begun with this many tokens or more; 0: no limit
  int threads = 0;             ///< as for ThreadCount
  int part = 0;                ///< of this process: it runs every batch b with b % parts = part
  int parts = 1;

  /// Called before each batch, and in every process as often, with how much is done, 0 to 1. False
  /// stops: the statistics are those of all batches so far, and another call goes on.
  std::function<bool(double)> goesOn;
};

/// Runs a model on a text, and adds what its heads do to statistics, which BeginCorpus made of this
/// model. `statistics.next` is where it begins, and becomes where it ended. Throws as CorpusText
/// and RecordTransformer do, and OptionError if there are no tokens, or if files that were begun
/// have other sizes than before.
void MeasureCorpus(
  const OpenTransformer& model, const CorpusRunOptions& run, CorpusStatistics& statistics);

}
