#include "Drawing/ColoredArray.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using atlas::ColoredArray;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

namespace
{

ColoredArray Numbers(const std::string& name, double low, double high)
{
  ColoredArray shown;
  shown.array = name;
  shown.components = 1;
  shown.low = low;
  shown.high = high;
  shown.Explain("", true);
  return shown;
}

/// The values at which a scale has colors.
std::vector<double> Values(const std::vector<double>& points)
{
  std::vector<double> values;
  for (std::size_t i = 0; i < points.size(); i += 4)
  {
    values.push_back(points[i]);
  }
  return values;
}

TEST(ColoredArray, WeightsHaveTheSameScaleInEveryImage)
{
  for (const double high : { 0.1, 0.9 })
  {
    const std::vector<double> scale = Numbers("Weights", 0, high).Scale(high);
    EXPECT_THAT(Values(scale), ElementsAre(0, 0.2, 0.4, 0.6, 0.8, 1));
    EXPECT_THAT(std::vector<double>(scale.begin(), scale.begin() + 4), ElementsAre(0, 1, 1, 1));
  }
}

TEST(ColoredArray, SignedValuesHaveSidesOfTheSameLength)
{
  const ColoredArray shown = Numbers("Contribution", -0.5, 2);
  EXPECT_THAT(Values(shown.Scale(shown.LargestMagnitude())), ElementsAre(-2, 0, 2));
  EXPECT_THAT(Values(Numbers("Score 1", -4, 3).Scale(1)), ElementsAre(-4, 0, 4));
  EXPECT_THAT(Values(Numbers("Mutation Effect", -4, 3).Scale(3)), ElementsAre(-3, 0, 3));
}

TEST(ColoredArray, SharesEndAtTheLargestValueAndScoresFillTheirRange)
{
  EXPECT_THAT(Values(Numbers("Sink", 0.1, 0.5).Scale(1)),
    ElementsAre(0, 0.1, 0.2, testing::DoubleEq(0.3), 0.4, 0.5));
  EXPECT_THAT(Values(Numbers("Scores", -2, 6).Scale(1)), ElementsAre(-2, 0, 2, 4, 6));
  EXPECT_THAT(
    Values(Numbers("Contact Evidence", -0.5, 1.5).Scale(1)), ElementsAre(-0.5, 0, 0.5, 1, 1.5));
}

TEST(ColoredArray, ProbabilitiesArePaleBelowWords)
{
  ColoredArray shown = Numbers("Probability", 0, 1);
  EXPECT_THAT(shown.Scale(1), ElementsAre(0, 1, 1, 1, 1, 0, 0, 0));
  EXPECT_EQ(Numbers("Prediction", 0, 0.4).Scale(1), shown.Scale(1));
  shown.hasWords = true;
  EXPECT_THAT(shown.Scale(1), SizeIs(12));
}

TEST(ColoredArray, BytesAreColorsIfTheirNameSaysSo)
{
  ColoredArray shown = Numbers("HeadColor", 0, 255);
  shown.components = 4;
  EXPECT_FALSE(shown.ShowsColors());
  shown.hasBytes = true;
  EXPECT_TRUE(shown.ShowsColors());
  EXPECT_TRUE(shown.HasOpacity());
  EXPECT_THAT(shown.Scale(1), IsEmpty());
  shown.array = "Class";
  EXPECT_FALSE(shown.ShowsColors());
}

TEST(ColoredArray, LegendsAreThoseOfTheDataOrOfNumbersThatAreCategories)
{
  ColoredArray shown = Numbers("TokenColor", 0, 255);
  EXPECT_FALSE(shown.HasLegend());
  shown.Explain("Position\n1 2 3 first\n4 5 6 last", false);
  EXPECT_TRUE(shown.HasLegend());
  EXPECT_TRUE(shown.ours);
  EXPECT_EQ(shown.Title(), "Position");
  EXPECT_EQ(Numbers("Match", 0, 1).legend, "Match\n204 204 204 other\n178 18 31 found");
  EXPECT_TRUE(Numbers("Head", 0, 15).HasLegend());
  EXPECT_FALSE(Numbers("Head", 0, 16).HasLegend());
}

TEST(ColoredArray, OfOtherProgramsHasNoHeat)
{
  ColoredArray shown = Numbers("Heat", 0, 1);
  EXPECT_TRUE(shown.IsHeat());
  EXPECT_THAT(Values(shown.Scale(4)), testing::Contains(4));
  shown.Explain("", false);
  EXPECT_FALSE(shown.ours);
  EXPECT_THAT(shown.Scale(4), IsEmpty());
}

}
