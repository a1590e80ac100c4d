#include "CrossEntropy.h"

#include "Base/Index.h"
#include "HashedNumbers.h"
#include "Numerics/ParallelBlocks.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace atlas
{
namespace
{

/// Sums are added up in groups of this many points.
constexpr std::int64_t PointsPerSum = 256;

/// v ln(v / w), 0 for v = 0
double Term(double v, double w)
{
  return v > 0 ? v * std::log(v / w) : 0;
}

/// The terms of points one after the other.
class PointTerms
{
public:
  PointTerms(const FuzzyGraph& graph, const float* layout, int dimensions, const UmapCurve& curve,
    std::int64_t others)
    : Graph(graph)
    , Layout(layout)
    , Dimensions(dimensions)
    , Curve(curve)
    , All(graph.points - 1)
    , Drawn(others == 0 ? this->All : std::min(others, this->All))
    , Numbers(0, 5)
  {
  }

  /// Adds half of what all pairs of point i would be without edges, and what its edges to higher
  /// points change.
  void Add(std::int64_t i, CrossEntropy& sum) const
  {
    double apart = 0; // -ln(1 - w) of the pairs that are drawn
    for (std::int64_t k = 0; k < this->Drawn; ++k)
    {
      const std::int64_t step = this->Drawn == this->All ? k : this->DrawnStep(i * this->Drawn + k);
      apart -= std::log1p(-this->Similarity(i, (i + 1 + step) % this->Graph.points));
    }
    sum.repulsive += apart / 2 * static_cast<double>(this->All) / static_cast<double>(this->Drawn);
    for (std::size_t e = this->Graph.begin[i]; e < ToIndex(this->Graph.begin[ToIndex(i) + 1]); ++e)
    {
      if (this->Graph.index[e] > i)
      {
        const auto v = static_cast<double>(this->Graph.value[e]);
        const double w = this->Similarity(i, this->Graph.index[e]);
        sum.attractive += Term(v, w);
        sum.repulsive += Term(1 - v, 1 - w) + std::log1p(-w);
      }
    }
  }

private:
  const FuzzyGraph& Graph;
  const float* Layout;
  int Dimensions;
  UmapCurve Curve;
  std::int64_t All; ///< others of a point
  std::int64_t Drawn;
  HashedNumbers Numbers;

  double Similarity(std::int64_t i, std::int64_t j) const
  {
    constexpr double least = 1e-12;
    double square = 0;
    for (int c = 0; c < this->Dimensions; ++c)
    {
      const double difference = static_cast<double>(this->Layout[i * this->Dimensions + c]) -
                                static_cast<double>(this->Layout[j * this->Dimensions + c]);
      square += difference * difference;
    }
    return std::clamp(1 / (1 + this->Curve.a * std::pow(square, this->Curve.b)), least, 1 - least);
  }

  std::int64_t DrawnStep(std::int64_t number) const
  {
    return static_cast<std::int64_t>(this->Numbers.Below(
      static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(this->All)));
  }
};

}

CrossEntropy EvaluateCrossEntropy(const FuzzyGraph& graph, const float* layout, int dimensions,
  const UmapCurve& curve, std::int64_t others, int threads)
{
  const PointTerms terms(graph, layout, dimensions, curve, others);
  std::vector<CrossEntropy> groups(BlockCount(graph.points, PointsPerSum));
  ForBlocks(graph.points, PointsPerSum, threads,
    [&](std::int64_t begin, std::int64_t end)
    {
      for (std::int64_t i = begin; i < end; ++i)
      {
        terms.Add(i, groups[begin / PointsPerSum]);
      }
    });
  CrossEntropy sum;
  for (const CrossEntropy& group : groups)
  {
    sum.attractive += group.attractive;
    sum.repulsive += group.repulsive;
  }
  return sum;
}

}
