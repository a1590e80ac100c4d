#include "Neighbors.h"

#include "Base/Error.h"
#include "Base/ParallelProgress.h"
#include "Internal/NeighborCandidates.h"
#include "Numerics/DotProduct.h"
#include "Numerics/InstructionSets.h"
#include "Numerics/MatrixProduct.h"
#include "Numerics/ParallelBlocks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace atlas
{
namespace
{

/// Points whose neighbors are sought together, and those that they are compared with at once: the
/// scores stay in the cache.
constexpr std::int64_t RowBlock = 128;
constexpr std::int64_t ColumnBlock = 1024;

/// Points in a form in which the nearest have the largest scores: products of rows of `left` and
/// `right` [count, inner], packed.
struct ScoredPoints
{
  std::int64_t inner = 0;
  std::vector<float> left; ///< empty: the same as right
  std::vector<float> right;
  std::vector<double> scales; ///< of each point, before distances are computed
  float margin = 0;           ///< twice the largest rounding error of a score

  const float* Left() const { return (this->left.empty() ? this->right : this->left).data(); }
};

/// A bound for the relative rounding error of a sum of `terms` products, and one more.
double RoundingOf(std::int64_t terms)
{
  return static_cast<double>(terms + 3) * 0.5 *
         static_cast<double>(std::numeric_limits<float>::epsilon());
}

/// Unit vectors; the score is the cosine.
ScoredPoints ScoreByCosine(const PointView& points)
{
  ScoredPoints scored;
  scored.inner = points.dimension;
  scored.right.resize(points.count * points.dimension);
  scored.scales = ScalesOf(points, PointMetric::Cosine);
  for (std::int64_t i = 0; i < points.count; ++i)
  {
    const double scale = scored.scales[i];
    for (std::int64_t c = 0; c < points.dimension; ++c)
    {
      scored.right[i * points.dimension + c] = static_cast<float>(points.Row(i)[c] * scale);
    }
  }
  scored.margin = static_cast<float>(2 * RoundingOf(points.dimension));
  return scored;
}

/// A power of two by which coordinates are multiplied so that their products are finite floats: 1
/// unless some are farther than 2^40 from the mean.
double FactorOf(const PointView& points, const std::vector<double>& mean)
{
  double farthest = 0;
  for (std::int64_t i = 0; i < points.count * points.dimension; ++i)
  {
    farthest = std::max(farthest, std::abs(points.values[i] - mean[i % points.dimension]));
  }
  constexpr int reach = 40;
  return farthest > std::ldexp(1, reach) ? std::ldexp(1, reach - std::ilogb(farthest)) : 1;
}

/// Centered vectors; the score is x . y - |y|^2 / 2.
ScoredPoints ScoreByDistance(const PointView& points)
{
  ScoredPoints scored;
  scored.inner = points.dimension + 1;
  scored.left.resize(points.count * scored.inner);
  scored.right.resize(scored.left.size());
  scored.scales.assign(points.count, 1);
  std::vector<double> mean(points.dimension);
  for (std::int64_t i = 0; i < points.count * points.dimension; ++i)
  {
    mean[i % points.dimension] += points.values[i] / static_cast<double>(points.count);
  }
  const double factor = FactorOf(points, mean);
  double largest = 0;
  for (std::int64_t i = 0; i < points.count; ++i)
  {
    float* left = scored.left.data() + i * scored.inner;
    float* right = scored.right.data() + i * scored.inner;
    double square = 0;
    for (std::int64_t c = 0; c < points.dimension; ++c)
    {
      const double centered = (points.Row(i)[c] - mean[c]) * factor;
      left[c] = right[c] = static_cast<float>(centered);
      square += centered * centered;
    }
    left[points.dimension] = 1;
    right[points.dimension] = static_cast<float>(-square / 2);
    largest = std::max(largest, square);
  }
  // The rounding of the coordinates themselves changes the scores about as much as one more term.
  scored.margin = static_cast<float>(4 * largest * RoundingOf(scored.inner));
  return scored;
}

/// What one thread needs for a block of rows.
struct Scratch
{
  std::vector<float> scores = std::vector<float>(RowBlock * ColumnBlock);
  std::vector<NeighborCandidates> candidates = std::vector<NeighborCandidates>(RowBlock);
  std::vector<double> squares;
  FoundNeighbors found;
};

/// Finds the neighbors of blocks of points.
class NeighborSearch
{
public:
  NeighborSearch(const PointView& points, PointMetric metric, NeighborLists& lists)
    : Points(points)
    , Metric(metric)
    , Scored(metric == PointMetric::Euclidean ? ScoreByDistance(points) : ScoreByCosine(points))
    , Lists(lists)
  {
  }

  void Search(std::int64_t begin) const
  {
    static thread_local Scratch scratch;
    const std::int64_t end = std::min(begin + RowBlock, this->Points.count);
    for (std::int64_t i = begin; i < end; ++i)
    {
      // One more than asked for, since the point itself is among them.
      scratch.candidates[i - begin].Begin(this->Lists.count + 1, this->Scored.margin);
    }
    const std::int64_t inner = this->Scored.inner;
    for (std::int64_t first = 0; first < this->Points.count; first += ColumnBlock)
    {
      const std::int64_t columns = std::min(ColumnBlock, this->Points.count - first);
      MultiplyMatrices(end - begin, columns, inner, 1,
        { this->Scored.Left() + begin * inner, inner },
        { this->Scored.right.data() + first * inner, inner, true }, scratch.scores.data(),
        ColumnBlock);
      for (std::int64_t row = 0; row < end - begin; ++row)
      {
        scratch.candidates[row].Append(
          scratch.scores.data() + row * ColumnBlock, columns, static_cast<std::uint32_t>(first));
      }
    }
    for (std::int64_t i = begin; i < end; ++i)
    {
      NeighborCandidates& candidates = scratch.candidates[i - begin];
      candidates.Finish();
      this->SortNeighbors(i, candidates, scratch);
    }
  }

private:
  const PointView& Points;
  PointMetric Metric;
  ScoredPoints Scored;
  NeighborLists& Lists;

  void SortNeighbors(std::int64_t i, const NeighborCandidates& candidates, Scratch& scratch) const
  {
    const std::uint32_t* index = candidates.Index();
    SquaredDistances(
      this->Points, this->Scored.scales, i, index, candidates.Count(), scratch.squares);
    scratch.found.clear();
    for (std::size_t c = 0; c < candidates.Count(); ++c)
    {
      if (index[c] != i)
      {
        scratch.found.emplace_back(DistanceOf(scratch.squares[c], this->Metric), index[c]);
      }
    }
    KeepNearest(scratch.found, i, this->Lists);
  }
};

}

void CheckPoints(const PointView& points, const char* what)
{
  ThrowIf<OptionError>(points.count < 1 || points.dimension < 1, what,
    ": expected points of at least one dimension, found ", points.count, " of dimension ",
    points.dimension, ".");
  const float* end = points.values + points.count * points.dimension;
  const float* wrong =
    std::find_if(points.values, end, [](float value) { return !std::isfinite(value); });
  if (wrong != end)
  {
    throw OptionError(what, ": expected finite coordinates, found ", *wrong, " in point ",
      (wrong - points.values) / points.dimension, ", component ",
      (wrong - points.values) % points.dimension, ".");
  }
}

std::vector<double> ScalesOf(const PointView& points, PointMetric metric)
{
  std::vector<double> scales(points.count, 1);
  for (std::int64_t i = 0; i < points.count && metric != PointMetric::Euclidean; ++i)
  {
    const double norm = std::sqrt(DotProduct(points.Row(i), points.Row(i), points.dimension));
    scales[i] = norm > 0 ? 1 / norm : 0;
  }
  return scales;
}

NeighborLists FindNeighbors(
  const PointView& points, PointMetric metric, int count, int threads, const Progress& progress)
{
  CheckPoints(points, "neighbors");
  ThrowIf<OptionError>(count < 1 || count >= points.count,
    "neighbors: expected a number from 1 to ", points.count - 1,
    ", one less than the points, found ", count, ".");
  InitializeTarget();
  NeighborLists lists = NeighborLists::Of(points.count, count);
  const SingleThreadedBlas blas;
  const NeighborSearch search(points, metric, lists);
  ParallelFor(BlockCount(points.count, RowBlock), threads, progress,
    [&](std::int64_t block) { search.Search(block * RowBlock); });
  return lists;
}

}
