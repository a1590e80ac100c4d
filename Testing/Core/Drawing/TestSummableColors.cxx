#include "Drawing/SummableColors.h"

#include <array>
#include <limits>
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

/// Colors add up as vectors do, up to rounding.
TEST(SummableColors, AdditiveShowsTheLargestAtFullIntensity)
{
  const ColorScale scale = AdditiveScale(RangeOf({ -8, 0.5, 4 }));
  EXPECT_EQ(scale.gain, 0.25);
  EXPECT_EQ(scale.offset, 0);
  EXPECT_EQ(ColorOf(scale, { 4, 0, 2 }), (Rgb{ 255, 0, 128 })); // 127.5 rounds up
  EXPECT_EQ(ColorOf(scale, { -1, 5, 1 }), (Rgb{ 0, 255, 64 }));
  EXPECT_EQ(ColorOf(scale, { 0.5, 1.5, 3 }), (Rgb{ 32, 96, 191 }));
  EXPECT_EQ(ColorOf(scale, { 0.25, 0.75, 3.5 }), (Rgb{ 16, 48, 223 }));
  EXPECT_EQ(ColorOf(scale, { 0.75, 2.25, 6.5 }), (Rgb{ 48, 143, 255 })); // the sum of both
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
