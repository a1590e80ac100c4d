#include "Umap.h"

#include "ApproximateNeighbors.h"
#include "Base/Error.h"
#include "Base/Index.h"
#include "Internal/CrossEntropy.h"
#include "Internal/FuzzyGraph.h"
#include "Internal/HashedNumbers.h"
#include "Internal/LayoutNeighbors.h"
#include "Internal/SpectralLayout.h"
#include "Internal/StartLayout.h"
#include "Internal/UmapCurve.h"
#include "Internal/UmapForces.h"
#include "Numerics/ParallelBlocks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace atlas
{
namespace
{

/// Groups of places are given to threads together by this number.
constexpr std::int64_t GroupsOfTask = 64;
/// The most places that repel each place in one step.
constexpr std::int64_t MostShifts = 96;
/// The learning rate at first. That of the authors' program, 1, moves ends of edges one after the
/// other and so has less effect than the same rate for all edges at once.
constexpr float FirstRate = 0.5F;
/// The momentum halfway. Without it, parts of the layout move slowly as a whole, since edges within
/// them hold each of their points back. At first it would tear parts from each other.
constexpr float LargestMomentum = 0.99F;
/// How many places are repelled for one that is attracted.
constexpr float RepulsionsPerEdge = 5;
/// Places are sorted by their number of edges within ranges of this size, so that those of a group
/// have about equally many.
constexpr std::int64_t SortedRange = 1024;

int EpochCount(const UmapOptions& options, std::int64_t points)
{
  return options.epochs > 0 ? options.epochs : points <= 10'000 ? 500 : 200;
}

/// The points in the order in which they are moved: at random, but within short ranges by the
/// number of their edges.
std::vector<std::uint32_t> OrderPoints(const FuzzyGraph& graph, std::uint64_t seed)
{
  const HashedNumbers numbers(seed, 3);
  std::vector<std::uint32_t> order(graph.points);
  std::iota(order.begin(), order.end(), 0U);
  for (std::size_t i = order.size(); i > 1; --i)
  {
    std::swap(order[i - 1], order[numbers.Below(i, i)]);
  }
  const auto edges = [&graph](std::uint32_t i) { return graph.begin[i + 1] - graph.begin[i]; };
  for (std::int64_t begin = 0; begin < graph.points; begin += SortedRange)
  {
    const std::int64_t end = std::min(begin + SortedRange, graph.points);
    std::sort(order.begin() + begin, order.begin() + end, [&edges](std::uint32_t i, std::uint32_t j)
      { return edges(i) != edges(j) ? edges(i) < edges(j) : i < j; });
  }
  return order;
}

/// The edges of a graph whose points are in these places. Weights are relative to the largest.
GroupedEdges GroupEdges(const FuzzyGraph& graph, const std::vector<std::uint32_t>& order)
{
  std::vector<std::int32_t> placeOf(order.size());
  for (std::size_t place = 0; place < order.size(); ++place)
  {
    placeOf[order[place]] = static_cast<std::int32_t>(place);
  }
  const float largest = *std::max_element(graph.value.begin(), graph.value.end());
  const std::size_t group = UmapGroup;
  GroupedEdges edges;
  edges.begin.push_back(0);
  edges.repulsion.resize((order.size() + group - 1) / group * group, 0);
  for (std::size_t first = 0; first < order.size(); first += group)
  {
    const std::size_t last = std::min(first + group, order.size()) - 1;
    std::int64_t columns = 0;
    for (std::size_t place = first; place <= last; ++place)
    {
      columns = std::max(columns, graph.begin[order[place] + 1] - graph.begin[order[place]]);
    }
    const std::size_t offset = edges.target.size();
    edges.target.resize(offset + ToIndex(columns) * group);
    edges.weight.resize(edges.target.size(), 0);
    for (std::size_t at = offset; at < edges.target.size(); ++at) // for those that are missing
    {
      edges.target[at] = static_cast<std::int32_t>(std::min(first + at % group, last));
    }
    for (std::size_t place = first; place <= last; ++place)
    {
      std::size_t at = offset + place - first;
      for (std::size_t e = graph.begin[order[place]]; e < ToIndex(graph.begin[order[place] + 1]);
        ++e, at += group)
      {
        edges.target[at] = placeOf[graph.index[e]];
        edges.weight[at] = graph.value[e] / largest;
        edges.repulsion[place] += edges.weight[at];
      }
    }
    edges.begin.push_back(static_cast<std::int64_t>(edges.target.size() / group));
  }
  return edges;
}

/// The layout while it is optimized.
class Optimization
{
public:
  /// begun: the part of all time that has passed.
  Optimization(const FuzzyGraph& graph, const UmapOptions& options, const std::vector<float>& start,
    double begun)
    : Graph(graph)
    , Options(options)
    , Begun(begun)
    , Epochs(EpochCount(options, graph.points))
    , Curve(FitUmapCurve(options.minimumDistance, options.spread))
    , Numbers(options.seed, 4)
    , Order(OrderPoints(graph, options.seed))
    , Edges(GroupEdges(graph, this->Order))
  {
    const std::size_t places = this->Edges.repulsion.size();
    for (int axis = 0; axis < options.dimensions; ++axis)
    {
      std::vector<float>& ofAxis = this->Places[axis];
      ofAxis.resize(places + ToIndex(graph.points + UmapGroup));
      for (std::size_t place = 0; place < this->Order.size(); ++place)
      {
        ofAxis[place] = start[this->Order[place] * ToIndex(options.dimensions) + ToIndex(axis)];
      }
    }
    this->RepeatPlaces();
    this->Next = this->Places;
  }

  /// Runs until the end or until progress says stop.
  Layout Run()
  {
    Layout layout;
    layout.stopped = !this->Report(0);
    while (!layout.stopped && layout.iterations < this->Epochs)
    {
      this->Move(layout.iterations);
      ++layout.iterations;
      const bool reported = layout.iterations % this->Options.interval == 0;
      layout.stopped = reported && !this->Report(layout.iterations);
    }
    layout.points = this->Centered();
    layout.divergence = this->Divergence(layout.points);
    return layout;
  }

private:
  const FuzzyGraph& Graph;
  const UmapOptions& Options;
  double Begun;
  int Epochs;
  UmapCurve Curve;
  HashedNumbers Numbers;
  std::vector<std::uint32_t> Order;
  GroupedEdges Edges;
  PlaceCoordinates Places;
  PlaceCoordinates Next; ///< those before the last step, until they are written

  /// One shift from each of as many equal parts of all. Few points repel each other all.
  std::vector<std::int64_t> DrawShifts(int epoch) const
  {
    const std::int64_t all = this->Graph.points - 1;
    const std::int64_t count = std::min(MostShifts, all);
    std::vector<std::int64_t> shifts;
    for (std::int64_t k = 0; k < count; ++k)
    {
      const std::int64_t low = k * all / count;
      const std::int64_t high = (k + 1) * all / count;
      const auto number = static_cast<std::uint64_t>(epoch * count + k);
      shifts.push_back(1 + low +
                       static_cast<std::int64_t>(
                         this->Numbers.Below(number, static_cast<std::uint64_t>(high - low))));
    }
    return shifts;
  }

  void Move(int epoch)
  {
    UmapStep step;
    step.curve = this->Curve;
    step.dimensions = this->Options.dimensions;
    const float left = static_cast<float>(this->Epochs - epoch) / static_cast<float>(this->Epochs);
    step.rate = FirstRate * left;
    step.momentum = LargestMomentum * 4 * left * (1 - left);
    step.shifts = this->DrawShifts(epoch);
    step.repulsion = RepulsionsPerEdge / static_cast<float>(step.shifts.size());
    const auto groups = static_cast<std::int64_t>(this->Edges.begin.size()) - 1;
    ForBlocks(groups, GroupsOfTask, this->Options.threads, [&](std::int64_t begin, std::int64_t end)
      { MovePlaces(this->Edges, step, begin, end, this->Places, this->Next); });
    std::swap(this->Places, this->Next);
    this->RepeatPlaces();
  }

  void RepeatPlaces()
  {
    for (std::vector<float>& axis : this->Places)
    {
      for (std::size_t place = this->Order.size(); place < axis.size(); ++place)
      {
        axis[place] = axis[place - this->Order.size()];
      }
    }
  }

  /// The layout in the order of the points, with its mean at the origin.
  std::vector<float> Centered() const
  {
    const std::size_t dimensions = this->Options.dimensions;
    std::vector<float> points(this->Order.size() * dimensions);
    for (std::size_t c = 0; c < dimensions; ++c)
    {
      const std::vector<float>& axis = this->Places[c];
      const double mean = std::accumulate(axis.begin(),
                            axis.begin() + static_cast<std::int64_t>(this->Order.size()), 0.) /
                          static_cast<double>(this->Order.size());
      for (std::size_t place = 0; place < this->Order.size(); ++place)
      {
        points[this->Order[place] * dimensions + c] =
          static_cast<float>(static_cast<double>(axis[place]) - mean);
      }
    }
    return points;
  }

  double Divergence(const std::vector<float>& points) const
  {
    constexpr std::int64_t others = 16;
    return EvaluateCrossEntropy(this->Graph, points.data(), this->Options.dimensions, this->Curve,
      others, this->Options.threads)
      .Total();
  }

  bool Report(int epoch) const
  {
    if (!this->Options.progress)
    {
      return true;
    }
    const std::vector<float> points = this->Centered();
    const double share = epoch / std::max<double>(this->Epochs, 1);
    return this->Options.progress(
      { this->Begun + (1 - this->Begun) * share, epoch, this->Divergence(points), points.data() });
  }
};

NeighborLists FirstNeighbors(const NeighborLists& neighbors, int count)
{
  NeighborLists first = NeighborLists::Of(neighbors.points, count);
  for (std::int64_t i = 0; i < neighbors.points; ++i)
  {
    const std::int64_t row = i * neighbors.count;
    std::copy_n(neighbors.index.begin() + row, count, first.index.begin() + i * count);
    std::copy_n(neighbors.distance.begin() + row, count, first.distance.begin() + i * count);
  }
  return first;
}

FuzzyGraph GraphOf(const NeighborLists& neighbors, int threads)
{
  const NeighborScales scales = FitNeighborScales(neighbors, threads);
  return UniteMemberships(neighbors, NeighborMemberships(neighbors, scales, threads));
}

std::vector<float> GivenStart(const PointView& points, const UmapOptions& options)
{
  return { options.start, options.start + points.count * options.dimensions };
}

/// What is shown if the search for neighbors is stopped.
std::vector<float> PrincipalLayout(const PointView& points, const UmapOptions& options)
{
  std::vector<float> layout =
    PrincipalStart(points, options.metric, options.dimensions, options.seed);
  std::for_each(
    layout.begin(), layout.end(), [](float& value) { value *= 2e4F; }); // to a deviation of 2
  return layout;
}

/// begun: the part of all time that has passed.
Layout Place(
  const PointView& points, const NeighborLists& neighbors, const UmapOptions& options, double begun)
{
  const int count = options.neighbors - 1;
  CheckNeighbors("UMAP", points, neighbors, count);
  const FuzzyGraph graph = count == neighbors.count
                             ? GraphOf(neighbors, options.threads)
                             : GraphOf(FirstNeighbors(neighbors, count), options.threads);
  const std::vector<float> start = options.start
                                     ? GivenStart(points, options)
                                     : SpectralLayout(points, options.metric, graph,
                                         options.dimensions, options.seed, options.threads);
  return Optimization(graph, options, start, begun).Run();
}

}

void CheckUmapOptions(std::int64_t points, const UmapOptions& options)
{
  ThrowIf<OptionError>(options.dimensions != 2 && options.dimensions != 3,
    "UMAP: expected 2 or 3 dimensions, found ", options.dimensions, ".");
  ThrowIf<OptionError>(points < 2, "UMAP: expected at least 2 points, found ", points, ".");
  ThrowIf<OptionError>(points > std::numeric_limits<std::int32_t>::max() / 4,
    "UMAP: expected at most 500 million points, found ", points, ".");
  ThrowIf<OptionError>(options.neighbors < 2 || options.neighbors > points, "UMAP: expected 2 to ",
    points, " neighbors (the point itself counts) of ", points, " points, found ",
    options.neighbors, ".");
  ThrowIf<OptionError>(!(options.spread > 0) || !std::isfinite(options.spread) ||
                         !(options.minimumDistance >= 0) ||
                         options.minimumDistance > options.spread,
    "UMAP: expected a spread above 0 and a minimum distance from 0 to the spread, found ",
    options.spread, " and ", options.minimumDistance, ".");
  ThrowIf<OptionError>(options.epochs < 0 || options.interval < 1,
    "UMAP: expected no negative number of epochs, and an interval of at least 1, found ",
    options.epochs, " and ", options.interval, ".");
  if (options.start)
  {
    CheckPoints({ options.start, points, options.dimensions }, "UMAP: start");
  }
}

Layout Umap(const PointView& points, const NeighborLists& neighbors, const UmapOptions& options)
{
  CheckPoints(points, "UMAP");
  CheckUmapOptions(points.count, options);
  return Place(points, neighbors, options, 0);
}
Layout Umap(const PointView& points, const UmapOptions& options)
{
  CheckPoints(points, "UMAP");
  CheckUmapOptions(points.count, options);
  const int count = options.neighbors - 1;
  const double share = SearchShare(points.count, EpochCount(options, points.count));
  const auto neighbors = FindUnlessStopped(options.progress, share,
    [&](const Progress& progress)
    {
      return points.count < ApproximateNeighborsFrom
               ? FindNeighbors(points, options.metric, count, options.threads, progress)
               : FindNeighborsApproximately(
                   points, options.metric, count, options.seed, options.threads, progress);
    });
  return neighbors
           ? Place(points, *neighbors, options, share)
           : Layout{ options.start ? GivenStart(points, options) : PrincipalLayout(points, options),
               std::numeric_limits<double>::quiet_NaN(), 0, true };
}

}
