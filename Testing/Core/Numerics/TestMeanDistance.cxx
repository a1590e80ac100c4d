#include "Numerics/MeanDistance.h"

#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using atlas::MeanDistance;
using atlas::PointList;
using testing::ElementsAre;

namespace
{

PointList Line(int count)
{
  PointList points;
  for (int i = 0; i < count; ++i)
  {
    const double point[3] = { 2. * i, 1, -2. * i };
    points.Add(point);
  }
  return points;
}

double Uniform(std::mt19937& generator)
{
  return static_cast<double>(generator()) / 4294967296.;
}

/// Points 0, ..., n - 1 of a line have the mean distance (n + 1) / 3.
TEST(MeanDistance, OfALine)
{
  const double step = std::sqrt(8.);
  EXPECT_NEAR(MeanDistance(Line(2)), step, 1e-6);
  EXPECT_NEAR(MeanDistance(Line(4)), step * 5 / 3, 1e-6);
  EXPECT_NEAR(MeanDistance(Line(1000)) / (step * 1001 / 3), 1, 1e-6);
}

/// The mean distance of random points of the unit square is (2 + sqrt 2 + 5 asinh 1) / 15.
TEST(MeanDistance, OfASquare)
{
  std::mt19937 generator(5);
  PointList points;
  for (int i = 0; i < 5000; ++i)
  {
    const double point[3] = { Uniform(generator), Uniform(generator), 7 };
    points.Add(point);
  }
  const double expected = (2 + std::sqrt(2.) + 5 * std::asinh(1.)) / 15;
  EXPECT_NEAR(MeanDistance(points), expected, 0.01);
  EXPECT_NEAR(MeanDistance(points.Thinned(2000)), expected, 0.02);
}

TEST(MeanDistance, NeedsTwoPoints)
{
  EXPECT_TRUE(std::isnan(MeanDistance({})));
  EXPECT_TRUE(std::isnan(MeanDistance(Line(1))));
}

TEST(MeanDistance, ThinsInEvenSteps)
{
  EXPECT_THAT(Line(7).Thinned(3).x, ElementsAre(0, 6, 12));
  EXPECT_THAT(Line(3).Thinned(3).z, ElementsAre(0, -2, -4));
  EXPECT_THAT(Line(3).Thinned(9).y, ElementsAre(1, 1, 1));
}

}
