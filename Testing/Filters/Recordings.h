#pragma once

#include "Core/LongRecording.h"
#include "Core/SameRecording.h"
#include "Pipeline.h"
#include "Recording/RecordedAttention.h"
#include "RecordingConversion.h"

namespace atlas::test
{

/// Sequences of 3 and 2 tokens; layers 0 and 2 of 3 with two heads, that share keys and values;
/// residuals of layers 0 and 3, and logits.
inline Recording SmallRecording()
{
  std::mt19937 generator(7);
  Recording recording;
  recording.architecture = "bloom";
  recording.model = "bloom-560m";
  recording.alibiSlopes = { 0.5, 0.25 };
  recording.processing = WeightProcessing::Processed;
  recording.interventions = "0.1, 2.0 to zero";
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
    const SharedMatrix key = RandomRows(5, 4, generator);
    const SharedMatrix value = RandomRows(5, 4, generator);
    for (int h = 0; h < 2; ++h)
    {
      RecordedHead head;
      head.query = RandomRows(5, 4, generator);
      head.key = key;
      head.value = value;
      head.output = RandomRows(5, 6, generator);
      layer.heads.push_back(head);
    }
    recording.layers.push_back(layer);
  }
  recording.residual.resize(4);
  recording.residual[0] = RandomRows(5, 6, generator);
  recording.residual[3] = RandomRows(5, 6, generator);
  recording.logits = RandomRows(5, 9, generator);
  for (RecordedLayer& layer : recording.layers)
  {
    for (RecordedHead& head : layer.heads)
    {
      head.valueNorm = RandomRows(5, 1, generator);
      std::for_each(head.valueNorm.Row(0), head.valueNorm.Row(5), [](float& norm) { norm += 2; });
    }
  }
  return recording;
}

inline vtkSmartPointer<vtkMultiBlockDataSet> DataSetOf(const Recording& recording)
{
  auto dataSet = vtkSmartPointer<vtkMultiBlockDataSet>::New();
  AttentionAtlas::ToDataSet(recording, dataSet);
  return dataSet;
}

/// A quantity of a head by query, then key; -1: the mean of all heads, or of all sequences.
inline std::vector<double> AttentionOf(const Recording& recording, std::int64_t sequence,
  std::int64_t layer, std::int64_t head, AttentionQuantity quantity = AttentionQuantity::Weights)
{
  const std::int64_t length = AttentionLength(recording, sequence);
  std::vector<float> values(length * length);
  EvaluateAttention(recording, sequence, layer, head, quantity, 0, length, values.data());
  return { values.begin(), values.end() };
}

/// Queries and keys of the cells of a filter's output.
template<class Filter>
std::vector<std::pair<std::int64_t, std::int64_t>> PairsOf(On<Filter>& filter, int port = 0)
{
  const std::vector<double> queries = filter.Cells("Query", port);
  const std::vector<double> keys = filter.Cells("Key", port);
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  for (std::size_t i = 0; i < queries.size(); ++i)
  {
    pairs.emplace_back(static_cast<std::int64_t>(queries[i]), static_cast<std::int64_t>(keys[i]));
  }
  return pairs;
}

/// Whether two matrices are one: the same memory.
inline bool IsOneMatrix(const SharedMatrix& a, const SharedMatrix& b)
{
  return a.rows == b.rows && a.columns == b.columns && a.values.get() == b.values.get();
}

}
