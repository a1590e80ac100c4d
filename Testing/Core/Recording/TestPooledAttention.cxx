#include "PooledAttention.h"

#include "Error.h"
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

/// Pools a whole map in the most direct way: token t is in the last bin that begins at or before
/// it.
std::vector<double> PoolMap(
  const std::vector<float>& map, std::size_t length, std::size_t bins, AttentionPooling pooling)
{
  const auto binOf = [&](std::size_t token)
  {
    std::size_t bin = 0;
    while (bin + 1 < bins && (bin + 1) * length / bins <= token)
    {
      ++bin;
    }
    return bin;
  };
  std::vector<double> largest(bins * bins, -HUGE_VAL);
  std::vector<double> sum(bins * bins);
  std::vector<double> count(bins * bins);
  for (std::size_t i = 0; i < length; ++i)
  {
    for (std::size_t j = 0; j < length; ++j)
    {
      const std::size_t bin = binOf(i) * bins + binOf(j);
      const auto value = static_cast<double>(map[i * length + j]);
      largest[bin] = std::max(largest[bin], value);
      sum[bin] += value;
      ++count[bin];
    }
  }
  std::transform(sum.begin(), sum.end(), count.begin(), sum.begin(), std::divides<double>());
  return pooling == AttentionPooling::Maximum ? largest : sum;
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
            PoolMap(map, length, bins, pooling), 1e-6);
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
  const Recording recording = LongRecording(3);
  EXPECT_EQ(MessageOf<OptionError>(
              [&] { PoolHeads(recording, 0, AttentionQuantity::Weights, { { 1, 2 } }, {}); }),
    "expected a head from 0 to 1, found 2.");
  EXPECT_EQ(MessageOf<OptionError>(
              [&] { PoolHeads(recording, 0, AttentionQuantity::Weights, { { 1, 0 } }, { 0 }); }),
    "expected a size of at least 1, found 0.");
  Recording empty = LongRecording(3);
  empty.sequenceOffsets.push_back(empty.sequenceOffsets.back());
  const auto last = static_cast<int>(empty.sequenceOffsets.size()) - 2;
  EXPECT_EQ(MessageOf<OptionError>(
              [&] { PoolHeads(empty, last, AttentionQuantity::Weights, { { 1, 0 } }, {}); }),
    "sequence " + std::to_string(last) + ": expected at least 1 token, found 0.");
}

}
