#include "vtkAttentionMap.h"

#include "ArrayRanges.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "MapOutput.h"
#include "Numerics/ValueRanges.h"
#include "Recording/RecordedAttention.h"
#include "Recording/ZoomedAttention.h"
#include "RecordingConversion.h"
#include "RecordingRanges.h"
#include "Task.h"
#include "TokenText.h"

#include <vtkDataObject.h>
#include <vtkDemandDrivenPipeline.h>
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
#include <atomic>
#include <cmath>
#include <string>
#include <utility>

using namespace AttentionAtlas;
using atlas::AttentionQuantity;

namespace
{

/// The tokens with which the cells begin.
void AddLabels(const atlas::Recording& recording, int sequence, const atlas::MapCells& cells,
  vtkFieldData* fields)
{
  const auto add = [&](const char* name, const atlas::KeyRange& range, std::int64_t cell)
  {
    vtkNew<vtkStringArray> labels;
    labels->SetName(name);
    for (std::int64_t i = range.begin; i < range.end; i += cell)
    {
      labels->InsertNextValue(sequence == atlas::AllSequences
                                ? std::to_string(i)
                                : TokenText(recording, recording.sequenceOffsets[sequence] + i));
    }
    fields->AddArray(labels);
  };
  add("Key Token", cells.keys, cells.keyCell);
  add("Query Token", cells.queries, cells.queryCell);
}

/// Where the first point of a side is: in the middle of its cell.
double Middle(std::int64_t position, std::int64_t cell)
{
  return static_cast<double>(position) + static_cast<double>(cell - 1) / 2;
}

/// Places an image of cells. `source`: the position of the first query of all.
void PlaceImage(const atlas::MapCells& cells, std::int64_t source, std::array<double, 3>& origin,
  std::array<double, 3>& spacing)
{
  spacing = { static_cast<double>(cells.keyCell), static_cast<double>(cells.queryCell), 1 };
  const std::int64_t last = cells.queries.begin - source + (cells.Rows() - 1) * cells.queryCell;
  origin = { Middle(cells.keys.begin, cells.keyCell), 0 - Middle(last, cells.queryCell), 0 };
}

/// The output with frames.
constexpr int FramePort = 1;
/// The output with bands of pictures.
constexpr int BandsPort = 2;

/// Names of the arrays of StrongestKey::value, by quantity.
constexpr std::array<const char*, 6> ValueNames = { "Weight", "Score", "Content", "Bias",
  "NormWeighted", "Rollout" };

/// A sequence with as many tokens as the map has.
std::int64_t LongestSequence(const atlas::Recording& recording, int sequence)
{
  std::int64_t longest = std::max(sequence, 0);
  while (recording.SequenceLength(longest) < atlas::AttentionLength(recording, sequence))
  {
    ++longest;
  }
  return longest;
}

/// The strongest of a range of keys in a row of values, as far as these are finite and the query
/// has the key; the first of several. Its key is -1 if there is none.
template<class HasKey>
StrongestKey FindStrongest(
  const float* row, const atlas::KeyRange& keys, std::int64_t query, const HasKey& hasKey)
{
  StrongestKey strongest = { static_cast<int>(query), -1, 0 };
  for (std::int64_t key = keys.begin; key < keys.end; ++key)
  {
    if (std::isfinite(row[key]) && (strongest.key < 0 || row[key] > strongest.value) && hasKey(key))
    {
      strongest.key = static_cast<int>(key);
      strongest.value = row[key];
    }
  }
  return strongest;
}

}

vtkStandardNewMacro(vtkAttentionMap);

/// What is kept of the map of a head.
struct vtkAttentionMap::LastOutput
{
  LastResult<std::shared_ptr<atlas::ZoomedAttention>> zoomed;
};

vtkAttentionMap::vtkAttentionMap()
  : vtkHeadAlgorithm(WITH_MEANS, { "vtkMultiBlockDataSet" },
      { "vtkImageData", "vtkPolyData", "vtkPolyData" }, WHOLE_INPUT)
  , Last(std::make_unique<LastOutput>())
{
}

/// The rows of an image and the queries that they show, from the bottom up.
struct vtkAttentionMap::Rows
{
  std::int64_t length;              ///< of a row of values: all of the sequence
  atlas::KeyRange queries;          ///< positions of those that are shown
  atlas::KeyRange keys;             ///< likewise
  const std::array<int, 6>& extent; ///< of the part of the image

  std::int64_t Width() const { return this->extent[1] - this->extent[0] + 1; }
  std::int64_t FirstQuery() const { return this->queries.end - 1 - this->extent[3]; }
  std::int64_t EndQuery() const { return this->queries.end - this->extent[2]; }

  bool AreAll() const
  {
    return this->FirstQuery() == this->queries.begin && this->EndQuery() == this->queries.end;
  }

  /// Puts whole rows of queries begin <= i < end where the image has them. Returns the points that
  /// they are.
  std::pair<vtkIdType, vtkIdType> Copy(
    std::int64_t begin, std::int64_t end, const float* rows, float* image) const
  {
    const std::int64_t first = std::max(begin, this->FirstQuery());
    const std::int64_t last = std::max(first, std::min(end, this->EndQuery()));
    for (std::int64_t query = first; query < last; ++query)
    {
      const float* row = rows + (query - begin) * this->length + this->keys.begin + this->extent[0];
      std::copy(row, row + this->Width(), image + (this->EndQuery() - 1 - query) * this->Width());
    }
    if (first == last)
    {
      return { 0, 0 };
    }
    return { (this->EndQuery() - last) * this->Width(),
      (this->EndQuery() - first) * this->Width() };
  }
};

int vtkAttentionMap::RequestInformation(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  vtkMultiBlockDataSet* recording = this->OutlineOfPart();
  const bool isEmpty = IsEmpty(recording);
  const int tokens = isEmpty ? 0 : SequenceTokens(recording, this->Sequence);
  const int source = isEmpty ? 0 : SourceTokens(recording, this->Sequence);
  vtkInformation* info = outputVector->GetInformationObject(0);
  const atlas::MapCells cells = this->CellsOf(source, tokens);
  AnnounceImage(static_cast<int>(cells.Columns()), static_cast<int>(cells.Rows()), info);
  std::array<double, 3> origin;
  std::array<double, 3> spacing;
  PlaceImage(cells, source, origin, spacing);
  info->Set(vtkDataObject::ORIGIN(), origin.data(), 3);
  info->Set(vtkDataObject::SPACING(), spacing.data(), 3);
  return this->Superclass::RequestInformation(request, inputVector, outputVector);
}

/// Whether the map has too many queries or keys for a point each. `source`: tokens of the source,
/// of cross attention; otherwise 0.
bool vtkAttentionMap::IsPooled(std::int64_t source, std::int64_t tokens) const
{
  return std::max(tokens - source, source > 0 ? source : tokens) > this->MaximumSize;
}

/// The cells that are shown.
atlas::MapCells vtkAttentionMap::CellsOf(std::int64_t source, std::int64_t tokens) const
{
  if (tokens == 0)
  {
    return {};
  }
  const atlas::KeyRange queries = { source, tokens };
  const atlas::KeyRange keys = { 0, source > 0 ? source : tokens };
  const atlas::MapWindow window = { { source + std::max(this->QueryWindow[0], 0),
                                      source + this->QueryWindow[1] },
    { std::max(this->KeyWindow[0], 0), this->KeyWindow[1] } };
  const bool isPooled = this->IsPooled(source, tokens);
  return atlas::ChooseCells(queries, keys, window, isPooled ? this->Resolution : tokens,
    isPooled ? atlas::BaseCells : tokens);
}

/// Evaluates the rows on several threads. Returns the strongest key of each query, where `frames`
/// says so; this needs all queries.
std::vector<StrongestKey> vtkAttentionMap::EvaluateRows(const atlas::Recording& recording,
  const Rows& rows, bool frames, vtkFloatArray* image, const atlas::Progress& progress) const
{
  const auto quantity = static_cast<AttentionQuantity>(this->Quantity);
  const std::int64_t masked = LongestSequence(recording, this->Sequence);
  std::vector<StrongestKey> strongest(frames ? rows.queries.end : 0, StrongestKey{ 0, -1, 0 });
  RangeCollector ranges({ image });
  std::atomic<bool> isFinite = true; // a recording may hold other numbers
  // Blocks begin at fixed rows, so that values do not depend on the part of the image.
  const std::int64_t firstRow = frames ? rows.queries.begin : rows.FirstQuery();
  const std::int64_t first = firstRow / atlas::QueriesPerBlock * atlas::QueriesPerBlock;
  const std::int64_t last = frames ? rows.queries.end : rows.EndQuery();
  atlas::EvaluateAttentionBlocks(
    recording, { this->Sequence, this->Layer, this->Head, quantity, first, last },
    [&](std::int64_t begin, std::int64_t end, const float* values)
    {
      for (std::int64_t query = begin; frames && query < end; ++query)
      {
        // Rollout goes beyond the window of a layer; what the mask excludes is 0 in it.
        const bool isRollout = quantity == AttentionQuantity::Rollout;
        const atlas::KeyRange keys = isRollout
                                       ? atlas::KeyRange{ 0, rows.length }
                                       : atlas::AllowedKeys(recording, masked, this->Layer, query);
        const auto hasKey = [&](std::int64_t key)
        {
          return isRollout || this->Sequence == atlas::AllSequences ||
                 atlas::HasKey(recording, masked, this->Layer, query, key);
        };
        strongest[query] =
          FindStrongest(values + (query - begin) * rows.length, keys, query, hasKey);
      }
      const auto [from, to] = rows.Copy(begin, end, values, image->GetPointer(0));
      if (atlas::AreFinite(image->GetPointer(from), to - from))
      {
        ranges.Add(from, to);
      }
      else
      {
        isFinite = false;
      }
    },
    ThreadLimit(), progress);
  if (isFinite)
  {
    ranges.Store();
  }
  strongest.erase(std::remove_if(strongest.begin(), strongest.end(),
                    [&](const StrongestKey& found) { return !rows.keys.Has(found.key); }),
    strongest.end());
  return strongest;
}

/// Shows pooled cells.
void vtkAttentionMap::ShowCells(
  const atlas::Recording& recording, const atlas::MapCells& cells, Task& task)
{
  const double tokens = static_cast<double>(atlas::AttentionLength(recording, this->Sequence));
  const double pairs = this->Quantity == ROLLOUT ? 3 * tokens * tokens : 0;
  const auto base = static_cast<double>(atlas::BaseCells * atlas::BaseCells);
  RequireMemory((pairs + 2 * std::min(base, tokens * tokens) +
                  2 * static_cast<double>(cells.Rows() * cells.Columns())) *
                  sizeof(float),
    "a map of " + std::to_string(static_cast<std::int64_t>(tokens)) + " tokens",
    "record shorter sequences.");
  const TaskKey key = MakeKey(TimeOf(this->RequirePart(task)), this->AttentionKind, this->Sequence,
    this->Layer, this->Head, this->Quantity);
  const std::shared_ptr<atlas::ZoomedAttention>& zoomed = this->Last->zoomed.Get(task, key,
    [&]
    {
      return std::make_shared<atlas::ZoomedAttention>(atlas::MapPlace{
        this->Sequence, this->Layer, this->Head, static_cast<AttentionQuantity>(this->Quantity) });
    });
  const std::vector<float> values = zoomed->Pool(recording, cells,
    static_cast<atlas::AttentionPooling>(this->Pooling), ThreadLimit(), task.Progress());
  const std::array<int, 6> extent =
    RequestedExtent(task.OutputInformation(), cells.Columns(), cells.Rows());
  auto* output = task.Output<vtkImageData>();
  output->SetExtent(extent[0], extent[1], extent[2], extent[3], extent[4], extent[5]);
  vtkNew<vtkFloatArray> points;
  points->SetName(atlas::AttentionQuantityNames[this->Quantity]);
  points->SetNumberOfValues(output->GetNumberOfPoints());
  float* to = points->GetPointer(0);
  for (int y = extent[2]; y <= extent[3]; ++y)
  {
    const float* row = values.data() + (cells.Rows() - 1 - y) * cells.Columns();
    to = std::copy(row + extent[0], row + extent[1] + 1, to);
  }
  output->GetPointData()->SetScalars(points);
  output->GetFieldData()->AddArray(
    MakeArray<vtkIntArray>("Cell Size", std::array{ cells.keyCell, cells.queryCell },
      [](std::int64_t cell) { return static_cast<int>(cell); }));
  FrameStrongestKeys({}, ValueNames.at(this->Quantity), recording.sourceLengths.empty(),
    task.Output<vtkPolyData>(FramePort));
}

/// Shows a point for each pair.
void vtkAttentionMap::ShowRows(
  const atlas::Recording& recording, const atlas::MapCells& cells, Task& task)
{
  const std::int64_t tokens = atlas::RequireTokens(recording, this->Sequence);
  const std::int64_t source = atlas::QueryPositions(recording, this->Sequence).begin;
  std::array<int, 6> extent =
    RequestedExtent(task.OutputInformation(), cells.Columns(), cells.Rows());
  const Rows rows{ tokens, cells.queries, cells.keys, extent };
  const std::int64_t points = rows.Width() * (rows.EndQuery() - rows.FirstQuery());
  const int copies = this->Quantity == ROLLOUT ? 3 : 1; // rows of two layers beside the image
  RequireMemory(static_cast<double>(copies * points) * sizeof(float),
    "a map of " + std::to_string(cells.Rows()) + " x " + std::to_string(cells.Columns()) +
      " tokens",
    "record shorter sequences.");
  const vtkSmartPointer<vtkFloatArray> values =
    vtkFloatArray::SafeDownCast(this->Pool.Take(VTK_FLOAT, 1, points));
  this->Pool.ForgetFree();
  values->SetName(atlas::AttentionQuantityNames[this->Quantity]);
  const bool frames = rows.AreAll() || task.Port() == FramePort;
  std::vector<StrongestKey> strongest =
    this->EvaluateRows(recording, rows, frames, values, task.Progress());
  auto* output = task.Output<vtkImageData>();
  output->SetExtent(extent.data());
  output->GetPointData()->SetScalars(values);
  auto* lines = task.Output<vtkPolyData>(FramePort);
  if (!frames) // made when they are asked for
  {
    task.OutputInformation(FramePort)->Set(vtkDemandDrivenPipeline::DATA_NOT_GENERATED(), 1);
  }
  std::for_each(strongest.begin(), strongest.end(),
    [&](StrongestKey& found) { found.query -= static_cast<int>(source); });
  FrameStrongestKeys(
    strongest, ValueNames.at(this->Quantity), recording.sourceLengths.empty(), lines);
  if (this->Sequence != atlas::AllSequences)
  {
    AddQueryTokens(strongest, recording.sequenceOffsets[this->Sequence] + source, lines);
  }
}

void vtkAttentionMap::Execute(Task& task)
{
  vtkMultiBlockDataSet* input = this->RequirePart(task);
  if (IsEmpty(input))
  {
    return;
  }
  const auto quantity = static_cast<AttentionQuantity>(this->Quantity);
  const atlas::Recording recording = ToRecording(input, this->Layer, this->Head, quantity);
  // Checks the numbers, and that there is such a quantity, before anything is allocated.
  atlas::EvaluateAttention(
    recording, this->Sequence, this->Layer, this->Head, quantity, 0, 0, nullptr);
  const std::int64_t tokens = atlas::RequireTokens(recording, this->Sequence);
  const std::int64_t source = atlas::QueryPositions(recording, this->Sequence).begin;
  const atlas::MapCells cells = this->CellsOf(source, tokens);
  if (this->IsPooled(source, tokens))
  {
    this->ShowCells(recording, cells, task);
  }
  else
  {
    this->ShowRows(recording, cells, task);
  }
  std::array<double, 3> origin;
  std::array<double, 3> spacing;
  PlaceImage(cells, source, origin, spacing);
  auto* output = task.Output<vtkImageData>();
  auto* lines = task.Output<vtkPolyData>(FramePort);
  output->SetOrigin(origin.data());
  output->SetSpacing(spacing.data());
  SetFormat(output, Formats::AttentionMap);
  SetFormat(lines, Formats::StrongestKeys);
  auto* pictures = task.Output<vtkPolyData>(BandsPort);
  FillPictureBands(recording, this->Sequence, cells.queries, cells.keys, pictures);
  SetFormat(pictures, Formats::AttentionMapPictures);
  AddLabels(recording, this->Sequence, cells, output->GetFieldData());
  this->AddKind(output);
  this->AddKind(lines);
  this->AddKind(pictures);
  for (vtkFieldData* fields :
    { output->GetFieldData(), lines->GetFieldData(), pictures->GetFieldData() })
  {
    AddSequence(this->Sequence, SequenceText(recording, this->Sequence), fields);
    AddField(fields, "Layer", this->Layer);
    AddField(fields, "Head", this->Head);
  }
}
