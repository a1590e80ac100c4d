#include "vtkVirtualWeights.h"

#include "ArrayNames.h"
#include "Circuits/CircuitWeights.h"
#include "Circuits/VirtualWeights.h"
#include "DataFormat.h"
#include "ListArrays.h"
#include "ModelSizes.h"
#include "PanelTitles.h"
#include "RecordingRanges.h"
#include "Task.h"
#include "TransformerConversion.h"

#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

constexpr std::array<const char*, 3> Readers = { "queries", "keys", "values" };
/// What the stream behind the second head is for.
constexpr std::array<const char*, 3> Streams = { "what keys read", "what queries read",
  "what is written" };

void FillTable(const std::vector<double>& values, vtkTable* table)
{
  const double sum = std::inner_product(values.begin(), values.end(), values.begin(), 0.);
  ListArrays(values, table->GetRowData())
    .Int(Names::Index, [index = 0](double) mutable { return index++; })
    .Double(Names::SingularValue)
    .Double(Names::Share, [sum](double value) { return sum > 0 ? value * value / sum : 0; });
}

/// Makes the part of the image that is asked for.
void FillImage(const atlas::DoubleMatrix& product, vtkInformation* info)
{
  const std::vector<std::size_t> cells = BeginImage(info);
  const std::size_t columns = product.cols();
  vtkPointData* data = vtkImageData::GetData(info)->GetPointData();
  ListArrays(cells, data)
    .Double(Names::VirtualWeights, [&](std::size_t i) { return product.data()[i]; })
    .Int(Names::Row, [columns](std::size_t i) { return i / columns; })
    .Int(Names::Column, [columns](std::size_t i) { return i % columns; });
  data->SetActiveScalars(Names::VirtualWeights);
}

std::vector<std::string> RowNumbers(Eigen::Index count)
{
  std::vector<std::string> numbers;
  numbers.reserve(count);
  for (Eigen::Index i = 0; i < count; ++i)
  {
    numbers.push_back(std::to_string(i));
  }
  return numbers;
}

}

vtkStandardNewMacro(vtkVirtualWeights);

struct vtkVirtualWeights::Memory
{
  LastResult<atlas::VirtualWeights> weights;
};

vtkVirtualWeights::vtkVirtualWeights()
  : vtkTaskAlgorithm(
      { "vtkMultiBlockDataSet" }, { "vtkImageData", "vtkTable", "vtkPolyData" }, WHOLE_INPUT)
  , Kept(std::make_unique<Memory>())
{
}

int vtkVirtualWeights::RequestInformation(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  const auto sizes = ModelSizes::OfInput(this);
  this->LayerRange[1] = std::max(sizes.layers - 2, 0);
  this->HeadRange[1] = std::max(sizes.heads - 1, 0);
  this->ToLayerRange[1] = std::max(sizes.layers - 1, 1);
  AnnounceImage(this->Space == HEADS ? sizes.headDimension : sizes.modelDimension,
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
  if (IsEmpty(input))
  {
    return;
  }
  const auto model = ToTransformer(input);
  const atlas::VirtualWeights& weights =
    this->Kept->weights.Get(task, MakeKey(TimeOf(input), this->GetMTime()),
      [&]
      {
        return atlas::FindVirtualWeights(model->GetModel(),
          { { this->FromLayer, this->FromHead }, { this->ToLayer, this->ToHead },
            static_cast<atlas::CompositionKind>(this->Kind),
            static_cast<atlas::VirtualSpace>(this->Space), atlas::CircuitSteps(this->Processing),
            ThreadLimit(), task.Progress() });
      });
  const std::string from = HeadNameOf(this->FromLayer, this->FromHead);
  const std::string to = HeadNameOf(this->ToLayer, this->ToHead);
  const std::size_t kind = this->Kind;
  const std::array<std::string, 2> titles = {
    this->Space == STREAMS ? "stream that " + from + " reads" : "values of " + from,
    this->Space == HEADS ? Readers.at(kind) + (" of " + to)
                         : "stream of " + to + ": " + Streams.at(kind)
  };
  FillImage(weights.product, task.OutputInformation(0));
  vtkFieldData* ofImage = task.Output<vtkImageData>(0)->GetFieldData();
  ListArrays(RowNumbers(weights.product.rows()), ofImage).Text(Names::QueryToken);
  ListArrays(RowNumbers(weights.product.cols()), ofImage).Text(Names::KeyToken);
  AddField(ofImage, Names::QueryTitle, titles[0]);
  AddField(ofImage, Names::KeyTitle, titles[1]);
  if (task.IsFirst())
  {
    FillTable(weights.singularValues, task.Output<vtkTable>(1));
    PanelTitles labels;
    labels.AddToTheLeft(-1, static_cast<double>(1 - weights.product.rows()) / 2, titles[0]);
    labels.Add(0, 1, titles[1]);
    labels.MoveTo(task.Output<vtkPolyData>(2), Formats::VirtualWeightsTitles);
  }
  const std::array<const char*, 3> formats = { Formats::VirtualWeights,
    Formats::VirtualWeightsSpectrum, Formats::VirtualWeightsTitles };
  const std::vector<std::string> leftOut = this->LeftOut(model->GetModel().GetConfig());
  const std::string heads = from + " to " + to;
  for (int port = 0; port < 3; ++port)
  {
    auto* output = task.Output<vtkDataObject>(port);
    Describe(output, formats.at(port), this->Processing, leftOut);
    vtkFieldData* fields = output->GetFieldData();
    AddField(fields, Names::Kind, std::string(atlas::CompositionKindNames.at(this->Kind)));
    AddField(fields, Names::HeadName, heads);
    AddField(fields, Names::Score, weights.score);
  }
}
