#include "vtkHeadEmbedding.h"

#include "Base/Error.h"
#include "Base/HashValues.h"
#include "Base/Index.h"
#include "Embedding/HeadLayouts.h"
#include "Embedding/TSne.h"
#include "EmbeddingOutput.h"
#include "RecordingConversion.h"
#include "RecordingRanges.h"
#include "Task.h"

#include <vtkAlgorithm.h>
#include <vtkDataObject.h>
#include <vtkFieldData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkNew.h>
#include <vtkObjectFactory.h>
#include <vtkPolyData.h>
#include <vtkStreamingDemandDrivenPipeline.h>
#include <vtkTable.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

using namespace AttentionAtlas;
using SDDP = vtkStreamingDemandDrivenPipeline;

namespace
{

constexpr std::array<double atlas::HeadLayout::*, 9> Numbers = { &atlas::HeadLayout::scale,
  &atlas::HeadLayout::correlation, &atlas::HeadLayout::correlationBefore,
  &atlas::HeadLayout::rankCorrelation, &atlas::HeadLayout::queryNorm, &atlas::HeadLayout::keyNorm,
  &atlas::HeadLayout::neighborsKept, &atlas::HeadLayout::varianceExplained,
  &atlas::HeadLayout::divergence };

template<class Value>
void Write(const Value* values, std::size_t count, std::vector<char>& bytes)
{
  const auto* begin = reinterpret_cast<const char*>(values);
  bytes.insert(bytes.end(), begin, begin + count * sizeof(Value));
}

template<class List>
void WriteList(const List& list, std::vector<char>& bytes)
{
  const std::uint64_t count = list.size();
  Write(&count, 1, bytes);
  Write(list.data(), list.size(), bytes);
}

template<class Value>
const char* Read(const char* next, Value* values, std::size_t count)
{
  std::memcpy(values, next, count * sizeof(Value));
  return next + count * sizeof(Value);
}

template<class List>
const char* ReadList(const char* next, List& list)
{
  std::uint64_t count = 0;
  next = Read(next, &count, 1);
  list.resize(count);
  return Read(next, list.data(), list.size());
}

/// Layouts as bytes that ranks exchange.
std::vector<char> ToBytes(const std::vector<atlas::HeadLayout>& layouts)
{
  std::vector<char> bytes;
  for (const atlas::HeadLayout& layout : layouts)
  {
    Write(&layout.place, 1, bytes);
    for (const auto number : Numbers)
    {
      Write(&(layout.*number), 1, bytes);
    }
    Write(&layout.iterations, 1, bytes);
    Write(&layout.stopped, 1, bytes);
    WriteList(layout.points, bytes);
    WriteList(layout.frames, bytes);
    WriteList(layout.norms, bytes);
    WriteList(layout.error, bytes);
  }
  return bytes;
}

/// Appends the layouts that these bytes were made from.
void FromBytes(const std::vector<char>& bytes, std::vector<atlas::HeadLayout>& layouts)
{
  const char* next = bytes.data();
  while (next != bytes.data() + bytes.size())
  {
    atlas::HeadLayout layout;
    next = Read(next, &layout.place, 1);
    for (const auto number : Numbers)
    {
      next = Read(next, &(layout.*number), 1);
    }
    next = Read(next, &layout.iterations, 1);
    next = Read(next, &layout.stopped, 1);
    next = ReadList(next, layout.points);
    next = ReadList(next, layout.frames);
    next = ReadList(next, layout.norms);
    next = ReadList(next, layout.error);
    layouts.push_back(std::move(layout));
  }
}

/// The places of the chosen heads, by layers and heads; -1 means all. Throws atlas::OptionError for
/// a layer or head that is not there, or without queries and keys.
std::vector<atlas::HeadPlace> ChooseHeads(const atlas::Recording& recording, int layer, int head)
{
  std::vector<atlas::HeadPlace> places;
  for (const atlas::RecordedLayer& recorded : recording.layers)
  {
    if (layer >= 0 && recorded.index != layer)
    {
      continue;
    }
    const auto count = static_cast<std::int32_t>(recorded.heads.size());
    for (std::int32_t h = std::max(head, 0); h < (head >= 0 ? head + 1 : count); ++h)
    {
      atlas::HeadWithKeys(recording, recorded.index, h);
      places.push_back({ recorded.index, h });
    }
  }
  if (places.empty())
  {
    atlas::HeadWithKeys(recording, layer, std::max(head, 0));
  }
  return places;
}

/// A hash of the tokens that are laid out and of what else correlations depend on.
std::uint64_t HashTokens(const atlas::Recording& recording, const atlas::JointRows& rows)
{
  auto hash = static_cast<std::uint64_t>(recording.mask);
  for (const auto* list : { &rows.queries, &rows.keys, &recording.sequenceOffsets,
         &recording.tokens.id, &recording.sourceLengths })
  {
    hash = atlas::HashValues(list->data(), list->size() * sizeof(std::int64_t), hash);
  }
  return hash;
}

std::uint64_t HashTasks(const std::vector<atlas::LayoutTask>& tasks)
{
  std::uint64_t hash = 0;
  for (const atlas::LayoutTask& task : tasks)
  {
    const std::array<std::int64_t, 2> place = { task.place.layer, task.place.head };
    hash = atlas::HashValues(place.data(), sizeof(place), hash);
  }
  return hash;
}

std::uint64_t HashHead(const atlas::Recording& recording, const atlas::HeadPlace& place)
{
  const atlas::RecordedHead& head = atlas::HeadWithKeys(recording, place.layer, place.head);
  std::uint64_t hash = 0;
  for (const atlas::SharedMatrix* matrix : { &head.query, &head.key })
  {
    hash = atlas::HashValues(matrix->values.get(), matrix->Count() * sizeof(float), hash);
  }
  return hash;
}

/// The options that are set.
atlas::LayoutOptions OptionsOf(vtkHeadEmbedding* filter, bool ofImages)
{
  atlas::LayoutOptions options;
  options.method = static_cast<atlas::LayoutMethod>(filter->GetMethod());
  options.dimensions = filter->GetDimensions();
  options.translate = filter->GetKeyTranslation();
  options.scaling = static_cast<atlas::KeyScaling>(filter->GetKeyScaling());
  options.scale = filter->GetKeyScale();
  options.metric = static_cast<atlas::PointMetric>(filter->GetMetric());
  options.perplexity = filter->GetPerplexity();
  options.iterations = filter->GetIterations();
  options.neighbors = filter->GetNeighbors();
  options.minimumDistance = filter->GetMinimumDistance();
  options.seed = static_cast<std::uint64_t>(filter->GetSeed());
  options.frameInterval = filter->GetIterationsAsTime() ? vtkHeadEmbedding::FrameInterval : 0;
  return filter->GetPreset() == vtkHeadEmbedding::ATTENTION_VIZ
           ? atlas::PublishedOptions(options, ofImages)
           : options;
}

/// The request for the heads and options that are set.
atlas::LayoutRequest RequestOf(
  vtkHeadEmbedding* filter, const atlas::Recording& recording, vtkDataObject* input)
{
  atlas::LayoutRequest request;
  request.heads = ChooseHeads(recording, filter->GetLayer(), filter->GetHead());
  request.options = OptionsOf(filter, !recording.tokens.row.empty());
  vtkInformation* info = input->GetInformation();
  request.time = info->Has(vtkDataObject::DATA_TIME_STEP()) != 0
                   ? info->Get(vtkDataObject::DATA_TIME_STEP())
                   : 0;
  return request;
}

/// The number of the frame at the requested time, and its time as that of the outputs; 0 if there
/// are no frames.
std::size_t FrameOf(const atlas::LayoutOptions& options, vtkInformationVector* outputVector)
{
  const std::vector<int> iterations = atlas::FrameIterations(options);
  vtkInformation* info = outputVector->GetInformationObject(0);
  if (iterations.empty())
  {
    return 0;
  }
  const double time = info->Has(SDDP::UPDATE_TIME_STEP()) != 0 ? info->Get(SDDP::UPDATE_TIME_STEP())
                                                               : iterations.back();
  const auto after = std::upper_bound(iterations.begin(), iterations.end(), time);
  const auto frame = after == iterations.begin() ? after : after - 1;
  for (int port = 0; port < outputVector->GetNumberOfInformationObjects(); ++port)
  {
    vtkDataObject::GetData(outputVector, port)
      ->GetInformation()
      ->Set(vtkDataObject::DATA_TIME_STEP(), *frame);
  }
  return frame - iterations.begin();
}

std::string DescribeProgress(const atlas::LayoutProgress& progress)
{
  std::string text =
    std::to_string(progress.done) + " of " + std::to_string(progress.heads) + " heads";
  if (std::isfinite(progress.divergence))
  {
    std::array<char, 64> number;
    std::snprintf(number.data(), number.size(), ", KL divergence %.3f", progress.divergence);
    text += number.data();
  }
  return text;
}

}

vtkStandardNewMacro(vtkHeadEmbedding);

/// What is known from earlier executions.
struct vtkHeadEmbedding::Memory
{
  atlas::HeadLayouts layouts;
  vtkMTimeType changed = 0; ///< when the input changed last
  std::map<atlas::HeadPlace, std::uint64_t> contents;

  std::uint64_t arraysKey = 0;
  vtkNew<vtkPolyData> arrays; ///< vertices and point arrays of the last output

  /// Adds them to the output, or makes them if there were others.
  void AddPointArrays(
    const EmbeddedHeads& heads, const atlas::LayoutRequest& request, vtkPolyData* output)
  {
    std::vector<std::uint64_t> parts = { request.tokens, this->changed };
    for (const auto& layout : heads.layouts)
    {
      parts.push_back(static_cast<std::uint64_t>(layout->place.layer));
      parts.push_back(static_cast<std::uint64_t>(layout->place.head));
    }
    const std::uint64_t key = atlas::HashValues(parts.data(), parts.size() * sizeof(std::uint64_t));
    if (key != this->arraysKey)
    {
      this->arrays->Initialize();
      AttentionAtlas::AddPointArrays(heads, this->arrays);
      this->arraysKey = key;
    }
    output->ShallowCopy(this->arrays);
  }

  /// The hashes of heads of the input, of which only unknown ones are computed.
  std::vector<std::uint64_t> ContentsOf(const atlas::Recording& recording,
    const std::vector<atlas::HeadPlace>& heads, vtkMTimeType inputChanged)
  {
    if (this->changed != inputChanged)
    {
      this->contents.clear();
      this->changed = inputChanged;
    }
    std::vector<atlas::HeadPlace> unknown;
    std::copy_if(heads.begin(), heads.end(), std::back_inserter(unknown),
      [this](const atlas::HeadPlace& place) { return this->contents.count(place) == 0; });
    std::vector<std::uint64_t> hashes(unknown.size());
    ParallelFor(0, static_cast<vtkIdType>(unknown.size()),
      [&](vtkIdType begin, vtkIdType end)
      {
        for (std::size_t i = begin; i < atlas::ToIndex(end); ++i)
        {
          hashes[i] = HashHead(recording, unknown[i]);
        }
      });
    for (std::size_t i = 0; i < unknown.size(); ++i)
    {
      this->contents[unknown[i]] = hashes[i];
    }
    std::vector<std::uint64_t> all;
    all.reserve(heads.size());
    for (const atlas::HeadPlace& place : heads)
    {
      all.push_back(this->contents[place]);
    }
    return all;
  }
};

/// What is laid out.
struct vtkHeadEmbedding::Part
{
  atlas::Recording recording;
  atlas::JointRows rows; ///< of the chosen tokens
  atlas::LayoutRequest request;
};

vtkHeadEmbedding::vtkHeadEmbedding()
  : vtkRecordingAlgorithm(
      { "vtkMultiBlockDataSet" }, { "vtkPolyData", "vtkTable", "vtkPolyData" }, TOGETHER)
  , Known(std::make_unique<Memory>())
{
}

int vtkHeadEmbedding::RequestInformation(
  vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector)
{
  // The published settings differ between texts and images.
  bool ofImages = false;
  if (this->HasFrames() && this->Preset == ATTENTION_VIZ)
  {
    vtkMultiBlockDataSet* recording = this->OutlineOfPart();
    ofImages = recording != nullptr && recording->GetFieldData()->HasArray(PatchGridField) != 0;
  }
  const std::vector<int> iterations = atlas::FrameIterations(OptionsOf(this, ofImages));
  const std::vector<double> times(iterations.begin(), iterations.end());
  for (int port = 0; port < this->GetNumberOfOutputPorts(); ++port)
  {
    vtkInformation* info = outputVector->GetInformationObject(port);
    info->Set(vtkAlgorithm::CAN_HANDLE_PIECE_REQUEST(), 1);
    if (!times.empty()) // else it has those of the recording
    {
      SetTimeSteps(info, times);
    }
  }
  return 1;
}

int vtkHeadEmbedding::RequestUpdateExtent(
  vtkInformation*, vtkInformationVector** inputVector, vtkInformationVector*)
{
  if (this->HasFrames())
  {
    inputVector[0]->GetInformationObject(0)->Remove(SDDP::UPDATE_TIME_STEP());
  }
  return 1;
}

int* vtkHeadEmbedding::GetSequenceRange()
{
  this->SequenceRange[1] = RecordingRanges(this->KnownPart()).sequence[1];
  return this->SequenceRange;
}

int* vtkHeadEmbedding::GetLayerRange()
{
  this->LayerRange[1] = RecordingRanges(this->KnownPart()).layer[1];
  return this->LayerRange;
}

int* vtkHeadEmbedding::GetHeadRange()
{
  this->HeadRange[1] = RecordingRanges(this->KnownPart()).head[1];
  return this->HeadRange;
}

double* vtkHeadEmbedding::GetPerplexityRange()
{
  this->PerplexityRange[1] = 50;
  const std::int64_t tokens = RecordingRanges(this->KnownPart()).tokens;
  if (tokens > 0)
  {
    const std::int64_t points = this->AttentionKind == CROSS ? tokens : 2 * tokens;
    const double largest = std::floor(100 * atlas::LargestPerplexity(points)) / 100;
    this->PerplexityRange[1] = std::clamp(largest, 1., 50.);
  }
  return this->PerplexityRange;
}

vtkHeadEmbedding::Part vtkHeadEmbedding::Choose(const Task& task)
{
  vtkMultiBlockDataSet* input = this->RequirePart(task);
  Part part{ this->Layer >= 0 && this->Head >= 0 ? ToRecording(input, this->Layer, this->Head)
                                                 : ToRecording(input),
    {}, {} };
  part.request = RequestOf(this, part.recording, input);
  part.rows = atlas::ChooseTokens(
    part.recording, { this->Sequence, this->Sample, static_cast<std::uint64_t>(this->Seed) });
  const std::int64_t points = part.rows.Points();
  if (input->GetFieldData()->HasArray(LastSequenceOffsetsField) != 0)
  {
    // The options are those of the whole text; its first time steps have fewer points.
    atlas::LayoutOptions& options = part.request.options;
    options.perplexity =
      std::min(options.perplexity, std::max(atlas::LargestPerplexity(points), 1.));
    options.neighbors = static_cast<int>(std::min<std::int64_t>(options.neighbors, points));
  }
  atlas::CheckLayoutOptions(points, part.request.options);
  part.request.contents =
    this->Known->ContentsOf(part.recording, part.request.heads, TimeOf(input));
  part.request.tokens = HashTokens(part.recording, part.rows);
  return part;
}

/// The heads that this rank has to lay out. The ranks divide what they all miss. After an error or
/// a cancel they may know different ones.
std::vector<atlas::LayoutTask> vtkHeadEmbedding::DealMissing(
  const Part& part, const RankGroup& ranks)
{
  std::vector<atlas::LayoutTask> missing = this->Known->layouts.Missing(part.request);
  const auto hashes = ranks.Gather(std::vector<std::uint64_t>{ HashTasks(missing) });
  if (std::adjacent_find(hashes.begin(), hashes.end(), std::not_equal_to<>()) != hashes.end())
  {
    this->Known->layouts = {};
    missing = this->Known->layouts.Missing(part.request);
  }
  std::vector<atlas::LayoutTask> mine;
  for (std::size_t i = ranks.Rank(); i < missing.size(); i += atlas::ToIndex(ranks.Count()))
  {
    mine.push_back(missing[i]);
  }
  return mine;
}

/// Lays out what is not known, with all ranks. What is done when the user cancels is shown.
void vtkHeadEmbedding::LayOut(Part& part, const Task& task)
{
  const RankGroup& ranks = task.Ranks();
  ranks.RequireSame(atlas::HashValues(part.request.contents.data(),
    part.request.contents.size() * sizeof(std::uint64_t), part.request.tokens));
  const std::vector<atlas::LayoutTask> mine = this->DealMissing(part, ranks);
  const std::int64_t points = part.rows.Points();
  const std::int64_t heads = part.request.heads.size();
  const atlas::HeadPlace& first = part.request.heads[0];
  const std::int64_t dimension =
    atlas::HeadWithKeys(part.recording, first.layer, first.head).query.columns;
  const int threads = ThreadLimit();
  const auto [ofLayouts, working] =
    atlas::EstimateLayoutMemory(points, dimension, heads, part.request.options, threads);
  RequireMemory(ofLayouts + (mine.empty() ? 0 : working) +
                  static_cast<double>(points * heads) / ranks.Count() * BytesPerPoint(),
    "the joint embedding of " + std::to_string(heads) + " heads with " + std::to_string(points) +
      " points each",
    "choose fewer layers or heads, or a smaller Sample of tokens.");
  bool isCanceled = false;
  const std::vector<atlas::HeadLayout> done =
    atlas::LayOutHeads(part.recording, part.rows, mine, part.request.options, threads,
      [&](const atlas::LayoutProgress& progress)
      {
        isCanceled = !task.GoesOn(progress.share, DescribeProgress(progress)) || isCanceled;
        return !isCanceled;
      });
  isCanceled = ranks.Any(isCanceled);
  std::vector<atlas::HeadLayout> layouts;
  for (const std::vector<char>& bytes : ranks.Share(ToBytes(done)))
  {
    FromBytes(bytes, layouts);
  }
  if (isCanceled)
  {
    if (layouts.empty())
    {
      throw atlas::Canceled();
    }
    task.KeepCanceled();
  }
  this->Known->layouts.Keep(part.request, std::move(layouts));
}

void vtkHeadEmbedding::MakeOutputs(const Part& part, const Task& task)
{
  std::vector<std::shared_ptr<const atlas::HeadLayout>> layouts;
  std::string failed;
  for (std::size_t i = 0; i < part.request.heads.size(); ++i)
  {
    auto layout = this->Known->layouts.Find(part.request, i);
    if (layout && layout->error.empty())
    {
      layouts.push_back(std::move(layout));
    }
    else if (layout)
    {
      failed += (failed.empty() ? "" : "\n") + layout->error;
    }
  }
  atlas::ThrowIf<std::runtime_error>(
    layouts.empty() && !failed.empty(), failed.substr(0, failed.find('\n')));
  const bool isFirst = task.IsFirst();
  if (!failed.empty() && isFirst)
  {
    vtkWarningMacro(<< "left out: " << failed);
  }
  EmbeddedHeads heads{ part.recording, part.rows, part.request.options, this->Arrangement == GRID,
    this->Layer >= 0 && this->Head >= 0, FrameOf(part.request.options, task.Outputs()), layouts };
  if (isFirst)
  {
    MakeTable(heads, task.Output<vtkTable>(1));
    MakeTitles(heads, task.Output<vtkPolyData>(2));
  }
  // Each piece has consecutive heads.
  vtkInformation* info = task.OutputInformation();
  const auto pieces = std::max(info->Get(SDDP::UPDATE_NUMBER_OF_PIECES()), 1);
  const auto piece = std::max(info->Get(SDDP::UPDATE_PIECE_NUMBER()), 0);
  const std::int64_t count = layouts.size();
  heads.layouts.assign(
    layouts.begin() + count * piece / pieces, layouts.begin() + count * (piece + 1) / pieces);
  auto* output = task.Output<vtkPolyData>();
  this->Known->AddPointArrays(heads, part.request, output);
  PlacePoints(heads, output);
  this->AddKind(output);
}

void vtkHeadEmbedding::Execute(Task& task)
{
  if (task.Ranks().Any(IsEmpty(task.Input<vtkMultiBlockDataSet>())))
  {
    return; // a rank without one has told why
  }
  Part part = this->Choose(task);
  this->LayOut(part, task);
  this->MakeOutputs(part, task);
}
