#include "RecordingExtent.h"

#include "ModelConversion.h"
#include "Recording.h"
#include "RecordingConversion.h"

#include <vtkAlgorithm.h>
#include <vtkDataArray.h>
#include <vtkDataObject.h>
#include <vtkFieldData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkMultiProcessController.h>
#include <vtkNew.h>
#include <vtkStreamingDemandDrivenPipeline.h>

#include <algorithm>

namespace AttentionAtlas
{

using SDDP = vtkStreamingDemandDrivenPipeline;

vtkMultiBlockDataSet* UpdateRecording(vtkAlgorithm* filter)
{
  int port = 0;
  vtkAlgorithm* producer = filter->GetInputAlgorithm(0, 0, port);
  auto* controller = vtkMultiProcessController::GetGlobalController();
  vtkNew<vtkInformation> request; // of the piece that will be asked for in the end
  request->Set(SDDP::UPDATE_PIECE_NUMBER(), controller ? controller->GetLocalProcessId() : 0);
  request->Set(
    SDDP::UPDATE_NUMBER_OF_PIECES(), controller ? controller->GetNumberOfProcesses() : 1);
  request->Set(SDDP::UPDATE_NUMBER_OF_GHOST_LEVELS(), 0);
  vtkNew<vtkInformationVector> requests;
  requests->SetInformationObject(port, request);
  return producer->Update(port, requests) != 0
           ? vtkMultiBlockDataSet::SafeDownCast(filter->GetInputDataObject(0, 0))
           : nullptr;
}

bool IsEmpty(vtkMultiBlockDataSet* recording)
{
  return recording == nullptr || recording->GetNumberOfBlocks() == 0;
}

int SequenceTokens(vtkMultiBlockDataSet* recording, int sequence)
{
  vtkDataArray* offsets = recording->GetFieldData()->GetArray(SequenceOffsetsField);
  const vtkIdType count = offsets != nullptr ? offsets->GetNumberOfTuples() - 1 : 0;
  const bool isMean = sequence == atlas::AllSequences;
  int length = 1;
  for (vtkIdType s = 0; s < count; ++s)
  {
    if (isMean || s == sequence)
    {
      length = std::max(
        length, static_cast<int>(offsets->GetComponent(s + 1, 0) - offsets->GetComponent(s, 0)));
    }
  }
  return length;
}

RecordingRanges RangesOf(vtkMultiBlockDataSet* recording)
{
  RecordingRanges ranges;
  if (IsEmpty(recording))
  {
    return ranges;
  }
  vtkFieldData* fields = recording->GetFieldData();
  if (vtkDataArray* offsets = fields->GetArray(SequenceOffsetsField))
  {
    ranges.sequences = { static_cast<int>(atlas::AllSequences),
      std::max(0, static_cast<int>(offsets->GetNumberOfTuples()) - 2) };
  }
  vtkDataArray* layers = fields->GetArray(ScoreScaleField); // the recorded ones
  if (layers != nullptr && layers->GetNumberOfTuples() > 0)
  {
    std::array<double, 2> range;
    layers->GetRange(range.data(), 0);
    ranges.layers = { static_cast<int>(range[0]), static_cast<int>(range[1]) };
  }
  vtkDataArray* heads = fields->GetArray(HeadsField);
  if (heads != nullptr && heads->GetNumberOfTuples() > 0)
  {
    ranges.heads = { static_cast<int>(atlas::AllHeads),
      std::max(0, static_cast<int>(heads->GetComponent(0, 0)) - 1) };
  }
  return ranges;
}

void AnnounceImage(int width, int height, vtkInformation* info)
{
  const std::array<int, 6> extent = { 0, width - 1, 0, height - 1, 0, width > 0 ? 0 : -1 };
  const std::array<double, 3> origin = { 0, static_cast<double>(1 - height), 0 };
  const std::array<double, 3> spacing = { 1, 1, 1 };
  info->Set(SDDP::WHOLE_EXTENT(), extent.data(), 6);
  info->Set(vtkDataObject::ORIGIN(), origin.data(), 3);
  info->Set(vtkDataObject::SPACING(), spacing.data(), 3);
  info->Set(vtkAlgorithm::CAN_PRODUCE_SUB_EXTENT(), 1);
  vtkDataObject::SetPointDataActiveScalarInfo(info, VTK_FLOAT, 1);
}

}
