#include "ImageRequest.h"

#include "Base/Index.h"

#include <vtkAlgorithm.h>
#include <vtkDataObject.h>
#include <vtkDemandDrivenPipeline.h>
#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkStreamingDemandDrivenPipeline.h>

#include <algorithm>
#include <cstddef>

using SDDP = vtkStreamingDemandDrivenPipeline;

namespace AttentionAtlas
{
namespace
{

/// Whether an image was made after all changes of its filter and what is before it.
bool IsCurrent(vtkAlgorithm* filter, vtkInformation* info, vtkImageData* image)
{
  auto* pipeline = vtkDemandDrivenPipeline::SafeDownCast(filter->GetExecutive());
  return pipeline != nullptr && image != nullptr && image->GetDataReleased() == 0 &&
         info->Has(vtkDemandDrivenPipeline::DATA_NOT_GENERATED()) == 0 &&
         image->GetUpdateTime() > pipeline->GetPipelineMTime();
}

/// Whether an extent is within the announced one.
bool Contains(vtkInformation* info, const std::array<int, 6>& extent)
{
  std::array<int, 6> whole = { 0, -1, 0, -1, 0, -1 };
  info->Get(SDDP::WHOLE_EXTENT(), whole.data());
  bool isInside = true;
  for (std::size_t axis = 0; axis < 6; axis += 2)
  {
    isInside =
      isInside && whole.at(axis) <= extent.at(axis) && extent.at(axis + 1) <= whole.at(axis + 1);
  }
  return isInside;
}

}

bool ImageRequest::Request::operator==(const Request& other) const
{
  return this->extent == other.extent && this->time == other.time;
}

ImageRequest::Request ImageRequest::Of(vtkInformation* request, vtkInformationVector* outputs) const
{
  Request found;
  outputs->GetInformationObject(this->Port)->Get(SDDP::UPDATE_EXTENT(), found.extent.data());
  const int from = request->Has(SDDP::FROM_OUTPUT_PORT()) != 0
                     ? request->Get(SDDP::FROM_OUTPUT_PORT())
                     : this->Port;
  vtkInformation* asking = outputs->GetInformationObject(from < 0 ? this->Port : from);
  if (asking->Has(SDDP::UPDATE_TIME_STEP()) != 0)
  {
    found.time = asking->Get(SDDP::UPDATE_TIME_STEP());
  }
  return found;
}

void ImageRequest::Limit(
  vtkAlgorithm* filter, vtkInformation* request, vtkInformationVector* outputs)
{
  vtkInformation* info = outputs->GetInformationObject(this->Port);
  Request now = this->Of(request, outputs);
  if (now.extent == this->Limited && Contains(info, this->Asked)) // nobody asks for anything else
  {
    now.extent = this->Asked;
  }
  this->Asked = this->Limited = now.extent;
  auto* image = vtkImageData::SafeDownCast(vtkDataObject::GetData(info));
  if (this->Known == now && IsCurrent(filter, info, image))
  {
    std::copy_n(image->GetExtent(), this->Limited.size(), this->Limited.begin());
  }
  info->Set(SDDP::UPDATE_EXTENT(), this->Limited.data(), 6);
}

void ImageRequest::Answered(vtkInformation* request, vtkInformationVector* outputs)
{
  this->Known = this->Of(request, outputs);
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

}
