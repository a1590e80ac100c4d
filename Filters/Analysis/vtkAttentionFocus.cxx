#include "vtkAttentionFocus.h"

#include "Analysis/AttentionFocus.h"
#include "ArrayNames.h"
#include "Base/Error.h"
#include "DataFormat.h"
#include "HeadBlocks.h"
#include "ListArrays.h"
#include "RecordingConversion.h"
#include "RecordingRanges.h"
#include "Task.h"
#include "TokenColumns.h"
#include "TokenText.h"

#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

using atlas::FocusMeasure;
using atlas::HeadPlace;

/// How the numbers of a column are stored per query.
enum class Kind
{
  Real,
  Integer,
  Flag
};

struct Column
{
  const char* name;
  FocusMeasure measure;
  Kind kind;
  bool needsVectors; ///< queries and keys
};

constexpr std::array<Column, atlas::FocusMeasureCount> Columns = { {
  { Names::SelfWeight, FocusMeasure::SelfWeight, Kind::Real, false },
  { Names::FirstWeight, FocusMeasure::FirstWeight, Kind::Real, false },
  { Names::StrongestKey, FocusMeasure::StrongestKey, Kind::Integer, false },
  { Names::StrongestIsSelf, FocusMeasure::StrongestIsSelf, Kind::Flag, false },
  { Names::StrongestIsFirst, FocusMeasure::StrongestIsFirst, Kind::Flag, false },
  { Names::Concentration, FocusMeasure::Concentration, Kind::Real, false },
  { Names::Entropy, FocusMeasure::Entropy, Kind::Real, false },
  { Names::SinkRate, FocusMeasure::SinkRate, Kind::Flag, false },
  { Names::FirstCosine, FocusMeasure::FirstCosine, Kind::Real, true },
  { Names::QueryNorm, FocusMeasure::QueryNorm, Kind::Real, true },
  { Names::FirstKeyNorm, FocusMeasure::FirstKeyNorm, Kind::Real, true },
} };

/// What Measure can be, in the order of MeasureType.
constexpr std::array<FocusMeasure, 7> Measures = { FocusMeasure::StrongestIsSelf,
  FocusMeasure::StrongestIsFirst, FocusMeasure::Concentration, FocusMeasure::SelfWeight,
  FocusMeasure::FirstWeight, FocusMeasure::Entropy, FocusMeasure::SinkRate };

void RequireOptions(const atlas::Recording& recording, double threshold, bool excludesFirst)
{
  atlas::ThrowIf<atlas::OptionError>(!(threshold >= 0 && threshold <= 1),
    "SinkThreshold: expected a weight from 0 to 1, found ", threshold, ".");
  bool isLong = false;
  for (std::int64_t s = 0; s < recording.SequenceCount(); ++s)
  {
    isLong = isLong || recording.SequenceLength(s) > 1;
  }
  atlas::ThrowIf<atlas::OptionError>(excludesFirst && !isLong,
    "ExcludeFirst: expected a sequence of at least 2 tokens, found only sequences of 1.");
}

}

vtkStandardNewMacro(vtkAttentionFocus);

/// The statistics of the heads of this rank.
struct vtkAttentionFocus::Work
{
  const atlas::Recording& recording;
  atlas::AttentionQuantity quantity;
  double sinkThreshold;
  bool excludesFirst;
  bool isPerQuery;
  HeadBlocks heads;
  std::vector<std::int64_t> rows;         ///< of the tokens that count
  std::vector<atlas::FocusSums> sums;     ///< per block
  std::vector<atlas::QueryFocus> queries; ///< [heads of this rank, rows]; empty unless per query

  Work(const atlas::Recording& source, const vtkAttentionFocus& filter, const RankGroup& ranks);

  void Measure(std::size_t b, std::vector<float>& weights, std::vector<atlas::QueryFocus>& found);
  std::vector<atlas::FocusSums> SumsOfHeads() const;

private:
  void RequireMemory() const;
};

vtkAttentionFocus::Work::Work(
  const atlas::Recording& source, const vtkAttentionFocus& filter, const RankGroup& ranks)
  : recording(source)
  , quantity(filter.Quantity == NORM_WEIGHTED ? atlas::AttentionQuantity::NormWeighted
                                              : atlas::AttentionQuantity::Weights)
  , sinkThreshold(filter.SinkThreshold)
  , excludesFirst(filter.ExcludeFirst)
  , isPerQuery(filter.Per == QUERY)
  , heads(source, ranks)
{
  RequireOptions(source, this->sinkThreshold, this->excludesFirst);
  for (std::int64_t s = 0; s < source.SequenceCount(); ++s)
  {
    const atlas::KeyRange positions = atlas::QueryPositions(source, s);
    for (std::int64_t query = positions.begin; query < positions.end; ++query)
    {
      if (!this->excludesFirst || query > positions.begin)
      {
        this->rows.push_back(source.sequenceOffsets[s] + query);
      }
    }
  }
  this->sums.resize(this->heads.GetBlocks().size());
  if (this->isPerQuery)
  {
    this->RequireMemory();
    this->queries.resize(this->heads.GetMine().size() * this->rows.size());
  }
}

void vtkAttentionFocus::Work::RequireMemory() const
{
  const std::size_t count = this->rows.size() * this->heads.GetHeads().size();
  const double bytesPerRow =
    2 * sizeof(atlas::QueryFocus) + TokenColumnBytes() + 8 * sizeof(float) + 3;
  AttentionAtlas::RequireMemory(static_cast<double>(count) * bytesPerRow,
    "a table of " + std::to_string(count) + " rows",
    "show a row per head, or record fewer layers.");
}

/// Measures a block; the last two arguments are working memory.
void vtkAttentionFocus::Work::Measure(
  std::size_t b, std::vector<float>& weights, std::vector<atlas::QueryFocus>& found)
{
  const QueryBlock& block = this->heads.GetBlocks()[b];
  const HeadPlace& place = this->heads.GetMine()[block.head];
  found.resize(block.end - block.begin);
  atlas::MeasureFocus(this->recording, block.sequence, place.layer, place.head, this->quantity,
    block.begin, block.end, weights, found.data());
  if (this->excludesFirst &&
      block.begin == atlas::QueryPositions(this->recording, block.sequence).begin)
  {
    found.erase(found.begin());
  }
  for (const atlas::QueryFocus& focus : found)
  {
    this->sums[b].Add(focus, this->sinkThreshold);
  }
  if (this->isPerQuery && !found.empty())
  {
    const std::int64_t row = this->recording.sequenceOffsets[block.sequence] + found.front().query;
    const auto at = std::lower_bound(this->rows.begin(), this->rows.end(), row);
    const auto first = static_cast<std::ptrdiff_t>(block.head * this->rows.size());
    std::copy(
      found.begin(), found.end(), this->queries.begin() + first + (at - this->rows.begin()));
  }
}

/// The sums of each head of this rank.
std::vector<atlas::FocusSums> vtkAttentionFocus::Work::SumsOfHeads() const
{
  std::vector<atlas::FocusSums> ofHeads(this->heads.GetMine().size());
  for (std::size_t b = 0; b < this->sums.size(); ++b)
  {
    ofHeads[this->heads.GetBlocks()[b].head].Add(this->sums[b]);
  }
  return ofHeads;
}

namespace
{

/// Adds a column with a row per entry of a list.
template<class Array, class List, class Value>
void AddMeasure(const Column& column, const List& list, const Value& valueOf, vtkTable* table)
{
  AddColumn<Array>(table, column.name, list, [&](const auto& row)
    { return static_cast<typename Array::ValueType>(valueOf(row, column.measure)); });
}

/// Adds the columns of statistics: valueOf(entry of the list, measure).
template<class Real, class Integer, class Flag, class List, class Value>
void AddMeasures(const List& list, bool hasVectors, const Value& valueOf, vtkTable* table)
{
  for (const Column& column : Columns)
  {
    if (column.needsVectors && !hasVectors)
    {
      continue;
    }
    switch (column.kind)
    {
      case Kind::Real:
        AddMeasure<Real>(column, list, valueOf, table);
        break;
      case Kind::Integer:
        AddMeasure<Integer>(column, list, valueOf, table);
        break;
      case Kind::Flag:
        AddMeasure<Flag>(column, list, valueOf, table);
        break;
    }
  }
}

bool HasVectors(const atlas::Recording& recording)
{
  return std::all_of(recording.layers.begin(), recording.layers.end(),
    [](const atlas::RecordedLayer& layer)
    {
      return std::all_of(layer.heads.begin(), layer.heads.end(), [](const atlas::RecordedHead& head)
        { return head.query.IsRecorded() && head.key.IsRecorded(); });
    });
}

/// Sorts the heads of each layer by a mean.
void FillSorted(const std::vector<HeadPlace>& heads, const std::vector<atlas::FocusSums>& sums,
  FocusMeasure measure, vtkTable* table)
{
  struct Row
  {
    int rank;
    HeadPlace place;
    double value;
  };
  std::vector<Row> rows;
  for (std::size_t begin = 0; begin < heads.size();)
  {
    std::size_t end = begin;
    std::vector<double> values;
    for (; end < heads.size() && heads[end].layer == heads[begin].layer; ++end)
    {
      values.push_back(sums[end].Mean(measure));
    }
    for (const std::size_t i : atlas::FallingOrder(values))
    {
      rows.push_back({ static_cast<int>(rows.size() - begin), heads[begin + i], values[i] });
    }
    begin = end;
  }
  ListArrays(rows, table->GetRowData())
    .Int(Names::Rank, &Row::rank)
    .Int(Names::Layer, [](const Row& row) { return row.place.layer; })
    .Double(Names::Value, &Row::value)
    .Int(Names::Head, [](const Row& row) { return row.place.head; });
  SetFormat(table, Formats::AttentionFocusSorted);
}

}

vtkAttentionFocus::vtkAttentionFocus()
  : vtkRecordingAlgorithm({ "vtkMultiBlockDataSet" }, { "vtkTable", "vtkTable" }, TOGETHER)
{
}

void vtkAttentionFocus::FillTables(const Work& work, const Task& task) const
{
  const std::vector<HeadPlace>& heads = work.heads.GetHeads();
  const std::vector<atlas::FocusSums> sums = work.heads.Gather(work.SumsOfHeads(), 1);
  const std::vector<atlas::QueryFocus> queries =
    work.heads.Gather(work.queries, work.isPerQuery ? work.rows.size() : 0);
  if (task.Ranks().Rank() != 0)
  {
    return;
  }
  auto* table = task.Output<vtkTable>();
  const bool hasVectors = HasVectors(work.recording);
  if (work.isPerQuery)
  {
    AddTokenColumns(work.recording, heads, work.rows, table);
    AddMeasures<vtkFloatArray, vtkIntArray, vtkUnsignedCharArray>(
      queries, hasVectors, [&work](const atlas::QueryFocus& focus, FocusMeasure measure)
      { return atlas::FocusValue(focus, measure, work.sinkThreshold); }, table);
  }
  else
  {
    AddHeadColumns(heads, table);
    AddMeasures<vtkDoubleArray, vtkDoubleArray, vtkDoubleArray>(
      sums, hasVectors,
      [](const atlas::FocusSums& sum, FocusMeasure measure) { return sum.Mean(measure); }, table);
  }
  SetFormat(table, Formats::AttentionFocus);
  AddAllSequences(work.recording, table->GetFieldData());
  this->AddKind(table);
  FillSorted(heads, sums, Measures.at(this->Measure), task.Output<vtkTable>(1));
}

void vtkAttentionFocus::Execute(Task& task)
{
  vtkMultiBlockDataSet* input = this->RequirePart(task);
  if (task.Ranks().Any(IsEmpty(input))) // a rank without one has told why
  {
    return;
  }
  const atlas::Recording recording = ToRecording(input);
  Work work(recording, *this, task.Ranks());
  work.heads.Run(task.Progress(),
    [&work](std::size_t begin, std::size_t end)
    {
      std::vector<float> weights;
      std::vector<atlas::QueryFocus> found;
      for (std::size_t b = begin; b < end; ++b)
      {
        work.Measure(b, weights, found);
      }
    });
  this->FillTables(work, task);
}
