#include "EmbeddingQuality.h"

#include "Base/Error.h"
#include "Base/Index.h"
#include "Neighbors.h"
#include "Numerics/MatrixProduct.h"
#include "Numerics/ParallelBlocks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <Eigen/Core>

namespace atlas
{
namespace
{

/// Points are compared with all others in blocks of at most this size, and of at most this number
/// of distances.
constexpr std::int64_t MostBlockRows = 32;
constexpr std::int64_t MostBlockDistances = 4'000'000;

void CheckQualityOptions(
  const PointView& points, const float* layout, int dimensions, int k, std::int64_t sample)
{
  CheckPoints(points, "Quality of an embedding");
  ThrowIf<OptionError>(dimensions < 1 || sample < 0,
    "Quality of an embedding: expected at least 1 dimension and no negative sample, found ",
    dimensions, " and ", sample, ".");
  CheckPoints({ layout, points.count, dimensions }, "Layout of an embedding");
  ThrowIf<OptionError>(k < 1 || k >= points.count || 3 * std::int64_t{ k } + 1 >= 2 * points.count,
    "Quality of an embedding: expected at least 1 neighbor and fewer than two thirds of the ",
    points.count, " points, found ", k, ".");
}

/// How many values are below the limit. Compilers do the blocks in vectors.
std::int64_t CountBelow(const float* values, std::int64_t count, float limit)
{
  constexpr std::int64_t block = 64;
  std::int64_t below = 0;
  std::int64_t i = 0;
  for (; i + block <= count; i += block)
  {
    std::int32_t ofBlock = 0;
    for (std::int64_t j = 0; j < block; ++j)
    {
      ofBlock += values[i + j] < limit ? 1 : 0;
    }
    below += ofBlock;
  }
  for (; i < count; ++i)
  {
    below += values[i] < limit ? 1 : 0;
  }
  return below;
}

/// The k nearest by `distance`, in ascending order; ties go to the lower index.
void FindNearest(
  const float* distance, std::int64_t count, int k, std::vector<std::uint32_t>& nearest)
{
  constexpr std::int64_t step = 64;
  nearest.clear();
  float limit = std::numeric_limits<float>::infinity();
  for (std::int64_t begin = 0; begin < count; begin += step)
  {
    const std::int64_t end = std::min(begin + step, count);
    if (CountBelow(distance + begin, end - begin, limit) == 0)
    {
      continue;
    }
    for (std::int64_t j = begin; j < end; ++j)
    {
      if (!(distance[j] < limit))
      {
        continue;
      }
      const auto place = std::upper_bound(nearest.begin(), nearest.end(), distance[j],
        [&](float value, std::uint32_t other) { return value < distance[other]; });
      nearest.insert(place, static_cast<std::uint32_t>(j));
      if (nearest.size() > ToIndex(k))
      {
        nearest.pop_back();
      }
      limit = nearest.size() == ToIndex(k) ? distance[nearest.back()] : limit;
    }
  }
}

/// The rank of `point` by `distance`, from 1 on. Equal distances before it count.
std::int64_t RankOf(const float* distance, std::int64_t count, std::uint32_t point)
{
  const float own = distance[point];
  const float above = std::nextafter(own, std::numeric_limits<float>::infinity());
  return 1 + CountBelow(distance, point, above) + CountBelow(distance + point, count - point, own);
}

/// Rows whose products order the distances from each of them.
class ComparedRows
{
public:
  ComparedRows(const PointView& points, PointMetric metric)
    : Dimension(points.dimension)
    , Rows(points.values, points.values + points.count * points.dimension)
    , Offsets(points.count, 0)
  {
    using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    Eigen::Map<Matrix> rows(this->Rows.data(), points.count, points.dimension);
    const Eigen::RowVectorXd mean = rows.cast<double>().colwise().mean();
    for (std::int64_t i = 0; i < points.count; ++i)
    {
      Eigen::RowVectorXd row = rows.row(i).cast<double>();
      if (metric == PointMetric::Euclidean)
      {
        row -= mean; // which leaves products small
        this->Offsets[i] = static_cast<float>(row.squaredNorm() / 2);
      }
      else
      {
        row /= std::max(row.norm(), std::numeric_limits<double>::min());
      }
      rows.row(i) = row.cast<float>();
    }
  }

  std::int64_t Count() const { return this->Offsets.size(); }

  /// Numbers [chosen, Count()], those of a row in the order of the distances from its point:
  /// |y|^2 / 2 - x y, or - x y of unit vectors. A point is infinitely far from itself.
  void Compare(const std::vector<std::int64_t>& chosen, float* out) const
  {
    const std::int64_t rows = chosen.size();
    std::vector<float> left;
    for (const std::int64_t point : chosen)
    {
      const float* row = this->Rows.data() + point * this->Dimension;
      left.insert(left.end(), row, row + this->Dimension);
    }
    for (std::int64_t row = 0; row < rows; ++row)
    {
      std::copy(this->Offsets.begin(), this->Offsets.end(), out + row * this->Count());
    }
    MultiplyMatrices(rows, this->Count(), this->Dimension, -1, { left.data(), this->Dimension },
      { this->Rows.data(), this->Dimension, true }, out, this->Count(), true);
    for (std::int64_t row = 0; row < rows; ++row)
    {
      out[row * this->Count() + chosen[row]] = std::numeric_limits<float>::infinity();
    }
  }

private:
  std::int64_t Dimension;
  std::vector<float> Rows;
  std::vector<float> Offsets;
};

/// What the points of one block add: the sums of excess ranks and of neighbors kept.
struct BlockSums
{
  std::int64_t excess = 0;
  std::int64_t kept = 0;
};

BlockSums MeasureBlock(const ComparedRows& points, const ComparedRows& places,
  const std::vector<std::int64_t>& chosen, int k, bool withRanks)
{
  const std::int64_t count = points.Count();
  std::vector<float> distances(chosen.size() * ToIndex(count));
  std::vector<float> distancesInLayout(distances.size());
  points.Compare(chosen, distances.data());
  places.Compare(chosen, distancesInLayout.data());
  std::vector<std::uint32_t> nearest;
  std::vector<std::uint32_t> placed;
  BlockSums sums;
  for (std::size_t row = 0; row < chosen.size(); ++row)
  {
    const float* distance = distances.data() + row * ToIndex(count);
    FindNearest(distance, count, k, nearest);
    FindNearest(distancesInLayout.data() + row * ToIndex(count), count, k, placed);
    for (const std::uint32_t other : placed)
    {
      const bool kept = std::find(nearest.begin(), nearest.end(), other) != nearest.end();
      sums.kept += kept ? 1 : 0;
      sums.excess += kept || !withRanks ? 0 : RankOf(distance, count, other) - k;
    }
  }
  return sums;
}

/// The trustworthiness is that of perfect ranks without ranks, which take most of the time.
EmbeddingQuality Measure(const PointView& points, PointMetric metric, const float* layout,
  int dimensions, int k, int threads, std::int64_t sample, bool withRanks)
{
  CheckQualityOptions(points, layout, dimensions, k, sample);
  const std::int64_t count = points.count;
  const std::int64_t chosen = sample == 0 ? count : std::min(sample, count);
  const std::int64_t blockRows =
    std::clamp<std::int64_t>(MostBlockDistances / count, 1, MostBlockRows);
  const SingleThreadedBlas single;
  const ComparedRows rows(points, metric);
  const ComparedRows places({ layout, count, dimensions }, PointMetric::Euclidean);
  std::vector<BlockSums> blocks(BlockCount(chosen, blockRows));
  ForBlocks(chosen, blockRows, threads,
    [&](std::int64_t begin, std::int64_t end)
    {
      std::vector<std::int64_t> ofBlock;
      for (std::int64_t i = begin; i < end; ++i)
      {
        ofBlock.push_back(i * count / chosen);
      }
      blocks[begin / blockRows] = MeasureBlock(rows, places, ofBlock, k, withRanks);
    });
  BlockSums sums;
  for (const BlockSums& block : blocks)
  {
    sums.excess += block.excess;
    sums.kept += block.kept;
  }
  const double pairs = static_cast<double>(chosen) * k;
  const double mostExcess = pairs * static_cast<double>(2 * count - 3 * std::int64_t{ k } - 1);
  return { 1 - 2 * static_cast<double>(sums.excess) / mostExcess,
    static_cast<double>(sums.kept) / pairs };
}

}

EmbeddingQuality MeasureEmbedding(const PointView& points, PointMetric metric, const float* layout,
  int dimensions, int k, int threads, std::int64_t sample)
{
  return Measure(points, metric, layout, dimensions, k, threads, sample, true);
}

double NeighborsKept(const PointView& points, PointMetric metric, const float* layout,
  int dimensions, int k, int threads, std::int64_t sample)
{
  return Measure(points, metric, layout, dimensions, k, threads, sample, false).neighborsKept;
}

}
