#include "ExtendedNeighbors.h"

#include "NeighborCandidates.h"
#include "Numerics/InstructionSets.h"
#include "Numerics/ParallelBlocks.h"

#include <algorithm>
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
    : Metric(metric)
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
    FoundNeighbors found;
    for (std::int64_t place = begin; place < end; ++place)
    {
      this->Collect(place, seenBy, others);
      SquaredDistances(
        { this->Values.data(), static_cast<std::int64_t>(this->Order.size()), this->Dimension },
        this->Scales, place, others.data(), others.size(), squares);
      found.clear();
      for (std::size_t k = 0; k < others.size(); ++k)
      {
        found.emplace_back(DistanceOf(squares[k], this->Metric), this->Order[others[k]]);
      }
      KeepNearest(found, this->Order[place], to);
    }
  }

private:
  PointMetric Metric;
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
};

}

NeighborLists ExtendNeighbors(const PointView& points, PointMetric metric,
  const NeighborLists& neighbors, int count, int threads)
{
  InitializeTarget();
  NeighborLists extended = NeighborLists::Of(points.count, count);
  const Extension extension(points, metric, neighbors);
  ForBlocks(points.count, Group, threads,
    [&](std::int64_t begin, std::int64_t end) { extension.Extend(begin, end, extended); });
  return extended;
}

}
