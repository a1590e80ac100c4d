#include "SummableColors.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

using namespace atlas;

namespace
{

using Vector = std::array<double, 3>;

ComponentRange RangeOf(const std::vector<double>& components)
{
  ComponentRange range;
  for (const double component : components)
  {
    range.Add(component);
  }
  return range;
}

Rgb ColorOf(const ColorScale& scale, const Vector& vector)
{
  return scale.Color(vector.data());
}

TEST(SummableColors, AdditiveShowsTheLargestAtFullIntensity)
{
  const ColorScale scale = AdditiveScale(RangeOf({ -8, 0.5, 4 }));
  EXPECT_EQ(scale.gain, 0.25);
  EXPECT_EQ(scale.offset, 0);
  EXPECT_EQ(ColorOf(scale, { 4, 0, 2 }), (Rgb{ 255, 0, 128 })); // 127.5 rounds up
  EXPECT_EQ(ColorOf(scale, { -1, 5, 1 }), (Rgb{ 0, 255, 64 }));
}

TEST(SummableColors, AdditiveAdds)
{
  const ColorScale scale = AdditiveScale(RangeOf({ 3 }));
  std::mt19937 generator(7);
  std::uniform_real_distribution<double> component(0, 1.5);
  for (int i = 0; i < 10000; ++i)
  {
    Vector a;
    Vector b;
    Vector sum;
    for (std::size_t c = 0; c < 3; ++c)
    {
      a[c] = component(generator);
      b[c] = component(generator);
      sum[c] = a[c] + b[c];
    }
    const Rgb colorA = ColorOf(scale, a);
    const Rgb colorB = ColorOf(scale, b);
    const Rgb colorSum = ColorOf(scale, sum);
    for (std::size_t c = 0; c < 3; ++c)
    {
      EXPECT_LE(std::abs(colorA[c] + colorB[c] - colorSum[c]), 1);
    }
  }
}

TEST(SummableColors, SharedRangeShowsAll)
{
  const ColorScale scale = SharedRangeScale(RangeOf({ -1, 3, 0 }));
  EXPECT_EQ(ColorOf(scale, { -1, 3, 1 }), (Rgb{ 0, 255, 128 }));
  EXPECT_EQ(ColorOf(scale, { -9, 9, 0 }), (Rgb{ 0, 255, 64 }));
}

TEST(SummableColors, AreDefinedWithoutARange)
{
  for (const ComponentRange& range :
    { ComponentRange(), RangeOf({ std::numeric_limits<double>::quiet_NaN() }) })
  {
    EXPECT_TRUE(range.IsEmpty());
    EXPECT_EQ(ColorOf(SharedRangeScale(range), { 1, 2, 3 }), (Rgb{ 128, 128, 128 }));
  }
  EXPECT_EQ(AdditiveScale(ComponentRange()).gain, 1);
  EXPECT_EQ(AdditiveScale(RangeOf({ -2, -1 })).gain, 1);
  EXPECT_EQ(ColorOf(SharedRangeScale(RangeOf({ 5, 5 })), { 5, 5, 5 }), (Rgb{ 128, 128, 128 }));
}

TEST(SummableColors, ShowWhatIsNotFiniteAsGrey)
{
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const ColorScale scale = AdditiveScale(RangeOf({ 1 }));
  EXPECT_EQ(ColorOf(scale, { 1, nan, 0 }), (Rgb{ 128, 128, 128 }));
  EXPECT_EQ(ColorOf(scale, { infinity, 0, 0 }), (Rgb{ 128, 128, 128 }));
}

TEST(ComponentRange, JoinsRanges)
{
  ComponentRange range = RangeOf({ 1, 2 });
  range.Add(ComponentRange());
  EXPECT_EQ(range.GetMinimum(), 1);
  range.Add(RangeOf({ -3 }));
  EXPECT_EQ(range.GetMinimum(), -3);
  EXPECT_EQ(range.GetMaximum(), 2);
}

}
