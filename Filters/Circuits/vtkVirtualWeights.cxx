#include "vtkVirtualWeights.h"

#include "ArrayNames.h"
#include "CircuitWeights.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "Execution.h"
#include "Index.h"
#include "ModelSizes.h"
#include "PanelTitles.h"
#include "RecordingRanges.h"
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

/// What was asked for, and the outcome. VTK executes an image filter again for another output or
/// extent.
struct vtkVirtualWeights::Product
{
  using Wanted = std::tuple<vtkMTimeType, vtkMTimeType>;

  Wanted wanted; ///< times of the input and of the filter
  atlas::VirtualWeights weights;
  std::vector<std::string> leftOut;
};

vtkVirtualWeights::vtkVirtualWeights()
{
  this->SetNumberOfOutputPorts(3);
}

vtkVirtualWeights::~vtkVirtualWeights() = default;

int vtkVirtualWeights::FillInputPortInformation(int, vtkInformation* info)
{
  info->Set(vtkAlgorithm::INPUT_REQUIRED_DATA_TYPE(), "vtkMultiBlockDataSet");
  return 1;
}

int vtkVirtualWeights::FillOutputPortInformation(int port, vtkInformation* info)
{
  constexpr std::array<const char*, 3> Types = { "vtkImageData", "vtkTable", "vtkPolyData" };
  info->Set(vtkDataObject::DATA_TYPE_NAME(), Types.at(ToIndex(port)));
  return 1;
}

int vtkVirtualWeights::RequestInformation(
  vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector)
{
  const auto sizes = AttentionAtlas::ModelSizes::OfInput(this);
  this->LayerRange[1] = std::max(sizes.layers - 2, 0);
  this->HeadRange[1] = std::max(sizes.heads - 1, 0);
  this->ToLayerRange[1] = std::max(sizes.layers - 1, 1);
  AttentionAtlas::AnnounceImage(this->Space == HEADS ? sizes.headDimension : sizes.modelDimension,
    this->Space == STREAMS ? sizes.modelDimension : sizes.headDimension,
    outputVector->GetInformationObject(0), VTK_DOUBLE);
  for (const int port : { 1, 2 })
  {
    outputVector->GetInformationObject(port)->Set(vtkAlgorithm::CAN_HANDLE_PIECE_REQUEST(), 1);
  }
  return 1;
}

int vtkVirtualWeights::RequestUpdateExtent(
  vtkInformation*, vtkInformationVector** inputVector, vtkInformationVector*)
{
  AttentionAtlas::KeepRequest(
    inputVector[0]->GetInformationObject(0)); // whatever part of the image
  return 1;
}

/// Finds the product unless it is known. Returns false if the user has canceled.
bool vtkVirtualWeights::FindProduct(vtkMultiBlockDataSet* input)
{
  const Product::Wanted wanted = { std::max(input->GetMTime(), input->GetUpdateTime()),
    this->GetMTime() };
  if (this->Known != nullptr && this->Known->wanted == wanted)
  {
    return true;
  }
  this->Known.reset();
  const auto model = AttentionAtlas::ToTransformer(input);
  const atlas::TransformerConfig& config = model->GetModel().GetConfig();
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
  std::optional<atlas::VirtualWeights> weights = atlas::FindVirtualWeights(model->GetModel(),
    { { this->FromLayer, this->FromHead }, { this->ToLayer, this->ToHead },
      static_cast<atlas::CompositionKind>(this->Kind),
      static_cast<atlas::VirtualSpace>(this->Space), atlas::CircuitSteps(this->Processing),
      AttentionAtlas::ThreadLimit(),
      [this](double done) { return AttentionAtlas::ReportProgress(this, done); } });
  if (weights)
  {
    this->Known =
      std::make_unique<Product>(Product{ wanted, std::move(*weights), std::move(leftOut) });
  }
  return weights.has_value();
}

int vtkVirtualWeights::RequestData(
  vtkInformation*, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  auto* input = vtkMultiBlockDataSet::GetData(inputVector[0]);
  auto* image = vtkImageData::GetData(outputVector, 0);
  auto* table = vtkTable::GetData(outputVector, 1);
  auto* titles = vtkPolyData::GetData(outputVector, 2);
  const std::array<vtkDataObject*, 3> outputs = { image, table, titles };
  const auto clear = [&outputs]()
  { std::for_each(outputs.begin(), outputs.end(), [](vtkDataObject* o) { o->Initialize(); }); };
  clear();
  if (AttentionAtlas::IsEmpty(input))
  {
    return 1;
  }
  try
  {
    if (!this->FindProduct(input))
    {
      return AttentionAtlas::LeaveUnfinished(this, outputVector);
    }
    const atlas::VirtualWeights& weights = this->Known->weights;
    const std::string from = HeadNameOf(this->FromLayer, this->FromHead);
    const std::string to = HeadNameOf(this->ToLayer, this->ToHead);
    FillImage(weights.product, outputVector->GetInformationObject(0), image);
    if (AttentionAtlas::IsFirstPiece(outputVector))
    {
      FillTable(weights.singularValues, table);
      const std::size_t kind = ToIndex(this->Kind);
      AttentionAtlas::PanelTitles labels;
      labels.AddToTheLeft(-1, static_cast<double>(1 - weights.product.rows()) / 2,
        this->Space == STREAMS ? "stream that " + from + " reads" : "values of " + from);
      labels.Add(0, 1,
        this->Space == HEADS ? Readers.at(kind) + (" of " + to)
                             : "stream of " + to + ": " + Streams.at(kind));
      labels.MoveTo(titles, Formats::VirtualWeightsTitles);
    }
    const std::array<const char*, 3> formats = { Formats::VirtualWeights,
      Formats::VirtualWeightsSpectrum, Formats::VirtualWeightsTitles };
    const std::string heads = from + " to " + to;
    for (std::size_t port = 0; port < outputs.size(); ++port)
    {
      AttentionAtlas::Describe(
        outputs.at(port), formats.at(port), this->Processing, this->Known->leftOut);
      vtkFieldData* fields = outputs.at(port)->GetFieldData();
      AddField(
        fields, Names::Kind, std::string(atlas::CompositionKindNames.at(ToIndex(this->Kind))));
      AddField(fields, Names::HeadName, heads);
      AddField(fields, Names::Score, weights.score);
    }
  }
  catch (const std::exception& e)
  {
    clear();
    if (AttentionAtlas::IsFirstPiece(outputVector) && this->Errors.IsNew(this))
    {
      vtkErrorMacro(<< e.what());
    }
  }
  return 1; // as in vtkModelAlgorithm
}

void vtkVirtualWeights::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  os << indent << "Kind: " << this->Kind << "\n";
  os << indent << "Space: " << this->Space << "\n";
  os << indent << "FromLayer: " << this->FromLayer << "\n";
  os << indent << "FromHead: " << this->FromHead << "\n";
  os << indent << "ToLayer: " << this->ToLayer << "\n";
  os << indent << "ToHead: " << this->ToHead << "\n";
  os << indent << "Processing: " << this->Processing << "\n";
}
