#include "vtkAttentionTorus.h"

#include "ArrayRanges.h"
#include "DataFormat.h"
#include "Execution.h"
#include "FieldEvaluation.h"
#include "FieldOutput.h"
#include "ModelConversion.h"
#include "TorusChart.h"

#include <vtkDataArraySelection.h>
#include <vtkDataSet.h>
#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkStreamingDemandDrivenPipeline.h>

#include <algorithm>
#include <chrono>
#include <cmath>

using SDDP = vtkStreamingDemandDrivenPipeline;

vtkStandardNewMacro(vtkAttentionTorus);

vtkAttentionTorus::vtkAttentionTorus()
{
  this->SetNumberOfInputPorts(2);
  AttentionAtlas::FieldOutput::AddQuantities(this->Quantities);
}

vtkAttentionTorus::~vtkAttentionTorus() = default;

vtkDataArraySelection* vtkAttentionTorus::GetQuantities()
{
  return this->Quantities;
}

int vtkAttentionTorus::GetNumberOfQuantityArrays()
{
  return this->Quantities->GetNumberOfArrays();
}

const char* vtkAttentionTorus::GetQuantityArrayName(int index)
{
  return this->Quantities->GetArrayName(index);
}

int vtkAttentionTorus::GetQuantityArrayStatus(const char* name)
{
  return this->Quantities->ArrayIsEnabled(name);
}

void vtkAttentionTorus::SetQuantityArrayStatus(const char* name, int status)
{
  this->Quantities->SetArraySetting(name, status);
}

void vtkAttentionTorus::DisableAllQuantities()
{
  // This also removes names that are not quantities.
  this->Quantities->RemoveAllArrays();
  AttentionAtlas::FieldOutput::AddQuantities(this->Quantities);
  this->Quantities->DisableAllArrays();
}

void vtkAttentionTorus::SetPointsConnection(vtkAlgorithmOutput* output)
{
  this->SetInputConnection(1, output);
}

vtkMTimeType vtkAttentionTorus::GetMTime()
{
  return std::max(this->Superclass::GetMTime(), this->Quantities->GetMTime());
}

int vtkAttentionTorus::FillInputPortInformation(int port, vtkInformation* info)
{
  if (port == 1)
  {
    info->Set(vtkAlgorithm::INPUT_REQUIRED_DATA_TYPE(), "vtkDataSet");
    info->Set(vtkAlgorithm::INPUT_IS_OPTIONAL(), 1);
    return 1;
  }
  return this->Superclass::FillInputPortInformation(port, info);
}

int vtkAttentionTorus::FillOutputPortInformation(int, vtkInformation* info)
{
  info->Set(vtkDataObject::DATA_TYPE_NAME(), "vtkDataSet");
  return 1;
}

int vtkAttentionTorus::RequestDataObject(
  vtkInformation*, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  vtkDataSet* points = vtkDataSet::GetData(inputVector[1]);
  vtkDataSet* output = vtkDataSet::GetData(outputVector);
  const char* type = points != nullptr ? points->GetClassName() : "vtkImageData";
  if (output == nullptr || !output->IsA(type))
  {
    const auto created = vtkSmartPointer<vtkDataSet>::Take(
      points != nullptr ? points->NewInstance() : static_cast<vtkDataSet*>(vtkImageData::New()));
    outputVector->GetInformationObject(0)->Set(vtkDataObject::DATA_OBJECT(), created);
  }
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
  AttentionAtlas::DescribeChart(this->Resolution, info);
  return 1;
}

int vtkAttentionTorus::RequestData(
  vtkInformation*, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  vtkMultiBlockDataSet* input = GetModelInput(inputVector);
  vtkDataSet* points = vtkDataSet::GetData(inputVector[1]);
  vtkDataSet* output = vtkDataSet::GetData(outputVector);
  output->GetPointData()->Initialize(); // a vtkImageData keeps its scalars from the last execution
  if (input == nullptr)
  {
    return 1;
  }
  try
  {
    const atlas::AttentionOnlyModel model = AttentionAtlas::ToModel(input);
    AttentionAtlas::FieldOutput fields(this->Quantities, static_cast<int>(model.HeadCount()),
      static_cast<int>(model.VocabularySize()));
    atlas::FieldEvaluator evaluator(model, this->GetOptions());
    vtkInformation* info = outputVector->GetInformationObject(0);
    const int* extent = info->Get(SDDP::UPDATE_EXTENT());
    // With several ranks, one may have no points.
    if (points != nullptr && points->GetNumberOfPoints() == 0 &&
        info->Get(SDDP::UPDATE_NUMBER_OF_PIECES()) <= 1)
    {
      throw std::runtime_error("Points: expected a dataset with points, found none.");
    }
    const bool finished =
      points != nullptr
        ? this->EvaluatePoints(evaluator, fields, points, output)
        : this->EvaluateImage(evaluator, fields, extent, vtkImageData::SafeDownCast(output));
    if (!finished)
    {
      return AttentionAtlas::LeaveUnfinished(this, outputVector);
    }
    CopyModelFields(input, output);
  }
  catch (const std::exception& e)
  {
    output->Initialize();
    // Returning 0 would leave downstream filters with the extent of this attempt, which VTK 9.2
    // joins with that of the next one: a lower Resolution could no longer be computed.
    if (this->Errors.IsNew(this))
    {
      vtkErrorMacro(<< e.what());
    }
  }
  return 1;
}

bool vtkAttentionTorus::EvaluateImage(atlas::FieldEvaluator& evaluator,
  AttentionAtlas::FieldOutput& fields, const int extent[6], vtkImageData* output)
{
  AttentionAtlas::PrepareChart(this->Resolution, extent, output);
  const vtkIdType columns = extent[1] - extent[0] + 1;
  const vtkIdType rows = extent[3] - extent[2] + 1;
  AttentionAtlas::RequireMemory(
    static_cast<double>(columns) * static_cast<double>(rows) * fields.BytesPerPoint(),
    "Resolution: a chart of " + std::to_string(columns) + " x " + std::to_string(rows) +
      " points with " + std::to_string(fields.ArrayCount()) + " arrays",
    "lower Resolution or choose fewer Quantities.");

  std::vector<double> theta1;
  for (int i = extent[0]; i <= extent[1]; ++i)
  {
    theta1.push_back(AttentionAtlas::ChartAngle(i, this->Resolution[0]));
  }
  evaluator.SetColumns(theta1);
  const atlas::FieldArrays arrays = fields.Allocate(this->Pool, columns * rows);
  AttentionAtlas::RangeCollector ranges(fields.Arrays());
  const bool finished = this->EvaluateInChunks(rows,
    [&](vtkIdType begin, vtkIdType end)
    {
      for (vtkIdType row = begin; row < end; ++row)
      {
        evaluator.EvaluateRow(
          AttentionAtlas::ChartAngle(extent[2] + static_cast<int>(row), this->Resolution[1]),
          arrays, static_cast<std::size_t>(row * columns));
        ranges.Add(row * columns, (row + 1) * columns);
      }
    });
  fields.Attach(output->GetPointData());
  AttentionAtlas::SetFormat(output, AttentionAtlas::Formats::AttentionTorus);
  ranges.Store();
  return finished;
}

bool vtkAttentionTorus::EvaluatePoints(atlas::FieldEvaluator& evaluator,
  AttentionAtlas::FieldOutput& fields, vtkDataSet* points, vtkDataSet* output)
{
  output->ShallowCopy(points);
  const vtkIdType count = points->GetNumberOfPoints();
  AttentionAtlas::RequireMemory(
    static_cast<double>(count) * (fields.BytesPerPoint() + 2 * sizeof(double)),
    "Points: " + std::to_string(count) + " points with " + std::to_string(fields.ArrayCount()) +
      " arrays",
    "give fewer points or choose fewer Quantities.");
  std::vector<double> theta1(static_cast<std::size_t>(count));
  std::vector<double> theta2(static_cast<std::size_t>(count));
  for (vtkIdType i = 0; i < count; ++i)
  {
    double point[3];
    points->GetPoint(i, point);
    if (!std::isfinite(point[0]) || !std::isfinite(point[1]))
    {
      throw std::runtime_error("Points: expected finite angles x and y, found (" +
                               std::to_string(point[0]) + ", " + std::to_string(point[1]) +
                               ") at point " + std::to_string(i) + ".");
    }
    theta1[static_cast<std::size_t>(i)] = point[0];
    theta2[static_cast<std::size_t>(i)] = point[1];
  }
  const atlas::FieldArrays arrays = fields.Allocate(this->Pool, count);
  const bool finished = this->EvaluateInChunks(count,
    [&](vtkIdType begin, vtkIdType end)
    {
      evaluator.EvaluatePoints(theta1.data(), theta2.data(), static_cast<std::size_t>(begin),
        static_cast<std::size_t>(end), arrays);
    });
  fields.Attach(output->GetPointData());
  return finished;
}

/// Evaluates `count` rows or points in parallel, one part at a time, so that the main thread can
/// report progress and react to Cancel in between. Returns false if canceled.
bool vtkAttentionTorus::EvaluateInChunks(
  vtkIdType count, const std::function<void(vtkIdType, vtkIdType)>& evaluate)
{
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::duration<double> wanted(0.05); // of a part
  constexpr vtkIdType parts = 50;                       // if the first one is slow
  constexpr vtkIdType growth = 10;
  vtkIdType size = std::max<vtkIdType>(count / parts, 1);
  for (vtkIdType begin = 0; begin < count;)
  {
    const vtkIdType end = std::min(begin + size, count);
    const auto start = Clock::now();
    AttentionAtlas::ParallelFor(begin, end, evaluate);
    const std::chrono::duration<double> taken = Clock::now() - start;
    size = taken * growth < wanted ? size * growth : size;
    begin = end;
    if (!AttentionAtlas::ReportProgress(
          this, static_cast<double>(end) / static_cast<double>(count)))
    {
      return false;
    }
  }
  return true;
}

void vtkAttentionTorus::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  os << indent << "Resolution: " << this->Resolution[0] << " x " << this->Resolution[1] << "\n";
  os << indent << "Quantities:\n";
  this->Quantities->PrintSelf(os, indent.GetNextIndent());
}
