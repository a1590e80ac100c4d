#include "RecordingRanges.h"

#include "Index.h"
#include "ModelConversion.h"
#include "RecordingConversion.h"

#include <vtkAlgorithm.h>
#include <vtkDataArray.h>
#include <vtkDataObject.h>
#include <vtkFieldData.h>
#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkMultiProcessController.h>
#include <vtkNew.h>
#include <vtkStreamingDemandDrivenPipeline.h>

#include <algorithm>
#include <array>
#include <cstdint>

using SDDP = vtkStreamingDemandDrivenPipeline;

namespace AttentionAtlas
{
namespace
{

/// The tokens of a sequence, or of the longest for -1, by its offsets in a field array.
int LongestBy(const char* field, vtkMultiBlockDataSet* recording, int sequence)
{
  vtkDataArray* offsets = recording->GetFieldData()->GetArray(field);
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

}

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
    const vtkIdType last = offsets->GetNumberOfTuples() - 1;
    this->sequence[1] = static_cast<int>(std::max<vtkIdType>(last - 1, 0));
    this->tokens = last >= 0 ? static_cast<int>(offsets->GetComponent(last, 0)) : 0;
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

vtkDataObject* UpdateInput(vtkAlgorithm* filter, int inputPort)
{
  if (filter->GetNumberOfInputConnections(inputPort) == 0)
  {
    return nullptr;
  }
  int port = 0;
  vtkAlgorithm* producer = filter->GetInputAlgorithm(inputPort, 0, port);
  vtkNew<vtkInformation> request; // of the piece that will be asked for in the end
  KeepRequest(request);
  vtkNew<vtkInformationVector> requests;
  requests->SetInformationObject(port, request);
  return producer->Update(port, requests) != 0 ? filter->GetInputDataObject(inputPort, 0) : nullptr;
}

vtkMultiBlockDataSet* UpdateRecording(vtkAlgorithm* filter)
{
  return vtkMultiBlockDataSet::SafeDownCast(UpdateInput(filter));
}

void KeepRequest(vtkInformation* info)
{
  auto* controller = vtkMultiProcessController::GetGlobalController();
  info->Set(SDDP::UPDATE_PIECE_NUMBER(), controller ? controller->GetLocalProcessId() : 0);
  info->Set(SDDP::UPDATE_NUMBER_OF_PIECES(), controller ? controller->GetNumberOfProcesses() : 1);
  info->Set(SDDP::UPDATE_NUMBER_OF_GHOST_LEVELS(), 0);
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
  const bool grows = recording->GetFieldData()->HasArray(LastSequenceOffsetsField) != 0;
  return LongestBy(grows ? LastSequenceOffsetsField : SequenceOffsetsField, recording, sequence);
}

int SequenceTokensNow(vtkMultiBlockDataSet* recording, int sequence)
{
  return LongestBy(SequenceOffsetsField, recording, sequence);
}

void AnnounceImage(int width, int height, vtkInformation* info, int type, double step)
{
  const std::array<int, 6> extent = { 0, width - 1, 0, height - 1, 0, width > 0 ? 0 : -1 };
  const std::array<double, 3> origin = { 0, static_cast<double>(1 - height), 0 };
  const std::array<double, 3> spacing = { step, 1, 1 };
  info->Set(SDDP::WHOLE_EXTENT(), extent.data(), 6);
  info->Set(vtkDataObject::ORIGIN(), origin.data(), 3);
  info->Set(vtkDataObject::SPACING(), spacing.data(), 3);
  info->Set(vtkAlgorithm::CAN_PRODUCE_SUB_EXTENT(), 1);
  vtkDataObject::SetPointDataActiveScalarInfo(info, type, 1);
}

std::array<int, 6> RequestedExtent(vtkInformation* info, std::int64_t width, std::int64_t height)
{
  std::array<int, 6> extent = { 0, -1, 0, -1, 0, -1 };
  info->Get(SDDP::UPDATE_EXTENT(), extent.data());
  extent[1] = std::min(extent[1], static_cast<int>(width) - 1);
  extent[3] = std::min(extent[3], static_cast<int>(height) - 1);
  const bool isEmpty = extent[0] > extent[1] || extent[2] > extent[3] || extent[4] > extent[5];
  return isEmpty ? std::array<int, 6>{ 0, -1, 0, -1, 0, -1 } : extent;
}

std::vector<std::size_t> BeginImage(
  vtkInformation* info, std::int64_t width, std::int64_t height, double step)
{
  std::array<int, 6> extent = RequestedExtent(info, width, height);
  auto* image = vtkImageData::GetData(info);
  image->SetExtent(extent.data());
  image->SetOrigin(0, static_cast<double>(1 - height), 0);
  image->SetSpacing(step, 1, 1);
  std::vector<std::size_t> cells;
  for (int y = extent[2]; y <= extent[3]; ++y)
  {
    for (int x = extent[0]; x <= extent[1]; ++x)
    {
      cells.push_back(atlas::ToIndex((height - 1 - y) * width + x));
    }
  }
  return cells;
}

std::vector<std::size_t> BeginImage(vtkInformation* info)
{
  std::array<int, 6> whole = { 0, -1, 0, -1, 0, -1 };
  info->Get(SDDP::WHOLE_EXTENT(), whole.data());
  return BeginImage(info, whole[1] + 1, whole[3] + 1);
}

vtkMTimeType TimeOf(vtkDataObject* data)
{
  return data == nullptr ? 0 : std::max(data->GetMTime(), data->GetUpdateTime());
}

}
