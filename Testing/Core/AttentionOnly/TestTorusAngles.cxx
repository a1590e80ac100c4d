#include "AttentionOnly/TorusAngles.h"
#include "Base/Pi.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

using atlas::AngleMap;
using atlas::AngleOfEmbedding;
using atlas::EmbeddingAtAngle;
using atlas::LayerNorm;
using Eigen::Vector3d;

namespace
{

constexpr double Tolerance = 1e-14;

void ExpectNear(const Vector3d& found, const Vector3d& expected)
{
  EXPECT_LE((found - expected).cwiseAbs().maxCoeff(), Tolerance)
    << "found " << found.transpose() << ", expected " << expected.transpose();
}

/// Angles all around the circle, dense where they wrap around.
std::vector<double> FineGrid()
{
  constexpr int steps = 20000;
  std::vector<double> grid = { -atlas::Pi, atlas::Pi, 0.0, -0.0, std::nextafter(atlas::Pi, 0),
    std::nextafter(-atlas::Pi, 0) };
  for (int i = 0; i < steps; ++i)
  {
    grid.push_back(-atlas::Pi + 2 * atlas::Pi * (i + 0.5) / steps);
  }
  for (int exponent = 1; exponent <= 60; ++exponent)
  {
    const double step = std::ldexp(1.0, -exponent);
    grid.insert(grid.end(), { atlas::Pi - step, -atlas::Pi + step, step, -step });
  }
  return grid;
}

TEST(LayerNorm, IsTheMeanAndDeviationByHand)
{
  // Mean 2 and variance 2/3; mean 1/3 and variance 2/9; mean -1 and variance 42.
  ExpectNear(LayerNorm({ 1, 2, 3 }), Vector3d(-1, 0, 1) * std::sqrt(1.5));
  ExpectNear(LayerNorm({ 1, 0, 0 }), Vector3d(2, -1, -1) / std::sqrt(2.0));
  ExpectNear(LayerNorm({ -10, 5, 2 }), Vector3d(-9, 6, 3) / std::sqrt(42.0));
}

TEST(LayerNorm, OfAConstantVectorIsZero)
{
  for (const double value : { 0.0, 1.0, -1.0, 0.1, 1.0 / 3, 1e10, -1e-10, 123456.789, 1e300 })
  {
    EXPECT_EQ(LayerNorm(Vector3d::Constant(value)), Vector3d(Vector3d::Zero())) << value;
  }
}

TEST(LayerNorm, DoesNotDependOnShiftOrScale)
{
  const Vector3d x(0.3, -1.2, 0.5);
  EXPECT_NEAR(LayerNorm(x).norm(), std::sqrt(3.0), Tolerance);
  for (const double scale : { 1e-300, 1e-200, 1e-9, 2.0, 1e9, 1e200, 1e300 })
  {
    ExpectNear(LayerNorm(scale * x), LayerNorm(x));
  }
  ExpectNear(LayerNorm(x.array() + 8), LayerNorm(x));
}

TEST(Isometric, IsThreeCosinesAThirdApart)
{
  // The same circle without the basis u, v: its coordinates are cosines, 120 degrees apart.
  for (const double t : FineGrid())
  {
    const Vector3d cosines(
      std::cos(t + atlas::Pi / 6), std::cos(t - atlas::Pi / 2), std::cos(t + 5 * atlas::Pi / 6));
    ExpectNear(EmbeddingAtAngle(t, AngleMap::Isometric), std::sqrt(2.0) * cosines);
  }
}

/// The normalization of (cos t, sin t, 0).
TEST(Skewed, IsTheDefinition)
{
  for (const double t : FineGrid())
  {
    const double mean = (std::cos(t) + std::sin(t)) / 3;
    const double variance = 1.0 / 3 - mean * mean;
    const Vector3d centred(std::cos(t) - mean, std::sin(t) - mean, -mean);
    ExpectNear(EmbeddingAtAngle(t, AngleMap::Skewed), centred / std::sqrt(variance));
  }
}

using BothMaps = testing::TestWithParam<AngleMap>;
INSTANTIATE_TEST_SUITE_P(, BothMaps, testing::Values(AngleMap::Isometric, AngleMap::Skewed),
  [](const auto& map) { return map.param == AngleMap::Isometric ? "Isometric" : "Skewed"; });

TEST_P(BothMaps, AreInvertedByAnglesAboveMinusPiUpToPi)
{
  for (const double t : FineGrid())
  {
    const double found = AngleOfEmbedding(EmbeddingAtAngle(t, GetParam()), GetParam());
    EXPECT_NEAR(std::remainder(found - t, 2 * atlas::Pi), 0, Tolerance) << t;
    EXPECT_GT(found, -atlas::Pi) << t;
    EXPECT_LE(found, atlas::Pi) << t;
  }
  const Vector3d opposite = EmbeddingAtAngle(0, GetParam()) * -1;
  EXPECT_DOUBLE_EQ(AngleOfEmbedding(opposite, GetParam()), atlas::Pi);
  EXPECT_EQ(AngleOfEmbedding(Vector3d::Zero(), GetParam()), 0);
}

}
