#include "MixtureRegions.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

namespace atlas
{
namespace
{

using Eigen::Index;
using Eigen::Vector3d;
using Point = std::array<double, 2>;
using Corners = std::vector<Point>;

constexpr double Infinity = std::numeric_limits<double>::infinity();

/// A linear function of (c_0, c_1).
struct Line
{
  double constant;
  double first;
  double second;

  double At(const Point& point) const
  {
    return this->constant + this->first * point[0] + this->second * point[1];
  }
};

/// Whether a linear function is at least `least` everywhere in a polygon.
bool IsAtLeast(const Corners& polygon, const Line& line, double least)
{
  return std::all_of(
    polygon.begin(), polygon.end(), [&](const Point& corner) { return line.At(corner) >= least; });
}

/// Removes the part of a polygon where a linear function is less than `least`. `scratch` only
/// provides memory.
void Cut(Corners& polygon, const Line& line, double least, Corners& scratch)
{
  scratch.clear();
  for (std::size_t i = 0; i < polygon.size(); ++i)
  {
    const Point& from = polygon[i];
    const Point& to = polygon[i + 1 < polygon.size() ? i + 1 : 0];
    const double before = line.At(from) - least;
    const double after = line.At(to) - least;
    if (before >= 0)
    {
      scratch.push_back(from);
    }
    if ((before >= 0) != (after >= 0))
    {
      const double part = before / (before - after);
      scratch.push_back({ from[0] + part * (to[0] - from[0]), from[1] + part * (to[1] - from[1]) });
    }
  }
  polygon.swap(scratch);
}

/// The points `first` to `last` of a grid row; empty if first > last.
struct Range
{
  int first = 0;
  int last = -1;
};

/// The points of the row c_1 = row / segments that lie in the convex polygon with these corners.
Range PointsInside(const Point* begin, const Point* end, int segments, int row)
{
  const double height = static_cast<double>(row) / segments;
  double least = Infinity;
  double largest = -Infinity;
  for (const Point* from = begin; from != end; ++from)
  {
    const Point& to = from + 1 != end ? from[1] : *begin;
    const double below = height - (*from)[1];
    const double above = to[1] - height;
    if ((below < 0 && above > 0) || (below > 0 && above < 0))
    {
      continue;
    }
    const double rise = to[1] - (*from)[1];
    const double part = rise == 0 ? 0 : std::clamp(below / rise, 0., 1.);
    const double crossing = (*from)[0] + part * (to[0] - (*from)[0]);
    least = std::min(least, crossing);
    largest = std::max(largest, crossing);
  }
  if (!(least <= largest))
  {
    return {};
  }
  const double points = segments - row;
  return { static_cast<int>(std::clamp(std::ceil(least * segments), 0., points + 1)),
    static_cast<int>(std::clamp(std::floor(largest * segments), -1., points)) };
}

}

/// Cuts the triangle down to the polygons of one pair after another.
class MixtureRegions::Cutter
{
public:
  explicit Cutter(const HeadMixture& mixture)
    : Mixture(mixture)
    , Unembedding(mixture.GetUnembedding())
    , LargestRow(Unembedding.cwiseAbs().colwise().maxCoeff())
  {
  }

  /// Sets the outer and the inner polygon of a pair; both are empty if it is correct nowhere.
  void Set(Index pair, Polygon& outer, Polygon& inner)
  {
    this->SetTerms(pair);
    outer.assign(Triangle.begin(), Triangle.end());
    inner.clear();
    const double bound = this->RoundingBound();
    if (!(bound < LargestBound))
    {
      return; // such numbers overflow: HeadMixture decides every point
    }
    inner = outer;
    const int target = this->Mixture.Target(pair);
    for (Index k = 0; k < this->Unembedding.rows() && !outer.empty(); ++k)
    {
      const Vector3d lead = this->Unembedding.row(target) - this->Unembedding.row(k);
      if (this->IsTie(lead))
      {
        if (k < target)
        {
          outer.clear();
          inner.clear();
        }
        continue;
      }
      const Line line = this->LeadOver(lead);
      if (!IsAtLeast(outer, line, bound))
      {
        Cut(outer, line, -bound, this->Scratch);
        Cut(inner, line, bound, this->Scratch);
      }
    }
  }

private:
  /// The triangle with a small margin, so that all its points are strictly inside.
  static constexpr double Margin = 1. / (1 << 20);
  static constexpr std::array<Point, 3> Triangle = { { { -Margin, -Margin },
    { 1 + 2 * Margin, -Margin }, { -Margin, 1 + 2 * Margin } } };
  static constexpr double LargestBound = 1e250;

  const HeadMixture& Mixture;
  const Rows3& Unembedding;
  Vector3d LargestRow; ///< the largest magnitude in each column of W_U
  Vector3d Base;
  std::array<Vector3d, 3> Outputs; ///< of the pair
  Polygon Scratch;

  void SetTerms(Index pair)
  {
    const MixtureTerms<double> terms = this->Mixture.Terms(pair);
    this->Base = Eigen::Map<const Vector3d>(terms.base.data());
    for (std::size_t i = 0; i < 3; ++i)
    {
      this->Outputs[i] = Eigen::Map<const Vector3d>(terms.outputs[i].data());
    }
  }

  /// A generous bound on the rounding errors of two logits and of N cuts. Each error is a few units
  /// in the last place of the largest possible sum of a logit's terms.
  double RoundingBound() const
  {
    constexpr double smallest = std::numeric_limits<double>::min(); // covers underflow
    const auto& [a, b, c] = this->Outputs;
    const Vector3d largestOutput = a.cwiseAbs().cwiseMax(b.cwiseAbs()).cwiseMax(c.cwiseAbs());
    const Vector3d largest = (this->Base.cwiseAbs() + 3 * largestOutput).array() + smallest;
    const double steps = 64 * static_cast<double>(this->Unembedding.rows() + 8);
    return steps * std::numeric_limits<double>::epsilon() * this->LargestRow.dot(largest) +
           smallest;
  }

  /// Whether two rows of W_U with this difference give bitwise equal logits everywhere.
  bool IsTie(const Vector3d& lead) const
  {
    for (Index c = 0; c < 3; ++c)
    {
      const bool isZero = this->Base[c] == 0 && this->Outputs[0][c] == 0 &&
                          this->Outputs[1][c] == 0 && this->Outputs[2][c] == 0;
      if (lead[c] != 0 && !isZero)
      {
        return false;
      }
    }
    return true;
  }

  /// The lead of the target over another class, as a function on the triangle.
  Line LeadOver(const Vector3d& lead) const
  {
    const auto& [a, b, c] = this->Outputs;
    return { lead.dot(this->Base + 3 * c), 3 * lead.dot(a - c), 3 * lead.dot(b - c) };
  }
};

MixtureRegions::MixtureRegions(const HeadMixture& mixture)
  : Mixture(mixture)
  , RegionsOfTarget(mixture.PairsByTarget().size())
{
  Cutter cutter(mixture);
  Polygon outer;
  Polygon inner;
  for (Index pair = 0; pair < mixture.PairCount(); ++pair)
  {
    cutter.Set(pair, outer, inner);
    if (!outer.empty())
    {
      const auto [lowest, highest] = std::minmax_element(outer.begin(), outer.end(),
        [](const Point& first, const Point& second) { return first[1] < second[1]; });
      Region region{ pair, (*lowest)[1], (*highest)[1], this->Corners.size(), 0, 0 };
      this->Corners.insert(this->Corners.end(), outer.begin(), outer.end());
      region.inner = this->Corners.size();
      this->Corners.insert(this->Corners.end(), inner.begin(), inner.end());
      region.end = this->Corners.size();
      this->RegionsOfTarget[mixture.Target(pair)].push_back(region);
    }
  }
}

/// Adds to changes[i] the difference between the counts at the points i and i - 1 of a row.
void MixtureRegions::CountPair(
  const Region& region, int segments, int row, int target, int* changes) const
{
  const int points = segments - row + 1;
  const auto count = [&](int first, int last)
  {
    ++changes[first];
    if (last + 1 < points)
    {
      --changes[last + 1];
    }
  };
  const Point* corners = this->Corners.data();
  const Range outer = PointsInside(corners + region.outer, corners + region.inner, segments, row);
  if (outer.first > outer.last)
  {
    return;
  }
  const Range inner = PointsInside(corners + region.inner, corners + region.end, segments, row);
  if (inner.first <= inner.last)
  {
    count(inner.first, inner.last);
  }
  for (int i = outer.first; i <= outer.last; ++i)
  {
    if (i >= inner.first && i <= inner.last)
    {
      i = inner.last;
    }
    else if (this->Mixture.Predict(SimplexPoint(segments, i, row), region.pair) == target)
    {
      count(i, i);
    }
  }
}

void MixtureRegions::EvaluateRow(int segments, int row, MixtureRow& counts) const
{
  const auto points = static_cast<std::size_t>(segments - row) + 1;
  const double height = static_cast<double>(row) / segments;
  counts.correct.assign(points, 0);
  counts.correctByTarget.assign(points * this->RegionsOfTarget.size(), 0);
  for (std::size_t target = 0; target < this->RegionsOfTarget.size(); ++target)
  {
    int* ofTarget = counts.correctByTarget.data() + target * points;
    for (const Region& region : this->RegionsOfTarget[target])
    {
      if (region.bottom <= height && height <= region.top)
      {
        this->CountPair(region, segments, row, static_cast<int>(target), ofTarget);
      }
    }
    std::partial_sum(ofTarget, ofTarget + points, ofTarget);
    std::transform(
      ofTarget, ofTarget + points, counts.correct.begin(), counts.correct.begin(), std::plus<>());
  }
}

}
