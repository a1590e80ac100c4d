#pragma once

#include "Base/Progress.h"
#include "Weights/ProcessedWeights.h"

#include <cstdint>

namespace atlas
{

/// The thin factors of a head's circuits over the vocabulary: queries keys^T is E W_Q W_K^T E^T /
/// sqrt(d_head) minus the mean of each row (destination) over its columns, values outputs^T is E
/// W_V W_O U minus the same.
struct HeadFactors
{
  DoubleMatrix queries; ///< E W_Q / sqrt(d_head) [V, d_head]
  DoubleMatrix keys;    ///< E W_K, centered over the tokens [V, d_head]
  DoubleMatrix values;  ///< E W_V [V, d_head]
  DoubleMatrix outputs; ///< (W_O U)^T, centered over the tokens [V of the logits, d_head]
};

/// Reads embedding and unembedding in blocks. Throws as ProcessedWeights does.
HeadFactors MakeHeadFactors(const ProcessedWeights& weights, std::int64_t layer, std::int64_t head,
  int threads, const Progress& progress);

}
