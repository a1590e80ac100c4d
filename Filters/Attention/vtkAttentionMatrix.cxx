#include "vtkAttentionMatrix.h"

#include "ArrayNames.h"
#include "Base/Error.h"
#include "Base/Index.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "MatrixPanels.h"
#include "PointArrays.h"
#include "Recording/PooledAttention.h"
#include "Recording/ZoomedAttention.h"
#include "RecordingConversion.h"
#include "RecordingRanges.h"
#include "Task.h"
#include "TokenText.h"

#include <vtkDataSetAttributes.h>
#include <vtkFloatArray.h>
#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

/// Images with more points on a side have no labels, which could not be read: as
/// vtkSquaresRepresentation::MaximumLabels.
constexpr int MaximumLabels = 256;

/// The texts of the tokens of a sequence; none if they are not known.
std::vector<std::string> TextsOf(const atlas::Recording& recording, std::int64_t sequence)
{
  if (sequence == atlas::AllSequences || recording.tokens.text.empty())
  {
    return {};
  }
  const auto first = recording.tokens.text.begin();
  return { first + recording.sequenceOffsets[atlas::ToIndex(sequence)],
    first + recording.sequenceOffsets[atlas::ToIndex(sequence) + 1] };
}

/// What vtkSquaresRepresentation leaves free for labels and the title of an axis beside an image of
/// `points` on its longer side, in points.
double LabelRoom(const std::vector<std::string>& texts, int points)
{
  std::size_t longest = 0; // in letters of UTF-8
  for (const std::string& text : texts)
  {
    const auto letters = std::count_if(text.begin(), text.end(),
      [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
    longest = std::max(longest, static_cast<std::size_t>(letters));
  }
  const double letters = std::max(1., points / (90. * 0.72));
  return letters * (0.3 + 0.4 * static_cast<double>(longest)) + 2 * std::max(0.72, points / 30.);
}

constexpr double BytesPerPoint = sizeof(float) + 4 * sizeof(int);

/// Cells of the bases of all heads, at most, unless panels have more: 512 MB.
constexpr double CellsOfBases = 1 << 26;

/// How large the base of each of some heads is.
std::int64_t BaseOf(std::int64_t heads, std::int64_t size)
{
  const double share =
    std::sqrt(CellsOfBases / static_cast<double>(std::max(heads, std::int64_t{ 1 })));
  return std::clamp(
    static_cast<std::int64_t>(share), std::min(size, atlas::BaseCells), atlas::BaseCells);
}

/// The rows of a table of heads: layer, head and the number of a column, one after another.
std::vector<double> ScoresOf(vtkTable* table, const char* column)
{
  std::vector<double> scores;
  if (table == nullptr || table->GetNumberOfColumns() == 0)
  {
    return scores;
  }
  if (table->GetColumnByName(column) == nullptr)
  {
    throw atlas::OptionError("SortBy: the table of heads has no column '", column, "'.");
  }
  const std::string advice = "give a table of heads, such as that of Head Scores.";
  const auto numbersOf = [&](const char* name)
  { return RequireNumbers(table->GetRowData(), name, advice); };
  const std::vector<std::int64_t> layers = Integers(numbersOf(Names::Layer));
  const std::vector<std::int64_t> heads = Integers(numbersOf(Names::Head));
  vtkDataArray* numbers = numbersOf(column);
  for (std::size_t i = 0; i < layers.size(); ++i)
  {
    scores.insert(scores.end(), { static_cast<double>(layers[i]), static_cast<double>(heads[i]),
                                  numbers->GetComponent(static_cast<vtkIdType>(i), 0) });
  }
  return scores;
}

/// The scores of heads from the rows of the tables of all ranks.
std::map<atlas::HeadPlace, double> ByHead(const std::vector<double>& rows)
{
  std::map<atlas::HeadPlace, double> scores;
  for (std::size_t i = 0; i < rows.size(); i += 3)
  {
    scores[{ static_cast<std::int32_t>(rows[i]), static_cast<std::int32_t>(rows[i + 1]) }] =
      rows[i + 2];
  }
  return scores;
}

/// The point arrays of an image.
struct PointValues
{
  vtkNew<vtkFloatArray> values;
  vtkNew<vtkIntArray> layer;
  vtkNew<vtkIntArray> head;
  vtkNew<vtkIntArray> query;
  vtkNew<vtkIntArray> key;

  PointValues(const char* name, vtkIdType count)
  {
    this->values->SetName(name);
    this->layer->SetName(Names::Layer);
    this->head->SetName(Names::Head);
    this->query->SetName(Names::Query);
    this->key->SetName(Names::Key);
    this->values->SetNumberOfValues(count);
    for (vtkIntArray* array : this->Integers())
    {
      array->SetNumberOfValues(count);
    }
  }

  std::array<vtkIntArray*, 4> Integers()
  {
    return { this->layer, this->head, this->query, this->key };
  }

  void SetGap(vtkIdType i)
  {
    this->values->SetValue(i, std::numeric_limits<float>::quiet_NaN());
    for (vtkIntArray* array : this->Integers())
    {
      array->SetValue(i, -1);
    }
  }

  void AddTo(vtkPointData* data)
  {
    data->SetScalars(this->values);
    for (vtkIntArray* array : this->Integers())
    {
      data->AddArray(array);
    }
  }
};

}

vtkStandardNewMacro(vtkAttentionMatrix);

/// The maps of all heads.
struct vtkAttentionMatrix::Pooled
{
  std::vector<atlas::HeadPlace> heads; ///< none without a recording
  std::vector<float> values;           ///< [heads, bins of queries, bins of keys]
  std::int64_t tokens = 0;             ///< of the sequence
  std::int64_t queries = 0;            ///< those with queries, and those with keys
  std::int64_t keys = 0;
  std::optional<atlas::MapCells> cells; ///< of a window
  std::int64_t source = 0;              ///< the position of the first query
  std::vector<std::string> texts;       ///< of the sequence; none if they are not known
  std::string text;                     ///< how that begins

  /// The positions in their text where a row and a column of a panel begin.
  std::int64_t QueryAt(std::int64_t row, std::int64_t rows) const
  {
    return this->cells ? this->cells->queries.begin - this->source + row * this->cells->queryCell
                       : atlas::BinBegin(row, rows, this->queries);
  }
  std::int64_t KeyAt(std::int64_t column, std::int64_t columns) const
  {
    return this->cells ? this->cells->keys.begin + column * this->cells->keyCell
                       : atlas::BinBegin(column, columns, this->keys);
  }
};

struct vtkAttentionMatrix::LastOutput
{
  LastResult<Pooled> pooled;
  LastResult<std::shared_ptr<std::vector<atlas::ZoomedAttention>>> zoomed;
  LastResult<MatrixPanels> panels; ///< sorted
};

vtkAttentionMatrix::vtkAttentionMatrix()
  : vtkRecordingAlgorithm({ "vtkMultiBlockDataSet", "vtkTable?" },
      { "vtkImageData", "vtkPolyData" }, TOGETHER | WHOLE_INPUT)
  , Last(std::make_unique<LastOutput>())
{
}

bool vtkAttentionMatrix::IsSorted()
{
  return !this->SortBy.empty() && this->GetNumberOfInputConnections(1) > 0;
}

bool vtkAttentionMatrix::HasWindow() const
{
  return this->QueryWindow[1] > std::max(this->QueryWindow[0], 0) ||
         this->KeyWindow[1] > std::max(this->KeyWindow[0], 0);
}

/// The cells of a window.
atlas::MapCells vtkAttentionMatrix::CellsOf(
  std::int64_t source, std::int64_t tokens, std::int64_t heads) const
{
  const atlas::MapWindow window = { { source + std::max(this->QueryWindow[0], 0),
                                      source + this->QueryWindow[1] },
    { std::max(this->KeyWindow[0], 0), this->KeyWindow[1] } };
  return atlas::ChooseCells({ source, tokens }, { 0, source > 0 ? source : tokens }, window,
    this->MaximumSize, BaseOf(heads, this->MaximumSize));
}

MatrixPanels vtkAttentionMatrix::PanelsOf(vtkMultiBlockDataSet* recording, int tokens)
{
  const int source = SourceTokens(recording, this->Sequence);
  const int heads = this->Quantity == ROLLOUT ? 0 : RecordingRanges(recording).head[1] + 1;
  const std::vector<int> layers =
    this->Layer >= 0 ? std::vector<int>{ this->Layer } : RecordedLayers(recording);
  int keys = std::min(source > 0 ? source : tokens, this->MaximumSize);
  int queries = std::min(tokens - source, this->MaximumSize);
  if (this->HasWindow() && tokens > source)
  {
    const atlas::MapCells cells =
      this->CellsOf(source, tokens, static_cast<std::int64_t>(layers.size()) * std::max(heads, 1));
    keys = static_cast<int>(cells.Columns());
    queries = static_cast<int>(cells.Rows());
  }
  return { layers, heads, keys, queries, this->IsSorted() };
}

int vtkAttentionMatrix::RequestInformation(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  vtkMultiBlockDataSet* recording = this->OutlineOfPart();
  const RecordingRanges ranges(recording);
  const bool isEmpty = IsEmpty(recording);
  this->SequenceRange[0] = this->LayerRange[0] = isEmpty ? 0 : -1;
  this->SequenceRange[1] = ranges.sequence[1];
  this->LayerRange[1] = ranges.layer[1];
  const MatrixPanels panels =
    isEmpty ? MatrixPanels() : this->PanelsOf(recording, SequenceTokens(recording, this->Sequence));
  // Never an empty image: VTK would not execute this rank, for which the others would wait.
  AnnounceImage(std::max(panels.Width(), 1), std::max(panels.Height(), 1),
    outputVector->GetInformationObject(0));
  return this->Superclass::RequestInformation(request, inputVector, outputVector);
}

/// Pools a window of some heads, one after another, with what is known of them.
std::vector<float> vtkAttentionMatrix::PoolWindow(const atlas::Recording& recording,
  const std::vector<atlas::HeadPlace>& heads, std::int64_t all, const atlas::MapCells& cells,
  const Task& task)
{
  const std::int64_t base = BaseOf(all, this->MaximumSize);
  const TaskKey key = MakeKey(TimeOf(this->RequirePart(task)), this->AttentionKind, this->Sequence,
    this->Layer, this->Quantity, base);
  const auto& zoomed = this->Last->zoomed.Get(task, key,
    [&]
    {
      auto made = std::make_shared<std::vector<atlas::ZoomedAttention>>();
      for (const atlas::HeadPlace& head : heads)
      {
        made->emplace_back(atlas::MapPlace{ this->Sequence, head.layer, head.head,
                             static_cast<atlas::AttentionQuantity>(this->Quantity) },
          base);
      }
      return made;
    });
  std::vector<float> values;
  const atlas::Progress& progress = task.Progress();
  for (std::size_t i = 0; i < heads.size(); ++i)
  {
    const std::vector<float> one =
      (*zoomed)[i].Pool(recording, cells, static_cast<atlas::AttentionPooling>(this->Pooling),
        ThreadLimit(), progress.Part(i, i + 1, heads.size()));
    values.insert(values.end(), one.begin(), one.end());
  }
  return values;
}

/// Pools the heads with all ranks.
vtkAttentionMatrix::Pooled vtkAttentionMatrix::Pool(const Task& task)
{
  Pooled pooled;
  vtkMultiBlockDataSet* input = this->RequirePart(task);
  if (task.Ranks().Any(IsEmpty(input))) // a rank without one has told why
  {
    return pooled;
  }
  const MatrixPanels panels = this->PanelsOf(input, SequenceTokensNow(input, this->Sequence));
  const atlas::Recording recording = ToRecording(input);
  pooled.tokens = atlas::AttentionLength(recording, this->Sequence);
  const atlas::KeyRange queries = atlas::QueryPositions(recording, this->Sequence);
  pooled.queries = queries.end - queries.begin;
  pooled.keys = atlas::KeyPositions(recording, this->Sequence).end;
  pooled.texts = TextsOf(recording, this->Sequence);
  pooled.text = SequenceText(recording, this->Sequence);
  pooled.heads = panels.Heads();
  std::vector<atlas::HeadPlace> mine;
  const std::size_t ranks = task.Ranks().Count();
  for (std::size_t i = task.Ranks().Rank(); i < pooled.heads.size(); i += ranks)
  {
    mine.push_back(pooled.heads[i]);
  }
  const int threads = ThreadLimit();
  const std::size_t pointsOfHead = atlas::ToIndex(panels.Keys()) * atlas::ToIndex(panels.Queries());
  const auto tokens = static_cast<double>(pooled.tokens);
  const double rows = this->Quantity == ROLLOUT ? 2 * tokens : 128. * threads; // at a time
  const double points = static_cast<double>(panels.Width()) * panels.Height();
  RequireMemory(points * BytesPerPoint +
                  2 * static_cast<double>(pooled.heads.size() * pointsOfHead) * sizeof(float) +
                  rows * tokens * sizeof(float),
    "a matrix of " + std::to_string(pooled.heads.size()) + " heads with " +
      std::to_string(panels.Queries()) + " x " + std::to_string(panels.Keys()) + " points each",
    "choose a smaller Maximum Size, or one layer.");
  std::vector<float> values(mine.size() * pointsOfHead);
  if (this->HasWindow())
  {
    const auto all = static_cast<std::int64_t>(pooled.heads.size());
    pooled.source = queries.begin;
    pooled.cells = this->CellsOf(queries.begin, pooled.tokens, all);
    values = this->PoolWindow(recording, mine, all, *pooled.cells, task);
    pooled.values = task.Ranks().GatherDealt(values, pooled.heads.size(), pointsOfHead);
    return pooled;
  }
  atlas::PoolAttention(recording, this->Sequence,
    static_cast<atlas::AttentionQuantity>(this->Quantity), mine,
    { this->MaximumSize, static_cast<atlas::AttentionPooling>(this->Pooling) }, values.data(),
    threads, task.Progress());
  pooled.values = task.Ranks().GatherDealt(values, pooled.heads.size(), pointsOfHead);
  return pooled;
}

/// Whether rows and columns have the texts of tokens.
bool vtkAttentionMatrix::HasLabels(const MatrixPanels& panels, const Pooled& pooled)
{
  const bool isPooled = pooled.cells
                          ? pooled.cells->queryCell > 1 || pooled.cells->keyCell > 1
                          : panels.Queries() < pooled.queries || panels.Keys() < pooled.keys;
  return !isPooled && !pooled.texts.empty() && panels.Width() <= MaximumLabels &&
         panels.Height() <= MaximumLabels;
}

/// Makes the part of the image that is asked for.
void vtkAttentionMatrix::MakeImage(
  const MatrixPanels& panels, const Pooled& pooled, const Task& task) const
{
  std::array<int, 6> extent =
    RequestedExtent(task.OutputInformation(), panels.Width(), panels.Height());
  const std::int64_t width = std::max(extent[1] - extent[0] + 1, 0);
  const std::int64_t height = std::max(extent[3] - extent[2] + 1, 0);
  PointValues points(atlas::AttentionQuantityNames.at(this->Quantity), width * height);
  const int queries = panels.Queries();
  const int keys = panels.Keys();
  const auto fill = [&](vtkIdType begin, vtkIdType end)
  {
    for (vtkIdType i = begin * width; i < end * width; ++i)
    {
      const PanelPoint place = panels.PointAt(extent[0] + static_cast<int>(i % width),
        panels.Height() - 1 - extent[2] - static_cast<int>(i / width));
      if (place.row < 0)
      {
        points.SetGap(i);
        continue;
      }
      const std::size_t head = panels.HeadAt(place.row, place.column);
      points.values->SetValue(
        i, pooled.values[(head * atlas::ToIndex(queries) + atlas::ToIndex(place.query)) *
                           atlas::ToIndex(keys) +
                         atlas::ToIndex(place.key)]);
      points.layer->SetValue(i, panels.Heads()[head].layer);
      points.head->SetValue(i, panels.Heads()[head].head);
      points.query->SetValue(i, static_cast<int>(pooled.QueryAt(place.query, queries)));
      points.key->SetValue(i, static_cast<int>(pooled.KeyAt(place.key, keys)));
    }
  };
  ParallelFor(0, height, fill);
  auto* image = task.Output<vtkImageData>();
  image->SetExtent(extent.data());
  image->SetOrigin(0, 1 - panels.Height(), 0);
  image->SetSpacing(1, 1, 1);
  points.AddTo(image->GetPointData());
  SetFormat(image, Formats::AttentionMatrix);
  this->AddKind(image);
  vtkFieldData* fields = image->GetFieldData();
  AddSequence(this->Sequence, pooled.text, fields);
  AddField(fields, "Tokens", pooled.tokens);
  AddField(fields, "Panel Size", keys);
  AddField(fields, "Panel Height", queries);
  AddField(fields, "Column Step", panels.ColumnStep());
  AddField(fields, "Row Step", panels.RowStep());
  if (HasLabels(panels, pooled))
  {
    const std::int64_t target = pooled.tokens - pooled.queries; // the first position of queries
    const auto add = [&](const char* name, int count, const auto& textAt)
    {
      vtkNew<vtkStringArray> labels;
      labels->SetName(name);
      for (int i = 0; i < count; ++i)
      {
        labels->InsertNextValue(textAt(i));
      }
      fields->AddArray(labels);
    };
    add(Names::KeyToken, panels.Width(),
      [&](int x)
      {
        const int key = x % panels.ColumnStep();
        return key < keys ? pooled.texts[atlas::ToIndex(pooled.KeyAt(key, keys))] : std::string();
      });
    add(Names::QueryToken, panels.Height(),
      [&](int y)
      {
        const int query = y % panels.RowStep();
        return query < queries
                 ? pooled.texts[atlas::ToIndex(target + pooled.QueryAt(query, queries))]
                 : std::string();
      });
  }
}

void vtkAttentionMatrix::Execute(Task& task)
{
  vtkMultiBlockDataSet* input = this->RequirePart(task);
  auto* table = this->IsSorted() ? task.Input<vtkTable>(1) : nullptr;
  const auto tokens = IsEmpty(input) ? 0 : SequenceTokensNow(input, this->Sequence);
  TaskKey key = MakeKey(TimeOf(input), tokens, this->AttentionKind, this->Sequence, this->Layer,
    this->Quantity, this->MaximumSize, this->Pooling, this->QueryWindow[0], this->QueryWindow[1],
    this->KeyWindow[0], this->KeyWindow[1]);
  const Pooled& pooled = this->Last->pooled.Get(task, key, [&] { return this->Pool(task); });
  if (pooled.heads.empty())
  {
    return;
  }
  const TaskKey order =
    MakeKey(this->IsSorted(), TimeOf(table), std::hash<std::string>()(this->SortBy));
  key.insert(key.end(), order.begin(), order.end());
  const MatrixPanels& panels = this->Last->panels.Get(task, key,
    [&]
    {
      MatrixPanels sorted = this->PanelsOf(input, tokens);
      sorted.Sort(ByHead(task.Ranks().Gather(ScoresOf(table, this->SortBy.c_str()))));
      return sorted;
    });
  this->MakeImage(panels, pooled, task);
  if (task.IsFirst())
  {
    const double room = HasLabels(panels, pooled)
                          ? LabelRoom(pooled.texts, std::max(panels.Width(), panels.Height()))
                          : 0;
    panels.MakeTitles(task.Output<vtkPolyData>(1), Formats::AttentionMatrixTitles, 1, room);
  }
}
