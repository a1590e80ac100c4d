#include "vtkExpertRouting.h"

#include "Analysis/ExpertLoad.h"
#include "ArrayNames.h"
#include "Base/Index.h"
#include "DataFormat.h"
#include "ImageRequest.h"
#include "ListArrays.h"
#include "Recording/RecordedAttention.h"
#include "RecordingConversion.h"
#include "RecordingRanges.h"
#include "Shapes.h"
#include "Task.h"
#include "TokenText.h"

#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

using atlas::ExpertLoad;
using atlas::ExpertToken;
using atlas::RecordedLayer;

constexpr int RoutingImagePort = 0;
constexpr int RoutingLoadPort = 1;
constexpr int RoutingTokenPort = 2;
constexpr int RoutingLabelPort = 3;

/// The layers with routing and their numbers of experts, by the field data alone.
std::vector<std::pair<int, int>> RoutedLayers(vtkMultiBlockDataSet* recording)
{
  std::vector<std::pair<int, int>> layers;
  vtkDataArray* experts = recording->GetFieldData()->GetArray(ExpertsField);
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
  float score = 0;       ///< the router's, of this token

  /// That of the expert, 0 if there is none.
  float Bias() const
  {
    const atlas::SharedMatrix& bias = this->layer->routing.bias;
    return bias.IsRecorded() && this->expert >= 0 ? bias.Row(0)[this->expert] : 0;
  }
};

/// The router's score of the expert number k that was chosen for a token; 0 if it has none.
float ScoreOf(const atlas::RecordedRouting& routing, std::int64_t row, std::int64_t k)
{
  return routing.scores.IsRecorded() ? routing.scores.Row(row)[k] : 0;
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
    texts.push_back(TokenText(recording, first + i));
  }
  return texts;
}

std::vector<std::string> NamesOf(const std::vector<const RecordedLayer*>& layers)
{
  std::vector<std::string> names;
  std::transform(layers.begin(), layers.end(), std::back_inserter(names),
    [](const RecordedLayer* layer) { return std::to_string(layer->index); });
  return names;
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
        *layer->routing.weights.Row(row), row, {}, ScoreOf(layer->routing, row, 0) });
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
      grid.cells[expert * length + i].score = ScoreOf(routing, row, k);
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
  ListArrays(cells, data)
    .Int(Names::Layer, [](const RoutingCell& cell) { return cell.layer->index; })
    .Int(Names::Expert, &RoutingCell::expert);
  if (!cells.empty() && cells.front().row >= 0)
  {
    ListArrays(cells, data)
      .Int(Names::Sequence, [&](const RoutingCell&) { return sequence; })
      .Int(Names::Position,
        [&](const RoutingCell& cell) { return recording.tokens.position[cell.row]; })
      .Id(Names::TokenIndex, &RoutingCell::row)
      .Float(Names::ExpertWeight, &RoutingCell::weight);
    if (atlas::HasExpertBias(recording))
    {
      ListArrays(cells, data).Float(Names::ExpertScore, &RoutingCell::score);
    }
  }
  if (atlas::HasExpertBias(recording))
  {
    ListArrays(cells, data).Float(Names::ExpertBias, &RoutingCell::Bias);
  }
}

void FillImage(const atlas::Recording& recording, const RoutingGrid& grid, std::int64_t sequence,
  bool isLoad, vtkInformation* info)
{
  std::vector<RoutingCell> cells;
  for (const std::size_t cell : BeginImage(info, grid.columns.size(), grid.rows.size()))
  {
    cells.push_back(grid.cells[cell]);
  }
  auto* image = vtkImageData::GetData(info);
  vtkPointData* data = image->GetPointData();
  AddPlaces(recording, cells, sequence, data);
  if (isLoad)
  {
    ListArrays(cells, data)
      .Int(Names::Count, [](const RoutingCell& cell) { return cell.load.count; })
      .Float(Names::Share, [](const RoutingCell& cell) { return cell.load.share; })
      .Float(Names::MeanWeight, [](const RoutingCell& cell) { return cell.load.weight; });
    if (atlas::HasExpertBias(recording))
    {
      ListArrays(cells, data)
        .Float(Names::MeanScore, [](const RoutingCell& cell) { return cell.load.score; });
    }
  }
  data->SetActiveScalars(isLoad ? Names::Share : Names::ExpertWeight);
  vtkFieldData* fields = image->GetFieldData();
  ListArrays(grid.columns, fields).Text(Names::KeyToken);
  ListArrays(grid.rows, fields).Text(Names::QueryToken);
  AddField(fields, Names::KeyTitle, grid.columnTitle);
  AddField(fields, Names::QueryTitle, grid.rowTitle);
  SetFormat(image, Formats::ExpertRouting);
}

/// Adds the columns that both tables have.
template<class Use>
void AddUses(const atlas::Recording& recording, const std::vector<Use>& uses, vtkTable* table)
{
  ListArrays(uses, table->GetRowData())
    .Int(Names::Count, &Use::count)
    .Double(Names::Share, &Use::share)
    .Double(Names::MeanWeight, &Use::weight);
  if (atlas::HasExpertBias(recording))
  {
    ListArrays(uses, table->GetRowData()).Double(Names::MeanScore, &Use::score);
  }
}

void FillLoads(
  const atlas::Recording& recording, const std::vector<ExpertLoad>& loads, vtkTable* table)
{
  ListArrays(loads, table->GetRowData())
    .Int(Names::Layer, &ExpertLoad::layer)
    .Int(Names::Expert, &ExpertLoad::expert);
  AddUses(recording, loads, table);
  if (atlas::HasExpertBias(recording))
  {
    ListArrays(loads, table->GetRowData()).Double(Names::ExpertBias, &ExpertLoad::bias);
  }
  SetFormat(table, Formats::ExpertRoutingLoads);
}

void FillTokens(
  const atlas::Recording& recording, const std::vector<ExpertToken>& tokens, vtkTable* table)
{
  ListArrays(tokens, table->GetRowData())
    .Int(Names::Layer, &ExpertToken::layer)
    .Int(Names::Expert, &ExpertToken::expert)
    .Int(Names::Rank, &ExpertToken::rank)
    .Text(Names::Token, [&](const ExpertToken& token) { return TokenText(recording, token.row); });
  AddUses(recording, tokens, table);
  SetFormat(table, Formats::ExpertRoutingTokens);
}

/// The number of the expert in each cell.
void FillLabels(const atlas::Recording& recording, const RoutingGrid& grid, std::int64_t sequence,
  vtkPolyData* output)
{
  Shapes vertices;
  const std::size_t columns = grid.columns.size();
  for (std::size_t cell = 0; cell < grid.cells.size(); ++cell)
  {
    const std::size_t row = cell / columns;
    vertices.AddVertex(static_cast<double>(cell % columns) - 0.4, -static_cast<double>(row));
  }
  vertices.MoveToVerts(output);
  vtkPointData* data = output->GetPointData();
  AddPlaces(recording, grid.cells, sequence, data);
  ListArrays(grid.cells, data)
    .Text(Names::Token, [](const RoutingCell& cell) { return std::to_string(cell.expert); })
    .Byte(Names::Side, [](const RoutingCell&) { return 1; }); // to the right of its point
  SetFormat(output, Formats::ExpertRoutingLabels);
}

}

vtkStandardNewMacro(vtkExpertRouting);

vtkExpertRouting::vtkExpertRouting()
  : vtkTaskAlgorithm({ "vtkMultiBlockDataSet" },
      { "vtkImageData", "vtkTable", "vtkTable", "vtkPolyData" }, WHOLE_INPUT)
{
}

int vtkExpertRouting::RequestInformation(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  vtkMultiBlockDataSet* recording = OutlineOfRecording(this);
  const RecordingRanges ranges(recording);
  std::copy_n(ranges.sequence, 2, this->SequenceRange);
  std::fill_n(this->LayerRange, 2, 0);
  int rows = 0;
  int columns = 0;
  if (!IsEmpty(recording))
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
    columns = this->Show == LOAD ? most : SequenceTokens(recording, std::max(this->Sequence, 0));
    rows = this->Show == EXPERTS ? ofLayer : static_cast<int>(layers.size());
    // Also if something is wrong, which RequestData tells.
    columns = std::max(columns, 1);
    rows = std::max(rows, 1);
  }
  AnnounceImage(columns, rows, outputVector->GetInformationObject(RoutingImagePort));
  return this->Superclass::RequestInformation(request, inputVector, outputVector);
}

void vtkExpertRouting::Execute(Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
  if (IsEmpty(input))
  {
    return;
  }
  const atlas::Recording recording = ToRecording(input);
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
    FillLoads(recording, loads, task.Output<vtkTable>(RoutingLoadPort));
    FillTokens(recording, tokens, task.Output<vtkTable>(RoutingTokenPort));
    if (this->Show == LAYERS)
    {
      FillLabels(recording, grid, this->Sequence, task.Output<vtkPolyData>(RoutingLabelPort));
    }
  }
}
