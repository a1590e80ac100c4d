#include "ValueRanges.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using testing::ElementsAre;
using testing::IsEmpty;

namespace
{

TEST(ValueRanges, OfNumbers)
{
  const std::vector<float> values = { 3, -2, 7.5, 0 };
  const ValueRanges ranges = RangesOf(values.data(), 1, 4);
  EXPECT_THAT(ranges.least, ElementsAre(-2));
  EXPECT_THAT(ranges.largest, ElementsAre(7.5));
  EXPECT_EQ(ranges.leastSquare, 0);
  EXPECT_EQ(ranges.largestSquare, 0);
}

TEST(ValueRanges, OfVectors)
{
  const std::vector<int> values = { 3, 4, -1, 0, 0, 12 };
  const ValueRanges ranges = RangesOf(values.data(), 2, 3);
  EXPECT_THAT(ranges.least, ElementsAre(-1, 0));
  EXPECT_THAT(ranges.largest, ElementsAre(3, 12));
  EXPECT_EQ(ranges.leastSquare, 1);
  EXPECT_EQ(ranges.largestSquare, 144);
}

TEST(ValueRanges, SquaresDoNotOverflow)
{
  const std::vector<int> values = { std::numeric_limits<int>::max(), 0 };
  EXPECT_EQ(RangesOf(values.data(), 2, 1).largestSquare, 2147483647. * 2147483647.);
  const std::vector<unsigned char> bytes = { 255, 255, 255 };
  EXPECT_EQ(RangesOf(bytes.data(), 3, 1).leastSquare, 3. * 255 * 255);
  const std::vector<float> large = { 1e30F, 0 };
  EXPECT_EQ(RangesOf(large.data(), 2, 1).largestSquare,
    static_cast<double>(1e30F) * static_cast<double>(1e30F));
}

TEST(ValueRanges, AreJoined)
{
  const std::vector<float> first = { 1, 2 };
  const std::vector<float> second = { -3, 1 };
  ValueRanges joined;
  joined.Join(RangesOf(first.data(), 2, 1));
  EXPECT_THAT(joined.least, ElementsAre(1, 2));
  EXPECT_EQ(joined.leastSquare, 5) << "there was no tuple before, and none of length 0";
  joined.Join(RangesOf(second.data(), 2, 1));
  EXPECT_THAT(joined.least, ElementsAre(-3, 1));
  EXPECT_THAT(joined.largest, ElementsAre(1, 2));
  EXPECT_EQ(joined.leastSquare, 5);
  EXPECT_EQ(joined.largestSquare, 10);
}

TEST(ValueRanges, WithoutTuplesAddNothing)
{
  const std::vector<float> values = { 1, 2 };
  ValueRanges joined = RangesOf(values.data(), 2, 1);
  joined.Join({});
  EXPECT_THAT(joined.least, ElementsAre(1, 2));
  EXPECT_THAT(joined.largest, ElementsAre(1, 2));
  EXPECT_EQ(joined.leastSquare, 5);
  EXPECT_EQ(joined.largestSquare, 5);
  ValueRanges none;
  none.Join({});
  EXPECT_THAT(none.least, IsEmpty());
}

}
