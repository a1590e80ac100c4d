#include "TokensOfHeads.h"

#include "ArrayNames.h"
#include "Base/Error.h"
#include "Base/Joined.h"

#include <vtkIntArray.h>
#include <vtkStringArray.h>
#include <vtkTable.h>

#include <set>

namespace AttentionAtlas
{
namespace
{

template<class Array>
Array* Require(vtkTable* table, const char* name)
{
  auto* column = Array::SafeDownCast(table->GetColumnByName(name));
  if (column == nullptr)
  {
    throw atlas::OptionError(
      "Input: expected the column ", name, " of the first output of Attention Tokens, found none.");
  }
  return column;
}

}

std::vector<std::pair<int, int>> HeadsIn(vtkTable* table)
{
  std::set<std::pair<int, int>> heads;
  if (table != nullptr && table->GetNumberOfRows() > 0)
  {
    auto* layers = Require<vtkIntArray>(table, ArrayNames::Layer);
    auto* numbers = Require<vtkIntArray>(table, ArrayNames::Head);
    for (vtkIdType row = 0; row < table->GetNumberOfRows(); ++row)
    {
      heads.emplace(layers->GetValue(row), numbers->GetValue(row));
    }
  }
  return { heads.begin(), heads.end() };
}

TokensOfHeads::TokensOfHeads(vtkTable* table, const std::string& vector)
  : heads(HeadsIn(table))
{
  auto* layers = Require<vtkIntArray>(table, ArrayNames::Layer);
  auto* numbers = Require<vtkIntArray>(table, ArrayNames::Head);
  auto* vectors = Require<vtkStringArray>(table, ArrayNames::Vector);
  auto* ranks = Require<vtkIntArray>(table, ArrayNames::Rank);
  auto* tokens = Require<vtkIntArray>(table, ArrayNames::TokenId);
  auto* words = Require<vtkStringArray>(table, ArrayNames::Token);
  std::map<std::pair<int, int>, std::set<std::int32_t>> found;
  std::set<std::string> present;
  for (vtkIdType row = 0; row < table->GetNumberOfRows(); ++row)
  {
    const std::string& name = vectors->GetValue(row);
    present.insert(name);
    if (name == vector && ranks->GetValue(row) == 1)
    {
      const int id = tokens->GetValue(row);
      found[{ layers->GetValue(row), numbers->GetValue(row) }].insert(id);
      this->texts.emplace(id, words->GetValue(row));
    }
  }
  atlas::ThrowIf<atlas::OptionError>(present.count(vector) == 0,
    "Vector: expected one of those that Attention Tokens has read, ",
    atlas::Joined(present, [](const std::string& name) { return name; }), ", found ", vector, ".");
  for (const std::pair<int, int>& head : this->heads)
  {
    this->ids.emplace_back(found[head].begin(), found[head].end());
  }
}

}
