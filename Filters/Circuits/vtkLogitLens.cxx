#include "vtkLogitLens.h"

#include "ArrayNames.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "Error.h"
#include "Index.h"
#include "LogitLens.h"
#include "ModelSizes.h"
#include "RecordedModel.h"
#include "RecordingConversion.h"
#include "Task.h"
#include "TokenNames.h"
#include "TokenText.h"
#include "TransformerConversion.h"

#include <vtkCellArray.h>
#include <vtkDataSetAttributes.h>
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
#include <vtkStreamingDemandDrivenPipeline.h>
#include <vtkUnsignedCharArray.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <string>
#include <tuple>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using AttentionAtlas::Task;

namespace
{

using atlas::LensCells;
using atlas::ToIndex;
using AttentionAtlas::AddColumn;
using AttentionAtlas::MakeArray;

constexpr int ImagePort = 0;
constexpr int TablePort = 1;
constexpr int LabelPort = 2;

/// Distance of columns, for words.
constexpr double Step = 2;

/// A token of a cell.
struct Entry
{
  std::size_t cell; ///< layer, in ascending order, times length plus position
  std::size_t rank; ///< from 0
};

/// What was read, by cells.
struct Lens
{
  const LensCells& cells;
  const AttentionAtlas::TokenNames& names;
  std::int64_t sequence;
  std::int64_t first; ///< row of the first token in the recording

  const atlas::TokenLogit& Token(const Entry& entry) const
  {
    return this->cells.tokens[entry.cell * ToIndex(this->cells.top) + entry.rank];
  }
  int Layer(const Entry& entry) const
  {
    return this->cells.layers[entry.cell / ToIndex(this->cells.length)];
  }
  int Position(const Entry& entry) const
  {
    return static_cast<int>(entry.cell % ToIndex(this->cells.length));
  }

  /// Adds the arrays that points of the image and rows of the table have in common.
  void AddArrays(const std::vector<Entry>& entries, vtkFieldData* data) const
  {
    const auto add = [&](const char* name, const auto& number)
    { data->AddArray(MakeArray<vtkIntArray>(name, entries, number)); };
    add(Names::Layer, [this](const Entry& entry) { return this->Layer(entry); });
    add(Names::Sequence, [this](const Entry&) { return static_cast<int>(this->sequence); });
    add(Names::Position, [this](const Entry& entry) { return this->Position(entry); });
    data->AddArray(MakeArray<vtkIdTypeArray>(Names::TokenIndex, entries,
      [this](const Entry& entry) { return vtkIdType{ this->first } + this->Position(entry); }));
    data->AddArray(MakeArray<vtkStringArray>(Names::Token, entries,
      [this](const Entry& entry) { return this->names.Of(this->Token(entry).id); }));
    add(Names::TokenId, [this](const Entry& entry) { return this->Token(entry).id; });
    data->AddArray(MakeArray<vtkFloatArray>(
      Names::Logit, entries, [this](const Entry& entry) { return this->Token(entry).logit; }));
    data->AddArray(MakeArray<vtkFloatArray>(Names::Probability, entries, [this](const Entry& entry)
      { return this->cells.probabilities[entry.cell * ToIndex(this->cells.top) + entry.rank]; }));
  }

  /// A cell of the image, numbered row by row from the top left.
  Entry AtImage(std::size_t cell) const
  {
    const std::size_t length = this->cells.length;
    const std::size_t row = cell / length;
    return { (this->cells.layers.size() - 1 - row) * length + cell % length, 0 };
  }
};

void FillImage(const atlas::Recording& recording, const Lens& lens, vtkInformation* info)
{
  std::vector<Entry> entries;
  for (const std::size_t cell :
    AttentionAtlas::BeginImage(info, lens.cells.length, lens.cells.layers.size(), Step))
  {
    entries.push_back(lens.AtImage(cell));
  }
  auto* image = vtkImageData::GetData(info);
  vtkPointData* data = image->GetPointData();
  lens.AddArrays(entries, data);
  data->AddArray(MakeArray<vtkIntArray>(
    Names::NextRank, entries, [&](const Entry& entry) { return lens.cells.nextRank[entry.cell]; }));
  data->AddArray(MakeArray<vtkFloatArray>(Names::NextProbability, entries,
    [&](const Entry& entry) { return lens.cells.nextProbability[entry.cell]; }));
  data->SetActiveScalars(Names::Probability);
  vtkFieldData* fields = image->GetFieldData();
  vtkNew<vtkStringArray> tokens;
  tokens->SetName(Names::KeyToken);
  for (std::int64_t i = 0; i < lens.cells.length; ++i)
  {
    tokens->InsertNextValue(AttentionAtlas::TokenText(recording, lens.first + i));
  }
  fields->AddArray(tokens);
  std::vector<std::int32_t> layers = lens.cells.layers;
  std::reverse(layers.begin(), layers.end());
  fields->AddArray(MakeArray<vtkStringArray>(
    Names::QueryToken, layers, [](std::int32_t layer) { return std::to_string(layer); }));
  AttentionAtlas::AddSequence(static_cast<int>(lens.sequence),
    AttentionAtlas::SequenceText(recording, lens.sequence), fields);
  AttentionAtlas::AddField(fields, Names::KeyTitle, std::string("Token"));
  AttentionAtlas::AddField(fields, Names::QueryTitle, std::string("Layer"));
  AttentionAtlas::Describe(image, AttentionAtlas::Formats::LogitLens, false, {});
}

void FillTable(const Lens& lens, vtkTable* table)
{
  const std::size_t top = lens.cells.top;
  std::vector<Entry> entries;
  entries.reserve(lens.cells.tokens.size());
  for (std::size_t i = 0; i < lens.cells.tokens.size(); ++i)
  {
    entries.push_back({ i / top, i % top });
  }
  vtkDataSetAttributes* rows = table->GetRowData();
  lens.AddArrays(entries, rows);
  AddColumn<vtkIntArray>(table, Names::Rank, entries,
    [](const Entry& entry) { return static_cast<int>(entry.rank) + 1; });
  rows->SetPedigreeIds(rows->GetAbstractArray(Names::TokenIndex));
  AttentionAtlas::Describe(table, AttentionAtlas::Formats::LogitLensTokens, false, {});
}

/// A word in each cell.
void FillLabels(const Lens& lens, vtkPolyData* output)
{
  std::vector<Entry> entries;
  vtkNew<vtkPoints> points;
  vtkNew<vtkCellArray> vertices;
  const std::size_t length = lens.cells.length;
  for (std::size_t cell = 0; cell < lens.cells.layers.size() * length; ++cell)
  {
    entries.push_back(lens.AtImage(cell));
    const std::size_t row = cell / length;
    const vtkIdType point = points->InsertNextPoint(
      Step * (static_cast<double>(cell % length) - 0.48), -static_cast<double>(row), 0);
    vertices->InsertNextCell(1, &point);
  }
  output->SetPoints(points);
  output->SetVerts(vertices);
  vtkPointData* data = output->GetPointData();
  lens.AddArrays(entries, data);
  data->AddArray(MakeArray<vtkUnsignedCharArray>(Names::Side, entries,
    [](const Entry&) { return static_cast<unsigned char>(1); })); // to the right of its point
  AttentionAtlas::SetFormat(output, AttentionAtlas::Formats::LogitLensLabels);
}

/// The number of layers before which the residual stream was recorded, and after the last one.
int RecordedStreams(const atlas::Recording& recording)
{
  return static_cast<int>(std::count_if(recording.residual.begin(), recording.residual.end(),
    [](const atlas::SharedMatrix& residual) { return residual.IsRecorded(); }));
}

/// About what a cell takes in all outputs.
double CellBytes(int top)
{
  constexpr double EntryBytes = sizeof(Entry) + 5. * sizeof(int) + 2. * sizeof(float) +
                                sizeof(vtkIdType) + 2. * sizeof(std::string);
  return (top + 2.) * (EntryBytes + sizeof(atlas::TokenLogit)) + 4. * sizeof(float);
}

}

vtkStandardNewMacro(vtkLogitLens);

struct vtkLogitLens::Memory
{
  std::shared_ptr<const atlas::OpenTransformer> model; ///< no other one has its address
  AttentionAtlas::LastResult<LensCells> cells;
};

vtkLogitLens::vtkLogitLens()
  : vtkTaskAlgorithm({ "vtkMultiBlockDataSet", "vtkMultiBlockDataSet?" },
      { "vtkImageData", "vtkTable", "vtkPolyData" }, WHOLE_INPUT)
  , Kept(std::make_unique<Memory>())
{
}

vtkLogitLens::~vtkLogitLens() = default;

int vtkLogitLens::RequestInformation(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  vtkMultiBlockDataSet* recording = AttentionAtlas::OutlineOfRecording(this);
  this->Ranges.Find(recording);
  int rows = 0;
  int columns = 0;
  if (!AttentionAtlas::IsEmpty(recording))
  {
    rows = 1; // also if something is wrong, which RequestData tells
    columns = AttentionAtlas::SequenceTokens(recording, std::max(this->Sequence, 0));
    try
    {
      rows = std::max(rows, RecordedStreams(AttentionAtlas::ToRecording(recording)));
    }
    catch (const std::exception&)
    {
      columns = 1;
    }
  }
  AttentionAtlas::AnnounceImage(
    columns, rows, outputVector->GetInformationObject(ImagePort), VTK_FLOAT, Step);
  return this->Superclass::RequestInformation(request, inputVector, outputVector);
}

/// Reads the recording through the unembedding.
LensCells vtkLogitLens::Read(
  const atlas::Recording& recording, const atlas::Transformer& model, const Task& task) const
{
  atlas::RequireSameModel(recording, model, "Logit Lens");
  const std::int64_t length = atlas::AttentionLength(recording, std::max(this->Sequence, 0));
  const auto top = std::min<std::int64_t>(this->Top, model.GetWeights().unembedding.outputs);
  AttentionAtlas::RequireMemory(
    static_cast<double>(length) * RecordedStreams(recording) * CellBytes(static_cast<int>(top)),
    "a lens of " + std::to_string(length) + " tokens",
    "record shorter sequences, or choose a smaller Top.");
  atlas::LensOptions options;
  options.sequence = this->Sequence;
  options.top = this->Top;
  options.threads = AttentionAtlas::ThreadLimit();
  options.progress = task.Progress();
  return atlas::ReadThroughLens(recording, model, options);
}

void vtkLogitLens::Execute(Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
  if (AttentionAtlas::IsEmpty(input))
  {
    return;
  }
  const auto model = AttentionAtlas::ToTransformer(task.Input<vtkMultiBlockDataSet>(1));
  this->Kept->model = model;
  const atlas::Recording recording = AttentionAtlas::ToRecording(input);
  const LensCells& cells = this->Kept->cells.Get(task,
    AttentionAtlas::MakeKey(AttentionAtlas::TimeOf(input),
      reinterpret_cast<std::uintptr_t>(model.get()), this->Sequence, this->Top),
    [&] { return this->Read(recording, model->GetModel(), task); });
  const AttentionAtlas::TokenNames names(model);
  const Lens lens = { cells, names, this->Sequence, recording.sequenceOffsets[this->Sequence] };
  FillImage(recording, lens, task.OutputInformation(ImagePort));
  if (task.IsFirst())
  {
    FillTable(lens, task.Output<vtkTable>(TablePort));
    FillLabels(lens, task.Output<vtkPolyData>(LabelPort));
  }
}
