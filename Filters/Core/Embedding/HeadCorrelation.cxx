#include "HeadCorrelation.h"

#include "Base/Index.h"

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
constexpr std::int64_t QueriesPerProduct = 64;
/// The grid of ln c on which a minimum is looked for first.
constexpr int GridPoints = 33;
const double FirstLog = std::log(SmallestScale);
const double LastLog = std::log(LargestScale);
const double GridWidth = (LastLog - FirstLog) / (GridPoints - 1);
/// Pairs that are used there.
constexpr std::int64_t GridPairs = std::int64_t{ 1 } << 13;
/// Against division by 0.
constexpr double Tiny = 1e-60;
/// Pairs that are evaluated at a time.
constexpr std::int64_t PairBlock = 256;
/// The last step of ln c towards the optimum, from which it is much nearer, and evaluations after
/// which the search ends anyway.
constexpr double LogTolerance = 1e-7;
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
      joint.values.data(), joint.queries + joint.keys, joint.dimension)
      .cast<double>();
  vectors.bottomRows(joint.keys).rowwise() -=
    Eigen::Map<const Eigen::RowVectorXd>(joint.shift.data(), joint.dimension);
  return vectors;
}

/// The ranks of values, from 1; equal values have their average rank.
template<class Values>
Eigen::ArrayXd RanksOf(const Values& values)
{
  std::vector<Eigen::Index> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
    [&](Eigen::Index a, Eigen::Index b) { return values[a] < values[b]; });
  Eigen::ArrayXd ranks(values.size());
  for (auto first = order.begin(); first != order.end();)
  {
    const auto last =
      std::find_if(first, order.end(), [&](Eigen::Index i) { return values[i] != values[*first]; });
    const auto rank = static_cast<double>((first - order.begin()) + (last - order.begin()) + 1) / 2;
    std::for_each(first, last, [&](Eigen::Index i) { ranks[i] = rank; });
    first = last;
  }
  return ranks;
}

template<class X, class Y>
double PearsonOf(const X& x, const Y& y)
{
  const double meanX = x.mean();
  const double meanY = y.mean();
  const double scale = std::sqrt((x - meanX).square().sum() * (y - meanY).square().sum());
  return scale > 0 ? ((x - meanX) * (y - meanY)).sum() / scale : NotDefined;
}

}

/// Sums over pairs. y is the distance, y' its derivative by ln c.
struct HeadCorrelation::Moments
{
  double count = 0;
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

HeadCorrelation::HeadCorrelation(const Recording& recording, const JointRows& rows,
  const JointVectors& joint, std::int64_t pairLimit)
{
  this->FindQueries(recording, rows, pairLimit);
  this->Multiply(joint);
}

void HeadCorrelation::FindQueries(
  const Recording& recording, const JointRows& rows, std::int64_t limit)
{
  const auto placeOf = [](const std::vector<std::int64_t>& list, std::int64_t row) -> std::int64_t
  { return std::lower_bound(list.begin(), list.end(), row) - list.begin(); };
  const std::int64_t queries = rows.queries.size();
  std::vector<Query> all;
  std::int64_t pairs = 0;
  for (std::int64_t begin = 0; begin < queries;)
  {
    const std::int64_t sequence = recording.tokens.sequence[rows.queries[begin]];
    const std::int64_t last = recording.sequenceOffsets[ToIndex(sequence) + 1];
    const std::int64_t end = placeOf(rows.queries, last);
    const std::int64_t firstKey = placeOf(rows.keys, recording.sequenceOffsets[sequence]);
    const std::int64_t ofSequence = placeOf(rows.keys, last) - firstKey;
    for (std::int64_t i = begin; i < end; ++i)
    {
      const std::vector<std::int32_t>& ends = recording.tokens.keyEnd;
      const std::int64_t seen =
        ends.empty()
          ? i + 1 - begin
          : placeOf(rows.keys, recording.sequenceOffsets[sequence] + ends[rows.queries[i]]) -
              firstKey;
      const std::int64_t keys = recording.mask == AttentionMask::Causal ? seen : ofSequence;
      all.push_back({ i, sequence, firstKey, keys, 0 });
      pairs += keys;
    }
    begin = end;
  }
  const std::int64_t step = std::max<std::int64_t>((pairs + limit - 1) / limit, 1);
  pairs = 0;
  for (std::int64_t i = step - 1; i < queries; i += step)
  {
    this->Queries.push_back(all[i]);
    this->Queries.back().firstPair = pairs;
    pairs += this->Queries.back().keys;
  }
  this->Dots.resize(pairs);
}

void HeadCorrelation::Multiply(const JointVectors& joint)
{
  const RowMajor vectors = PlainVectors(joint);
  const Eigen::Map<const Eigen::VectorXd> shift(joint.shift.data(), joint.dimension);
  const auto queries = vectors.topRows(joint.queries);
  const auto keys = vectors.bottomRows(joint.keys);
  const Eigen::ArrayXd querySquares = queries.rowwise().squaredNorm();
  const Eigen::ArrayXd keySquares = keys.rowwise().squaredNorm();
  const Eigen::ArrayXd shiftedSquares =
    (keys.rowwise() + shift.transpose()).rowwise().squaredNorm();
  const Eigen::ArrayXd shiftDots = queries * shift;
  for (Eigen::ArrayXd* perPair :
    { &this->ShiftDots, &this->QuerySquares, &this->KeySquares, &this->ShiftedSquares })
  {
    perPair->resize(this->Dots.size());
  }
  RowMajor block(QueriesPerProduct, joint.dimension);
  RowMajor dots;
  for (std::size_t begin = 0; begin < this->Queries.size();)
  {
    const std::int64_t firstKey = this->Queries[begin].firstKey;
    std::int64_t seen = 0;
    std::int64_t rows = 0;
    for (std::size_t i = begin;
      i < this->Queries.size() && rows < QueriesPerProduct && this->Queries[i].firstKey == firstKey;
      ++i)
    {
      seen = std::max(seen, this->Queries[i].keys);
      block.row(rows++) = queries.row(this->Queries[i].index);
    }
    dots.noalias() = block.topRows(rows) * keys.middleRows(firstKey, seen).transpose();
    for (std::int64_t row = 0; row < rows; ++row)
    {
      const Query& query = this->Queries[begin + ToIndex(row)];
      const std::int64_t pair = query.firstPair;
      this->Dots.segment(pair, query.keys) = dots.row(row).head(query.keys).transpose();
      this->ShiftDots.segment(pair, query.keys) = shiftDots[query.index];
      this->QuerySquares.segment(pair, query.keys) = querySquares[query.index];
      this->KeySquares.segment(pair, query.keys) = keySquares.segment(firstKey, query.keys);
      this->ShiftedSquares.segment(pair, query.keys) = shiftedSquares.segment(firstKey, query.keys);
    }
    begin += ToIndex(rows);
  }
}

/// Sums over every step-th block of pairs.
HeadCorrelation::Moments HeadCorrelation::MomentsOf(
  const CorrelationKind& kind, double logScale, std::int64_t step) const
{
  using Block = Eigen::Array<double, Eigen::Dynamic, 1, Eigen::ColMajor, PairBlock, 1>;
  const double u = std::exp(-2 * logScale); // 1 / c^2
  const Eigen::ArrayXd& squares = kind.translatedDistance ? this->ShiftedSquares : this->KeySquares;
  Moments sum;
  for (std::int64_t begin = 0; begin < this->PairCount(); begin += step * PairBlock)
  {
    const std::int64_t count = std::min(PairBlock, this->PairCount() - begin);
    const auto part = [&](const Eigen::ArrayXd& values) { return values.segment(begin, count); };
    const Block plain = part(this->Dots);
    const Block shifted = plain + part(this->ShiftDots);
    const Block& dots = kind.translatedDot ? shifted : plain;
    const Block ofQuery = part(this->QuerySquares) * u;
    const Block ofKey = part(squares) / u;
    const Block y =
      (ofQuery + ofKey - 2 * (kind.translatedDistance ? shifted : plain)).max(0.).sqrt();
    const Block dy = 2 * (ofKey - ofQuery) * (y / (2 * y.square() + Tiny)); // 0 where y is
    sum.count += static_cast<double>(count);
    sum.s += dots.sum();
    sum.ss += (dots * dots).sum();
    sum.y += y.sum();
    sum.dy += dy.sum();
    sum.yy += (y * y).sum();
    sum.ydy += (y * dy).sum();
    sum.sy += (dots * y).sum();
    sum.sdy += (dots * dy).sum();
  }
  return sum;
}

HeadCorrelation::Slope HeadCorrelation::SlopeAt(
  const CorrelationKind& kind, double logScale, std::int64_t step) const
{
  const Moments sum = this->MomentsOf(kind, logScale, step);
  const double s = sum.s / sum.count;
  const double y = sum.y / sum.count;
  const double dy = sum.dy / sum.count;
  const double varianceOfDot = sum.ss / sum.count - s * s;
  const double variance = sum.yy / sum.count - y * y;
  const double covariance = sum.sy / sum.count - s * y;
  constexpr double relative = 1e-13; // of rounding
  if (!(varianceOfDot > relative * sum.ss / sum.count) ||
      !(variance > relative * sum.yy / sum.count))
  {
    return { NotDefined, NotDefined };
  }
  const double deviation = std::sqrt(varianceOfDot * variance);
  const double slope = (sum.sdy / sum.count - s * dy) / deviation -
                       covariance / deviation * (sum.ydy / sum.count - y * dy) / variance;
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
  const std::int64_t step = std::max<std::int64_t>(this->PairCount() / GridPairs, 1);
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
  const Eigen::ArrayXd shifted = this->Dots + this->ShiftDots;
  const Eigen::ArrayXd distances =
    byCosine ? Eigen::ArrayXd(1 - shifted / (this->QuerySquares * this->ShiftedSquares).sqrt())
             : Eigen::ArrayXd(this->QuerySquares / (scale * scale) +
                              this->ShiftedSquares * (scale * scale) - 2 * shifted)
                 .max(0.)
                 .sqrt();
  std::vector<double> correlations;
  correlations.reserve(this->Queries.size());
  for (const Query& query : this->Queries)
  {
    const auto dots = this->Dots.segment(query.firstPair, query.keys);
    const auto ofQuery = distances.segment(query.firstPair, query.keys);
    correlations.push_back(query.keys < 2 || !ofQuery.isFinite().all()
                             ? NotDefined
                             : PearsonOf(RanksOf(dots), RanksOf(ofQuery)));
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
