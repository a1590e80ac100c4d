#include "AttentionOnly/Deformation.h"
#include "Base/Pi.h"

#include "Base/Error.h"
#include "Sphere.h"

#include <cmath>
#include <limits>

#include <Eigen/SVD>

#include <gmock/gmock.h>

using namespace atlas;
using Eigen::Vector3d;
using testing::HasSubstr;
using testing::ThrowsMessage;

namespace
{

Rows3 RandomVectors(Eigen::Index count, unsigned int seed)
{
  Rows3 vectors = test::RandomRows(count, seed);
  // Of different extents, and not around 0.
  vectors.col(1) *= 0.01;
  vectors.rowwise() += Eigen::RowVector3d(0.3, 0, -2);
  return vectors;
}

double Difference(const Rows3& a, const Rows3& b)
{
  return (a - b).cwiseAbs().maxCoeff();
}

TEST(Donut, IsTheSurfaceOfItsEquation)
{
  const Donut donut{ 3, 0.5 };
  for (double theta1 = -Pi; theta1 < Pi; theta1 += 0.37)
  {
    for (double theta2 = -Pi; theta2 < Pi; theta2 += 0.41)
    {
      const Vector3d point = donut.Point(theta1, theta2);
      const double fromTube = std::hypot(point[0], point[1]) - 3;
      EXPECT_NEAR(std::hypot(fromTube, point[2]), 0.5, 1e-14);
      EXPECT_NEAR(std::atan2(point[1], point[0]), theta1, 1e-14);
      const Vector3d middle(3 * std::cos(theta1), 3 * std::sin(theta1), 0);
      EXPECT_LE((donut.Normal(theta1, theta2) - (point - middle) / 0.5).norm(), 1e-14);
    }
  }
  EXPECT_EQ(donut.Point(0, 0), Vector3d(3.5, 0, 0));
  EXPECT_LE((donut.Point(0, Pi / 2) - Vector3d(3, 0, 0.5)).norm(), 1e-15);
}

TEST(Donut, RefusesRadiiThatMakeNone)
{
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const Donut& donut : { Donut{ 1, 1 }, Donut{ 1, 2 }, Donut{ 1, 0 }, Donut{ 1, -1 },
         Donut{ nan, 1 }, Donut{ 1, nan }, Donut{ infinity, 1 } })
  {
    EXPECT_THAT([&]() { CheckDonut(donut); },
      ThrowsMessage<OptionError>(HasSubstr("expected 0 < MinorRadius < MajorRadius, found ")));
  }
  CheckDonut({ 1.01, 1 });
}

TEST(WrapAngle, JoinsBothEnds)
{
  EXPECT_EQ(WrapAngle(Pi), WrapAngle(-Pi));
  EXPECT_EQ(WrapAngle(Pi), -Pi);
  EXPECT_EQ(WrapAngle(Pi - 1e-9), -Pi);
  EXPECT_EQ(WrapAngle(0), 0);
  EXPECT_EQ(WrapAngle(1), 1);
  EXPECT_NEAR(WrapAngle(1.5 * Pi), -0.5 * Pi, 1e-15);
  EXPECT_NEAR(WrapAngle(1 - 20 * Pi), 1, 1e-13);
  for (double theta = -20; theta < 20; theta += 0.123)
  {
    EXPECT_GE(WrapAngle(theta), -Pi);
    EXPECT_LT(WrapAngle(theta), Pi);
    EXPECT_NEAR(std::sin(WrapAngle(theta)), std::sin(theta), 1e-13);
  }
}

TEST(Normalize, PerAxisIsByTheRootMeanSquare)
{
  Rows3 vectors(2, 3);
  vectors << 1, 30, 0, 7, -40, 0; // root mean squares: 5, 25 sqrt 2, and no extent
  Rows3 expected(2, 3);
  expected << 0.2, 0.6 * std::sqrt(2.0), 0, 1.4, -0.8 * std::sqrt(2.0), 0;
  EXPECT_LE(Difference(Normalize(vectors, vectors, Normalization::PerAxis), expected), 1e-15);
}

TEST(Normalize, WhitenedIsUVOfTheDecomposition)
{
  const Rows3 vectors = RandomVectors(1000, 2);
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(vectors, Eigen::ComputeThinU | Eigen::ComputeThinV);
  EXPECT_EQ(Normalize(vectors, vectors, Normalization::None), vectors);
  const Rows3 whitened = Normalize(vectors, vectors, Normalization::Whitened);
  EXPECT_LE(Difference(whitened, svd.matrixU() * svd.matrixV().transpose()), 1e-9);
  EXPECT_LE(Difference(whitened.transpose() * whitened, Eigen::Matrix3d::Identity()), 1e-9);
}

TEST(Normalize, WhitenedIsFlatWhereTheVectorsAre)
{
  Rows3 plane = RandomVectors(50, 3);
  plane.col(2) = plane.col(0) - 2 * plane.col(1);
  const Rows3 whitened = Normalize(plane, plane, Normalization::Whitened);
  EXPECT_TRUE(whitened.allFinite());
  EXPECT_LE((whitened.col(2) - whitened.col(0) + 2 * whitened.col(1)).cwiseAbs().maxCoeff(), 1e-9);

  const Rows3 constant = Rows3::Ones(16, 3);
  const Rows3 expected = Rows3::Constant(16, 3, 0.25 / std::sqrt(3.0)); // of length 1/sqrt(16)
  EXPECT_LE(Difference(Normalize(constant, constant, Normalization::Whitened), expected), 1e-9);

  const Rows3 zero = Rows3::Zero(4, 3);
  EXPECT_EQ(Normalize(zero, zero, Normalization::Whitened), zero);
  EXPECT_EQ(Normalize(zero, zero, Normalization::PerAxis), zero);
}

TEST(Normalize, TheReferenceDecides)
{
  const Rows3 reference = RandomVectors(200, 4);
  for (const Normalization normalization : { Normalization::PerAxis, Normalization::Whitened })
  {
    const Rows3 whole = Normalize(reference, reference, normalization);
    const Rows3 part = Normalize(reference.topRows(7), reference, normalization);
    EXPECT_LE(Difference(part, whole.topRows(7)), 1e-15);
  }
}

TEST(Normalize, UnitSphereKeepsDirections)
{
  Rows3 vectors(4, 3);
  vectors << 3, 0, 4, 0, -1e-200, 0, 1e200, 1e200, 0, 1, 2, 2;
  const double s = std::sqrt(0.5);
  Rows3 expected(4, 3);
  expected << 0.6, 0, 0.8, 0, -1, 0, s, s, 0, 1. / 3, 2. / 3, 2. / 3;
  EXPECT_LE(Difference(Normalize(vectors, vectors, Normalization::UnitSphere), expected), 1e-15);
}

TEST(Normalize, NamesTheVectorThatHasNoPlace)
{
  Rows3 vectors = RandomVectors(5, 5);
  vectors.row(3).setZero();
  EXPECT_THAT([&]() { Normalize(vectors, vectors, Normalization::UnitSphere); },
    ThrowsMessage<OptionError>(HasSubstr("found 0 at point 3.")));
  Normalize(vectors, vectors, Normalization::Whitened);
  vectors(1, 2) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT([&]() { Normalize(vectors, vectors, Normalization::None); },
    ThrowsMessage<OptionError>(testing::AllOf(
      HasSubstr("expected finite vectors, found ("), HasSubstr("nan) at point 1."))));
}

}
