#include "vtkHeadCircuit.h"

#include "ArrayNames.h"
#include "Circuits/CircuitWeights.h"
#include "Circuits/HeadCircuit.h"
#include "DataFormat.h"
#include "ListArrays.h"
#include "ModelSizes.h"
#include "RecordingRanges.h"
#include "Task.h"
#include "Text/ScreenText.h"
#include "TokenNames.h"
#include "TransformerConversion.h"

#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <numeric>
#include <string_view>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

/// A row of the table.
struct Row
{
  std::int32_t token;
  std::string_view direction;
  int rank;
  atlas::TokenLogit other;
};

std::vector<Row> RowsOf(
  const std::vector<atlas::LargestEntries>& largest, const std::vector<std::int32_t>& tokens)
{
  std::vector<Row> rows;
  for (std::size_t t = 0; t < tokens.size(); ++t)
  {
    for (const atlas::LargestEntries& list : largest)
    {
      const std::size_t top = list.top;
      for (std::size_t i = 0; i < top; ++i)
      {
        rows.push_back(
          { tokens[t], list.direction, static_cast<int>(i) + 1, list.entries[t * top + i] });
      }
    }
  }
  return rows;
}

}

vtkStandardNewMacro(vtkHeadCircuit);

/// What is shown, and of which tokens or positions.
struct vtkHeadCircuit::Result
{
  std::shared_ptr<const atlas::OpenTransformer> model;
  atlas::HeadCircuitOptions options;
  std::vector<std::int32_t> shown; ///< tokens, or positions
  atlas::HeadCircuitTables tables;

  Result(const vtkHeadCircuit& filter, vtkMultiBlockDataSet* input);

  bool IsOfPositions() const
  {
    return this->options.circuit == atlas::CircuitKind::PositionQueryKey;
  }
  std::vector<std::string> LeftOut() const;
  void MakeTable(vtkTable* table) const;
  void MakeImage(vtkInformation* info) const;
  void Label(vtkFieldData* fields) const;
};

vtkHeadCircuit::Result::Result(const vtkHeadCircuit& filter, vtkMultiBlockDataSet* input)
  : model(ToTransformer(input))
{
  this->options.circuit = static_cast<atlas::CircuitKind>(filter.Circuit);
  this->options.layer = filter.Layer;
  this->options.head = filter.Head;
  this->options.processes = filter.Processing;
  this->options.largest.top = filter.Top;
  if (!this->IsOfPositions())
  {
    this->options.tokens = ChosenTokens(*this->model, filter.Tokens);
  }
  if (filter.Tokens.empty() && this->options.circuit == atlas::CircuitKind::OutputValue)
  {
    std::vector<std::int32_t>& sample = this->options.tokens;
    const std::int64_t logits = this->model->GetModel().GetConfig().outputVocabulary;
    sample.erase(std::remove_if(sample.begin(), sample.end(),
                   [logits](std::int32_t id) { return id >= logits; }),
      sample.end());
  }
  this->shown = this->options.tokens;
  const std::int64_t size = atlas::CircuitSize(this->model->GetModel(), this->options);
  if (this->IsOfPositions())
  {
    this->shown.resize(size);
    std::iota(this->shown.begin(), this->shown.end(), 0);
  }
}

std::vector<std::string> vtkHeadCircuit::Result::LeftOut() const
{
  const atlas::TransformerConfig& config = this->model->GetModel().GetConfig();
  return this->options.circuit == atlas::CircuitKind::OutputValue
           ? atlas::LeftOutOfOutputValue(config, this->options.processes)
           : atlas::LeftOutOfQueryKey(config, this->options.processes, this->IsOfPositions());
}

void vtkHeadCircuit::Result::MakeTable(vtkTable* table) const
{
  const std::vector<Row> rows = RowsOf(this->tables.largest, this->shown);
  const TokenNames names(this->model);
  const ListArrays arrays(rows, table->GetRowData());
  arrays.Int(Names::Layer, [this](const Row&) { return this->options.layer; });
  arrays.Int(Names::Head, [this](const Row&) { return this->options.head; });
  if (!this->IsOfPositions())
  {
    arrays.Text(Names::Token, [&](const Row& row) { return names.Of(row.token); });
  }
  arrays.Int(this->IsOfPositions() ? Names::Position : Names::TokenId, &Row::token)
    .Text(Names::Direction, &Row::direction)
    .Int(Names::Rank, &Row::rank);
  if (!this->IsOfPositions())
  {
    arrays.Text(Names::OtherToken, [&](const Row& row) { return names.Of(row.other.id); });
  }
  arrays
    .Int(this->IsOfPositions() ? Names::OtherPosition : Names::OtherTokenId,
      [](const Row& row) { return row.other.id; })
    .Float(Names::Value, [](const Row& row) { return row.other.logit; });
  Describe(table, Formats::HeadCircuit, this->options.processes, this->LeftOut());
}

/// The labels of rows and columns.
void vtkHeadCircuit::Result::Label(vtkFieldData* fields) const
{
  const TokenNames names(this->model);
  const auto label = [&](std::int32_t number)
  { return this->IsOfPositions() ? std::to_string(number) : atlas::ScreenLabel(names.Of(number)); };
  ListArrays(this->shown, fields).Text(Names::KeyToken, label).Text(Names::QueryToken, label);
  const bool isOutput = this->options.circuit == atlas::CircuitKind::OutputValue;
  AddField(fields, Names::KeyTitle, isOutput ? "Output" : "Source");
  AddField(fields, Names::QueryTitle, isOutput ? "Source" : "Destination");
  AddField(fields, Names::Layer, static_cast<int>(this->options.layer));
  AddField(fields, Names::Head, static_cast<int>(this->options.head));
}

/// Makes the part of the image that is asked for.
void vtkHeadCircuit::Result::MakeImage(vtkInformation* info) const
{
  const double* entries = this->tables.entries.data();
  const std::vector<std::size_t> shownCells = BeginImage(info);
  const std::string name(atlas::CircuitNames[static_cast<std::size_t>(this->options.circuit)]);
  auto* image = vtkImageData::GetData(info);
  ListArrays(shownCells, image->GetPointData())
    .Float(name, [&](std::size_t i) { return entries[i]; });
  image->GetPointData()->SetActiveScalars(name.c_str());
  Describe(image, Formats::HeadCircuitEntries, this->options.processes, this->LeftOut());
  this->Label(image->GetFieldData());
}

vtkHeadCircuit::vtkHeadCircuit()
  : vtkTaskAlgorithm({ "vtkMultiBlockDataSet" }, { "vtkTable", "vtkImageData" }, WHOLE_INPUT)
{
}

int vtkHeadCircuit::RequestInformation(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  auto* input = vtkMultiBlockDataSet::SafeDownCast(OutlineOf(this));
  const ModelSizes sizes(input);
  this->LayerRange[1] = std::max(0, sizes.layers - 1);
  this->HeadRange[1] = std::max(0, sizes.heads - 1);
  int size = 0;
  try
  {
    size = IsEmpty(input) ? 0 : static_cast<int>(Result(*this, input).shown.size());
  }
  catch (const std::exception&)
  {
    size = 1; // so that something is asked for and the error told
  }
  AnnounceImage(size, size, outputVector->GetInformationObject(1));
  return this->Superclass::RequestInformation(request, inputVector, outputVector);
}

void vtkHeadCircuit::Execute(Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
  if (IsEmpty(input))
  {
    return;
  }
  Result result(*this, input);
  const auto size = static_cast<double>(result.shown.size());
  const auto width = static_cast<double>(result.model->GetModel().GetConfig().modelDimension);
  RequireMemory((2 * size * size + 6 * size * width) * sizeof(double),
    "a circuit of " + std::to_string(result.shown.size()) +
      (this->Circuit == POSITION_QUERY_KEY ? " positions" : " tokens"),
    this->Circuit == POSITION_QUERY_KEY ? "use a machine with more memory."
                                        : "choose fewer tokens.");
  result.options.largest = LargestOptions(task, this->Top);
  result.tables = atlas::EvaluateHeadCircuit(result.model->GetModel(), result.options);
  result.MakeImage(task.OutputInformation(1));
  if (task.IsFirst())
  {
    result.MakeTable(task.Output<vtkTable>());
  }
}
