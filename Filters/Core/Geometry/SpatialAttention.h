#pragma once

#include "Base/Progress.h"
#include "PlaceBinding.h"
#include "PlaceSums.h"
#include "Recording/RecordedAttention.h"
#include "Recording/Recording.h"

#include <cstdint>
#include <vector>

namespace atlas
{

/// A token of a sequence and its share in a query.
struct TokenShare
{
  std::int64_t token = 0;
  double share = 0;
};

/// A query that is made of tokens, in ascending order: one with share 1, or several.
using TokenMix = std::vector<TokenShare>;

/// The query of chosen places, whose sums these are: the mean over the places. A place of slices is
/// the mix of their rows by its weights; places without a token do not count.
TokenMix MixOf(const PlaceSums& chosen, bool hasSlices);

/// The same query at another time step, of which each has a block of tokens.
TokenMix Shifted(const TokenMix& query, std::int64_t tokens);

/// What is shown of a query.
enum class SpatialDirection
{
  From, ///< what it attends to
  To,   ///< what attends to it
  Holds ///< what it is made of: of a slice, the places that it holds
};

struct SpatialOptions
{
  std::int64_t sequence = 0; ///< AllSequences: their mean
  std::int64_t layer = 0;
  std::int64_t head = 0; ///< AllHeads: the mean of the layer
  AttentionQuantity quantity = AttentionQuantity::Weights;
  SpatialDirection direction = SpatialDirection::From;
  TokenMix query;
  int threads = 0; ///< as for ThreadCount; results do not depend on it
  Progress progress;
};

/// The value of each token of a sequence for a query with shares q. With A the attention of the
/// head (EvaluateAttention), token t has
///
///     From: sum over i of q[i] A[i, t]     To: sum over i of q[i] A[t, i]     Holds: q[t]
///
/// Of To, the rows of all tokens are evaluated, a few at a time.
///
/// Throws as EvaluateAttention, and OptionError for a query that is empty or has tokens that the
/// sequence does not have or, under the mask Cross, that are not among its queries (From) or keys
/// (To).
std::vector<float> EvaluateSpatialAttention(
  const Recording& recording, const SpatialOptions& options);

/// Divides the value of each token by the weight of its places, so that their values add up to it.
/// Tokens without places keep theirs.
void DivideByPlaces(const PlaceSums& places, std::vector<float>& ofTokens);

/// The value of each place: the sum over its tokens of their weights times `ofTokens`, the values
/// of the tokens; 0 without a token. Places are as CheckPlaces accepts them. On several threads, at
/// the speed of memory; a value depends on nothing but its own place. Weights of slices whose
/// values are 0 are not read if their neighbors' are 0, too, as of a query that holds one slice.
void SpreadOverPlaces(
  const BoundPlaces& places, const std::vector<float>& ofTokens, float* values, int threads);

/// The tokens with the largest absolute values, the largest first, at most `count`; of equal ones
/// the first. Values are negative where weights of slices are. Tokens of value 0 are left out.
std::vector<std::int64_t> LargestTokens(const std::vector<float>& ofTokens, std::int64_t count);

}
