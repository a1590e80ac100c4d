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

/// The points in an order in which near ones are mostly near each other: those of a list follow
/// each other, and then those of the list of the last of them, unless they came before.
std::vector<std::uint32_t> OrderAlongLists(const NeighborLists& lists)
{
  std::vector<std::uint32_t> order;
  order.reserve(lists.points);
  std::vector<char> isListed(lists.points, 0);
  std::vector<std::uint32_t> open;
  const auto add = [&](std::uint32_t point)
  {
    if (isListed[point] == 0)
    {
      isListed[point] = 1;
      order.push_back(point);
      open.push_back(point);
    }
  };
  for (std::int64_t first = 0; first < lists.points; ++first)
  {
    add(static_cast<std::uint32_t>(first));
    while (!open.empty())
    {
      const std::int64_t row = static_cast<std::int64_t>(open.back()) * lists.count;
      open.pop_back();
      std::for_each_n(lists.index.begin() + row, lists.count, add);
    }
  }
  return order;
}

/// Finds the neighbors of one point after another. Points are in places such that near ones are
/// near in memory.
class Extension
{
public:
  Extension(const PointView& points, PointMetric metric, const NeighborLists& from)
    : IsCosine(metric != PointMetric::Euclidean)
    , Dimension(points.dimension)
    , Known(from.count)
    , Order(OrderAlongLists(from))
    , Values(points.count * points.dimension)
    , Scales(points.count)
    , Lists(from.index.size())
  {
    std::vector<std::uint32_t> places(this->Order.size());
    for (std::size_t place = 0; place < places.size(); ++place)
    {
      places[this->Order[place]] = static_cast<std::uint32_t>(place);
    }
    const std::vector<double> scales = ScalesOf(points, metric);
    for (std::int64_t place = 0; place < points.count; ++place)
    {
      const std::int64_t point = this->Order[place];
      this->Scales[place] = scales[point];
      std::copy_n(
        points.Row(point), this->Dimension, this->Values.begin() + place * this->Dimension);
      const auto list = from.index.begin() + point * this->Known;
      std::transform(list, list + this->Known, this->Lists.begin() + place * this->Known,
        [&places](std::uint32_t neighbor) { return places[neighbor]; });
    }
  }

  void Extend(std::int64_t begin, std::int64_t end, NeighborLists& to) const
  {
    std::vector<std::uint32_t> seenBy(this->Order.size(), 0); // places, each plus 1
    std::vector<std::uint32_t> others;
    std::vector<double> squares;
    std::vector<std::pair<double, std::uint32_t>> sorted;
    for (std::int64_t place = begin; place < end; ++place)
    {
      this->Collect(place, seenBy, others);
      squares.resize(others.size());
      SquaredDistances(this->Values.data() + place * this->Dimension, this->Scales[place],
        this->Values.data(), this->Scales.data(), this->Dimension, others.data(), others.size(),
        squares.data());
      sorted.clear();
      for (std::size_t k = 0; k < others.size(); ++k)
      {
        sorted.emplace_back(this->DistanceOf(place, others[k], squares[k]), this->Order[others[k]]);
      }
      const std::size_t wanted = to.count;
      if (sorted.size() > wanted)
      {
        std::nth_element(sorted.begin(), sorted.begin() + to.count, sorted.end());
        sorted.resize(wanted);
      }
      std::sort(sorted.begin(), sorted.end());
      sorted.resize(wanted, sorted.back());
      const std::size_t row = this->Order[place] * wanted;
      for (std::size_t k = 0; k < wanted; ++k)
      {
        to.index[row + k] = sorted[k].second;
        to.distance[row + k] = static_cast<float>(sorted[k].first);
      }
    }
  }

private:
  bool IsCosine;
  std::int64_t Dimension;
  std::int64_t Known;               ///< neighbors of each point
  std::vector<std::uint32_t> Order; ///< the point in each place
  std::vector<float> Values;        ///< of the points in their places
  std::vector<double> Scales;
  std::vector<std::uint32_t> Lists; ///< [places, Known]: the places of neighbors

  /// The neighbors of a place and theirs, each once.
  void Collect(std::int64_t place, std::vector<std::uint32_t>& seenBy,
    std::vector<std::uint32_t>& others) const
  {
    const auto mark = static_cast<std::uint32_t>(place + 1);
    seenBy[place] = mark;
    others.clear();
    const auto addThoseOf = [&](std::int64_t of)
    {
      for (std::int64_t e = of * this->Known; e < (of + 1) * this->Known; ++e)
      {
        const std::uint32_t other = this->Lists[e];
        if (std::exchange(seenBy[other], mark) != mark)
        {
          others.push_back(other);
        }
      }
    };
    addThoseOf(place);
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
