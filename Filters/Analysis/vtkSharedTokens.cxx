#include "vtkSharedTokens.h"

#include "Analysis/AttentionTokens.h"
#include "Analysis/TokenCounts.h"
#include "ArrayNames.h"
#include "Base/Joined.h"
#include "DataFormat.h"
#include "ListArrays.h"
#include "RecordingRanges.h"
#include "Shapes.h"
#include "Task.h"
#include "Text/TokenLabel.h"
#include "TokensOfHeads.h"

#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkObjectFactory.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

bool IsEmpty(vtkTable* table)
{
  return table == nullptr || table->GetNumberOfRows() == 0;
}

/// Two heads and what they share.
struct Pair
{
  std::size_t first;
  std::size_t second;
  std::vector<std::int32_t> shared;

  int Count() const { return static_cast<int>(this->shared.size()); }
};

/// Throws unless there is enough memory for all pairs with their tokens, as numbers and as text.
void RequireMemory(const TokensOfHeads& tokens)
{
  constexpr double BytesPerToken = 16;
  constexpr double BytesPerPair = 2 * sizeof(Pair) + 5 * sizeof(int) + sizeof(std::string);
  std::vector<double> counts;
  counts.reserve(tokens.ids.size());
  for (const std::vector<std::int32_t>& ids : tokens.ids)
  {
    counts.push_back(static_cast<double>(ids.size()));
  }
  std::sort(counts.begin(), counts.end());
  const auto heads = static_cast<double>(counts.size());
  double shared = 0; // at most: of two heads, the smaller number
  for (std::size_t i = 0; i < counts.size(); ++i)
  {
    shared += counts[i] * static_cast<double>(counts.size() - 1 - i);
  }
  AttentionAtlas::RequireMemory(heads * heads / 2 * BytesPerPair + shared * BytesPerToken,
    "the shared tokens of " + std::to_string(counts.size()) + " heads",
    "read fewer layers or heads.");
}

/// The pairs of different heads.
std::vector<Pair> PairsOf(const TokensOfHeads& tokens, const atlas::Progress& progress)
{
  RequireMemory(tokens);
  std::vector<Pair> pairs;
  const std::size_t heads = tokens.heads.size();
  for (std::size_t i = 0; i < heads; ++i)
  {
    progress(i, heads);
    for (std::size_t j = i + 1; j < tokens.heads.size(); ++j)
    {
      pairs.push_back({ i, j, atlas::CommonTokens(tokens.ids[i], tokens.ids[j]) });
    }
  }
  return pairs;
}

/// An array of the heads as "layer.head".
vtkSmartPointer<vtkStringArray> NamesOf(const TokensOfHeads& tokens, const char* name)
{
  return MakeArray<vtkStringArray>(name, tokens.heads, [](const std::pair<int, int>& head)
    { return std::to_string(head.first) + "." + std::to_string(head.second); });
}

void FillImage(const TokensOfHeads& tokens, const std::vector<Pair>& pairs, vtkImageData* image)
{
  const auto count = static_cast<vtkIdType>(tokens.heads.size());
  const auto shared = NewArray<vtkIntArray>(Names::SharedTokens, count * count);
  const auto set = [&](std::size_t column, std::size_t row, int value)
  {
    const vtkIdType fromBelow = count - 1 - static_cast<vtkIdType>(row);
    shared->SetValue(fromBelow * count + static_cast<vtkIdType>(column), value);
  };
  for (std::size_t i = 0; i < tokens.heads.size(); ++i)
  {
    set(i, i, static_cast<int>(tokens.ids[i].size()));
  }
  for (const Pair& pair : pairs)
  {
    set(pair.first, pair.second, pair.Count());
    set(pair.second, pair.first, pair.Count());
  }
  const auto last = static_cast<int>(count) - 1;
  image->SetExtent(0, last, 0, last, 0, 0);
  image->SetOrigin(0, -last, 0);
  image->SetSpacing(1, 1, 1);
  image->GetPointData()->SetScalars(shared);
  vtkFieldData* fields = image->GetFieldData();
  for (const char* name : { Names::HeadName, Names::QueryToken, Names::KeyToken })
  {
    fields->AddArray(NamesOf(tokens, name));
  }
  AddField(fields, Names::QueryTitle, "Head");
  AddField(fields, Names::KeyTitle, "Head");
  SetFormat(image, Formats::SharedTokens);
}

/// The heads beside their rows.
void FillLabels(const TokensOfHeads& tokens, vtkPolyData* labels)
{
  Shapes vertices;
  const auto right = static_cast<double>(tokens.heads.size()) - 0.5;
  for (std::size_t i = 0; i < tokens.heads.size(); ++i)
  {
    vertices.AddVertex(right, -static_cast<double>(i) - 0.2);
  }
  vertices.MoveToVerts(labels);
  labels->GetPointData()->AddArray(NamesOf(tokens, Names::Token));
  SetFormat(labels, Formats::SharedTokenLabels);
}

void FillPairs(const TokensOfHeads& tokens, std::vector<Pair> pairs, vtkTable* table)
{
  std::sort(pairs.begin(), pairs.end(),
    [](const Pair& a, const Pair& b)
    {
      return std::tuple(b.Count(), a.first, a.second) < std::tuple(a.Count(), b.first, b.second);
    });
  ListArrays(pairs, table->GetRowData())
    .Int(Names::Layer, [&](const Pair& pair) { return tokens.heads[pair.first].first; })
    .Int(Names::Head, [&](const Pair& pair) { return tokens.heads[pair.first].second; })
    .Int(Names::OtherLayer, [&](const Pair& pair) { return tokens.heads[pair.second].first; })
    .Int(Names::OtherHead, [&](const Pair& pair) { return tokens.heads[pair.second].second; })
    .Int(Names::SharedTokens, [](const Pair& pair) { return pair.Count(); })
    .Text(Names::Tokens,
      [&](const Pair& pair)
      {
        return atlas::Joined(
          pair.shared, [&](std::int32_t id) { return atlas::TokenLabel(tokens.texts.at(id)); });
      });
  SetFormat(table, Formats::SharedTokenPairs);
}

}

vtkStandardNewMacro(vtkSharedTokens);

vtkSharedTokens::vtkSharedTokens()
  : vtkTaskAlgorithm({ "vtkTable" }, { "vtkImageData", "vtkTable", "vtkPolyData" })
{
}

int vtkSharedTokens::RequestInformation(
  vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector)
{
  int last = -1;
  try
  {
    auto* table = vtkTable::SafeDownCast(OutlineOf(this));
    last = static_cast<int>(HeadsIn(table).size()) - 1;
  }
  catch (const atlas::Error&)
  {
    last = 0; // so that something is asked for and the error told
  }
  vtkInformation* info = outputVector->GetInformationObject(0);
  AnnounceImage(last + 1, last + 1, info, VTK_INT);
  info->Remove(CAN_PRODUCE_SUB_EXTENT());
  return 1;
}

int vtkSharedTokens::RequestUpdateExtent(
  vtkInformation*, vtkInformationVector**, vtkInformationVector*)
{
  return 1; // the whole table
}

void vtkSharedTokens::Execute(Task& task)
{
  auto* input = task.Input<vtkTable>();
  if (IsEmpty(input))
  {
    return;
  }
  const TokensOfHeads tokens(
    input, std::string(atlas::NameOf(static_cast<atlas::HeadVector>(this->Vector))));
  std::vector<Pair> pairs = PairsOf(tokens, task.Progress());
  FillImage(tokens, pairs, task.Output<vtkImageData>());
  FillPairs(tokens, std::move(pairs), task.Output<vtkTable>(1));
  FillLabels(tokens, task.Output<vtkPolyData>(2));
}
