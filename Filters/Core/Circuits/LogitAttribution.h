#pragma once

#include "Base/Progress.h"
#include "ResidualComponents.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// A logit of a token, or the difference of two.
struct LogitTarget
{
  std::int64_t row = 0;      ///< of the token in the recording
  std::int32_t id = 0;       ///< whose logit
  std::int32_t against = -1; ///< whose logit is subtracted; -1: none
};

/// Direct logit attribution (Elhage et al. 2021; Nanda and Bloom, TransformerLens, 2022): logits as
/// sums over the components of the residual stream.
struct LogitTerms
{
  std::vector<NamedComponent> components; ///< those of the whole stream, and "b_U"
  DoubleMatrix values;                    ///< [targets, components]
  std::vector<double> scales;             ///< sigma of the final normalization, per target
  std::vector<double> sums;               ///< of each row of values
  std::vector<double> logits;             ///< as recorded
};

/// The terms of logits: of a component c at the target's token ((c - mean c) / sigma) . U[:, id],
/// where sigma is that of the whole stream, as recorded; without the mean for RMSNorm, c . U
/// without normalization; and b_U[id]. U and b_U are those of the weights, with the final gain.
/// With processed weights, logits are centered over the vocabulary; log probabilities and
/// differences of logits are the same. `logits` are those of the recording or, if it has none, of
/// its residual stream after the last layer; if that is missing too, they are the sums.
///
/// `mlps` are those of this recording and model, empty at first. Runs on up to ThreadCount(threads)
/// threads, whose number changes no value. Throws OptionError if the recording lacks components
/// (RequireComponents), a row or an id is out of range, and ModelError if the model has no
/// unembedding of the stream (RequireUnembedding).
LogitTerms AttributeLogits(const Recording& recording, const ResidualWeights& weights,
  const std::vector<LogitTarget>& targets, LastMlps& mlps, int threads = 0,
  const Progress& progress = {});

}
