#include "TokenColumns.h"

#include "ArrayNames.h"
#include "ListArrays.h"
#include "TokenText.h"

#include <vtkDataSetAttributes.h>

#include <string>

namespace AttentionAtlas
{

using atlas::HeadPlace;

namespace
{

/// Adds a column with a number or text of each token, head after head.
template<class Array, class Value>
void AddOfTokens(const char* name, std::size_t heads, const std::vector<std::int64_t>& rows,
  const Value& valueOf, vtkTable* table)
{
  const auto array =
    NewArray<Array>(name, static_cast<vtkIdType>(heads) * static_cast<vtkIdType>(rows.size()));
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

std::vector<HeadPlace> HeadsOf(const atlas::Recording& recording)
{
  std::vector<HeadPlace> heads;
  for (const atlas::RecordedLayer& layer : recording.layers)
  {
    for (std::size_t h = 0; h < layer.heads.size(); ++h)
    {
      heads.push_back({ layer.index, static_cast<std::int32_t>(h) });
    }
  }
  return heads;
}

void AddHeadColumns(const std::vector<HeadPlace>& heads, vtkTable* table)
{
  ListArrays(heads, table->GetRowData())
    .Int(ArrayNames::Layer, &HeadPlace::layer)
    .Int(ArrayNames::Head, &HeadPlace::head);
}

void AddTokenColumns(const atlas::Recording& recording, const std::vector<HeadPlace>& heads,
  const std::vector<std::int64_t>& rows, vtkTable* table)
{
  const atlas::RecordedTokens& tokens = recording.tokens;
  const auto ofHead = [&](const char* name, std::int32_t HeadPlace::* number)
  {
    AddOfTokens<vtkIntArray>(
      name, heads.size(), rows, [&](std::size_t h, std::size_t) { return heads[h].*number; },
      table);
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
