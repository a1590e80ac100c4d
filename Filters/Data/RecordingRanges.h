#pragma once

#include "AttentionAtlasDataModule.h"

#include <vector>

class vtkAlgorithm;
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
  int tokens = 0; ///< of all sequences

  RecordingRanges() = default;
  explicit RecordingRanges(vtkMultiBlockDataSet* recording) { this->Find(recording); }

  void Find(vtkMultiBlockDataSet* recording);
};

/// OutlineOf for a recording.
ATTENTIONATLASDATA_EXPORT vtkMultiBlockDataSet* OutlineOfRecording(vtkAlgorithm* filter);

/// Whether there is nothing recorded, or no recording.
ATTENTIONATLASDATA_EXPORT bool IsEmpty(vtkMultiBlockDataSet* recording);

/// The indices of the recorded layers, from the field data alone.
ATTENTIONATLASDATA_EXPORT std::vector<int> RecordedLayers(vtkMultiBlockDataSet* recording);

/// The recorded layers that have no heads, which RecordedLayers leaves out.
ATTENTIONATLASDATA_EXPORT std::vector<int> LayersWithoutHeads(vtkMultiBlockDataSet* recording);

/// The number of tokens of a sequence, or of the longest for -1, at the last time step if they grow
/// over time; 1 if there is no such sequence, so that something is asked for and the error told.
ATTENTIONATLASDATA_EXPORT int SequenceTokens(vtkMultiBlockDataSet* recording, int sequence);

/// The same at this time step.
ATTENTIONATLASDATA_EXPORT int SequenceTokensNow(vtkMultiBlockDataSet* recording, int sequence);

/// The number of tokens of the source with which a sequence of cross attention begins; 0 of others.
ATTENTIONATLASDATA_EXPORT int SourceTokens(vtkMultiBlockDataSet* recording, int sequence);

}
