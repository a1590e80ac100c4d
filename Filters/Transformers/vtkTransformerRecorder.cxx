#include "vtkTransformerRecorder.h"

#include "Error.h"
#include "Execution.h"
#include "GeneratedText.h"
#include "KeptRecordings.h"
#include "PatchColors.h"
#include "PromptMeans.h"
#include "RankGroup.h"
#include "RecordPictures.h"
#include "RecorderInput.h"
#include "RecorderInterventions.h"
#include "RecordingConversion.h"
#include "RecordingPrefix.h"
#include "Tensor.h"
#include "TransformerConversion.h"

#include <vtkDataArraySelection.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkStreamingDemandDrivenPipeline.h>
#include <vtkTable.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

using SDDP = vtkStreamingDemandDrivenPipeline;

namespace
{

/// What can be recorded, as users select it.
struct RecordArray
{
  const char* name;
  bool atlas::RecordOptions::* option;
};
constexpr std::array<RecordArray, 5> RecordArrays = { {
  { "QueriesAndKeys", &atlas::RecordOptions::queriesAndKeys },
  { "Values", &atlas::RecordOptions::values },
  { "HeadOutputs", &atlas::RecordOptions::headOutputs },
  { "Residual", &atlas::RecordOptions::residual },
  { "Logits", &atlas::RecordOptions::logits },
} };

/// What replaces the outputs of ablated heads, by AblationType.
constexpr atlas::Replacement AblationBy[] = { atlas::Replacement::Zero,
  atlas::Replacement::MeanOverPositions, atlas::Replacement::MeanOverPrompts };

/// The arrays, selected as Core does by default.
void AddArrays(vtkDataArraySelection* selection)
{
  const atlas::RecordOptions defaults;
  for (const RecordArray& array : RecordArrays)
  {
    selection->AddArray(array.name, defaults.*array.option);
  }
}

std::string Text(const char* text)
{
  return text != nullptr ? text : "";
}

/// A number that differs, almost certainly, between models: of names, types and shapes of all
/// tensors, and of the bytes of small ones and of parts of large ones. Times of files do not count,
/// since each machine may have its own copy.
std::size_t Fingerprint(const atlas::Transformer& model)
{
  constexpr std::uint64_t sample = 4096; // bytes
  std::string text = model.GetConfig().architecture;
  for (const auto& [name, tensor] : model.GetFiles().GetTensors())
  {
    text +=
      name + ' ' + std::to_string(static_cast<int>(tensor.dtype)) + atlas::ToString(tensor.shape);
    const std::uint64_t bytes = tensor.Bytes();
    const auto* data = reinterpret_cast<const char*>(tensor.data);
    const std::uint64_t part = std::min(bytes, sample);
    text.append(data, part);
    text.append(data + (bytes - part), part);
  }
  return std::hash<std::string>()(text);
}

/// A number that differs, almost certainly, between recordings of different sequences, and of
/// matrices of different shapes, whose rows ranks cannot exchange.
std::size_t Fingerprint(const atlas::Recording& recording)
{
  std::string numbers;
  for (const std::vector<std::int64_t>* list : { &recording.sequenceOffsets, &recording.tokens.id })
  {
    for (const std::int64_t number : *list)
    {
      numbers += std::to_string(number) + ' ';
    }
  }
  for (const atlas::SharedMatrix& matrix : atlas::TokenMatrices(recording))
  {
    numbers += atlas::ToString({ matrix.rows, matrix.columns });
  }
  return std::hash<std::string>()(numbers);
}

/// How images became pixel values; the usual way if the model's folder does not say.
atlas::ImageProcessor ProcessorOf(const AttentionAtlas::OpenTransformer& model)
{
  try
  {
    return model.GetImageProcessor();
  }
  catch (const atlas::Error&) // matters only to images that are read from pictures
  {
    return atlas::DefaultImageProcessor(model.GetModel().GetConfig());
  }
}

/// Records the mean colors of patches, for views that show images as points.
void AddPatchColors(const atlas::TransformerConfig& config, const atlas::ImageProcessor& processor,
  const atlas::TransformerInput& input, atlas::Recording& recording)
{
  const std::vector<float> colors =
    atlas::PatchColors(input.pixels, input.images, config, processor);
  const std::int64_t patches = config.PatchRows() * config.PatchColumns();
  atlas::RecordedTokens& tokens = recording.tokens;
  tokens.color = atlas::SharedMatrix::Zero(tokens.Count(), 3);
  for (std::int64_t i = 0; i < tokens.Count(); ++i)
  {
    const auto row = static_cast<std::size_t>(i);
    const std::int64_t patch = tokens.row[row] * config.PatchColumns() + tokens.column[row];
    const std::int64_t first = 3 * (tokens.sequence[row] * patches + patch);
    for (std::int64_t c = 0; c < 3; ++c)
    {
      tokens.color.Row(i)[c] =
        tokens.row[row] < 0 ? -1 : colors[static_cast<std::size_t>(first + c)];
    }
  }
}

/// The recording at a time step: of sequences with so many given tokens, after at most `generated`
/// others.
atlas::Recording RecordingUntil(
  const atlas::Recording& recording, const std::vector<std::int64_t>& given, std::int64_t generated)
{
  std::vector<std::int64_t> lengths;
  bool isWhole = true;
  for (std::size_t s = 0; s < given.size(); ++s)
  {
    const std::int64_t all = recording.SequenceLength(static_cast<std::int64_t>(s));
    lengths.push_back(std::min(all, given[s] + generated));
    isWhole = isWhole && lengths.back() == all;
  }
  return isWhole ? recording : atlas::FirstTokens(recording, lengths);
}

/// Where sequences begin and the last ends.
std::vector<std::int64_t> OffsetsOf(const atlas::TransformerInput& input)
{
  std::vector<std::int64_t> offsets = { 0 };
  for (const std::vector<std::int64_t>& sequence : input.tokens)
  {
    offsets.push_back(offsets.back() + static_cast<std::int64_t>(sequence.size()));
  }
  return offsets;
}

/// Cuts sequences to the time step shown if their keys are rotated otherwise by then than at the
/// end, which LongRope does: the recording at this step is not a part of that of the whole texts.
void CutToStep(const atlas::TransformerConfig& config, const std::vector<std::int64_t>& given,
  std::int64_t shown, AttentionAtlas::RecorderInput& input)
{
  const atlas::RotaryScaling& scaling = config.rotaryScaling;
  std::vector<std::string> labels;
  std::vector<std::vector<std::int64_t>> sequences;
  bool isOther = false;
  auto label = input.labels.begin();
  for (std::size_t s = 0; s < given.size(); ++s)
  {
    const std::vector<std::int64_t>& whole = input.input.tokens[s];
    const auto all = static_cast<std::int64_t>(whole.size());
    const std::int64_t length = std::min(all, given[s] + shown);
    isOther = isOther || (static_cast<double>(length) <= scaling.originalPositions &&
                           static_cast<double>(all) > scaling.originalPositions);
    sequences.emplace_back(whole.begin(), whole.begin() + length);
    if (!input.labels.empty())
    {
      labels.insert(labels.end(), label, label + length);
      label += all;
    }
  }
  if (isOther && scaling.kind == atlas::RotaryScaling::Kind::LongRope)
  {
    input.input.tokens = std::move(sequences);
    input.labels = std::move(labels);
  }
}

}

vtkStandardNewMacro(vtkTransformerRecorder);

vtkTransformerRecorder::vtkTransformerRecorder()
  : Kept(std::make_unique<AttentionAtlas::KeptRecordings>())
  , Generated(std::make_unique<AttentionAtlas::GeneratedText>())
{
  this->SetNumberOfInputPorts(2);
  AddArrays(this->Record);
}

vtkTransformerRecorder::~vtkTransformerRecorder()
{
  this->SetPrompts(nullptr);
  this->SetPromptFile(nullptr);
  this->SetTokenIds(nullptr);
  this->SetSegments(nullptr);
  this->SetAblate(nullptr);
  this->SetPatchFrom(nullptr);
  this->SetPatchSites(nullptr);
}

void vtkTransformerRecorder::AddImage(const char* fileName)
{
  if (fileName != nullptr && *fileName != '\0')
  {
    this->Images.emplace_back(fileName);
    this->Modified();
  }
}

void vtkTransformerRecorder::ClearImages()
{
  this->Images.clear();
  this->Modified();
}

void vtkTransformerRecorder::AddLayer(int layer)
{
  this->Layers.push_back(layer);
  this->Modified();
}

void vtkTransformerRecorder::ClearLayers()
{
  this->Layers.clear();
  this->Modified();
}

vtkDataArraySelection* vtkTransformerRecorder::GetRecord()
{
  return this->Record;
}

int vtkTransformerRecorder::GetNumberOfRecordArrays()
{
  return this->Record->GetNumberOfArrays();
}

const char* vtkTransformerRecorder::GetRecordArrayName(int index)
{
  return this->Record->GetArrayName(index);
}

int vtkTransformerRecorder::GetRecordArrayStatus(const char* name)
{
  return this->Record->ArrayIsEnabled(name);
}

void vtkTransformerRecorder::SetRecordArrayStatus(const char* name, int status)
{
  this->Record->SetArraySetting(name, status);
}

void vtkTransformerRecorder::DisableAllRecord()
{
  this->Record->RemoveAllArrays();
  AddArrays(this->Record);
  this->Record->DisableAllArrays();
}

vtkMTimeType vtkTransformerRecorder::GetMTime()
{
  this->Failed.Touch(this);
  return std::max(this->Superclass::GetMTime(), this->Record->GetMTime());
}

/// The files that an execution reads beside the model.
std::vector<const char*> vtkTransformerRecorder::InputFiles() const
{
  std::vector<const char*> files = { this->PromptFile };
  for (const std::string& image : this->Images)
  {
    files.push_back(image.c_str());
  }
  return files;
}

int vtkTransformerRecorder::FillInputPortInformation(int port, vtkInformation* info)
{
  const bool isTable = port == 1;
  info->Set(
    vtkAlgorithm::INPUT_REQUIRED_DATA_TYPE(), isTable ? "vtkTable" : "vtkMultiBlockDataSet");
  info->Set(vtkAlgorithm::INPUT_IS_OPTIONAL(), isTable ? 1 : 0);
  return 1;
}

int vtkTransformerRecorder::RequestInformation(
  vtkInformation*, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  if (this->HasOwnTime(inputVector))
  {
    std::vector<double> times(static_cast<std::size_t>(this->GenerateTokens) + 1);
    std::iota(times.begin(), times.end(), 0.0);
    const std::array<double, 2> range = { times.front(), times.back() };
    vtkInformation* info = outputVector->GetInformationObject(0);
    info->Set(SDDP::TIME_STEPS(), times.data(), static_cast<int>(times.size()));
    info->Set(SDDP::TIME_RANGE(), range.data(), 2);
  }
  return 1;
}

/// Whether time steps are those of generated tokens, and not those of a model over time.
bool vtkTransformerRecorder::HasOwnTime(vtkInformationVector** inputVector) const
{
  vtkInformation* model = inputVector[0]->GetInformationObject(0);
  return this->GenerateTokens > 0 && model != nullptr && model->Has(SDDP::TIME_STEPS()) == 0;
}

/// The number of generated tokens to show.
std::int64_t vtkTransformerRecorder::TokensToShow(
  vtkInformationVector** inputVector, vtkInformationVector* outputVector) const
{
  vtkInformation* info = outputVector->GetInformationObject(0);
  if (!this->HasOwnTime(inputVector) || info->Has(SDDP::UPDATE_TIME_STEP()) == 0)
  {
    return this->GenerateTokens;
  }
  const double time = info->Get(SDDP::UPDATE_TIME_STEP());
  const double last = this->GenerateTokens;
  return std::isnan(time) ? this->GenerateTokens
                          : static_cast<std::int64_t>(std::clamp(std::floor(time), 0.0, last));
}

/// The recording, of which the rows of one range are there, and the ranges of all ranks.
struct vtkTransformerRecorder::Part
{
  AttentionAtlas::RecordingKey key; ///< no model: there are no sequences
  atlas::RecordOptions options;
  std::optional<atlas::Recording> recording; ///< none: there are no sequences, or cancelled
  std::vector<atlas::SequenceRange> ranges;
  std::vector<std::int64_t> given;       ///< tokens per sequence before generation
  std::int64_t shown = 0;                ///< generated tokens to show
  std::vector<std::int64_t> lastOffsets; ///< of sequences with all generated tokens
  AttentionAtlas::RankResult result;
};

/// Records the colors of patches and the pictures of images with three channels.
void vtkTransformerRecorder::AddPictures(
  const AttentionAtlas::RecorderInput& gathered, bool isFirst, atlas::Recording& recording)
{
  const atlas::TransformerConfig& config = this->Model->GetModel().GetConfig();
  if (config.input != atlas::InputKind::Images || config.channels != 3)
  {
    return;
  }
  const atlas::ImageProcessor processor = ProcessorOf(*this->Model);
  AddPatchColors(config, processor, gathered.input, recording);
  const bool fits =
    atlas::PictureBytes(config, gathered.input.images) <= atlas::MaximumPictureBytes;
  if (this->RecordPictures && !fits && isFirst)
  {
    vtkWarningMacro(<< "the " << gathered.input.images
                    << " pictures take more than 256 MiB, so only the names of their files are "
                       "recorded.");
  }
  recording.pictures = atlas::RecordPictures(
    gathered.input.pixels, config, processor, gathered.pictures, this->RecordPictures && fits);
}

/// Reads the input and the options, and checks them.
void vtkTransformerRecorder::PreparePart(
  vtkMultiBlockDataSet* model, vtkTable* tokens, const AttentionAtlas::RankGroup& ranks, Part& part)
{
  if (model == nullptr || model->GetNumberOfBlocks() == 0)
  {
    this->Model.reset();
    return;
  }
  this->Model = AttentionAtlas::ToTransformer(model);
  const atlas::Transformer& transformer = this->Model->GetModel();
  const AttentionAtlas::RecorderSources sources = { Text(this->Prompts), Text(this->PromptFile),
    Text(this->TokenIds), Text(this->Segments), this->Images, tokens, this->AddSpecialTokens,
    this->MaximumLength };
  part.key.input = AttentionAtlas::GatherInput(sources, *this->Model);
  const AttentionAtlas::RecorderInput& gathered = part.key.input;
  for (const std::string& warning : gathered.warnings)
  {
    if (ranks.Rank() == 0)
    {
      vtkWarningMacro(<< warning);
    }
  }
  if (gathered.IsEmpty())
  {
    return;
  }
  atlas::RecordOptions& options = part.options;
  for (const RecordArray& array : RecordArrays)
  {
    options.*array.option = this->Record->ArrayIsEnabled(array.name) != 0;
  }
  options.interventions =
    AttentionAtlas::GatherInterventions({ Text(this->Ablate), AblationBy[this->AblateTo],
                                          Text(this->PatchFrom), Text(this->PatchSites) },
      sources, gathered, *this->Model);
  options.layers.assign(this->Layers.begin(), this->Layers.end());
  options.threads = AttentionAtlas::ThreadLimit();
  options.progress = [this](double done) { return AttentionAtlas::ReportProgress(this, done); };
  atlas::CheckInput(transformer, gathered.input, options);
  if (!this->Generate(part))
  {
    part.result.cancelled = true;
    return;
  }
  part.ranges = atlas::SplitSequences(transformer, gathered.input, ranks.Count());
  options.sequences = part.ranges[static_cast<std::size_t>(ranks.Rank())];
  part.key.model = this->Model;
  part.key.choice = options;
  part.key.source = Text(this->PatchFrom);
  part.key.recordPictures = this->RecordPictures;
}

/// Adds tokens to the sequences if that is asked for. Returns false if the user canceled.
bool vtkTransformerRecorder::Generate(Part& part)
{
  AttentionAtlas::RecorderInput& input = part.key.input;
  for (const std::vector<std::int64_t>& sequence : input.input.tokens)
  {
    part.given.push_back(static_cast<std::int64_t>(sequence.size()));
  }
  if (this->GenerateTokens == 0)
  {
    return true;
  }
  if (!part.options.interventions.list.empty())
  {
    throw atlas::OptionError("expected GenerateTokens or interventions (Ablate, PatchFrom), found "
                             "both; the unchanged model would choose the tokens.");
  }
  atlas::GenerationOptions options;
  options.count = this->GenerateTokens;
  options.temperature = this->Temperature;
  options.topK = this->TopK;
  options.seed = static_cast<std::uint64_t>(this->Seed);
  options.ends = this->Model->GetModel().GetConfig().endTokens;
  options.threads = part.options.threads;
  options.progress = part.options.progress;
  const atlas::Transformer& transformer = this->Model->GetModel();
  atlas::CheckGeneration(transformer, input.input, options);
  atlas::TransformerInput whole = input.input;
  for (std::vector<std::int64_t>& sequence : whole.tokens)
  {
    sequence.resize(sequence.size() + static_cast<std::size_t>(this->GenerateTokens));
  }
  whole.segments.clear();
  const atlas::MemoryEstimate memory = atlas::EstimateMemory(transformer, whole, part.options);
  AttentionAtlas::RequireMemory(
    static_cast<double>(memory.recording + memory.working +
                        atlas::GenerationBytes(transformer, input.input, options)),
    "the recording with its generated tokens", "generate fewer tokens.");
  const bool finished = this->Generated->Extend(this->Model, options, input);
  part.lastOffsets = OffsetsOf(input.input);
  CutToStep(transformer.GetConfig(), part.given, part.shown, input);
  return finished;
}

void vtkTransformerRecorder::RecordPart(const AttentionAtlas::RankGroup& ranks, Part& part)
{
  const atlas::Transformer& transformer = this->Model->GetModel();
  const AttentionAtlas::RecorderInput& gathered = part.key.input;
  const atlas::RecordOptions& options = part.options;
  const atlas::MemoryEstimate memory = atlas::EstimateMemory(transformer, gathered.input, options);
  AttentionAtlas::RequireMemory(static_cast<double>(memory.recording + memory.working),
    "the recording", "give fewer or shorter sequences, or record fewer layers or quantities.");

  if (!this->FindMeans(ranks, part))
  {
    part.result.cancelled = true;
    return;
  }
  part.recording = atlas::RecordTransformer(transformer, gathered.input, options);
  part.result.cancelled = !part.recording;
  if (part.recording)
  {
    part.recording->tokens.text = gathered.labels;
    if (options.interventions.NeedSource())
    {
      part.recording->interventions += ": " + Text(this->PatchFrom);
    }
    this->AddPictures(gathered, ranks.Rank() == 0, *part.recording);
    if (ranks.Count() > 1)
    {
      part.result.input = Fingerprint(transformer) ^ (Fingerprint(*part.recording) << 1U);
    }
  }
}

/// Finds the means over other prompts that interventions need, with all ranks. Returns false if the
/// user canceled.
bool vtkTransformerRecorder::FindMeans(const AttentionAtlas::RankGroup& ranks, Part& part)
{
  if (!part.options.interventions.NeedMeans())
  {
    return true;
  }
  const atlas::Transformer& transformer = this->Model->GetModel();
  const atlas::TransformerInput& input = part.key.input.input;
  atlas::RecordOptions options = part.options;
  const auto share = [this](double begin)
  {
    return [this, begin](double done)
    { return AttentionAtlas::ReportProgress(this, begin + done / 2); };
  };
  options.progress = share(0);
  part.options.progress = share(0.5);
  AttentionAtlas::RequireMemory(
    static_cast<double>(atlas::PromptSumsMemory(transformer, input, options)),
    "the means over other prompts", "give fewer or shorter sequences.");
  const std::optional<std::vector<double>> mine =
    atlas::SumOverPrompts(transformer, input, options);
  if (!mine)
  {
    return false;
  }
  const std::vector<double> all = ranks.Gather(*mine);
  std::vector<double> sums(mine->size()); // of one rank each; 0 on the others
  for (std::size_t i = 0; i < all.size(); ++i)
  {
    sums[i % sums.size()] += all[i];
  }
  part.options.interventions.means =
    atlas::MeansOverOthers(sums, atlas::SequenceLengths(transformer.GetConfig(), input));
  return true;
}

/// Takes the recording that was made before, if all ranks have it, or makes it.
void vtkTransformerRecorder::FindOrRecord(const AttentionAtlas::RankGroup& ranks, Part& part)
{
  const AttentionAtlas::KeptRecordings::Item* known = nullptr;
  if (part.result.error.empty())
  {
    known = this->Kept->Find(part.key);
  }
  if (!ranks.Any(known == nullptr))
  {
    part.recording = known->recording;
    part.result.input = known->fingerprint;
    part.ranges.clear(); // all rows are there
    return;
  }
  if (part.result.error.empty() && !part.key.model.expired())
  {
    this->RecordPart(ranks, part);
  }
}

int vtkTransformerRecorder::RequestData(
  vtkInformation*, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  auto* output = vtkMultiBlockDataSet::GetData(outputVector);
  const AttentionAtlas::RankGroup ranks(outputVector);
  this->Kept->SetLimit(static_cast<std::uint64_t>(this->KeptRecordings) << 20U);
  this->Failed.Forget();
  Part part;
  part.shown = this->TokensToShow(inputVector, outputVector);
  try
  {
    this->PreparePart(vtkMultiBlockDataSet::GetData(inputVector[0]),
      vtkTable::GetData(inputVector[1]), ranks, part);
  }
  catch (const std::exception& e)
  {
    part.result.error = e.what();
  }
  try
  {
    this->FindOrRecord(ranks, part);
  }
  catch (const std::exception& e)
  {
    part.result.error = e.what();
  }
  try
  {
    if (!ranks.Agree(part.result))
    {
      return AttentionAtlas::LeaveUnfinished(this, outputVector);
    }
    if (part.recording)
    {
      if (!part.ranges.empty())
      {
        ranks.ShareRows(*part.recording, part.ranges);
        this->Kept->Keep(part.key, *part.recording, part.result.input);
      }
      AttentionAtlas::ToDataSet(RecordingUntil(*part.recording, part.given, part.shown), output);
      if (this->HasOwnTime(inputVector))
      {
        output->GetInformation()->Set(
          vtkDataObject::DATA_TIME_STEP(), static_cast<double>(part.shown));
        AttentionAtlas::AddLastOffsets(part.lastOffsets, output);
      }
    }
  }
  catch (const std::exception& e)
  {
    if (ranks.Leave(e))
    {
      return AttentionAtlas::LeaveUnfinished(this, outputVector);
    }
    output->Initialize();
    this->Failed.Remember(this->InputFiles());
    if (ranks.Rank() == 0)
    {
      vtkErrorMacro(<< e.what());
    }
    return 1; // as in vtkModelAlgorithm
  }
  return 1;
}

void vtkTransformerRecorder::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  os << indent << "Prompts: " << Text(this->Prompts) << "\n";
  os << indent << "PromptFile: " << Text(this->PromptFile) << "\n";
  os << indent << "TokenIds: " << Text(this->TokenIds) << "\n";
  os << indent << "Segments: " << Text(this->Segments) << "\n";
  os << indent << "Images:";
  for (const std::string& fileName : this->Images)
  {
    os << " " << fileName;
  }
  os << "\n";
  os << indent << "MaximumLength: " << this->MaximumLength << "\n";
  os << indent << "AddSpecialTokens: " << this->AddSpecialTokens << "\n";
  os << indent << "Ablate: " << Text(this->Ablate) << "\n";
  os << indent << "AblateTo: " << this->AblateTo << "\n";
  os << indent << "PatchFrom: " << Text(this->PatchFrom) << "\n";
  os << indent << "PatchSites: " << Text(this->PatchSites) << "\n";
  os << indent << "GenerateTokens: " << this->GenerateTokens << "\n";
  os << indent << "Temperature: " << this->Temperature << "\n";
  os << indent << "TopK: " << this->TopK << "\n";
  os << indent << "Seed: " << this->Seed << "\n";
  os << indent << "RecordPictures: " << this->RecordPictures << "\n";
  os << indent << "KeptRecordings: " << this->KeptRecordings << "\n";
  os << indent << "Layers:";
  for (const int layer : this->Layers)
  {
    os << " " << layer;
  }
  os << "\n" << indent << "Record:\n";
  this->Record->PrintSelf(os, indent.GetNextIndent());
}
