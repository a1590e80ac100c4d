#pragma once

#include "Base/Progress.h"
#include "Weights/Transformer.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// Which tokens are predicted where, with the place masked.
struct MaskedOptions
{
  std::int64_t mask = 0;                ///< the id of the token that stands for any
  std::vector<std::int64_t> positions;  ///< in the sequence, each of them masked alone
  std::vector<std::int64_t> candidates; ///< the ids whose probabilities are wanted
  std::int64_t tokensAtOnce = 4096;     ///< about how many tokens a batch has
  int threads = 0;                      ///< as for ThreadCount; results do not depend on it
  Progress progress;
};

/// The natural logarithms of the probabilities of the candidates at each position, when that is
/// masked and all other tokens are as they are: [positions, candidates], row-major. With it the
/// effect of a substitution by masked marginals (Meier et al., "Language models enable zero-shot
/// prediction of the effects of mutations on protein function", 2021) is that of the mutant less
/// that of the wild type. A position is the input of one run; runs share matrix products. The
/// softmax is over the whole vocabulary, in double precision.
///
/// Throws OptionError unless the model predicts masked tokens of texts, and for positions and ids
/// that it does not have; as RecordTransformer; and what `progress` throws.
std::vector<double> PredictMasked(
  const Transformer& model, const std::vector<std::int64_t>& tokens, const MaskedOptions& options);

/// An upper bound on the memory that PredictMasked takes, in bytes; mapped files of weights are not
/// included. Throws likewise.
std::uint64_t MaskedMemory(
  const Transformer& model, const std::vector<std::int64_t>& tokens, const MaskedOptions& options);

}
