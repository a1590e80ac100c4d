#include "vtkActivationPatching.h"

#include "ArrayNames.h"
#include "Base/Error.h"
#include "DataFormat.h"
#include "ListArrays.h"
#include "PatchedPrompts.h"
#include "Recorder/EncodedPrompt.h"
#include "RecordingRanges.h"
#include "Run/ActivationPatching.h"
#include "Task.h"
#include "TokenNames.h"
#include "TransformerConversion.h"

#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using namespace AttentionAtlas;
using atlas::EncodedPrompt;
using atlas::OpenTransformer;

namespace
{

/// Encodes prompts as one input.
atlas::TransformerInput EncodeAll(
  const OpenTransformer& model, const std::vector<std::string>& prompts, const std::string& name)
{
  atlas::TransformerInput input;
  for (const std::string& text : prompts)
  {
    const EncodedPrompt prompt = EncodePatched(model, text, name);
    input.tokens.push_back(prompt.input.tokens.front());
    input.segments.insert(
      input.segments.end(), prompt.input.segments.begin(), prompt.input.segments.end());
  }
  return input;
}

/// A token without the spaces around it.
std::string Trimmed(const std::string& token)
{
  const std::size_t first = token.find_first_not_of(' ');
  return first == std::string::npos ? token : token.substr(first);
}

/// 0, 1 and so on, as texts.
std::vector<std::string> Numbers(std::int64_t count)
{
  std::vector<std::string> numbers;
  numbers.reserve(count);
  for (std::int64_t i = 0; i < count; ++i)
  {
    numbers.push_back(std::to_string(i));
  }
  return numbers;
}

}

vtkStandardNewMacro(vtkActivationPatching);

/// A map of effects, and what its tables and images say of it.
struct vtkActivationPatching::Map
{
  std::vector<atlas::ActivationSite> sites;
  std::int64_t layers = 0;
  bool isHead = false;
  bool hasSource = false;
  std::vector<std::string> tokens;  ///< of Prompt
  std::vector<std::string> columns; ///< of the image, as labels
  std::string target;
  std::string against;
  atlas::PatchingMap map;
  std::vector<double> effect; ///< of each site

  void FindEffects();
  void LabelColumns(const std::vector<std::string>& sourceTokens);
  void AddArrays(const std::vector<std::size_t>& rows, vtkFieldData* data) const;
  void AddFields(vtkFieldData* fields) const;
  void MakeTable(vtkTable* table) const;
  void MakeImage(vtkInformation* info) const;
};

struct vtkActivationPatching::Memory
{
  LastResult<Map> map;
};

void vtkActivationPatching::Map::FindEffects()
{
  const double range = this->hasSource ? this->map.source - this->map.prompt : 1;
  atlas::ThrowIf<atlas::OptionError>(range == 0, "expected prompts with different logits of '",
    this->target, "' and '", this->against, "', found the same difference, ", this->map.prompt,
    "; set Target or Against.");
  for (const double difference : this->map.difference)
  {
    this->effect.push_back((difference - this->map.prompt) / range);
  }
}

/// Numbers of heads, or tokens, both of them where the prompts differ.
void vtkActivationPatching::Map::LabelColumns(const std::vector<std::string>& sourceTokens)
{
  this->columns = this->isHead
                    ? Numbers(static_cast<std::int64_t>(this->sites.size()) / this->layers)
                    : this->tokens;
  for (std::size_t t = 0; !this->isHead && t < sourceTokens.size(); ++t)
  {
    if (sourceTokens[t] != this->tokens[t])
    {
      this->columns[t] += "/" + Trimmed(sourceTokens[t]);
    }
  }
}

/// Adds the arrays of these sites.
void vtkActivationPatching::Map::AddArrays(
  const std::vector<std::size_t>& rows, vtkFieldData* data) const
{
  const ListArrays arrays(rows, data);
  arrays.Int(Names::Layer, [this](std::size_t i) { return this->sites[i].layer; });
  if (this->isHead)
  {
    arrays.Int(Names::Head, [this](std::size_t i) { return this->sites[i].head; });
  }
  else
  {
    arrays.Int(Names::Position, [this](std::size_t i) { return this->sites[i].position; })
      .Text(Names::Token, [this](std::size_t i) { return this->tokens[this->sites[i].position]; });
  }
  arrays.Double(Names::LogitDifference, [this](std::size_t i) { return this->map.difference[i]; })
    .Double(Names::Effect, [this](std::size_t i) { return this->effect[i]; });
}

void vtkActivationPatching::Map::AddFields(vtkFieldData* fields) const
{
  AddField(fields, Names::Target, this->target);
  AddField(fields, Names::Against, this->against);
  AddField(fields, Names::TargetTokenId, this->map.target);
  AddField(fields, Names::AgainstTokenId, this->map.against);
  AddField(fields, Names::PromptLogitDifference, this->map.prompt);
  if (this->hasSource)
  {
    AddField(fields, Names::SourceLogitDifference, this->map.source);
  }
}

void vtkActivationPatching::Map::MakeTable(vtkTable* table) const
{
  std::vector<std::size_t> rows(this->sites.size());
  std::iota(rows.begin(), rows.end(), std::size_t{ 0 });
  this->AddArrays(rows, table->GetRowData());
  this->AddFields(table->GetFieldData());
  SetFormat(table, Formats::ActivationPatching);
}

/// Makes the part of the image that is asked for.
void vtkActivationPatching::Map::MakeImage(vtkInformation* info) const
{
  const std::vector<std::size_t> shown = BeginImage(info);
  auto* image = vtkImageData::GetData(info);
  vtkPointData* data = image->GetPointData();
  this->AddArrays(shown, data);
  data->SetActiveScalars(Names::Effect);
  vtkFieldData* fields = image->GetFieldData();
  this->AddFields(fields);
  ListArrays(this->columns, fields).Text(Names::KeyToken);
  ListArrays(Numbers(this->layers), fields).Text(Names::QueryToken);
  AddField(fields, Names::KeyTitle, this->isHead ? "Head" : "Position");
  AddField(fields, Names::QueryTitle, "Layer");
  SetFormat(image, Formats::ActivationPatchingImage);
}

vtkActivationPatching::vtkActivationPatching()
  : vtkTaskAlgorithm(
      { "vtkMultiBlockDataSet" }, { "vtkTable", "vtkImageData" }, TOGETHER | WHOLE_INPUT)
  , Kept(std::make_unique<Memory>())
{
  this->SetPrompt("When John and Mary went to the store, John gave a drink to");
  this->SetPatchFrom("When Mary and John went to the store, Mary gave a drink to");
}

/// Whether there is anything to run.
bool vtkActivationPatching::IsAsked(vtkMultiBlockDataSet* model) const
{
  return !IsEmpty(model) && !this->Prompt.empty() &&
         (this->Mode != PATCH || !this->PatchFrom.empty()) &&
         (this->Mode != MEAN_OVER_PROMPTS || !this->ReferencePrompts.empty());
}

/// The columns and rows of the map; 0 if there is nothing to run, and 1 if that is an error, so
/// that something is asked for and the error reported.
std::array<int, 2> vtkActivationPatching::MapSize(vtkMultiBlockDataSet* input)
{
  if (!this->IsAsked(input))
  {
    return { 0, 0 };
  }
  try
  {
    this->Model = ToTransformer(input);
    const atlas::TransformerConfig& config = this->Model->GetModel().GetConfig();
    const std::size_t length = this->ReadPrompt(this->Prompt, "Prompt").labels.size();
    return { static_cast<int>(
               this->Site == HEAD_OUTPUT ? config.heads : static_cast<std::int64_t>(length)),
      std::max(static_cast<int>(config.layers), 1) };
  }
  catch (const std::exception&)
  {
    return { 1, 1 };
  }
}

int vtkActivationPatching::RequestInformation(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  const std::array<int, 2> size =
    this->MapSize(vtkMultiBlockDataSet::SafeDownCast(OutlineOf(this)));
  // Never an empty image: VTK would not execute this rank, for which the others would wait.
  AnnounceImage(
    std::max(size[0], 1), std::max(size[1], 1), outputVector->GetInformationObject(1), VTK_DOUBLE);
  return this->Superclass::RequestInformation(request, inputVector, outputVector);
}

atlas::PromptFormat vtkActivationPatching::Format() const
{
  return static_cast<atlas::PromptFormat>(this->PromptFormat);
}

/// The tokens of a property that is one prompt.
EncodedPrompt vtkActivationPatching::ReadPrompt(const std::string& text, const char* name) const
{
  return ReadPatched(*this->Model, text, this->Format(), name);
}

atlas::PatchingOptions vtkActivationPatching::Options() const
{
  atlas::PatchingOptions options;
  options.kind = static_cast<atlas::ActivationKind>(this->Site);
  options.by = static_cast<atlas::Replacement>(this->Mode);
  options.position = this->Position;
  if (this->Mode == MEAN_OVER_PROMPTS)
  {
    const char* name = "ReferencePrompts";
    options.reference = EncodeAll(
      *this->Model, atlas::ReadPrompts(this->ReferencePrompts, this->Format(), name), name);
  }
  options.target = FindToken(*this->Model, this->Target, "Target");
  options.against = FindToken(*this->Model, this->Against, "Against");
  options.threads = ThreadLimit();
  return options;
}

/// Makes the map with all ranks, of which each does a part of the runs.
vtkActivationPatching::Map vtkActivationPatching::MakeMap(
  vtkMultiBlockDataSet* input, const Task& task)
{
  this->Model = ToTransformer(input);
  const atlas::Transformer& model = this->Model->GetModel();
  const EncodedPrompt prompt = this->ReadPrompt(this->Prompt, "Prompt");
  Map found;
  found.hasSource = this->Mode == PATCH;
  EncodedPrompt source;
  if (found.hasSource)
  {
    source = this->ReadPrompt(this->PatchFrom, "PatchFrom");
    atlas::RequireSameLength(prompt.labels, source.labels);
  }
  const RankGroup& ranks = task.Ranks();
  atlas::PatchingOptions options = this->Options();
  options.part = ranks.Rank();
  options.parts = ranks.Count();
  options.progress = task.Progress();
  atlas::CheckPatching(model, prompt.input, source.input, options);
  const std::int64_t length = prompt.labels.size();
  RequireMemory(static_cast<double>(atlas::PatchingMemory(model, length, options)), "the runs",
    "give shorter prompts.");
  found.map = atlas::MapPatching(model, prompt.input, source.input, options);
  found.sites = atlas::PatchingSites(model.GetConfig(), length, options);
  found.layers = model.GetConfig().layers;
  found.isHead = this->Site == HEAD_OUTPUT;
  found.tokens = prompt.labels;
  found.LabelColumns(source.labels);
  const TokenNames names(this->Model);
  found.target = names.Of(static_cast<std::int32_t>(found.map.target));
  found.against = names.Of(static_cast<std::int32_t>(found.map.against));
  ranks.RequireSame(std::hash<std::string>()(
    std::to_string(found.map.prompt) + " " + std::to_string(found.sites.size())));
  std::vector<double>& differences = found.map.difference;
  const std::vector<double> all = ranks.Gather(differences);
  const std::size_t count = differences.size();
  std::fill(differences.begin(), differences.end(), 0);
  for (std::size_t i = 0; i < all.size(); ++i)
  {
    differences[i % count] += all[i]; // 0 but from the rank that has run it
  }
  found.FindEffects();
  return found;
}

void vtkActivationPatching::Execute(Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
  if (task.Ranks().Any(!this->IsAsked(input))) // a rank without a model has told why
  {
    return;
  }
  const Map& map = this->Kept->map.Get(
    task, MakeKey(TimeOf(input), this->GetMTime()), [&] { return this->MakeMap(input, task); });
  map.MakeImage(task.OutputInformation(1));
  if (task.IsFirst())
  {
    map.MakeTable(task.Output<vtkTable>());
  }
}
