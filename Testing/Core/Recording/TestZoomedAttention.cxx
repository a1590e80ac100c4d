#include "Recording/ZoomedAttention.h"

#include "Base/Error.h"
#include "DefinedAttention.h"
#include "ErrorMessage.h"
#include "LongRecording.h"
#include "Oracle.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace atlas;
using namespace atlas::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace
{

/// Attention of the only sequence by its definition.
std::vector<double> MapByDefinition(
  const Recording& recording, std::size_t head, AttentionQuantity quantity)
{
  const DefinedAttention defined(recording, 0, 0, head);
  return quantity == AttentionQuantity::Weights        ? defined.weights
         : quantity == AttentionQuantity::NormWeighted ? defined.normWeighted
         : quantity == AttentionQuantity::Scores       ? defined.scores
                                                       : defined.content;
}

std::vector<double> PoolInCells(const std::vector<double>& map, std::int64_t length,
  const MapCells& cells, AttentionPooling pooling)
{
  const auto edges = [](const KeyRange& range, std::int64_t cell)
  {
    std::vector<std::int64_t> list;
    for (std::int64_t edge = range.begin; edge < range.end; edge += cell)
    {
      list.push_back(edge);
    }
    list.push_back(range.end);
    return list;
  };
  return PoolMap(
    map, length, edges(cells.queries, cells.queryCell), edges(cells.keys, cells.keyCell), pooling);
}

/// One layer with two heads and what its scores may have beside products.
Recording Masked(const std::string& kind, std::int64_t length)
{
  Recording recording = LongRecording(length, { 1 });
  RecordedLayer& layer = recording.layers[0];
  std::mt19937 generator(3);
  for (RecordedHead& head : layer.heads)
  {
    head.valueNorm = RandomRows(length, 1, generator);
    std::for_each(head.valueNorm.Row(0), head.valueNorm.Row(length),
      [](float& norm) { norm = 3 * std::abs(norm); });
    head.valueNorm.Row(length / 2)[0] = 0;
  }
  const auto is = [&](std::initializer_list<const char*> kinds)
  { return std::find(kinds.begin(), kinds.end(), kind) != kinds.end(); };
  recording.mask = kind == "cross" ? AttentionMask::Cross
                   : is({ "bidirectional", "distances", "both sides" })
                     ? AttentionMask::Bidirectional
                     : AttentionMask::Causal;
  recording.sourceLengths.assign(kind == "cross" ? 1 : 0, length / 3);
  layer.window = is({ "window", "all", "both sides" }) ? 70 : 0;
  layer.chunk = kind == "chunks" ? 70 : 0;
  layer.scoreCap = is({ "cap", "all" }) ? 1.5 : 0;
  if (is({ "sinks", "all" }))
  {
    layer.sinks = { 1.5F, -0.5F };
  }
  if (is({ "slopes", "all" }))
  {
    recording.alibiSlopes = { 0.01, 0.002 };
  }
  if (kind == "distances")
  {
    recording.distanceBias = RandomRows(2, 2 * 20 + 1, generator);
  }
  return recording;
}

MapCells CellsOf(const Recording& recording, const MapWindow& window, std::int64_t size,
  std::int64_t baseCells = BaseCells)
{
  return ChooseCells(
    QueryPositions(recording, 0), KeyPositions(recording, 0), window, size, baseCells);
}

TEST(ZoomedAttention, CellsArePowersOfTwoAndBeginAtMultiplesOfThem)
{
  const MapCells all = ChooseCells({ 0, 100000 }, { 0, 100000 }, {}, 1024);
  EXPECT_EQ(all.queryCell, 128); // 100000 / 64 = 1563 are more than 1024
  EXPECT_EQ(all.Rows(), 782);
  EXPECT_EQ(all.keys.end, 100000);
  const MapCells part =
    ChooseCells({ 0, 100000 }, { 0, 100000 }, { { 5001, 8001 }, { 99000, 200000 } }, 1000);
  EXPECT_EQ(part.queryCell, 4);
  EXPECT_EQ(part.queries.begin, 5000);
  EXPECT_EQ(part.queries.end, 8004);
  EXPECT_EQ(part.keyCell, 1);
  EXPECT_EQ(part.keys.begin, 99000);
  EXPECT_EQ(part.keys.end, 100000);
}

/// 5000 to 8004 are 751 cells of 4; with cells of 2 there would be 1501.
TEST(ZoomedAttention, WindowsAreExtendedToWholeCells)
{
  EXPECT_EQ(ChooseCells({ 0, 9000 }, { 0, 9000 }, { { 5001, 8001 }, {} }, 751).queryCell, 4);
  EXPECT_EQ(ChooseCells({ 0, 9000 }, { 0, 9000 }, { { 5001, 8001 }, {} }, 750).queryCell, 8);
  // The queries of cross attention begin at 40, with which their first cell begins.
  const MapCells cross = ChooseCells({ 40, 90 }, { 0, 40 }, { { 43, 60 }, {} }, 8);
  EXPECT_EQ(cross.queryCell, 4);
  EXPECT_EQ(cross.queries.begin, 40);
  EXPECT_EQ(cross.queries.end, 60);
}

/// A high and wide window has too many pairs to be evaluated; the base of 10^5 tokens has cells of
/// 32.
TEST(ZoomedAttention, LargeWindowsHaveCellsOfTheBase)
{
  const MapCells wide = ChooseCells({ 0, 100000 }, { 0, 100000 }, { {}, { 0, 16000 } }, 1024);
  EXPECT_EQ(wide.queryCell, 128);
  EXPECT_EQ(wide.keyCell, 32);
  const MapCells narrow = ChooseCells({ 0, 100000 }, { 0, 100000 }, { {}, { 0, 1000 } }, 1024);
  EXPECT_EQ(narrow.keyCell, 1);
  EXPECT_THAT(MessageOf<OptionError>([] { ChooseCells({ 0, 9 }, { 0, 9 }, {}, 0); }),
    HasSubstr("size of at least 1, found 0"));
}

/// All masks and biases, from the base, finer than it, and across tiles of queries; each value
/// against a loop over the pairs of its cell.
TEST(ZoomedAttention, PoolsWindowsOfAllMasks)
{
  constexpr std::int64_t length = 301;
  for (const std::string kind : { "causal", "bidirectional", "cross", "window", "both sides",
         "chunks", "sinks", "slopes", "cap", "distances", "all" })
  {
    const Recording recording = Masked(kind, length);
    for (const AttentionQuantity quantity : { AttentionQuantity::Weights, AttentionQuantity::Scores,
           AttentionQuantity::Content, AttentionQuantity::NormWeighted })
    {
      const std::vector<double> map = MapByDefinition(recording, 1, quantity);
      ZoomedAttention zoomed({ 0, 1, 1, quantity }, 40); // cells of 8
      for (const MapWindow& window : { MapWindow{ {}, {} }, { { 130, 290 }, { 0, 95 } },
             { { 200, 213 }, { 10, 90 } }, { { 299, 300 }, { 2, 3 } }, { { 0, 301 }, { 50, 53 } } })
      {
        for (const std::int64_t size : { 5, 40, 100 })
        {
          const MapCells cells = CellsOf(recording, window, size, 40);
          for (const AttentionPooling pooling :
            { AttentionPooling::Maximum, AttentionPooling::Mean })
          {
            const std::vector<float> found = zoomed.Pool(recording, cells, pooling, 2);
            ExpectClose(kind + ", " + AttentionQuantityNames[static_cast<int>(quantity)], found,
              PoolInCells(map, length, cells, pooling), 2e-5);
          }
        }
      }
    }
  }
}

/// Numbers of keys that fill no chunk of the kernel, and cells larger than a chunk.
TEST(ZoomedAttention, PoolsAnyBins)
{
  constexpr std::int64_t length = 250;
  const Recording recording = Masked("all", length);
  const std::vector<std::int64_t> queryEdges = { 3, 4, 100, 101, 250 };
  const std::vector<std::int64_t> keyEdges = { 0, 1, 34, 99, 100, 250 };
  for (const AttentionQuantity quantity :
    { AttentionQuantity::Weights, AttentionQuantity::NormWeighted })
  {
    const std::vector<double> map = MapByDefinition(recording, 0, quantity);
    for (const std::size_t last : { keyEdges.size(), keyEdges.size() - 1 }) // all keys, and a part
    {
      const std::vector<std::int64_t> edges(
        keyEdges.begin(), keyEdges.begin() + static_cast<std::ptrdiff_t>(last));
      std::vector<float> found((queryEdges.size() - 1) * (edges.size() - 1));
      PoolCells(recording, { 0, 1, 0, quantity }, queryEdges, edges, AttentionPooling::Mean,
        found.data(), 2);
      ExpectClose(
        "bins", found, PoolMap(map, length, queryEdges, edges, AttentionPooling::Mean), 2e-5);
    }
  }
}

/// Equal queries and keys: query i gives each of the keys 0 to i the weight 1 / (i + 1). The
/// sequence is so long that PoolAttention, too, pools it without rows.
TEST(ZoomedAttention, UniformWeightsOfALongSequence)
{
  constexpr std::int64_t length = 5000;
  Recording recording = LongRecording(length, { 0 }, 1);
  RecordedHead& head = recording.layers[0].heads[0];
  std::fill_n(head.query.Row(0), head.query.Count(), 1.0F);
  std::fill_n(head.key.Row(0), head.key.Count(), 1.0F);
  const MapCells cells = CellsOf(recording, {}, 5000 / 128 + 1);
  ASSERT_EQ(cells.queryCell, 128);
  ZoomedAttention zoomed({ 0, 0, 0, AttentionQuantity::Weights });
  const std::vector<float> largest = zoomed.Pool(recording, cells, AttentionPooling::Maximum, 2);
  EXPECT_FLOAT_EQ(largest[0], 1);
  EXPECT_FLOAT_EQ(largest[cells.Columns()], 1.F / 129);
  EXPECT_EQ(largest[1], 0); // behind the mask
  const std::vector<float> means = zoomed.Pool(recording, cells, AttentionPooling::Mean, 2);
  double sum = 0; // over the queries 128 to 255
  for (int i = 129; i <= 256; ++i)
  {
    sum += 1. / i;
  }
  EXPECT_FLOAT_EQ(means[cells.Columns()], static_cast<float>(sum / 128));
  std::vector<float> halves(4);
  PoolAttention(recording, 0, AttentionQuantity::Weights, { { 0, 0 } },
    { 2, AttentionPooling::Maximum }, halves.data(), 2);
  EXPECT_THAT(
    halves, ElementsAre(1, 0, testing::FloatEq(1.F / 2501), testing::FloatEq(1.F / 2501)));
}

TEST(ZoomedAttention, BytesDependNeitherOnThreadsNorOnEarlierWindows)
{
  const Recording recording = Masked("all", 2000);
  const MapCells all = CellsOf(recording, {}, 100, 250);
  const MapCells part = CellsOf(recording, { { 900, 1700 }, { 800, 1600 } }, 200, 250);
  for (const AttentionQuantity quantity :
    { AttentionQuantity::Weights, AttentionQuantity::NormWeighted })
  {
    const MapPlace place = { 0, 1, 0, quantity };
    const auto pool = [&](const MapCells& cells, ZoomedAttention& zoomed, int threads)
    { return zoomed.Pool(recording, cells, AttentionPooling::Mean, threads); };
    ZoomedAttention first(place, 250);
    ZoomedAttention second(place, 250);
    const std::vector<float> wide = pool(all, first, 1);
    const std::vector<float> narrow = pool(part, second, 3);
    EXPECT_EQ(pool(part, first, 1), narrow);
    EXPECT_EQ(pool(all, second, 3), wide);
  }
}

/// Means over heads, and attention that is stored, are evaluated in rows.
TEST(ZoomedAttention, PoolsWhatHasNoQueriesAndKeysOfItsOwn)
{
  constexpr std::int64_t length = 90;
  Recording recording = Masked("causal", length);
  std::vector<double> mean = MapByDefinition(recording, 0, AttentionQuantity::Weights);
  const std::vector<double> other = MapByDefinition(recording, 1, AttentionQuantity::Weights);
  std::transform(mean.begin(), mean.end(), other.begin(), mean.begin(),
    [](double a, double b) { return (a + b) / 2; });
  const MapCells cells = CellsOf(recording, { { 20, 80 }, { 10, 30 } }, 16);
  ZoomedAttention heads({ 0, 1, AllHeads, AttentionQuantity::Weights });
  ExpectClose("mean", heads.Pool(recording, cells, AttentionPooling::Maximum, 2),
    PoolInCells(mean, length, cells, AttentionPooling::Maximum), 1e-5);
  SharedMatrix weights = SharedMatrix::Zero(length, length);
  std::copy(other.begin(), other.end(), weights.Row(0));
  recording.layers[0].heads[0].weights = { weights };
  ZoomedAttention stored({ 0, 1, 0, AttentionQuantity::Weights });
  ExpectClose("stored", stored.Pool(recording, cells, AttentionPooling::Mean, 2),
    PoolInCells(other, length, cells, AttentionPooling::Mean), 1e-5);
}

TEST(ZoomedAttention, CanBeStoppedAndTriedAgain)
{
  const Recording recording = Masked("causal", 400);
  const MapCells cells = CellsOf(recording, {}, 64);
  ZoomedAttention zoomed({ 0, 1, 0, AttentionQuantity::Weights });
  const auto pool = [&](const Progress& progress)
  { return zoomed.Pool(recording, cells, AttentionPooling::Maximum, 1, progress); };
  EXPECT_THROW(pool([](double) { throw Canceled(); }), Canceled);
  std::vector<double> reports;
  EXPECT_EQ(pool([&](double done) { reports.push_back(done); }).size(), 50 * 50);
  ASSERT_FALSE(reports.empty());
  EXPECT_EQ(reports.back(), 1);
}

TEST(ZoomedAttention, WhatTheRecordingLacksIsRefused)
{
  const Recording recording = LongRecording(30);
  ZoomedAttention zoomed({ 0, 1, 7, AttentionQuantity::Weights });
  EXPECT_THAT(
    MessageOf<OptionError>(
      [&] { zoomed.Pool(recording, CellsOf(recording, {}, 8), AttentionPooling::Maximum, 1); }),
    HasSubstr("a head from 0 to 1, found 7"));
}

}
