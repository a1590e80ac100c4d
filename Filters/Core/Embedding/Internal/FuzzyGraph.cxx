#include "FuzzyGraph.h"

#include "Base/Index.h"
#include "Numerics/ParallelBlocks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace atlas
{
namespace
{

/// Points are given to threads in groups of this size.
constexpr std::int64_t PointsPerTask = 1024;

template<class Function>
void ForPoints(std::int64_t points, int threads, const Function& function)
{
  ForBlocks(points, PointsPerTask, threads,
    [&](std::int64_t begin, std::int64_t end)
    {
      for (std::int64_t i = begin; i < end; ++i)
      {
        function(i);
      }
    });
}

/// The sum of memberships of neighbors whose distances exceed rho by `excess`, and its derivative
/// by ln sigma.
std::pair<double, double> MembershipSum(const std::vector<double>& excess, double sigma)
{
  double sum = 0;
  double slope = 0;
  for (const double e : excess)
  {
    const double membership = std::exp(-e / sigma);
    sum += membership;
    slope += membership * e / sigma;
  }
  return { sum, slope };
}

/// The sigma of NeighborScales, at least `least`.
double FitSigma(const std::vector<double>& excess, double least)
{
  const double target = std::log2(static_cast<double>(excess.size()) + 1);
  double low = std::log(std::max(least, std::numeric_limits<double>::min()));
  const double largest = *std::max_element(excess.begin(), excess.end());
  // The sum falls as sigma does; at this sigma each term is at least target / terms.
  double high = std::log(
    std::max(largest / std::log(static_cast<double>(excess.size()) / target), std::exp(low)));
  if (MembershipSum(excess, std::exp(low)).first >= target)
  {
    return least;
  }
  double guess = (low + high) / 2;
  for (int iteration = 0; iteration < 100 && high - low > 1e-14; ++iteration)
  {
    const auto [sum, slope] = MembershipSum(excess, std::exp(guess));
    (sum > target ? high : low) = guess;
    if (sum == target)
    {
      break;
    }
    const double newton = guess - (sum - target) / slope;
    const double next = newton > low && newton < high ? newton : (low + high) / 2;
    const bool done = std::abs(next - guess) < 1e-14;
    guess = next;
    if (done)
    {
      break;
    }
  }
  return std::exp(guess);
}

}

NeighborScales FitNeighborScales(const NeighborLists& neighbors, int threads)
{
  const double mean = std::accumulate(neighbors.distance.begin(), neighbors.distance.end(), 0.) /
                      (static_cast<double>(neighbors.points) * (neighbors.count + 1));
  NeighborScales scales;
  scales.rho.resize(neighbors.points);
  scales.sigma.resize(neighbors.points);
  ForPoints(neighbors.points, threads,
    [&](std::int64_t i)
    {
      const float* begin = neighbors.distance.data() + i * neighbors.count;
      const float* end = begin + neighbors.count;
      const float* nearest = std::find_if(begin, end, [](float d) { return d > 0; });
      const double rho = nearest != end ? static_cast<double>(*nearest) : 0;
      std::vector<double> excess;
      for (const float* d = begin; d != end; ++d)
      {
        excess.push_back(std::max(static_cast<double>(*d) - rho, 0.));
      }
      const double ofPoint = std::accumulate(begin, end, 0.) / (neighbors.count + 1);
      scales.rho[i] = rho;
      scales.sigma[i] = FitSigma(excess, (rho > 0 ? ofPoint : mean) / 1000);
    });
  return scales;
}

std::vector<float> NeighborMemberships(
  const NeighborLists& neighbors, const NeighborScales& scales, int threads)
{
  std::vector<float> memberships(neighbors.distance.size());
  ForPoints(neighbors.points, threads,
    [&](std::int64_t i)
    {
      for (std::int64_t e = i * neighbors.count; e < (i + 1) * neighbors.count; ++e)
      {
        const double excess = static_cast<double>(neighbors.distance[e]) - scales.rho[i];
        memberships[e] = excess > 0 ? static_cast<float>(std::exp(-excess / scales.sigma[i])) : 1;
      }
    });
  return memberships;
}

FuzzyGraph UniteMemberships(const NeighborLists& neighbors, const std::vector<float>& memberships)
{
  const std::size_t points = neighbors.points;
  const std::size_t count = neighbors.count;
  // Both directions of each membership, by rows, in the order of the points: entries of one row
  // and column, of which there are at most two, are then found by sorting.
  std::vector<std::int64_t> begin(points + 1, static_cast<std::int64_t>(count));
  begin[0] = 0;
  for (const std::uint32_t j : neighbors.index)
  {
    ++begin[j + 1];
  }
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  using Entry = std::pair<std::uint32_t, float>;
  std::vector<Entry> entries(begin.back());
  std::vector<std::int64_t> next(begin.begin(), begin.end() - 1);
  for (std::size_t e = 0; e < neighbors.index.size(); ++e)
  {
    const auto i = static_cast<std::uint32_t>(e / count);
    const std::uint32_t j = neighbors.index[e];
    entries[next[i]++] = { j, memberships[e] };
    entries[next[j]++] = { i, memberships[e] };
  }
  FuzzyGraph graph;
  graph.points = neighbors.points;
  graph.begin.push_back(0);
  for (std::size_t i = 0; i < points; ++i)
  {
    const auto rowEnd = entries.begin() + begin[i + 1];
    std::sort(entries.begin() + begin[i], rowEnd);
    for (auto entry = entries.begin() + begin[i]; entry != rowEnd; ++entry)
    {
      float value = entry->second;
      if (entry + 1 != rowEnd && entry[1].first == entry->first)
      {
        value = value + entry[1].second - value * entry[1].second;
        ++entry;
      }
      if (value > 0)
      {
        graph.index.push_back(entry->first);
        graph.value.push_back(value);
      }
    }
    graph.begin.push_back(graph.index.size());
  }
  return graph;
}

std::vector<std::uint32_t> ConnectedParts(const FuzzyGraph& graph)
{
  constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> parts(graph.points, none);
  std::vector<std::uint32_t> reached;
  std::uint32_t count = 0;
  const auto reach = [&](std::uint32_t point)
  {
    if (parts[point] == none)
    {
      parts[point] = count;
      reached.push_back(point);
    }
  };
  for (std::size_t first = 0; first < parts.size(); ++first)
  {
    if (parts[first] != none)
    {
      continue;
    }
    reach(static_cast<std::uint32_t>(first));
    while (!reached.empty())
    {
      const std::size_t point = reached.back();
      reached.pop_back();
      std::for_each(graph.index.begin() + graph.begin[point],
        graph.index.begin() + graph.begin[point + 1], reach);
    }
    ++count;
  }
  return parts;
}

FuzzyGraph PartOf(const FuzzyGraph& graph, const std::vector<std::uint32_t>& points)
{
  FuzzyGraph part;
  part.points = static_cast<std::int64_t>(points.size());
  part.begin.push_back(0);
  for (const std::uint32_t point : points)
  {
    for (std::int64_t e = graph.begin[point]; e < graph.begin[point + 1]; ++e)
    {
      const auto place = std::lower_bound(points.begin(), points.end(), graph.index[e]);
      part.index.push_back(static_cast<std::uint32_t>(place - points.begin()));
      part.value.push_back(graph.value[e]);
    }
    part.begin.push_back(part.index.size());
  }
  return part;
}

}
