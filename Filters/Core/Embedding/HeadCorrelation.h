#pragma once

#include "JointVectors.h"
#include "Recording/Recording.h"

#include <cstdint>
#include <vector>

#include <Eigen/Core>

namespace atlas
{

/// Which dot products and distances are correlated.
struct CorrelationKind
{
  bool translatedDot = true;      ///< q . (k + shift), else q . k
  bool translatedDistance = true; ///< | q / c - c (k + shift) |, else | q / c - c k |
};

/// A scale and the correlation at it.
struct ScaleOptimum
{
  double scale = 1;
  double correlation = 0;
};

/// The smallest and largest scale that is considered.
inline constexpr double SmallestScale = 1. / 16;
inline constexpr double LargestScale = 16;

/// How far small distances stand for large dot products in one head: correlations over the pairs of
/// a query and a key of the same sequence that the mask lets it see, within or beyond a window. All
/// numbers are double.
///
/// Up to PairLimit pairs, such as those of one causal sequence of 1,400 tokens or of 2,000 causal
/// sequences of 30 tokens, all are used. Beyond, every m-th query of the tokens stands for all,
/// with the smallest m that meets the limit.
class HeadCorrelation
{
public:
  static constexpr std::int64_t PairLimit = std::int64_t{ 1 } << 20;

  /// For the joint vectors, unscaled, of these rows of the recording.
  HeadCorrelation(const Recording& recording, const JointRows& rows, const JointVectors& joint,
    std::int64_t pairLimit = PairLimit);

  std::int64_t PairCount() const { return this->Dots.size(); }

  /// The Pearson correlation of dot product and distance at scale c. NaN if either is constant.
  double Pearson(const CorrelationKind& kind, double scale) const;

  /// The scale in [SmallestScale, LargestScale] with the lowest correlation: a search on a grid of
  /// ln c, then the zero of the derivative. (1, NaN) if the correlation is not defined.
  ScaleOptimum LowestPearson(const CorrelationKind& kind) const;

  /// Per query, the Spearman correlation (ties have their average rank) of q . k with the distance
  /// to the keys that it sees: 1 - cos(q, k + shift) if `byCosine`, else | q / c - c (k + shift) |.
  /// NaN for a query that sees fewer than 2 keys, or if either side is constant.
  std::vector<double> SpearmanOfQueries(bool byCosine, double scale = 1) const;

  /// Its mean over the queries of a sequence, then over sequences, without NaN; NaN if nothing is
  /// left. This is the number of the published notebooks of AttentionViz.
  double Spearman(bool byCosine, double scale = 1) const;

private:
  /// A query with the keys that it sees, which are consecutive.
  struct Query
  {
    std::int64_t index;    ///< among the queries
    std::int64_t sequence; ///< of the recording
    std::int64_t firstKey; ///< among the keys
    std::int64_t keys;
    std::int64_t firstPair;
  };
  struct Moments;
  struct Slope;

  std::vector<Query> Queries;
  // Per pair:
  Eigen::ArrayXd Dots;           ///< q . k
  Eigen::ArrayXd ShiftDots;      ///< q . shift
  Eigen::ArrayXd QuerySquares;   ///< |q|^2
  Eigen::ArrayXd KeySquares;     ///< |k|^2
  Eigen::ArrayXd ShiftedSquares; ///< |k + shift|^2

  void FindQueries(const Recording& recording, const JointRows& rows, std::int64_t limit);
  void Multiply(const JointVectors& joint);
  Moments MomentsOf(const CorrelationKind& kind, double logScale, std::int64_t step) const;
  double LowestOnGrid(const CorrelationKind& kind) const;
  Slope SlopeAt(const CorrelationKind& kind, double logScale, std::int64_t step) const;
};

}
