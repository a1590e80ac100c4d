#include "Recording/StrongestKeys.h"

#include "Base/Error.h"
#include "ErrorMessage.h"
#include "StoredWeights.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using namespace testing;

namespace
{

/// A sequence of one token, and one of four.
Recording Make()
{
  Recording recording = StoredWeights({ { 1 },
    { 0.25F, 0.25F, 0.25F, 0.25F, 0, 0.125F, 0.5F, 0.375F, 1, 0, 0, 0, 0.1F, 0.2F, 0.1F, 0.6F } });
  recording.layerCount = 3;
  recording.layers[0].index = 2;
  return recording;
}

std::vector<Link> Links(const StrongestKeysOptions& options, std::int64_t begin = 0,
  std::int64_t end = 4, std::int64_t sequence = 1)
{
  std::vector<float> weights;
  std::vector<AttentionLink> links;
  AppendStrongestKeys(Make(), sequence, 2, 0, begin, end, options, weights, links);
  return LinksOf(links);
}

TEST(StrongestKeys, AreSortedWithTiesByKey)
{
  EXPECT_THAT(
    Links({ 2, 0 }), ElementsAre(Link(0, 0, 0.25F), Link(0, 1, 0.25F), Link(1, 2, 0.5F),
                       Link(1, 3, 0.375F), Link(2, 0, 1), Link(3, 3, 0.6F), Link(3, 1, 0.2F)));
  EXPECT_THAT(
    Links({ 3, 0 }, 3, 4), ElementsAre(Link(3, 3, 0.6F), Link(3, 1, 0.2F), Link(3, 0, 0.1F)));
}

TEST(StrongestKeys, HaveTheLeastWeight)
{
  EXPECT_THAT(Links({ 9, 0.375 }), // it is included
    ElementsAre(Link(1, 2, 0.5F), Link(1, 3, 0.375F), Link(2, 0, 1), Link(3, 3, 0.6F)));
  EXPECT_THAT(Links({ 9, 1 }), ElementsAre(Link(2, 0, 1)));
  EXPECT_THAT(Links({ 100, 0 }, 1, 3), testing::SizeIs(4)); // never a weight of 0
}

TEST(StrongestKeys, OfAnySequence)
{
  EXPECT_THAT(Links({ 2, 0.1 }, 0, 1, 0), ElementsAre(Link(0, 0, 1)));
  EXPECT_THAT(Links({ 2, 0.1 }, 2, 2), IsEmpty());
}

TEST(StrongestKeys, NamesWhatIsWrong)
{
  const auto message =
    [](const StrongestKeysOptions& options, std::int64_t end, std::int64_t sequence)
  { return MessageOf<OptionError>([&] { Links(options, 0, end, sequence); }); };
  EXPECT_THAT(message({ 0, 0.1 }, 1, 0), HasSubstr("Top: expected at least 1, found 0"));
  EXPECT_THAT(message({ 1, 1.5 }, 1, 0), HasSubstr("MinimumWeight: expected a weight from 0 to 1"));
  EXPECT_THAT(message({ 1, 0.1 }, 5, 1), HasSubstr("expected queries from 0 to 4, found 0 to 5"));
  EXPECT_THAT(message({ 1, 0.1 }, 1, 2), HasSubstr("expected a sequence from 0 to 1, found 2"));
}

}
