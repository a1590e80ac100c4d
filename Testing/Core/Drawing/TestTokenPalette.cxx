#include "Drawing/TokenPalette.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using testing::ElementsAre;

namespace
{

constexpr Rgb Blue = { 0, 114, 178 };     // Okabe and Ito (2008)
constexpr Rgb Vermilion = { 213, 94, 0 }; // the same
constexpr Rgb Gray = { 128, 128, 128 };

TEST(TokenPalette, KindsHaveTheFirstTwoColors)
{
  EXPECT_EQ(KindColor(TokenKind::Query), Blue);
  EXPECT_EQ(KindColor(TokenKind::Key), Vermilion);
}

/// channel = 255 - (0.25 + 0.75 share) (255 - c), rounded.
TEST(TokenPalette, ValuesAreLightness)
{
  EXPECT_EQ(ShadedColor(TokenKind::Query, 1), Blue);
  EXPECT_EQ(ShadedColor(TokenKind::Key, 1), Vermilion);
  EXPECT_THAT(ShadedColor(TokenKind::Query, 0), ElementsAre(191, 220, 236));
  EXPECT_THAT(ShadedColor(TokenKind::Query, 0.5), ElementsAre(96, 167, 207));
  EXPECT_THAT(ShadedColor(TokenKind::Key, 0), ElementsAre(245, 215, 191));
  EXPECT_EQ(ShadedColor(TokenKind::Key, 7), Vermilion);
  EXPECT_EQ(ShadedColor(TokenKind::Query, -7), ShadedColor(TokenKind::Query, 0));
  EXPECT_EQ(ShadedColor(TokenKind::Query, std::numeric_limits<double>::quiet_NaN()), Gray);
}

TEST(TokenPalette, PeriodsPairDarkAndLight)
{
  for (int position = 0; position < 12; ++position)
  {
    EXPECT_EQ(PeriodicColor(TokenKind::Query, position, 5), ClassColor(position % 5));
    EXPECT_EQ(PeriodicColor(TokenKind::Key, position, 5), Fade(ClassColor(position % 5), 0.55F));
  }
  EXPECT_EQ(PeriodicColor(TokenKind::Key, -1, 5), Gray);
  EXPECT_EQ(PeriodicColor(TokenKind::Query, 23, 24), ClassColor(23));
}

/// Values of Python's colorsys.
TEST(TokenPalette, HuesAreThoseOfTheColorWheel)
{
  const auto expect = [](const std::array<double, 3>& rgb, double hue, double saturation)
  {
    const Hsv hsv = ToHsv(rgb);
    EXPECT_NEAR(hsv.hue, hue, 1e-12);
    EXPECT_NEAR(hsv.saturation, saturation, 1e-12);
    EXPECT_EQ(hsv.value, std::max({ rgb[0], rgb[1], rgb[2] }));
  };
  expect({ 1, 0, 0 }, 0, 1);
  expect({ 0, 1, 0 }, 1. / 3, 1);
  expect({ 0, 0, 0.5 }, 2. / 3, 1);
  expect({ 0.5, 0.25, 0.375 }, 0.9166666666666666, 0.5);
  expect({ 0.2, 0.4, 0.8 }, 0.6111111111111112, 0.75);
  expect({ 0.25, 0.75, 0.5 }, 0.4166666666666667, 2. / 3);
  expect({ 0.3, 0.3, 0.3 }, 0, 0);
  expect({ 0, 0, 0 }, 0, 0);
  EXPECT_THAT(HueColor(0), ElementsAre(255, 0, 0));
  EXPECT_THAT(HueColor(1. / 6), ElementsAre(255, 255, 0));
  EXPECT_THAT(HueColor(0.4), ElementsAre(0, 255, 102));
  EXPECT_THAT(HueColor(2. / 3), ElementsAre(0, 0, 255));
  EXPECT_THAT(HueColor(0.95), ElementsAre(255, 0, 77));
  EXPECT_THAT(HueColor(1), ElementsAre(255, 0, 0));
}

TEST(TokenPalette, BytesAreRoundedAndClipped)
{
  EXPECT_THAT(ToBytes({ 0, 0.5, 1 }), ElementsAre(0, 128, 255));
  EXPECT_THAT(ToBytes({ -1, 0.2, 7 }), ElementsAre(0, 51, 255));
  EXPECT_EQ(ToBytes({ 0, std::nan(""), 0 }), Gray);
}

}
