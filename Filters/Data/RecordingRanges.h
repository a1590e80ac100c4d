#pragma once

#include "AttentionAtlasDataModule.h"

class vtkAlgorithm;
class vtkDataObject;
class vtkMultiBlockDataSet;

namespace AttentionAtlas
{

/// The first and last sequence, recorded layer and head of a recording, from its field data alone;
/// 0, 0 without one.
struct ATTENTIONATLASDATA_EXPORT RecordingRanges
{
  int sequence[2] = { 0, 0 };
  int layer[2] = { 0, 0 };
  int head[2] = { 0, 0 };

  void Find(vtkMultiBlockDataSet* recording);
};

/// Updates the first input of a filter, for filters whose information depends on it. Returns it, or
/// null if there is none; what went wrong has then been told.
ATTENTIONATLASDATA_EXPORT vtkDataObject* UpdateInput(vtkAlgorithm* filter);

/// The same for a recording.
ATTENTIONATLASDATA_EXPORT vtkMultiBlockDataSet* UpdateRecording(vtkAlgorithm* filter);

}
