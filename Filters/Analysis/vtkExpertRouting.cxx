#include "vtkExpertRouting.h"

#include "ArrayNames.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "ExpertLoad.h"
#include "ImageRequest.h"
#include "Index.h"
#include "RecordedAttention.h"
#include "RecordingConversion.h"
#include "RecordingRanges.h"
#include "Task.h"
#include "TokenText.h"

#include <vtkCellArray.h>
#include <vtkFloatArray.h>
#include <vtkIdTypeArray.h>
#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>
#include <vtkTable.h>
#include <vtkUnsignedCharArray.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using AttentionAtlas::Task;

namespace
{

using atlas::ExpertLoad;
using atlas::ExpertToken;
using atlas::RecordedLayer;
using AttentionAtlas::AddColumn;
using AttentionAtlas::MakeArray;

constexpr int RoutingImagePort = 0;
constexpr int RoutingLoadPort = 1;
constexpr int RoutingTokenPort = 2;
constexpr int RoutingLabelPort = 3;

/// The layers with routing and their numbers of experts, by the field data alone.
std::vector<std::pair<int, int>> RoutedLayers(vtkMultiBlockDataSet* recording)
{
  std::vector<std::pair<int, int>> layers;
  vtkDataArray* experts = recording->GetFieldData()->GetArray(AttentionAtlas::ExpertsField);
  for (vtkIdType i = 0; experts != nullptr && i < experts->GetNumberOfTuples(); ++i)
  {
    layers.emplace_back(
      static_cast<int>(experts->GetComponent(i, 0)), static_cast<int>(experts->GetComponent(i, 1)));
  }
  return layers;
}

/// A point of the image.
struct RoutingCell
{
  const RecordedLayer* layer = nullptr;
  int expert = -1;       ///< -1: there is none
  float weight = 0;      ///< of this token
  std::int64_t row = -1; ///< the token's in the recording; -1: none
  ExpertLoad load = {};  ///< of all tokens
};

/// The numbers of a list as labels.
template<class List, class Number>
std::vector<std::string> LabelsOf(const List& list, const Number& number)
{
  std::vector<std::string> labels;
  labels.reserve(list.size());
  for (const auto& item : list)
  {
    labels.push_back(std::to_string(number(item)));
  }
  return labels;
}

/// The cells of an image, row by row from the top, and what is written beside it.
struct RoutingGrid
{
  std::vector<RoutingCell> cells;
  std::vector<std::string> rows; ///< labels, from the top
  std::vector<std::string> columns;
  const char* rowTitle = "Layer";
  const char* columnTitle = "Token";
};

/// Layers upward, so that the last one is on top.
std::vector<const RecordedLayer*> Upward(const atlas::Recording& recording)
{
  std::vector<const RecordedLayer*> layers = atlas::RoutedLayers(recording);
  std::reverse(layers.begin(), layers.end());
  return layers;
}

std::vector<std::string> TokensOf(const atlas::Recording& recording, std::int64_t sequence)
{
  std::vector<std::string> texts;
  const std::int64_t first = recording.sequenceOffsets[sequence];
  const std::int64_t length = recording.SequenceLength(sequence);
  texts.reserve(length);
  for (std::int64_t i = 0; i < length; ++i)
  {
    texts.push_back(AttentionAtlas::TokenText(recording, first + i));
  }
  return texts;
}

std::vector<std::string> NamesOf(const std::vector<const RecordedLayer*>& layers)
{
  return LabelsOf(layers, [](const RecordedLayer* layer) { return layer->index; });
}

RoutingGrid LayersOf(const atlas::Recording& recording, std::int64_t sequence)
{
  RoutingGrid grid;
  const std::vector<const RecordedLayer*> layers = Upward(recording);
  grid.rows = NamesOf(layers);
  grid.columns = TokensOf(recording, sequence);
  for (const RecordedLayer* layer : layers)
  {
    for (std::int64_t i = 0; i < recording.SequenceLength(sequence); ++i)
    {
      const std::int64_t row = recording.sequenceOffsets[sequence] + i;
      grid.cells.push_back({ layer, static_cast<int>(*layer->routing.chosen.Row(row)),
        *layer->routing.weights.Row(row), row });
    }
  }
  return grid;
}

RoutingGrid ExpertsOf(const atlas::Recording& recording, std::int64_t sequence, std::int64_t index)
{
  RoutingGrid grid;
  const RecordedLayer& layer = atlas::RoutedLayer(recording, index);
  grid.columns = TokensOf(recording, sequence);
  grid.rowTitle = "Expert";
  const atlas::RecordedRouting& routing = layer.routing;
  const std::int64_t length = recording.SequenceLength(sequence);
  for (int expert = 0; expert < routing.experts; ++expert)
  {
    grid.rows.push_back(std::to_string(expert));
    for (std::int64_t i = 0; i < length; ++i)
    {
      grid.cells.push_back({ &layer, expert, 0, recording.sequenceOffsets[sequence] + i });
    }
  }
  for (std::int64_t i = 0; i < length; ++i)
  {
    const std::int64_t row = recording.sequenceOffsets[sequence] + i;
    for (std::int64_t k = 0; k < routing.chosen.columns; ++k)
    {
      const auto expert = static_cast<std::int64_t>(routing.chosen.Row(row)[k]);
      grid.cells[expert * length + i].weight = routing.weights.Row(row)[k];
    }
  }
  return grid;
}

RoutingGrid LoadsOf(const atlas::Recording& recording, const std::vector<ExpertLoad>& loads)
{
  RoutingGrid grid;
  const std::vector<const RecordedLayer*> layers = Upward(recording);
  grid.rows = NamesOf(layers);
  grid.columnTitle = "Expert";
  int most = 0;
  for (const RecordedLayer* layer : layers)
  {
    most = std::max(most, static_cast<int>(layer->routing.experts));
  }
  for (int expert = 0; expert < most; ++expert)
  {
    grid.columns.push_back(std::to_string(expert));
  }
  for (const RecordedLayer* layer : layers)
  {
    const std::size_t begin = grid.cells.size();
    for (const ExpertLoad& load : loads)
    {
      if (load.layer == layer->index)
      {
        grid.cells.push_back({ layer, load.expert, 0, -1, load });
      }
    }
    grid.cells.resize(begin + atlas::ToIndex(most), { layer });
  }
  return grid;
}

/// Adds the arrays that points of the image and labels have in common.
void AddPlaces(const atlas::Recording& recording, const std::vector<RoutingCell>& cells,
  std::int64_t sequence, vtkFieldData* data)
{
  const auto add = [&](const char* name, const auto& number)
  { data->AddArray(MakeArray<vtkIntArray>(name, cells, number)); };
  add(Names::Layer, [](const RoutingCell& cell) { return static_cast<int>(cell.layer->index); });
  add(Names::Expert, [](const RoutingCell& cell) { return cell.expert; });
  if (!cells.empty() && cells.front().row >= 0)
  {
    add(Names::Sequence, [&](const RoutingCell&) { return static_cast<int>(sequence); });
    add(Names::Position, [&](const RoutingCell& cell)
      { return static_cast<int>(recording.tokens.position[cell.row]); });
    data->AddArray(MakeArray<vtkIdTypeArray>(
      Names::TokenIndex, cells, [](const RoutingCell& cell) { return vtkIdType{ cell.row }; }));
    data->AddArray(MakeArray<vtkFloatArray>(
      Names::ExpertWeight, cells, [](const RoutingCell& cell) { return cell.weight; }));
  }
}

void FillImage(const atlas::Recording& recording, const RoutingGrid& grid, std::int64_t sequence,
  bool isLoad, vtkInformation* info)
{
  std::vector<RoutingCell> cells;
  for (const std::size_t cell :
    AttentionAtlas::BeginImage(info, grid.columns.size(), grid.rows.size()))
  {
    cells.push_back(grid.cells[cell]);
  }
  auto* image = vtkImageData::GetData(info);
  vtkPointData* data = image->GetPointData();
  AddPlaces(recording, cells, sequence, data);
  if (isLoad)
  {
    data->AddArray(MakeArray<vtkIntArray>(Names::Count, cells,
      [](const RoutingCell& cell) { return static_cast<int>(cell.load.count); }));
    data->AddArray(MakeArray<vtkFloatArray>(Names::Share, cells,
      [](const RoutingCell& cell) { return static_cast<float>(cell.load.share); }));
    data->AddArray(MakeArray<vtkFloatArray>(Names::MeanWeight, cells,
      [](const RoutingCell& cell) { return static_cast<float>(cell.load.weight); }));
  }
  data->SetActiveScalars(isLoad ? Names::Share : Names::ExpertWeight);
  vtkFieldData* fields = image->GetFieldData();
  fields->AddArray(MakeArray<vtkStringArray>(Names::KeyToken, grid.columns));
  fields->AddArray(MakeArray<vtkStringArray>(Names::QueryToken, grid.rows));
  AttentionAtlas::AddField(fields, Names::KeyTitle, std::string(grid.columnTitle));
  AttentionAtlas::AddField(fields, Names::QueryTitle, std::string(grid.rowTitle));
  AttentionAtlas::SetFormat(image, AttentionAtlas::Formats::ExpertRouting);
}

/// Adds the columns that both tables have.
template<class Use>
void AddUses(const std::vector<Use>& uses, vtkTable* table)
{
  AddColumn<vtkIntArray>(
    table, Names::Count, uses, [](const Use& use) { return static_cast<int>(use.count); });
  AddColumn<vtkDoubleArray>(table, Names::Share, uses, [](const Use& use) { return use.share; });
  AddColumn<vtkDoubleArray>(
    table, Names::MeanWeight, uses, [](const Use& use) { return use.weight; });
}

template<class Use>
void AddExperts(const std::vector<Use>& uses, vtkTable* table)
{
  AddColumn<vtkIntArray>(table, Names::Layer, uses, [](const Use& use) { return use.layer; });
  AddColumn<vtkIntArray>(table, Names::Expert, uses, [](const Use& use) { return use.expert; });
}

void FillLoads(const std::vector<ExpertLoad>& loads, vtkTable* table)
{
  AddExperts(loads, table);
  AddUses(loads, table);
  AttentionAtlas::SetFormat(table, AttentionAtlas::Formats::ExpertRoutingLoads);
}

void FillTokens(
  const atlas::Recording& recording, const std::vector<ExpertToken>& tokens, vtkTable* table)
{
  AddExperts(tokens, table);
  AddColumn<vtkIntArray>(
    table, Names::Rank, tokens, [](const ExpertToken& token) { return token.rank; });
  AddColumn<vtkStringArray>(table, Names::Token, tokens,
    [&](const ExpertToken& token) { return AttentionAtlas::TokenText(recording, token.row); });
  AddUses(tokens, table);
  AttentionAtlas::SetFormat(table, AttentionAtlas::Formats::ExpertRoutingTokens);
}

/// The number of the expert in each cell.
void FillLabels(const atlas::Recording& recording, const RoutingGrid& grid, std::int64_t sequence,
  vtkPolyData* output)
{
  vtkNew<vtkPoints> points;
  vtkNew<vtkCellArray> vertices;
  const std::size_t columns = grid.columns.size();
  for (std::size_t cell = 0; cell < grid.cells.size(); ++cell)
  {
    const std::size_t row = cell / columns;
    const vtkIdType point = points->InsertNextPoint(
      static_cast<double>(cell % columns) - 0.4, -static_cast<double>(row), 0);
    vertices->InsertNextCell(1, &point);
  }
  output->SetPoints(points);
  output->SetVerts(vertices);
  vtkPointData* data = output->GetPointData();
  AddPlaces(recording, grid.cells, sequence, data);
  data->AddArray(MakeArray<vtkStringArray>(
    Names::Token, grid.cells, [](const RoutingCell& cell) { return std::to_string(cell.expert); }));
  data->AddArray(MakeArray<vtkUnsignedCharArray>(Names::Side, grid.cells,
    [](const RoutingCell&) { return static_cast<unsigned char>(1); })); // to the right of its point
  AttentionAtlas::SetFormat(output, AttentionAtlas::Formats::ExpertRoutingLabels);
}

}

vtkStandardNewMacro(vtkExpertRouting);

vtkExpertRouting::vtkExpertRouting()
  : vtkTaskAlgorithm({ "vtkMultiBlockDataSet" },
      { "vtkImageData", "vtkTable", "vtkTable", "vtkPolyData" }, WHOLE_INPUT)
{
}

vtkExpertRouting::~vtkExpertRouting() = default;

int vtkExpertRouting::RequestInformation(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  vtkMultiBlockDataSet* recording = AttentionAtlas::OutlineOfRecording(this);
  const AttentionAtlas::RecordingRanges ranges(recording);
  std::copy_n(ranges.sequence, 2, this->SequenceRange);
  std::fill_n(this->LayerRange, 2, 0);
  int rows = 0;
  int columns = 0;
  if (!AttentionAtlas::IsEmpty(recording))
  {
    const std::vector<std::pair<int, int>> layers = RoutedLayers(recording);
    int most = 0;
    int ofLayer = 0;
    for (const auto& [layer, experts] : layers)
    {
      most = std::max(most, experts);
      ofLayer = layer == this->Layer ? experts : ofLayer;
    }
    if (!layers.empty())
    {
      this->LayerRange[0] = layers.front().first;
      this->LayerRange[1] = layers.back().first;
    }
    columns = this->Show == LOAD
                ? most
                : AttentionAtlas::SequenceTokens(recording, std::max(this->Sequence, 0));
    rows = this->Show == EXPERTS ? ofLayer : static_cast<int>(layers.size());
    // Also if something is wrong, which RequestData tells.
    columns = std::max(columns, 1);
    rows = std::max(rows, 1);
  }
  AttentionAtlas::AnnounceImage(
    columns, rows, outputVector->GetInformationObject(RoutingImagePort));
  return this->Superclass::RequestInformation(request, inputVector, outputVector);
}

void vtkExpertRouting::Execute(Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
  if (AttentionAtlas::IsEmpty(input))
  {
    return;
  }
  const atlas::Recording recording = AttentionAtlas::ToRecording(input);
  const std::vector<ExpertLoad> loads = atlas::MeasureExperts(recording);
  if (this->Show != LOAD)
  {
    atlas::RequireOneSequence(recording, this->Sequence);
    atlas::RequireTokens(recording, this->Sequence);
  }
  const RoutingGrid grid = this->Show == LAYERS ? LayersOf(recording, this->Sequence)
                           : this->Show == EXPERTS
                             ? ExpertsOf(recording, this->Sequence, this->Layer)
                             : LoadsOf(recording, loads);
  const std::vector<ExpertToken> tokens = atlas::TokensOfExperts(recording, this->Top);
  FillImage(
    recording, grid, this->Sequence, this->Show == LOAD, task.OutputInformation(RoutingImagePort));
  if (task.IsFirst())
  {
    FillLoads(loads, task.Output<vtkTable>(RoutingLoadPort));
    FillTokens(recording, tokens, task.Output<vtkTable>(RoutingTokenPort));
    if (this->Show == LAYERS)
    {
      FillLabels(recording, grid, this->Sequence, task.Output<vtkPolyData>(RoutingLabelPort));
    }
  }
}
