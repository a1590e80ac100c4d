#include "vtkTokenSearch.h"

#include "ArrayNames.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "Error.h"
#include "Execution.h"
#include "MeanDistance.h"
#include "PointArrays.h"
#include "Prompts.h"
#include "RankGroup.h"
#include "TextMatcher.h"

#include <vtkCellArray.h>
#include <vtkDataSet.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>
#include <vtkStringArray.h>
#include <vtkTable.h>
#include <vtkTypeInt64Array.h>
#include <vtkUnsignedCharArray.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <exception>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace Names = AttentionAtlas::ArrayNames;

namespace
{

constexpr const char* SearchAdvice =
  "give data with tokens, such as the output of a Head Embedding.";

/// The most points of a head whose distances are all computed.
constexpr std::size_t MaximumPoints = 8192;
/// Tokens between two reports of progress, each a chance to cancel.
constexpr vtkIdType TokensPerStep = vtkIdType{ 1 } << 20;
/// Heads between two reports of progress.
constexpr std::size_t HeadsPerStep = 16;

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
std::set<HeadNumber> SplitHeads(
  const std::vector<AttentionAtlas::HeadRows>& heads, const AttentionAtlas::RankGroup& ranks)
{
  std::vector<vtkTypeInt64> mine;
  for (const AttentionAtlas::HeadRows& head : heads)
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
HeadMatches MeasureHead(
  vtkDataSet* input, const AttentionAtlas::HeadRows& head, vtkUnsignedCharArray* found)
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
std::vector<HeadMatches> GatherRows(
  const std::vector<HeadMatches>& rows, const AttentionAtlas::RankGroup& ranks)
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
void MeasureSplit(vtkDataSet* input, const std::vector<AttentionAtlas::HeadRows>& heads,
  const std::set<HeadNumber>& split, vtkUnsignedCharArray* found,
  const AttentionAtlas::RankGroup& ranks, std::vector<HeadMatches>& rows)
{
  constexpr std::size_t width = 6;
  std::vector<double> mine;
  for (const AttentionAtlas::HeadRows& head : heads)
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
  using AttentionAtlas::AddColumn;
  AddColumn<vtkIntArray>(
    table, Names::Layer, rows, [](const Row& row) { return static_cast<int>(row.layer); });
  AddColumn<vtkIntArray>(
    table, Names::Head, rows, [](const Row& row) { return static_cast<int>(row.head); });
  AddColumn<vtkTypeInt64Array>(
    table, Names::Matches, rows, [](const Row& row) { return row.matches; });
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
  vtkDataSetAttributes* arrays = AttentionAtlas::TokenAttributes(output);
  arrays->CopyAllOn();
  arrays->CopyAllocate(AttentionAtlas::TokenAttributes(input), count);
  arrays->CopyData(AttentionAtlas::TokenAttributes(input), from, to);
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

}

vtkStandardNewMacro(vtkTokenSearch);

vtkTokenSearch::vtkTokenSearch()
{
  this->SetNumberOfOutputPorts(3);
}

vtkTokenSearch::~vtkTokenSearch()
{
  this->SetText(nullptr);
}

int vtkTokenSearch::FillInputPortInformation(int, vtkInformation* info)
{
  AttentionAtlas::AcceptTokens(info);
  return 1;
}

int vtkTokenSearch::FillOutputPortInformation(int port, vtkInformation* info)
{
  info->Set(vtkDataObject::DATA_TYPE_NAME(), port == 2 ? "vtkTable" : "vtkDataObject");
  return 1;
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
  AttentionAtlas::SetOutput(outputVector, 0, input->GetClassName());
  AttentionAtlas::SetOutput(outputVector, 1, matches);
  AttentionAtlas::SetOutput(outputVector, 2, "vtkTable");
  return 1;
}

/// Marks the tokens whose texts are found. Returns false if the user has canceled.
bool vtkTokenSearch::FindTexts(vtkDataSetAttributes* arrays, vtkUnsignedCharArray* found)
{
  auto* tokens = vtkStringArray::SafeDownCast(arrays->GetAbstractArray(Names::Token));
  if (tokens == nullptr)
  {
    throw atlas::OptionError(
      std::string("input: expected an array 'Token' of texts, found none; ") + SearchAdvice);
  }
  const atlas::TextMatcher matcher(this->Text != nullptr ? this->Text : "",
    static_cast<atlas::TextMatch>(this->Match), this->CaseSensitive, "Text");
  const vtkIdType count = tokens->GetNumberOfValues();
  for (vtkIdType begin = 0; begin < count; begin += TokensPerStep)
  {
    const vtkIdType end = std::min(begin + TokensPerStep, count);
    AttentionAtlas::ParallelFor(begin, end,
      [&](vtkIdType first, vtkIdType last)
      {
        std::unordered_map<std::string_view, unsigned char> known; // tokens repeat
        for (vtkIdType i = first; i < last; ++i)
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
    if (!AttentionAtlas::ReportProgress(
          this, 0.4 * static_cast<double>(end) / static_cast<double>(count)))
    {
      return false;
    }
  }
  return true;
}

void vtkTokenSearch::FindIds(vtkDataSetAttributes* arrays, vtkUnsignedCharArray* found) const
{
  std::set<std::int64_t> wanted;
  for (const auto& line : atlas::ParseIntegerLines(this->Text != nullptr ? this->Text : "", "Text"))
  {
    wanted.insert(line.begin(), line.end());
  }
  const std::vector<std::int64_t> ids =
    AttentionAtlas::Integers(AttentionAtlas::RequireNumbers(arrays, Names::TokenId, SearchAdvice));
  for (std::size_t i = 0; i < ids.size(); ++i)
  {
    found->SetValue(static_cast<vtkIdType>(i), wanted.count(ids[i]) != 0 ? 1 : 0);
  }
}

bool vtkTokenSearch::FindTokens(vtkDataSetAttributes* arrays, vtkUnsignedCharArray* found)
{
  if (this->Match == TOKEN_ID)
  {
    this->FindIds(arrays, found);
    return true;
  }
  return this->FindTexts(arrays, found);
}

int vtkTokenSearch::RequestData(
  vtkInformation*, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  vtkDataObject* input = vtkDataObject::GetData(inputVector[0]);
  const AttentionAtlas::RankGroup ranks(outputVector);
  AttentionAtlas::RankResult result;
  vtkDataSetAttributes* arrays = AttentionAtlas::TokenAttributes(input);
  const vtkIdType count = AttentionAtlas::TokenRows(input);
  vtkNew<vtkUnsignedCharArray> found;
  found->SetName(Names::Match);
  Heads heads;
  try
  {
    found->SetNumberOfValues(count);
    if (count > 0)
    {
      heads = AttentionAtlas::HeadsOf(arrays, count);
      result.cancelled = !this->FindTokens(arrays, found);
    }
  }
  catch (const std::exception& e)
  {
    result.error = e.what();
  }
  try
  {
    if (!ranks.Agree(result))
    {
      return AttentionAtlas::LeaveUnfinished(this, outputVector);
    }
    vtkDataObject* output = vtkDataObject::GetData(outputVector, 0);
    output->ShallowCopy(input);
    AttentionAtlas::TokenAttributes(output)->AddArray(found);
    ExtractFound(output, found, vtkDataObject::GetData(outputVector, 1));
    if (!this->MeasureHeads(input, heads, found, ranks, vtkTable::GetData(outputVector, 2)))
    {
      return AttentionAtlas::LeaveUnfinished(this, outputVector);
    }
  }
  catch (const std::exception& e)
  {
    if (ranks.Leave(e))
    {
      return AttentionAtlas::LeaveUnfinished(this, outputVector);
    }
    for (int port = 0; port < 3; ++port)
    {
      vtkDataObject::GetData(outputVector, port)->Initialize();
    }
    if (ranks.Rank() == 0)
    {
      vtkErrorMacro(<< e.what());
    }
  }
  return 1; // as in vtkModelAlgorithm
}

/// Fills the table of the heads on the first rank. Returns false if the user has canceled.
bool vtkTokenSearch::MeasureHeads(vtkDataObject* input, const Heads& heads,
  vtkUnsignedCharArray* found, const AttentionAtlas::RankGroup& ranks, vtkTable* table)
{
  auto* points = vtkDataSet::SafeDownCast(input);
  const std::set<HeadNumber> split = SplitHeads(heads, ranks);
  std::vector<HeadMatches> rows(heads.size());
  AttentionAtlas::RankResult result;
  for (std::size_t begin = 0; begin < heads.size() && !result.cancelled; begin += HeadsPerStep)
  {
    const std::size_t end = std::min(begin + HeadsPerStep, heads.size());
    AttentionAtlas::ParallelFor(static_cast<vtkIdType>(begin), static_cast<vtkIdType>(end),
      [&](vtkIdType first, vtkIdType last)
      {
        for (auto h = static_cast<std::size_t>(first); h < static_cast<std::size_t>(last); ++h)
        {
          const bool isSplit = split.count({ heads[h].layer, heads[h].head }) != 0;
          rows[h] = MeasureHead(isSplit ? nullptr : points, heads[h], found);
        }
      });
    const double done = static_cast<double>(end) / static_cast<double>(heads.size());
    result.cancelled = !AttentionAtlas::ReportProgress(this, 0.4 + 0.6 * done);
  }
  if (!ranks.Agree(result))
  {
    return false;
  }
  std::vector<HeadMatches> all = GatherRows(rows, ranks);
  MeasureSplit(points, heads, split, found, ranks, all);
  std::sort(all.begin(), all.end());
  if (ranks.Rank() == 0)
  {
    FillTable(all, points != nullptr, table);
    AttentionAtlas::SetFormat(table, AttentionAtlas::Formats::TokenSearchHeads);
  }
  return true;
}

void vtkTokenSearch::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  os << indent << "Text: " << (this->Text != nullptr ? this->Text : "") << "\n";
  os << indent << "Match: " << this->Match << "\n";
  os << indent << "CaseSensitive: " << this->CaseSensitive << "\n";
}
