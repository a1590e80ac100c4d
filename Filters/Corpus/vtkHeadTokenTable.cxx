#include "vtkHeadTokenTable.h"

#include "ArrayNames.h"
#include "Corpus/ScoreParts.h"
#include "CorpusConversion.h"
#include "DataFormat.h"
#include "ListArrays.h"
#include "Task.h"
#include "TitleFields.h"

#include <vtkObjectFactory.h>

#include <algorithm>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

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

void vtkHeadTokenTable::Show(const atlas::CorpusStatistics& statistics, Task& task)
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
  const std::size_t all = rows.size();
  if (this->Top > 0 && all > static_cast<std::size_t>(this->Top))
  {
    rows.resize(this->Top);
  }
  auto* table = task.Output<vtkTable>();
  AddListed(table->GetFieldData(), rows.size(), all, "tokens");
  ListArrays(rows, table->GetRowData())
    .Text(Names::Token, [&](const Row& row) { return KindText(statistics, row.kind); })
    .Int(Names::TokenId, &Row::id)
    .Id(Names::Occurrences, &Row::occurrences)
    .Double(Names::To, [](const Row& row) { return Ratio(row.to, row.occurrences); })
    .Double(Names::From, [](const Row& row) { return Ratio(row.from, row.occurrences); })
    .Double(Names::ToTotal, &Row::to)
    .Double(Names::FromTotal, &Row::from)
    .Double(Names::ToDistance, [](const Row& row) { return Ratio(row.toDistance, row.to); })
    .Double(Names::FromDistance, [](const Row& row) { return Ratio(row.fromDistance, row.from); });
  this->AddHead(task);
  SetFormat(table, Formats::HeadTokenTable);
}
