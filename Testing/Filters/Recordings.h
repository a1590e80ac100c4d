#pragma once

#include "Pipeline.h"
#include "Recording.h"
#include "RecordingConversion.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace atlas::test
{

inline SharedMatrix RandomMatrix(std::int64_t rows, std::int64_t columns, std::mt19937& generator)
{
  SharedMatrix matrix = SharedMatrix::Zero(rows, columns);
  for (std::size_t i = 0; i < matrix.Count(); ++i)
  {
    matrix.values.get()[i] = static_cast<float>(generator() % 2001) / 1000 - 1;
  }
  return matrix;
}

/// Sequences of 3 and 2 tokens; layers 0 and 2 of 3 with two heads, that share keys and values;
/// residuals of layers 0 and 3, and logits.
inline Recording SmallRecording()
{
  std::mt19937 generator(7);
  Recording recording;
  recording.architecture = "bloom";
  recording.alibiSlopes = { 0.5, 0.25 };
  recording.processing = WeightProcessing::Processed;
  recording.layerCount = 3;
  recording.sequenceOffsets = { 0, 3, 5 };
  recording.tokens.sequence = { 0, 0, 0, 1, 1 };
  recording.tokens.position = { 0, 1, 2, 0, 1 };
  recording.tokens.id = { 11, 12, 13, 21, 22 };
  recording.tokens.text = { "a", " b", " c", "d", " e" };
  for (const std::int32_t index : { 0, 2 })
  {
    RecordedLayer layer;
    layer.index = index;
    layer.scoreScale = 0.5 / (index + 1);
    const SharedMatrix key = RandomMatrix(5, 4, generator);
    const SharedMatrix value = RandomMatrix(5, 4, generator);
    for (int h = 0; h < 2; ++h)
    {
      RecordedHead head;
      head.query = RandomMatrix(5, 4, generator);
      head.key = key;
      head.value = value;
      head.output = RandomMatrix(5, 6, generator);
      layer.heads.push_back(head);
    }
    recording.layers.push_back(layer);
  }
  recording.residual.resize(4);
  recording.residual[0] = RandomMatrix(5, 6, generator);
  recording.residual[3] = RandomMatrix(5, 6, generator);
  recording.logits = RandomMatrix(5, 9, generator);
  return recording;
}

inline vtkSmartPointer<vtkMultiBlockDataSet> DataSetOf(const Recording& recording)
{
  auto dataSet = vtkSmartPointer<vtkMultiBlockDataSet>::New();
  AttentionAtlas::ToDataSet(recording, dataSet);
  return dataSet;
}

/// Whether two matrices are one: the same memory.
inline bool IsOneMatrix(const SharedMatrix& a, const SharedMatrix& b)
{
  return a.rows == b.rows && a.columns == b.columns && a.values.get() == b.values.get();
}

inline std::vector<float> ValuesOf(const SharedMatrix& matrix)
{
  return matrix.IsRecorded() ? std::vector<float>(matrix.Row(0), matrix.Row(matrix.rows))
                             : std::vector<float>();
}

/// Expects equal recordings, matrices equal to the byte.
inline void ExpectSameRecording(const Recording& found, const Recording& expected)
{
  EXPECT_EQ(found.architecture, expected.architecture);
  EXPECT_EQ(found.mask, expected.mask);
  EXPECT_EQ(found.alibiSlopes, expected.alibiSlopes);
  EXPECT_EQ(found.rotated, expected.rotated);
  EXPECT_EQ(found.processing, expected.processing);
  EXPECT_EQ(found.layerCount, expected.layerCount);
  EXPECT_EQ(found.sequenceOffsets, expected.sequenceOffsets);
  EXPECT_EQ(found.tokens.sequence, expected.tokens.sequence);
  EXPECT_EQ(found.tokens.position, expected.tokens.position);
  EXPECT_EQ(found.tokens.id, expected.tokens.id);
  EXPECT_EQ(found.tokens.text, expected.tokens.text);
  EXPECT_EQ(found.tokens.segment, expected.tokens.segment);
  EXPECT_EQ(found.tokens.row, expected.tokens.row);
  EXPECT_EQ(found.tokens.column, expected.tokens.column);
  ASSERT_EQ(found.layers.size(), expected.layers.size());
  for (std::size_t l = 0; l < expected.layers.size(); ++l)
  {
    EXPECT_EQ(found.layers[l].index, expected.layers[l].index);
    EXPECT_EQ(found.layers[l].scoreScale, expected.layers[l].scoreScale);
    ASSERT_EQ(found.layers[l].heads.size(), expected.layers[l].heads.size());
    for (std::size_t h = 0; h < expected.layers[l].heads.size(); ++h)
    {
      const RecordedHead& a = found.layers[l].heads[h];
      const RecordedHead& b = expected.layers[l].heads[h];
      EXPECT_EQ(ValuesOf(a.query), ValuesOf(b.query));
      EXPECT_EQ(ValuesOf(a.key), ValuesOf(b.key));
      EXPECT_EQ(ValuesOf(a.value), ValuesOf(b.value));
      EXPECT_EQ(ValuesOf(a.output), ValuesOf(b.output));
      ASSERT_EQ(a.weights.size(), b.weights.size());
      ASSERT_EQ(a.scores.size(), b.scores.size());
      for (std::size_t s = 0; s < b.weights.size(); ++s)
      {
        EXPECT_EQ(ValuesOf(a.weights[s]), ValuesOf(b.weights[s]));
      }
      for (std::size_t s = 0; s < b.scores.size(); ++s)
      {
        EXPECT_EQ(ValuesOf(a.scores[s]), ValuesOf(b.scores[s]));
      }
    }
  }
  ASSERT_EQ(found.residual.size(), expected.residual.size());
  for (std::size_t l = 0; l < expected.residual.size(); ++l)
  {
    EXPECT_EQ(ValuesOf(found.residual[l]), ValuesOf(expected.residual[l]));
  }
  EXPECT_EQ(ValuesOf(found.logits), ValuesOf(expected.logits));
}

}
