#pragma once

class vtkAlgorithm;
class vtkMultiBlockDataSet;

namespace AttentionAtlas
{

/// The first and last sequence, recorded layer and head of a recording, from its field data alone;
/// 0, 0 without one.
struct RecordingRanges
{
  int sequence[2] = { 0, 0 };
  int layer[2] = { 0, 0 };
  int head[2] = { 0, 0 };

  void Find(vtkMultiBlockDataSet* recording);
};

/// Updates the recording at the first input of a filter, for filters whose information depends on
/// it. Returns it, or null if there is none; what went wrong has then been told.
vtkMultiBlockDataSet* UpdateRecording(vtkAlgorithm* filter);

}
