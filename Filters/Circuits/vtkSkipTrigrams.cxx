#include "vtkSkipTrigrams.h"

#include "ArrayNames.h"
#include "CircuitWeights.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "ModelSizes.h"
#include "RecordingRanges.h"
#include "SkipTrigrams.h"
#include "Task.h"
#include "TokenNames.h"
#include "TransformerConversion.h"

#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <numeric>

namespace Names = AttentionAtlas::ArrayNames;
using AttentionAtlas::Task;

vtkStandardNewMacro(vtkSkipTrigrams);

vtkSkipTrigrams::vtkSkipTrigrams()
  : vtkTaskAlgorithm({ "vtkMultiBlockDataSet" }, { "vtkTable" }, TOGETHER)
{
}

namespace
{

using atlas::SkipTrigram;
using AttentionAtlas::AddColumn;

void AddTokens(const std::vector<SkipTrigram>& trigrams, const AttentionAtlas::TokenNames& names,
  vtkTable* table)
{
  for (const auto& [name, id] : { std::pair(Names::Source, &SkipTrigram::source),
         std::pair(Names::Destination, &SkipTrigram::destination),
         std::pair(Names::Output, &SkipTrigram::output) })
  {
    AddColumn<vtkStringArray>(table, name, trigrams,
      [&names, member = id](const SkipTrigram& trigram) { return names.Of(trigram.*member); });
  }
}

void AddNumbers(const std::vector<SkipTrigram>& trigrams, vtkTable* table)
{
  for (const auto& [name, number] : { std::pair(Names::Score, &SkipTrigram::score),
         std::pair(Names::QueryKey, &SkipTrigram::queryKey),
         std::pair(Names::OutputValue, &SkipTrigram::outputValue) })
  {
    AddColumn<vtkDoubleArray>(table, name, trigrams,
      [member = number](const SkipTrigram& trigram) { return trigram.*member; });
  }
  for (const auto& [name, id] : { std::pair(Names::SourceId, &SkipTrigram::source),
         std::pair(Names::DestinationId, &SkipTrigram::destination),
         std::pair(Names::OutputId, &SkipTrigram::output) })
  {
    AddColumn<vtkIntArray>(
      table, name, trigrams, [member = id](const SkipTrigram& trigram) { return trigram.*member; });
  }
}

}

void vtkSkipTrigrams::AddToken(const char* token)
{
  this->Tokens.emplace_back(token == nullptr ? "" : token);
  this->Modified();
}

void vtkSkipTrigrams::ClearTokens()
{
  this->Tokens.clear();
  this->Modified();
}

int vtkSkipTrigrams::RequestInformation(
  vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector)
{
  const AttentionAtlas::ModelSizes sizes = AttentionAtlas::ModelSizes::OfInput(this);
  this->LayerRange[1] = std::max(0, sizes.layers - 1);
  this->HeadRange[1] = std::max(0, sizes.heads - 1);
  outputVector->GetInformationObject(0)->Set(vtkAlgorithm::CAN_HANDLE_PIECE_REQUEST(), 1);
  return 1;
}

/// Finds those of this rank's part of the sources.
atlas::SkipTrigramList vtkSkipTrigrams::Find(
  const atlas::OpenTransformer& open, const Task& task) const
{
  const atlas::Transformer& model = open.GetModel();
  atlas::SkipTrigramOptions options;
  options.layer = this->Layer;
  options.head = this->Head;
  options.top = this->Top;
  options.processes = this->Processing;
  options.most = this->Tokens.empty() ? this->SourceLimit : 0;
  options.sources = open.GetTokenFinder().FindAll(this->Tokens, "Tokens");
  options.threads = AttentionAtlas::ThreadLimit();
  options.part = task.Ranks().Rank();
  options.parts = task.Ranks().Count();
  options.progress = task.Progress();
  AttentionAtlas::RequireMemory(atlas::SkipTrigramBytes(model.GetConfig(), options),
    "the search for " + std::to_string(this->Top) + " skip-trigrams of " +
      std::to_string(model.GetConfig().vocabulary) + " tokens",
    "lower Top, or use a machine with more memory.");
  return atlas::FindSkipTrigrams(model, options);
}

/// Which tokens the list is of.
std::string vtkSkipTrigrams::DescribeSources(std::int64_t vocabulary, bool areAll) const
{
  if (!this->Tokens.empty())
  {
    const std::size_t count = this->Tokens.size();
    return count == 1 ? "the given token" : "the " + std::to_string(count) + " given tokens";
  }
  return areAll ? "all " + std::to_string(vocabulary) + " tokens"
                : "the " + std::to_string(this->SourceLimit) + " of " + std::to_string(vocabulary) +
                    " tokens with the longest keys and values";
}

void vtkSkipTrigrams::Execute(Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
  if (task.Ranks().Any(AttentionAtlas::IsEmpty(input))) // a rank without one has told why
  {
    return;
  }
  const auto model = AttentionAtlas::ToTransformer(input);
  // Each rank searches a part of the sources.
  const atlas::SkipTrigramList found = this->Find(*model, task);
  const std::vector<SkipTrigram> all =
    atlas::JoinSkipTrigrams(task.Ranks().Gather(found.trigrams), this->Top);
  if (task.Ranks().Rank() > 0)
  {
    return;
  }
  auto* output = task.Output<vtkTable>();
  std::vector<int> numbers(all.size());
  std::iota(numbers.begin(), numbers.end(), 1);
  AddColumn<vtkIntArray>(output, Names::Rank, numbers);
  AddTokens(all, AttentionAtlas::TokenNames(model), output);
  AddNumbers(all, output);
  for (const auto& [name, number] :
    { std::pair(Names::Layer, this->Layer), std::pair(Names::Head, this->Head) })
  {
    AddColumn<vtkIntArray>(output, name, std::vector<int>(all.size(), number));
  }
  AttentionAtlas::AddField(output->GetFieldData(), Names::Sources,
    this->DescribeSources(model->GetModel().GetConfig().vocabulary,
      atlas::AreOfAllSources(all, this->Top, found.leftOut)));
  AttentionAtlas::Describe(output, AttentionAtlas::Formats::SkipTrigrams, this->Processing,
    atlas::LeftOutOfQueryKey(model->GetModel().GetConfig(), this->Processing));
}
