#include "vtkAttentionLines.h"

#include "ArrayNames.h"
#include "ArrayRanges.h"
#include "Base/Error.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "PointArrays.h"
#include "Recording/RecordedAttention.h"
#include "Recording/StrongestKeys.h"
#include "RecordingConversion.h"
#include "RecordingRanges.h"
#include "Task.h"

#include <vtkCellArray.h>
#include <vtkCellData.h>
#include <vtkDataSet.h>
#include <vtkExtractSelection.h>
#include <vtkFloatArray.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>
#include <vtkSelection.h>
#include <vtkTypeInt64Array.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

constexpr const char* Advice = "give the output of a Head Embedding.";

/// Weights between two reports of progress, each a chance to cancel.
constexpr std::int64_t WeightsPerStep = std::int64_t{ 1 } << 24;

constexpr std::int32_t Absent = -1;

bool IsEmpty(vtkDataSet* data)
{
  return data == nullptr || data->GetNumberOfPoints() == 0;
}

bool HasSelection(const Task& task)
{
  auto* selection = task.Input<vtkSelection>(2);
  return selection != nullptr && selection->GetNumberOfNodes() > 0;
}

/// A line between points of the input.
struct Line
{
  vtkIdType query;
  vtkIdType key;
  float weight;
};

/// Queries of one head that are evaluated together.
struct Block
{
  std::size_t head;
  std::int64_t sequence;
  std::int64_t begin;
  std::int64_t end;
};

/// Where the tokens of a head are: for each row of the recording's tokens the place of its query
/// and of its key in the rows of the head, or Absent.
struct Places
{
  std::vector<std::int32_t> query;
  std::vector<std::int32_t> key;
};

/// The points of an embedding as tokens of a recording.
struct Embedding
{
  std::vector<std::int64_t> token;
  std::vector<std::int64_t> kind;
  std::vector<HeadRows> heads;

  Embedding(vtkDataSet* data, const atlas::Recording& recording)
  {
    vtkPointData* arrays = data->GetPointData();
    const auto integers = [arrays](const char* name)
    { return Integers(RequireNumbers(arrays, name, Advice)); };
    this->token = integers(Names::TokenIndex);
    this->kind = integers(Names::Kind);
    this->heads =
      GroupByHead(integers(Names::Layer), integers(Names::Head), data->GetNumberOfPoints());
    this->RequireTokens(recording.tokens.Count());
    vtkDataArray* sequence = arrays->GetArray(Names::Sequence);
    for (std::size_t i = 0; sequence != nullptr && i < this->token.size(); ++i)
    {
      const std::size_t row = this->token[i];
      atlas::ThrowIf<atlas::OptionError>(
        sequence->GetComponent(static_cast<vtkIdType>(i), 0) != recording.tokens.sequence[row],
        "Recording: expected the recording of the embedding, found one whose token ", row,
        " is in another sequence.");
    }
  }

  void RequireTokens(std::int64_t count) const
  {
    for (const std::int64_t row : this->token)
    {
      atlas::ThrowIf<atlas::OptionError>(row < 0 || row >= count,
        "input: array 'Token Index': expected rows of the recording's ", count, " tokens, found ",
        row, ".");
    }
  }

  Places PlacesOf(std::size_t head, std::int64_t tokens) const
  {
    const std::size_t count = tokens;
    Places places{ std::vector<std::int32_t>(count, Absent),
      std::vector<std::int32_t>(count, Absent) };
    const std::vector<vtkIdType>& rows = this->heads[head].rows;
    for (std::size_t i = rows.size(); i-- > 0;) // the first of a token counts
    {
      const std::size_t row = rows[i];
      const std::size_t at = this->token[row];
      (this->kind[row] == 0 ? places.query : places.key)[at] = static_cast<std::int32_t>(i);
    }
    return places;
  }
};

/// The tokens whose queries have lines; all if none is selected.
std::vector<bool> SelectedOf(const std::vector<vtkIdType>& selected, std::int64_t tokens)
{
  std::vector<bool> isSelected(tokens, selected.empty());
  for (const vtkIdType row : selected)
  {
    atlas::ThrowIf<atlas::OptionError>(row < 0 || row >= tokens,
      "SelectedTokens: expected tokens from 0 to ", tokens - 1, ", found ", row, ".");
    isSelected[row] = true;
  }
  return isSelected;
}

/// What has to be evaluated, and how.
struct Work
{
  const atlas::Recording& recording;
  Embedding embedding;
  atlas::StrongestKeysOptions options;
  std::vector<bool> isSelected;
  std::vector<Places> places; ///< of each head
  std::vector<Block> blocks;

  Work(vtkDataSet* input, const atlas::Recording& source, const std::vector<vtkIdType>& selected,
    const atlas::StrongestKeysOptions& given)
    : recording(source)
    , embedding(input, source)
    , options(given)
    , isSelected(SelectedOf(selected, source.tokens.Count()))
  {
    for (std::size_t h = 0; h < this->embedding.heads.size(); ++h)
    {
      this->places.push_back(this->embedding.PlacesOf(h, source.tokens.Count()));
      this->AddBlocks(h);
    }
  }

  /// Throws if the most lines that there can be do not fit into memory.
  void RequireMemory(vtkDataSet* input) const
  {
    double lines = 0;
    for (const Block& block : this->blocks)
    {
      const auto length = static_cast<double>(this->recording.SequenceLength(block.sequence));
      lines += static_cast<double>(block.end - block.begin) *
               std::min(length, static_cast<double>(this->options.top));
    }
    const auto all = static_cast<double>(input->GetNumberOfPoints());
    const double bytesPerPoint = 1024. * static_cast<double>(input->GetActualMemorySize()) / all;
    const double bytesPerLine = sizeof(Line) + 5. * sizeof(vtkIdType) + 3 * sizeof(float);
    AttentionAtlas::RequireMemory(
      lines * bytesPerLine + std::min(2 * lines, all) * (bytesPerPoint + 2 * sizeof(vtkIdType)),
      "up to " + std::to_string(static_cast<std::int64_t>(lines)) + " lines",
      "select tokens, or show fewer heads.");
  }

  /// The first block that a step from `begin` on leaves to the next.
  std::size_t EndOfStep(std::size_t begin) const
  {
    std::size_t end = begin;
    for (std::int64_t weights = 0; end < this->blocks.size() && weights < WeightsPerStep; ++end)
    {
      weights +=
        atlas::QueriesPerBlock * this->recording.SequenceLength(this->blocks[end].sequence);
    }
    return end;
  }

  /// The lines of a block; the last two arguments are working memory.
  std::vector<Line> LinesOf(
    const Block& block, std::vector<float>& weights, std::vector<atlas::AttentionLink>& links) const
  {
    const HeadRows& head = this->embedding.heads[block.head];
    const Places& at = this->places[block.head];
    links.clear();
    atlas::AppendStrongestKeys(this->recording, block.sequence, head.layer, head.head, block.begin,
      block.end, this->options, weights, links);
    const std::int64_t first = this->recording.sequenceOffsets[block.sequence];
    std::vector<Line> lines;
    for (const atlas::AttentionLink& link : links)
    {
      const std::size_t row = first + link.query;
      const std::int32_t query = this->isSelected[row] ? at.query[row] : Absent;
      const std::int32_t key = at.key[first + link.key];
      if (query != Absent && key != Absent)
      {
        lines.push_back({ head.rows[query], head.rows[key], link.weight });
      }
    }
    return lines;
  }

private:
  /// Adds the blocks of a head with a query that is there and selected.
  void AddBlocks(std::size_t head)
  {
    const auto isWanted = [&](std::int64_t i)
    {
      const std::size_t row = i;
      return this->isSelected[row] && this->places[head].query[row] != Absent;
    };
    for (std::int64_t s = 0; s < this->recording.SequenceCount(); ++s)
    {
      const std::int64_t first = this->recording.sequenceOffsets[s];
      const std::int64_t length = this->recording.SequenceLength(s);
      for (std::int64_t begin = 0; begin < length; begin += atlas::QueriesPerBlock)
      {
        const std::int64_t end = std::min(begin + atlas::QueriesPerBlock, length);
        std::int64_t wanted = begin;
        while (wanted < end && !isWanted(first + wanted))
        {
          ++wanted;
        }
        if (wanted < end)
        {
          this->blocks.push_back({ head, s, begin, end });
        }
      }
    }
  }
};

/// Copies the points that lines use, in their order, and numbers the ends of the lines anew.
void AddPoints(vtkDataSet* input, std::vector<std::vector<Line>>& lines, vtkPolyData* output)
{
  std::vector<vtkIdType> number(input->GetNumberOfPoints(), -1);
  for (const std::vector<Line>& block : lines)
  {
    for (const Line& line : block)
    {
      number[line.query] = 0;
      number[line.key] = 0;
    }
  }
  vtkNew<vtkIdList> from;
  for (std::size_t i = 0; i < number.size(); ++i)
  {
    if (number[i] == 0)
    {
      number[i] = from->InsertNextId(static_cast<vtkIdType>(i));
    }
  }
  const vtkIdType count = from->GetNumberOfIds();
  vtkNew<vtkPoints> points;
  points->SetNumberOfPoints(count);
  vtkNew<vtkIdList> to;
  to->SetNumberOfIds(count);
  for (vtkIdType i = 0; i < count; ++i)
  {
    points->SetPoint(i, input->GetPoint(from->GetId(i)));
    to->SetId(i, i);
  }
  output->SetPoints(points);
  output->GetPointData()->CopyAllOn();
  output->GetPointData()->CopyAllocate(input->GetPointData(), count);
  output->GetPointData()->CopyData(input->GetPointData(), from, to);
  for (std::vector<Line>& block : lines)
  {
    for (Line& line : block)
    {
      line.query = number[line.query];
      line.key = number[line.key];
    }
  }
}

}

vtkStandardNewMacro(vtkAttentionLines);

/// The lines of each block, and what they belong to.
struct vtkAttentionLines::Lines
{
  std::vector<Block> blocks;
  std::vector<std::vector<Line>> ofBlock;
  std::vector<HeadRows> heads;
  std::vector<std::int64_t> token; ///< of each point of the input

  void Fill(vtkDataSet* input, vtkPolyData* output);
};

void vtkAttentionLines::Lines::Fill(vtkDataSet* input, vtkPolyData* output)
{
  vtkIdType count = 0;
  for (const std::vector<Line>& lines : this->ofBlock)
  {
    count += static_cast<vtkIdType>(lines.size());
  }
  const auto weight = NewArray<vtkFloatArray>(Names::Weight, count);
  const auto layer = NewArray<vtkIntArray>(Names::Layer, count);
  const auto head = NewArray<vtkIntArray>(Names::Head, count);
  const auto query = NewArray<vtkTypeInt64Array>(Names::Query, count);
  const auto key = NewArray<vtkTypeInt64Array>(Names::Key, count);
  vtkIdType i = 0;
  for (std::size_t b = 0; b < this->blocks.size(); ++b)
  {
    const HeadRows& place = this->heads[this->blocks[b].head];
    for (const Line& line : this->ofBlock[b])
    {
      weight->SetValue(i, line.weight);
      layer->SetValue(i, static_cast<int>(place.layer));
      head->SetValue(i, static_cast<int>(place.head));
      query->SetValue(i, this->token[line.query]);
      key->SetValue(i++, this->token[line.key]);
    }
  }
  AddPoints(input, this->ofBlock, output);
  vtkNew<vtkCellArray> cells;
  cells->AllocateExact(count, 2 * count);
  for (const std::vector<Line>& lines : this->ofBlock)
  {
    for (const Line& line : lines)
    {
      cells->InsertNextCell({ line.query, line.key });
    }
  }
  output->SetLines(cells);
  for (vtkDataArray* array :
    std::initializer_list<vtkDataArray*>{ weight, layer, head, query, key })
  {
    output->GetCellData()->AddArray(array);
  }
  output->GetCellData()->SetActiveScalars(Names::Weight);
  CacheRanges(output->GetCellData());
}

vtkAttentionLines::vtkAttentionLines()
  : vtkTaskAlgorithm(
      { "vtkDataSet", "vtkMultiBlockDataSet", "vtkSelection?" }, { "vtkPolyData" }, TOGETHER)
{
}

/// The tokens that are set, and those of the selected points of this rank.
std::vector<vtkIdType> vtkAttentionLines::FindSelected(const Task& task) const
{
  std::vector<vtkIdType> tokens = this->SelectedTokens;
  auto* embedding = task.Input<vtkDataSet>();
  if (!HasSelection(task) || IsEmpty(embedding))
  {
    return tokens;
  }
  vtkNew<vtkExtractSelection> extract;
  extract->SetInputDataObject(0, embedding);
  extract->SetInputDataObject(1, task.Input<vtkSelection>(2));
  extract->Update();
  auto* points = vtkDataSet::SafeDownCast(extract->GetOutputDataObject(0));
  if (points != nullptr && points->GetNumberOfPoints() > 0)
  {
    const std::vector<std::int64_t> found =
      Integers(RequireNumbers(points->GetPointData(), Names::TokenIndex, Advice));
    tokens.insert(tokens.end(), found.begin(), found.end());
  }
  return tokens;
}

/// Evaluates the blocks on several threads.
vtkAttentionLines::Lines vtkAttentionLines::FindLines(
  const Task& task, const std::vector<vtkIdType>& selected) const
{
  auto* input = task.Input<vtkDataSet>();
  const atlas::Recording recording =
    ToRecording(FindPartOf(input, task.Input<vtkMultiBlockDataSet>(1)));
  Work work(input, recording, selected, { this->Top, this->MinimumWeight });
  work.RequireMemory(input);
  Lines lines;
  lines.ofBlock.resize(work.blocks.size());
  for (std::size_t begin = 0; begin < work.blocks.size();)
  {
    const std::size_t end = work.EndOfStep(begin);
    ParallelFor(static_cast<vtkIdType>(begin), static_cast<vtkIdType>(end),
      [&](vtkIdType first, vtkIdType last)
      {
        std::vector<float> weights;
        std::vector<atlas::AttentionLink> links;
        for (std::size_t b = first; b < static_cast<std::size_t>(last); ++b)
        {
          lines.ofBlock[b] = work.LinesOf(work.blocks[b], weights, links);
        }
      });
    begin = end;
    task.Progress()(begin, work.blocks.size());
  }
  lines.blocks = std::move(work.blocks);
  lines.heads = std::move(work.embedding.heads);
  lines.token = std::move(work.embedding.token);
  return lines;
}

void vtkAttentionLines::Execute(Task& task)
{
  auto* input = task.Input<vtkDataSet>();
  // What is selected on one rank is selected on all.
  const std::vector<vtkIdType> selected = task.Ranks().Gather(this->FindSelected(task));
  auto* output = task.Output<vtkPolyData>();
  SetFormat(output, Formats::AttentionLines);
  const bool selectsNothing = HasSelection(task) && selected.empty();
  if (IsEmpty(input) || IsEmpty(task.Input<vtkMultiBlockDataSet>(1)) || selectsNothing)
  {
    return;
  }
  Lines lines = this->FindLines(task, selected);
  if (!lines.blocks.empty())
  {
    lines.Fill(input, output);
  }
}
