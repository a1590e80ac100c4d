#include "Numerics/ValueRanges.h"

#include "Numerics/InstructionSets.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using testing::ElementsAre;
using testing::IsEmpty;

namespace
{

template<class Value>
ValueRanges RangesOf(const Value* values, std::ptrdiff_t components, std::ptrdiff_t tuples)
{
  ValueRanges ranges;
  ranges.Add(values, components, tuples);
  return ranges;
}

/// Many tuples, whose vectors and rests have their extremes at any place.
template<class Value>
class OfManyTuples : public testing::Test
{
protected:
  static void Check(std::ptrdiff_t components)
  {
    std::mt19937 generator(1);
    for (std::ptrdiff_t tuples = 1; tuples < 200; ++tuples)
    {
      std::vector<Value> values;
      for (std::ptrdiff_t i = 0; i < tuples * components; ++i)
      {
        values.push_back(static_cast<Value>(generator() % 251) / 2);
      }
      const ValueRanges found = RangesOf(values.data(), components, tuples);
      double leastSquare = std::numeric_limits<double>::infinity();
      double largestSquare = 0;
      for (std::ptrdiff_t c = 0; c < components; ++c)
      {
        std::vector<double> of;
        for (std::ptrdiff_t i = c; i < tuples * components; i += components)
        {
          of.push_back(static_cast<double>(values[i]));
        }
        const auto [least, largest] = std::minmax_element(of.begin(), of.end());
        EXPECT_EQ(found.least[c], *least);
        EXPECT_EQ(found.largest[c], *largest);
      }
      for (auto i = values.begin(); i != values.end(); i += components)
      {
        const double square = std::inner_product(i, i + components, i, 0.);
        leastSquare = std::min(leastSquare, square);
        largestSquare = std::max(largestSquare, square);
      }
      EXPECT_EQ(found.leastSquare, components > 1 ? leastSquare : 0);
      EXPECT_EQ(found.largestSquare, components > 1 ? largestSquare : 0);
    }
  }
};
using Types = testing::Types<float, int, unsigned char>;
TYPED_TEST_SUITE(OfManyTuples, Types);

TYPED_TEST(OfManyTuples, AreTheExtremesOnEveryTarget)
{
  for (const std::string& target : SupportedTargets())
  {
    UseTarget(target);
    for (const std::ptrdiff_t components : { 1, 2, 3, 4 })
    {
      this->Check(components);
    }
  }
  UseTarget("");
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

TEST(ValueRanges, AreExtended)
{
  std::vector<unsigned char> values(3 * 200, 7);
  values[3] = 90; // the largest red, and of the first 100 tuples the longest
  values[3 * 199 + 2] = 5;
  ValueRanges ranges;
  ranges.Add(values.data(), 3, 100);
  EXPECT_THAT(ranges.least, ElementsAre(7, 7, 7));
  ranges.Add(values.data() + 300, 3, 100);
  EXPECT_THAT(ranges.least, ElementsAre(7, 7, 5));
  EXPECT_THAT(ranges.largest, ElementsAre(90, 7, 7));
  EXPECT_EQ(ranges.leastSquare, 49 + 49 + 25);
  EXPECT_EQ(ranges.largestSquare, 8100 + 49 + 49);
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

TEST(ValueRanges, FindsWhatIsNotFinite)
{
  constexpr std::ptrdiff_t count = 37;
  std::vector<float> values(count, std::numeric_limits<float>::max());
  values[3] = -1e-45F;
  values[5] = std::numeric_limits<float>::lowest();
  EXPECT_TRUE(AreFinite(values.data(), count));
  EXPECT_TRUE(AreFinite(values.data(), 0));
  for (const float other : { std::numeric_limits<float>::quiet_NaN(),
         std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity() })
  {
    for (std::ptrdiff_t i = 0; i < count; ++i)
    {
      std::vector<float> changed = values;
      changed[i] = other;
      EXPECT_FALSE(AreFinite(changed.data(), count)) << other << " at " << i;
      EXPECT_TRUE(AreFinite(changed.data(), i));
    }
  }
}

}
