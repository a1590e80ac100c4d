#include "Recording/PooledAttention.h"

#include "Base/Error.h"
#include "DefinedAttention.h"
#include "ErrorMessage.h"
#include "LongRecording.h"
#include "Oracle.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace
{

std::vector<float> PoolHeads(const Recording& recording, std::int64_t sequence,
  AttentionQuantity quantity, const std::vector<HeadPlace>& heads, const PoolingOptions& options,
  int threads = 2)
{
  const std::size_t bins = BinCount(AttentionLength(recording, sequence), options.size);
  std::vector<float> values(heads.size() * bins * bins, -7);
  PoolAttention(recording, sequence, quantity, heads, options, values.data(), threads);
  return values;
}

TEST(PooledAttention, BinsDifferByOneToken)
{
  EXPECT_EQ(BinCount(10, 4), 4);
  EXPECT_EQ(BinCount(3, 4), 3);
  std::vector<std::int64_t> begins;
  for (std::int64_t bin = 0; bin <= 4; ++bin)
  {
    begins.push_back(BinBegin(bin, 4, 10));
  }
  EXPECT_THAT(begins, ElementsAre(0, 2, 5, 7, 10));
}

/// Lengths below a block of rows, of several, and with several blocks per bin; against the maps
/// that EvaluateAttention gives.
TEST(PooledAttention, PoolsTheMapsOfAllHeads)
{
  for (const auto& [length, size] :
    { std::pair{ 1, 1 }, { 10, 4 }, { 50, 64 }, { 200, 3 }, { 300, 64 } })
  {
    const Recording recording = LongRecording(length);
    const std::int64_t bins = BinCount(length, size);
    std::vector<std::int64_t> edges;
    for (std::int64_t bin = 0; bin <= bins; ++bin)
    {
      edges.push_back(bin * length / bins);
    }
    const std::vector<HeadPlace> heads = { { 1, 0 }, { 1, 1 }, { 3, 1 }, { 2, -1 } };
    for (const AttentionQuantity quantity :
      { AttentionQuantity::Weights, AttentionQuantity::Scores, AttentionQuantity::Rollout })
    {
      std::vector<float> map(length * length);
      for (const AttentionPooling pooling : { AttentionPooling::Maximum, AttentionPooling::Mean })
      {
        const std::vector<float> found =
          PoolHeads(recording, 0, quantity, heads, { size, pooling });
        for (std::size_t h = 0; h < heads.size(); ++h)
        {
          EvaluateAttention(
            recording, 0, heads[h].layer, heads[h].head, quantity, 0, length, map.data());
          const auto begin = found.begin() + static_cast<std::ptrdiff_t>(h) * bins * bins;
          ExpectClose("pooled", std::vector<float>(begin, begin + bins * bins),
            PoolMap(map, length, edges, edges, pooling), 1e-6);
        }
      }
    }
  }
}

TEST(PooledAttention, BytesDoNotDependOnThreads)
{
  const Recording recording = LongRecording(300);
  const std::vector<HeadPlace> heads = { { 1, 0 }, { 3, 1 } };
  const auto pool = [&](int threads)
  { return PoolHeads(recording, 0, AttentionQuantity::Weights, heads, {}, threads); };
  EXPECT_EQ(pool(1), pool(5));
}

/// Scores that a file holds may be -infinity where the mask excludes a key.
TEST(PooledAttention, LeavesOutWhatIsNotFinite)
{
  constexpr float none = -std::numeric_limits<float>::infinity();
  Recording recording = LongRecording(4);
  SharedMatrix scores = SharedMatrix::Zero(4, 4);
  const std::vector<float> values = { 1, none, none, none, 3, 2, none, none, 4, 5, 6, none, 8, 7, 9,
    10 };
  std::copy(values.begin(), values.end(), scores.Row(0));
  recording.layers[0].heads[0].scores = { scores };
  const auto pool = [&](AttentionPooling pooling)
  { return PoolHeads(recording, 0, AttentionQuantity::Scores, { { 1, 0 } }, { 2, pooling }); };
  EXPECT_THAT(pool(AttentionPooling::Maximum), ElementsAre(3, testing::IsNan(), 8, 10));
  EXPECT_THAT(
    pool(AttentionPooling::Mean), ElementsAre(2, testing::IsNan(), 6, testing::FloatEq(25.F / 3)));
}

TEST(PooledAttention, CanBeStopped)
{
  const Recording recording = LongRecording(30);
  std::vector<float> values(900);
  for (const AttentionQuantity quantity :
    { AttentionQuantity::Weights, AttentionQuantity::Rollout })
  {
    const auto pool = [&]
    {
      PoolAttention(recording, 0, quantity, { { 1, 0 } }, {}, values.data(), 1,
        [](double) { throw Canceled(); });
    };
    EXPECT_THROW(pool(), Canceled);
  }
}

TEST(PooledAttention, WhatTheRecordingLacksIsRefused)
{
  Recording recording = LongRecording(3);
  recording.sequenceOffsets.push_back(recording.sequenceOffsets.back());
  const auto refusal = [&](std::int64_t sequence, const HeadPlace& head, std::int64_t size)
  {
    return MessageOf<OptionError>(
      [&] { PoolHeads(recording, sequence, AttentionQuantity::Weights, { head }, { size }); });
  };
  EXPECT_THAT(refusal(0, { 1, 2 }, 64), HasSubstr("a head from 0 to 1, found 2"));
  EXPECT_THAT(refusal(0, { 1, 0 }, 0), HasSubstr("a size of at least 1, found 0"));
  EXPECT_THAT(refusal(1, { 1, 0 }, 64), HasSubstr("sequence 1: expected at least 1 token"));
}

}
