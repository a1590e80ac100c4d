#include "HeadCorrelation.h"

#include "Index.h"
#include "RecordedAttention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace atlas
{
namespace
{

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr double NotDefined = std::numeric_limits<double>::quiet_NaN();

/// Queries whose dot products are computed at a time.
constexpr std::int64_t BlockRows = 64;
/// The grid of ln c on which a minimum is looked for first.
constexpr int GridPoints = 65;
const double FirstLog = std::log(SmallestScale);
const double LastLog = std::log(LargestScale);
const double GridWidth = (LastLog - FirstLog) / (GridPoints - 1);
/// Pairs that are used there.
constexpr std::int64_t GridPairs = std::int64_t{ 1 } << 15;
/// The accuracy of ln c at the optimum, and evaluations after which the search ends anyway.
constexpr double LogTolerance = 1e-9;
constexpr int MaximumEvaluations = 60;

/// An interval of ln c, and slopes at its ends.
struct Bracket
{
  double left;
  double right;
  double slopeLeft = 0;
  double slopeRight = 0;
};

/// Where a slope that rises from left to right is zero, by the secant that keeps both signs
/// (Illinois). An end if both slopes have the same sign.
template<class SlopeFunction>
double ZeroIn(Bracket bracket, const SlopeFunction& slopeAt)
{
  if (bracket.slopeLeft >= 0 || bracket.slopeRight <= 0)
  {
    return bracket.slopeLeft >= 0 ? bracket.left : bracket.right;
  }
  double middle = bracket.left;
  for (int i = 0; i < MaximumEvaluations; ++i)
  {
    const double before = middle;
    middle = bracket.right - bracket.slopeRight * (bracket.right - bracket.left) /
                               (bracket.slopeRight - bracket.slopeLeft);
    const double slope = slopeAt(middle);
    if (std::abs(middle - before) < LogTolerance || slope == 0)
    {
      break;
    }
    bracket = slope > 0 ? Bracket{ bracket.left, middle, bracket.slopeLeft / 2, slope }
                        : Bracket{ middle, bracket.right, slope, bracket.slopeRight / 2 };
  }
  return middle;
}

/// The joint vectors without the shift, in double.
RowMajor PlainVectors(const JointVectors& joint)
{
  RowMajor vectors =
    Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
      joint.values.data(), 2 * joint.tokens, joint.dimension)
      .cast<double>();
  vectors.bottomRows(joint.tokens).rowwise() -=
    Eigen::Map<const Eigen::RowVectorXd>(joint.shift.data(), joint.dimension);
  return vectors;
}

/// Ranks from 1; equal values have their average rank.
Eigen::ArrayXd Ranks(const Eigen::ArrayXd& values)
{
  std::vector<Eigen::Index> order(ToIndex(values.size()));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
    [&](Eigen::Index a, Eigen::Index b) { return values[a] < values[b]; });
  Eigen::ArrayXd ranks(values.size());
  for (std::size_t begin = 0; begin < order.size();)
  {
    std::size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]])
    {
      ++end;
    }
    for (std::size_t i = begin; i < end; ++i)
    {
      ranks[order[i]] = static_cast<double>(begin + end + 1) / 2;
    }
    begin = end;
  }
  return ranks;
}

double PearsonOf(const Eigen::ArrayXd& x, const Eigen::ArrayXd& y)
{
  const Eigen::ArrayXd dx = x - x.mean();
  const Eigen::ArrayXd dy = y - y.mean();
  const double scale = std::sqrt(dx.square().sum() * dy.square().sum());
  return scale > 0 ? (dx * dy).sum() / scale : NotDefined;
}

}

/// Weighted sums over pairs. y is the distance or its square, y' its derivative by ln c.
struct HeadCorrelation::Moments
{
  double weight = 0;
  double s = 0; ///< the dot products, as all below
  double ss = 0;
  double y = 0;
  double dy = 0;  ///< y'
  double yy = 0;  ///< y^2
  double ydy = 0; ///< y y'
  double sy = 0;
  double sdy = 0; ///< s y'
};

/// A correlation and its derivative by ln c.
struct HeadCorrelation::Slope
{
  double correlation;
  double slope;
};

HeadCorrelation::HeadCorrelation(const Recording& recording, const std::vector<std::int64_t>& rows,
  const JointVectors& joint, std::int64_t pairLimit)
  : Rows(rows)
{
  this->FindQueries(recording, pairLimit);
  this->Multiply(joint);
}

void HeadCorrelation::FindQueries(const Recording& recording, std::int64_t limit)
{
  const auto tokens = static_cast<std::int64_t>(this->Rows.size());
  std::vector<Query> all;
  std::int64_t pairs = 0;
  for (std::int64_t begin = 0; begin < tokens;)
  {
    const std::int64_t sequence = recording.tokens.sequence[ToIndex(this->Rows[ToIndex(begin)])];
    const std::int64_t last = recording.sequenceOffsets[ToIndex(sequence) + 1];
    std::int64_t end = begin;
    while (end < tokens && this->Rows[ToIndex(end)] < last)
    {
      ++end;
    }
    for (std::int64_t i = begin; i < end; ++i)
    {
      const std::int64_t keys =
        recording.mask == AttentionMask::Causal ? i + 1 - begin : end - begin;
      all.push_back({ i, sequence, begin, keys, 0, 0 });
      pairs += keys;
    }
    begin = end;
  }
  const std::int64_t step = std::max<std::int64_t>((pairs + limit - 1) / limit, 1);
  pairs = 0;
  for (std::int64_t i = step - 1; i < tokens; i += step)
  {
    this->Queries.push_back(all[ToIndex(i)]);
    this->Queries.back().firstPair = pairs;
    pairs += this->Queries.back().keys;
  }
  this->Dots.resize(pairs);
}

void HeadCorrelation::Multiply(const JointVectors& joint)
{
  const RowMajor vectors = PlainVectors(joint);
  const Eigen::Map<const Eigen::VectorXd> shift(joint.shift.data(), joint.dimension);
  const auto keys = vectors.bottomRows(joint.tokens);
  this->QuerySquares = vectors.topRows(joint.tokens).rowwise().squaredNorm();
  this->KeySquares = keys.rowwise().squaredNorm();
  this->ShiftedSquares = (keys.rowwise() + shift.transpose()).rowwise().squaredNorm();
  RowMajor block;
  RowMajor dots;
  for (std::size_t begin = 0; begin < this->Queries.size();)
  {
    const std::int64_t firstKey = this->Queries[begin].firstKey;
    std::size_t end = begin;
    std::int64_t seen = 0;
    for (; end < this->Queries.size() && this->Queries[end].firstKey == firstKey &&
           end < begin + ToIndex(BlockRows);
      ++end)
    {
      seen = std::max(seen, this->Queries[end].keys);
    }
    block.resize(static_cast<Eigen::Index>(end - begin), joint.dimension);
    for (std::size_t i = begin; i < end; ++i)
    {
      block.row(static_cast<Eigen::Index>(i - begin)) = vectors.row(this->Queries[i].index);
      this->Queries[i].shiftDot = vectors.row(this->Queries[i].index).dot(shift);
    }
    dots.noalias() = block * keys.middleRows(firstKey, seen).transpose();
    for (std::size_t i = begin; i < end; ++i)
    {
      const Query& query = this->Queries[i];
      this->Dots.segment(query.firstPair, query.keys) =
        dots.row(static_cast<Eigen::Index>(i - begin)).head(query.keys).transpose();
    }
    begin = end;
  }
}

void HeadCorrelation::WeighByAttention(
  const Recording& recording, std::int64_t layer, std::int64_t head)
{
  this->Weights.resize(this->Dots.size());
  std::vector<float> row;
  for (const Query& query : this->Queries)
  {
    const std::int64_t first = recording.sequenceOffsets[ToIndex(query.sequence)];
    const std::int64_t position = this->Rows[ToIndex(query.index)] - first;
    row.resize(ToIndex(recording.SequenceLength(query.sequence)));
    EvaluateAttention(recording, query.sequence, layer, head, AttentionQuantity::Weights, position,
      position + 1, row.data());
    for (std::int64_t j = 0; j < query.keys; ++j)
    {
      const std::int64_t key = this->Rows[ToIndex(query.firstKey + j)] - first;
      this->Weights[query.firstPair + j] = static_cast<double>(row[ToIndex(key)]);
    }
  }
}

/// Sums over every step-th query.
HeadCorrelation::Moments HeadCorrelation::MomentsOf(
  const CorrelationKind& kind, double logScale, std::size_t step) const
{
  const double u = std::exp(-2 * logScale); // 1 / c^2
  const Eigen::ArrayXd& squares = kind.translatedDistance ? this->ShiftedSquares : this->KeySquares;
  Moments sum;
  Eigen::ArrayXd y;
  Eigen::ArrayXd dy;
  Eigen::ArrayXd weights;
  for (std::size_t i = 0; i < this->Queries.size(); i += step)
  {
    const Query& query = this->Queries[i];
    const auto dots = this->Dots.segment(query.firstPair, query.keys);
    const auto keySquares = squares.segment(query.firstKey, query.keys);
    const double querySquare = this->QuerySquares[query.index] * u;
    const double dotInDistance = kind.translatedDistance ? query.shiftDot : 0;
    y = (querySquare + keySquares / u - 2 * (dots + dotInDistance)).max(0.);
    dy = 2 * (keySquares / u - querySquare);
    if (!kind.squaredDistance)
    {
      y = y.sqrt();
      dy = (y > 0).select(dy / (2 * y), 0.);
    }
    const double dot = kind.translatedDot ? query.shiftDot : 0;
    if (this->Weights.size() > 0)
    {
      weights = this->Weights.segment(query.firstPair, query.keys);
    }
    else
    {
      weights = Eigen::ArrayXd::Ones(query.keys);
    }
    sum.weight += weights.sum();
    sum.s += (weights * (dots + dot)).sum();
    sum.ss += (weights * (dots + dot).square()).sum();
    sum.y += (weights * y).sum();
    sum.dy += (weights * dy).sum();
    sum.yy += (weights * y.square()).sum();
    sum.ydy += (weights * y * dy).sum();
    sum.sy += (weights * y * (dots + dot)).sum();
    sum.sdy += (weights * dy * (dots + dot)).sum();
  }
  return sum;
}

HeadCorrelation::Slope HeadCorrelation::SlopeAt(
  const CorrelationKind& kind, double logScale, std::size_t step) const
{
  const Moments sum = this->MomentsOf(kind, logScale, step);
  const double s = sum.s / sum.weight;
  const double y = sum.y / sum.weight;
  const double dy = sum.dy / sum.weight;
  const double varianceOfDot = sum.ss / sum.weight - s * s;
  const double variance = sum.yy / sum.weight - y * y;
  const double covariance = sum.sy / sum.weight - s * y;
  constexpr double relative = 1e-13; // of rounding
  if (!(varianceOfDot > relative * sum.ss / sum.weight) ||
      !(variance > relative * sum.yy / sum.weight))
  {
    return { NotDefined, NotDefined };
  }
  const double deviation = std::sqrt(varianceOfDot * variance);
  const double slope = (sum.sdy / sum.weight - s * dy) / deviation -
                       covariance / deviation * (sum.ydy / sum.weight - y * dy) / variance;
  return { covariance / deviation, slope };
}

double HeadCorrelation::Pearson(const CorrelationKind& kind, double scale) const
{
  return this->SlopeAt(kind, std::log(scale), 1).correlation;
}

/// The point of a grid of ln c with the lowest correlation of a part of the pairs; NaN if there is
/// none.
double HeadCorrelation::LowestOnGrid(const CorrelationKind& kind) const
{
  const auto step = ToIndex(std::max<std::int64_t>(this->PairCount() / GridPairs, 1));
  double best = NotDefined;
  double lowest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < GridPoints; ++i)
  {
    const double logScale = FirstLog + i * GridWidth;
    const double found = this->SlopeAt(kind, logScale, step).correlation;
    if (found < lowest)
    {
      lowest = found;
      best = logScale;
    }
  }
  return best;
}

ScaleOptimum HeadCorrelation::LowestPearson(const CorrelationKind& kind) const
{
  const double best = this->LowestOnGrid(kind);
  if (std::isnan(best))
  {
    return { 1, NotDefined };
  }
  const auto slope = [&](double logScale) { return this->SlopeAt(kind, logScale, 1).slope; };
  // Near there the slope turns positive. A part of the pairs may have misled.
  Bracket bracket{ best - GridWidth, best + GridWidth };
  bracket.slopeLeft = slope(bracket.left);
  bracket.slopeRight = slope(bracket.right);
  while (bracket.slopeLeft > 0 && bracket.left > FirstLog)
  {
    bracket = { bracket.left - GridWidth, bracket.left, 0, bracket.slopeLeft };
    bracket.slopeLeft = slope(bracket.left);
  }
  while (bracket.slopeRight < 0 && bracket.right < LastLog)
  {
    bracket = { bracket.right, bracket.right + GridWidth, bracket.slopeRight, 0 };
    bracket.slopeRight = slope(bracket.right);
  }
  const double zero = std::clamp(ZeroIn(bracket, slope), FirstLog, LastLog);
  return { std::exp(zero), this->SlopeAt(kind, zero, 1).correlation };
}

std::vector<double> HeadCorrelation::SpearmanOfQueries(bool byCosine, double scale) const
{
  std::vector<double> correlations;
  correlations.reserve(this->Queries.size());
  Eigen::ArrayXd dots;
  Eigen::ArrayXd distances;
  for (const Query& query : this->Queries)
  {
    const auto keySquares = this->ShiftedSquares.segment(query.firstKey, query.keys);
    const double querySquare = this->QuerySquares[query.index];
    if (query.keys < 2 || (byCosine && querySquare * keySquares.minCoeff() <= 0))
    {
      correlations.push_back(NotDefined);
      continue;
    }
    dots = this->Dots.segment(query.firstPair, query.keys);
    if (byCosine)
    {
      distances = 1 - (dots + query.shiftDot) / (querySquare * keySquares).sqrt();
    }
    else
    {
      distances =
        (querySquare / (scale * scale) + keySquares * (scale * scale) - 2 * (dots + query.shiftDot))
          .max(0.)
          .sqrt();
    }
    correlations.push_back(PearsonOf(Ranks(dots), Ranks(distances)));
  }
  return correlations;
}

double HeadCorrelation::Spearman(bool byCosine, double scale) const
{
  const std::vector<double> ofQueries = this->SpearmanOfQueries(byCosine, scale);
  double sum = 0;
  int sequences = 0;
  for (std::size_t begin = 0; begin < ofQueries.size();)
  {
    double ofSequence = 0;
    int count = 0;
    std::size_t i = begin;
    for (; i < ofQueries.size() && this->Queries[i].sequence == this->Queries[begin].sequence; ++i)
    {
      if (!std::isnan(ofQueries[i]))
      {
        ofSequence += ofQueries[i];
        ++count;
      }
    }
    if (count > 0)
    {
      sum += ofSequence / count;
      ++sequences;
    }
    begin = i;
  }
  return sequences > 0 ? sum / sequences : NotDefined;
}

}
