#include "vtkLogitLens.h"

#include "Analysis/RecordedModel.h"
#include "ArrayNames.h"
#include "Base/Index.h"
#include "Circuits/LogitLens.h"
#include "DataFormat.h"
#include "ListArrays.h"
#include "ModelSizes.h"
#include "RecordingConversion.h"
#include "Shapes.h"
#include "Task.h"
#include "TokenNames.h"
#include "TokenText.h"
#include "TransformerConversion.h"

#include <vtkDataSetAttributes.h>
#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

using atlas::LensCells;
using atlas::ToIndex;

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
  const TokenNames& names;
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
    ListArrays(entries, data)
      .Int(Names::Layer, [this](const Entry& entry) { return this->Layer(entry); })
      .Int(Names::Sequence, [this](const Entry&) { return static_cast<int>(this->sequence); })
      .Int(Names::Position, [this](const Entry& entry) { return this->Position(entry); })
      .Id(Names::TokenIndex,
        [this](const Entry& entry) { return vtkIdType{ this->first } + this->Position(entry); })
      .Text(
        Names::Token, [this](const Entry& entry) { return this->names.Of(this->Token(entry).id); })
      .Int(Names::TokenId, [this](const Entry& entry) { return this->Token(entry).id; })
      .Float(Names::Logit, [this](const Entry& entry) { return this->Token(entry).logit; })
      .Float(Names::Probability, [this](const Entry& entry)
        { return this->cells.probabilities[entry.cell * ToIndex(this->cells.top) + entry.rank]; });
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
  for (const std::size_t cell : BeginImage(info, lens.cells.length, lens.cells.layers.size(), Step))
  {
    entries.push_back(lens.AtImage(cell));
  }
  auto* image = vtkImageData::GetData(info);
  vtkPointData* data = image->GetPointData();
  lens.AddArrays(entries, data);
  ListArrays(entries, data)
    .Int(Names::NextRank, [&](const Entry& entry) { return lens.cells.nextRank[entry.cell]; })
    .Float(Names::NextProbability,
      [&](const Entry& entry) { return lens.cells.nextProbability[entry.cell]; });
  data->SetActiveScalars(Names::Probability);
  vtkFieldData* fields = image->GetFieldData();
  std::vector<std::string> tokens;
  tokens.reserve(lens.cells.length);
  for (std::int64_t i = 0; i < lens.cells.length; ++i)
  {
    tokens.push_back(TokenText(recording, lens.first + i));
  }
  ListArrays(tokens, fields).Text(Names::KeyToken);
  std::vector<std::int32_t> layers = lens.cells.layers;
  std::reverse(layers.begin(), layers.end());
  ListArrays(layers, fields)
    .Text(Names::QueryToken, [](int layer) { return std::to_string(layer); });
  AddSequence(static_cast<int>(lens.sequence), SequenceText(recording, lens.sequence), fields);
  AddField(fields, Names::KeyTitle, "Token");
  AddField(fields, Names::QueryTitle, "Layer");
  Describe(image, Formats::LogitLens, false, {});
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
  Describe(table, Formats::LogitLensTokens, false, {});
}

/// A word in each cell.
void FillLabels(const Lens& lens, vtkPolyData* output)
{
  std::vector<Entry> entries;
  Shapes vertices;
  const std::size_t length = lens.cells.length;
  for (std::size_t cell = 0; cell < lens.cells.layers.size() * length; ++cell)
  {
    entries.push_back(lens.AtImage(cell));
    const std::size_t row = cell / length;
    vertices.AddVertex(
      Step * (static_cast<double>(cell % length) - 0.48), -static_cast<double>(row));
  }
  vertices.MoveToVerts(output);
  lens.AddArrays(entries, output->GetPointData());
  ListArrays(entries, output->GetPointData())
    .Byte(Names::Side, [](const Entry&) { return 1; }); // to the right of its point
  SetFormat(output, Formats::LogitLensLabels);
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
  LastResult<LensCells> cells;
};

vtkLogitLens::vtkLogitLens()
  : vtkTaskAlgorithm({ "vtkMultiBlockDataSet", "vtkMultiBlockDataSet?" },
      { "vtkImageData", "vtkTable", "vtkPolyData" }, WHOLE_INPUT)
  , Kept(std::make_unique<Memory>())
{
}

int vtkLogitLens::RequestInformation(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  vtkMultiBlockDataSet* recording = OutlineOfRecording(this);
  this->Ranges.Find(recording);
  int rows = 0;
  int columns = 0;
  if (!IsEmpty(recording))
  {
    rows = 1; // also if something is wrong, which RequestData tells
    columns = SequenceTokens(recording, std::max(this->Sequence, 0));
    try
    {
      rows = std::max(rows, RecordedStreams(ToRecording(recording)));
    }
    catch (const std::exception&)
    {
      columns = 1;
    }
  }
  AnnounceImage(columns, rows, outputVector->GetInformationObject(ImagePort), VTK_FLOAT, Step);
  return this->Superclass::RequestInformation(request, inputVector, outputVector);
}

/// Reads the recording through the unembedding.
LensCells vtkLogitLens::Read(
  const atlas::Recording& recording, const atlas::Transformer& model, const Task& task) const
{
  atlas::RequireSameModel(recording, model, "Logit Lens");
  const std::int64_t length = atlas::AttentionLength(recording, std::max(this->Sequence, 0));
  const auto top = std::min<std::int64_t>(this->Top, model.GetWeights().unembedding.outputs);
  RequireMemory(
    static_cast<double>(length) * RecordedStreams(recording) * CellBytes(static_cast<int>(top)),
    "a lens of " + std::to_string(length) + " tokens",
    "record shorter sequences, or choose a smaller Top.");
  atlas::LensOptions options;
  options.sequence = this->Sequence;
  options.top = this->Top;
  options.threads = ThreadLimit();
  options.progress = task.Progress();
  return atlas::ReadThroughLens(recording, model, options);
}

void vtkLogitLens::Execute(Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
  if (IsEmpty(input))
  {
    return;
  }
  const auto model = ToTransformer(task.Input<vtkMultiBlockDataSet>(1));
  this->Kept->model = model;
  const atlas::Recording recording = ToRecording(input);
  const LensCells& cells = this->Kept->cells.Get(task,
    MakeKey(
      TimeOf(input), reinterpret_cast<std::uintptr_t>(model.get()), this->Sequence, this->Top),
    [&] { return this->Read(recording, model->GetModel(), task); });
  const TokenNames names(model);
  const Lens lens = { cells, names, this->Sequence, recording.sequenceOffsets[this->Sequence] };
  FillImage(recording, lens, task.OutputInformation(ImagePort));
  if (task.IsFirst())
  {
    FillTable(lens, task.Output<vtkTable>(TablePort));
    FillLabels(lens, task.Output<vtkPolyData>(LabelPort));
  }
}
