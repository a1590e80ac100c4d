#include "vtkAttentionMap.h"

#include "ArrayRanges.h"
#include "DataFields.h"
#include "DataFormat.h"
#include "MapFrames.h"
#include "RecordedAttention.h"
#include "RecordingConversion.h"
#include "RecordingRanges.h"
#include "Task.h"
#include "TokenText.h"
#include "ValueRanges.h"

#include <vtkDataObject.h>
#include <vtkDemandDrivenPipeline.h>
#include <vtkFloatArray.h>
#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkPolyData.h>
#include <vtkSmartPointer.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

using atlas::AttentionQuantity;
using AttentionAtlas::StrongestKey;
using AttentionAtlas::Task;

namespace
{

void AddLabels(const atlas::Recording& recording, int sequence, vtkFieldData* fields)
{
  for (const auto& [name, range] :
    { std::pair("Key Token", atlas::KeyPositions(recording, sequence)),
      std::pair("Query Token", atlas::QueryPositions(recording, sequence)) })
  {
    vtkNew<vtkStringArray> labels;
    labels->SetName(name);
    for (std::int64_t i = range.begin; i < range.end; ++i)
    {
      labels->InsertNextValue(
        sequence == atlas::AllSequences
          ? std::to_string(i)
          : AttentionAtlas::TokenText(recording, recording.sequenceOffsets[sequence] + i));
    }
    fields->AddArray(labels);
  }
}

/// The output with frames.
constexpr int FramePort = 1;

/// Names of the arrays of StrongestKey::value, by quantity.
constexpr std::array<const char*, 6> ValueNames = { "Weight", "Score", "Content", "Bias",
  "NormWeighted", "Rollout" };

/// A sequence with as many tokens as the map has.
std::int64_t LongestSequence(const atlas::Recording& recording, int sequence)
{
  std::int64_t longest = std::max(sequence, 0);
  while (recording.SequenceLength(longest) < atlas::AttentionLength(recording, sequence))
  {
    ++longest;
  }
  return longest;
}

/// The strongest of a range of keys in a row of values, as far as these are finite; the first of
/// several. Its key is -1 if there is none.
StrongestKey FindStrongest(const float* row, const atlas::KeyRange& keys, std::int64_t query)
{
  StrongestKey strongest = { static_cast<int>(query), -1, 0 };
  for (std::int64_t key = keys.begin; key < keys.end; ++key)
  {
    if (std::isfinite(row[key]) && (strongest.key < 0 || row[key] > strongest.value))
    {
      strongest.key = static_cast<int>(key);
      strongest.value = row[key];
    }
  }
  return strongest;
}

}

vtkStandardNewMacro(vtkAttentionMap);

vtkAttentionMap::vtkAttentionMap()
  : vtkHeadAlgorithm(
      WITH_MEANS, { "vtkMultiBlockDataSet" }, { "vtkImageData", "vtkPolyData" }, WHOLE_INPUT)
{
}

/// The rows of an image and the queries that they show, from the bottom up.
struct vtkAttentionMap::Rows
{
  std::int64_t length;              ///< of a row of values: all of the sequence
  atlas::KeyRange queries;          ///< positions of those that are there
  std::int64_t keys;                ///< the first so many positions
  const std::array<int, 6>& extent; ///< of the part of the image

  std::int64_t Width() const { return this->extent[1] - this->extent[0] + 1; }
  std::int64_t FirstQuery() const { return this->queries.end - 1 - this->extent[3]; }
  std::int64_t EndQuery() const { return this->queries.end - this->extent[2]; }

  bool AreAll() const
  {
    return this->FirstQuery() == this->queries.begin && this->EndQuery() == this->queries.end;
  }

  /// Puts whole rows of queries begin <= i < end where the image has them. Returns the points that
  /// they are.
  std::pair<vtkIdType, vtkIdType> Copy(
    std::int64_t begin, std::int64_t end, const float* rows, float* image) const
  {
    const std::int64_t first = std::max(begin, this->FirstQuery());
    const std::int64_t last = std::max(first, std::min(end, this->EndQuery()));
    for (std::int64_t query = first; query < last; ++query)
    {
      const float* row = rows + (query - begin) * this->length + this->extent[0];
      std::copy(row, row + this->Width(), image + (this->EndQuery() - 1 - query) * this->Width());
    }
    if (first == last)
    {
      return { 0, 0 };
    }
    return { (this->EndQuery() - last) * this->Width(),
      (this->EndQuery() - first) * this->Width() };
  }
};

int vtkAttentionMap::RequestInformation(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  vtkMultiBlockDataSet* recording = this->UpdatePart();
  const bool isEmpty = AttentionAtlas::IsEmpty(recording);
  const int tokens = isEmpty ? 0 : AttentionAtlas::SequenceTokens(recording, this->Sequence);
  const int source = isEmpty ? 0 : AttentionAtlas::SourceTokens(recording, this->Sequence);
  AttentionAtlas::AnnounceImage(
    source > 0 ? source : tokens, tokens - source, outputVector->GetInformationObject(0));
  return this->Superclass::RequestInformation(request, inputVector, outputVector);
}

/// Evaluates the rows on several threads. Returns the strongest key of each query, where `frames`
/// says so; this needs all queries.
std::vector<StrongestKey> vtkAttentionMap::EvaluateRows(const atlas::Recording& recording,
  const Rows& rows, bool frames, vtkFloatArray* image, const atlas::Progress& progress) const
{
  const auto quantity = static_cast<AttentionQuantity>(this->Quantity);
  const std::int64_t masked = LongestSequence(recording, this->Sequence);
  std::vector<StrongestKey> strongest(frames ? rows.queries.end : 0, StrongestKey{ 0, -1, 0 });
  AttentionAtlas::RangeCollector ranges({ image });
  std::atomic<bool> isFinite = true; // a recording may hold other numbers
  // Blocks begin at fixed rows, so that values do not depend on the part of the image.
  const std::int64_t firstRow = frames ? rows.queries.begin : rows.FirstQuery();
  const std::int64_t first = firstRow / atlas::QueriesPerBlock * atlas::QueriesPerBlock;
  const std::int64_t last = frames ? rows.queries.end : rows.EndQuery();
  atlas::EvaluateAttentionBlocks(
    recording, { this->Sequence, this->Layer, this->Head, quantity, first, last },
    [&](std::int64_t begin, std::int64_t end, const float* values)
    {
      for (std::int64_t query = begin; frames && query < end; ++query)
      {
        // Rollout goes beyond the window of a layer; what the mask excludes is 0 in it.
        const atlas::KeyRange keys = quantity == AttentionQuantity::Rollout
                                       ? atlas::KeyRange{ 0, rows.length }
                                       : atlas::AllowedKeys(recording, masked, this->Layer, query);
        strongest[query] = FindStrongest(values + (query - begin) * rows.length, keys, query);
      }
      const auto [from, to] = rows.Copy(begin, end, values, image->GetPointer(0));
      if (atlas::AreFinite(image->GetPointer(from), to - from))
      {
        ranges.Add(from, to);
      }
      else
      {
        isFinite = false;
      }
    },
    AttentionAtlas::ThreadLimit(), progress);
  if (isFinite)
  {
    ranges.Store();
  }
  strongest.erase(std::remove_if(strongest.begin(), strongest.end(),
                    [](const StrongestKey& found) { return found.key < 0; }),
    strongest.end());
  return strongest;
}

void vtkAttentionMap::Execute(Task& task)
{
  vtkMultiBlockDataSet* input = this->RequirePart(task);
  if (AttentionAtlas::IsEmpty(input))
  {
    return;
  }
  const auto quantity = static_cast<AttentionQuantity>(this->Quantity);
  const atlas::Recording recording =
    AttentionAtlas::ToRecording(input, this->Layer, this->Head, quantity);
  // Checks the numbers, and that there is such a quantity, before anything is allocated.
  atlas::EvaluateAttention(
    recording, this->Sequence, this->Layer, this->Head, quantity, 0, 0, nullptr);
  const std::int64_t tokens = atlas::RequireTokens(recording, this->Sequence);
  const atlas::KeyRange queries = atlas::QueryPositions(recording, this->Sequence);
  const std::int64_t keys = atlas::KeyPositions(recording, this->Sequence).end;
  std::array<int, 6> extent =
    AttentionAtlas::RequestedExtent(task.OutputInformation(), keys, queries.end - queries.begin);
  const Rows rows{ tokens, queries, keys, extent };
  const std::int64_t points = rows.Width() * (rows.EndQuery() - rows.FirstQuery());
  const int copies = this->Quantity == ROLLOUT ? 3 : 1; // rows of two layers beside the image
  AttentionAtlas::RequireMemory(static_cast<double>(copies * points) * sizeof(float),
    "a map of " + std::to_string(queries.end - queries.begin) + " x " + std::to_string(keys) +
      " tokens",
    "record shorter sequences.");
  const vtkSmartPointer<vtkFloatArray> values =
    vtkFloatArray::SafeDownCast(this->Pool.Take(VTK_FLOAT, 1, points));
  this->Pool.ForgetFree();
  values->SetName(atlas::AttentionQuantityNames[this->Quantity]);
  const bool frames = rows.AreAll() || task.Port() == FramePort;
  std::vector<StrongestKey> strongest =
    this->EvaluateRows(recording, rows, frames, values, task.Progress());
  auto* output = task.Output<vtkImageData>();
  output->SetExtent(extent.data());
  output->SetOrigin(0, static_cast<double>(1 + queries.begin - queries.end), 0);
  output->SetSpacing(1, 1, 1);
  output->GetPointData()->SetScalars(values);
  AttentionAtlas::SetFormat(output, AttentionAtlas::Formats::AttentionMap);
  AddLabels(recording, this->Sequence, output->GetFieldData());
  auto* lines = task.Output<vtkPolyData>(FramePort);
  if (!frames) // made when they are asked for
  {
    task.OutputInformation(FramePort)->Set(vtkDemandDrivenPipeline::DATA_NOT_GENERATED(), 1);
  }
  std::for_each(strongest.begin(), strongest.end(),
    [&](StrongestKey& found) { found.query -= static_cast<int>(queries.begin); });
  AttentionAtlas::FrameStrongestKeys(
    strongest, ValueNames.at(this->Quantity), recording.sourceLengths.empty(), lines);
  if (this->Sequence != atlas::AllSequences)
  {
    AttentionAtlas::AddQueryTokens(
      strongest, recording.sequenceOffsets[this->Sequence] + queries.begin, lines);
  }
  AttentionAtlas::SetFormat(lines, AttentionAtlas::Formats::StrongestKeys);
  this->AddKind(output);
  this->AddKind(lines);
  for (vtkFieldData* fields : { output->GetFieldData(), lines->GetFieldData() })
  {
    AttentionAtlas::AddField(fields, "Sequence", this->Sequence);
    AttentionAtlas::AddField(fields, "Layer", this->Layer);
    AttentionAtlas::AddField(fields, "Head", this->Head);
  }
}
