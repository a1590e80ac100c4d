#pragma once

#include "Base/Index.h"
#include "Base/Progress.h"
#include "CorpusStatistics.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace atlas
{

/// Empty statistics of a model, whose weights are read for their fingerprint. Throws OptionError
/// for options out of range and layers that the model does not have, and as FingerprintOf does.
CorpusStatistics BeginCorpus(const OpenTransformer& model, const std::string& path,
  const CorpusOptions& options, int threads = 0, const Progress& progress = {});

/// Throws OptionError unless statistics of a file, `source`, can go on as those that were begun:
/// the same heads, options and model.
void RequireSameOptions(
  const CorpusStatistics& earlier, const CorpusStatistics& begun, const std::string& source);

/// Statistics of a file, `source`, from which a run of these texts can go on. Throws OptionError,
/// which says what differs, unless those that were begun have the same options and model, and the
/// texts have the tokens that were measured: they are encoded again, without running the model.
/// Files of older versions, which do not say of which model and texts they are, are refused.
CorpusStatistics ContinueCorpus(const OpenTransformer& model, CorpusStatistics earlier,
  const CorpusStatistics& begun, const std::vector<std::string>& files, const std::string& source,
  const Progress& progress = {});

/// Bytes that a run needs beside the weights.
struct CorpusMemory
{
  std::uint64_t statistics = 0; ///< as many are needed again for their file
  std::uint64_t working = 0;    ///< activations of a batch, and weights in another form

  /// With `copies` of the statistics as a file at the same time.
  std::uint64_t Total(int copies = 1) const
  {
    return this->statistics + std::max(this->working, this->statistics * ToIndex(copies));
  }
};

/// What MeasureCorpus and the file of the statistics need at most, of texts that have at most
/// `kinds` kinds of tokens. Tables of tokens grow with the kinds that have occurred.
CorpusMemory EstimateCorpusMemory(
  const OpenTransformer& model, const CorpusOptions& options, std::int64_t kinds);

/// The kinds of tokens that there are at most after the next batch, and after `tokens` tokens.
std::int64_t KindsAfterBatch(const OpenTransformer& model, const CorpusStatistics& statistics);
std::int64_t KindsAfter(
  const OpenTransformer& model, const CorpusStatistics& statistics, std::int64_t tokens);

/// Why there is no memory for the kinds of tokens of another batch; empty if there is.
std::string FindShortage(const OpenTransformer& model, const CorpusStatistics& statistics);

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
/// have other sizes than before; their content is compared by ContinueCorpus.
void MeasureCorpus(
  const OpenTransformer& model, const CorpusRunOptions& run, CorpusStatistics& statistics);

}
