#include "Progress.h"

#include "Reports.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using atlas::test::KeepReports;
using testing::ElementsAre;

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

}
