#include "RecordingRanges.h"

#include "ModelConversion.h"
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
#include <array>

using SDDP = vtkStreamingDemandDrivenPipeline;

namespace AttentionAtlas
{

void RecordingRanges::Find(vtkMultiBlockDataSet* recording)
{
  *this = {};
  if (IsEmpty(recording))
  {
    return;
  }
  vtkFieldData* fields = recording->GetFieldData();
  if (vtkDataArray* offsets = fields->GetArray(SequenceOffsetsField))
  {
    this->sequence[1] = std::max(0, static_cast<int>(offsets->GetNumberOfTuples()) - 2);
  }
  vtkDataArray* layers = fields->GetArray(ScoreScaleField); // the recorded ones
  if (layers != nullptr && layers->GetNumberOfTuples() > 0)
  {
    std::array<double, 2> range;
    layers->GetRange(range.data(), 0);
    std::copy(range.begin(), range.end(), this->layer);
  }
  vtkDataArray* heads = fields->GetArray(HeadsField);
  if (heads != nullptr && heads->GetNumberOfTuples() > 0)
  {
    this->head[1] = std::max(0, static_cast<int>(heads->GetComponent(0, 0)) - 1);
  }
}

vtkDataObject* UpdateInput(vtkAlgorithm* filter)
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
  return producer->Update(port, requests) != 0 ? filter->GetInputDataObject(0, 0) : nullptr;
}

vtkMultiBlockDataSet* UpdateRecording(vtkAlgorithm* filter)
{
  return vtkMultiBlockDataSet::SafeDownCast(UpdateInput(filter));
}

bool IsEmpty(vtkMultiBlockDataSet* recording)
{
  return recording == nullptr || recording->GetNumberOfBlocks() == 0;
}

std::vector<int> RecordedLayers(vtkMultiBlockDataSet* recording)
{
  std::vector<int> layers;
  vtkDataArray* scales = recording->GetFieldData()->GetArray(ScoreScaleField);
  for (vtkIdType i = 0; scales != nullptr && i < scales->GetNumberOfTuples(); ++i)
  {
    layers.push_back(static_cast<int>(scales->GetComponent(i, 0)));
  }
  return layers;
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

void AnnounceImage(int width, int height, vtkInformation* info, int type)
{
  const std::array<int, 6> extent = { 0, width - 1, 0, height - 1, 0, width > 0 ? 0 : -1 };
  const std::array<double, 3> origin = { 0, static_cast<double>(1 - height), 0 };
  const std::array<double, 3> spacing = { 1, 1, 1 };
  info->Set(SDDP::WHOLE_EXTENT(), extent.data(), 6);
  info->Set(vtkDataObject::ORIGIN(), origin.data(), 3);
  info->Set(vtkDataObject::SPACING(), spacing.data(), 3);
  info->Set(vtkAlgorithm::CAN_PRODUCE_SUB_EXTENT(), 1);
  vtkDataObject::SetPointDataActiveScalarInfo(info, type, 1);
}

}
