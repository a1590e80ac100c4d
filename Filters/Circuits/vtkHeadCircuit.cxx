#include "vtkHeadCircuit.h"

#include "ArrayNames.h"
#include "CircuitTokens.h"
#include "CircuitWeights.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "HeadCircuit.h"
#include "Index.h"
#include "ModelSizes.h"
#include "RecordingRanges.h"
#include "ScreenText.h"
#include "Task.h"
#include "TransformerConversion.h"

#include <vtkFloatArray.h>
#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkStreamingDemandDrivenPipeline.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>

namespace Names = AttentionAtlas::ArrayNames;
namespace Formats = AttentionAtlas::Formats;
using SDDP = vtkStreamingDemandDrivenPipeline;
using AttentionAtlas::Task;

namespace
{

using AttentionAtlas::AddColumn;

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
  : model(AttentionAtlas::ToTransformer(input))
{
  this->options.circuit = static_cast<atlas::CircuitKind>(filter.Circuit);
  this->options.layer = filter.Layer;
  this->options.head = filter.Head;
  this->options.processes = filter.Processing;
  this->options.largest.top = filter.Top;
  if (!this->IsOfPositions())
  {
    this->options.tokens = AttentionAtlas::ChosenTokens(*this->model, filter.Tokens);
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
  const AttentionAtlas::TokenNames names(this->model);
  const auto add = [&](const char* name, const auto& number)
  { AddColumn<vtkIntArray>(table, name, rows, number); };
  add(Names::Layer, [this](const Row&) { return static_cast<int>(this->options.layer); });
  add(Names::Head, [this](const Row&) { return static_cast<int>(this->options.head); });
  if (!this->IsOfPositions())
  {
    AddColumn<vtkStringArray>(
      table, Names::Token, rows, [&](const Row& row) { return names.Of(row.token); });
  }
  add(this->IsOfPositions() ? Names::Position : Names::TokenId,
    [](const Row& row) { return row.token; });
  AddColumn<vtkStringArray>(
    table, Names::Direction, rows, [](const Row& row) { return std::string(row.direction); });
  add(Names::Rank, [](const Row& row) { return row.rank; });
  if (!this->IsOfPositions())
  {
    AddColumn<vtkStringArray>(
      table, Names::OtherToken, rows, [&](const Row& row) { return names.Of(row.other.id); });
  }
  add(this->IsOfPositions() ? Names::OtherPosition : Names::OtherTokenId,
    [](const Row& row) { return row.other.id; });
  AddColumn<vtkFloatArray>(
    table, Names::Value, rows, [](const Row& row) { return row.other.logit; });
  AttentionAtlas::Describe(table, Formats::HeadCircuit, this->options.processes, this->LeftOut());
}

/// The labels of rows and columns.
void vtkHeadCircuit::Result::Label(vtkFieldData* fields) const
{
  const AttentionAtlas::TokenNames names(this->model);
  const auto label = [&](std::int32_t number)
  { return this->IsOfPositions() ? std::to_string(number) : atlas::ScreenLabel(names.Of(number)); };
  for (const char* name : { Names::KeyToken, Names::QueryToken })
  {
    fields->AddArray(AttentionAtlas::MakeArray<vtkStringArray>(name, this->shown, label));
  }
  const bool isOutput = this->options.circuit == atlas::CircuitKind::OutputValue;
  AttentionAtlas::AddField(fields, Names::KeyTitle, std::string(isOutput ? "Output" : "Source"));
  AttentionAtlas::AddField(
    fields, Names::QueryTitle, std::string(isOutput ? "Source" : "Destination"));
  AttentionAtlas::AddField(fields, Names::Layer, static_cast<int>(this->options.layer));
  AttentionAtlas::AddField(fields, Names::Head, static_cast<int>(this->options.head));
}

/// Makes the part of the image that is asked for.
void vtkHeadCircuit::Result::MakeImage(vtkInformation* info) const
{
  std::array<int, 6> extent = { 0, -1, 0, -1, 0, -1 };
  info->Get(SDDP::UPDATE_EXTENT(), extent.data());
  const atlas::DoubleMatrix& entries = this->tables.entries;
  const auto last = static_cast<int>(entries.rows()) - 1;
  vtkNew<vtkFloatArray> values;
  values->SetName(
    std::string(atlas::CircuitNames[static_cast<std::size_t>(this->options.circuit)]).c_str());
  for (int y = extent[2]; y <= extent[3]; ++y)
  {
    for (int x = extent[0]; x <= extent[1]; ++x)
    {
      values->InsertNextValue(static_cast<float>(entries(last - y, x)));
    }
  }
  auto* image = vtkImageData::GetData(info);
  image->SetExtent(extent.data());
  image->SetOrigin(0, -last, 0);
  image->SetSpacing(1, 1, 1);
  image->GetPointData()->SetScalars(values);
  AttentionAtlas::Describe(
    image, Formats::HeadCircuitEntries, this->options.processes, this->LeftOut());
  this->Label(image->GetFieldData());
}

vtkHeadCircuit::vtkHeadCircuit()
  : vtkTaskAlgorithm({ "vtkMultiBlockDataSet" }, { "vtkTable", "vtkImageData" }, WHOLE_INPUT)
{
}

void vtkHeadCircuit::AddToken(const char* token)
{
  this->Tokens.emplace_back(token == nullptr ? "" : token);
  this->Modified();
}

void vtkHeadCircuit::ClearTokens()
{
  this->Tokens.clear();
  this->Modified();
}

int vtkHeadCircuit::RequestInformation(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  auto* input = vtkMultiBlockDataSet::SafeDownCast(AttentionAtlas::OutlineOf(this));
  const AttentionAtlas::ModelSizes sizes(input);
  this->LayerRange[1] = std::max(0, sizes.layers - 1);
  this->HeadRange[1] = std::max(0, sizes.heads - 1);
  int size = 0;
  try
  {
    size = AttentionAtlas::IsEmpty(input) ? 0 : static_cast<int>(Result(*this, input).shown.size());
  }
  catch (const std::exception&)
  {
    size = 1; // so that something is asked for and the error told
  }
  AttentionAtlas::AnnounceImage(size, size, outputVector->GetInformationObject(1));
  return this->Superclass::RequestInformation(request, inputVector, outputVector);
}

void vtkHeadCircuit::Execute(Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
  if (AttentionAtlas::IsEmpty(input))
  {
    return;
  }
  Result result(*this, input);
  const auto size = static_cast<double>(result.shown.size());
  const auto width = static_cast<double>(result.model->GetModel().GetConfig().modelDimension);
  AttentionAtlas::RequireMemory((2 * size * size + 6 * size * width) * sizeof(double),
    "a circuit of " + std::to_string(result.shown.size()) +
      (this->Circuit == POSITION_QUERY_KEY ? " positions" : " tokens"),
    this->Circuit == POSITION_QUERY_KEY ? "use a machine with more memory."
                                        : "choose fewer tokens.");
  result.options.largest = AttentionAtlas::LargestOptions(task, this->Top);
  result.tables = atlas::EvaluateHeadCircuit(result.model->GetModel(), result.options);
  result.MakeImage(task.OutputInformation(1));
  if (task.IsFirst())
  {
    result.MakeTable(task.Output<vtkTable>());
  }
}
