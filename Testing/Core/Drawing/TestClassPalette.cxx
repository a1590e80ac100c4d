#include "Drawing/ClassPalette.h"

#include <cmath>
#include <set>
#include <string>

#include <Eigen/Core>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using atlas::BaseColorCount;
using atlas::ClassColor;
using atlas::ColorIntensity;
using atlas::Fade;
using atlas::Rgb;
using Eigen::Matrix3d;
using Eigen::Vector3d;
using testing::ElementsAre;

namespace
{

Matrix3d ByRows(const Vector3d& first, const Vector3d& second, const Vector3d& third)
{
  Matrix3d matrix;
  matrix << first.transpose(), second.transpose(), third.transpose();
  return matrix;
}

/// sRGB to linear light (IEC 61966-2-1).
double Linear(std::uint8_t value)
{
  const double c = value / 255.0;
  return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}

double LabCurve(double t)
{
  const double delta = 6.0 / 29;
  return t > delta * delta * delta ? std::cbrt(t) : t / (3 * delta * delta) + 4.0 / 29;
}

/// Linear sRGB to CIE L*a*b* with its white, D65.
Vector3d Lab(const Vector3d& linear)
{
  const Matrix3d toXyz = ByRows({ 0.4124564, 0.3575761, 0.1804375 },
    { 0.2126729, 0.7151522, 0.0721750 }, { 0.0193339, 0.1191920, 0.9503041 });
  const Vector3d xyz = toXyz * linear;
  const Vector3d white = toXyz * Vector3d::Ones();
  const Vector3d f = xyz.cwiseQuotient(white).unaryExpr(&LabCurve);
  return { 116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2]) };
}

/// A kind of vision: what it does to linear sRGB, by Machado, Oliveira and Fernandes (2009), at
/// severity 1.
struct Vision
{
  const char* name;
  Matrix3d matrix;
  friend void PrintTo(const Vision& vision, std::ostream* stream) { *stream << vision.name; }
};

Vector3d LabAsSeen(const Rgb& color, const Vision& vision)
{
  const Vector3d linear(Linear(color[0]), Linear(color[1]), Linear(color[2]));
  return Lab((vision.matrix * linear).cwiseMax(0).cwiseMin(1));
}

using ColorVision = testing::TestWithParam<Vision>;
INSTANTIATE_TEST_SUITE_P(, ColorVision,
  testing::Values(Vision{ "Normal", Matrix3d::Identity() },
    Vision{ "Protanopia", ByRows({ 0.152286, 1.052583, -0.204868 },
                            { 0.114503, 0.786281, 0.099216 }, { -0.003882, -0.048116, 1.051998 }) },
    Vision{
      "Deuteranopia", ByRows({ 0.367322, 0.860646, -0.227968 }, { 0.280085, 0.672501, 0.047413 },
                        { -0.011820, 0.042940, 0.968881 }) },
    Vision{ "Tritanopia", ByRows({ 1.255528, -0.076749, -0.178779 },
                            { -0.078411, 0.930809, 0.147602 }, { 0.004733, 0.691367, 0.303900 }) }),
  [](const auto& vision) { return std::string(vision.param.name); });

TEST_P(ColorVision, TellsTheBaseColorsApart)
{
  EXPECT_EQ(BaseColorCount, 24);
  for (int a = 0; a < BaseColorCount; ++a)
  {
    for (int b = a + 1; b < BaseColorCount; ++b)
    {
      const double distance =
        (LabAsSeen(ClassColor(a), GetParam()) - LabAsSeen(ClassColor(b), GetParam())).norm();
      EXPECT_GE(distance, 15) << "classes " << a << " and " << b;
    }
  }
}

TEST_P(ColorVision, SeesGreysAsGrey)
{
  const Vector3d white = LabAsSeen({ 255, 255, 255 }, GetParam());
  EXPECT_NEAR(white[0], 100, 0.01);
  EXPECT_NEAR(white.tail(2).norm(), 0, 0.01);
}

/// Lab of a color, from a published table, so that the distances above mean what they should.
TEST(Lab, OfRedIsAsPublished)
{
  const Vision normal = { "Normal", Matrix3d::Identity() };
  const Vector3d red = LabAsSeen({ 255, 0, 0 }, normal);
  EXPECT_LE((red - Vector3d(53.24, 80.09, 67.20)).norm(), 0.05);
}

TEST(ClassColor, TheFirst48DifferAndUnknownIsGrey)
{
  const Rgb unknown = ClassColor(-1);
  EXPECT_EQ(unknown[0], unknown[1]);
  EXPECT_EQ(unknown[1], unknown[2]);
  EXPECT_EQ(ClassColor(-2), unknown);
  EXPECT_EQ(ClassColor(-2147483647), unknown);
  EXPECT_NE(ClassColor(2147483647), unknown);
  std::set<Rgb> colors = { unknown };
  for (int k = 0; k < 48; ++k)
  {
    EXPECT_TRUE(colors.insert(ClassColor(k)).second) << k;
  }
}

TEST(ColorIntensity, GoesFromChanceToCertainty)
{
  for (const int classes : { 2, 5, 12, 100000 })
  {
    const float chance = 1.F / static_cast<float>(classes);
    EXPECT_EQ(ColorIntensity(chance, classes), 0) << classes;
    EXPECT_EQ(ColorIntensity(1, classes), 1) << classes;
    EXPECT_NEAR(ColorIntensity((1 + chance) / 2, classes), 0.5F, 1e-6F) << classes;
    EXPECT_NEAR(ColorIntensity((3 + chance) / 4, classes), 0.75F, 1e-6F) << classes;
  }
  EXPECT_EQ(ColorIntensity(0.1F, 5), 0);
  EXPECT_EQ(ColorIntensity(1.0001F, 5), 1);
  EXPECT_EQ(ColorIntensity(1, 1), 1);
}

TEST(Fade, GoesFromWhiteToTheColor)
{
  const Rgb color = { 0, 100, 255 };
  EXPECT_THAT(Fade(color, 0), ElementsAre(255, 255, 255));
  EXPECT_EQ(Fade(color, 1), color);
  EXPECT_THAT(Fade(color, 0.2F), ElementsAre(204, 224, 255));
  EXPECT_THAT(Fade(color, 0.8F), ElementsAre(51, 131, 255));
}

}
