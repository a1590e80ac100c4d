#include "vtkAttentionMap.h"

#include "DataFields.h"
#include "DataFormat.h"
#include "Execution.h"
#include "RecordedAttention.h"
#include "RecordingConversion.h"
#include "RecordingRanges.h"
#include "TokenText.h"

#include <vtkDataObject.h>
#include <vtkFloatArray.h>
#include <vtkImageData.h>
#include <vtkInformation.h>
#include <vtkInformationVector.h>
#include <vtkMultiBlockDataSet.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkStreamingDemandDrivenPipeline.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

using SDDP = vtkStreamingDemandDrivenPipeline;

namespace
{

/// Queries that are evaluated at a time, a multiple of 64.
std::int64_t RowsPerStep(int quantity, std::int64_t keys)
{
  constexpr std::int64_t BlockRows = 64;
  constexpr std::int64_t PointsPerStep = std::int64_t{ 1 } << 24;
  return quantity == vtkAttentionMap::ROLLOUT
           ? std::numeric_limits<std::int64_t>::max() // its cost hardly depends on them
           : std::max(PointsPerStep / (BlockRows * keys), std::int64_t{ 1 }) * BlockRows;
}

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
          : AttentionAtlas::TokenText(
              recording, recording.sequenceOffsets[static_cast<std::size_t>(sequence)] + i));
    }
    fields->AddArray(labels);
  }
}

}

vtkStandardNewMacro(vtkAttentionMap);

/// The rows of an image and the queries that they show, from the bottom up.
struct vtkAttentionMap::Rows
{
  std::int64_t keys;                ///< all of the sequence, and as many queries
  const std::array<int, 6>& extent; ///< of the part of the image

  std::int64_t Width() const { return this->extent[1] - this->extent[0] + 1; }
  std::int64_t FirstQuery() const { return this->keys - 1 - this->extent[3]; }
  std::int64_t EndQuery() const { return this->keys - this->extent[2]; }

  /// Puts whole rows of queries begin <= i < end where the image has them.
  void Copy(std::int64_t begin, std::int64_t end, const float* rows, float* image) const
  {
    for (std::int64_t query = begin; query < end; ++query)
    {
      const float* row = rows + (query - begin) * this->keys + this->extent[0];
      std::copy(row, row + this->Width(), image + (this->EndQuery() - 1 - query) * this->Width());
    }
  }
};

int vtkAttentionMap::FillInputPortInformation(int, vtkInformation* info)
{
  info->Set(vtkAlgorithm::INPUT_REQUIRED_DATA_TYPE(), "vtkMultiBlockDataSet");
  return 1;
}

int vtkAttentionMap::RequestInformation(
  vtkInformation*, vtkInformationVector**, vtkInformationVector* outputVector)
{
  vtkMultiBlockDataSet* recording = AttentionAtlas::UpdateRecording(this);
  const AttentionAtlas::RecordingRanges ranges(recording);
  std::copy_n(ranges.sequence, 2, this->SequenceRange);
  std::copy_n(ranges.layer, 2, this->LayerRange);
  std::copy_n(ranges.head, 2, this->HeadRange);
  this->SequenceRange[0] = this->HeadRange[0] = AttentionAtlas::IsEmpty(recording) ? 0 : -1;
  const int tokens = AttentionAtlas::IsEmpty(recording)
                       ? 0
                       : AttentionAtlas::SequenceTokens(recording, this->Sequence);
  AttentionAtlas::AnnounceImage(tokens, tokens, outputVector->GetInformationObject(0));
  return 1;
}

int vtkAttentionMap::RequestUpdateExtent(
  vtkInformation*, vtkInformationVector**, vtkInformationVector*)
{
  return 1; // the whole recording, whatever part of the image
}

/// Evaluates the rows on several threads. Returns false if the user has cancelled.
bool vtkAttentionMap::EvaluateRows(
  const atlas::Recording& recording, const Rows& rows, float* image)
{
  // Steps begin at multiples of 64, so that values do not depend on the part of the image.
  const std::int64_t first = rows.FirstQuery() / 64 * 64;
  const std::int64_t count = rows.EndQuery() - first;
  const std::int64_t step = std::min(RowsPerStep(this->Quantity, rows.keys), count);
  std::vector<float> block(static_cast<std::size_t>(step * rows.keys));
  for (std::int64_t done = 0; done < count; done += step)
  {
    const std::int64_t begin = first + done;
    const std::int64_t end = std::min(begin + step, rows.EndQuery());
    const auto report = [&](double part)
    {
      return AttentionAtlas::ReportProgress(
        this, (static_cast<double>(done) + part * static_cast<double>(end - begin)) /
                static_cast<double>(count));
    };
    if (!atlas::EvaluateAttentionRows(recording,
          { this->Sequence, this->Layer, this->Head,
            static_cast<atlas::AttentionQuantity>(this->Quantity), begin, end },
          block.data(), AttentionAtlas::ThreadLimit(), report))
    {
      return false;
    }
    const std::int64_t from = std::max(begin, rows.FirstQuery());
    rows.Copy(from, end, block.data() + (from - begin) * rows.keys, image);
  }
  return true;
}

int vtkAttentionMap::RequestData(
  vtkInformation*, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  auto* input = vtkMultiBlockDataSet::GetData(inputVector[0]);
  auto* output = vtkImageData::GetData(outputVector);
  output->Initialize();
  if (AttentionAtlas::IsEmpty(input))
  {
    return 1;
  }
  try
  {
    const auto quantity = static_cast<atlas::AttentionQuantity>(this->Quantity);
    const atlas::Recording recording =
      AttentionAtlas::ToRecording(input, this->Layer, this->Head, quantity);
    // Checks the numbers, and that there is such a quantity, before anything is allocated.
    atlas::EvaluateAttention(
      recording, this->Sequence, this->Layer, this->Head, quantity, 0, 0, nullptr);
    const std::int64_t tokens = atlas::RequireTokens(recording, this->Sequence);
    std::array<int, 6> extent =
      AttentionAtlas::RequestedExtent(outputVector->GetInformationObject(0), tokens, tokens);
    const Rows rows{ tokens, extent };
    const std::int64_t points = rows.Width() * (rows.EndQuery() - rows.FirstQuery());
    const int copies = this->Quantity == ROLLOUT ? 3 : 1; // rows of two layers beside the image
    AttentionAtlas::RequireMemory(static_cast<double>(copies * points) * sizeof(float),
      "a map of " + std::to_string(rows.keys) + " x " + std::to_string(rows.keys) + " tokens",
      "record shorter sequences.");
    vtkNew<vtkFloatArray> values;
    values->SetName(atlas::AttentionQuantityNames[static_cast<std::size_t>(this->Quantity)]);
    values->SetNumberOfValues(points);
    if (!this->EvaluateRows(recording, rows, values->GetPointer(0)))
    {
      return AttentionAtlas::LeaveUnfinished(this, outputVector);
    }
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
  catch (const std::exception& e)
  {
    output->Initialize();
    if (this->Errors.IsNew(this))
    {
      vtkErrorMacro(<< e.what());
    }
    return 1; // as in vtkModelAlgorithm
  }
  return 1;
}

void vtkAttentionMap::PrintSelf(ostream& os, vtkIndent indent)
{
  this->Superclass::PrintSelf(os, indent);
  os << indent << "Sequence: " << this->Sequence << "\n";
  os << indent << "Layer: " << this->Layer << "\n";
  os << indent << "Head: " << this->Head << "\n";
  os << indent << "Quantity: " << this->Quantity << "\n";
}
