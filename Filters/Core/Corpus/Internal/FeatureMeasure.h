#pragma once

#include "Circuits/SparseDictionary.h"
#include "Corpus/CorpusRun.h"
#include "Corpus/CorpusStatistics.h"
#include "Recording/Recording.h"
#include "Run/RecordOptions.h"
#include "Weights/Transformer.h"

#include <cstdint>
#include <string>
#include <vector>

namespace atlas
{

/// The features of a sparse dictionary over a text.
class FeatureMeasure
{
public:
  /// Reads options.dictionary. Throws as ReadSparseDictionary and CheckDictionary, and OptionError
  /// if its layer is not measured. The model must outlive this object.
  FeatureMeasure(const Transformer& model, const CorpusOptions& options);

  std::int64_t Count() const { return this->Dictionary.Features(); }

  /// Which dictionary it is, with a hash of its weights and settings.
  const std::string& Description() const { return this->Name; }

  /// Asks for what the dictionary reads.
  void AddTo(RecordOptions& options) const;

  /// Adds the features at the tokens of windows that are no special ones and were in no window
  /// before.
  void Measure(const Recording& recording, const std::vector<CorpusWindow>& windows, int threads,
    CorpusStatistics& statistics) const;

  /// The bytes that features add, in windows of a size.
  static CorpusMemory Memory(
    const CorpusOptions& options, const TransformerConfig& config, std::uint64_t window);

private:
  const Transformer& Model;
  SparseDictionary Dictionary;
  std::string Name;
};

}
