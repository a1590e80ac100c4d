#include "vtkSkipTrigrams.h"

#include "ArrayNames.h"
#include "CircuitWeights.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "Execution.h"
#include "ModelSizes.h"
#include "RankGroup.h"
#include "RecordingRanges.h"
#include "SkipTrigrams.h"
#include "TokenNames.h"
#include "TransformerConversion.h"

#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <numeric>

namespace Names = AttentionAtlas::ArrayNames;

vtkStandardNewMacro(vtkSkipTrigrams);

/// A model, and its skip-trigrams.
struct vtkSkipTrigrams::Work
{
  std::shared_ptr<const AttentionAtlas::OpenTransformer> model;
  std::vector<atlas::SkipTrigram> trigrams;
};

namespace
{

using atlas::SkipTrigram;
using AttentionAtlas::AddColumn;

/// The skip-trigrams of all ranks, each of which has searched a part of the sources.
std::vector<SkipTrigram> JoinRanks(
  const AttentionAtlas::RankGroup& ranks, const std::vector<SkipTrigram>& mine, int top)
{
  if (ranks.Count() == 1)
  {
    return mine;
  }
  const auto* bytes = reinterpret_cast<const char*>(mine.data());
  std::vector<SkipTrigram> all;
  for (const std::vector<char>& part :
    ranks.Share({ bytes, bytes + mine.size() * sizeof(SkipTrigram) }))
  {
    const std::size_t begin = all.size();
    all.resize(begin + part.size() / sizeof(SkipTrigram));
    std::memcpy(all.data() + begin, part.data(), part.size());
  }
  return atlas::JoinSkipTrigrams(all, top);
}

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

int vtkSkipTrigrams::FillInputPortInformation(int, vtkInformation* info)
{
  info->Set(vtkAlgorithm::INPUT_REQUIRED_DATA_TYPE(), "vtkMultiBlockDataSet");
  return 1;
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

/// Finds those of this rank's part of the sources. Returns false if the user has canceled.
bool vtkSkipTrigrams::Find(const AttentionAtlas::RankGroup& ranks, Work& work)
{
  atlas::SkipTrigramOptions options;
  options.layer = this->Layer;
  options.head = this->Head;
  options.top = this->Top;
  options.processes = this->Processing;
  options.sources = work.model->GetTokenFinder().FindAll(this->Tokens, "Tokens");
  options.threads = AttentionAtlas::ThreadLimit();
  options.part = ranks.Rank();
  options.parts = ranks.Count();
  options.progress = [this](double done) { return AttentionAtlas::ReportProgress(this, done); };
  const atlas::Transformer& model = work.model->GetModel();
  AttentionAtlas::RequireMemory(atlas::SkipTrigramBytes(model.GetConfig(), options),
    "the search for " + std::to_string(this->Top) + " skip-trigrams of " +
      std::to_string(model.GetConfig().vocabulary) + " tokens",
    "lower Top, or use a machine with more memory.");
  auto found = atlas::FindSkipTrigrams(model, options);
  if (!found)
  {
    return false;
  }
  work.trigrams = std::move(found->trigrams);
  return true;
}

int vtkSkipTrigrams::RequestData(
  vtkInformation*, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  auto* input = vtkMultiBlockDataSet::GetData(inputVector[0]);
  vtkTable* output = vtkTable::GetData(outputVector);
  output->Initialize();
  const AttentionAtlas::RankGroup ranks(outputVector);
  if (ranks.Any(AttentionAtlas::IsEmpty(input))) // a rank without one has told why
  {
    return 1;
  }
  AttentionAtlas::RankResult result;
  Work work;
  try
  {
    work.model = AttentionAtlas::ToTransformer(input);
    result.cancelled = !this->Find(ranks, work);
  }
  catch (const std::exception& e)
  {
    result.error = e.what();
  }
  try
  {
    if (!ranks.Agree(result))
    {
      return AttentionAtlas::LeaveUnfinished(this, outputVector);
    }
    const std::vector<SkipTrigram> all = JoinRanks(ranks, work.trigrams, this->Top);
    if (ranks.Rank() == 0)
    {
      std::vector<int> numbers(all.size());
      std::iota(numbers.begin(), numbers.end(), 1);
      AddColumn<vtkIntArray>(output, Names::Rank, numbers);
      AddTokens(all, AttentionAtlas::TokenNames(work.model), output);
      AddNumbers(all, output);
      for (const auto& [name, number] :
        { std::pair(Names::Layer, this->Layer), std::pair(Names::Head, this->Head) })
      {
        AddColumn<vtkIntArray>(output, name, std::vector<int>(all.size(), number));
      }
      const atlas::TransformerConfig& config = work.model->GetModel().GetConfig();
      AttentionAtlas::Describe(output, AttentionAtlas::Formats::SkipTrigrams, this->Processing,
        atlas::LeftOutOfQueryKey(config, this->Processing));
    }
  }
  catch (const std::exception& e)
  {
    if (ranks.Leave(e))
    {
      return AttentionAtlas::LeaveUnfinished(this, outputVector);
    }
    output->Initialize();
    if (ranks.Rank() == 0)
    {
      vtkErrorMacro(<< e.what());
    }
  }
  return 1; // as in vtkModelAlgorithm
}

void vtkSkipTrigrams::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  os << indent << "Layer: " << this->Layer << "\n";
  os << indent << "Head: " << this->Head << "\n";
  os << indent << "Top: " << this->Top << "\n";
  os << indent << "Tokens: " << this->Tokens.size() << "\n";
  os << indent << "Processing: " << this->Processing << "\n";
}
