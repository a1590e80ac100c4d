#include "TokenColumns.h"

#include "ArrayNames.h"
#include "DataFields.h"
#include "Index.h"
#include "TokenText.h"

#include <vtkDataSetAttributes.h>
#include <vtkIdTypeArray.h>

#include <string>

namespace AttentionAtlas
{
namespace
{

/// Adds a column with a number or text of each token, head after head.
template<class Array, class Value>
void AddOfTokens(const char* name, std::size_t heads, const std::vector<std::int64_t>& rows,
  const Value& valueOf, vtkTable* table)
{
  auto array = vtkSmartPointer<Array>::New();
  array->SetName(name);
  array->SetNumberOfValues(static_cast<vtkIdType>(heads) * static_cast<vtkIdType>(rows.size()));
  vtkIdType next = 0;
  for (std::size_t h = 0; h < heads; ++h)
  {
    for (std::size_t i = 0; i < rows.size(); ++i)
    {
      array->SetValue(next++, valueOf(h, i));
    }
  }
  table->AddColumn(array);
}

}

std::vector<HeadPlace> HeadsOf(
  const atlas::Recording& recording, std::int64_t layer, std::int64_t head)
{
  std::vector<HeadPlace> heads;
  const auto add = [&](const atlas::RecordedLayer& recorded)
  {
    if (head != -1)
    {
      atlas::FindHead(recording, recorded.index, head); // checks it
      heads.push_back({ recorded.index, head });
      return;
    }
    for (std::size_t h = 0; h < recorded.heads.size(); ++h)
    {
      heads.push_back({ recorded.index, static_cast<std::int64_t>(h) });
    }
  };
  if (layer != -1)
  {
    add(atlas::FindLayer(recording, layer));
    return heads;
  }
  for (const atlas::RecordedLayer& recorded : recording.layers)
  {
    add(recorded);
  }
  return heads;
}

void AddHeadColumns(const std::vector<HeadPlace>& heads, vtkTable* table)
{
  AddColumn<vtkIntArray>(table, ArrayNames::Layer, heads,
    [](const HeadPlace& place) { return static_cast<int>(place.layer); });
  AddColumn<vtkIntArray>(table, ArrayNames::Head, heads,
    [](const HeadPlace& place) { return static_cast<int>(place.head); });
}

void AddTokenColumns(const atlas::Recording& recording, const std::vector<HeadPlace>& heads,
  const std::vector<std::int64_t>& rows, vtkTable* table)
{
  const atlas::RecordedTokens& tokens = recording.tokens;
  const auto ofHead = [&](const char* name, std::int64_t HeadPlace::* number)
  {
    AddOfTokens<vtkIntArray>(
      name, heads.size(), rows,
      [&](std::size_t h, std::size_t) { return static_cast<int>(heads[h].*number); }, table);
  };
  const auto ofToken = [&](const char* name, const std::vector<std::int32_t>& list)
  {
    AddOfTokens<vtkIntArray>(
      name, heads.size(), rows, [&](std::size_t, std::size_t i) { return list[rows[i]]; }, table);
  };
  ofHead(ArrayNames::Layer, &HeadPlace::layer);
  ofHead(ArrayNames::Head, &HeadPlace::head);
  ofToken(ArrayNames::Sequence, tokens.sequence);
  ofToken(ArrayNames::Position, tokens.position);
  AddOfTokens<vtkIdTypeArray>(
    ArrayNames::TokenIndex, heads.size(), rows,
    [&](std::size_t, std::size_t i) { return static_cast<vtkIdType>(rows[i]); }, table);
  std::vector<std::string> texts;
  texts.reserve(rows.size());
  for (const std::int64_t row : rows)
  {
    texts.push_back(TokenText(recording, row));
  }
  AddOfTokens<vtkStringArray>(
    ArrayNames::Token, heads.size(), rows,
    [&](std::size_t, std::size_t i) -> const std::string& { return texts[i]; }, table);
  table->GetRowData()->SetPedigreeIds(
    table->GetRowData()->GetAbstractArray(ArrayNames::TokenIndex));
}

double TokenColumnBytes()
{
  return 4 * sizeof(int) + sizeof(vtkIdType) + sizeof(std::string);
}

}
