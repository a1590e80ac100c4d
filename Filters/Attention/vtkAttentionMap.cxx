#include "vtkAttentionMap.h"

#include "ArrayRanges.h"
#include "DataFields.h"
#include "DataFormat.h"
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
#include <vtkSmartPointer.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <string>
#include <utility>

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

}

vtkStandardNewMacro(vtkAttentionMap);

vtkAttentionMap::vtkAttentionMap()
  : vtkHeadAlgorithm(WITH_MEANS, { "vtkMultiBlockDataSet" }, { "vtkImageData" }, WHOLE_INPUT)
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

/// Evaluates the rows on several threads.
void vtkAttentionMap::EvaluateRows(const atlas::Recording& recording, const Rows& rows,
  vtkFloatArray* image, const atlas::Progress& progress) const
{
  AttentionAtlas::RangeCollector ranges({ image });
  std::atomic<bool> isFinite = true; // a recording may hold other numbers
  // Blocks begin at fixed rows, so that values do not depend on the part of the image.
  const std::int64_t first = rows.FirstQuery() / atlas::QueriesPerBlock * atlas::QueriesPerBlock;
  atlas::EvaluateAttentionBlocks(
    recording,
    { this->Sequence, this->Layer, this->Head,
      static_cast<atlas::AttentionQuantity>(this->Quantity), first, rows.EndQuery() },
    [&](std::int64_t begin, std::int64_t end, const float* values)
    {
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
}

void vtkAttentionMap::Execute(Task& task)
{
  auto* input = task.Input<vtkMultiBlockDataSet>();
  if (AttentionAtlas::IsEmpty(input))
  {
    return;
  }
  const auto quantity = static_cast<atlas::AttentionQuantity>(this->Quantity);
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
  this->EvaluateRows(recording, rows, values, task.Progress());
  auto* output = task.Output<vtkImageData>();
  output->SetExtent(extent.data());
  output->SetOrigin(0, static_cast<double>(1 - rows.keys), 0);
  output->SetSpacing(1, 1, 1);
  output->GetPointData()->SetScalars(values);
  AttentionAtlas::SetFormat(output, AttentionAtlas::Formats::AttentionMap);
  vtkFieldData* fields = output->GetFieldData();
  AddLabels(recording, this->Sequence, fields);
  AttentionAtlas::AddField(fields, "Sequence", this->Sequence);
  AttentionAtlas::AddField(fields, "Layer", this->Layer);
  AttentionAtlas::AddField(fields, "Head", this->Head);
}
