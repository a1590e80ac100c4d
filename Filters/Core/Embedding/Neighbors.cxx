#include "Neighbors.h"

#include "DotProduct.h"
#include "Error.h"
#include "Index.h"
#include "InstructionSets.h"
#include "MatrixProduct.h"
#include "NeighborCandidates.h"
#include "ParallelProgress.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

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

double NormOf(const PointView& points, std::int64_t i)
{
  return std::sqrt(DotProduct(points.Row(i), points.Row(i), points.dimension));
}

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
  std::vector<std::pair<double, std::uint32_t>> sorted;
};

/// Finds the neighbors of blocks of points.
class NeighborSearch
{
public:
  NeighborSearch(const PointView& points, PointMetric metric, NeighborLists& lists)
    : Points(points)
    , IsCosine(metric != PointMetric::Euclidean)
    , Scored(this->IsCosine ? ScoreByCosine(points) : ScoreByDistance(points))
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
  bool IsCosine;
  ScoredPoints Scored;
  NeighborLists& Lists;

  void SortNeighbors(std::int64_t i, const NeighborCandidates& candidates, Scratch& scratch) const
  {
    const std::size_t count = candidates.Count();
    scratch.squares.resize(count);
    SquaredDistances(this->Points.Row(i), this->Scored.scales[i], this->Points.values,
      this->Scored.scales.data(), this->Points.dimension, candidates.Index(), count,
      scratch.squares.data());
    scratch.sorted.clear();
    for (std::size_t c = 0; c < count; ++c)
    {
      const std::uint32_t j = candidates.Index()[c];
      if (static_cast<std::int64_t>(j) != i)
      {
        scratch.sorted.emplace_back(this->DistanceOf(i, j, scratch.squares[c]), j);
      }
    }
    const auto nearest = scratch.sorted.begin() + this->Lists.count;
    std::sort(scratch.sorted.begin(), scratch.sorted.end());
    std::size_t to = i * this->Lists.count;
    for (auto neighbor = scratch.sorted.begin(); neighbor != nearest; ++neighbor, ++to)
    {
      this->Lists.index[to] = neighbor->second;
      this->Lists.distance[to] = static_cast<float>(neighbor->first);
    }
  }

  double DistanceOf(std::int64_t i, std::uint32_t j, double square) const
  {
    if (!this->IsCosine)
    {
      return std::sqrt(square);
    }
    const bool hasNoDirection = this->Scored.scales[i] == 0 || this->Scored.scales[j] == 0;
    return hasNoDirection ? 1 : square / 2;
  }
};

}

void CheckPoints(const PointView& points, const char* what)
{
  const std::string name = what;
  if (points.count < 1 || points.dimension < 1)
  {
    throw OptionError(name + ": expected points of at least one dimension, found " +
                      std::to_string(points.count) + " of dimension " +
                      std::to_string(points.dimension) + ".");
  }
  for (std::int64_t i = 0; i < points.count * points.dimension; ++i)
  {
    if (!std::isfinite(points.values[i]))
    {
      throw OptionError(name + ": expected finite coordinates, found " +
                        std::to_string(points.values[i]) + " in point " +
                        std::to_string(i / points.dimension) + ", component " +
                        std::to_string(i % points.dimension) + ".");
    }
  }
}

std::vector<double> ScalesOf(const PointView& points, PointMetric metric)
{
  std::vector<double> scales(points.count, 1);
  for (std::int64_t i = 0; i < points.count && metric != PointMetric::Euclidean; ++i)
  {
    const double norm = NormOf(points, i);
    scales[i] = norm > 0 ? 1 / norm : 0;
  }
  return scales;
}

NeighborLists FindNeighbors(
  const PointView& points, PointMetric metric, int count, int threads, const Progress& progress)
{
  CheckPoints(points, "neighbors");
  if (count < 1 || count >= points.count)
  {
    throw OptionError("neighbors: expected a number from 1 to " + std::to_string(points.count - 1) +
                      ", one less than the points, found " + std::to_string(count) + ".");
  }
  InitializeTarget();
  NeighborLists lists;
  lists.points = points.count;
  lists.count = count;
  lists.index.resize(points.count * count);
  lists.distance.resize(lists.index.size());
  const SingleThreadedBlas blas;
  const NeighborSearch search(points, metric, lists);
  const std::int64_t blocks = (points.count + RowBlock - 1) / RowBlock;
  ParallelFor(
    blocks, threads, progress, [&](std::int64_t block) { search.Search(block * RowBlock); });
  return lists;
}

}
