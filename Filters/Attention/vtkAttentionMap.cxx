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
  const std::int64_t length = atlas::AttentionLength(recording, sequence);
  for (const char* name : { "Key Token", "Query Token" })
  {
    vtkNew<vtkStringArray> labels;
    labels->SetName(name);
    for (std::int64_t i = 0; i < length; ++i)
    {
      labels->InsertNextValue(
        sequence == atlas::AllSequences
          ? std::to_string(i)
          : AttentionAtlas::TokenText(recording, recording.sequenceOffsets[sequence] + i));
    }
    fields->AddArray(labels);
  }
}

/// Names of the arrays of StrongestKey::value, by quantity.
constexpr std::array<const char*, 6> ValueNames = { "Weight", "Score", "Content", "Bias",
  "NormWeighted", "Rollout" };

/// The keys among which the strongest of a query is. Where the mask or a window excludes a key,
/// quantities after the softmax are 0, but others are as for any key.
class Candidates
{
public:
  Candidates(const atlas::Recording& recording, int sequence, int layer, AttentionQuantity quantity)
    : Recording(recording)
    , Sequence(sequence)
    , Layer(layer)
    , IsMasked(quantity == AttentionQuantity::Scores || quantity == AttentionQuantity::Content ||
               quantity == AttentionQuantity::Bias)
    , Length(atlas::AttentionLength(recording, sequence))
  {
    if (sequence == atlas::AllSequences)
    {
      this->Sequence = 0;
      while (recording.SequenceLength(this->Sequence) < this->Length)
      {
        ++this->Sequence;
      }
    }
  }

  atlas::KeyRange Of(std::int64_t query) const
  {
    return this->IsMasked ? atlas::AllowedKeys(this->Recording, this->Sequence, this->Layer, query)
                          : atlas::KeyRange{ 0, this->Length };
  }

private:
  const atlas::Recording& Recording;
  std::int64_t Sequence;
  std::int64_t Layer;
  bool IsMasked;
  std::int64_t Length;
};

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
  std::int64_t keys;                ///< all of the sequence, and as many queries
  const std::array<int, 6>& extent; ///< of the part of the image

  std::int64_t Width() const { return this->extent[1] - this->extent[0] + 1; }
  std::int64_t FirstQuery() const { return this->keys - 1 - this->extent[3]; }
  std::int64_t EndQuery() const { return this->keys - this->extent[2]; }

  /// Puts whole rows of queries begin <= i < end where the image has them. Returns the points that
  /// they are.
  std::pair<vtkIdType, vtkIdType> Copy(
    std::int64_t begin, std::int64_t end, const float* rows, float* image) const
  {
    const std::int64_t first = std::max(begin, this->FirstQuery());
    for (std::int64_t query = first; query < end; ++query)
    {
      const float* row = rows + (query - begin) * this->keys + this->extent[0];
      std::copy(row, row + this->Width(), image + (this->EndQuery() - 1 - query) * this->Width());
    }
    return { (this->EndQuery() - end) * this->Width(),
      (this->EndQuery() - std::min(first, end)) * this->Width() };
  }
};

int vtkAttentionMap::RequestInformation(
  vtkInformation* request, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  vtkMultiBlockDataSet* recording = AttentionAtlas::UpdateRecording(this);
  const int tokens = AttentionAtlas::IsEmpty(recording)
                       ? 0
                       : AttentionAtlas::SequenceTokens(recording, this->Sequence);
  AttentionAtlas::AnnounceImage(tokens, tokens, outputVector->GetInformationObject(0));
  return this->Superclass::RequestInformation(request, inputVector, outputVector);
}

/// Evaluates the rows on several threads. Returns the strongest key of each.
std::vector<StrongestKey> vtkAttentionMap::EvaluateRows(const atlas::Recording& recording,
  const Rows& rows, vtkFloatArray* image, const atlas::Progress& progress) const
{
  const auto quantity = static_cast<AttentionQuantity>(this->Quantity);
  const Candidates candidates(recording, this->Sequence, this->Layer, quantity);
  std::vector<StrongestKey> strongest(rows.EndQuery() - rows.FirstQuery());
  AttentionAtlas::RangeCollector ranges({ image });
  std::atomic<bool> isFinite = true; // a recording may hold other numbers
  // Blocks begin at fixed rows, so that values do not depend on the part of the image.
  const std::int64_t first = rows.FirstQuery() / atlas::QueriesPerBlock * atlas::QueriesPerBlock;
  atlas::EvaluateAttentionBlocks(
    recording, { this->Sequence, this->Layer, this->Head, quantity, first, rows.EndQuery() },
    [&](std::int64_t begin, std::int64_t end, const float* values)
    {
      for (std::int64_t query = std::max(begin, rows.FirstQuery()); query < end; ++query)
      {
        const float* row = values + (query - begin) * rows.keys;
        const atlas::KeyRange keys = candidates.Of(query);
        const float* largest = std::max_element(row + keys.begin, row + keys.end);
        strongest[query - rows.FirstQuery()] = { static_cast<int>(query),
          static_cast<int>(largest - row), *largest };
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
  return strongest;
}

void vtkAttentionMap::Execute(Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
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
  std::array<int, 6> extent =
    AttentionAtlas::RequestedExtent(task.OutputInformation(), tokens, tokens);
  const Rows rows{ tokens, extent };
  const std::int64_t points = rows.Width() * (rows.EndQuery() - rows.FirstQuery());
  const int copies = this->Quantity == ROLLOUT ? 3 : 1; // rows of two layers beside the image
  AttentionAtlas::RequireMemory(static_cast<double>(copies * points) * sizeof(float),
    "a map of " + std::to_string(rows.keys) + " x " + std::to_string(rows.keys) + " tokens",
    "record shorter sequences.");
  const vtkSmartPointer<vtkFloatArray> values =
    vtkFloatArray::SafeDownCast(this->Pool.Take(VTK_FLOAT, 1, points));
  this->Pool.ForgetFree();
  values->SetName(atlas::AttentionQuantityNames[this->Quantity]);
  const std::vector<StrongestKey> strongest =
    this->EvaluateRows(recording, rows, values, task.Progress());
  auto* output = task.Output<vtkImageData>();
  output->SetExtent(extent.data());
  output->SetOrigin(0, static_cast<double>(1 - rows.keys), 0);
  output->SetSpacing(1, 1, 1);
  output->GetPointData()->SetScalars(values);
  AttentionAtlas::SetFormat(output, AttentionAtlas::Formats::AttentionMap);
  AddLabels(recording, this->Sequence, output->GetFieldData());
  auto* frames = task.Output<vtkPolyData>(1);
  AttentionAtlas::FrameStrongestKeys(strongest, ValueNames.at(this->Quantity), frames);
  if (this->Sequence != atlas::AllSequences)
  {
    AttentionAtlas::AddQueryTokens(strongest, recording.sequenceOffsets[this->Sequence], frames);
  }
  AttentionAtlas::SetFormat(frames, AttentionAtlas::Formats::StrongestKeys);
  for (vtkFieldData* fields : { output->GetFieldData(), frames->GetFieldData() })
  {
    AttentionAtlas::AddField(fields, "Sequence", this->Sequence);
    AttentionAtlas::AddField(fields, "Layer", this->Layer);
    AttentionAtlas::AddField(fields, "Head", this->Head);
  }
}
