#include "CrossEntropy.h"

#include "HashedNumbers.h"
#include "Index.h"
#include "Parallel.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace atlas
{
namespace
{

/// Sums are added up in groups of this many points.
constexpr std::int64_t GroupPoints = 256;

double Similarity(
  const float* layout, int dimensions, const UmapCurve& curve, std::int64_t i, std::int64_t j)
{
  constexpr double least = 1e-12;
  double square = 0;
  for (int c = 0; c < dimensions; ++c)
  {
    const double difference = static_cast<double>(layout[i * dimensions + c]) -
                              static_cast<double>(layout[j * dimensions + c]);
    square += difference * difference;
  }
  return std::clamp(1 / (1 + curve.a * std::pow(square, curve.b)), least, 1 - least);
}

/// v ln(v / w), 0 for v = 0
double Term(double v, double w)
{
  return v > 0 ? v * std::log(v / w) : 0;
}

std::int64_t DrawnStep(const HashedNumbers& numbers, std::int64_t number, std::int64_t all)
{
  return static_cast<std::int64_t>(
    numbers.Below(static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(all)));
}

}

CrossEntropy EvaluateCrossEntropy(const FuzzyGraph& graph, const float* layout, int dimensions,
  const UmapCurve& curve, std::int64_t others, int threads)
{
  const std::int64_t points = graph.points;
  const std::int64_t all = points - 1;
  const std::int64_t drawn = others == 0 ? all : std::min(others, all);
  const HashedNumbers numbers(0, 5);
  std::vector<CrossEntropy> groups(ToIndex((points + GroupPoints - 1) / GroupPoints));
  ParallelFor(static_cast<std::int64_t>(groups.size()), threads,
    [&](std::int64_t group)
    {
      CrossEntropy sum; // over ordered pairs
      double apart = 0; // -ln(1 - w) of all pairs drawn
      for (std::int64_t i = group * GroupPoints; i < std::min((group + 1) * GroupPoints, points);
        ++i)
      {
        for (std::int64_t e = graph.begin[ToIndex(i)]; e < graph.begin[ToIndex(i) + 1]; ++e)
        {
          const auto v = static_cast<double>(graph.value[ToIndex(e)]);
          const double w = Similarity(layout, dimensions, curve, i, graph.index[ToIndex(e)]);
          sum.attractive += Term(v, w);
          sum.repulsive += Term(1 - v, 1 - w) + std::log1p(-w); // not as if there were no edge
        }
        for (std::int64_t k = 0; k < drawn; ++k)
        {
          const std::int64_t step = drawn == all ? k : DrawnStep(numbers, i * drawn + k, all);
          const std::int64_t j = (i + 1 + step) % points;
          apart -= std::log1p(-Similarity(layout, dimensions, curve, i, j));
        }
      }
      sum.repulsive += apart * static_cast<double>(all) / static_cast<double>(drawn);
      groups[ToIndex(group)] = sum;
    });
  CrossEntropy sum;
  for (const CrossEntropy& group : groups)
  {
    sum.attractive += group.attractive / 2;
    sum.repulsive += group.repulsive / 2;
  }
  return sum;
}

}
