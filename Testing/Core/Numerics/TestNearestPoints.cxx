#include "Numerics/NearestPoints.h"

#include <array>
#include <random>
#include <vector>

#include <gtest/gtest.h>

using namespace atlas;

namespace
{

std::int64_t FirstNearest(const std::vector<double>& points, const std::array<double, 3>& position)
{
  std::int64_t nearest = 0;
  double least = 1e300;
  for (std::size_t i = 0; i < points.size() / 3; ++i)
  {
    double distance = 0;
    for (std::size_t axis = 0; axis < 3; ++axis)
    {
      const double x = points[3 * i + axis] - position[axis];
      distance += x * x;
    }
    if (distance < least)
    {
      least = distance;
      nearest = static_cast<std::int64_t>(i);
    }
  }
  return nearest;
}

/// Against all distances: of few and many points, flat and in space, and on a grid, where many are
/// at the same distance, or all at one place.
TEST(NearestPoints, AreThoseOfLeastDistance)
{
  std::mt19937 generator(3);
  for (const int count : { 1, 2, 8, 9, 500 })
  {
    for (const unsigned steps : { 1U, 4U, 1000000U })
    {
      for (const int axes : { 1, 2, 3 })
      {
        std::vector<double> points;
        for (int i = 0; i < 3 * count; ++i)
        {
          points.push_back(i % 3 < axes ? static_cast<double>(generator() % steps) : 7);
        }
        const NearestPoints nearest(points);
        for (int i = 0; i < 300; ++i)
        {
          std::array<double, 3> position;
          for (double& x : position)
          {
            x = static_cast<double>(generator() % (2 * steps)) / 2;
          }
          ASSERT_EQ(nearest.Find(position.data()), FirstNearest(points, position))
            << count << " points, " << steps << " steps, " << axes << " axes";
        }
      }
    }
  }
}

}
