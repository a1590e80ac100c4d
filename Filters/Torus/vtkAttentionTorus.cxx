#include "vtkAttentionTorus.h"

#include "ArrayRanges.h"
#include "AttentionOnly/FieldEvaluation.h"
#include "Base/Error.h"
#include "Base/ParallelProgress.h"
#include "DataFormat.h"
#include "Execution.h"
#include "FieldOutput.h"
#include "Task.h"
#include "TorusChart.h"

#include <vtkDataSet.h>
#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkStreamingDemandDrivenPipeline.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

using namespace AttentionAtlas;
using SDDP = vtkStreamingDemandDrivenPipeline;

namespace
{

/// Evaluates `count` rows or points in parallel, in parts that are short enough for threads to end
/// together, and for the main thread to report progress and react to Cancel in between.
void EvaluateInParts(vtkIdType count, const atlas::Progress& progress,
  const std::function<void(vtkIdType, vtkIdType)>& evaluate)
{
  constexpr vtkIdType most = 64;
  const vtkIdType parts = std::min(count, most);
  atlas::ParallelFor(parts, ThreadLimit(), progress,
    [&](std::int64_t part) { evaluate(count * part / parts, count * (part + 1) / parts); });
}

}

vtkStandardNewMacro(vtkAttentionTorus);

vtkAttentionTorus::vtkAttentionTorus()
  : vtkTorusAlgorithm({ "vtkDataSet" }, { "vtkDataSet?" }, EVERY_PIECE)
{
  FieldOutput::AddQuantities(this->Quantities);
}

void vtkAttentionTorus::DisableAllQuantities()
{
  // This also removes names that are not quantities.
  this->Quantities->RemoveAllArrays();
  FieldOutput::AddQuantities(this->Quantities);
  this->Quantities->DisableAllArrays();
}

vtkMTimeType vtkAttentionTorus::GetMTime()
{
  return std::max(this->Superclass::GetMTime(), this->Quantities->GetMTime());
}

int vtkAttentionTorus::RequestDataObject(
  vtkInformation*, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  vtkDataSet* points = vtkDataSet::GetData(inputVector[1]);
  MakeOutput(outputVector, 0, points != nullptr ? points->GetClassName() : "vtkImageData");
  return 1;
}

int vtkAttentionTorus::RequestInformation(
  vtkInformation*, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  vtkInformation* info = outputVector->GetInformationObject(0);
  if (vtkInformation* points = inputVector[1]->GetInformationObject(0))
  {
    // The output has the structure of the points, if they are structured.
    info->CopyEntry(points, SDDP::WHOLE_EXTENT());
    info->CopyEntry(points, vtkDataObject::ORIGIN());
    info->CopyEntry(points, vtkDataObject::SPACING());
    info->CopyEntry(points, vtkAlgorithm::CAN_PRODUCE_SUB_EXTENT());
    return 1;
  }
  DescribeChart(this->Resolution, info);
  return 1;
}

void vtkAttentionTorus::Evaluate(const atlas::AttentionOnlyModel& model, Task& task)
{
  auto* points = task.Input<vtkDataSet>(1);
  FieldOutput fields(this->Quantities, static_cast<int>(model.HeadCount()),
    static_cast<int>(model.VocabularySize()));
  atlas::FieldEvaluator evaluator(model, this->GetOptions());
  // With several ranks, one may have no points.
  if (points != nullptr && points->GetNumberOfPoints() == 0 &&
      task.OutputInformation()->Get(SDDP::UPDATE_NUMBER_OF_PIECES()) <= 1)
  {
    throw std::runtime_error("Points: expected a dataset with points, found none.");
  }
  if (points != nullptr)
  {
    this->EvaluatePoints(evaluator, fields, task);
  }
  else
  {
    this->EvaluateImage(evaluator, fields, task);
  }
}

void vtkAttentionTorus::EvaluateImage(
  atlas::FieldEvaluator& evaluator, FieldOutput& fields, const Task& task)
{
  auto* output = task.Output<vtkImageData>();
  const int* extent = task.OutputInformation()->Get(SDDP::UPDATE_EXTENT());
  PrepareChart(this->Resolution, extent, output);
  const vtkIdType columns = extent[1] - extent[0] + 1;
  const vtkIdType rows = extent[3] - extent[2] + 1;
  RequireMemory(static_cast<double>(columns) * static_cast<double>(rows) * fields.BytesPerPoint(),
    "Resolution: a chart of " + std::to_string(columns) + " x " + std::to_string(rows) +
      " points with " + std::to_string(fields.ArrayCount()) + " arrays",
    "lower Resolution or choose fewer Quantities.");

  std::vector<double> theta1;
  for (int i = extent[0]; i <= extent[1]; ++i)
  {
    theta1.push_back(ChartAngle(i, this->Resolution[0]));
  }
  evaluator.SetColumns(theta1);
  const atlas::FieldArrays arrays = fields.Allocate(this->Pool, columns * rows);
  RangeCollector ranges(fields.Arrays());
  EvaluateInParts(rows, task.Progress(),
    [&](vtkIdType begin, vtkIdType end)
    {
      constexpr vtkIdType together = 2048; // points, which are still in the processor's cache
      RangeCollector::Part part(ranges);
      vtkIdType added = begin;
      for (vtkIdType row = begin; row < end; ++row)
      {
        evaluator.EvaluateRow(ChartAngle(extent[2] + static_cast<int>(row), this->Resolution[1]),
          arrays, row * columns);
        if (row + 1 == end || (row + 1 - added) * columns >= together)
        {
          part.Add(added * columns, (row + 1) * columns);
          added = row + 1;
        }
      }
    });
  fields.Attach(output->GetPointData());
  SetFormat(output, Formats::AttentionTorus);
  ranges.Store();
}

void vtkAttentionTorus::EvaluatePoints(
  atlas::FieldEvaluator& evaluator, FieldOutput& fields, const Task& task)
{
  auto* points = task.Input<vtkDataSet>(1);
  auto* output = task.Output<vtkDataSet>();
  output->ShallowCopy(points);
  const vtkIdType count = points->GetNumberOfPoints();
  RequireMemory(static_cast<double>(count) * (fields.BytesPerPoint() + 2 * sizeof(double)),
    "Points: " + std::to_string(count) + " points with " + std::to_string(fields.ArrayCount()) +
      " arrays",
    "give fewer points or choose fewer Quantities.");
  std::vector<double> theta1(count);
  std::vector<double> theta2(count);
  for (vtkIdType i = 0; i < count; ++i)
  {
    double point[3];
    points->GetPoint(i, point);
    if (!std::isfinite(point[0]) || !std::isfinite(point[1]))
    {
      throw std::runtime_error(atlas::Concat("Points: expected finite angles x and y, found (",
        point[0], ", ", point[1], ") at point ", i, "."));
    }
    theta1[i] = point[0];
    theta2[i] = point[1];
  }
  const atlas::FieldArrays arrays = fields.Allocate(this->Pool, count);
  EvaluateInParts(count, task.Progress(), [&](vtkIdType begin, vtkIdType end)
    { evaluator.EvaluatePoints(theta1.data(), theta2.data(), begin, end, arrays); });
  fields.Attach(output->GetPointData());
}
