#include "RecordingRanges.h"

#include "ModelConversion.h"
#include "RecordingConversion.h"

#include <vtkAlgorithm.h>
#include <vtkDataArray.h>
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

RecordingRanges::RecordingRanges(vtkMultiBlockDataSet* recording)
{
  if (recording == nullptr || recording->GetNumberOfBlocks() == 0)
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
    this->layer = { static_cast<int>(range[0]), static_cast<int>(range[1]) };
  }
  vtkDataArray* heads = fields->GetArray(HeadsField);
  if (heads != nullptr && heads->GetNumberOfTuples() > 0)
  {
    this->head[1] = std::max(0, static_cast<int>(heads->GetComponent(0, 0)) - 1);
  }
}

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

}
