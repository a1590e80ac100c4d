#include "Base/Progress.h"

#include "Base/ParallelProgress.h"
#include "Base/RemainingTime.h"
#include "Reports.h"

#include <cstdint>
#include <set>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::KeepReports;
using testing::ElementsAre;
using testing::IsEmpty;

namespace
{

TEST(Progress, IsReportedToNobodyByDefault)
{
  const Progress nobody;
  nobody(0.5);
  nobody(1, 3);
  nobody.Part(0, 0.5)(1);
}

TEST(Progress, OfAPartIsFromItsBeginToItsEnd)
{
  std::vector<double> reports;
  const Progress whole = KeepReports(reports);
  whole(1, 4);
  const Progress half = whole.Part(0.5, 1);
  half(0);
  half(0.5);
  half.Part(1, 2, 2)(0.5);
  half(1);
  EXPECT_THAT(reports, ElementsAre(0.25, 0.5, 0.75, 0.875, 1));
}

TEST(Progress, ThrowsWhatTheReportThrows)
{
  std::vector<double> reports;
  const Progress whole = KeepReports(reports, 2);
  whole(0);
  EXPECT_THROW(whole.Part(0.5, 1)(0), Canceled);
  EXPECT_THAT(reports, ElementsAre(0, 0.5));
}

TEST(Progress, OfALoopEndsOnTheCallingThreadWhicheverRanIt)
{
  constexpr int count = 8;
  for (int repeat = 0; repeat < 50; ++repeat)
  {
    std::vector<double> reports;
    std::set<std::thread::id> threads;
    const auto keep = [&](double done)
    {
      reports.push_back(done);
      threads.insert(std::this_thread::get_id());
    };
    ParallelFor(count, 3, Progress(keep), [](std::int64_t) {});
    ASSERT_FALSE(reports.empty());
    EXPECT_EQ(reports.back(), 1);
    EXPECT_THAT(threads, ElementsAre(std::this_thread::get_id()));
  }
  std::vector<double> none;
  ParallelFor(0, 3, KeepReports(none), [](std::int64_t) {});
  EXPECT_THAT(none, IsEmpty());
}

/// A run whose first twelfth took 20 s takes 220 s more.
TEST(RemainingTime, FollowsFromThePartThatIsDone)
{
  EXPECT_EQ(RemainingTime::Describe(20, 1. / 12), "about 4 min left");
  EXPECT_EQ(RemainingTime::Describe(60, 0.75), "about 20 s left");
  EXPECT_EQ(RemainingTime::Describe(3600, 0.25), "about 3 h left");
  // Nothing without a part, or of what is short.
  EXPECT_EQ(RemainingTime::Describe(59.9, 0.9985), "");
  EXPECT_EQ(RemainingTime::Describe(100, 0), "");
  EXPECT_EQ(RemainingTime::Describe(100, 1), "");
  EXPECT_EQ(RemainingTime::Describe(0.5, 0.006), "");
  EXPECT_EQ(RemainingTime::Describe(5, 0.1), "");
  EXPECT_EQ(RemainingTime()(0.5), "");
}

/// The first 60 % were done before, and then it begins anew: with the time as a number, a hundredth
/// in two seconds leaves 80 s of 40 % and 198 s of all.
TEST(RemainingTime, CountsFromWhereItBegan)
{
  RemainingTime time;
  EXPECT_EQ(time.At(100, 0.6), "");
  EXPECT_EQ(time.At(102, 0.61), "about 78 s left");
  EXPECT_EQ(time.At(103, 0), "");
  EXPECT_EQ(time.At(105, 0.01), "about 3 min left");
}

}
