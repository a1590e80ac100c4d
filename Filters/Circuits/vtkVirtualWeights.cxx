#include "vtkVirtualWeights.h"

#include "ArrayNames.h"
#include "CircuitWeights.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "Index.h"
#include "ModelSizes.h"
#include "PanelTitles.h"
#include "RecordingRanges.h"
#include "Task.h"
#include "TransformerConversion.h"
#include "VirtualWeights.h"

#include <vtkDoubleArray.h>
#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkIntArray.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>
#include <vtkStreamingDemandDrivenPipeline.h>
#include <vtkTable.h>

#include <algorithm>
#include <array>
#include <exception>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
namespace Formats = AttentionAtlas::Formats;
using SDDP = vtkStreamingDemandDrivenPipeline;
using AttentionAtlas::Task;

namespace
{

using atlas::ToIndex;
using AttentionAtlas::AddColumn;
using AttentionAtlas::AddField;
using AttentionAtlas::HeadNameOf;

constexpr std::array<const char*, 3> Readers = { "queries", "keys", "values" };
/// What the stream behind the second head is for.
constexpr std::array<const char*, 3> Streams = { "what keys read", "what queries read",
  "what is written" };

void FillTable(const std::vector<double>& values, vtkTable* table)
{
  std::vector<int> indices(values.size());
  std::iota(indices.begin(), indices.end(), 0);
  const double sum = std::inner_product(values.begin(), values.end(), values.begin(), 0.);
  AddColumn<vtkIntArray>(table, Names::Index, indices);
  AddColumn<vtkDoubleArray>(table, Names::SingularValue, values);
  AddColumn<vtkDoubleArray>(
    table, Names::Share, values, [sum](double value) { return sum > 0 ? value * value / sum : 0; });
}

/// Makes the part of the image that is asked for.
void FillImage(const atlas::DoubleMatrix& product, vtkInformation* info, vtkImageData* image)
{
  std::array<int, 6> extent = { 0, -1, 0, -1, 0, -1 };
  info->Get(SDDP::UPDATE_EXTENT(), extent.data());
  const auto last = static_cast<int>(product.rows()) - 1;
  image->SetExtent(extent.data());
  image->SetOrigin(0, -last, 0);
  image->SetSpacing(1, 1, 1);
  vtkNew<vtkDoubleArray> values;
  values->SetName(Names::VirtualWeights);
  vtkNew<vtkIntArray> rows;
  rows->SetName(Names::Row);
  vtkNew<vtkIntArray> columns;
  columns->SetName(Names::Column);
  for (int y = extent[2]; y <= extent[3]; ++y)
  {
    for (int x = extent[0]; x <= extent[1]; ++x)
    {
      values->InsertNextValue(product(last - y, x));
      rows->InsertNextValue(last - y);
      columns->InsertNextValue(x);
    }
  }
  image->GetPointData()->SetScalars(values);
  image->GetPointData()->AddArray(rows);
  image->GetPointData()->AddArray(columns);
}

}

vtkStandardNewMacro(vtkVirtualWeights);

struct vtkVirtualWeights::Memory
{
  AttentionAtlas::LastResult<atlas::VirtualWeights> weights;
};

vtkVirtualWeights::vtkVirtualWeights()
  : vtkTaskAlgorithm(
      { "vtkMultiBlockDataSet" }, { "vtkImageData", "vtkTable", "vtkPolyData" }, WHOLE_INPUT)
  , Kept(std::make_unique<Memory>())
{
}

vtkVirtualWeights::~vtkVirtualWeights() = default;

int vtkVirtualWeights::RequestInformation(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  const auto sizes = AttentionAtlas::ModelSizes::OfInput(this);
  this->LayerRange[1] = std::max(sizes.layers - 2, 0);
  this->HeadRange[1] = std::max(sizes.heads - 1, 0);
  this->ToLayerRange[1] = std::max(sizes.layers - 1, 1);
  AttentionAtlas::AnnounceImage(this->Space == HEADS ? sizes.headDimension : sizes.modelDimension,
    this->Space == STREAMS ? sizes.modelDimension : sizes.headDimension,
    outputVector->GetInformationObject(0), VTK_DOUBLE);
  return this->Superclass::RequestInformation(request, inputVector, outputVector);
}

/// What the product leaves out.
std::vector<std::string> vtkVirtualWeights::LeftOut(const atlas::TransformerConfig& config) const
{
  std::vector<std::string> leftOut = this->Kind == V
                                       ? atlas::LeftOutOfOutputValue(config, this->Processing)
                                       : atlas::LeftOutOfQueryKey(config, this->Processing);
  if (this->Kind != V)
  {
    leftOut.emplace_back("division by sqrt(d_head)");
  }
  if (config.mlpDimension > 0)
  {
    leftOut.emplace_back("MLPs between the heads");
  }
  return leftOut;
}

void vtkVirtualWeights::Execute(Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
  if (AttentionAtlas::IsEmpty(input))
  {
    return;
  }
  const auto model = AttentionAtlas::ToTransformer(input);
  const atlas::VirtualWeights& weights = this->Kept->weights.Get(task,
    AttentionAtlas::MakeKey(AttentionAtlas::TimeOf(input), this->GetMTime()),
    [&]
    {
      return atlas::FindVirtualWeights(model->GetModel(),
        { { this->FromLayer, this->FromHead }, { this->ToLayer, this->ToHead },
          static_cast<atlas::CompositionKind>(this->Kind),
          static_cast<atlas::VirtualSpace>(this->Space), atlas::CircuitSteps(this->Processing),
          AttentionAtlas::ThreadLimit(), task.Progress() });
    });
  const std::string from = HeadNameOf(this->FromLayer, this->FromHead);
  const std::string to = HeadNameOf(this->ToLayer, this->ToHead);
  FillImage(weights.product, task.OutputInformation(0), task.Output<vtkImageData>(0));
  if (task.IsFirst())
  {
    FillTable(weights.singularValues, task.Output<vtkTable>(1));
    AttentionAtlas::PanelTitles labels;
    labels.AddToTheLeft(-1, static_cast<double>(1 - weights.product.rows()) / 2,
      this->Space == STREAMS ? "stream that " + from + " reads" : "values of " + from);
    const std::size_t kind = this->Kind;
    labels.Add(0, 1,
      this->Space == HEADS ? Readers.at(kind) + (" of " + to)
                           : "stream of " + to + ": " + Streams.at(kind));
    labels.MoveTo(task.Output<vtkPolyData>(2), Formats::VirtualWeightsTitles);
  }
  const std::array<const char*, 3> formats = { Formats::VirtualWeights,
    Formats::VirtualWeightsSpectrum, Formats::VirtualWeightsTitles };
  const std::vector<std::string> leftOut = this->LeftOut(model->GetModel().GetConfig());
  const std::string heads = from + " to " + to;
  for (int port = 0; port < 3; ++port)
  {
    auto* output = task.Output<vtkDataObject>(port);
    AttentionAtlas::Describe(output, formats.at(port), this->Processing, leftOut);
    vtkFieldData* fields = output->GetFieldData();
    AddField(fields, Names::Kind, std::string(atlas::CompositionKindNames.at(this->Kind)));
    AddField(fields, Names::HeadName, heads);
    AddField(fields, Names::Score, weights.score);
  }
}
