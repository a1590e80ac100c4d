#pragma once

#include "Base/Progress.h"
#include "Recording/Recording.h"
#include "Weights/ProcessedWeights.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// Which pairs of a query and a key are contrasted.
struct QueryKeyContrastOptions
{
  /// A number per token of the recording. Pairs of equal numbers are compared with all others. If
  /// it is empty, those whose positions differ by `distance` are; not of cross attention.
  std::vector<std::int64_t> group;
  std::int64_t distance = 1;  ///< of the key before the query, at least 0; without a causal mask
                              ///< also after it
  bool includesSelf = false;  ///< whether a token's query and its own key are a pair
  std::int64_t layer = -1;    ///< -1: all recorded ones
  std::int64_t head = -1;     ///< -1: all
  std::int64_t sequence = -1; ///< -1: all
  int threads = 0;            ///< as for ThreadCount; results do not depend on it
  Progress progress;
};

/// The subspaces of the queries and keys of a head in which pairs differ.
struct HeadContrast
{
  HeadPlace place;
  DoubleMatrix difference;            ///< D [d_head, d_head]
  std::vector<double> singularValues; ///< of D [d_head], falling
  DoubleMatrix queryDirections; ///< [d_head, d_head], columns: left singular vectors of D. The
                                ///< entry of largest magnitude is positive
  DoubleMatrix keyDirections;   ///< [d_head, d_head], columns: right singular vectors
  double scoreDifference = 0;   ///< trace D times the scale of scores: by how much the mean
                                ///< score of pairs in the set is above that of the others, before
                                ///< any cap
};

struct QueryKeyContrast
{
  std::int64_t pairs = 0; ///< in the set; of the layer that has the most, as windows leave some out
  std::int64_t others = 0;         ///< not in it; the same
  std::vector<HeadContrast> heads; ///< by layer and head
};

/// For each head the difference of two means of outer products over pairs (i, j) of a query and a
/// key of the same sequence,
///
///     D = mean over pairs in the set of q_i k_j^T  -  mean over all others of q_i k_j^T,
///
/// and its singular value decomposition D = U S V^T: directions u_r of queries and v_r of keys
/// along which a large product (q . u_r) (k . v_r) means that a pair is in the set. It is the
/// difference of two uncentered cross-covariances of queries and keys. With a causal mask only
/// pairs that can attend count, j <= i and within the window and chunk of the layer; of images
/// those in the same window of patches. In cross attention i is a token of the target and j one of
/// the source. Queries and keys are those of the recording: after any rotation, without ALiBi and
/// before any cap of scores.
///
/// Sums over keys are running sums, one for each group, so the time grows with the tokens and not
/// with the pairs, but for windows of patches. Throws OptionError for a layer, head or sequence
/// that is not there, for heads whose queries and keys were not recorded, if one of the two sets of
/// pairs is empty, and for a distance in cross attention; FileError if the file that a head is
/// mapped from was truncated or changed; and ModelError for queries or keys that are not finite.
QueryKeyContrast FindQueryKeyContrast(
  const Recording& recording, const QueryKeyContrastOptions& options);

/// q . u_r of these queries and then k . v_r of these keys, rows of the recording, for the first
/// three singular vectors, r = 0 ... 2: [queries + keys, 3], row-major; 0 beyond d_head.
std::vector<float> ProjectOnContrast(const Recording& recording, const HeadContrast& contrast,
  const std::vector<std::int64_t>& queries, const std::vector<std::int64_t>& keys);

}
