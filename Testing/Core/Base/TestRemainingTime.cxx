#include "RemainingTime.h"

#include <gtest/gtest.h>

using atlas::RemainingTime;

namespace
{

/// A run whose first twelfth took 20 s takes 220 s more.
TEST(RemainingTime, FollowsFromThePartThatIsDone)
{
  EXPECT_EQ(RemainingTime::Describe(20, 1. / 12), "about 4 min left");
  EXPECT_EQ(RemainingTime::Describe(60, 0.75), "about 20 s left");
  EXPECT_EQ(RemainingTime::Describe(3600, 0.25), "about 3 h left");
  EXPECT_EQ(RemainingTime::Describe(59.9, 0.9985), "");
}

TEST(RemainingTime, SaysNothingWithoutAPartOrOfWhatIsShort)
{
  EXPECT_EQ(RemainingTime::Describe(100, 0), "");
  EXPECT_EQ(RemainingTime::Describe(100, 1), "");
  EXPECT_EQ(RemainingTime::Describe(0.5, 0.006), "");
  EXPECT_EQ(RemainingTime::Describe(5, 0.1), "");
  EXPECT_EQ(RemainingTime()(0.5), "");
}

}
