#include "vtkBigramTable.h"

#include "ArrayNames.h"
#include "Bigrams.h"
#include "CircuitTokens.h"
#include "CircuitWeights.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "ModelSizes.h"
#include "RecordingRanges.h"
#include "Task.h"
#include "TransformerConversion.h"

#include <vtkFloatArray.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>

#include <cstdint>
#include <exception>
#include <optional>

namespace Names = AttentionAtlas::ArrayNames;
using AttentionAtlas::Task;

namespace
{

using atlas::TokenLogit;
using AttentionAtlas::AddColumn;

void Fill(const std::vector<std::int32_t>& tokens, const std::vector<TokenLogit>& found,
  const AttentionAtlas::TokenNames& names, vtkTable* table)
{
  const std::size_t top = found.size() / tokens.size();
  std::vector<std::int32_t> ids(found.size());
  std::vector<int> ranks(found.size());
  for (std::size_t i = 0; i < found.size(); ++i)
  {
    ids[i] = tokens[i / top];
    ranks[i] = static_cast<int>(i % top) + 1;
  }
  const auto nextId = [](const TokenLogit& next) { return next.id; };
  AddColumn<vtkStringArray>(
    table, Names::Token, ids, [&](std::int32_t id) { return names.Of(id); });
  AddColumn<vtkIntArray>(table, Names::TokenId, ids);
  AddColumn<vtkIntArray>(table, Names::Rank, ranks);
  AddColumn<vtkStringArray>(
    table, Names::NextToken, found, [&](const TokenLogit& next) { return names.Of(next.id); });
  AddColumn<vtkIntArray>(table, Names::NextTokenId, found, nextId);
  AddColumn<vtkFloatArray>(
    table, Names::Logit, found, [](const TokenLogit& next) { return next.logit; });
}

}

vtkStandardNewMacro(vtkBigramTable);

vtkBigramTable::vtkBigramTable()
  : vtkTaskAlgorithm({ "vtkMultiBlockDataSet" }, { "vtkTable" })
{
}

void vtkBigramTable::AddToken(const char* token)
{
  this->Tokens.emplace_back(token == nullptr ? "" : token);
  this->Modified();
}

void vtkBigramTable::ClearTokens()
{
  this->Tokens.clear();
  this->Modified();
}

void vtkBigramTable::Execute(Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
  if (AttentionAtlas::IsEmpty(input) || !task.IsFirst())
  {
    return;
  }
  const auto model = AttentionAtlas::ToTransformer(input);
  const std::vector<std::int32_t> tokens = AttentionAtlas::ChosenTokens(*model, this->Tokens);
  const std::vector<TokenLogit> found = atlas::FindBigrams(
    model->GetModel(), this->Processing, tokens, AttentionAtlas::LargestOptions(task, this->Top));
  auto* output = task.Output<vtkTable>();
  Fill(tokens, found, AttentionAtlas::TokenNames(model), output);
  std::vector<std::string> leftOut =
    atlas::LeftOutOfOutputValue(model->GetModel().GetConfig(), this->Processing);
  leftOut.emplace_back("attention and MLPs");
  AttentionAtlas::Describe(output, AttentionAtlas::Formats::BigramTable, this->Processing, leftOut);
}
