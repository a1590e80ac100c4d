#include "TorusChart.h"

#include "Base/Error.h"

#include <vtkAlgorithm.h>
#include <vtkDataObject.h>
#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkMath.h>
#include <vtkStreamingDemandDrivenPipeline.h>

#include <algorithm>
#include <stdexcept>

namespace AttentionAtlas
{
namespace
{

double Spacing(int resolution)
{
  return 2 * vtkMath::Pi() / (resolution - 1);
}

}

double ChartAngle(int index, int resolution)
{
  return -vtkMath::Pi() + index * Spacing(resolution);
}

void DescribeChart(const int resolution[2], vtkInformation* info)
{
  const int columns = std::max(resolution[0], 2);
  const int rows = std::max(resolution[1], 2);
  const int extent[6] = { 0, columns - 1, 0, rows - 1, 0, 0 };
  info->Set(vtkStreamingDemandDrivenPipeline::WHOLE_EXTENT(), extent, 6);
  info->Set(vtkDataObject::ORIGIN(), -vtkMath::Pi(), -vtkMath::Pi(), 0.);
  info->Set(vtkDataObject::SPACING(), Spacing(columns), Spacing(rows), 1.);
  info->Set(vtkAlgorithm::CAN_PRODUCE_SUB_EXTENT(), 1);
}

void PrepareChart(const int resolution[2], const int extent[6], vtkImageData* output)
{
  atlas::ThrowIf<std::runtime_error>(resolution[0] < 2 || resolution[1] < 2,
    atlas::Concat("Resolution: expected at least 2 points along each angle, found ", resolution[0],
      " x ", resolution[1], "."));
  output->SetExtent(const_cast<int*>(extent));
  output->SetOrigin(-vtkMath::Pi(), -vtkMath::Pi(), 0);
  output->SetSpacing(Spacing(resolution[0]), Spacing(resolution[1]), 1);
}

}
