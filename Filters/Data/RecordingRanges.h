#pragma once

#include "AttentionAtlasDataModule.h"

#include <vtkType.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

class vtkAlgorithm;
class vtkDataObject;
class vtkInformation;
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

/// Updates the input at a port of a filter, for filters whose information depends on it. Returns
/// it, or null if there is none; what went wrong has then been told.
ATTENTIONATLASDATA_EXPORT vtkDataObject* UpdateInput(vtkAlgorithm* filter, int port = 0);

/// The same for a recording.
ATTENTIONATLASDATA_EXPORT vtkMultiBlockDataSet* UpdateRecording(vtkAlgorithm* filter);

/// Asks for what UpdateRecording asked for, so that the recording is not made again. For
/// RequestUpdateExtent, with the information of the first input.
ATTENTIONATLASDATA_EXPORT void KeepRequest(vtkInformation* info);

/// Whether there is nothing recorded, or no recording.
ATTENTIONATLASDATA_EXPORT bool IsEmpty(vtkMultiBlockDataSet* recording);

/// The indices of the recorded layers, from the field data alone.
ATTENTIONATLASDATA_EXPORT std::vector<int> RecordedLayers(vtkMultiBlockDataSet* recording);

/// The number of tokens of a sequence, or of the longest for -1, at the last time step if they grow
/// over time; 1 if there is no such sequence, so that something is asked for and the error told.
ATTENTIONATLASDATA_EXPORT int SequenceTokens(vtkMultiBlockDataSet* recording, int sequence);

/// The same at this time step.
ATTENTIONATLASDATA_EXPORT int SequenceTokensNow(vtkMultiBlockDataSet* recording, int sequence);

/// Announces an image of float points at x = 0 ... width - 1, y = 0 ... -(height - 1), of which any
/// part can be asked for. `type`: of its active scalars. `step`: the distance of its columns.
ATTENTIONATLASDATA_EXPORT void AnnounceImage(
  int width, int height, vtkInformation* info, int type = VTK_FLOAT, double step = 1);

/// The part of an announced image that is asked for, as far as it is in an image of this size: one
/// of fewer tokens than at the last time step.
ATTENTIONATLASDATA_EXPORT std::array<int, 6> RequestedExtent(
  vtkInformation* info, std::int64_t width, std::int64_t height);

/// Begins that part of an image of this size. Returns its points in their order, each as the number
/// of the cell of the matrix, row by row from the top.
ATTENTIONATLASDATA_EXPORT std::vector<std::size_t> BeginImage(
  vtkInformation* info, std::int64_t width, std::int64_t height, double step = 1);

/// The same for an image of the announced size.
ATTENTIONATLASDATA_EXPORT std::vector<std::size_t> BeginImage(vtkInformation* info);

/// When a data object was changed or updated last; 0 without one.
ATTENTIONATLASDATA_EXPORT vtkMTimeType TimeOf(vtkDataObject* data);

}
