#include "ExtendedNeighbors.h"

#include "Index.h"
#include "InstructionSets.h"
#include "NeighborCandidates.h"
#include "Parallel.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace atlas
{
namespace
{

/// Points in groups that a thread takes at once.
constexpr std::int64_t Group = 1024;

/// Finds the neighbors of one point after another.
class Extension
{
public:
  Extension(const PointView& points, PointMetric metric, const NeighborLists& from)
    : Points(points)
    , IsCosine(metric != PointMetric::Euclidean)
    , From(from)
    , Scales(ScalesOf(points, metric))
  {
  }

  void Extend(std::int64_t begin, std::int64_t end, NeighborLists& to) const
  {
    std::vector<std::int64_t> seenBy(this->Points.count, -1);
    std::vector<std::uint32_t> others;
    std::vector<double> squares;
    std::vector<std::pair<double, std::uint32_t>> sorted;
    for (std::int64_t i = begin; i < end; ++i)
    {
      this->Collect(i, seenBy, others);
      squares.resize(others.size());
      SquaredDistances(this->Points.Row(i), this->Scales[i], this->Points.values,
        this->Scales.data(), this->Points.dimension, others.data(), others.size(), squares.data());
      sorted.clear();
      for (std::size_t k = 0; k < others.size(); ++k)
      {
        sorted.emplace_back(this->DistanceOf(i, others[k], squares[k]), others[k]);
      }
      const std::size_t wanted = to.count;
      if (sorted.size() > wanted)
      {
        std::nth_element(sorted.begin(), sorted.begin() + to.count, sorted.end());
        sorted.resize(wanted);
      }
      std::sort(sorted.begin(), sorted.end());
      sorted.resize(wanted, sorted.back());
      for (std::size_t k = 0; k < wanted; ++k)
      {
        to.index[ToIndex(i) * wanted + k] = sorted[k].second;
        to.distance[ToIndex(i) * wanted + k] = static_cast<float>(sorted[k].first);
      }
    }
  }

private:
  const PointView& Points;
  bool IsCosine;
  const NeighborLists& From;
  std::vector<double> Scales;

  /// The neighbors of a point and theirs, each once.
  void Collect(
    std::int64_t i, std::vector<std::int64_t>& seenBy, std::vector<std::uint32_t>& others) const
  {
    seenBy[i] = i;
    others.clear();
    const auto addThoseOf = [&](std::int64_t point)
    {
      for (std::int64_t e = point * this->From.count; e < (point + 1) * this->From.count; ++e)
      {
        const std::uint32_t other = this->From.index[e];
        if (std::exchange(seenBy[other], i) != i)
        {
          others.push_back(other);
        }
      }
    };
    addThoseOf(i);
    const std::size_t own = others.size();
    for (std::size_t k = 0; k < own; ++k)
    {
      addThoseOf(others[k]);
    }
  }

  double DistanceOf(std::int64_t i, std::uint32_t j, double square) const
  {
    if (!this->IsCosine)
    {
      return std::sqrt(square);
    }
    const bool hasNoDirection = this->Scales[i] == 0 || this->Scales[j] == 0;
    return hasNoDirection ? 1 : square / 2;
  }
};

}

NeighborLists ExtendNeighbors(const PointView& points, PointMetric metric,
  const NeighborLists& neighbors, int count, int threads)
{
  InitializeTarget();
  NeighborLists extended;
  extended.points = points.count;
  extended.count = count;
  extended.index.resize(points.count * count);
  extended.distance.resize(extended.index.size());
  const Extension extension(points, metric, neighbors);
  ParallelFor((points.count + Group - 1) / Group, threads,
    [&](std::int64_t group)
    {
      const std::int64_t begin = group * Group;
      extension.Extend(begin, std::min(begin + Group, points.count), extended);
    });
  return extended;
}

}
