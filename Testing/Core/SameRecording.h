#pragma once

#include "Recording/Recording.h"
#include "Recording/RecordingQuantities.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include <gtest/gtest.h>

namespace atlas::test
{

inline void ExpectEqual(const SharedMatrix& found, const SharedMatrix& expected)
{
  ASSERT_EQ(found.IsRecorded(), expected.IsRecorded());
  EXPECT_EQ(found.rows, expected.rows);
  EXPECT_EQ(found.columns, expected.columns);
  if (expected.IsRecorded())
  {
    EXPECT_EQ(std::memcmp(found.values.get(), expected.values.get(), 4 * expected.Count()), 0);
  }
}

inline void ExpectEqual(const RecordedHead& found, const RecordedHead& expected)
{
  ExpectEqual(found.query, expected.query);
  ExpectEqual(found.key, expected.key);
  ExpectEqual(found.value, expected.value);
  ExpectEqual(found.output, expected.output);
  ExpectEqual(found.valueNorm, expected.valueNorm);
  ASSERT_EQ(found.weights.size(), expected.weights.size());
  ASSERT_EQ(found.scores.size(), expected.scores.size());
  for (std::size_t s = 0; s < expected.weights.size(); ++s)
  {
    ExpectEqual(found.weights[s], expected.weights[s]);
  }
  for (std::size_t s = 0; s < expected.scores.size(); ++s)
  {
    ExpectEqual(found.scores[s], expected.scores[s]);
  }
}

inline void ExpectEqual(const RecordedPictures& found, const RecordedPictures& expected)
{
  EXPECT_EQ(found.count, expected.count);
  EXPECT_EQ(found.height, expected.height);
  EXPECT_EQ(found.width, expected.width);
  EXPECT_EQ(found.processing, expected.processing);
  ASSERT_EQ(found.contents.size(), expected.contents.size());
  for (std::size_t i = 0; i < expected.contents.size(); ++i)
  {
    const PictureContent& a = found.contents[i];
    const PictureContent& b = expected.contents[i];
    EXPECT_EQ(std::tie(a.picture, a.frame, a.frames, a.isSmall, a.height, a.width),
      std::tie(b.picture, b.frame, b.frames, b.isSmall, b.height, b.width));
  }
  ASSERT_EQ(found.sources.size(), expected.sources.size());
  for (std::size_t s = 0; s < expected.sources.size(); ++s)
  {
    EXPECT_EQ(found.sources[s].file, expected.sources[s].file);
    EXPECT_EQ(found.sources[s].hash, expected.sources[s].hash);
  }
  ASSERT_EQ(found.pixels != nullptr, expected.pixels != nullptr);
  if (expected.pixels != nullptr)
  {
    const std::size_t bytes = expected.FirstByte(expected.count);
    EXPECT_EQ(std::memcmp(found.pixels.get(), expected.pixels.get(), bytes), 0);
  }
}

inline void ExpectEqual(const Recording& found, const Recording& expected)
{
  EXPECT_EQ(found.architecture, expected.architecture);
  EXPECT_EQ(found.mask, expected.mask);
  EXPECT_EQ(found.alibiSlopes, expected.alibiSlopes);
  EXPECT_EQ(found.alibiUnit, expected.alibiUnit);
  EXPECT_EQ(found.rotated, expected.rotated);
  EXPECT_EQ(found.products, expected.products);
  EXPECT_EQ(found.processing, expected.processing);
  EXPECT_EQ(found.interventions, expected.interventions);
  EXPECT_EQ(found.layerCount, expected.layerCount);
  EXPECT_EQ(found.layersWithoutHeads, expected.layersWithoutHeads);
  EXPECT_EQ(found.sequenceOffsets, expected.sequenceOffsets);
  EXPECT_EQ(found.tokens.sequence, expected.tokens.sequence);
  EXPECT_EQ(found.tokens.position, expected.tokens.position);
  EXPECT_EQ(found.tokens.id, expected.tokens.id);
  EXPECT_EQ(found.tokens.text, expected.tokens.text);
  EXPECT_EQ(found.tokens.segment, expected.tokens.segment);
  EXPECT_EQ(found.tokens.row, expected.tokens.row);
  EXPECT_EQ(found.tokens.column, expected.tokens.column);
  EXPECT_EQ(found.tokens.picture, expected.tokens.picture);
  EXPECT_EQ(found.tokens.keyEnd, expected.tokens.keyEnd);
  EXPECT_EQ(found.pixels, expected.pixels);
  ExpectEqual(found.tokens.color, expected.tokens.color);
  ExpectEqual(found.pictures, expected.pictures);
  ASSERT_EQ(found.layers.size(), expected.layers.size());
  for (std::size_t l = 0; l < expected.layers.size(); ++l)
  {
    EXPECT_EQ(found.layers[l].index, expected.layers[l].index);
    EXPECT_EQ(found.layers[l].scoreScale, expected.layers[l].scoreScale);
    EXPECT_EQ(found.layers[l].scoreCap, expected.layers[l].scoreCap);
    EXPECT_EQ(found.layers[l].window, expected.layers[l].window);
    EXPECT_EQ(found.layers[l].patchWindow, expected.layers[l].patchWindow);
    EXPECT_EQ(found.layers[l].chunk, expected.layers[l].chunk);
    EXPECT_EQ(found.layers[l].sinks, expected.layers[l].sinks);
    ASSERT_EQ(found.layers[l].heads.size(), expected.layers[l].heads.size());
    for (std::size_t h = 0; h < expected.layers[l].heads.size(); ++h)
    {
      ExpectEqual(found.layers[l].heads[h], expected.layers[l].heads[h]);
    }
    for (const LayerQuantity& quantity : LayerQuantities)
    {
      ExpectEqual(found.layers[l].*quantity.matrix, expected.layers[l].*quantity.matrix);
    }
    ExpectEqual(found.layers[l].routing.chosen, expected.layers[l].routing.chosen);
    ExpectEqual(found.layers[l].routing.weights, expected.layers[l].routing.weights);
    ExpectEqual(found.layers[l].routing.scores, expected.layers[l].routing.scores);
    ExpectEqual(found.layers[l].routing.bias, expected.layers[l].routing.bias);
    if (expected.layers[l].routing.chosen.IsRecorded())
    {
      EXPECT_EQ(found.layers[l].routing.experts, expected.layers[l].routing.experts);
    }
  }
  ASSERT_EQ(found.residual.size(), expected.residual.size());
  for (std::size_t l = 0; l < expected.residual.size(); ++l)
  {
    ExpectEqual(found.residual[l], expected.residual[l]);
  }
  ExpectEqual(found.logits, expected.logits);
  EXPECT_EQ(found.sourceLengths, expected.sourceLengths);
  ExpectEqual(found.distanceBias, expected.distanceBias);
  const std::vector<const Recording*> parts = WithParts(found);
  const std::vector<const Recording*> expectedParts = WithParts(expected);
  ASSERT_EQ(parts.size(), expectedParts.size());
  for (std::size_t i = 1; i < parts.size(); ++i)
  {
    ExpectEqual(*parts[i], *expectedParts[i]);
  }
}

}
