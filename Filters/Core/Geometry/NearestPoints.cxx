#include "NearestPoints.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>

namespace atlas
{
namespace
{

constexpr std::int64_t PointsPerLeaf = 8;

}

/// The nearest point so far.
struct NearestPoints::Best
{
  double distance = std::numeric_limits<double>::infinity(); ///< squared
  std::int64_t number = 0;
};

NearestPoints::NearestPoints(const std::vector<double>& positions)
  : Numbers(positions.size() / 3)
{
  std::iota(this->Numbers.begin(), this->Numbers.end(), 0);
  this->Divide(positions, 0, static_cast<std::int64_t>(this->Numbers.size()));
  this->Positions.reserve(positions.size());
  for (const std::int64_t number : this->Numbers)
  {
    const auto first = positions.begin() + 3 * number;
    this->Positions.insert(this->Positions.end(), first, first + 3);
  }
}

/// Adds the part of points begin <= i < end in the present order, and those that it consists of.
/// Points are divided in the middle of their longest side.
void NearestPoints::Divide(
  const std::vector<double>& positions, std::int64_t begin, std::int64_t end)
{
  const std::size_t index = this->Parts.size();
  this->Parts.push_back({ begin, end });
  if (end - begin <= PointsPerLeaf)
  {
    return;
  }
  int axis = 0;
  double longest = -1;
  for (int other = 0; other < 3; ++other)
  {
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (std::int64_t i = begin; i < end; ++i)
    {
      const double x = positions[3 * this->Numbers[i] + other];
      low = std::min(low, x);
      high = std::max(high, x);
    }
    if (high - low > longest)
    {
      longest = high - low;
      axis = other;
    }
  }
  if (longest == 0)
  {
    return; // all at one place
  }
  const std::int64_t middle = begin + (end - begin) / 2;
  const auto first = this->Numbers.begin();
  std::nth_element(first + begin, first + middle, first + end, [&](std::int64_t a, std::int64_t b)
    { return positions[3 * a + axis] < positions[3 * b + axis]; });
  this->Parts[index].axis = axis;
  this->Parts[index].plane = positions[3 * this->Numbers[middle] + axis];
  this->Divide(positions, begin, middle);
  this->Parts[index].above = static_cast<std::int64_t>(this->Parts.size());
  this->Divide(positions, middle, end);
}

void NearestPoints::Search(std::int64_t part, const double* position, Best& best) const
{
  const Part& here = this->Parts[part];
  if (here.axis < 0)
  {
    for (std::int64_t i = here.begin; i < here.end; ++i)
    {
      const double* point = this->Positions.data() + 3 * i;
      const double x = point[0] - position[0];
      const double y = point[1] - position[1];
      const double z = point[2] - position[2];
      const double distance = x * x + y * y + z * z;
      if (distance < best.distance || (distance == best.distance && this->Numbers[i] < best.number))
      {
        best = { distance, this->Numbers[i] };
      }
    }
    return;
  }
  // Points at the plane may be on both sides.
  const double beyond = position[here.axis] - here.plane;
  this->Search(beyond < 0 ? part + 1 : here.above, position, best);
  if (beyond * beyond <= best.distance)
  {
    this->Search(beyond < 0 ? here.above : part + 1, position, best);
  }
}

std::int64_t NearestPoints::Find(const double* position) const
{
  Best best;
  this->Search(0, position, best);
  return best.number;
}

}
