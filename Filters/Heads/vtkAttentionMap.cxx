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
#include <vtkMultiProcessController.h>
#include <vtkObjectFactory.h>
#include <vtkPointData.h>
#include <vtkStreamingDemandDrivenPipeline.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

using SDDP = vtkStreamingDemandDrivenPipeline;

namespace
{

constexpr std::array<const char*, 4> QuantityNames = { "Weights", "Scores", "Content", "Bias" };

/// Queries that are evaluated at a time.
constexpr std::int64_t BlockRows = 64;
/// Points between two reports of progress, each a chance to cancel.
constexpr std::int64_t PointsPerStep = std::int64_t{ 1 } << 24;

bool IsEmpty(vtkMultiBlockDataSet* recording)
{
  return recording == nullptr || recording->GetNumberOfBlocks() == 0;
}

/// The number of tokens of a sequence, or 1 if there is no such sequence, so that something is
/// asked for and the error told.
int LengthOf(vtkMultiBlockDataSet* recording, int sequence)
{
  vtkDataArray* offsets = recording->GetFieldData()->GetArray(AttentionAtlas::SequenceOffsetsField);
  if (offsets == nullptr || sequence < 0 || sequence + 1 >= offsets->GetNumberOfTuples())
  {
    return 1;
  }
  return static_cast<int>(
    offsets->GetComponent(sequence + 1, 0) - offsets->GetComponent(sequence, 0));
}

void AddLabels(const atlas::Recording& recording, int sequence, vtkFieldData* fields)
{
  const auto s = static_cast<std::size_t>(sequence);
  for (const char* name : { "Key Token", "Query Token" })
  {
    vtkNew<vtkStringArray> labels;
    labels->SetName(name);
    for (std::int64_t i = recording.sequenceOffsets[s]; i < recording.sequenceOffsets[s + 1]; ++i)
    {
      labels->InsertNextValue(AttentionAtlas::TokenText(recording, i));
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
  AttentionAtlas::RecordingRanges ranges;
  ranges.Find(recording);
  std::copy_n(ranges.sequence, 2, this->SequenceRange);
  std::copy_n(ranges.layer, 2, this->LayerRange);
  std::copy_n(ranges.head, 2, this->HeadRange);
  const int last = IsEmpty(recording) ? -1 : LengthOf(recording, this->Sequence) - 1;
  const std::array<int, 6> extent = { 0, last, 0, last, 0, last < 0 ? -1 : 0 };
  const std::array<double, 3> origin = { 0, static_cast<double>(-last), 0 };
  const std::array<double, 3> spacing = { 1, 1, 1 };
  vtkInformation* info = outputVector->GetInformationObject(0);
  info->Set(SDDP::WHOLE_EXTENT(), extent.data(), 6);
  info->Set(vtkDataObject::ORIGIN(), origin.data(), 3);
  info->Set(vtkDataObject::SPACING(), spacing.data(), 3);
  info->Set(vtkAlgorithm::CAN_PRODUCE_SUB_EXTENT(), 1);
  vtkDataObject::SetPointDataActiveScalarInfo(info, VTK_FLOAT, 1);
  return 1;
}

int vtkAttentionMap::RequestUpdateExtent(
  vtkInformation*, vtkInformationVector**, vtkInformationVector*)
{
  return 1; // the whole recording, whatever part of the image
}

/// Evaluates the rows in blocks on several threads. Returns false if the user has cancelled.
bool vtkAttentionMap::EvaluateRows(
  const atlas::Recording& recording, const Rows& rows, float* image)
{
  const auto evaluate = [&](vtkIdType firstBlock, vtkIdType endBlock)
  {
    // Blocks begin at multiples of their size, so that values do not depend on the threads.
    std::vector<float> block(static_cast<std::size_t>(BlockRows * rows.keys));
    for (vtkIdType b = firstBlock; b < endBlock; ++b)
    {
      const std::int64_t begin = b * BlockRows;
      const std::int64_t end = std::min(begin + BlockRows, rows.keys);
      atlas::EvaluateAttention(recording, this->Sequence, this->Layer, this->Head,
        static_cast<atlas::AttentionQuantity>(this->Quantity), begin, end, block.data());
      const std::int64_t from = std::max(begin, rows.FirstQuery());
      rows.Copy(
        from, std::min(end, rows.EndQuery()), block.data() + (from - begin) * rows.keys, image);
    }
  };
  const vtkIdType first = rows.FirstQuery() / BlockRows;
  const vtkIdType last = (rows.EndQuery() + BlockRows - 1) / BlockRows;
  const vtkIdType step = std::max<vtkIdType>(PointsPerStep / (BlockRows * rows.keys), 1);
  for (vtkIdType begin = first; begin < last; begin += step)
  {
    const vtkIdType end = std::min(begin + step, last);
    AttentionAtlas::ParallelFor(begin, end, evaluate);
    if (!AttentionAtlas::ReportProgress(
          this, static_cast<double>(end - first) / static_cast<double>(last - first)))
    {
      return false;
    }
  }
  return true;
}

int vtkAttentionMap::RequestData(
  vtkInformation*, vtkInformationVector** inputVector, vtkInformationVector* outputVector)
{
  auto* input = vtkMultiBlockDataSet::GetData(inputVector[0]);
  auto* output = vtkImageData::GetData(outputVector);
  output->Initialize();
  if (IsEmpty(input))
  {
    return 1;
  }
  std::array<int, 6> extent;
  outputVector->GetInformationObject(0)->Get(SDDP::UPDATE_EXTENT(), extent.data());
  try
  {
    const atlas::Recording recording = AttentionAtlas::ToRecording(input, this->Layer, this->Head);
    // Checks the numbers, and that there is such a quantity, before anything is allocated.
    atlas::EvaluateAttention(recording, this->Sequence, this->Layer, this->Head,
      static_cast<atlas::AttentionQuantity>(this->Quantity), 0, 0, nullptr);
    const Rows rows{ recording.SequenceLength(this->Sequence), extent };
    const std::int64_t points = rows.Width() * (rows.EndQuery() - rows.FirstQuery());
    AttentionAtlas::RequireMemory(static_cast<double>(points) * sizeof(float),
      "a map of " + std::to_string(rows.keys) + " x " + std::to_string(rows.keys) + " tokens",
      "record shorter sequences.");
    vtkNew<vtkFloatArray> values;
    values->SetName(QuantityNames[static_cast<std::size_t>(this->Quantity)]);
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
