#pragma once

#include "Corpus/CorpusStatistics.h"
#include "Corpus/CorpusWeights.h"
#include "Recording/Recording.h"

#include <vector>

namespace atlas
{

/// Adds what the heads did on a batch of windows, which was recorded with queries, keys and values
/// and, for models with logits, the scale of the final normalization.
void MeasureBatch(const Recording& recording, const std::vector<CorpusWindow>& windows,
  const CorpusWeights& weights, int threads, CorpusStatistics& statistics);

}
