#pragma once

#include "Recording/RecordedAttention.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace atlas
{

/// Patterns of attention that heads are known for. D_ij is 1 where query i attends to key j in this
/// pattern, else 0, whether or not a window lets the query see the key; beyond it attention is 0.
enum class HeadPattern
{
  PreviousToken,  ///< j = i - 1
  DuplicateToken, ///< token j is token i, and j < i
  Induction       ///< token j - 1 is token i, and j <= i: the token that came after the same token
                  ///< before (Olsson et al., "In-context learning and induction heads", 2022)
};
inline constexpr std::size_t HeadPatternCount = 3;

/// How attention A is compared with a pattern D. Mul and Abs are those of TransformerLens
/// (detect_head, Nanda and Bloom 2022), but PreviousToken leaves out the first query, which has no
/// token before it: a head that always attends to the previous token has 1.
enum class PatternMeasure
{
  Mul,   ///< sum A D / sum A: the share of the attention that is in the pattern
  Abs,   ///< 1 - sum |A - D| / queries; TransformerLens rounds to three digits, which this does not
  Stripe ///< for sequences that repeat a block of P tokens: the mean of A_(i, i-1) over i >= 1, of
         ///< A_(i, i-P), and of A_(i, i-P+1), the latter over queries from the second block on
};

/// What of A and A - D counts as 0 in Mul and Abs.
struct PatternOptions
{
  bool excludeFirst = false;   ///< the first key, where attention rests (a sink)
  bool excludeCurrent = false; ///< the query's own position
};

/// Which tokens of a sequence are the same: by their ids or, if these are unknown, their texts. In
/// cross attention by their texts or, if these are unknown, their ids, as source and target may
/// have vocabularies of their own.
class RepeatedTokens
{
public:
  /// Throws OptionError if the recording does not have the sequence.
  RepeatedTokens(const Recording& recording, std::int64_t sequence);

  /// False if there are neither ids nor texts, as for images, or in cross attention if the source
  /// has none, as sound. There are no repetitions then.
  bool AreKnown() const { return this->Known; }

  /// The last position before `position` with the same token, or -1. In cross attention positions
  /// are those of the source, then those of the target.
  std::int64_t Before(std::int64_t position) const { return this->Previous[position]; }

  /// The smallest P such that each token from position First() + P on is the one P before, if the
  /// sequence has at least two such blocks; else 0. First() is 1 if the first token is of no block,
  /// as the one that marks the beginning of a text, else 0.
  std::int64_t Period() const { return this->BlockLength; }
  std::int64_t First() const { return this->BlockBegin; }

private:
  bool Known = false;
  std::vector<std::int64_t> Previous;
  std::int64_t BlockLength = 0;
  std::int64_t BlockBegin = 0;
};

/// Sums over queries of one head, from which its scores follow.
struct PatternSums
{
  struct Sums
  {
    double attention = 0;     ///< sum A D
    std::int64_t pairs = 0;   ///< sum D
    double stripe = 0;        ///< sum of A on the stripe
    std::int64_t stripes = 0; ///< queries that have one
  };

  std::int64_t queries = 0;
  double attention = 0; ///< sum A
  std::int64_t firstQueries = 0;
  double firstAttention = 0; ///< sum A of the first queries of sequences
  std::array<Sums, HeadPatternCount> patterns = {};
  double prefix = 0; ///< sum A D of Induction, nothing excluded
  std::int64_t prefixQueries = 0;
  double sink = 0; ///< sum of A_i0, i >= 1
  std::int64_t sinkQueries = 0;

  void Add(const PatternSums& other);

  /// Adds the attention [keys] of a query of a sequence with these tokens; `keys` includes all that
  /// it may attend to.
  void AddQuery(const float* weights, std::int64_t query, std::int64_t keys,
    const RepeatedTokens& tokens, const PatternOptions& options);

  /// The same of cross attention, in which only DuplicateToken and Sink are defined: the attention
  /// of a query of the target, whose position follows those of the `sources` keys of the source.
  /// DuplicateToken: key j is of the same token as query i. The sink is that of all queries.
  void AddCrossQuery(const float* weights, std::int64_t query, std::int64_t sources,
    const RepeatedTokens& tokens, const PatternOptions& options);

  /// 0 where there is nothing to divide by.
  double Score(HeadPattern pattern, PatternMeasure measure) const;

  /// The mean attention, of queries whose token was there before, to the tokens that came after it
  /// (prefix matching, Olsson et al. 2022); 0 without such queries.
  double PrefixMatching() const;

  /// The mean attention of queries i >= 1, in cross attention of all, to the first key (Xiao et al.
  /// 2023, "Efficient streaming language models with attention sinks"); 0 without such queries.
  double Sink() const;
};

/// The sums of queries begin <= i < end of a sequence, in cross attention of positions of the
/// target (QueryPositions). `tokens` are those of the sequence; `work` is working memory, which may
/// be used again. Costs the attention and, for a token that has occurred n times before, n steps.
/// Throws as EvaluateAttention.
PatternSums MeasurePatterns(const Recording& recording, const RepeatedTokens& tokens,
  std::int64_t sequence, std::int64_t layer, std::int64_t head, std::int64_t begin,
  std::int64_t end, const PatternOptions& options, std::vector<float>& work);

}
