#include "vtkScoreParts.h"

#include "ArrayNames.h"
#include "CorpusConversion.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "ScoreParts.h"
#include "Task.h"

#include <vtkCellArray.h>
#include <vtkDoubleArray.h>
#include <vtkIdTypeArray.h>
#include <vtkIntArray.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>
#include <vtkTable.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using AttentionAtlas::AddColumn;

namespace
{

/// A token at an end of a part.
struct EndRow
{
  int part;
  int kind;
  const char* end;
  int rank;
  double coordinate;
  const atlas::CorpusSample* sample;
};

/// The tokens at both ends of a part.
void AddEnds(const atlas::CorpusStatistics& statistics, const Eigen::MatrixXd& coordinates,
  int kind, int part, int most, std::vector<EndRow>& rows)
{
  std::vector<Eigen::Index> order(statistics.samples.size());
  std::iota(order.begin(), order.end(), Eigen::Index{ 0 });
  std::sort(order.begin(), order.end(),
    [&](Eigen::Index a, Eigen::Index b)
    {
      const double ofA = coordinates(a, part);
      const double ofB = coordinates(b, part);
      return ofA != ofB ? ofA > ofB : a < b;
    });
  for (const char* end : { "Highest", "Lowest" })
  {
    const auto count = std::min(order.size(), static_cast<std::size_t>(most));
    for (std::size_t i = 0; i < count; ++i)
    {
      rows.push_back({ part + 1, kind, end, static_cast<int>(i) + 1, coordinates(order[i], part),
        &statistics.samples[order[i]] });
    }
    std::reverse(order.begin(), order.end());
  }
}

}

vtkStandardNewMacro(vtkScoreParts);

vtkScoreParts::vtkScoreParts()
  : vtkCorpusAlgorithm({ "vtkTable", "vtkTable", "vtkPolyData" })
{
}

void vtkScoreParts::Show(const atlas::CorpusStatistics& statistics, AttentionAtlas::Task& task)
{
  const std::size_t head = atlas::FindCorpusHead(statistics, this->Layer, this->Head);
  const atlas::ScoreParts found =
    atlas::FindScoreParts(statistics, this->Layer, this->Head, this->Parts);
  const std::vector<atlas::ScorePart>& parts = found.parts;

  auto* table = task.Output<vtkTable>(0);
  double sum = 0;
  std::vector<double> cumulative;
  std::vector<int> numbers;
  for (const atlas::ScorePart& part : parts)
  {
    sum += part.variance / found.variance;
    cumulative.push_back(sum);
    numbers.push_back(static_cast<int>(numbers.size()) + 1);
  }
  AddColumn<vtkIntArray>(table, Names::Part, numbers);
  AddColumn<vtkDoubleArray>(
    table, Names::Strength, parts, [](const atlas::ScorePart& part) { return part.strength; });
  AddColumn<vtkDoubleArray>(
    table, Names::Variance, parts, [](const atlas::ScorePart& part) { return part.variance; });
  AddColumn<vtkDoubleArray>(table, Names::Share, parts,
    [&](const atlas::ScorePart& part) { return part.variance / found.variance; });
  AddColumn<vtkDoubleArray>(table, Names::Cumulative, cumulative);
  AttentionAtlas::AddField(table->GetFieldData(), Names::Variance, found.variance);
  AttentionAtlas::SetFormat(table, AttentionAtlas::Formats::ScoreParts);

  const std::array<Eigen::MatrixXd, 2> coordinates = { atlas::CoordinatesOf(
                                                         statistics, head, found, false),
    atlas::CoordinatesOf(statistics, head, found, true) };
  std::vector<EndRow> rows;
  for (int part = 0; part < static_cast<int>(parts.size()); ++part)
  {
    for (const int kind : { 0, 1 })
    {
      AddEnds(statistics, coordinates.at(kind), kind, part, this->Ends, rows);
    }
  }
  const auto textOf = [&](const atlas::CorpusSample* sample)
  {
    return AttentionAtlas::KindText(
      statistics, AttentionAtlas::FindKind(statistics, sample->token));
  };
  auto* ends = task.Output<vtkTable>(1);
  AddColumn<vtkIntArray>(ends, Names::Part, rows, [](const EndRow& row) { return row.part; });
  AddColumn<vtkIntArray>(ends, Names::Kind, rows, [](const EndRow& row) { return row.kind; });
  AddColumn<vtkStringArray>(ends, Names::End, rows, [](const EndRow& row) { return row.end; });
  AddColumn<vtkIntArray>(ends, Names::Rank, rows, [](const EndRow& row) { return row.rank; });
  AddColumn<vtkDoubleArray>(
    ends, Names::Coordinate, rows, [](const EndRow& row) { return row.coordinate; });
  AddColumn<vtkStringArray>(
    ends, Names::Token, rows, [&](const EndRow& row) { return textOf(row.sample); });
  AddColumn<vtkIntArray>(
    ends, Names::TokenId, rows, [](const EndRow& row) { return row.sample->token; });
  AddColumn<vtkIdTypeArray>(ends, Names::Document, rows,
    [](const EndRow& row) { return static_cast<vtkIdType>(row.sample->document); });
  AddColumn<vtkIdTypeArray>(ends, Names::Position, rows,
    [](const EndRow& row) { return static_cast<vtkIdType>(row.sample->position); });
  AttentionAtlas::SetFormat(ends, AttentionAtlas::Formats::ScorePartEnds);

  auto* output = task.Output<vtkPolyData>(2);
  vtkNew<vtkPoints> points;
  vtkNew<vtkCellArray> vertices;
  std::vector<EndRow> drawn;
  for (const int kind : { 0, 1 })
  {
    for (Eigen::Index s = 0; s < coordinates.at(kind).rows(); ++s)
    {
      std::array<double, 3> place = { 0, 0, 0 };
      for (std::size_t r = 0; r < std::min<std::size_t>(3, parts.size()); ++r)
      {
        place.at(r) =
          coordinates.at(kind)(s, static_cast<Eigen::Index>(r)) * std::sqrt(parts[r].strength);
      }
      const vtkIdType point = points->InsertNextPoint(place.data());
      vertices->InsertNextCell(1, &point);
      drawn.push_back({ 0, kind, "", 0, 0, &statistics.samples[s] });
    }
  }
  output->SetPoints(points);
  output->SetVerts(vertices);
  vtkPointData* data = output->GetPointData();
  data->AddArray(AttentionAtlas::MakeArray<vtkIntArray>(
    Names::Kind, drawn, [](const EndRow& row) { return row.kind; }));
  data->AddArray(AttentionAtlas::MakeArray<vtkStringArray>(
    Names::Token, drawn, [&](const EndRow& row) { return textOf(row.sample); }));
  data->AddArray(AttentionAtlas::MakeArray<vtkIntArray>(
    Names::TokenId, drawn, [](const EndRow& row) { return row.sample->token; }));
  data->AddArray(AttentionAtlas::MakeArray<vtkIdTypeArray>(Names::Document, drawn,
    [](const EndRow& row) { return static_cast<vtkIdType>(row.sample->document); }));
  data->AddArray(AttentionAtlas::MakeArray<vtkIdTypeArray>(Names::Position, drawn,
    [](const EndRow& row) { return static_cast<vtkIdType>(row.sample->position); }));
  AttentionAtlas::SetFormat(output, AttentionAtlas::Formats::ScorePartPoints);
  for (vtkDataObject* one : { static_cast<vtkDataObject*>(table), static_cast<vtkDataObject*>(ends),
         static_cast<vtkDataObject*>(output) })
  {
    AttentionAtlas::AddField(one->GetFieldData(), Names::Layer, this->Layer);
    AttentionAtlas::AddField(one->GetFieldData(), Names::Head, this->Head);
  }
}
