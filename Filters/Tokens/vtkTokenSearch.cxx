#include "vtkTokenSearch.h"

#include "ArrayNames.h"
#include "Base/Error.h"
#include "DataFormat.h"
#include "ListArrays.h"
#include "Numerics/MeanDistance.h"
#include "PointArrays.h"
#include "Task.h"
#include "Text/Prompts.h"
#include "Text/TextMatcher.h"

#include <vtkCellArray.h>
#include <vtkDataSet.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

constexpr const char* SearchAdvice =
  "give data with tokens, such as the output of a Head Embedding.";

/// The most points of a head whose distances are all computed.
constexpr std::size_t MaximumPoints = 8192;
/// Tokens between two reports of progress, each a chance to cancel.
constexpr vtkIdType TokensPerStep = vtkIdType{ 1 } << 20;
/// Heads between two reports of progress.
constexpr vtkIdType HeadsPerStep = 16;

/// A row of the table.
struct HeadMatches
{
  std::int64_t layer;
  std::int64_t head;
  std::int64_t matches;
  double spread;

  /// By spread, unknown ones last, then by layer and head.
  bool operator<(const HeadMatches& other) const
  {
    const bool known = !std::isnan(this->spread);
    const bool otherKnown = !std::isnan(other.spread);
    if (known != otherKnown || (known && this->spread != other.spread))
    {
      return known && (!otherKnown || this->spread < other.spread);
    }
    return std::pair(this->layer, this->head) < std::pair(other.layer, other.head);
  }
};

/// The points of a head, and those of them that are found.
struct HeadPoints
{
  atlas::PointList all;
  atlas::PointList found;

  void Add(const double* point, bool isFound)
  {
    this->all.Add(point);
    if (isFound)
    {
      this->found.Add(point);
    }
  }

  double Spread() const
  {
    return atlas::MeanDistance(this->found.Thinned(MaximumPoints)) /
           atlas::MeanDistance(this->all.Thinned(MaximumPoints));
  }
};

using HeadNumber = std::pair<std::int64_t, std::int64_t>;

/// The heads with points on more than one rank.
std::set<HeadNumber> SplitHeads(const std::vector<HeadRows>& heads, const RankGroup& ranks)
{
  std::vector<vtkTypeInt64> mine;
  for (const HeadRows& head : heads)
  {
    mine.push_back(head.layer);
    mine.push_back(head.head);
  }
  const std::vector<vtkTypeInt64> all = ranks.Gather(mine);
  std::set<HeadNumber> seen;
  std::set<HeadNumber> split;
  for (std::size_t i = 0; i < all.size(); i += 2)
  {
    const HeadNumber number(all[i], all[i + 1]);
    if (!seen.insert(number).second)
    {
      split.insert(number);
    }
  }
  return split;
}

/// The row of a head; without points, the spread is unknown.
HeadMatches MeasureHead(vtkDataSet* input, const HeadRows& head, vtkUnsignedCharArray* found)
{
  HeadMatches row{ head.layer, head.head, 0, std::nan("") };
  HeadPoints points;
  for (const vtkIdType i : head.rows)
  {
    row.matches += found->GetValue(i);
    if (input != nullptr)
    {
      std::array<double, 3> point;
      input->GetPoint(i, point.data());
      points.Add(point.data(), found->GetValue(i) != 0);
    }
  }
  row.spread = points.Spread();
  return row;
}

/// The rows of all ranks, one for each head.
std::vector<HeadMatches> GatherRows(const std::vector<HeadMatches>& rows, const RankGroup& ranks)
{
  std::vector<double> mine;
  for (const HeadMatches& row : rows)
  {
    mine.insert(mine.end(), { static_cast<double>(row.layer), static_cast<double>(row.head),
                              static_cast<double>(row.matches), row.spread });
  }
  const std::vector<double> all = ranks.Gather(mine);
  std::map<HeadNumber, HeadMatches> byHead;
  for (std::size_t i = 0; i < all.size(); i += 4)
  {
    const HeadMatches row{ static_cast<std::int64_t>(all[i]), static_cast<std::int64_t>(all[i + 1]),
      static_cast<std::int64_t>(all[i + 2]), all[i + 3] };
    const auto [entry, isNew] = byHead.try_emplace({ row.layer, row.head }, row);
    entry->second.matches += isNew ? 0 : row.matches;
  }
  std::vector<HeadMatches> joined;
  joined.reserve(byHead.size());
  for (const auto& entry : byHead)
  {
    joined.push_back(entry.second);
  }
  return joined;
}

/// Sets the spread of the heads whose points several ranks have, which send them.
void MeasureSplit(vtkDataSet* input, const std::vector<HeadRows>& heads,
  const std::set<HeadNumber>& split, vtkUnsignedCharArray* found, const RankGroup& ranks,
  std::vector<HeadMatches>& rows)
{
  constexpr std::size_t width = 6;
  std::vector<double> mine;
  for (const HeadRows& head : heads)
  {
    const bool isSent = input != nullptr && split.count({ head.layer, head.head }) != 0;
    for (std::size_t i = 0; isSent && i < head.rows.size(); ++i)
    {
      std::array<double, 3> point;
      input->GetPoint(head.rows[i], point.data());
      mine.insert(mine.end(), { static_cast<double>(head.layer), static_cast<double>(head.head),
                                static_cast<double>(found->GetValue(head.rows[i])) });
      mine.insert(mine.end(), point.begin(), point.end());
    }
  }
  const std::vector<double> all = ranks.Gather(mine);
  std::map<HeadNumber, HeadPoints> points;
  for (std::size_t i = 0; i < all.size(); i += width)
  {
    const HeadNumber number(
      static_cast<std::int64_t>(all[i]), static_cast<std::int64_t>(all[i + 1]));
    points[number].Add(&all[i + 3], all[i + 2] != 0);
  }
  for (HeadMatches& row : rows)
  {
    const auto ofHead = points.find({ row.layer, row.head });
    row.spread = ofHead == points.end() ? row.spread : ofHead->second.Spread();
  }
}

void FillTable(const std::vector<HeadMatches>& rows, bool hasPoints, vtkTable* table)
{
  using Row = HeadMatches;
  ListArrays(rows, table->GetRowData())
    .Int(Names::Layer, &Row::layer)
    .Int(Names::Head, &Row::head)
    .Int64(Names::Matches, &Row::matches);
  if (hasPoints)
  {
    AddColumn<vtkDoubleArray>(
      table, Names::Spread, rows, [](const Row& row) { return row.spread; });
  }
}

/// Copies the points, or rows, that are found.
void ExtractFound(vtkDataObject* input, vtkUnsignedCharArray* found, vtkDataObject* output)
{
  vtkNew<vtkIdList> from;
  for (vtkIdType i = 0; i < found->GetNumberOfValues(); ++i)
  {
    if (found->GetValue(i) != 0)
    {
      from->InsertNextId(i);
    }
  }
  const vtkIdType count = from->GetNumberOfIds();
  vtkNew<vtkIdList> to;
  to->SetNumberOfIds(count);
  for (vtkIdType i = 0; i < count; ++i)
  {
    to->SetId(i, i);
  }
  vtkDataSetAttributes* arrays = TokenAttributes(output);
  arrays->CopyAllOn();
  arrays->CopyAllocate(TokenAttributes(input), count);
  arrays->CopyData(TokenAttributes(input), from, to);
  output->GetFieldData()->ShallowCopy(input->GetFieldData());
  auto* points = vtkPolyData::SafeDownCast(output);
  if (points == nullptr)
  {
    return;
  }
  vtkNew<vtkPoints> places;
  places->SetNumberOfPoints(count);
  vtkNew<vtkCellArray> vertices;
  vertices->AllocateExact(count, count);
  for (vtkIdType i = 0; i < count; ++i)
  {
    places->SetPoint(i, vtkDataSet::SafeDownCast(input)->GetPoint(from->GetId(i)));
    vertices->InsertNextCell({ i });
  }
  points->SetPoints(places);
  points->SetVerts(vertices);
}

/// Fills the table of the heads on the first rank.
void MeasureHeads(vtkDataSet* points, const std::vector<HeadRows>& heads,
  vtkUnsignedCharArray* found, const Task& task)
{
  const std::set<HeadNumber> split = SplitHeads(heads, task.Ranks());
  std::vector<HeadMatches> rows(heads.size());
  ParallelSteps(static_cast<vtkIdType>(heads.size()), HeadsPerStep, task.Progress().Part(0.4, 1),
    [&](vtkIdType begin, vtkIdType end)
    {
      for (std::size_t h = begin; h < static_cast<std::size_t>(end); ++h)
      {
        const bool isSplit = split.count({ heads[h].layer, heads[h].head }) != 0;
        rows[h] = MeasureHead(isSplit ? nullptr : points, heads[h], found);
      }
    });
  std::vector<HeadMatches> all = GatherRows(rows, task.Ranks());
  MeasureSplit(points, heads, split, found, task.Ranks(), all);
  std::sort(all.begin(), all.end());
  if (task.Ranks().Rank() == 0)
  {
    auto* table = task.Output<vtkTable>(2);
    FillTable(all, points != nullptr, table);
    SetFormat(table, Formats::TokenSearchHeads);
  }
}

}

vtkStandardNewMacro(vtkTokenSearch);

vtkTokenSearch::vtkTokenSearch()
  : vtkTaskAlgorithm(
      { "vtkDataSet|vtkTable" }, { "vtkDataObject", "vtkDataObject", "vtkTable" }, TOGETHER)
{
}

int vtkTokenSearch::RequestDataObject(
  vtkInformation*, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  vtkDataObject* input = vtkDataObject::GetData(inputVector[0]);
  if (input == nullptr)
  {
    return 0;
  }
  const char* matches = vtkTable::SafeDownCast(input) != nullptr ? "vtkTable" : "vtkPolyData";
  MakeOutput(outputVector, 0, input->GetClassName());
  MakeOutput(outputVector, 1, matches);
  return 1;
}

void vtkTokenSearch::FindTexts(
  vtkDataSetAttributes* arrays, const Task& task, vtkUnsignedCharArray* found) const
{
  auto* tokens = vtkStringArray::SafeDownCast(arrays->GetAbstractArray(Names::Token));
  if (tokens == nullptr)
  {
    throw atlas::OptionError(
      "input: expected an array 'Token' of texts, found none; ", SearchAdvice);
  }
  const atlas::TextMatcher matcher(
    this->Text, static_cast<atlas::TextMatch>(this->Match), this->CaseSensitive, "Text");
  ParallelSteps(tokens->GetNumberOfValues(), TokensPerStep, task.Progress().Part(0, 0.4),
    [&](vtkIdType begin, vtkIdType end)
    {
      std::unordered_map<std::string_view, unsigned char> known; // tokens repeat
      for (vtkIdType i = begin; i < end; ++i)
      {
        const std::string& token = tokens->GetValue(i);
        const auto [entry, isNew] = known.try_emplace(token, 0);
        if (isNew)
        {
          entry->second = matcher.Finds(token) ? 1 : 0;
        }
        found->SetValue(i, entry->second);
      }
    });
}

void vtkTokenSearch::FindIds(vtkDataSetAttributes* arrays, vtkUnsignedCharArray* found) const
{
  std::set<std::int64_t> wanted;
  for (const auto& line : atlas::ParseIntegerLines(this->Text, "Text"))
  {
    wanted.insert(line.begin(), line.end());
  }
  const std::vector<std::int64_t> ids =
    Integers(RequireNumbers(arrays, Names::TokenId, SearchAdvice));
  for (std::size_t i = 0; i < ids.size(); ++i)
  {
    found->SetValue(static_cast<vtkIdType>(i), wanted.count(ids[i]) != 0 ? 1 : 0);
  }
}

void vtkTokenSearch::Execute(Task& task)
{
  auto* input = task.Input<vtkDataObject>();
  vtkDataSetAttributes* arrays = TokenAttributes(input);
  const vtkIdType count = TokenRows(input);
  const auto found = NewArray<vtkUnsignedCharArray>(Names::Match, count);
  std::vector<HeadRows> heads;
  if (count > 0)
  {
    heads = HeadsOf(arrays, count);
    if (this->Match == TOKEN_ID)
    {
      this->FindIds(arrays, found);
    }
    else
    {
      this->FindTexts(arrays, task, found);
    }
  }
  auto* output = task.Output<vtkDataObject>();
  output->ShallowCopy(input);
  TokenAttributes(output)->AddArray(found);
  ExtractFound(output, found, task.Output<vtkDataObject>(1));
  MeasureHeads(vtkDataSet::SafeDownCast(input), heads, found, task);
}
