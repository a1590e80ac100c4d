#include "vtkActivationPatching.h"

#include "ActivationPatching.h"
#include "ArrayNames.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "EncodedPrompt.h"
#include "Error.h"
#include "Execution.h"
#include "Index.h"
#include "RankGroup.h"
#include "RecordingRanges.h"
#include "TokenNames.h"
#include "TransformerConversion.h"
#include "Utf8Text.h"

#include <vtkDoubleArray.h>
#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkTable.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace Names = AttentionAtlas::ArrayNames;
using AttentionAtlas::EncodedPrompt;
using AttentionAtlas::OpenTransformer;

namespace
{

bool IsSet(const char* text)
{
  return text != nullptr && *text != '\0';
}

/// Reads a prompt: a text or, of a model without a tokenizer, token ids.
EncodedPrompt ReadPrompt(const OpenTransformer& model, const char* text, const std::string& name)
{
  if (model.GetModel().GetConfig().input != atlas::InputKind::Tokens)
  {
    throw atlas::OptionError(name + ": expected a model of texts, found one of images.");
  }
  if (AttentionAtlas::FindTokenizer(model) != nullptr)
  {
    return AttentionAtlas::EncodePrompt(model, text, name);
  }
  try
  {
    return AttentionAtlas::ParsePrompt(model, text, name);
  }
  catch (const atlas::OptionError& e)
  {
    throw atlas::OptionError(
      std::string(e.what()) + " The model has no tokenizer, so prompts are token ids.");
  }
}

/// Reads prompts, one per line; no lines are none.
atlas::TransformerInput ReadPrompts(
  const OpenTransformer& model, const char* text, const std::string& name)
{
  atlas::TransformerInput input;
  for (const std::string& line : atlas::SplitLines(text))
  {
    const EncodedPrompt prompt = ReadPrompt(model, line.c_str(), name);
    input.tokens.push_back(prompt.input.tokens.front());
    input.segments.insert(
      input.segments.end(), prompt.input.segments.begin(), prompt.input.segments.end());
  }
  return input;
}

/// The token that a user names, if any.
std::optional<std::int64_t> FindToken(
  const OpenTransformer& model, const char* text, const std::string& name)
{
  return IsSet(text) ? std::optional<std::int64_t>(model.GetTokenFinder().Find(text, name))
                     : std::nullopt;
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
  numbers.reserve(atlas::ToIndex(count));
  for (std::int64_t i = 0; i < count; ++i)
  {
    numbers.push_back(std::to_string(i));
  }
  return numbers;
}

}

vtkStandardNewMacro(vtkActivationPatching);

/// What was asked for, and the outcome. VTK executes an image filter again for another output or
/// extent, and whenever it has failed, which not all ranks need to do; so they exchange only what
/// is new.
struct vtkActivationPatching::Work
{
  using Wanted = std::tuple<vtkMTimeType, vtkMTimeType, int, int>;

  Wanted wanted; ///< times of the filter and of its input, and the rank
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
  AttentionAtlas::RankResult result;

  void FindEffects();
  void LabelColumns(const std::vector<std::string>& sourceTokens);
  template<class Rows, class Add>
  void AddArrays(const Rows& sites, const Add& add) const;
  void AddFields(vtkFieldData* fields) const;
  void MakeTable(vtkTable* table) const;
  void MakeImage(vtkInformation* info) const;
};

void vtkActivationPatching::Work::FindEffects()
{
  const double range = this->hasSource ? this->map.source - this->map.prompt : 1;
  if (range == 0)
  {
    throw atlas::OptionError("expected prompts with different logits of '" + this->target +
                             "' and '" + this->against + "', found the same difference, " +
                             std::to_string(this->map.prompt) + "; set Target or Against.");
  }
  for (const double difference : this->map.difference)
  {
    this->effect.push_back((difference - this->map.prompt) / range);
  }
}

/// Numbers of heads, or tokens, both of them where the prompts differ.
void vtkActivationPatching::Work::LabelColumns(const std::vector<std::string>& sourceTokens)
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

/// Calls add(array) with each array of these sites.
template<class Rows, class Add>
void vtkActivationPatching::Work::AddArrays(const Rows& rows, const Add& add) const
{
  using AttentionAtlas::MakeArray;
  add(MakeArray<vtkIntArray>(
    Names::Layer, rows, [this](std::size_t i) { return static_cast<int>(this->sites[i].layer); }));
  if (this->isHead)
  {
    add(MakeArray<vtkIntArray>(
      Names::Head, rows, [this](std::size_t i) { return static_cast<int>(this->sites[i].head); }));
  }
  else
  {
    add(MakeArray<vtkIntArray>(Names::Position, rows,
      [this](std::size_t i) { return static_cast<int>(this->sites[i].position); }));
    add(MakeArray<vtkStringArray>(Names::Token, rows,
      [this](std::size_t i) { return this->tokens[atlas::ToIndex(this->sites[i].position)]; }));
  }
  add(MakeArray<vtkDoubleArray>(
    Names::LogitDifference, rows, [this](std::size_t i) { return this->map.difference[i]; }));
  add(MakeArray<vtkDoubleArray>(
    Names::Effect, rows, [this](std::size_t i) { return this->effect[i]; }));
}

void vtkActivationPatching::Work::AddFields(vtkFieldData* fields) const
{
  using AttentionAtlas::AddField;
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

void vtkActivationPatching::Work::MakeTable(vtkTable* table) const
{
  std::vector<std::size_t> rows(this->sites.size());
  std::iota(rows.begin(), rows.end(), std::size_t{ 0 });
  this->AddArrays(rows, [&](vtkAbstractArray* array) { table->AddColumn(array); });
  this->AddFields(table->GetFieldData());
  AttentionAtlas::SetFormat(table, AttentionAtlas::Formats::ActivationPatching);
}

/// Makes the part of the image that is asked for.
void vtkActivationPatching::Work::MakeImage(vtkInformation* info) const
{
  const std::vector<std::size_t> shown = AttentionAtlas::BeginImage(info);
  auto* image = vtkImageData::GetData(info);
  vtkPointData* data = image->GetPointData();
  this->AddArrays(shown, [&](vtkAbstractArray* array) { data->AddArray(array); });
  data->SetActiveScalars(Names::Effect);
  vtkFieldData* fields = image->GetFieldData();
  this->AddFields(fields);
  fields->AddArray(AttentionAtlas::MakeArray<vtkStringArray>(Names::KeyToken, this->columns));
  fields->AddArray(
    AttentionAtlas::MakeArray<vtkStringArray>(Names::QueryToken, Numbers(this->layers)));
  AttentionAtlas::AddField(
    fields, Names::KeyTitle, std::string(this->isHead ? "Head" : "Position"));
  AttentionAtlas::AddField(fields, Names::QueryTitle, std::string("Layer"));
  AttentionAtlas::SetFormat(image, AttentionAtlas::Formats::ActivationPatchingImage);
}

vtkActivationPatching::vtkActivationPatching()
  : Known(std::make_unique<Work>())
{
  this->SetNumberOfOutputPorts(2);
  this->SetPrompt("When John and Mary went to the store, John gave a drink to");
  this->SetPatchFrom("When Mary and John went to the store, Mary gave a drink to");
}

vtkActivationPatching::~vtkActivationPatching()
{
  this->SetPrompt(nullptr);
  this->SetPatchFrom(nullptr);
  this->SetReferencePrompts(nullptr);
  this->SetTarget(nullptr);
  this->SetAgainst(nullptr);
}

int vtkActivationPatching::FillInputPortInformation(int, vtkInformation* info)
{
  info->Set(vtkAlgorithm::INPUT_REQUIRED_DATA_TYPE(), "vtkMultiBlockDataSet");
  return 1;
}

int vtkActivationPatching::FillOutputPortInformation(int port, vtkInformation* info)
{
  info->Set(vtkDataObject::DATA_TYPE_NAME(), port == 0 ? "vtkTable" : "vtkImageData");
  return 1;
}

/// Whether there is anything to run.
bool vtkActivationPatching::IsAsked(vtkMultiBlockDataSet* model) const
{
  return !AttentionAtlas::IsEmpty(model) && IsSet(this->Prompt) &&
         (this->Mode != PATCH || IsSet(this->PatchFrom)) &&
         (this->Mode != MEAN_OVER_PROMPTS || IsSet(this->ReferencePrompts));
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
    this->Model = AttentionAtlas::ToTransformer(input);
    const atlas::TransformerConfig& config = this->Model->GetModel().GetConfig();
    const std::size_t length = ReadPrompt(*this->Model, this->Prompt, "Prompt").labels.size();
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
  vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector)
{
  const std::array<int, 2> size =
    this->MapSize(vtkMultiBlockDataSet::SafeDownCast(AttentionAtlas::UpdateInput(this)));
  // Never an empty image: VTK would not execute this rank, for which the others would wait.
  AttentionAtlas::AnnounceImage(
    std::max(size[0], 1), std::max(size[1], 1), outputVector->GetInformationObject(1), VTK_DOUBLE);
  outputVector->GetInformationObject(0)->Set(vtkAlgorithm::CAN_HANDLE_PIECE_REQUEST(), 1);
  return 1;
}

int vtkActivationPatching::RequestUpdateExtent(
  vtkInformation*, vtkInformationVector** inputVector, vtkInformationVector*)
{
  AttentionAtlas::KeepRequest(
    inputVector[0]->GetInformationObject(0)); // whatever part of the image
  return 1;
}

atlas::PatchingOptions vtkActivationPatching::Options() const
{
  atlas::PatchingOptions options;
  options.kind = static_cast<atlas::ActivationKind>(this->Site);
  options.by = static_cast<atlas::Replacement>(this->Mode);
  options.position = this->Position;
  if (this->Mode == MEAN_OVER_PROMPTS)
  {
    options.reference = ReadPrompts(*this->Model, this->ReferencePrompts, "ReferencePrompts");
  }
  options.target = FindToken(*this->Model, this->Target, "Target");
  options.against = FindToken(*this->Model, this->Against, "Against");
  options.threads = AttentionAtlas::ThreadLimit();
  return options;
}

/// Does the runs of this rank.
void vtkActivationPatching::RunPart(
  vtkMultiBlockDataSet* input, const AttentionAtlas::RankGroup& ranks, Work& work)
{
  this->Model = AttentionAtlas::ToTransformer(input);
  const atlas::Transformer& model = this->Model->GetModel();
  const EncodedPrompt prompt = ReadPrompt(*this->Model, this->Prompt, "Prompt");
  work.hasSource = this->Mode == PATCH;
  EncodedPrompt source;
  if (work.hasSource)
  {
    source = ReadPrompt(*this->Model, this->PatchFrom, "PatchFrom");
    atlas::RequireSameLength(prompt.labels, source.labels);
  }
  atlas::PatchingOptions options = this->Options();
  options.part = ranks.Rank();
  options.parts = ranks.Count();
  options.progress = [this](double done) { return AttentionAtlas::ReportProgress(this, done); };
  atlas::CheckPatching(model, prompt.input, source.input, options);
  const auto length = static_cast<std::int64_t>(prompt.labels.size());
  AttentionAtlas::RequireMemory(static_cast<double>(atlas::PatchingMemory(model, length, options)),
    "the runs", "give shorter prompts.");
  std::optional<atlas::PatchingMap> map =
    atlas::MapPatching(model, prompt.input, source.input, options);
  work.result.cancelled = !map;
  if (!map)
  {
    return;
  }
  work.map = std::move(*map);
  work.sites = atlas::PatchingSites(model.GetConfig(), length, options);
  work.layers = model.GetConfig().layers;
  work.isHead = this->Site == HEAD_OUTPUT;
  work.tokens = prompt.labels;
  work.LabelColumns(source.labels);
  const AttentionAtlas::TokenNames names(this->Model);
  work.target = names.Of(static_cast<std::int32_t>(work.map.target));
  work.against = names.Of(static_cast<std::int32_t>(work.map.against));
  work.result.input = std::hash<std::string>()(
    std::to_string(work.map.prompt) + " " + std::to_string(work.sites.size()));
}

/// Makes the map unless it is known, with all ranks. Returns false if the user has canceled.
bool vtkActivationPatching::MakeMap(
  vtkMultiBlockDataSet* input, const AttentionAtlas::RankGroup& ranks)
{
  auto work = std::make_unique<Work>();
  work->wanted = { this->GetMTime(), AttentionAtlas::TimeOf(input), ranks.Rank(), ranks.Count() };
  if (this->Known->wanted == work->wanted)
  {
    return true;
  }
  try
  {
    this->RunPart(input, ranks, *work);
  }
  catch (const std::exception& e)
  {
    work->result.error = e.what();
  }
  try
  {
    if (!ranks.Agree(work->result))
    {
      return false;
    }
    const std::vector<double> all = ranks.Gather(work->map.difference);
    const std::size_t count = work->map.difference.size();
    const auto parts = static_cast<std::size_t>(ranks.Count());
    for (std::size_t i = 0; i < count; ++i)
    {
      work->map.difference[i] = all[i % parts * count + i];
    }
    work->FindEffects();
  }
  catch (const std::exception& e)
  {
    if (ranks.Leave(e))
    {
      return false;
    }
    work->result.error = e.what();
  }
  this->Known = std::move(work);
  return true;
}

int vtkActivationPatching::RequestData(
  vtkInformation*, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  auto* input = vtkMultiBlockDataSet::GetData(inputVector[0]);
  vtkTable* table = vtkTable::GetData(outputVector, 0);
  auto* image = vtkImageData::GetData(outputVector, 1);
  table->Initialize();
  image->Initialize();
  const AttentionAtlas::RankGroup ranks(outputVector);
  if (ranks.Any(!this->IsAsked(input))) // a rank without a model has told why
  {
    return 1;
  }
  if (!this->MakeMap(input, ranks))
  {
    return AttentionAtlas::LeaveUnfinished(this, outputVector);
  }
  try
  {
    if (!this->Known->result.error.empty())
    {
      throw std::runtime_error(this->Known->result.error);
    }
    this->Known->MakeImage(outputVector->GetInformationObject(1));
    if (AttentionAtlas::IsFirstPiece(outputVector))
    {
      this->Known->MakeTable(table);
    }
  }
  catch (const std::exception& e)
  {
    if (ranks.Leave(e))
    {
      return AttentionAtlas::LeaveUnfinished(this, outputVector);
    }
    table->Initialize();
    image->Initialize();
    if (ranks.Rank() == 0 && this->Errors.IsNew(this))
    {
      vtkErrorMacro(<< e.what());
    }
  }
  return 1; // as in vtkModelAlgorithm
}

void vtkActivationPatching::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  const auto print = [&](const char* name, const char* text)
  { os << indent << name << ": " << (text != nullptr ? text : "") << "\n"; };
  print("Prompt", this->Prompt);
  print("PatchFrom", this->PatchFrom);
  print("ReferencePrompts", this->ReferencePrompts);
  print("Target", this->Target);
  print("Against", this->Against);
  os << indent << "Mode: " << this->Mode << "\n";
  os << indent << "Site: " << this->Site << "\n";
  os << indent << "Position: " << this->Position << "\n";
}
