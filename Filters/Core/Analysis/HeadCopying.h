#pragma once

#include "Base/Progress.h"
#include "Recording/Recording.h"
#include "Weights/Transformer.h"

#include <cstdint>
#include <vector>

#include <Eigen/Core>

namespace atlas
{

/// The different ids below `limit`, ascending.
std::vector<std::int64_t> DifferentIds(
  const std::int64_t* begin, const std::int64_t* end, std::int64_t limit);

/// The tokens of a sequence that have a logit.
struct LogitTokens
{
  std::vector<std::int64_t> rows;  ///< of each different one, ascending by id: its index in `all`
  std::vector<std::int64_t> token; ///< of each position: an index of `rows`; -1: without a logit

  LogitTokens() = default;

  /// Ids below `limit` have a logit, and are in `all`, DifferentIds of several sequences.
  LogitTokens(const std::int64_t* begin, const std::int64_t* end, std::int64_t limit,
    const std::vector<std::int64_t>& all);
};

/// r(t*) / sum_t r(t) of the logits c(t) of tokens, below; -1 if nothing is raised or `token`, t*,
/// is -1.
double CopyingShare(const Eigen::Ref<const Eigen::RowVectorXf>& logits, std::int64_t token);

/// How much heads copy the tokens that they attend to, after Olsson et al. ("In-context learning
/// and induction heads", 2022), from 0 to 1 for each head: the mean over queries i of
///
///     r_i(t*) / sum_t r_i(t),   r_i(t) = max(0, c_i(t) - mean_t c_i(t)),   c_i(t) = z_i W_O W_U(t)
///
/// over the different tokens t of the sequence, where z_i = sum_j A_ij v_j is what the head mixes,
/// v without its bias, and t* is the token of the key with the largest weight, the first of
/// several. It is the share of what the head raises among the tokens of the sequence that goes to
/// the token it looks at, before the final normalization and any later layer. Weights are processed
/// as TransformerLens does (ProcessedWeights). Tokens without a logit, as of models
/// that never predict them, do not count. Queries for which nothing is raised, or whose t* has no
/// logit, are left out; a head without others has 0.
///
/// Heads of a layer are processed together; so pass them by layer. Uses up to ThreadCount(threads)
/// threads; values do not depend on their number. Needs the columns of W_U of all different tokens
/// of the recording in double precision. Throws OptionError for a recording that is not of the
/// model (RequireSameModel), without values or without token ids, and for a model without an
/// unembedding; ModelError for one whose weights cannot be processed; and FileError if its files or
/// those of the recording were changed.
std::vector<double> MeasureCopying(const Recording& recording, const Transformer& model,
  const std::vector<HeadPlace>& heads, int threads, const Progress& progress = {});

}
