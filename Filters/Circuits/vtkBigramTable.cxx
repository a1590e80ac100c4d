#include "vtkBigramTable.h"

#include "ArrayNames.h"
#include "Circuits/Bigrams.h"
#include "Circuits/CircuitWeights.h"
#include "DataFormat.h"
#include "ListArrays.h"
#include "ModelSizes.h"
#include "RecordingRanges.h"
#include "Task.h"
#include "TransformerConversion.h"

#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>

#include <cstdint>
#include <numeric>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

namespace
{

using atlas::TokenLogit;

void Fill(const std::vector<std::int32_t>& tokens, const std::vector<TokenLogit>& found,
  const TokenNames& names, vtkTable* table)
{
  const std::size_t top = found.size() / tokens.size();
  std::vector<std::size_t> rows(found.size());
  std::iota(rows.begin(), rows.end(), std::size_t{ 0 });
  ListArrays(rows, table->GetRowData())
    .Text(Names::Token, [&](std::size_t i) { return names.Of(tokens[i / top]); })
    .Int(Names::TokenId, [&](std::size_t i) { return tokens[i / top]; })
    .Int(Names::Rank, [&](std::size_t i) { return i % top + 1; })
    .Text(Names::NextToken, [&](std::size_t i) { return names.Of(found[i].id); })
    .Int(Names::NextTokenId, [&](std::size_t i) { return found[i].id; })
    .Float(Names::Logit, [&](std::size_t i) { return found[i].logit; });
}

}

vtkStandardNewMacro(vtkBigramTable);

vtkBigramTable::vtkBigramTable()
  : vtkTaskAlgorithm({ "vtkMultiBlockDataSet" }, { "vtkTable" })
{
}

void vtkBigramTable::Execute(Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
  if (IsEmpty(input) || !task.IsFirst())
  {
    return;
  }
  const auto model = ToTransformer(input);
  const std::vector<std::int32_t> tokens = ChosenTokens(*model, this->Tokens);
  const std::vector<TokenLogit> found = atlas::FindBigrams(
    model->GetModel(), this->Processing, tokens, LargestOptions(task, this->Top));
  auto* output = task.Output<vtkTable>();
  Fill(tokens, found, TokenNames(model), output);
  std::vector<std::string> leftOut =
    atlas::LeftOutOfOutputValue(model->GetModel().GetConfig(), this->Processing);
  leftOut.emplace_back("attention and MLPs");
  Describe(output, Formats::BigramTable, this->Processing, leftOut);
}
