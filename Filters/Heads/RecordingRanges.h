#pragma once

#include <array>

class vtkAlgorithm;
class vtkMultiBlockDataSet;

namespace AttentionAtlas
{

/// The first and last sequence, recorded layer and head of a recording, from its field data alone;
/// 0, 0 without one.
struct RecordingRanges
{
  std::array<int, 2> sequence = { 0, 0 };
  std::array<int, 2> layer = { 0, 0 };
  std::array<int, 2> head = { 0, 0 };

  explicit RecordingRanges(vtkMultiBlockDataSet* recording);
};

/// Updates the recording at the first input of a filter, for filters whose information depends on
/// it. Returns it, or null if there is none; what went wrong has then been told.
vtkMultiBlockDataSet* UpdateRecording(vtkAlgorithm* filter);

}
