#include "vtkTransformerRecorder.h"

#include "Base/Error.h"
#include "Execution.h"
#include "KeptRecordings.h"
#include "Preprocessing/SoundProcessor.h"
#include "Preprocessing/VisionProcessor.h"
#include "Recorder/GeneratedText.h"
#include "Recorder/RecordInput.h"
#include "Recorder/RecorderInput.h"
#include "RecorderInterventions.h"
#include "RecordingConversion.h"
#include "RecordingRanges.h"
#include "Run/PromptMeans.h"
#include "Task.h"
#include "TransformerConversion.h"

#include <vtkDataArray.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkStreamingDemandDrivenPipeline.h>
#include <vtkTable.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

using namespace AttentionAtlas;
using SDDP = vtkStreamingDemandDrivenPipeline;

namespace
{

/// What replaces the outputs of ablated heads, by AblationType.
constexpr atlas::Replacement AblationBy[] = { atlas::Replacement::Zero,
  atlas::Replacement::MeanOverPositions, atlas::Replacement::MeanOverPrompts };

/// The arrays, selected as Core does by default.
void AddArrays(vtkDataArraySelection* selection)
{
  for (const atlas::RecordedQuantity& array : atlas::RecordedQuantities)
  {
    selection->AddArray(array.name, array.byDefault);
  }
}

/// Reads sequences from a table: the column TokenId, grouped by the column Sequence.
std::vector<std::vector<std::int64_t>> ReadTable(vtkTable* table)
{
  auto* ids = vtkDataArray::SafeDownCast(table->GetColumnByName("TokenId"));
  auto* numbers = vtkDataArray::SafeDownCast(table->GetColumnByName("Sequence"));
  if (ids == nullptr)
  {
    throw atlas::OptionError(
      "table of token ids: expected a column 'TokenId' of integers, found none.");
  }
  std::map<double, std::vector<std::int64_t>> sequences;
  for (vtkIdType i = 0; i < ids->GetNumberOfTuples(); ++i)
  {
    sequences[numbers != nullptr ? numbers->GetComponent(i, 0) : 0].push_back(
      static_cast<std::int64_t>(ids->GetComponent(i, 0)));
  }
  std::vector<std::vector<std::int64_t>> rows;
  rows.reserve(sequences.size());
  for (auto& [number, sequence] : sequences)
  {
    rows.push_back(std::move(sequence));
  }
  return rows;
}

/// The settings of the model of an input, or nullptr.
const atlas::TransformerConfig* FindConfig(vtkDataObject* input)
{
  auto* model = vtkMultiBlockDataSet::SafeDownCast(input);
  try
  {
    return IsEmpty(model) ? nullptr : &ToTransformer(model)->GetModel().GetConfig();
  }
  catch (const atlas::Error&) // an update will tell
  {
    return nullptr;
  }
}

/// The means over other prompts that interventions need, of which each rank has run a part.
std::vector<float> MeansOverRanks(const atlas::Transformer& model,
  const atlas::TransformerInput& input, const atlas::RecordOptions& options, const RankGroup& ranks)
{
  RequireMemory(static_cast<double>(atlas::PromptSumsMemory(model, input, options)),
    "the means over other prompts", "give fewer or shorter sequences.");
  const std::vector<double> mine = atlas::SumOverPrompts(model, input, options);
  const std::vector<double> all = ranks.Gather(mine);
  std::vector<double> sums(mine.size()); // of one rank each; 0 on the others
  for (std::size_t i = 0; i < all.size(); ++i)
  {
    sums[i % sums.size()] += all[i];
  }
  return atlas::MeansOverOthers(sums, atlas::SequenceLengths(model.GetConfig(), input));
}

}

vtkStandardNewMacro(vtkTransformerRecorder);

vtkTransformerRecorder::vtkTransformerRecorder()
  : vtkTaskAlgorithm({ "vtkMultiBlockDataSet", "vtkTable?" }, { "vtkMultiBlockDataSet" }, TOGETHER)
  , Kept(std::make_unique<AttentionAtlas::KeptRecordings>())
  , Generated(std::make_unique<atlas::GeneratedText>())
{
  AddArrays(this->Record);
}

int vtkTransformerRecorder::GetHasEncoder()
{
  const atlas::TransformerConfig* config = FindConfig(this->GetInputDataObject(0, 0));
  return config != nullptr && config->encoder != nullptr ? 1 : 0;
}

int vtkTransformerRecorder::GetReadsSound()
{
  const atlas::TransformerConfig* config = FindConfig(this->GetInputDataObject(0, 0));
  return config != nullptr && atlas::ReadsSound(*config) ? 1 : 0;
}

int vtkTransformerRecorder::GetReadsVideos()
{
  const atlas::TransformerConfig* config = FindConfig(this->GetInputDataObject(0, 0));
  return config != nullptr && atlas::ReadsVideos(*config) ? 1 : 0;
}

void vtkTransformerRecorder::DisableAllRecord()
{
  this->Record->RemoveAllArrays();
  AddArrays(this->Record);
  this->Record->DisableAllArrays();
}

vtkMTimeType vtkTransformerRecorder::GetMTime()
{
  return std::max(this->Superclass::GetMTime(), this->Record->GetMTime());
}

int vtkTransformerRecorder::RequestInformation(
  vtkInformation*, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  if (this->HasOwnTime(inputVector[0]->GetInformationObject(0)))
  {
    std::vector<double> times(static_cast<std::size_t>(this->GenerateTokens) + 1);
    std::iota(times.begin(), times.end(), 0.0);
    const std::array<double, 2> range = { times.front(), times.back() };
    vtkInformation* info = outputVector->GetInformationObject(0);
    info->Set(SDDP::TIME_STEPS(), times.data(), static_cast<int>(times.size()));
    info->Set(SDDP::TIME_RANGE(), range.data(), 2);
  }
  Announce(outputVector->GetInformationObject(0), this->MakeOutline());
  return 1;
}

/// Whether time steps are those of generated tokens, and not those of a model over time.
bool vtkTransformerRecorder::HasOwnTime(vtkInformation* model) const
{
  return this->GenerateTokens > 0 && model != nullptr && model->Has(SDDP::TIME_STEPS()) == 0;
}

/// The number of generated tokens to show.
std::int64_t vtkTransformerRecorder::TokensToShow(const Task& task) const
{
  vtkInformation* info = task.OutputInformation();
  if (!this->HasOwnTime(task.InputInformation()) || info->Has(SDDP::UPDATE_TIME_STEP()) == 0)
  {
    return this->GenerateTokens;
  }
  const double time = info->Get(SDDP::UPDATE_TIME_STEP());
  const double last = this->GenerateTokens;
  return std::isnan(time) ? this->GenerateTokens
                          : static_cast<std::int64_t>(std::clamp(std::floor(time), 0.0, last));
}

/// What is recorded, and how.
struct vtkTransformerRecorder::Run
{
  std::shared_ptr<const atlas::OpenTransformer> model;
  RecordingKey key;
  atlas::RecordOptions options;
  std::vector<atlas::SequenceRange> ranges; ///< of all ranks

  const atlas::Transformer& Model() const { return this->model->GetModel(); }
  const atlas::RecorderInput& Input() const { return this->key.input; }
};

/// Sends the rows of all sequences to every rank. The encoder of pictures among words has sequences
/// of its own.
void vtkTransformerRecorder::ShareRows(
  const Run& run, const RankGroup& ranks, const atlas::Recording& recording)
{
  const atlas::TransformerConfig& config = run.Model().GetConfig();
  if (config.vision == nullptr || recording.encoder == nullptr)
  {
    ranks.ShareRows(recording, run.ranges);
    return;
  }
  atlas::Recording text = recording; // shares its matrices
  text.encoder.reset();
  ranks.ShareRows(text, run.ranges);
  ranks.ShareRows(*recording.encoder, atlas::EncoderRanges(config, run.Input().input, run.ranges));
}

atlas::RecorderSources vtkTransformerRecorder::GetSources(vtkTable* table) const
{
  return { this->Prompts, this->PromptFile, this->TokenIds, this->Segments, this->Images,
    table != nullptr ? std::optional(ReadTable(table)) : std::nullopt, this->Sounds, this->Targets,
    this->AddSpecialTokens, this->MaximumLength, this->FramesPerFilm, this->FramesPerSecond,
    static_cast<atlas::PromptFormat>(this->PromptFormat),
    static_cast<atlas::PixelMaker>(this->Pixels) };
}

/// What the recording will be, without a run of the model: its tokens and sequences, and zeros in
/// place of all numbers. It is empty if there is nothing to record, or something is wrong, which
/// Execute tells. Null if it is not known, as a model may end the text that it generates early.
vtkSmartPointer<vtkMultiBlockDataSet> vtkTransformerRecorder::MakeOutline()
{
  if (this->GenerateTokens > 0)
  {
    return nullptr;
  }
  auto outline = vtkSmartPointer<vtkMultiBlockDataSet>::New();
  try
  {
    auto* input = vtkMultiBlockDataSet::SafeDownCast(OutlineOf(this));
    if (IsEmpty(input))
    {
      return outline;
    }
    const auto model = ToTransformer(input);
    const atlas::RecorderInput read =
      atlas::GatherInput(this->GetSources(vtkTable::SafeDownCast(OutlineOf(this, 1))), *model);
    if (!read.IsEmpty())
    {
      atlas::RecordOptions options = this->GetChoice(model->GetModel());
      options.sequences = { 0, 0 };
      std::string warning;
      ToDataSet(atlas::RecordInput(*model, read, options, this->RecordPictures, warning), outline);
    }
  }
  catch (const std::exception&)
  {
    outline->Initialize();
  }
  return outline;
}

/// What is recorded.
atlas::RecordOptions vtkTransformerRecorder::GetChoice(const atlas::Transformer& model) const
{
  atlas::RecordOptions options;
  for (const atlas::RecordedQuantity& array : atlas::RecordedQuantities)
  {
    options.*array.option = this->Record->ArrayIsEnabled(array.name) != 0;
  }
  atlas::LeaveOutMissing(model, options);
  options.layers.assign(this->Layers.begin(), this->Layers.end());
  options.threads = ThreadLimit();
  return options;
}

/// The options without the sequences of a rank.
atlas::RecordOptions vtkTransformerRecorder::GetOptions(
  const atlas::RecorderSources& sources, const Run& run, const Task& task) const
{
  atlas::RecordOptions options = this->GetChoice(run.Model());
  options.interventions =
    GatherInterventions({ this->Ablate, AblationBy[this->AblateTo], this->PatchFrom,
                          this->PatchSites, this->CircuitFile },
      sources, run.Input(), *run.model);
  options.progress = task.Progress();
  atlas::CheckInput(run.Model(), run.Input().input, options);
  return options;
}

/// Adds tokens to the sequences if that is asked for.
void vtkTransformerRecorder::Generate(Run& run, atlas::TextSteps& steps) const
{
  if (this->GenerateTokens == 0)
  {
    return;
  }
  atlas::ThrowIf<atlas::OptionError>(!run.options.interventions.list.empty(),
    "expected GenerateTokens or interventions (Ablate, PatchFrom, CircuitFile), found "
    "both; the unchanged model would choose the tokens.");
  atlas::GenerationOptions options;
  options.count = this->GenerateTokens;
  options.temperature = this->Temperature;
  options.topK = this->TopK;
  options.seed = static_cast<std::uint64_t>(this->Seed);
  options.ends = run.Model().GetConfig().endTokens;
  options.threads = run.options.threads;
  options.progress = run.options.progress;
  this->Generated->Extend(run.model, options, run.options, run.key.input, steps);
}

/// Records the sequences with all ranks. Users are told `warning`.
atlas::Recording vtkTransformerRecorder::RecordAll(
  const Run& run, const Task& task, std::string& warning) const
{
  const atlas::RecorderInput& input = run.Input();
  atlas::RecordOptions options = run.options;
  atlas::RequireRecordingMemory(run.Model(), input.input, options);
  if (options.interventions.NeedMeans())
  {
    options.progress = task.Progress().Part(0., 0.5);
    options.interventions.means = MeansOverRanks(run.Model(), input.input, options, task.Ranks());
    options.progress = task.Progress().Part(0.5, 1.);
  }
  atlas::Recording recording =
    atlas::RecordInput(*run.model, input, options, this->RecordPictures, warning);
  if (options.interventions.NeedSource())
  {
    recording.interventions += ": " + this->PatchFrom;
  }
  return recording;
}

/// The recording that was made before, if all ranks have it, or a new one.
atlas::Recording vtkTransformerRecorder::FindOrRecord(const Run& run, const Task& task)
{
  const RankGroup& ranks = task.Ranks();
  const KeptRecordings::Item* known = this->Kept->Find(run.key);
  if (!ranks.Any(known == nullptr))
  {
    ranks.RequireSame(known->fingerprint);
    return known->recording;
  }
  std::string warning;
  atlas::Recording recording = this->RecordAll(run, task, warning);
  const std::size_t fingerprint = ranks.Count() > 1 ? Fingerprint(run.Model(), recording) : 0;
  ranks.RequireSame(fingerprint);
  if (!warning.empty() && ranks.Rank() == 0)
  {
    vtkWarningMacro(<< warning);
  }
  ShareRows(run, ranks, recording);
  this->Kept->Keep(run.key, recording, fingerprint);
  return recording;
}

void vtkTransformerRecorder::Execute(Task& task)
{
  const RankGroup& ranks = task.Ranks();
  this->Kept->SetLimit(static_cast<std::uint64_t>(this->KeptRecordings) << 20U);
  auto* input = task.Input<vtkMultiBlockDataSet>();
  const bool hasModel = !IsEmpty(input);
  ranks.RequireSame(hasModel ? 1 : 0);
  if (!hasModel)
  {
    this->Model.reset();
    return;
  }
  Run run;
  this->Model = run.model = ToTransformer(input);
  task.Reads(this->PromptFile.c_str());
  task.Reads(this->CircuitFile.c_str());
  for (const auto* files : { &this->Images, &this->Sounds })
  {
    for (const std::string& file : *files)
    {
      task.Reads(file.c_str());
    }
  }
  const atlas::RecorderSources sources = this->GetSources(task.Input<vtkTable>(1));
  run.key = { run.model, atlas::GatherInput(sources, *run.model), {}, this->PatchFrom,
    this->RecordPictures };
  for (const std::string& warning : run.Input().warnings)
  {
    if (ranks.Rank() == 0)
    {
      vtkWarningMacro(<< warning);
    }
  }
  ranks.RequireSame(run.Input().IsEmpty() ? 0 : 1);
  if (run.Input().IsEmpty())
  {
    return;
  }
  run.options = this->GetOptions(sources, run, task);
  run.options.progress = task.Progress();
  atlas::TextSteps steps(run.Input(), this->TokensToShow(task));
  this->Generate(run, steps);
  run.ranges = atlas::SplitSequences(run.Model(), run.Input().input, ranks.Count());
  run.options.sequences = run.ranges[ranks.Rank()];
  run.key.choice = run.options;
  const atlas::Recording recording = this->FindOrRecord(run, task);
  auto* output = task.Output<vtkMultiBlockDataSet>();
  ToDataSet(steps.Of(recording), output);
  if (this->HasOwnTime(task.InputInformation()))
  {
    output->GetInformation()->Set(
      vtkDataObject::DATA_TIME_STEP(), static_cast<double>(steps.shown));
    AddLastOffsets(steps.lastOffsets, output);
  }
}
