#include "Drawing/LabelPlacement.h"

#include <algorithm>
#include <numeric>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using testing::ElementsAre;
using testing::IsEmpty;

namespace
{

TEST(LabelPlacement, WideLettersAreTwiceAsWide)
{
  EXPECT_EQ(LabelWidth(""), 0);
  EXPECT_DOUBLE_EQ(LabelWidth("caf\u00E9"), 4 * 0.45);
  EXPECT_DOUBLE_EQ(LabelWidth("\u4F60\u597D"), 2 * 0.9);
  EXPECT_DOUBLE_EQ(LabelWidth("a\U0001F642"), 0.45 + 0.9);
}

TEST(LabelPlacement, OrdersEvenly)
{
  EXPECT_THAT(SpreadOrder(0), IsEmpty());
  EXPECT_THAT(SpreadOrder(1), ElementsAre(0));
  EXPECT_THAT(SpreadOrder(8), ElementsAre(0, 4, 2, 6, 1, 5, 3, 7));
  EXPECT_THAT(SpreadOrder(6), ElementsAre(0, 4, 2, 1, 5, 3));
  std::vector<std::int64_t> order = SpreadOrder(1000);
  std::vector<std::int64_t> first(order.begin(), order.begin() + 64);
  std::sort(first.begin(), first.end());
  for (std::size_t i = 1; i < first.size(); ++i)
  {
    EXPECT_LE(first[i] - first[i - 1], 16);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::int64_t> all(1000);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(order, all);
}

TEST(LabelPlacement, BoxesTouchButDoNotOverlap)
{
  LabelBoxes boxes(100, 50);
  EXPECT_TRUE(boxes.Place({ 10, 10, 40, 20 }));
  EXPECT_FALSE(boxes.Place({ 39, 19, 60, 30 }));
  EXPECT_TRUE(boxes.Place({ 40, 10, 60, 20 }));
  EXPECT_TRUE(boxes.Place({ 10, 20, 40, 30 }));
  EXPECT_FALSE(boxes.Place({ 20, 12, 22, 13 })); // within another
  EXPECT_FALSE(boxes.Place({ -1, 40, 5, 45 }));
  EXPECT_FALSE(boxes.Place({ 90, 40, 101, 45 }));
  EXPECT_FALSE(boxes.Place({ 90, 40, 90, 45 }));
  EXPECT_TRUE(boxes.Place({ 90, 40, 100, 50 }));
}

TEST(LabelPlacement, TakesWhatIsOnTheScreen)
{
  LabelBoxes boxes(100, 50);
  boxes.Block({ -20, -20, 10, 10 });
  boxes.Block({ 5, 5, 15, 15 }); // whatever it overlaps
  boxes.Block({ 200, 5, 215, 15 });
  EXPECT_FALSE(boxes.Place({ 0, 0, 5, 5 }));
  EXPECT_FALSE(boxes.Place({ 14, 14, 20, 20 }));
  EXPECT_TRUE(boxes.Place({ 15, 10, 20, 20 }));
}

/// The same as comparing each pair.
TEST(LabelPlacement, FindsRoomAsByPairs)
{
  std::mt19937 generator(3);
  const auto number = [&generator](unsigned end) { return static_cast<int>(generator() % end); };
  LabelBoxes boxes(500, 400);
  std::vector<LabelBox> placed;
  for (int i = 0; i < 2000; ++i)
  {
    LabelBox box{ number(450), number(380), 0, 0 };
    box.right = box.left + 1 + number(49);
    box.top = box.bottom + 1 + number(19);
    const bool isFree = std::none_of(placed.begin(), placed.end(),
      [&box](const LabelBox& other)
      {
        return std::max(box.left, other.left) < std::min(box.right, other.right) &&
               std::max(box.bottom, other.bottom) < std::min(box.top, other.top);
      });
    EXPECT_EQ(boxes.Place(box), isFree);
    if (isFree)
    {
      placed.push_back(box);
    }
  }
  EXPECT_GT(placed.size(), 100U);
}

}
