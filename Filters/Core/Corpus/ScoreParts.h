#pragma once

#include "CorpusStatistics.h"

#include <cstdint>
#include <vector>

#include <Eigen/Core>

namespace atlas
{

/// A part of the scores of a head: (q . query) ((k - mean k) . key) strength, for every query q and
/// key k.
struct ScorePart
{
  double strength = 0;   ///< at least 0
  double variance = 0;   ///< strength^2, what the part adds to the variance of scores
  Eigen::VectorXd query; ///< [d_head]; q . query has the mean square 1 over the corpus
  Eigen::VectorXd key;   ///< [d_head]; (k - mean k) . key has the mean 0 and the variance 1
};

/// The parts of the scores of a head, by falling variance, and what they add up to.
///
/// Softmax ignores what is the same for all keys, so keys are taken from their mean. With the
/// second moment S = E[q q^T] of queries and the covariance C of keys over the corpus, the variance
/// of scores over keys, averaged over queries that are drawn independently, is scale^2 tr(S C).
/// With S^(1/2) C^(1/2) = U D V^T, the generalized singular value decomposition of both, part r has
/// the strength scale D_r, the query direction S^(-1/2) u_r and the key direction C^(-1/2) v_r; its
/// contribution is scale^2 D_r^2. Directions in which there is no variance are left out. The entry
/// of the largest magnitude of each query direction is positive.
struct ScoreParts
{
  double variance = 0;     ///< of scores: the sum of all parts
  Eigen::VectorXd keyMean; ///< [d_head]
  std::vector<ScorePart> parts;
};

/// Throws OptionError if the statistics have no such head or no tokens.
ScoreParts FindScoreParts(
  const CorpusStatistics& statistics, std::int64_t layer, std::int64_t head, std::int64_t most);

/// The coordinates of the queries, or keys, of the tokens that were drawn [samples, parts]: q .
/// query, or (k - mean k) . key. `head` is its index in the statistics.
Eigen::MatrixXd CoordinatesOf(
  const CorpusStatistics& statistics, std::size_t head, const ScoreParts& parts, bool ofKeys);

/// The index of a head in statistics. Throws OptionError if they do not have it.
std::size_t FindCorpusHead(
  const CorpusStatistics& statistics, std::int64_t layer, std::int64_t head);

}
