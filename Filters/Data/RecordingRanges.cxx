#include "RecordingRanges.h"

#include "Base/Index.h"
#include "Execution.h"
#include "ModelConversion.h"
#include "RecordingConversion.h"

#include <vtkDataArray.h>
#include <vtkFieldData.h>
#include <vtkMultiBlockDataSet.h>

#include <algorithm>
#include <array>

namespace AttentionAtlas
{
namespace
{

/// The tokens of a sequence, or of the longest for -1, by its offsets in a field array.
int LongestBy(const char* field, vtkMultiBlockDataSet* recording, int sequence)
{
  vtkDataArray* offsets = recording->GetFieldData()->GetArray(field);
  const vtkIdType count = offsets != nullptr ? offsets->GetNumberOfTuples() - 1 : 0;
  double length = 1;
  for (vtkIdType s = 0; s < count; ++s)
  {
    if (sequence == atlas::AllSequences || s == sequence)
    {
      length = std::max(length, offsets->GetComponent(s + 1, 0) - offsets->GetComponent(s, 0));
    }
  }
  return static_cast<int>(length);
}

}

void RecordingRanges::Find(vtkMultiBlockDataSet* recording)
{
  *this = {};
  if (IsEmpty(recording))
  {
    return;
  }
  vtkFieldData* fields = recording->GetFieldData();
  if (vtkDataArray* offsets = fields->GetArray(SequenceOffsetsField))
  {
    const vtkIdType last = offsets->GetNumberOfTuples() - 1;
    this->sequence[1] = static_cast<int>(std::max<vtkIdType>(last - 1, 0));
    this->tokens = last >= 0 ? static_cast<int>(offsets->GetComponent(last, 0)) : 0;
  }
  vtkDataArray* layers = fields->GetArray(ScoreScaleField); // the recorded ones
  if (layers != nullptr && layers->GetNumberOfTuples() > 0)
  {
    std::array<double, 2> range;
    layers->GetRange(range.data(), 0);
    std::copy(range.begin(), range.end(), this->layer);
  }
  vtkDataArray* heads = fields->GetArray(HeadsField);
  if (heads != nullptr && heads->GetNumberOfTuples() > 0)
  {
    this->head[1] = std::max(0, static_cast<int>(heads->GetComponent(0, 0)) - 1);
  }
}

vtkMultiBlockDataSet* OutlineOfRecording(vtkAlgorithm* filter)
{
  return vtkMultiBlockDataSet::SafeDownCast(OutlineOf(filter));
}

bool IsEmpty(vtkMultiBlockDataSet* recording)
{
  return recording == nullptr || recording->GetNumberOfBlocks() == 0;
}

std::vector<int> RecordedLayers(vtkMultiBlockDataSet* recording)
{
  std::vector<int> layers;
  vtkDataArray* scales = recording->GetFieldData()->GetArray(ScoreScaleField);
  for (vtkIdType i = 0; scales != nullptr && i < scales->GetNumberOfTuples(); ++i)
  {
    layers.push_back(static_cast<int>(scales->GetComponent(i, 0)));
  }
  return layers;
}

std::vector<int> LayersWithoutHeads(vtkMultiBlockDataSet* recording)
{
  std::vector<int> layers;
  vtkDataArray* without = recording->GetFieldData()->GetArray(LayersWithoutHeadsField);
  for (vtkIdType i = 0; without != nullptr && i < without->GetNumberOfTuples(); ++i)
  {
    layers.push_back(static_cast<int>(without->GetComponent(i, 0)));
  }
  return layers;
}

int SequenceTokens(vtkMultiBlockDataSet* recording, int sequence)
{
  const bool grows = recording->GetFieldData()->HasArray(LastSequenceOffsetsField) != 0;
  return LongestBy(grows ? LastSequenceOffsetsField : SequenceOffsetsField, recording, sequence);
}

int SourceTokens(vtkMultiBlockDataSet* recording, int sequence)
{
  vtkDataArray* lengths = recording->GetFieldData()->GetArray(SourceLengthsField);
  return lengths != nullptr && sequence >= 0 && sequence < lengths->GetNumberOfTuples()
           ? static_cast<int>(lengths->GetComponent(sequence, 0))
           : 0;
}

int SequenceTokensNow(vtkMultiBlockDataSet* recording, int sequence)
{
  return LongestBy(SequenceOffsetsField, recording, sequence);
}

}
