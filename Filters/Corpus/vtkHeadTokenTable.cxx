#include "vtkHeadTokenTable.h"

#include "ArrayNames.h"
#include "CorpusConversion.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "ScoreParts.h"
#include "Task.h"

#include <vtkDoubleArray.h>
#include <vtkIdTypeArray.h>
#include <vtkIntArray.h>
#include <vtkObjectFactory.h>
#include <vtkTable.h>

#include <algorithm>
#include <string>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;

namespace
{

/// A kind of token of a head.
struct Row
{
  std::int64_t kind = 0;
  std::int64_t id = 0;
  double occurrences = 0;
  double from = 0;
  double to = 0;
  double fromDistance = 0; ///< times attention
  double toDistance = 0;
};

double Ratio(double sum, double count)
{
  return count > 0 ? sum / count : 0;
}

double SortValue(const Row& row, int by)
{
  switch (by)
  {
    case vtkHeadTokenTable::FROM_TOTAL:
      return row.from;
    case vtkHeadTokenTable::TO:
      return Ratio(row.to, row.occurrences);
    case vtkHeadTokenTable::FROM:
      return Ratio(row.from, row.occurrences);
    case vtkHeadTokenTable::OCCURRENCES:
      return row.occurrences;
    default:
      return row.to;
  }
}

}

vtkStandardNewMacro(vtkHeadTokenTable);

vtkHeadTokenTable::vtkHeadTokenTable()
  : vtkCorpusAlgorithm({ "vtkTable" })
{
}

void vtkHeadTokenTable::Show(const atlas::CorpusStatistics& statistics, AttentionAtlas::Task& task)
{
  const atlas::CorpusHead& head =
    statistics.heads[atlas::FindCorpusHead(statistics, this->Layer, this->Head)];
  std::vector<Row> rows;
  for (std::size_t kind = 0; kind < statistics.ids.size(); ++kind)
  {
    if (statistics.occurrences[kind] >= this->MinimumOccurrences)
    {
      const atlas::TokenAttention& token = head.tokens[kind];
      rows.push_back({ static_cast<std::int64_t>(kind), statistics.ids[kind],
        static_cast<double>(statistics.occurrences[kind]), token.from.Value(), token.to.Value(),
        token.fromDistance.Value(), token.toDistance.Value() });
    }
  }
  std::sort(rows.begin(), rows.end(),
    [this](const Row& a, const Row& b)
    {
      const double ofA = SortValue(a, this->SortBy);
      const double ofB = SortValue(b, this->SortBy);
      return ofA != ofB ? ofA > ofB : a.id < b.id;
    });
  if (this->Top > 0 && rows.size() > static_cast<std::size_t>(this->Top))
  {
    rows.resize(this->Top);
  }
  auto* table = task.Output<vtkTable>();
  AttentionAtlas::AddColumn<vtkStringArray>(table, Names::Token, rows,
    [&](const Row& row) { return AttentionAtlas::KindText(statistics, row.kind); });
  AttentionAtlas::AddColumn<vtkIntArray>(
    table, Names::TokenId, rows, [](const Row& row) { return static_cast<int>(row.id); });
  AttentionAtlas::AddColumn<vtkIdTypeArray>(table, Names::Occurrences, rows,
    [](const Row& row) { return static_cast<vtkIdType>(row.occurrences); });
  const auto add = [&](const char* name, const auto& value)
  { AttentionAtlas::AddColumn<vtkDoubleArray>(table, name, rows, value); };
  add(Names::To, [](const Row& row) { return Ratio(row.to, row.occurrences); });
  add(Names::From, [](const Row& row) { return Ratio(row.from, row.occurrences); });
  add(Names::ToTotal, [](const Row& row) { return row.to; });
  add(Names::FromTotal, [](const Row& row) { return row.from; });
  add(Names::ToDistance, [](const Row& row) { return Ratio(row.toDistance, row.to); });
  add(Names::FromDistance, [](const Row& row) { return Ratio(row.fromDistance, row.from); });
  AttentionAtlas::AddField(table->GetFieldData(), Names::Layer, this->Layer);
  AttentionAtlas::AddField(table->GetFieldData(), Names::Head, this->Head);
  AttentionAtlas::SetFormat(table, AttentionAtlas::Formats::HeadTokenTable);
}
