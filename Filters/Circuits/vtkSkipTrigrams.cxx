#include "vtkSkipTrigrams.h"

#include "ArrayNames.h"
#include "Circuits/CircuitWeights.h"
#include "Circuits/SkipTrigrams.h"
#include "DataFormat.h"
#include "ListArrays.h"
#include "ModelSizes.h"
#include "RecordingRanges.h"
#include "Task.h"
#include "TokenNames.h"
#include "TransformerConversion.h"

#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>

#include <algorithm>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;

using atlas::SkipTrigram;

vtkStandardNewMacro(vtkSkipTrigrams);

vtkSkipTrigrams::vtkSkipTrigrams()
  : vtkTaskAlgorithm({ "vtkMultiBlockDataSet" }, { "vtkTable" }, TOGETHER)
{
}

int vtkSkipTrigrams::RequestInformation(
  vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector)
{
  const ModelSizes sizes = ModelSizes::OfInput(this);
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
  options.threads = ThreadLimit();
  options.part = task.Ranks().Rank();
  options.parts = task.Ranks().Count();
  options.progress = task.Progress();
  RequireMemory(atlas::SkipTrigramBytes(model.GetConfig(), options),
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
  if (task.Ranks().Any(IsEmpty(input))) // a rank without one has told why
  {
    return;
  }
  const auto model = ToTransformer(input);
  // Each rank searches a part of the sources.
  const atlas::SkipTrigramList found = this->Find(*model, task);
  const std::vector<SkipTrigram> all =
    atlas::JoinSkipTrigrams(task.Ranks().Gather(found.trigrams), this->Top);
  if (task.Ranks().Rank() > 0)
  {
    return;
  }
  auto* output = task.Output<vtkTable>();
  const TokenNames names(model);
  ListArrays(all, output->GetRowData())
    .Int(Names::Rank, [rank = 0](const SkipTrigram&) mutable { return ++rank; })
    .Text(Names::Source, [&](const SkipTrigram& trigram) { return names.Of(trigram.source); })
    .Text(
      Names::Destination, [&](const SkipTrigram& trigram) { return names.Of(trigram.destination); })
    .Text(Names::Output, [&](const SkipTrigram& trigram) { return names.Of(trigram.output); })
    .Double(Names::Score, &SkipTrigram::score)
    .Double(Names::QueryKey, &SkipTrigram::queryKey)
    .Double(Names::OutputValue, &SkipTrigram::outputValue)
    .Int(Names::SourceId, &SkipTrigram::source)
    .Int(Names::DestinationId, &SkipTrigram::destination)
    .Int(Names::OutputId, &SkipTrigram::output)
    .Int(Names::Layer, [this](const SkipTrigram&) { return this->Layer; })
    .Int(Names::Head, [this](const SkipTrigram&) { return this->Head; });
  AddField(output->GetFieldData(), Names::Sources,
    this->DescribeSources(model->GetModel().GetConfig().vocabulary,
      atlas::AreOfAllSources(all, this->Top, found.leftOut)));
  Describe(output, Formats::SkipTrigrams, this->Processing,
    atlas::LeftOutOfQueryKey(model->GetModel().GetConfig(), this->Processing));
}
